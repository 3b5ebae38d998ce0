"""`memory init` on a machine with old sessions, and `memory uninstall` after it."""

import json
import os
import shutil
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryvault.cli import processes
from memoryvault.cli.context import Context
from memoryvault.cli.doctor import _index
from memoryvault.cli.init import folder_named, show_first_recall
from memoryvault.cli.vault_choice import VAULT_NAME, choose_vault, vault_in
from memoryvault.hooks.install import HostFileUnwritable
from memoryvault.hooks.opencode import PLUGIN_FILE
from memoryvault.hooks.wiring import install_for, wired_events
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.runtime.settings import load_settings
from memoryvault.services.corpus.history import FirstRecall, first_recall, question_about
from memoryvault.services.discovery.adapting import SOURCES_NOTE
from memoryvault.services.indexing import reconcile_now
from memoryvault.tests.review.support import Bed
from memoryvault.tests.support.files import put, put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.readonly import memory_with_readonly
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.tasks.support import wait_until

SHIPPED_SESSION = Path(__file__).resolve().parents[2] / "demo" / "session.jsonl"
SESSION = "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11"
LIMIT_SECONDS = 60.0
OTHERS = (
    b'{ "model":"opus",\r\n\t"hooks" : {"Stop":[ {"hooks":[{"type":"command","command":"say done"}]} ],\r\n'
    b'  "PostToolUse":[{"matcher":"Edit","hooks":[{"type":"command","command":"fmt","args":[]}]}] } }'
)


