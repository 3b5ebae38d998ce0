"""`memory review` and `memory vault inbox` for people and programs; decisions in notes with a real worker."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryvault.tests.support.files import put
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal
from memoryvault.tests.tasks.support import wait_until

pytestmark = pytest.mark.slow

NOTE = """---
kind: preferences
status: pending
created: 2026-07-01
slug: {slug}
tags: [correction]
fingerprint: {print}
occurrences: 1
source:
  - {{host: claude, session: s1, records: [r1]}}
---

# {title}

{title}.

## Evidence

> {title}
"""


def propose(sandbox: Sandbox, slug: str, title: str, folder: str = "_review") -> Path:
    return put(
        sandbox.vault / "personal-private" / folder / f"{slug}.md",
        NOTE.format(slug=slug, title=title, print=slug.encode().hex() * 4),
    )


def place(sandbox: Sandbox, slug: str) -> Path:
    return sandbox.vault / "personal-private" / "preferences" / f"{slug}.md"


@contextmanager
def reviewing(sandbox: Sandbox, *options: str, **env: str) -> Iterator[Terminal]:
    """`memory review` at a terminal, which has to end well."""
    terminal = Terminal(sandbox, ["review", *options], **env)  # type: ignore[arg-type]  # none of them is `at`
    yield terminal
    assert terminal.close() == 0


def test_one_key_each(sandbox: Sandbox) -> None:
    for number, slug in enumerate(("a-approve", "b-reject", "c-skip", "d-replace")):
        propose(sandbox, slug, f"Proposal number {number}")
    sandbox.memory("save", "preferences", "old-way", "--body", "Proposal number three is done the old way.")
    with reviewing(sandbox) as terminal:
        terminal.press("a", "approved: ")
        terminal.press("r", "rejected: ")
        terminal.press("u", "took back: rejected: b-reject", "Proposal number 1")
        terminal.press("r", "rejected: ")
        terminal.press("x", "press one of")
        terminal.press("s")
        terminal.press("p", "1  Proposal number", "empty: none)")
        terminal.write("old-way\r", "approved, in place of an older entry: ", "; archived: ")
        terminal.expect("this review: 1 approved, 1 rejected, 1 superseded, 1 skipped; left: 1 proposal\r\n")
    assert place(sandbox, "a-approve").is_file()
    assert (sandbox.vault / "personal-private/_archive/b-reject.md").is_file()
    assert (sandbox.vault / "personal-private/_review/c-skip.md").is_file()
    assert 'supersedes: "[[personal-private/_archive/' in place(sandbox, "d-replace").read_text("utf-8")
    assert not place(sandbox, "old-way").exists()


def test_undo_steps_back_through_this_review_and_asks_before_it_reaches_another(sandbox: Sandbox) -> None:
    older = propose(sandbox, "older", "Proposal of yesterday")
    sandbox.memory("review", "--decide", "older=reject")
    for number, slug in enumerate(("a-skip", "b-reject")):
        propose(sandbox, slug, f"Proposal number {number}")
    with reviewing(sandbox) as terminal:
        terminal.press("\r", "Proposal number 1")
        terminal.press("u", "Proposal number 0")
        terminal.press("u", "rejected: older", "[n]o")
        terminal.write("n", "nothing was taken back")
        assert not older.exists()
        terminal.expect("Proposal number 0")
        terminal.press("s")
        terminal.press("r")
    assert not older.exists()
    propose(sandbox, "c-next", "Proposal number 2")
    with reviewing(sandbox) as terminal:
        terminal.press("s")
        terminal.press("u")
        terminal.press("u", "rejected: b-reject", "[n]o")
        terminal.write("y", "took back: rejected: b-reject")
        terminal.press("q")
    assert (sandbox.vault / "personal-private/_review/b-reject.md").is_file()


@pytest.mark.parametrize("leave", ["q", "\x04"], ids=["q", "Ctrl-D"])
def test_leaving_the_review_shows_what_was_decided_and_what_is_left(sandbox: Sandbox, leave: str) -> None:
    propose(sandbox, "in-the-inbox", "An inference", folder="_inbox")
    for number in range(3):
        propose(sandbox, f"proposal-{number}", f"Proposal number {number}")
    with reviewing(sandbox) as terminal:
        terminal.press("a")
        terminal.press("r")
        terminal.press("u")
        terminal.press(leave, "this review: 1 approved; left: 2 proposals\r\n")
    with reviewing(sandbox, "--inbox") as terminal:
        terminal.press(leave, "this review: nothing decided; left: 1 in the inbox\r\n")


def test_edit_opens_the_editor_and_approves_what_comes_out_of_it(sandbox: Sandbox) -> None:
    propose(sandbox, "tabs", "Use tabs")
    token = "ghp_" + "b" * 36
    code = f"p.write_text(p.read_text().replace('Use tabs.', 'Use tabs in Go, never {token}.'))"
    with editing(sandbox, code) as terminal:
        terminal.press("e", "secrets in the text were replaced", "approved: ", "1 edited; left: nothing\r\n")
    text = place(sandbox, "tabs").read_text("utf-8")
    assert "Use tabs in Go" in text
    assert token not in text


def test_an_editor_that_changes_nothing_or_fails_or_removes_the_file_decides_nothing(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    before = path.read_text("utf-8")
    for editor in ("true", "false", "rm"):
        with reviewing(sandbox, EDITOR=editor) as terminal:
            terminal.press("e", "nothing was changed")
            terminal.press("q")
    assert path.read_text("utf-8") == before


@pytest.mark.parametrize("editor", ["/no/such/editor", "vi 'x"])
def test_an_editor_that_cannot_be_started_is_named_and_the_same_is_asked_again(sandbox: Sandbox, editor: str) -> None:
    propose(sandbox, "tabs", "Use tabs")
    propose(sandbox, "wraps", "Wrap at 100")
    with reviewing(sandbox, EDITOR=editor) as terminal:
        terminal.expect("[1/2]")
        terminal.press("e", f"the editor {editor} can't be started: set EDITOR", "[1/2]")
        terminal.press("s", "[2/2]")
        terminal.press("q")


def test_a_note_that_changes_while_it_is_shown_is_shown_again(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    with reviewing(sandbox) as terminal:
        terminal.expect("[q]uit")
        path.write_text(path.read_text("utf-8").replace("Use tabs.", "Use spaces."), "utf-8")
        terminal.write("a", "was changed since you saw it", "Use spaces.")
        terminal.press("a", "approved: ")
    assert "Use spaces." in place(sandbox, "tabs").read_text("utf-8")


def test_without_a_terminal_the_line_says_what_to_do(sandbox: Sandbox) -> None:
    assert sandbox.memory("review").strip() == "nothing waits for your decision"
    path = propose(sandbox, "tabs", "Use tabs")
    assert "--decide" in sandbox.refused("review", stdin="a\n", code=2)
    assert path.is_file()


def test_programs_decide_by_flag(sandbox: Sandbox) -> None:
    propose(sandbox, "tabs", "Use tabs")
    propose(sandbox, "spaces", "Use spaces")
    propose(sandbox, "later", "Perhaps later")
    listed = sandbox.json("review", "--list")
    assert [one["slug"] for one in listed] == ["later", "spaces", "tabs"]
    assert listed[2]["statement"] == "Use tabs."
    done = sandbox.json("review", "--decide", "tabs=approve", "--decide", "spaces=reject", "--decide", "later=skip")
    assert [one["verdict"] for one in done] == ["approved", "rejected", "skipped"]
    assert place(sandbox, "tabs").is_file()
    assert [one["slug"] for one in sandbox.json("review", "--list")] == ["later"]
    assert "rejected: spaces" in sandbox.memory("review", "--undo")
    assert [one["slug"] for one in sandbox.json("review")] == ["later", "spaces"]
    told = sandbox.memory("review", "--decide", "later=always")
    assert told.startswith("approved, and given to every session at its start: ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--decide", "tabs"), 2),
        (("--decide", "tabs=perhaps"), 2),
        (("--decide", "none=approve"), 1),
        (("--decide", "tabs=supersede nothing-there"), 1),
    ],
)
def test_a_decision_that_cannot_be_carried_out_is_told(sandbox: Sandbox, arguments: tuple[str, ...], code: int) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    sandbox.refused("review", *arguments, code=code)
    assert path.is_file()


@pytest.mark.hurried
def test_a_decision_in_the_note_is_carried_out_within_seconds(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    before = propose(sandbox, "made-before", "Decided while no worker ran")
    before.write_text(before.read_text("utf-8").replace("---\n", "---\ndecision: approve\n", 1), "utf-8")
    with sandbox.process("service", "worker"):
        wait_until(place(sandbox, "made-before").is_file, "it is there", 20 * patience())
        path.write_text(path.read_text("utf-8").replace("---\n", "---\ndecision: approve\n", 1), "utf-8")
        wait_until(place(sandbox, "tabs").is_file, "it is there", 10 * patience())
    assert not path.exists()


def test_the_inbox_is_put_in_order_with_yes_alone(sandbox: Sandbox) -> None:
    for slug, title in (("one", "The report reads well as a list"), ("two", "The report reads well as a list!")):
        propose(sandbox, slug, title, "_inbox")
    propose(sandbox, "old", "Something else entirely", "_inbox")
    for slug in ("one", "two"):
        file = sandbox.vault / "personal-private/_inbox" / f"{slug}.md"
        text = file.read_text("utf-8").replace("2026-07-01", time.strftime("%Y-%m-%d"))
        file.write_text(text.replace("status: pending", "status: inbox"), "utf-8")
    assert "--yes" in sandbox.run("vault", "inbox", "triage").stderr
    assert len(sandbox.json("vault", "inbox", "list")) == 3
    steps = sandbox.json("vault", "inbox", "triage", "--dry-run")
    assert {step["step"] for step in steps} == {"merge", "expire"}
    assert len(sandbox.json("vault", "inbox", "triage", "--yes")) == len(steps)
    (kept,) = sandbox.json("vault", "inbox", "list")
    assert kept["occurrences"] == 2
    assert "status: archived" in (sandbox.vault / "personal-private/_archive/old.md").read_text("utf-8")


# Text that a person writes in the editor during a review is never lost


TEXT = "Use tabs in Go, and nowhere else."


@contextmanager
def editing(sandbox: Sandbox, code: str) -> Iterator[Terminal]:
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
    with reviewing(sandbox, EDITOR=f"{sys.executable} {editor}", TMPDIR=str(folder)) as terminal:
        yield terminal


def drafts(sandbox: Sandbox) -> list[str]:
    return [path.read_bytes().decode("latin-1") for path in (sandbox.root / "drafts").rglob("*.md")]


def test_a_note_that_changed_meanwhile_takes_the_same_text_at_the_second_try(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    with editing(
        sandbox,
        f"if first:\n    p.write_text({TEXT!r}); n = Path({str(path)!r}); n.write_text(n.read_text() + '> again')",
    ) as terminal:
        terminal.press("e", "look at it again", "what you wrote is kept: [e] opens it again", "> again")
        terminal.press("e", "approved: ")
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
    with editing(sandbox, code) as terminal:
        terminal.press("e")
        terminal.expect(said)
        terminal.press("q", "what you wrote for personal-private/_review/tabs.md was not used; it is in ")
    assert path.read_text("utf-8") == before
    assert drafts(sandbox) == ["grün"]
    assert [folder.stat().st_mode & 0o777 for folder in (sandbox.root / "drafts").iterdir()] == [0o700]


def test_a_kept_text_survives_an_editor_that_is_left_without_saving(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    with editing(
        sandbox,
        f"if not first: sys.exit(1)\n"
        f"p.write_text({TEXT!r}); n = Path({str(path)!r}); n.write_text(n.read_text() + '> again')",
    ) as terminal:
        terminal.press("e", "what you wrote is kept: [e] opens it again", "> again")
        terminal.press("e", "nothing was changed", "what you wrote is kept: [e] opens it again")
        terminal.press("q", "what you wrote for personal-private/_review/tabs.md was not used; it is in ")
    assert drafts(sandbox) == [TEXT]


def conflict(sandbox: Sandbox, text: str, other: str) -> tuple[Path, Path]:
    """A note, and the copy of a sync client with another text, which is no UTF-8."""
    note = put(place(sandbox, "tabs"), text)
    copy = note.with_name("tabs (conflicted copy).md")
    copy.write_bytes(other.encode("latin-1"))
    return note, copy


def test_a_merge_with_a_mark_left_in_it_is_gone_on_with(sandbox: Sandbox) -> None:
    note, copy = conflict(sandbox, "Use tabs.\nIn Go.\n", "Use spaces.\nIn Köln.\n")
    with editing(
        sandbox,
        "t = p.read_bytes()\n"
        "marks = (b'<<<<<<<', b'=======', b'>>>>>>>')\n"
        "drop = marks[1:2] if first else marks\n"
        "p.write_bytes(b''.join(l for l in t.splitlines(True) if not l.startswith(drop)) + b'Worked on.\\n' * first)",
    ) as terminal:
        terminal.press("e", "the text is not merged yet", "[e] opens it again")
        terminal.press("e", "merged: ")
    assert note.read_bytes().decode("latin-1").splitlines() == [
        *("Use tabs.", "In Go.", "Use spaces.", "In Köln.", "", "Worked on.")
    ]
    assert not copy.exists()


def test_a_merge_that_was_not_used_stays_on_disk_where_one_of_the_two_texts_is_taken_instead(sandbox: Sandbox) -> None:
    conflict(sandbox, "Use tabs.\n", "Use spaces.\n")
    with editing(sandbox, "p.write_text('<<<<<<< worked on\\n' + p.read_text())") as terminal:
        terminal.press("e", "the text is not merged yet")
        terminal.press("m", "kept: ", "was not used; it is in ")
    (draft,) = drafts(sandbox)
    assert draft.startswith("<<<<<<< worked on")
