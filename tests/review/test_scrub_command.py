"""`memory vault scrub` cleans existing data; ids, dates and the user's own words stay."""

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.pipelines.scrub import Policy
from memoryvault.services import scrubbing
from memoryvault.services.evolving import evolve
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.journal import Change
from memoryvault.services.scrubbing import scrub_everything, scrub_note
from memoryvault.services.state_db import state_transaction
from memoryvault.services.undoing import Selector
from memoryvault.tasks.queue.damage import back_up
from memoryvault.tests.ideas.support import ideas_file, write_down
from memoryvault.tests.review.support import Bed
from memoryvault.tests.support.command import Command
from memoryvault.vault.entry import Source
from memoryvault.vault.scrubbed import Scrubbed

TOKEN = "ghp_" + "b" * 36
MAIL = "alex@example.com"


def everything(sandbox: Sandbox) -> bytes:
    """Every byte of vault and state."""
    files = [*sandbox.vault.rglob("*"), *(sandbox.root / "state").rglob("*")]
    return b"".join(path.read_bytes() for path in files if path.is_file())


@pytest.mark.slow
def test_a_secret_is_found_everywhere_and_replaced(sandbox: Sandbox) -> None:
    path = Path(sandbox.memory("save", "reference", "deploy", "--body", f"placeholder, ask {MAIL}").strip())
    path.write_text(path.read_text("utf-8").replace("placeholder", f"token {TOKEN}"), "utf-8")
    sandbox.memory("service", "worker", "--until-idle")
    log = sandbox.state / "log" / "memoryvault.log"
    with log.open("a", encoding="utf-8") as file:
        file.write(f'{{"level": "info", "event": "x", "message": "mail {MAIL} {TOKEN}"}}\n')
    (sandbox.state / "spool" / "1-1.json").write_text(
        f'{{"kind": "reflect.session", "args": {{"session": "s"}}, "note": "{TOKEN}"}}', "utf-8"
    )
    connection = sqlite3.connect(sandbox.state / "queue.db")
    with connection:
        connection.execute("UPDATE job SET error = ? WHERE id = (SELECT min(id) FROM job)", (f"refused {TOKEN}",))
    connection.close()
    assert TOKEN.encode() in everything(sandbox)

    report = sandbox.json("vault", "scrub")
    assert {one["where"] for one in report["found"]} == {"vault", "log", "spool", "queue"}
    assert TOKEN not in sandbox.memory("vault", "scrub"), "the report does not repeat it"
    assert TOKEN.encode() in everything(sandbox), "without --apply nothing changes"

    sandbox.memory("vault", "scrub", "--apply")
    assert TOKEN.encode() not in everything(sandbox)
    text = path.read_text("utf-8")
    assert MAIL in text, "whom the user names in a note of theirs is no secret"
    assert MAIL not in log.read_text("utf-8")
    assert sandbox.json("vault", "scrub")["found"] == []
    sandbox.memory("service", "worker", "--until-idle")
    assert [Path(hit["path"]).stem for hit in sandbox.json("recall", "deploy token")["hits"]]


