"""The only writer of the vault's files, and what it finds among them."""

import os
import stat
from datetime import date
from pathlib import Path

import frontmatter
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryvault.runtime.errors import (
    BoundaryRefused,
    EditConflict,
    EntryExists,
    EntryInvalid,
    EntryNotFound,
    MemoryVaultError,
    PathRefused,
    VaultUnavailable,
)
from memoryvault.services.entry_names import find_by_fingerprint
from memoryvault.tests.support.files import put, put_note
from memoryvault.vault import store as store_module
from memoryvault.vault.boundary import Approval, Consent
from memoryvault.vault.entry import Entry, content_hash, fingerprint, parse_entry
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import MAX_ENTRY_BYTES, VaultStore

PATH = "personal-private/preferences/smoke.md"
TODAY = date(2026, 7, 1)


def files(vault: Path) -> list[str]:
    return sorted(str(path.relative_to(vault)) for path in vault.rglob("*") if path.is_file())


def test_a_saved_entry_is_these_bytes(store: VaultStore, vault: Path) -> None:
    entry = store.create(
        PATH,
        {"kind": "preferences", "group": "personal-private", "tags": ["smoke", "test"]},
        None,
        Scrubbed("Test entry body.\r\n\n\n"),
    )
    assert (vault / PATH).read_bytes() == (
        b"---\nkind: preferences\nstatus: active\ncreated: 2026-07-01\nupdated: 2026-07-01\n"
        b"tags: [smoke, test]\ngroup: personal-private\nslug: smoke\nalways_load: false\n---\n\n"
        b"Test entry body.\n"
    )
    assert entry == store.read(PATH)
    assert entry.content_hash == content_hash((vault / PATH).read_bytes())
    assert files(vault) == [PATH]
    unset = {"always_load": None, "slug": None, "status": None}
    store.create("m/index.md", unset, Scrubbed("Two\nlines"), Scrubbed("\n\nx"))
    days = b"created: 2026-07-01\nupdated: 2026-07-01\n"
    assert store.read_bytes("m/index.md") == b"---\n" + days + b"---\n\n# Two lines\n\nx\n"


def test_an_existing_entry_is_never_overwritten(store: VaultStore, vault: Path) -> None:
    store.create(PATH, {"kind": "fix"}, None, Scrubbed("first"))
    before = (vault / PATH).read_bytes()
    with pytest.raises(EntryExists, match="already"):
        store.create(PATH, {"kind": "fix"}, None, Scrubbed("second"))
    assert (vault / PATH).read_bytes() == before
    assert files(vault) == [PATH]


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "Bad_Kind"},
        {"kind": "fix", "status": "odd"},
        {"kind": "fix", "group": "a/b/c"},
        {"kind": "fix", "tags": ["ok", "Not Ok"]},
        {"kind": "fix", "occurrences": 0},
        {"kind": "fix", "project": "two\nlines"},
    ],
)
def test_wrong_fields_are_refused_and_nothing_written(store: VaultStore, vault: Path, fields: dict[str, str]) -> None:
    with pytest.raises(EntryInvalid):
        store.create(PATH, fields, None, Scrubbed("x"))
    assert files(vault) == []


