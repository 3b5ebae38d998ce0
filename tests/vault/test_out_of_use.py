"""Notes that are no memories whatever their header says, and headers of which a part can't be read: one reading."""

import os
import threading
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from memoryvault.hooks.entryfile import EntryFile
from memoryvault.runtime import paths
from memoryvault.runtime.layout import is_conflict_copy
from memoryvault.runtime.paths import SF_DATALESS, is_downloaded
from memoryvault.tests.support.files import put
from memoryvault.tests.support.growth import assert_linear
from memoryvault.vault import listing
from memoryvault.vault.entry import parse_entry
from memoryvault.vault.frontmatter import find_fault
from memoryvault.vault.header import conflict_line
from memoryvault.vault.listing import list_left_out, list_notes
from memoryvault.vault.store import VaultStore

MERGE = "<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> origin/main\n"


def read(text: str, path: str = "personal-private/fix/a.md") -> str:
    """Its status to service and list, which is the same to a hook."""
    entry = parse_entry(path, text.encode())
    assert EntryFile(path, text).status == entry.effective_status
    return entry.effective_status


@pytest.mark.parametrize(
    "text",
    [
        f"---\nstatus: active\n{MERGE.format('tags: [a]', 'tags: [b]')}---\n\nText.\n",
        f"---\n{MERGE.format('status: dismissed', 'status: active')}---\n\nText.\n",
        f"---\nstatus: active\n---\n\n{MERGE.format('Deploy on Mondays.', 'Deploy on Fridays.')}",
        f"{MERGE.format('Deploy on Mondays.', 'Deploy on Fridays.')}",
        MERGE.format("---\nstatus: active\n---\nOne.", "---\nstatus: active\n---\nTwo."),
        f"---\nstatus: active\n---\n\n{MERGE.format('a', 'b')}".replace("\n", "\r\n"),
        "---\nstatus: active\ntags: [a]\n>>>>>>> origin/main\n---\n\nText.\n",
        "---\nstatus: active\n---\n\n<<<<<<< HEAD\na\n||||||| base\nb\n=======\nc\n>>>>>>> topic\n",
        "---\nstatus: active\n---\n\n<<<<<<< HEAD\nDeploy on Mondays.\n",
        "---\nstatus: active\n---\n\nDeploy on Mondays.\n=======\nDeploy on Fridays.\n>>>>>>> origin/main\n",
        f"---\nstatus: active\n---\n\n{MERGE.format('```sh', '```py')}make\n```\n",
        "---\nstatus: active\n---\n\n```sh\n<<<<<<< HEAD\na\n```\n=======\nb\n```\n>>>>>>> topic\n",
        f"---\nstatus: active\n---\n\n```sh\nmake\n\n{MERGE.format('a', 'b')}\nText.\n",
        f"---\ntext: |\n  ```\n{MERGE.format('status: active', 'status: active')}  ```\n---\n\nText.\n",
    ],
)
def test_a_note_in_which_git_left_both_sides_is_not_in_use(text: str) -> None:
    assert read(text) == "conflict"