def init(sandbox: Sandbox, *more: str) -> dict[str, Any]:
    return dict(sandbox.json("init", "--yes", "--vault", str(sandbox.vault), *more))


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox whose worker and recall service start by themselves; they are ended with the test."""
    sandbox = Sandbox(tmp_path, {"MEMORY_AUTOSTART": "true"})
    yield sandbox
    sandbox.run("uninstall")


@pytest.mark.slow
@pytest.mark.hurried
def test_init_ends_with_a_memory_of_a_session_from_before_and_uninstall_with_nothing_running(live: Sandbox) -> None:
    settings_file = live.root / "home" / ".claude" / "settings.json"
    settings_file.write_bytes(OTHERS)
    live.transcript(SESSION, SHIPPED_SESSION.read_text("utf-8"))
    old = live.transcript("00000000-7d1e-4c55-9a51-0f6f6f2b8a11", SHIPPED_SESSION.read_text("utf-8"))
    os.utime(old, (time.time() - 40 * 86_400,) * 2)

    started = time.monotonic()
    said = init(live)
    assert time.monotonic() - started < LIMIT_SECONDS * patience()
    assert said["worker"] is True
    assert said["history"] | {"bytes": 0} == {
        "sessions": 1, "bytes": 0, "mined_before": 0, "mined": 1, "failed": 0, "cancelled": 0, "done": True,
    }, "the one of the last 30 days"  # fmt: skip
    assert said["consents"] == {"research.network": False, "discovery": False}
    assert said["recall"]["hits"][0]["path"] == said["recall"]["asked_for"]
    assert (live.vault / said["recall"]["asked_for"]).is_file()

    once = settings_file.read_bytes()
    again = init(live)
    assert (again["changed"], again["backup"], again["history"]["sessions"]) == (False, None, 0)
    assert again["recall"] == said["recall"]
    assert settings_file.read_bytes() == once

    notes = set(live.vault.rglob("*.md"))
    live.memory("uninstall")
    assert settings_file.read_bytes() == OTHERS
    assert notes <= set(live.vault.rglob("*.md")), "the worker may have written more until it was stopped"
    state = load_settings(live.environment).state
    assert (lock_holder(state.worker_lock), lock_holder(state.recall_lock)) == (None, None)


def choose(sandbox: Sandbox, vault: Path) -> list[str]:
    """What `memory init` notes where the vault stands in the settings file, not in a variable; it must succeed."""
    command = ("init", "--yes", "--history-days", "0", "--vault", str(vault))
    done = sandbox.run(*command, env={"MEMORY_VAULT_PATH": ""})
    assert done.returncode == 0, done
    return done.stderr.splitlines()


@pytest.mark.slow
@pytest.mark.hurried
def test_init_for_another_vault_stops_what_ran_for_the_one_before_and_nothing_else(live: Sandbox) -> None:
    def running(vault: Path) -> tuple[int | None, int | None]:
        state = load_settings({**live.environment, "MEMORY_VAULT_PATH": str(vault)}).state
        return lock_holder(state.worker_lock), lock_holder(state.recall_lock)

    first, second = (live.root / name / VAULT_NAME for name in ("One", "Two"))
    try:
        with live.process("service", "serve") as bystander:  # Of the vault that only this test's variable names.
            choose(live, first)
            wait_until(lambda: None not in running(first), "both run for the first vault")
            noted = choose(live, second)
            assert running(first) == (None, None)
            assert "memory: stopped what ran with the settings before (worker and recall)" in noted
            wait_until(lambda: None not in running(second), "both run for the second vault")
            assert bystander.poll() is None
    finally:
        for vault in (first, second):
            live.run("uninstall", env={"MEMORY_VAULT_PATH": str(vault)})


@pytest.mark.slow
def test_a_login_services_worker_returns_for_the_chosen_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "START_SECONDS", 0.0)
    sandbox = Sandbox(tmp_path)
    put(sandbox.root / "home" / ".config" / "systemd" / "user" / "memoryvault.service", "[Unit]\n")
    told = sandbox.root / "told"
    script = f'#!/bin/sh\necho "$*" >> {told}\ncase "$*" in *is-active*) exit 3;; esac\n'
    systemctl = put(sandbox.root / "bin" / "systemctl", script)
    systemctl.chmod(0o755)
    before = load_settings(sandbox.environment).state
    env = {**sandbox.environment, "PATH": f"{systemctl.parent}:{os.environ['PATH']}"}
    with sandbox.process("service", "worker"):
        wait_until(lambda: lock_holder(before.worker_lock) is not None, "the unit's worker runs")
        assert processes.stop_replaced(before, load_settings(env), env) == []
        assert not told.exists(), "the vault is the same"
        settings = load_settings({**env, "MEMORY_VAULT_PATH": str(sandbox.root / "Two" / VAULT_NAME)})
        assert processes.stop_replaced(before, settings, env) == ["worker"]
        assert lock_holder(before.worker_lock) is None
    assert "--user restart memoryvault.service" in told.read_text().splitlines()


@pytest.mark.slow
def test_without_leave_to_start_processes_the_sessions_wait_for_a_worker(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.transcript(SESSION, SHIPPED_SESSION.read_text("utf-8"))
    init(sandbox, "--history-days", "0")
    assert [job for job in sandbox.json("jobs", "list") if job["kind"] == "reflect.corpus"] == [], "they are left alone"
    said = init(sandbox)
    assert (said["worker"], said["history"]["done"], said["recall"]) == (False, False, None)
    sandbox.memory("service", "worker", "--until-idle")
    assert init(sandbox)["history"]["done"]


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["STOP", "variable", "file"])
def test_on_a_paused_vault_init_says_so_first_and_waits_for_no_worker(live: Sandbox, switch: str) -> None:
    live.transcript(SESSION, SHIPPED_SESSION.read_text("utf-8"))
    env = live.environment
    config = load_settings(env).config_file
    why, remedy = "memory.enabled is false", f"set memory.enabled = true in {config}"
    if switch == "STOP":
        put(Path(load_settings(env).state.stop_file))
        why, remedy = "MemoryVault is paused", "`memory resume`"
    elif switch == "variable":
        env = {**env, "MEMORY_ENABLED": "false"}
        remedy = "take MEMORY_ENABLED out of the environment"
    else:
        config.write_text("[memory]\nenabled = false\n", "utf-8")
    told = f"{why}: nothing is recorded and no job starts; to go on, {remedy}"
    done = live.run("init", "--yes", "--vault", str(live.vault), env=env)
    assert done.returncode == 0, done
    assert f"memory: {told}" in done.stderr.splitlines()
    assert "worker, is started" not in done.stderr
    assert "1 session waits until memory is switched on" in done.stdout
    assert f"hooks are switched off now: {told}" in done.stdout
    assert lock_holder(load_settings(env).state.worker_lock) is None


@pytest.mark.slow
def test_init_and_doctor_count_the_same_entries_and_doctor_says_what_else_the_index_holds(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    for place, status in (
        ("preferences/tabs.md", "active"),
        ("_review/spaces.md", "pending"),
        ("_inbox/commas.md", "inbox"),
        ("_idea-incubator/dots/_index.md", "incubating"),
    ):
        put_note(sandbox.vault, f"personal-private/{place}", kind="preferences", status=status)
    put(sandbox.vault / "_meta" / "corpus-digest.md", "# What else was said\n")
    said = sandbox.memory("init", "--yes", "--history-days", "0")
    waits = "1 proposal (memory review), 1 in the inbox (memory vault inbox), 1 idea (memory idea list)"
    assert f"\n1 entry is in use; for you to look at: {waits}\n" in said
    detail = _index(Context(sandbox.environment)).detail
    assert detail.startswith(
        "5 notes (1 entry in use, 1 proposal, 1 in the inbox, 1 idea, 1 other), 5 passages, in step"
    )


@pytest.mark.slow
def test_with_the_plugin_the_hooks_do_not_stand_in_the_settings_as_well(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    settings_file = sandbox.root / "home" / ".claude" / "settings.json"
    settings_file.write_text("{}")
    assert init(sandbox)["changed"] is True, "first without it"
    with_hooks = json.loads(settings_file.read_text())
    settings_file.write_text(json.dumps({**with_hooks, "enabledPlugins": {"memory@memoryvault": True}}))
    said = init(sandbox)
    assert said["hooks"] == "plugin"
    assert json.loads(settings_file.read_text()) == {"enabledPlugins": {"memory@memoryvault": True}}
    found = sandbox.diagnosis()["hooks"]
    assert (found["grade"], found["detail"]) == ("ok", "by the Claude Code plugin")
    assert "`claude plugin uninstall memory@memoryvault`" in sandbox.memory("uninstall")


@pytest.mark.parametrize("is_there", [True, False])
def test_an_agent_that_seems_not_to_be_there_is_named_before_anything_is_asked(tmp_path: Path, is_there: bool) -> None:
    sandbox = Sandbox(tmp_path)
    if not is_there:
        shutil.rmtree(tmp_path / "home" / ".claude")
    told = sandbox.run("init", "--vault", str(tmp_path / "Notes")).stderr
    assert "there is no terminal to ask at" in told
    assert ("Claude Code seems not to be installed: ~/.claude is not there; `memory init --host" in told) != is_there


def test_the_chosen_one_of_several_obsidian_vaults_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    context = Context({"HOME": str(home)})
    for folder in ("Notes", "Documents/Work"):
        (home / folder / ".obsidian").mkdir(parents=True)
    vault, said = choose_vault(context)
    assert vault == home / "Obsidian" / VAULT_NAME
    assert said is not None
    assert "\n" not in said
    assert f"{home / 'Documents/Work'}, {home / 'Notes'}" in said
    assert said.endswith(f"--vault {home / 'Documents/Work' / VAULT_NAME}")
    (home / "Notes" / VAULT_NAME).mkdir()
    vault, said = choose_vault(context)
    assert vault == home / "Notes" / VAULT_NAME, "the only one that has a memory already"
    assert said is not None
    (home / "Documents/Work" / VAULT_NAME).mkdir()
    assert choose_vault(context)[0] == home / "Obsidian" / VAULT_NAME


def listed_by_obsidian(home: Path, *vaults: Path, listed_in: str = ".config") -> None:
    """Obsidian's own list, with these vaults, which are there, and one that is gone."""
    for vault in vaults:
        (vault / ".obsidian").mkdir(parents=True, exist_ok=True)
    known = {str(number): {"path": str(vault)} for number, vault in enumerate((home / "gone", *vaults))}
    put(home / listed_in / "obsidian" / "obsidian.json", json.dumps({"vaults": known}))