@pytest.mark.slow
def test_nothing_that_was_put_away_or_copied_or_freed_keeps_a_secret(sandbox: Sandbox) -> None:
    path = Path(sandbox.memory("save", "reference", "deploy", "--body", "placeholder").strip())
    sandbox.memory("service", "worker", "--until-idle")
    note = path.read_text("utf-8").replace("placeholder", f"token {TOKEN}")
    copy = path.with_name("deploy (conflicted copy).md")
    trashed = sandbox.vault / "_trash" / "deploy.md"
    trashed.parent.mkdir()
    ideas = sandbox.vault.parent / "Ideas.md"
    for file in (copy, trashed, ideas):
        file.write_text(note, "utf-8")
    freed = "UPDATE job SET error = ? WHERE id = (SELECT max(id) FROM job)"
    with closing(sqlite3.connect(sandbox.state / "queue.db")) as connection, connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute(freed, (f"{TOKEN} " * 1000,))
        connection.execute(
            "UPDATE job SET args = ? WHERE id = (SELECT min(id) FROM job)", (json.dumps({"session": TOKEN}),)
        )
    with state_transaction(sandbox.state / "state.db") as connection:
        value = json.dumps({"address": f"https://bob:{TOKEN}@feeds.test/x"})
        connection.execute("INSERT INTO cursor VALUES ('discovery', ?, ?, 1)", (f"feed {TOKEN}", value))
    for name in ("queue.db", "state.db"):
        assert back_up(sandbox.state / name)
    with closing(sqlite3.connect(sandbox.state / "queue.db")) as connection, connection:
        connection.execute(freed, (None,))
    assert {one["where"] for one in sandbox.json("vault", "scrub")["found"]} == {"vault", "queue", "state"}

    sandbox.memory("vault", "scrub", "--apply")
    assert TOKEN.encode() not in everything(sandbox)
    assert TOKEN not in ideas.read_text("utf-8")
    assert (sandbox.state / "backup" / "queue.db").is_file()
    assert sandbox.json("vault", "scrub")["found"] == []


@pytest.mark.slow
def test_a_job_that_waits_keeps_its_arguments_and_is_named(sandbox: Sandbox) -> None:
    sandbox.memory("save", "reference", "deploy", "--body", "x")
    sandbox.memory("service", "worker", "--until-idle")
    with closing(sqlite3.connect(sandbox.state / "queue.db")) as connection, connection:
        connection.execute(
            "UPDATE job SET state = 'queued', args = ? WHERE id = (SELECT min(id) FROM job)",
            (json.dumps({"session": TOKEN}),),
        )
    done = sandbox.run("vault", "scrub", "--apply")
    assert done.returncode == 1
    assert "cancel it first" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


def test_an_undo_after_scrubbing_brings_the_users_own_words_back(tmp_path: Path, bed: Bed) -> None:
    own = bed.note("personal-private/notes/team.md", f"Ask Ann, {MAIL}.", kind="notes")
    (tmp_path / "Ideas.md").write_text(f"# Ideas\n\nAsk {MAIL} about this.\n", "utf-8")
    mined = bed.note("personal-private/notes/mined.md", "x", kind="notes", source=[Source("claude", "s1", ("r1",))])
    bed.edit(mined, "\nx", f"\nSaid by {MAIL}.")
    before = bed.files()
    for path in (own, mined):
        evolve(bed.store, bed.journal, path, Scrubbed(f"token {TOKEN}"), Scrubbed("new"))
        bed.edit(path, f"token {TOKEN}", "Another.")
    write_down(bed, "Offline maps")
    assert MAIL in ideas_file(bed)
    scrub_everything(bed.settings, bed.store, apply=True)
    journal = "".join(file.read_text("utf-8") for file in bed.journal.files if file.exists())
    texts = {
        change["path"]: change["before"]
        for line in journal.splitlines()
        for change in json.loads(line).get("changes", [])
        if change.get("before")
    }
    assert texts[own] == before[own]
    assert MAIL not in texts[mined]
    assert [MAIL in text for path, text in texts.items() if path.endswith("Ideas.md")] == [True]


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("place", ["journal", "spool", "log"])
def test_a_scrub_that_is_killed_while_it_writes_a_file_of_lines_leaves_it_whole(bed: Bed, place: str) -> None:
    """What can be undone, jobs that wait: the next run cleans what this one has not."""
    path = bed.note("personal-private/notes/team.md", "Mine.", kind="notes")
    file = Path(bed.settings.state.root, place, "1-1.json" if place == "spool" else "x.jsonl")
    if place == "journal":
        bed.edit(path, "Mine.", f"token {TOKEN}")
        evolve(bed.store, bed.journal, path, Scrubbed("why"), Scrubbed("new"))
        file = bed.journal.files[-1]
    else:
        file.write_text(json.dumps({"kind": "reflect.session", "note": TOKEN}) + "\n")
    before = file.read_bytes()
    _kill_scrub(bed, "before-replace")
    assert list(file.parent.glob(f".{file.name}-*.tmp")), "it was killed over this file"
    assert file.read_bytes() == before
    scrub_everything(bed.settings, bed.store, apply=True)
    assert len(file.read_bytes().splitlines()) == len(before.splitlines())
    assert TOKEN.encode() not in file.read_bytes()