@pytest.mark.parametrize(
    "body",
    [
        "Title\n=======\n\nText.", "In a merge `<<<<<<< HEAD` begins our side.", "    <<<<<<< HEAD\n    >>>>>>> x",
        "<<<<<<<x\n>>>>>>>y", ">>>>>>> quoted seven times",
        f"Git leaves this:\n\n```\n{MERGE.format('a', 'b')}```\n\nTitle\n=======\n\nKeep one half.",
        f"- so:\n  ~~~~text\n{MERGE.format('a', 'b')}~~~~\n",
        f"```\n{MERGE.format('a', 'b')}```\n\n```\n{MERGE.format('a', 'b')}```".replace("\n", "\r\n"),
        "Use `{{title}}` in the page.", "```erb\n<% if x %>\n```", "Write ${{ secrets.TOKEN }}.",
        "{{ user.name }} in Jinja", "{{dateline}}", "a <% b",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_conflict_or_a_template_is_in_use(body: str) -> None:
    assert read(f"---\nstatus: active\n---\n\n{body}\n") == "active"


def test_lines_of_fenced_code_are_numbered_in_linear_time() -> None:
    code = "```\na\n```\n"
    assert conflict_line(code * 1000 + "<<<<<<< a\n") == 3001
    assert_linear(lambda count: partial(conflict_line, code * count + "<<<<<<< a\n"), 40_000)


@pytest.mark.parametrize("status", ["dismissed", "rejected", "active", "pending"])
@pytest.mark.parametrize(
    "broken", ["title: Deploys: the short way", 'title: "unclosed', "tags: [a", "no field", "\ttab: x"]
)
def test_a_status_counts_though_another_line_is_broken(status: str, broken: str) -> None:
    for header in (f"{broken}\nstatus: {status}\n", f"status: {status}\n{broken}\n"):
        assert read(f"---\n{header}---\n\nText.\n") == status


@pytest.mark.parametrize(
    "header", ["status: |\n  dismissed\ntitle: a: b", 'status: "archived\ntags: [a]', "kind: fix\nstatus:dismissed"]
)
def test_a_status_that_cannot_be_read_does_not_count_as_active(header: str) -> None:
    text = f"---\n{header}\n---\n\nText.\n"
    assert read(text) == "unreadable"
    assert find_fault(text) is not None


@pytest.mark.parametrize(
    "header",
    [
        "kind: fix\n{status: dismissed}",
        "# mine\n  {kind: fix, status: dismissed}",
        '{\n"kind": "fix",\n"status": "dismissed",\n"tags": []\n}',
    ],
)
def test_a_status_in_braces_is_read_by_nobody_as_active(header: str) -> None:
    text = f"---\n{header}\n---\n\nText.\n"
    assert not EntryFile("a.md", text).is_in_use
    assert parse_entry("a.md", text.encode()).status in ("dismissed", "unreadable")


@pytest.mark.parametrize("text", ["---\nkind: fix\nstatus: dismissed\n\nText.\n", "---\nstatus: active\nText."])
def test_a_note_whose_header_is_not_closed_is_not_in_use(text: str) -> None:
    assert read(text) == "unreadable"
    assert find_fault(text) == (1, "---")


@pytest.mark.parametrize(
    "header",
    [
        "Status: dismissed", "STATUS: Dismissed", "\u200bstatus: dismissed", " status: dismissed\ntags: [a]",
        "\tstatus: dismissed", "status: dismissed\nstatus: active", "status: active\nStatus: dismissed",
        "title: a\n  status: dismissed", 'status: "dismissed" # by me', "status: 'dismissed' # a # b",
        "status: dismissed\ntitle: '" + " #a" * 1000,
    ],
)  # fmt: skip
def test_a_status_counts_however_it_is_written(header: str) -> None:
    assert read(f"---\nkind: fix\n{header}\n---\n\nText.\n") == "dismissed"
    assert read(f"---\n{header}\n---\n\nText.\n") == "dismissed"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("dismised", "dismissed"), ("Dismissd", "dismissed"), ("dissmisssed", "dismissed"), ("archvied", "archived"),
        ("archievd", "archived"), ("archive", "archived"), ("supersceded", "superseded"), ("superceeded", "superseded"),
        ("rejectd", "rejected"), ("reject", "rejected"), ("resloved", "resolved"), ("pendng", "pending"),
        ("incubatign", "incubating"), ("inbx", "inbx"), ("actve", "active"), ("aproved", "active"),
    ],
)  # fmt: skip
def test_a_misspelt_status_is_taken_as_it_is_meant(written: str, meant: str) -> None:
    for header in (f"status: {written}", f"status: [{written}]", f"status:\n- active\n- {written}"):
        entry = parse_entry("a.md", f"---\n{header}\n---\n\nText.\n".encode())
        assert entry.effective_status == ("active" if meant == "inbx" else meant)
        assert EntryFile("a.md", entry.text).is_in_use is (entry.effective_status == "active")


@pytest.mark.parametrize(
    "status",
    [
        "current", "done", "published", "draft", "inactive", "reviewed", "reserved", "released", "discussed",
        "achieved", "arrived", "solved", "reflected", "index", "ending", "sending", "open", "closed",
    ],
)  # fmt: skip
def test_a_word_of_the_users_own_is_left_to_them(status: str) -> None:
    assert parse_entry("a.md", f"---\nstatus: {status}\n---\n\nText.\n".encode()).status == status
    assert EntryFile("a.md", f"---\nstatus: {status}\n---\n\nText.\n").is_in_use


@pytest.mark.parametrize(
    "line", ["status = dismissed", "status\uff1adismissed", "status dismissed", "Status; archived"]
)
def test_a_line_that_begins_as_a_status_and_is_none_does_not_count_as_active(line: str) -> None:
    text = f"---\nkind: fix\n{line}\n---\n\nText.\n"
    assert read(text) == "unreadable"
    assert find_fault(text) == (3, line)


@pytest.mark.parametrize(
    "header",
    [
        "meta:\n  status: dismissed", "meta:\n  a: b\n  status: dismissed", "text: |\n  a\n  status: dismissed",
        "meta: {a: b,\n  status: dismissed}", 'text: "a\n  status: dismissed"', "status-page: dismissed",
        "# status: dismissed", "a: b\n  status of things", "state: dismissed",
    ],
)  # fmt: skip
def test_a_status_within_another_field_is_not_the_notes(header: str) -> None:
    assert read(f"---\n{header}\n---\n\nText.\n") == "active"