@pytest.mark.parametrize(
    ("listed", "there", "chosen"),
    [
        ([], "", "Obsidian/MemoryVault"),
        ([], "Notes/.obsidian", "Notes/MemoryVault"),
        (["Obsidian/MemoryVault"], "", "Obsidian/MemoryVault"),
        (["Obsidian/MemoryVault"], "Obsidian/MemoryVault/MemoryVault", "Obsidian/MemoryVault"),
        (["Brain"], "Brain/personal-private", "Brain"),
        (["Notes", "Notes/MemoryVault"], "", "Notes/MemoryVault"),
    ],
    ids=["no vault", "one", "memory itself", "another within by mistake", "of another name", "within listed notes"],
)
def test_where_one_place_is_meant_nothing_is_said(tmp_path: Path, listed: list[str], there: str, chosen: str) -> None:
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    listed_by_obsidian(tmp_path, *(tmp_path / vault for vault in listed))
    assert choose_vault(Context({"HOME": str(tmp_path)})) == (tmp_path / chosen, None)


def test_among_several_vaults_the_memory_is_the_one_that_is_there(tmp_path: Path) -> None:
    own = tmp_path / "disk" / VAULT_NAME
    listed_by_obsidian(tmp_path, tmp_path / "Notes", own)
    vault, said = choose_vault(Context({"HOME": str(tmp_path)}))
    assert vault == own
    assert said is not None
    assert said.endswith(f"--vault {tmp_path / 'Notes' / VAULT_NAME}")