@pytest.mark.slow
@pytest.mark.once
def test_an_undo_after_a_scrub_that_was_killed_brings_no_secret_back(bed: Bed) -> None:
    _note_of_two_acts(bed)
    _kill_scrub(bed, "vault-before-rename")
    bed.undo.carry_out(Selector(last=True))
    assert [text.count("[REDACTED") for text in bed.files().values()] == [1]
    assert not any(TOKEN in text for text in bed.files().values())


@pytest.mark.slow
@pytest.mark.once
def test_leftovers_of_a_killed_scrub_go_with_the_next(bed: Bed) -> None:
    _note_of_two_acts(bed)
    journal = bed.journal.files[-1]
    left = [journal.with_name(name) for name in (".changes.jsonl-1-1.tmp", ".pending-1", "pending.damaged.json")]
    for file in left:
        file.write_bytes(journal.read_bytes()[:-20])
    found = [one.name for one in scrub_everything(bed.settings, bed.store, apply=False) if one.where == "journal"]
    assert sorted(found) == sorted(file.name for file in (*left, journal))
    assert all(file.exists() for file in left)
    scrub_everything(bed.settings, bed.store, apply=True)
    assert [path for path in journal.parent.iterdir() if TOKEN in path.read_text()] == []


def _note_of_two_acts(bed: Bed) -> str:
    """Mined by rules that did not know the secret yet."""
    path = "personal-private/preferences/a.md"
    first = f"---\nkind: preference\nstatus: active\n---\n\n# a\n\nUse {TOKEN}.\n"
    for before, after, what in ((None, first, "said"), (first, f"{first}Again.\n", "said again")):
        text = Scrubbed.trusted(after, reason="as an earlier release wrote it")
        bed.journal.commit([Change(path, before, text)], run=f"reflect:{what}", actor="reflection", what=what)
    return path