def test_text_that_was_not_scrubbed_is_a_bug(store: VaultStore, vault: Path) -> None:
    with pytest.raises(TypeError, match="Scrubbed"):
        store.create(PATH, {"kind": "fix"}, None, "raw")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Scrubbed"):
        store.create(PATH, {"kind": "fix"}, "raw", Scrubbed("x"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="superseded_reason"):
        store.create(PATH, {"kind": "fix", "superseded_reason": "raw words"}, None, Scrubbed("x"))
    with pytest.raises(TypeError, match="aliases"):
        store.create(PATH, {"kind": "fix", "aliases": ["raw words"]}, None, Scrubbed("x"))
    assert files(vault) == []
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    with pytest.raises(TypeError):
        store.update(PATH, entry.content_hash, body="raw")  # type: ignore[arg-type]


def test_an_update_changes_its_lines_and_the_date_only(store: VaultStore, vault: Path) -> None:
    (vault / "a").mkdir()
    text = "---\n# mine\nkind: 'fix'\nstatus: active # yes\nupdated: 2020-01-01\nmood:   good\n---\nBody  \n\n\n"
    (vault / "a" / "n.md").write_text(text)
    entry = store.read("a/n.md")
    changed = store.update("a/n.md", entry.content_hash, fields={"status": "resolved", "project": "app"})
    assert (vault / "a" / "n.md").read_text() == text.replace("active # yes", "resolved # yes").replace(
        "2020-01-01", "2026-07-01\nproject: app"
    )
    assert (changed.status, changed.project, changed.updated) == ("resolved", "app", "2026-07-01")


def test_an_update_that_changes_nothing_writes_nothing(store: VaultStore, vault: Path) -> None:
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    os.utime(vault / PATH, (1000, 1000))
    later = VaultStore(vault, vault.parent / "state" / "vault.lock", lambda: date(2030, 1, 1))
    assert later.update(PATH, entry.content_hash, fields={"kind": "fix"}, body=Scrubbed("x\n")) == entry
    assert (vault / PATH).stat().st_mtime == 1000


def test_a_new_body_keeps_the_header_and_the_files_mode(store: VaultStore, vault: Path) -> None:
    entry = store.create(PATH, {"kind": "fix", "updated": "2020-01-01"}, None, Scrubbed("old"))
    (vault / PATH).chmod(0o640)
    store.update(PATH, entry.content_hash, body=Scrubbed("# New\n\nbody\n\n"))
    text = (vault / PATH).read_text()
    assert text.endswith("---\n\n# New\n\nbody\n")
    assert "updated: 2026-07-01\n" in text
    assert stat.S_IMODE((vault / PATH).stat().st_mode) == 0o640


def test_a_humans_edit_in_between_is_never_overwritten(store: VaultStore, vault: Path) -> None:
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    (vault / PATH).write_text("the human's words")
    for attempt in (
        lambda: store.update(PATH, entry.content_hash, fields={"status": "resolved"}),
        lambda: store.remove(PATH, entry.content_hash),
        lambda: store.write_text(PATH, Scrubbed("y"), entry.content_hash),
    ):
        with pytest.raises(EditConflict, match="read it again"):
            attempt()
    assert (vault / PATH).read_text() == "the human's words"
    assert files(vault) == [PATH]


@pytest.mark.parametrize("was_there", [True, False])
def test_what_a_human_writes_while_the_new_file_is_being_written_stays(
    store: VaultStore, vault: Path, monkeypatch: pytest.MonkeyPatch, was_there: bool
) -> None:
    seen = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x")).content_hash if was_there else ""
    sync = os.fsync

    def write_and_sync(descriptor: int) -> None:
        (vault / PATH).write_text("the human's words")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", write_and_sync)
    if was_there:
        with pytest.raises(EditConflict):
            store.update(PATH, seen, fields={"status": "resolved"})
    else:
        with pytest.raises(EntryExists):
            store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    assert (vault / PATH).read_text() == "the human's words"
    assert files(vault) == [PATH]


def test_a_generated_note_is_written_only_when_it_changed(store: VaultStore, vault: Path) -> None:
    path = "_meta/dashboard.md"
    store.write_text(path, Scrubbed("# D\n"), None)
    seen = store.read(path).content_hash
    os.utime(vault / path, (1000, 1000))
    store.write_text(path, Scrubbed("# D\n"), seen)
    assert (vault / path).stat().st_mtime == 1000
    store.write_text(path, Scrubbed("# E\n"), seen)
    with pytest.raises(EntryExists):
        store.write_text(path, Scrubbed("# F\n"), None)


def test_ideas_beside_the_vault_are_read_and_written_with_the_same_care(store: VaultStore, tmp_path: Path) -> None:
    ideas = tmp_path / "Ideas.md"
    approved = Approval(ideas, Consent.REQUESTED)
    assert store.read_outside(ideas) is None
    store.write_outside(ideas, Scrubbed("# Ideas\r\n"), None, approved)
    text, digest = store.read_outside(ideas) or ("", "")
    assert text == "# Ideas\r\n"
    ideas.write_text("# Mine\n")
    with pytest.raises(EditConflict):
        store.write_outside(ideas, Scrubbed("# Ideas\n"), digest, approved)
    with pytest.raises(EntryExists):
        store.write_outside(ideas, Scrubbed("# Ideas\n"), None, approved)
    with pytest.raises(TypeError):
        store.write_outside(ideas, "raw", None, approved)  # type: ignore[arg-type]  # unscrubbed on purpose
    for bad in (Path("Ideas.md"), tmp_path / "script.sh"):
        with pytest.raises(PathRefused):
            store.write_outside(bad, Scrubbed("x"), None, Approval(bad, Consent.REQUESTED))
    absent = tmp_path / "absent" / "Ideas.md"
    with pytest.raises(VaultUnavailable):
        store.write_outside(absent, Scrubbed("x"), None, Approval(absent, Consent.REQUESTED))
    assert ideas.read_text() == "# Mine\n"


def test_nothing_outside_is_written_without_an_approval_of_that_very_file(store: VaultStore, tmp_path: Path) -> None:
    ideas = tmp_path / "Ideas.md"
    for approval in (None, Approval(tmp_path / "Other.md", Consent.CONFIRMED)):
        with pytest.raises(BoundaryRefused):
            store.write_outside(ideas, Scrubbed("x"), None, approval)
    assert not ideas.exists()


def folders(vault: Path) -> list[str]:
    return sorted(str(path.relative_to(vault)) for path in vault.rglob("*") if path.is_dir())


def test_a_folder_that_is_empty_goes_with_what_was_taken_out_of_it(store: VaultStore, vault: Path) -> None:
    fields = {"kind": "idea"}
    for slug in ("one", "two"):
        store.create(f"personal-private/_idea-incubator/{slug}/_index.md", fields, None, Scrubbed("Text."))
    (vault / "personal-private/_idea-incubator/two/sketch.png").write_bytes(b"the user's own")
    for slug in ("one", "two"):
        path = f"personal-private/_idea-incubator/{slug}/_index.md"
        store.remove(path, store.read(path).content_hash)
    assert folders(vault) == [
        "personal-private", "personal-private/_idea-incubator", "personal-private/_idea-incubator/two"
    ]  # fmt: skip
    (vault / "personal-private/_idea-incubator/two/sketch.png").unlink()
    store.create("personal-private/_idea-incubator/two/_index.md", fields, None, Scrubbed("Text."))
    store.move_folder("personal-private/_idea-incubator/two", "personal-private/_archive/two")
    assert folders(vault) == ["personal-private", "personal-private/_archive", "personal-private/_archive/two"]
    store.create("personal-private/two.md", fields, None, Scrubbed("Text."))
    store.remove("personal-private/_archive/two/_index.md", None)
    assert folders(vault) == ["personal-private"]
    store.remove("personal-private/two.md", None)
    assert folders(vault) == ["personal-private"], "a group stays"


def test_a_folder_moves_whole_and_never_onto_another(store: VaultStore, vault: Path, tmp_path: Path) -> None:
    (vault / "a/one").mkdir(parents=True)
    (vault / "a/one/sketch.png").write_bytes(b"\x89PNG")
    (vault / "a/two").mkdir()
    (vault / "a/two/note.md").write_text("two")
    with pytest.raises(EntryExists):
        store.move_folder("a/one", "a/two")
    with pytest.raises(EntryNotFound):
        store.move_folder("a/none", "b/none")
    (vault / "a/link").symlink_to(vault / "a/two")
    for source, target in (("a/one", "../out"), ("a/link", "b/link")):
        with pytest.raises(PathRefused):
            store.move_folder(source, target)
    store.move_folder("a/one", "b/c/one")
    assert (vault / "b/c/one/sketch.png").read_bytes() == b"\x89PNG"
    assert not (vault / "a/one").exists()


def test_the_trash_is_not_walked_and_only_the_trash_is_purged(store: VaultStore, vault: Path) -> None:
    (vault / "x/_trash/old").mkdir(parents=True)
    (vault / "x/_trash/old/_index.md").write_text("gone")
    (vault / "x/kept").mkdir()
    assert list(store.walk()) == []
    for other in ("x/kept", "x/_trash", "x"):
        with pytest.raises(PathRefused):
            store.purge(other)
    store.purge("x/_trash/old")
    store.purge("x/_trash/old")
    assert not (vault / "x/_trash/old").exists()
    assert (vault / "x/kept").exists()


# Boundary


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "../outside.md",
        "a/../b.md",
        "/etc/passwd.md",
        "~/x.md",
        "a//b.md",
        "./a.md",
        "a/line\n.md",
        "a/" + "x" * 300 + ".md",
        "/".join(["d" * 100] * 12) + "/a.md",
        "a",
        "a/.hidden.md",
        "a/ b.md",
        "a./b.md",
        'a/"b".md',
        "a\\b.md",
        "a/\ud800.md",
    ],
)
def test_a_path_that_is_no_name_in_the_vault_is_refused(store: VaultStore, vault: Path, bad: str) -> None:
    with pytest.raises(PathRefused) as caught:
        store.create(bad, {"kind": "fix"}, None, Scrubbed("x"))
    assert "\n" not in str(caught.value)
    assert files(vault.parent) == []