@pytest.mark.parametrize(
    "listed_in",
    [".config", ".var/app/md.obsidian.Obsidian/config", "snap/obsidian/current/.config", "Library/Application Support"],
)
def test_a_vault_is_found_wherever_obsidian_lists_it(tmp_path: Path, listed_in: str) -> None:
    home, work = tmp_path / "home", tmp_path / "disk" / "Work"
    (home / "Notes" / ".obsidian").mkdir(parents=True)
    listed_by_obsidian(home, work, listed_in=listed_in)
    _, said = choose_vault(Context({"HOME": str(home)}))
    assert said is not None
    assert f"there are 2 Obsidian vaults ({work}, " in said


@pytest.mark.parametrize(
    "listed", ["", "[]", '{"vaults": []}', '{"vaults": {"a": 1}}', '{"vaults": {"a": {"path": 1}}}']
)
def test_an_odd_list_of_obsidian_counts_as_none(tmp_path: Path, listed: str) -> None:
    put(tmp_path / ".config" / "obsidian" / "obsidian.json", listed)
    assert choose_vault(Context({"HOME": str(tmp_path)})) == (tmp_path / "Obsidian" / VAULT_NAME, None)


@pytest.mark.parametrize("held", [".obsidian/app.json", "shopping.md", "Journal/2026.md", "_inbox/a.md", "_meta/a.md"])
def test_beside_notes_of_the_user_the_memory_gets_a_folder_of_its_own(tmp_path: Path, held: str) -> None:
    """What lies in the vault is recalled: a diary must not be."""
    put(tmp_path / "Notes" / held, "My doctor is Dr. Klein.")
    vault, said = vault_in(tmp_path / "Notes")
    assert vault == tmp_path / "Notes" / VAULT_NAME
    assert said is not None
    assert str(tmp_path / "Notes") in said


