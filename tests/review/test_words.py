"""What `memory review` shows of a proposal, and the keys that it offers."""

from dataclasses import replace

import pytest

from memoryvault.cli import review
from memoryvault.cli.main import main
from memoryvault.index.chunking import chunk_entry
from memoryvault.tests.console.vaults import SESSION, transcript

from .support import CHOICE, RULE, Bed, said


def answer(monkeypatch: pytest.MonkeyPatch, bed: Bed, keys: str) -> list[str]:
    """Run it on a terminal, press the keys; the prompts."""
    for name, value in {**bed.env, "MEMORY_RESEARCH_NETWORK": "false"}.items():
        monkeypatch.setenv(name, value)
    asked: list[str] = []
    pressed = iter(keys)

    def press(prompt: str) -> str:
        asked.append(prompt)
        return next(pressed)

    monkeypatch.setattr(review, "read_key", press)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert main(["review"]) == 0
    return asked


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("preferences", "[a]pprove  a[l]ways  [e]dit  [r]eject  [s]kip  su[p]ersede  [u]ndo  [q]uit "),
        ("idea", "[a]pprove  [e]dit  [r]eject  [s]kip  [u]ndo  [q]uit "),
        ("idea-surface", "[a]pprove  [r]eject  [s]kip  [u]ndo  [q]uit "),
    ],
)
def test_only_keys_that_do_something_are_offered(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, keys: str
) -> None:
    bed.note("personal-private/_review/one.md", "One.", kind=kind, status="pending")
    pressed = "xnyq" if "su[p]" in keys else "xpq"  # `n` is no "no" that is for good, nor is `y` a yes
    assert answer(monkeypatch, bed, pressed) == [keys] * len(pressed)
    short = " ".join(key for key in "alerspuq" if f"[{key}]" in keys)
    shown = capsys.readouterr().out
    assert shown.count(f"press one of: {short}  (? explains them)\n") == len(pressed) - 1
    assert shown.count("[1/1]") == 1, "a wrong key asks for another, and does not show the proposal again"


