"""The inbox stays small: frequent entries are promoted, old ones expire."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.likeness import Relation, relation, wording_of
from memoryvault.pipelines.routing import Action, Tier, beyond_limit
from memoryvault.pipelines.triage import TriageStep, triage
from memoryvault.services import triaging
from memoryvault.services.triaging import run_triage
from memoryvault.services.undoing import Selector
from memoryvault.vault.entry import Entry, Source, parse_text

from .support import CHOICE, GUESS, RULE, Bed, make_bed, said

TODAY = date(2026, 7, 1)
FOX = "The quick brown fox jumps over the lazy dog today"


def item(path: str, statement: str, occurrences: int = 1, seen: date | None = TODAY, *sessions: str) -> Entry:
    day = seen.isoformat() if seen is not None else None
    note = parse_text(path, f"---\nkind: preferences\n---\n\n{statement}\n")
    sources = tuple(Source("claude", session) for session in sessions)
    return replace(note, occurrences=occurrences, updated=day, sources=sources)


def steps(*items: Entry, **limits: int) -> list[TriageStep]:
    def same(one: Entry, other: Entry) -> bool:
        return relation(wording_of(one.body), wording_of(other.body)) is Relation.SAME

    return triage(items, same, TODAY, **limits)


def test_three_that_say_the_same_are_promoted_together() -> None:
    assert steps(item("hub", FOX), item("dup1", FOX + "!"), item("dup2", FOX + "?")) == [
        TriageStep("promote", ("dup1", "dup2", "hub"))
    ]


def test_often_seen_is_promoted_unless_one_session_said_it_all() -> None:
    assert steps(item("h", "Always run tests before pushing.", 4, TODAY, "s1", "s2")) == [TriageStep("promote", ("h",))]
    assert steps(item("h", "Always run tests before pushing.", 4, TODAY, "s1")) == []


@pytest.mark.parametrize("seen", [TODAY - timedelta(days=200), TODAY - timedelta(days=91), None])
def test_entry_not_seen_again_expires(seen: date | None) -> None:
    assert [step.name for step in steps(item("a", FOX, 1, seen))] == ["expire"]
    assert steps(item("a", FOX, 1, TODAY - timedelta(days=90))) == []


def test_the_oldest_go_when_there_are_too_many() -> None:
    # Words of letters: numbers alone would tell the statements apart as well, but not as users write.
    names = ["apple", "berry", "cherry", "date", "elder"]
    items = [item(name, f"Prefer {name}", 1, TODAY - timedelta(days=n)) for n, name in enumerate(names)]
    assert [step.paths[0] for step in steps(*items, most=2) if step.name == "expire"] == ["cherry", "date", "elder"]


def test_no_note_is_touched_by_two_steps() -> None:
    items = [item(f"n{n}", FOX + "!" * n, n % 3 + 1, TODAY - timedelta(days=n)) for n in range(2)]
    items += [item(f"o{n}", f"Prefer {'ab' * (n + 1)} always", 1, TODAY - timedelta(days=50 * n)) for n in range(6)]
    touched = [path for step in steps(*items, most=1) for path in step.paths]
    assert len(touched) == len(set(touched))


def run(bed: Bed) -> list[str]:
    """What became of each note."""
    return [one.result for one in run_triage(bed.settings, bed.reviewer)]


def inbox(bed: Bed, slug: str, body: str, **fields: object) -> str:
    fields = {"kind": "preferences", "status": "inbox", "group": "personal-private", **fields}
    return bed.note(f"personal-private/_inbox/{slug}.md", body, **fields)


@pytest.mark.parametrize(
    ("mode", "place", "status"),
    [("interactive", "_review", "pending"), ("silent", "preferences", "active"), ("auto", "_inbox", "inbox")],
)
def test_review_mode_decides_where_a_pattern_goes(tmp_path: Path, mode: str, place: str, status: str) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE=mode)
    inbox(bed, "tests", "Run the tests before pushing.", occurrences=4)
    run(bed)
    (entry,) = bed.entries()
    assert (entry.path, entry.status) == (f"personal-private/{place}/tests.md", status)


@pytest.mark.parametrize("mode", ["auto", "silent"])
def test_replacement_of_a_rule_is_put_to_the_user_in_any_mode(tmp_path: Path, mode: str) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE=mode)
    inbox(bed, "npm", "Use npm, not pnpm.", occurrences=4, supersedes="personal-private/preferences/pnpm.md")
    run(bed)
    assert bed.only("pending").supersedes == "personal-private/preferences/pnpm.md"


def test_similar_ones_become_one_with_all_evidence(bed: Bed) -> None:
    bed.remember(said(GUESS, "a"))
    kept = bed.only("inbox").path
    other = inbox(bed, "same", "The release report reads well as a bullet list!")
    assert run(bed) == ["merged"]
    entry = bed.only("inbox")
    assert entry.path in (kept, other)
    assert entry.occurrences == 2
    assert bed.only("superseded").superseded_by == entry.path
    assert run(bed) == [], "a second run has nothing to do"


def test_expired_entry_is_archived_and_may_come_back(bed: Bed) -> None:
    bed.remember(said(GUESS, "a"))
    path = bed.only("inbox").path
    text = bed.files()[path]
    today = bed.store.today().isoformat()
    (bed.vault / path).write_text(text.replace(today, "2020-01-01"), "utf-8")
    assert run(bed) == ["expired"]
    assert bed.only("archived").path == "personal-private/_archive/" + path.rsplit("/", 1)[-1]
    bed.remember(said(GUESS, "b"))
    assert bed.only("inbox").path == path


def test_an_entry_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE="silent")
    bed.note("personal-private/preferences/tests.md", "Mine.", kind="preferences")
    inbox(bed, "tests", "Run the tests before pushing.", occurrences=4)
    before = bed.files()
    (result,) = run(bed)
    assert "already" in result
    assert bed.files() == before


def test_a_note_with_a_decision_is_left_to_review(bed: Bed) -> None:
    inbox(bed, "old", "Old.", created="2020-01-01", updated="2020-01-01")
    bed.decide_in_note("personal-private/_inbox/old.md", "approve")
    assert run(bed) == []


def test_an_inbox_of_a_hundred_thousand_words_keeps_to_its_limit(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triaging, "INBOX_ENTRIES", 5)
    for word in ("apple", "berry", "cherry", "date", "elder", "fig"):
        inbox(bed, word, f"Prefer {word}.")
    run(bed)
    assert len(bed.reviewer.waiting("_inbox")) == 5


def test_every_step_can_be_taken_back(bed: Bed) -> None:
    inbox(bed, "tests", "Run the tests before pushing.", occurrences=4)
    inbox(bed, "one", FOX)
    inbox(bed, "two", FOX + "!")
    inbox(bed, "old", "Old.", created="2020-01-01", updated="2020-01-01")
    before = bed.files()
    assert sorted(run(bed)) == ["expired", "merged", "promoted"]
    bed.undo.carry_out(Selector(last=True))
    assert bed.files() == before


# A runaway session must not bury the statements of others


SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


def guesses(count: int, session: str = "s1") -> list[Candidate]:
    """As different from each other as words can be."""
    return [
        replace(
            GUESS,
            statement=" ".join(SYLLABLES[(n * 7 + k * 11) % 70] + SYLLABLES[(n + k * 13) % 70] for k in range(4)),
            records=(f"{session}-{n}",),
            session=session,
            score=round(0.5 + n / 1000, 3),
        )
        for n in range(count)
    ]


def test_the_surest_make_entries_and_a_rule_always_does() -> None:
    unsure = guesses(3)
    candidates = [unsure[0], RULE, unsure[1], replace(CHOICE, score=0.1), unsure[2]]
    assert beyond_limit(candidates, waiting=0, limit=2) == {0, 2}
    assert beyond_limit(candidates, waiting=1, limit=2) == {0, 2, 4}
    assert beyond_limit(candidates, waiting=9, limit=2) == {0, 2, 3, 4}
    assert beyond_limit(candidates, waiting=9, limit=0) == frozenset()


@pytest.mark.slow
def test_one_session_fills_no_more_than_its_share_however_often_it_is_mined(bed: Bed) -> None:
    candidates = [*guesses(60), RULE]
    first = bed.remember(*candidates)
    assert (first.counts["inboxed"], first.counts["over_limit"], first.counts["saved"]) == (40, 20, 1)
    kept = {one.candidate.records for one in first.routed if one.action is Action.WRITE and one.tier is Tier.LOW}
    assert kept == {(f"s1-{n}",) for n in range(20, 60)}
    before = bed.files()
    again = bed.remember(*candidates)
    assert again.counts == {"known": 41, "over_limit": 20}
    assert bed.files() == before
    later = bed.remember(*[replace(one, records=(f"late-{n}",)) for n, one in enumerate(guesses(80)[70:])])
    assert later.counts == {"over_limit": 10}
    assert bed.remember(*guesses(5, "s2")).counts.get("over_limit") is None


@pytest.mark.slow
def test_after_a_crash_the_same_ones_are_written(bed: Bed) -> None:
    candidates = guesses(50)
    bed.remember(*candidates[30:50])  # all that was written before the crash
    bed.remember(*candidates)
    assert len(bed.entries()) == 40
    records = {record for entry in bed.entries() for source in entry.sources for record in source.records}
    assert records == {f"s1-{n}" for n in range(10, 50)}