@pytest.mark.parametrize("held", ["", ".DS_Store", ".git/HEAD", SOURCES_NOTE, "personal-private/fix/a.md"])
def test_an_empty_folder_and_a_memory_are_taken_as_they_are(tmp_path: Path, held: str) -> None:
    folder = tmp_path / "Brain"
    put(folder / held) if held else folder.mkdir()
    assert vault_in(folder) == (folder, None)
    assert vault_in(tmp_path / "not there") == (tmp_path / "not there", None)


def test_an_empty_name_is_not_the_current_folder() -> None:
    """That of a variable which is not set."""
    with pytest.raises(ArgumentTypeError, match="empty"):
        folder_named("")


@pytest.mark.parametrize(
    ("statement", "quoted"),
    [
        ("No, never push without asking me first.", "push without asking me first"),
        ("Always ship on Tuesday mornings, not before.", "ship on Tuesday mornings"),
        ('Call it "the vault" in all docs.', "Call it 'the vault' in all docs"),
        ("Yes, run the tests (asked: shall I run all the slow ones too?)", "run the tests"),
        ("Use pnpm.", None),
    ],
)
def test_the_first_question_quotes_the_user_and_puts_no_words_together(statement: str, quoted: str | None) -> None:
    assert question_about(statement) == (f'what did I say about "{quoted}"?' if quoted else None)


RULES: dict[str, tuple[str, dict[str, object]]] = {
    "preferences/push.md": ("No, never push without asking me first.", {"confidence": "MEDIUM", "occurrences": 2}),
    "preferences/newest.md": ("Write the notes in plain English.", {"confidence": "MEDIUM", "created": "2026-06-20"}),
    "preferences/terse.md": ("Use pnpm.", {"confidence": "HIGH", "occurrences": 9}),
}


def ask_first(bed: Bed, rules: Mapping[str, tuple[str, dict[str, object]]]) -> FirstRecall:
    for path, (statement, fields) in rules.items():
        evidence = {"created": "2026-06-01", "source": [{"session": "s1"}], **fields}
        bed.note(f"personal-private/{path}", f"# Rule\n\n{statement}", **evidence)
    reconcile_now(bed.settings)
    recalled = first_recall(bed.settings)
    assert recalled is not None
    return recalled


def test_the_first_question_asks_for_what_was_said_most_surely_and_most_often(bed: Bed) -> None:
    assert ask_first(bed, RULES).note == "personal-private/preferences/push.md"
    rule = "Always ship on Tuesday mornings."
    recalled = ask_first(bed, {"preferences/old.md": (rule, {"confidence": "HIGH", "created": "2026-05-01"})})
    assert recalled.question == 'what did I say about "ship on Tuesday mornings"?'


@pytest.mark.parametrize(("like_it", "comes_back"), [(1, True), (4, False)])
def test_the_first_answer_is_the_note_that_was_meant_and_no_other(
    bed: Bed, capsys: pytest.CaptureFixture[str], like_it: int, comes_back: bool
) -> None:
    for number in range(like_it):  # What the user wrote by hand, and more like the question than the rule is.
        bed.note(f"like-{number}.md", "# Push without asking me first\n\nWhat did I say? Push without asking me first.")
    recalled = ask_first(bed, {"preferences/push.md": RULES["preferences/push.md"]})
    assert recalled.hits[0].path.startswith("like-")
    show_first_recall(recalled)
    shown = capsys.readouterr().out
    meant = "personal-private/preferences/push.md"
    assert (f"  | {meant}" in shown) is comes_back
    assert (f"{meant} should have been recalled, but was not" in shown) is not comes_back
    assert "like-" not in shown