@pytest.mark.parametrize(
    "text",
    [
        "kind: fix\nstatus: dismissed\n---\n\nText.\n",
        "\u2014-\nkind: fix\nstatus: dismissed\n\u2014-\n\nText.\n",
        "--\nstatus: Archived\n--\nText.\n",
        "# Title\n\n---\nkind: fix\nstatus: dismissed\n---\n\nText.\n",
        "---\rstatus: dismissed\r---\rText.\r",
        "+++\nstatus: dismissed\n+++\r\n\r\nText.\n",
    ],
)
def test_a_note_whose_header_does_not_open_is_not_in_use_if_that_says_so(text: str) -> None:
    assert read(text) == "unreadable"
    assert find_fault(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "status: we ship on Fridays\n", "Ticket: 7\nStatus: Resolved\n",
        "Text.\n\nstatus: dismissed\n", "```\n---\nstatus: dismissed\n---\n```\n",
        "```yaml\nstatus: dismissed\n```\n", "Text.\n\n---\n\nstatus: dismissed\n",
        "---\nText.\n", "---\n\nstatus: a word of the text\n",
    ],
)  # fmt: skip
def test_words_of_a_text_are_no_status(text: str) -> None:
    assert read(text) == "active"


def test_bytes_that_are_no_text_are_no_memory() -> None:
    for data in ("---\nstatus: active\n---\n\nText.\n".encode("utf-16"), b"---\nstatus: active\n---\n\nTe\0\0\0\0"):
        entry = parse_entry("a.md", data)
        assert entry.status == "unreadable"
        assert find_fault(data.decode("utf-8", "replace")) is not None


@pytest.mark.parametrize(
    "text",
    [
        "---\ncreated: {{date:YYYY-MM-DD}}\n---\n\nAlways write the ledger report as {{value}}.\n",
        "---\nkind: fix\n---\n\n# {{title}}\n\nWritten on {{date}} at {{time:HH:mm}}.\n",
        "---\nkind: fix\n---\n\n# <% tp.file.title %>\n",
        '---\ncreated: <% tp.date.now("YYYY") %>\n---\n\nText.\n',
        "Meeting with {{VALUE:who}} on {{VDATE:day,YYYY}}\n",
        "From {{linkcurrent}}: {{CLIPBOARD}}\n",
    ],
)
def test_what_obsidian_fills_in_is_a_template(text: str) -> None:
    assert read(text) == "template"


@pytest.mark.parametrize(
    "folder",
    [
        "Templates", "personal-private/Templates", "Templates/weekly", "templates", "_templates", "Template",
        "99 - Templates",
    ],
)  # fmt: skip
def test_nothing_in_templates_is_a_memory(folder: str) -> None:
    assert read("---\nstatus: active\n---\n\nText.\n", f"{folder}/a.md") == "template"
    assert read("---\nkind: templates\n---\n\nText.\n", "personal-private/templates/a.md") == "active", "a kind"


@pytest.mark.parametrize(
    ("file", "settings", "left"),
    [
        ("templates.json", '{"folder": "Memory/Vorlagen"}', ["a.md"]),
        ("plugins/templater-obsidian/data.json", '{"templates_folder": "/Memory/Vorlagen/"}', ["a.md"]),
        ("templates.json", '{"folder": "Memory"}', ["Vorlagen/Woche/t.md", "a.md"]),
        ("templates.json", '{"folder": "Vorlagen"}', ["Vorlagen/Woche/t.md", "a.md"]),
        ("templates.json", "[1", ["Vorlagen/Woche/t.md", "a.md"]),
    ],
)
def test_nothing_in_obsidians_templates_is_a_memory(tmp_path: Path, file: str, settings: str, left: list[str]) -> None:
    vault = tmp_path / "Memory"
    put(tmp_path / ".obsidian" / file, settings)
    put(vault / "a.md")
    put(vault / "Vorlagen/Woche/t.md")
    assert sorted(list_notes(vault).notes) == sorted(VaultStore(vault, tmp_path / "lock", date.today).walk()) == left