@pytest.mark.parametrize("bad", ["../x.md", "/etc/passwd", "a/\0.md", "", f"x/{'a' * 300}.md", "a/" * 3_000 + "x.md"])
def test_reading_does_not_leave_the_vault_either(store: VaultStore, bad: str) -> None:
    for attempt in (store.read, store.exists, lambda path: store.remove(path, None)):
        with pytest.raises(PathRefused):
            attempt(bad)


def test_symbolic_links_that_leave_the_vault_are_refused(store: VaultStore, vault: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside / "secret.md", "secret")
    (vault / "folder").symlink_to(outside)
    (vault / "file.md").symlink_to(outside / "secret.md")
    (vault / "loop").symlink_to("loop")
    with pytest.raises(PathRefused, match="leaves the vault"):
        store.read("folder/secret.md")
    for attempt in (
        lambda: store.read("file.md"),
        lambda: store.create("folder/new.md", {"kind": "fix"}, None, Scrubbed("x")),
        lambda: store.remove("file.md", None),
    ):
        with pytest.raises(PathRefused):
            attempt()
    with pytest.raises(MemoryVaultError):
        store.create("loop/new.md", {"kind": "fix"}, None, Scrubbed("x"))
    assert list(store.walk()) == []
    assert files(outside) == ["secret.md"]