def test_a_folder_that_can_not_be_read_hides_no_other_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by hand: the tests may run as root, who can read every folder."""
    home = tmp_path / "home"
    for folder in ("Closed", "Notes/.obsidian", "Documents"):
        (home / folder).mkdir(parents=True)
    stat, scandir, listdir = os.stat, os.scandir, os.listdir

    def refuse(path: Any) -> Any:
        if isinstance(path, str | Path) and str(path).startswith((str(home / "Closed") + "/", str(home / "Documents"))):
            raise PermissionError(13, "Permission denied", str(path))
        return path

    monkeypatch.setattr(os, "stat", lambda path, *args, **named: stat(refuse(path), *args, **named))
    monkeypatch.setattr(os, "scandir", lambda path=".": scandir(refuse(path)))
    monkeypatch.setattr(os, "listdir", lambda path=".": listdir(refuse(path)))
    context = Context({"HOME": str(home)})
    assert choose_vault(context) == (home / "Notes" / VAULT_NAME, None)


def lines_for_the_hand(sandbox: ForkedSandbox, host: str, folder: Path, first: str) -> str:
    """What init prints, from `first`, where it may not write into an agent's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    done = memory_with_readonly(folder, sandbox.environment, "init", "--yes", "--host", host)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("put the lines that are printed above into it by hand")
    return done.stdout[done.stdout.index(first) :].removesuffix("\n")


def test_a_read_only_folder_of_a_plugin_gets_the_plugin_to_put_there_by_hand(sandbox: ForkedSandbox) -> None:
    folder = sandbox.root / "home" / ".config" / "opencode"
    lines = lines_for_the_hand(sandbox, "opencode", folder, "//")
    put(folder / PLUGIN_FILE, lines)
    assert set(wired_events("opencode", load_settings(sandbox.environment))) >= {"SessionStart", "UserPromptSubmit"}


def test_a_settings_file_that_is_read_only_gets_the_lines_to_add_by_hand(sandbox: ForkedSandbox) -> None:
    folder = sandbox.root / "home" / ".claude"
    (folder / "settings.json").write_text("{}\n")
    lines = lines_for_the_hand(sandbox, "claude", folder, "{\n")
    assert set(json.loads(lines)["hooks"]) >= {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}


def test_a_settings_file_that_is_read_only_in_a_writable_folder_is_not_replaced(
    sandbox: ForkedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write each file, so the system's answer is stood in for."""
    file = sandbox.root / "home" / ".claude" / "settings.json"
    file.write_text("{}\n")
    monkeypatch.setattr("memoryvault.hooks.install.os.access", lambda path, *_, **__: str(path) != str(file))
    with pytest.raises(HostFileUnwritable) as told:
        install_for("claude", load_settings(sandbox.environment))
    assert "is read-only" in str(told.value)
    assert file.read_text() == "{}\n"


@pytest.mark.parametrize("off", ["MEMORY_ENABLED", "MEMORY_DISABLE_AUTO_MEMORY"])
def test_a_switch_takes_out_and_brings_back_the_skill_of_every_host(sandbox: ForkedSandbox, off: str) -> None:
    """What is done is announced."""
    folders = [sandbox.root / "home" / host / "skills" / "memory" for host in (".claude", ".codex", ".copilot")]
    sandbox.run("init", "--yes", "--host", "claude", "--host", "codex")
    for is_on, there, announced in ((False, [], 2), (False, [], 0), (True, folders[:2], 2)):
        value = is_on if off == "MEMORY_ENABLED" else not is_on
        said = sandbox.run("init", "--yes", env={off: str(value).lower()}).stderr
        assert [folder for folder in folders if folder.exists()] == there
        assert said.count("the skill `memory` ") == announced


@pytest.mark.parametrize("outside", [False, True])
def test_no_empty_extension_stays(sandbox: ForkedSandbox, tmp_path: Path, outside: bool) -> None:
    """Of what was taken out by hand, or lies outside the home."""
    home = tmp_path / "elsewhere" if outside else sandbox.root / "home" / ".gemini"
    put(home / "settings.json", "{}")
    env = {"MEMORY_HOSTS_GEMINI_HOME": str(home)}
    sandbox.run("init", "--yes", "--host", "gemini", env=env)
    assert (home / "extensions/memoryvault/skills").is_dir()
    if not outside:
        (home / "extensions/memoryvault/hooks/hooks.json").unlink()
    sandbox.run("uninstall", env=env)
    assert not (home / "extensions/memoryvault").exists()