def _kill_scrub(bed: Bed, point: str) -> None:
    arm = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": point}
    command = [sys.executable, "-m", "memoryvault", "vault", "scrub", "--apply"]
    killed = subprocess.run(command, env={**bed.env, **arm}, cwd=bed.root, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL


def test_a_job_that_the_worker_takes_while_it_is_looked_at_does_not_come_a_second_time(bed: Bed) -> None:
    spooled = Path(bed.settings.state.spool, "1-1.json")
    spooled.write_text(json.dumps({"kind": "reflect.session", "note": TOKEN}) + "\n")

    def take(value: Any) -> tuple[Any, Counter[str]]:
        spooled.unlink()
        return {}, Counter({"API-KEY": 1})

    assert scrubbing._lines(spooled, "spool", take, apply=True) == []
    assert not spooled.exists()


def test_unwritable_files_are_told_and_hold_up_none(ask: Bed, memory: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = ask.vault / "personal-private" / "notes"
    notes.mkdir(parents=True)
    # The first and the last are protected, as by the flag `immutable`, which stops root too; a dozen of them in all.
    guarded = [notes / f"{name}.md" for name in ("a", "z", *(f"m{number:02}" for number in range(9)))]
    free, ideas = [notes / "b.md", notes / "y.md"], ask.root / "Ideas.md"
    for file in (*guarded, *free, ideas):
        file.write_text(f"---\nkind: notes\n---\n\ntoken {TOKEN}\n", "utf-8")
    reconcile_now(ask.settings)
    log = Path(ask.settings.state.log_file)
    log.write_text(json.dumps({"message": f"mail {TOKEN}"}) + "\n", "utf-8")
    replace = os.replace

    def refuse(source: str | Path, target: str | Path) -> None:
        if Path(target) in (*guarded, ideas):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    found = {(one.where, one.name): one.problem for one in scrub_everything(ask.settings, ask.store, apply=True)}
    assert not any(TOKEN in file.read_text("utf-8") for file in (*free, log))
    names = {file.relative_to(ask.vault).as_posix() for file in guarded}
    assert {name: found["vault", name] for name in names} == {
        name: f"{name} cannot be written: Operation not permitted; nothing was changed" for name in names
    }
    assert found["vault", "Ideas.md"]
    assert not any(found["vault", f"personal-private/notes/{name}.md"] for name in "by")

    for options in ([], ["--json"]):
        said = memory("vault", "scrub", "--apply", *options, code=1)
        assert TOKEN not in said.out + said.err
        assert said.err.count("Operation not permitted") == 10
        assert said.err.endswith("memory: and 2 more (--json names all)\n")
    assert {one["name"] for one in json.loads(said.out)["found"] if one["problem"]} == {"Ideas.md", *names}


def test_names_dates_and_ids_are_left_alone_and_free_fields_are_not() -> None:
    header = (
        "kind: fix\nfingerprint: 7396925d150c863e33a8d83fa487733e0de92eb5589f55f67924ec64b57a8a38\nsource:\n"
        "  - host: claude\n    session: 3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11\n    records: [r1]\n"
    )
    text = f"---\n{header}api: {TOKEN}\n---\n\nBody.\n"
    clean, kinds = scrub_note(text, Policy.FULL)
    assert clean.startswith(f"---\n{header}")
    assert TOKEN not in clean
    assert sum(kinds.values()) == 1


def test_standard_input_comes_out_clean_and_otherwise_as_it_was(sandbox: Sandbox) -> None:
    text = f"a line\r\n  with {MAIL}\n{TOKEN}\nno newline at the end"
    out = sandbox.memory("vault", "scrub", "--stdin", stdin=text)
    assert MAIL not in out
    assert TOKEN not in out
    assert out.endswith("no newline at the end")
    assert not list((sandbox.root / "state").glob("*"))


def test_a_page_or_book_named_as_source_does_not_make_the_users_own_note_a_mined_one(bed: Bed) -> None:
    folder = bed.vault / "personal-private" / "notes"
    folder.mkdir(parents=True)
    own = ("https://example.com/post", '"[[A book]]"', "[https://a.test/x, https://b.test/y]", "Ann")
    for number, source in enumerate(own):
        (folder / f"own{number}.md").write_text(f"---\nsource: {source}\n---\n\nAsk {MAIL}.\n", "utf-8")
    bed.note("personal-private/notes/mined.md", f"Ask {MAIL}.", kind="fix", source=[Source("claude", "s1", ("r1",))])
    bed.note("personal-private/notes/agents.md", f"Ask {MAIL}.", kind="fix", source=Source("agent"))
    write_down(bed, "Offline maps")
    (idea,) = [path for path in bed.files() if "_idea-incubator" in path]
    bed.edit(idea, "\n\n", f"\n\nAsk {MAIL}. ")
    before = bed.files()
    found = {one.name for one in scrub_everything(bed.settings, bed.store, apply=True) if one.where == "vault"}
    assert found == {"personal-private/notes/mined.md", "personal-private/notes/agents.md"}
    assert all(text == before[path] for path, text in bed.files().items() if path not in found)


@pytest.mark.parametrize(
    "field",
    [
        f"api key: {TOKEN}", f'"api_key": {TOKEN}', f"github.token: {TOKEN}", f"tags: [deploy, {TOKEN}]",
        f"project: {TOKEN}", f"# the old one was {TOKEN}", f"? {TOKEN}", 'password:\n  "Hunter2Secret9x"',
        "source: https://bob:Hunter2Secret9x@db.example.com/x", 'args: ["--password", "Hunter2Secret9x"]',
        'aliases: [Wiki, "password: Hunter2Secret9x"]', "aliases: [Wiki, Login] # password: Hunter2Secret9x",
        "password_manager_password: Hunter2Secret9x",
    ],
)  # fmt: skip
def test_a_secret_goes_wherever_it_stands_in_the_header(field: str) -> None:
    text = f"---\nkind: fix\ncreated: 2026-01-01\n{field}\n---\n\nBody.\n"
    clean, kinds = scrub_note(text, Policy.SECRETS)
    assert sum(kinds.values()) == 1
    assert not any(secret in clean for secret in (TOKEN, "Hunter2Secret9x"))
    assert clean.startswith("---\nkind: fix\ncreated: 2026-01-01\n")
    assert clean.endswith("---\n\nBody.\n")


def test_a_key_file_in_a_property_goes_as_a_whole() -> None:
    lines = [f"{number:02}" + "Ab3dEf7hIj" * 6 for number in range(12)]
    key = ["-----BEGIN PRIVATE KEY-----", *lines, "az0BHizafdvuEw==", "-----END PRIVATE KEY-----"]
    text = "---\ndeploy: |\n" + "".join(f"  {line}\n" for line in key) + "kind: fix\n---\n\nBody.\n"
    clean, kinds = scrub_note(text, Policy.SECRETS)
    assert clean == "---\ndeploy: |\n  [REDACTED-PRIVATE-KEY]\nkind: fix\n---\n\nBody.\n"
    assert kinds == {"PRIVATE-KEY": 1}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_private_passage_that_nothing_closes_ends_with_its_property(end: str) -> None:
    text = end.join(("---", "note: so <private>not for you", "status: pending", "---", "", "Body.", ""))
    clean, kinds = scrub_note(text, Policy.SECRETS)
    assert clean == end.join(("---", "note: so ", "status: pending", "---", "", "Body.", ""))
    assert kinds == {"PRIVATE": 1}


@pytest.mark.parametrize(
    "header",
    [
        'aliases: [Passwords, "Team wiki"]', 'aliases: ["Token", "OAuth2 flow overview"]',
        'aliases:\n  - Password\n  - "Vault 2026"', 'keywords: [password, "api key"]', "password_manager: 1Password 8",
        "citation_key: vaswani2017attention", "slug: co-working-space-in-berlin-2026-and-how-to-book-a-room",
        "tags: [sk-learn-pipeline-notes-20260501, sk-2026-05-01-minutes-of-meeting]", "sort_key: 0042-introduction",
    ],
)  # fmt: skip
def test_header_fields_without_secrets_stay(header: str) -> None:
    text = f"---\n{header}\n---\n\nBody.\n"
    assert scrub_note(text, Policy.FULL) == (text, {})


def test_a_file_name_that_holds_a_secret_and_a_note_too_large_to_read_are_named(bed: Bed) -> None:
    folder = bed.vault / "personal-private" / "notes"
    folder.mkdir(parents=True)
    (folder / f"old {TOKEN}.md").write_text("---\nkind: notes\n---\n\nIt was revoked.\n", "utf-8")
    (folder / "export.md").write_bytes(b"line of an export\n" * 500_000)
    (folder / "Meeting 0123456789abcdef0123456789abcdef.md").write_text("As Notion names its pages.\n", "utf-8")
    found = scrub_everything(bed.settings, bed.store, apply=True)
    assert found[0].problem == "personal-private/notes/export.md is larger than 8 MB: check it by hand"
    assert [(one.name, one.kinds, bool(one.problem)) for one in found] == [
        ("personal-private/notes/export.md", {}, True),
        ("personal-private/notes/old [REDACTED-API-KEY].md", {"API-KEY": 1}, True),
    ]
    assert (folder / f"old {TOKEN}.md").exists()