def test_a_question_about_an_idea_is_called_so_and_its_keys_fit_the_terminal(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.note("personal-private/_review/one.md", "One.", kind="idea-surface", status="pending")
    monkeypatch.setenv("COLUMNS", "40")
    assert answer(monkeypatch, bed, "q") == ["[a]pprove  [r]eject  [s]kip  [u]ndo\n[q]uit "]
    assert "[1/1] question about an idea, seen once" in capsys.readouterr().out


def test_where_it_was_said_is_shown_below_a_proposal_that_is_not_shown_again(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.remember(CHOICE)
    assert len(answer(monkeypatch, bed, "wq")) == 2
    shown = capsys.readouterr().out
    assert shown.count("[1/1]") == 1
    assert f"session {CHOICE.session}" in shown


def test_a_long_proposal_ends_at_the_terminals_edge_and_keeps_its_words_whole(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    quoted = text.replace("word", "wordy")
    bed.note("personal-private/_review/a.md", f"{text}.\n\n> {quoted}", kind="fact", status="pending")
    monkeypatch.setenv("COLUMNS", "60")
    answer(monkeypatch, bed, "q")
    shown = [line for line in capsys.readouterr().out.splitlines() if "word" in line]
    assert max(map(len, shown)) < 60
    assert {line[:4] for line in shown} == {"    "}
    assert sum(line.startswith("    > word") for line in shown) > 5
    told = " ".join(" ".join(shown).replace("> ", "").split())
    assert text in told
    assert quoted in told


def test_a_proposal_is_shown_without_the_marks_of_its_note(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "Session cookies last a day.\n\n## Evidence\n\nProposed because: said outright.\n\nSession 60b38d1e-f048-428b"
    )
    bed.note("personal-private/_review/a.md", text, kind="fact", status="pending")
    answer(monkeypatch, bed, "q")
    shown = capsys.readouterr().out.split("[1/1]")[1].split("this review:")[0].splitlines()[1:]
    assert [line.strip() for line in shown if line.strip()] == [
        "Session cookies last a day",
        "Proposed because: said outright.",
    ]


def test_the_answer_names_all_that_the_key_did(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.note("personal-private/_review/a.md", "Keep answers short.", kind="preferences", status="pending")
    bed.note("personal-private/_review/b.md", "Never use sudo.", kind="preferences", status="pending")
    answer(monkeypatch, bed, "lm")
    said = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("approved")]
    assert said == [
        "approved, and given to every session at its start",
        "approved, and stops the agent once in a session",
    ]


def test_a_question_mark_explains_the_keys_that_there_are(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.note("personal-private/_review/one.md", "One.", kind="idea", status="pending")
    answer(monkeypatch, bed, "?q")
    explained = [line[0] for line in capsys.readouterr().out.splitlines() if line[:1] != " " and line[1:3] == "  "]
    assert "".join(explained) == "aersuq"


CORRECTION = replace(
    CHOICE, occasion="in answer to: “I ran npm install.”", said_at="2026-05-04T09:02:00Z", session=SESSION
)


def test_a_correction_is_shown_with_its_day_and_what_it_answers(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.remember(CORRECTION)
    answer(monkeypatch, bed, "q")
    told = capsys.readouterr().out
    assert "preferences, any project, seen once, said 2026-05-04\n" in told
    assert told.count("I ran npm install.") == 1


def test_text_answered_by_a_correction_is_never_recalled(bed: Bed) -> None:
    bed.remember(CORRECTION)
    entry = bed.only("pending")
    assert "\nSaid in answer to: “I ran npm install.”\n" in entry.body
    assert "npm install" not in " ".join(chunk.embed_text + chunk.body for chunk in chunk_entry(entry))


def test_day_and_occasion_come_from_the_transcript_if_the_note_lacks_them(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "b" * 36
    turns = [("assistant", f"I ran npm install with {token}."), ("user", str(CHOICE.statement))]
    written = transcript(bed.root, turns, SESSION)
    bed.remember(replace(CHOICE, session=SESSION, records=(f"{SESSION[:8]}-r1",)))
    answer(monkeypatch, bed, "wq")
    told = capsys.readouterr().out
    assert "    Said in answer to: “I ran npm install with " in told
    assert "  > user, 2026-05-04: No, use pnpm instead of npm\n" in told
    assert token not in told
    written.unlink()
    answer(monkeypatch, bed, "wq")
    told = capsys.readouterr().out
    assert "Said in answer to" not in told
    assert "Its transcript is not on this machine any more." in told


def replacing(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    bed.remember(said(RULE, "b", "Actually, always use npm, not pnpm."))


def statuses(bed: Bed) -> list[str]:
    return sorted(entry.effective_status for entry in bed.entries())


@pytest.mark.parametrize(("key", "left"), [("a", ["active", "superseded"]), ("k", ["active", "active"])])
def test_a_replacement_may_keep_both(bed: Bed, monkeypatch: pytest.MonkeyPatch, key: str, left: list[str]) -> None:
    replacing(bed)
    (asked,) = answer(monkeypatch, bed, key)
    assert "[a]pprove  a[l]ways  [k]eep both  [e]dit" in asked
    assert statuses(bed) == left
    assert all("It would replace" not in entry.body for entry in bed.entries())


@pytest.mark.parametrize(
    ("keys", "left"), [("exa", ["active", "superseded"]), ("ek", ["active", "active"]), ("enq", ["active", "pending"])]
)
def test_after_an_edit_it_is_told_what_would_be_replaced(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keys: str, left: list[str]
) -> None:
    replacing(bed)
    old = bed.only("active").path
    monkeypatch.setattr("memoryvault.cli.editor.Drafts.edit", lambda _self, _path, text: f"{text}, in the shop")
    answer(monkeypatch, bed, keys)
    assert f"it would replace {old}\n" in capsys.readouterr().out
    assert statuses(bed) == left


def test_a_decision_in_the_note_may_keep_both(bed: Bed) -> None:
    replacing(bed)
    bed.decide_in_note(bed.only("pending").path, "keep both")
    bed.reviewer.apply_notes()
    assert [entry.supersedes for entry in bed.entries()] == [None, None]
    assert statuses(bed) == ["active", "active"]
