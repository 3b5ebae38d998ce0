"""Text that a person writes in the editor during a review is never lost."""

import sys

import pytest

from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal

from .test_commands import place, propose

pytestmark = pytest.mark.slow
TEXT = "Use tabs in Go, and nowhere else."


def review(sandbox: Sandbox, code: str) -> Terminal:
    """With an editor that runs this; `p` is the file, a Path, and `first` whether it was not opened before."""
    editor = sandbox.root / "editor.py"
    opened = sandbox.root / "opened"
    editor.write_text(
        f"import sys; from pathlib import Path; p = Path(sys.argv[1]); mark = Path({str(opened)!r})\n"
        f"first = not mark.exists(); mark.touch()\n{code}\n",
        "utf-8",
    )
    folder = sandbox.root / "drafts"
    folder.mkdir()
    return Terminal(sandbox, ["review"], EDITOR=f"{sys.executable} {editor}", TMPDIR=str(folder))


def drafts(sandbox: Sandbox) -> list[str]:
    return [path.read_bytes().decode("latin-1") for path in (sandbox.root / "drafts").rglob("*.md")]


def test_a_note_that_changed_meanwhile_takes_the_same_text_at_the_second_try(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    terminal = review(
        sandbox,
        f"if first:\n    p.write_text({TEXT!r}); n = Path({str(path)!r}); n.write_text(n.read_text() + '> again')",
    )
    terminal.press("e")
    terminal.expect("look at it again")
    terminal.expect("what you wrote is kept: [e] opens it again")
    terminal.expect("> again")
    terminal.press("e")
    terminal.expect("approved: ")
    assert terminal.close() == 0
    assert TEXT in place(sandbox, "tabs").read_text("utf-8")
    assert list((sandbox.root / "drafts").iterdir()) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("p.write_bytes('grün'.encode('latin-1'))", "the editor left a text that is no UTF-8"),
        ("p.write_text('gr\\xfcn', 'latin-1'); sys.exit(1)", "nothing was changed"),
    ],
)
def test_a_text_that_was_not_used_stays_on_disk_and_its_place_is_told(sandbox: Sandbox, code: str, said: str) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    before = path.read_text("utf-8")
    terminal = review(sandbox, code)
    terminal.press("e")
    terminal.expect(said)
    terminal.press("q")
    terminal.expect("what you wrote for personal-private/_review/tabs.md was not used; it is in ")
    assert terminal.close() == 0
    assert path.read_text("utf-8") == before
    assert drafts(sandbox) == ["grün"]
    assert [folder.stat().st_mode & 0o777 for folder in (sandbox.root / "drafts").iterdir()] == [0o700]


def test_a_kept_text_survives_an_editor_that_is_left_without_saving(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    terminal = review(
        sandbox,
        f"if not first: sys.exit(1)\n"
        f"p.write_text({TEXT!r}); n = Path({str(path)!r}); n.write_text(n.read_text() + '> again')",
    )
    terminal.press("e")
    terminal.expect("what you wrote is kept: [e] opens it again")
    terminal.expect("> again")
    terminal.press("e")
    terminal.expect("nothing was changed")
    terminal.expect("what you wrote is kept: [e] opens it again")
    terminal.press("q")
    terminal.expect("what you wrote for personal-private/_review/tabs.md was not used; it is in ")
    assert terminal.close() == 0
    assert drafts(sandbox) == [TEXT]


def test_an_editor_that_removes_the_file_changes_nothing(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    before = path.read_text("utf-8")
    terminal = review(sandbox, "p.unlink()")
    terminal.press("e")
    terminal.expect("nothing was changed")
    terminal.press("q")
    assert terminal.close() == 0
    assert path.read_text("utf-8") == before
    assert list((sandbox.root / "drafts").iterdir()) == []


def test_a_merge_with_a_mark_left_in_it_is_gone_on_with(sandbox: Sandbox) -> None:
    note = place(sandbox, "tabs")
    note.parent.mkdir(parents=True)
    note.write_text("Use tabs.\nIn Go.\n", "utf-8")
    copy = note.with_name("tabs (conflicted copy).md")
    copy.write_bytes("Use spaces.\nIn Köln.\n".encode("latin-1"))
    terminal = review(
        sandbox,
        "t = p.read_bytes()\n"
        "marks = (b'<<<<<<<', b'=======', b'>>>>>>>')\n"
        "drop = marks[1:2] if first else marks\n"
        "p.write_bytes(b''.join(l for l in t.splitlines(True) if not l.startswith(drop)) + b'Worked on.\\n' * first)",
    )
    terminal.press("e")
    terminal.expect("the text is not merged yet")
    terminal.expect("[e] opens it again")
    terminal.press("e")
    terminal.expect("merged: ")
    assert terminal.close() == 0
    assert note.read_bytes().decode("latin-1").splitlines() == [
        *("Use tabs.", "In Go.", "Use spaces.", "In Köln.", "", "Worked on.")
    ]
    assert not copy.exists()


def test_a_merge_that_was_not_used_stays_on_disk_where_one_of_the_two_texts_is_taken_instead(sandbox: Sandbox) -> None:
    note = place(sandbox, "tabs")
    note.parent.mkdir(parents=True)
    note.write_text("Use tabs.\n", "utf-8")
    note.with_name("tabs (conflicted copy).md").write_text("Use spaces.\n", "utf-8")
    terminal = review(sandbox, "p.write_text('<<<<<<< worked on\\n' + p.read_text())")
    terminal.press("e")
    terminal.expect("the text is not merged yet")
    terminal.press("m")
    terminal.expect("kept: ")
    terminal.expect("was not used; it is in ")
    assert terminal.close() == 0
    (draft,) = drafts(sandbox)
    assert draft.startswith("<<<<<<< worked on")
