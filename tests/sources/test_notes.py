"""The scan of the user's own notes: what is read, what is left out, and that nothing is changed."""

import json
import os
import time
from pathlib import Path

import pytest

from memoryvault.sources.notes import EXCERPT_CHARACTERS, MAX_NOTE_BYTES, NotesScan, scan_notes
from memoryvault.tests.support.files import put

WORDS = ["greenhouse", "robot", "tomatoes"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "MemoryVault").mkdir()
    return tmp_path


def note(root: Path, path: str, text: str | bytes = "The greenhouse robot.") -> Path:
    return put(root / path, text)


def scan(root: Path, words: list[str] | None = None, **changes: float) -> NotesScan:
    leave_out = [root / "MemoryVault", root / "Ideas.md"]
    deadline = changes.get("deadline", time.monotonic() + 30)
    return scan_notes(root, leave_out, words if words is not None else WORDS, most=5, deadline=deadline)


def test_notes_that_share_most_come_first(root: Path) -> None:
    note(root, "b.md", "A robot in the greenhouse waters tomatoes.")
    note(root, "a.md", "A greenhouse without robots. " + "Other words. " * 100)
    note(root, "c.md", "Only the greenhouse is here.")
    found = scan(root)
    assert [match.link for match in found.matches] == ["b", "a"]
    assert (found.notes, found.complete) == (3, True)


def test_folders_headings_and_other_scripts_are_told(root: Path) -> None:
    text = "Der robot im greenhouse."
    note(root, "Garten/Gewächs haus.md", f"---\ntags: [a]\n---\n# Über Tomaten\n\n{text}\n\nMehr steht hier nicht.")
    (match,) = scan(root).matches
    assert (match.link, match.title, match.excerpt) == ("Garten/Gewächs haus", "Über Tomaten", text)


def test_a_long_paragraph_is_cut_around_the_words(root: Path) -> None:
    note(root, "a.md", "Before it. " * 80 + "The greenhouse robot is here. " + "After it. " * 80)
    (match,) = scan(root).matches
    assert "greenhouse" in match.excerpt
    assert len(match.excerpt) <= EXCERPT_CHARACTERS + 2


def test_what_is_no_small_note_of_the_user_is_left_out(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    note(outside, "a.md")
    (root / "linked").symlink_to(outside)
    (root / "loop").symlink_to(root)
    note(root, "MemoryVault/personal-private/fact/x.md")
    note(root, "Ideas.md")
    note(root, ".trash/x.md")
    note(root, ".hidden.md")
    note(root, "picture.png")
    note(root, "binary.md", b"greenhouse robot \0\1\2")
    note(root, "huge.md", b"greenhouse robot " * (MAX_NOTE_BYTES // 10))
    note(root, "a.sync-conflict-20240101-000000-ABC.md")
    (root / "link.md").symlink_to("/etc/hostname")
    os.mkfifo(root / "pipe.md")
    unreadable = note(root, "unreadable.md")
    unreadable.chmod(0)
    found = scan(root)
    assert [match.link for match in found.matches if match.link != "unreadable"] == []  # root may read it


def test_it_stops_at_its_deadline_and_says_so_and_without_words_finds_nothing(root: Path) -> None:
    note(root, "a.md")
    found = scan(root, deadline=time.monotonic() - 1)
    assert (found.matches, found.complete) == ((), False)
    assert scan(root, words=[]).matches == ()


@pytest.mark.parametrize("words", [1, 4, 8, 20, 60])
def test_a_short_note_is_not_copied_whole_either(root: Path, words: int) -> None:
    text = " ".join(["The greenhouse robot waters tomatoes"] * words)
    note(root, "a.md", f"# Title\n\n{text}")
    (match,) = scan(root).matches
    assert len(match.excerpt.strip("…")) <= len(text) / 2


def test_what_the_user_excludes_in_obsidian_and_templates_are_not_read(root: Path) -> None:
    for path in ("Private/a.md", "Journal/2020/b.md", "Templates/c.md", "T2/d.md", "Public/secret plan.md", "Open.md"):
        note(root, path)
    filters = ["private/", "Journal/", "/secret .*/", "/(/", 7]
    note(root, ".obsidian/app.json", json.dumps({"userIgnoreFilters": filters}))
    note(root, ".obsidian/templates.json", json.dumps({"folder": "Templates"}))
    note(root, ".obsidian/plugins/templater-obsidian/data.json", json.dumps({"templates_folder": "/T2/"}))
    found = scan(root)
    assert ([match.link for match in found.matches], found.notes) == (["Open"], 1)


@pytest.mark.parametrize("settings", ["", "{", "[]", '{"userIgnoreFilters": "x"}', '{"userIgnoreFilters": null}'])
def test_settings_that_cannot_be_read_leave_nothing_out(root: Path, settings: str) -> None:
    note(root, "Open.md")
    note(root, ".obsidian/app.json", settings)
    assert scan(root).notes == 1