def test_many_are_read_as_one_is_but_for_those_outside(store: VaultStore, vault: Path, tmp_path: Path) -> None:
    for path in ("g/a.md", "g/b.md"):
        store.create(path, {"kind": "fix"}, None, Scrubbed(path))
    outside = tmp_path / "outside"
    put(outside / "secret.md", "secret")
    (vault / "away").symlink_to(outside)
    (vault / "g/away.md").symlink_to(outside / "secret.md")
    (vault / "g/alias.md").symlink_to("b.md")
    (vault / "same").symlink_to("g")
    refused = ["away/secret.md", "g/away.md", "g/..", "g/../../outside/secret.md", "g/\0.md", "/etc/passwd", "g/", ""]
    read = {"g/a.md": "g/a.md", "g/alias.md": "g/b.md", "same/a.md": "g/a.md"}
    asked = [*refused, *read, *refused, "g/gone.md"]
    assert {entry.path: entry.body for entry in store.readable(asked)} == read


def test_a_link_inside_the_vault_is_followed_and_walked_once(store: VaultStore, vault: Path) -> None:
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    (vault / "alias.md").symlink_to(vault / PATH)
    assert store.read("alias.md").body == "x"
    store.update("alias.md", entry.content_hash, fields={"status": "resolved"})
    assert (vault / "alias.md").is_symlink()
    assert store.read(PATH).status == "resolved"
    assert list(store.walk()) == [PATH]


def test_a_dangling_link_is_not_written_through(store: VaultStore, vault: Path) -> None:
    (vault / "a.md").symlink_to(vault / "b.md")
    with pytest.raises(EntryExists):
        store.create("a.md", {"kind": "fix"}, None, Scrubbed("x"))
    assert files(vault) == []


