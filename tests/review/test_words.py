"""What `memory review` shows of a proposal, and the keys that it offers."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from memoryvault.cli import review_dialogue
from memoryvault.index.chunking import chunk_entry
from memoryvault.tests.console.vaults import SESSION, transcript
from memoryvault.tests.support.command import Command

from .support import CHOICE, RULE, Bed, said


class Pressed(NamedTuple):
    """The prompts of a review, and what it printed."""

    asked: list[str]
    shown: str


Press = Callable[[str], Pressed]


@pytest.fixture
def press(ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> Press:
    """Run `memory review` at a terminal where these keys are pressed."""
    monkeypatch.setenv("MEMORY_RESEARCH_NETWORK", "false")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    def run(keys: str) -> Pressed:
        asked: list[str] = []
        left = iter(keys)

        def answer(prompt: str) -> str:
            asked.append(prompt)
            return next(left)

        monkeypatch.setattr(review_dialogue, "read_key", answer)
        return Pressed(asked, memory("review").out)

    return run


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("preferences", "[a]pprove  a[l]ways  [e]dit  [r]eject  [s]kip  su[p]ersede  [u]ndo  [q]uit "),
        ("idea", "[a]pprove  [e]dit  [r]eject  [s]kip  [u]ndo  [q]uit "),
        ("idea-surface", "[a]pprove  [r]eject  [s]kip  [u]ndo  [q]uit "),
    ],
)
def test_only_keys_that_do_something_are_offered(bed: Bed, press: Press, kind: str, keys: str) -> None:
    bed.note("personal-private/_review/one.md", "One.", kind=kind, status="pending")
    pressed = "xnyq" if "su[p]" in keys else "xpq"  # `n` is no "no" that is for good, nor is `y` a yes
    asked, shown = press(pressed)
    assert asked == [keys] * len(pressed)
    short = " ".join(key for key in "alerspuq" if f"[{key}]" in keys)
    assert shown.count(f"press one of: {short}  (? explains them)\n") == len(pressed) - 1
    assert shown.count("[1/1]") == 1, "a wrong key asks for another, and does not show the proposal again"


def test_a_question_about_an_idea_is_called_so_and_its_keys_fit_the_terminal(
    bed: Bed, press: Press, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed.note("personal-private/_review/one.md", "One.", kind="idea-surface", status="pending")
    monkeypatch.setenv("COLUMNS", "40")
    asked, shown = press("q")
    assert asked == ["[a]pprove  [r]eject  [s]kip  [u]ndo\n[q]uit "]
    assert "[1/1] question about an idea, seen once" in shown


def test_where_it_was_said_is_shown_below_a_proposal_that_is_not_shown_again(bed: Bed, press: Press) -> None:
    bed.remember(CHOICE)
    asked, shown = press("wq")
    assert len(asked) == 2
    assert shown.count("[1/1]") == 1
    assert f"session {CHOICE.session}" in shown


def test_a_long_proposal_is_broken_between_its_words(bed: Bed, press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    quoted = text.replace("word", "wordy")
    bed.note("personal-private/_review/a.md", f"{text}.\n\n> {quoted}", kind="fact", status="pending")
    monkeypatch.setenv("COLUMNS", "60")
    shown = [line for line in press("q").shown.splitlines() if "word" in line]
    assert max(map(len, shown)) < 60
    assert {line[:4] for line in shown} == {"    "}
    assert sum(line.startswith("    > word") for line in shown) > 5
    told = " ".join(" ".join(shown).replace("> ", "").split())
    assert text in told
    assert quoted in told


def test_a_proposal_is_shown_without_the_marks_of_its_note(bed: Bed, press: Press) -> None:
    text = (
        "Session cookies last a day.\n\n## Evidence\n\nProposed because: said outright.\n\nSession 60b38d1e-f048-428b"
    )
    bed.note("personal-private/_review/a.md", text, kind="fact", status="pending")
    shown = press("q").shown.split("[1/1]")[1].split("this review:")[0].splitlines()[1:]
    assert [line.strip() for line in shown if line.strip()] == [
        "Session cookies last a day",
        "Proposed because: said outright.",
    ]


def test_the_answer_names_all_that_the_key_did(bed: Bed, press: Press) -> None:
    bed.note("personal-private/_review/a.md", "Keep answers short.", kind="preferences", status="pending")
    bed.note("personal-private/_review/b.md", "Never use sudo.", kind="preferences", status="pending")
    said = [line.partition(":")[0] for line in press("lm").shown.splitlines() if line.startswith("approved")]
    assert said == [
        "approved, and given to every session at its start",
        "approved, and stops the agent once in a session, as soon as `memory guard --on` watches it",
    ]


def test_no_guard_is_offered_for_what_only_an_order_names(bed: Bed, press: Press) -> None:
    for name, text in (("a", "Jobs go to the `fluid` partition now."), ("b", "Ask before you use `fluid`.")):
        bed.note(f"personal-private/_review/{name}.md", text, kind="preferences", channel="action", status="pending")
    assert ["re[m]ind" in keys for keys in press("ssq").asked] == [False, True]


def test_a_question_mark_explains_the_keys_that_there_are(bed: Bed, press: Press) -> None:
    bed.note("personal-private/_review/one.md", "One.", kind="idea", status="pending")
    explained = [line[0] for line in press("?q").shown.splitlines() if line[:1] != " " and line[1:3] == "  "]
    assert "".join(explained) == "aersuq"


CORRECTION = replace(
    CHOICE, occasion="in answer to: “I ran npm install.”", said_at="2026-05-04T09:02:00Z", session=SESSION
)


def test_a_correction_is_shown_with_its_day_and_what_it_answers(bed: Bed, press: Press) -> None:
    bed.remember(CORRECTION)
    told = press("q").shown
    assert "preferences, any project, seen once, said 2026-05-04\n" in told
    assert told.count("I ran npm install.") == 1


def test_text_answered_by_a_correction_is_never_recalled(bed: Bed) -> None:
    bed.remember(CORRECTION)
    entry = bed.only("pending")
    assert "\nSaid in answer to: “I ran npm install.”\n" in entry.body
    assert "npm install" not in " ".join(chunk.embed_text + chunk.body for chunk in chunk_entry(entry))


def test_day_and_occasion_come_from_the_transcript_if_the_note_lacks_them(bed: Bed, press: Press) -> None:
    token = "ghp_" + "b" * 36
    turns = [("assistant", f"I ran npm install with {token}."), ("user", str(CHOICE.statement))]
    written = transcript(bed.root, turns, SESSION)
    bed.remember(replace(CHOICE, session=SESSION, records=(f"{SESSION[:8]}-r1",)))
    told = press("wq").shown
    assert "    Said in answer to: “I ran npm install with " in told
    assert "  > user, 2026-05-04: No, use pnpm instead of npm\n" in told
    assert token not in told
    written.unlink()
    told = press("wq").shown
    assert "Said in answer to" not in told
    assert "Its transcript is not on this machine any more." in told


def replacing(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    bed.remember(said(RULE, "b", "Actually, always use npm, not pnpm."))


def statuses(bed: Bed) -> list[str]:
    return sorted(entry.effective_status for entry in bed.entries())


@pytest.mark.parametrize(("key", "left"), [("a", ["active", "superseded"]), ("k", ["active", "active"])])
def test_a_replacement_may_keep_both(bed: Bed, press: Press, key: str, left: list[str]) -> None:
    replacing(bed)
    (asked,) = press(key).asked
    assert "[a]pprove  a[l]ways  [k]eep both  [e]dit" in asked
    assert statuses(bed) == left
    assert any(entry.supersedes for entry in bed.entries()) is (key == "a")
    assert all("It would replace" not in entry.body for entry in bed.entries())


@pytest.mark.parametrize(
    ("keys", "left"), [("exa", ["active", "superseded"]), ("ek", ["active", "active"]), ("enq", ["active", "pending"])]
)
def test_after_an_edit_it_is_told_what_would_be_replaced(
    bed: Bed, press: Press, monkeypatch: pytest.MonkeyPatch, keys: str, left: list[str]
) -> None:
    replacing(bed)
    old = bed.only("active").path
    monkeypatch.setattr("memoryvault.cli.editor.Drafts.edit", lambda _self, _path, text: f"{text}, in the shop")
    assert f"it would replace {old}\n" in press(keys).shown
    assert statuses(bed) == left