def test_a_pipe_in_the_place_of_obsidians_settings_does_not_hang_the_walk(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    os.mkfifo(tmp_path / ".obsidian/templates.json")
    (tmp_path / "a.md").write_text("A")
    found: list[str] = []
    walk = threading.Thread(target=lambda: found.extend(list_notes(tmp_path).notes), daemon=True)
    walk.start()
    walk.join(10)
    assert found == ["a.md"]


def test_the_list_that_obsidian_git_makes_is_no_memory(tmp_path: Path) -> None:
    assert is_conflict_copy("conflict-files-obsidian-git.md")
    put(tmp_path / "conflict-files-obsidian-git.md", "# Conflicts\n\n- a.md\n")
    put(tmp_path / "conflict-files.md")
    assert [*list_notes(tmp_path).notes] == ["conflict-files.md"]


# Which files of a vault are notes, found by walking its folders


def test_walking_leaves_out_what_is_not_a_note(store: VaultStore, vault: Path) -> None:
    for name in (
        "b.md",
        "a.md",
        "_inbox/i.md",
        "z/Note with spaces é.md",
        ".obsidian/x.md",
        ".trash/y.md",
        "z/.c.md.icloud",
        "z/n.txt",
        "z/n.sync-conflict-20260701-120000-ABCDEFG.md",
    ):
        put(vault / name)
    os.mkfifo(vault / "pipe.md")
    (vault / "folder.md").mkdir()
    assert list(store.walk()) == ["a.md", "b.md", "_inbox/i.md", "z/Note with spaces é.md"]


def test_one_walk_finds_notes_and_copies_of_a_conflict_even_in_the_trash(store: VaultStore, vault: Path) -> None:
    copy = "a.sync-conflict-20260701-120000-ABCDEFG.md"
    for name in ("a.md", copy, "_trash/old/b.md", f"_trash/old/{copy}", "z/_trash/c.md", f".obsidian/{copy}"):
        put(vault / name)
    (vault / f"z/{copy}").symlink_to(vault / "a.md")
    assert store.list_notes() == (["a.md"], [copy, f"_trash/old/{copy}"])
    assert [*store.walk(put_away=True)] == ["a.md", copy, f"_trash/old/{copy}", "_trash/old/b.md", "z/_trash/c.md"]


def test_of_special_folders_only_the_outermost_counts(store: VaultStore, vault: Path) -> None:
    for name in (
        "_inbox/a.md",
        "g/_inbox/_archive/b.md",
        "g/_archive/_inbox/c.md",
        "g/d.md",
        "g/_inbox/_trash/e.md",
        "_trash/_inbox/f.md",
        ".obsidian/_inbox/g.md",
        "g.md/_inbox/h.md",
    ):
        put(vault / name)
    (vault / "linked").symlink_to(vault / "g")
    assert [*store.walk_special({"_inbox"})] == ["_inbox/a.md", "g/_inbox/_archive/b.md", "g.md/_inbox/h.md"]


def test_what_a_walk_leaves_out_unasked_is_known(vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what nobody misses: dot-folders, the trash, other files, and links to what is walked in its own place."""
    put(vault / "g" / "a.md")
    for folder in (vault / "g" / "_trash", tmp_path / "away"):
        folder.mkdir()
    for name, target in (
        ("g/disk", tmp_path / "away"),
        ("g/lost.md", tmp_path / "nothing"),
        ("g/_trash/old", tmp_path / "away"),
        ("g/picture.png", tmp_path / "a.png"),
        ("alias", vault / "g"),
        (".obsidian", tmp_path / "away"),
    ):
        (vault / name).symlink_to(target)
    assert list_left_out(vault) == (["g/disk", "g/lost.md"], [], [])
    monkeypatch.setattr(listing, "is_downloaded_child", lambda child: False)
    assert list_left_out(vault).in_the_cloud == ["g/a.md"]


def test_a_file_that_is_only_in_the_cloud_is_known_by_its_flag_where_there_is_one(
    store: VaultStore, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere:
        st_flags = SF_DATALESS

    assert not is_downloaded(Elsewhere())  # type: ignore[arg-type]  # os.stat_result has st_flags on macOS only
    assert is_downloaded(vault.stat())
    (vault / "a.md").write_text("x")
    asked: list[os.stat_result] = []

    def is_elsewhere(status: os.stat_result) -> bool:
        asked.append(status)
        return False

    monkeypatch.setattr(paths, "is_downloaded", is_elsewhere)
    monkeypatch.setattr(paths, "_HAS_FLAGS", True)
    assert (list(store.walk()), len(asked)) == ([], 1)
    monkeypatch.setattr(paths, "_HAS_FLAGS", False)
    assert (list(store.walk()), len(asked)) == (["a.md"], 1)


def test_a_folder_that_cannot_be_read_is_told(store: VaultStore, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "locked/b.md"):
        put(vault / name)
    scandir = os.scandir

    def refused(path: str) -> object:  # Permissions do not stop root, who may run the tests.
        if "locked" in path:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert [entry.path for entry in store.readable()] == ["a.md"]
    told = "the folder locked/ cannot be read: Permission denied"
    assert store.passed_over == {"locked/": told}
    assert list_left_out(vault).unreadable == [told]
    store.passed_over.clear()
    assert list(store.walk_special({"_review"})) == []
    assert store.passed_over == {"locked/": told}