def test_a_vault_that_is_itself_a_link_works(store: VaultStore, vault: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(vault)
    linked = VaultStore(tmp_path / "link", tmp_path / "state" / "vault.lock", lambda: TODAY)
    linked.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    assert list(linked.walk()) == list(store.walk()) == [PATH]


def test_what_is_no_regular_file_is_refused_without_hanging(store: VaultStore, vault: Path) -> None:
    os.mkfifo(vault / "pipe.md")
    (vault / "folder.md").mkdir()
    for name in ("pipe.md", "folder.md"):
        with pytest.raises(EntryInvalid):
            store.read(name)


def test_a_giant_file_is_refused(store: VaultStore, vault: Path) -> None:
    with open(vault / "giant.md", "wb") as file:
        file.truncate(MAX_ENTRY_BYTES + 1)
    with pytest.raises(EntryInvalid, match="larger than 8 MB"):
        store.read("giant.md")


def test_an_absent_entry_is_not_an_absent_vault(store: VaultStore, vault: Path) -> None:
    (vault / "a").write_text("a file")
    with pytest.raises(EntryNotFound):
        store.read("a/b.md")
    with pytest.raises(PathRefused):
        store.create("a/b.md", {"kind": "fix"}, None, Scrubbed("x"))


@pytest.mark.parametrize("what", ["absent", "file"])
def test_a_vault_that_is_not_there_is_said_and_never_created(tmp_path: Path, what: str) -> None:
    vault = tmp_path / "MemoryVault"
    if what == "file":
        vault.write_text("")
    store = VaultStore(vault, tmp_path / "lock" / "l", lambda: TODAY)

    for attempt in (
        lambda: store.create(PATH, {"kind": "fix"}, None, Scrubbed("x")),
        lambda: store.update(PATH, "0" * 64, fields={"kind": "fix"}),
        lambda: store.read(PATH),
        store.walk,
    ):
        with pytest.raises(VaultUnavailable, match=r"memory init --vault FOLDER"):
            attempt()
    assert vault.is_dir() is False


@settings(max_examples=60, deadline=None)
@given(
    title=st.none() | st.text(max_size=40),
    body=st.text(max_size=200),
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
)
def test_text_is_read_back(tmp_path_factory: pytest.TempPathFactory, title: str | None, body: str, reason: str) -> None:
    root = tmp_path_factory.mktemp("vault")
    store = VaultStore(root, root / ".state" / "l", lambda: TODAY)
    entry = store.create(
        PATH,
        {"kind": "fix", "superseded_reason": Scrubbed(reason)},
        None if title is None else Scrubbed(title),
        Scrubbed(body),
    )
    data = store.read_bytes(PATH)
    assert b"\r" not in data
    assert data.endswith(b"\n")
    assert not data.endswith(b"\n\n\n")
    assert frontmatter.loads(data.decode())["kind"] == "fix"
    assert entry.superseded_reason == (reason.strip() or None) or reason.strip()[:4].isdigit()
    again = store.update(PATH, entry.content_hash, fields={"status": "resolved"})
    assert again.body == entry.body


# Finding what is remembered already


ONE = fingerprint("one")


def save(store: VaultStore, path: str, mark: str, status: str = "active") -> None:
    store.create(path, {"kind": "fix", "status": status, "fingerprint": mark}, None, Scrubbed("Body."))


def test_the_digits_in_a_body_are_not_a_fingerprint(store: VaultStore) -> None:
    store.create("personal-private/fix/quote.md", {"kind": "fix"}, None, Scrubbed(f"fingerprint: {ONE}"))
    assert find_by_fingerprint(store, ONE) == []


def test_a_broken_file_does_not_end_the_search(store: VaultStore) -> None:
    save(store, "personal-private/fix/good.md", ONE)
    (store.vault / "personal-private" / "fix" / "bad.md").write_bytes(b"---\n\xff: [\n" + ONE.encode() + b"\n---\n")
    assert [entry.slug for entry in find_by_fingerprint(store, ONE)] == ["good"]


def test_thousands_of_files_are_skimmed_and_not_parsed(store: VaultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        put_note(store.vault, f"personal-private/fix/n{number}.md", fingerprint=fingerprint(str(number)))
    parsed: list[str] = []

    def parse_and_note(path: str, data: bytes) -> Entry:
        parsed.append(path)
        return parse_entry(path, data)

    monkeypatch.setattr(store_module, "parse_entry", parse_and_note)
    assert len(find_by_fingerprint(store, fingerprint("17"))) == 1
    assert parsed == ["personal-private/fix/n17.md"]
