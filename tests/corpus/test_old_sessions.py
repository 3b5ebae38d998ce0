"""Statements of old sessions, in any reading order: limited in number, written once, undone together."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.incubation import Answer
from memoryvault.pipelines.review import Approve, Reject
from memoryvault.runtime.settings import Settings
from memoryvault.services.corpus.backfill import KIND, enqueue_corpus, plan_corpus
from memoryvault.services.ideas.archive import promote
from memoryvault.services.ideas.incubator import decide_on_idea
from memoryvault.services.ideas.ledger import ideas, slug_of
from memoryvault.services.mining import Mined, MiningRequest, mine_transcript
from memoryvault.services.remembering import MemoryReport, remember
from memoryvault.services.undoing import Selector
from memoryvault.tasks.jobs import reflection
from memoryvault.tasks.jobs.corpus_mining import corpus_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.tests.review.support import CHOICE, GUESS, RULE, Bed, said
from memoryvault.vault.pending import question_path

from .sessions import RULE as RULE_IN_WORDS
from .sessions import old_session


def mine_old(bed: Bed, session: str, *candidates: Candidate, run: str = "backfill:a") -> MemoryReport:
    """Remember like the job of an old session; here two proposals and two ideas may wait."""
    found = [replace(each, session=session, records=(f"{session}-{n}",)) for n, each in enumerate(candidates)]
    most = bed.settings.reflection.corpus_review_entries
    with bed.store.lock():
        return remember(found, bed.store, bed.settings, host="claude", run=run, most_waiting=most)


def choices(*scores: float) -> list[Candidate]:
    things = ("fixtures", "diagrams", "invoices", "migrations", "screenshots")
    return [
        replace(CHOICE, statement=f"No, put the {thing} into their own folder", score=score)
        for thing, score in zip(things, scores, strict=False)
    ]


def ideas_of_old(count: int) -> list[Candidate]:
    names = ("museum for kites", "harbour for clocks", "orchard for drums", "theatre for maps", "bakery for shoes")
    return [replace(GUESS, category="idea", statement=f"Idea: a {name} in the shop.") for name in names[:count]]


def statuses(bed: Bed) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in bed.entries():
        found[entry.effective_status] = found.get(entry.effective_status, 0) + 1
    return found


def proposed(bed: Bed) -> set[str]:
    return {entry.body.splitlines()[0].split()[3] for entry in bed.reviewer.waiting("_review")}


def test_old_sessions_do_not_flood_what_waits_for_the_user(bed: Bed) -> None:
    mine_old(bed, "s1", RULE, GUESS, *choices(0.5, 0.5, 0.5, 0.5, 0.5))
    assert statuses(bed) == {"active": 1, "pending": 2, "inbox": 4}


def test_the_inbox_keeps_the_likeliest_hints_twice_as_many_as_may_be_proposed(bed: Bed) -> None:
    hints = [
        replace(GUESS, statement=f"The {thing} may be stale.", claimed_rule=False, score=score / 10)
        for score, thing in enumerate(("cache", "banner", "lockfile", "screenshot", "schedule", "glossary"))
    ]
    for number, hint in enumerate([*hints[3:], *hints[:3]]):
        mine_old(bed, f"s{number}", hint)
    assert statuses(bed) == {"inbox": 4}
    assert {entry.body.split()[2] for entry in bed.entries()} == {"lockfile", "screenshot", "schedule", "glossary"}
    bed.undo.carry_out(Selector(last=True))
    assert statuses(bed) == {}


def test_the_likeliest_are_proposed_whichever_session_is_read_first(bed: Bed) -> None:
    for number, choice in enumerate(choices(0.4, 0.7, 0.3, 0.6)):
        mine_old(bed, f"s{number}", choice)
    assert proposed(bed) == {"diagrams", "migrations"}
    assert statuses(bed) == {"pending": 2, "inbox": 2}


def test_frequent_statements_rank_above_likely_ones(bed: Bed) -> None:
    mine_old(bed, "s1", *choices(0.9, 0.8))
    for session in ("s2", "s3", "s4"):
        mine_old(bed, session, GUESS)
    (often,) = (entry for entry in bed.reviewer.waiting("_review") if entry.occurrences == 3)
    assert {source.session for source in often.sources} == {"s2", "s3", "s4"}
    assert statuses(bed) == {"pending": 2, "inbox": 1}


def test_unlikely_statements_stay_in_the_inbox_however_frequent(bed: Bed) -> None:
    for session in ("s1", "s2", "s3"):
        mine_old(bed, session, *choices(0.9, 0.8))
    for session in ("s4", "s5", "s6"):
        mine_old(bed, session, replace(GUESS, score=0.2))
    assert bed.only("inbox").occurrences == 3


def test_a_proposal_of_a_fresh_session_takes_no_room_and_never_gives_way(bed: Bed) -> None:
    bed.remember(said(choices(0.1)[0], "fresh"))
    mine_old(bed, "s1", *choices(0, 0.5, 0.6, 0.7)[1:])
    assert proposed(bed) == {"fixtures", "invoices", "migrations"}


def test_a_decision_makes_room_for_the_next(bed: Bed) -> None:
    mine_old(bed, "s1", *choices(0.9, 0.8))
    for entry in bed.reviewer.waiting("_review"):
        bed.reviewer.decide(entry.path, Reject(), run="t")
    mine_old(bed, "s2", choices(0.9, 0.8, 0.1)[2])
    assert proposed(bed) == {"invoices"}


def test_a_proposal_in_which_the_user_has_written_a_decision_stays_where_it_is(bed: Bed) -> None:
    mine_old(bed, "s1", *choices(0.4, 0.5))
    for entry in bed.reviewer.waiting("_review"):
        bed.decide_in_note(entry.path, "approve")
    mine_old(bed, "s2", *choices(0.4, 0.5, 0.8)[2:])
    bed.reviewer.apply_notes()
    assert statuses(bed) == {"active": 2, "pending": 1}


def test_an_idea_that_only_an_agent_mentioned_takes_no_room(bed: Bed) -> None:
    assert mine_old(bed, "s1", replace(ideas_of_old(1)[0], role="assistant")).counts == {"no_room": 1}


@pytest.mark.parametrize("answer", ["approve", "reject", "keep", "archive", "promote"])
def test_an_idea_on_which_the_user_has_decided_makes_room_for_the_next(bed: Bed, answer: str) -> None:
    found = ideas_of_old(4)
    assert mine_old(bed, "s1", *found[:3]).counts == {"ideas": 2, "no_room": 1}
    assert mine_old(bed, "s2", found[3]).counts == {"no_room": 1}, "none was decided on"
    idea = next(ideas(bed.store))
    if answer in ("approve", "reject"):
        decision = Approve() if answer == "approve" else Reject()
        bed.reviewer.decide(question_path(slug_of(idea.path)), decision, run="t")
    elif answer == "promote":
        promote(bed.journal, slug_of(idea.path))
    else:
        decide_on_idea(bed.settings, bed.journal, slug_of(idea.path), Answer(answer), run="t")
    assert mine_old(bed, "s3", found[3]).counts == {"ideas": 1}


def test_one_occurrence_strengthens_what_a_live_session_left_in_the_inbox(bed: Bed) -> None:
    bed.remember(said(GUESS, "live-1"), said(GUESS, "live-2"))
    mine_old(bed, "s1", GUESS)
    assert bed.only("pending").occurrences == 3


@pytest.mark.parametrize("later_first", [True, False])
def test_later_of_two_exclusive_rules_wins_in_any_reading_order(bed: Bed, later_first: bool) -> None:
    earlier = replace(RULE, statement="Always keep functions below 40 lines.", said_at="2026-01-05T10:00:00Z")
    later = replace(RULE, statement="Always keep functions below 50 lines.", said_at="2026-02-05T10:00:00Z")
    for session, rule in zip(("s1", "s2"), (later, earlier) if later_first else (earlier, later), strict=True):
        mine_old(bed, session, rule)
    if later_first:
        assert "50" in bed.only("active").body
        assert statuses(bed) == {"active": 1}
    else:
        assert "40" in bed.only("active").body
        assert "50" in bed.only("pending").body


def test_a_memory_has_the_day_on_which_it_was_said_first_whichever_session_is_read_first(bed: Bed) -> None:
    days = ("2026-03-01T10:00:00Z", "2026-01-01T10:00:00Z", "2026-02-01T10:00:00Z")
    idea = ideas_of_old(1)[0]
    for session, day in zip(("s1", "s2", "s3"), days, strict=True):
        mine_old(bed, session, replace(RULE, said_at=day), replace(idea, said_at=day))
    assert bed.only("active").surfaced_at == min(days)
    found = bed.only("incubating")
    assert (found.surfaced_at, found.surfaced_in_session) == (min(days), "s2")


def test_backfill_of_many_sessions_is_one_run_to_undo(bed: Bed) -> None:
    """Also if fresh sessions were mined in between, and proposals had to make room for more likely ones."""
    bed.remember(said(GUESS, "live"))
    found = choices(0.4, 0.5, 0.6, 0.7)
    mine_old(bed, "s1", RULE, *found[:2])
    bed.remember(said(replace(RULE, statement="Never deploy after lunch."), "live"))
    fresh = {entry.title for entry in bed.entries() if entry.sources[0].session == "live"}
    mine_old(bed, "s2", GUESS, *found[2:])
    mine_old(bed, "s3", replace(RULE, statement="Always write a changelog line."), run="backfill:b")
    plan = bed.undo.carry_out(Selector(last=True))
    assert (plan.run, plan.sessions) == ("backfill:b", 1)
    plan = bed.undo.carry_out(Selector(last=True))
    assert (plan.run, plan.left) == ("backfill:a", 0)
    assert {entry.title for entry in bed.entries()} == fresh
    assert bed.only("inbox").occurrences == 1
    mine_old(bed, "s1", RULE, *found[:2])
    assert len(bed.entries()) == 2, "what was taken back is not written again"


@pytest.mark.slow
def test_interrupted_mining_is_done_once(bed: Bed) -> None:
    """When the session is read again, a proposal that made room is in the inbox already."""
    mine_old(bed, "s1", *choices(0.4, 0.5))
    code = (
        "from memoryvault.tests.corpus.test_old_sessions import choices, mine_old\n"
        "from memoryvault.tests.review.support import Bed\n"
        "mine_old(Bed('.', os.environ), 's2', *choices(0.4, 0.5, 0.6, 0.7)[2:])\n"
    )
    assert bed.run_python(code, kill_point="journal-applied@3") == -9
    mine_old(bed, "s2", *choices(0.4, 0.5, 0.6, 0.7)[2:])
    assert proposed(bed) == {"invoices", "migrations"}
    assert statuses(bed) == {"pending": 2, "inbox": 2}


def test_a_long_session_is_mined_part_by_part_to_its_end(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    said_in_it = ("Please look at part 1.", "And at part 2.", RULE_IN_WORDS)
    old_session(bed.settings.session_folders["claude"] / "-home-dev-shop", 1, *said_in_it)
    monkeypatch.setattr("memoryvault.services.mining.READ_SECONDS", 0.0)
    read: list[int] = []

    def mine_here(job: object, settings: Settings, program: str, request: dict[str, Any], **_: object) -> Mined:
        read.append(request["mined_until"])
        return mine_transcript(MiningRequest(**request))

    monkeypatch.setattr(reflection, "run_json_child", mine_here)
    enqueue_corpus(bed.settings, plan_corpus(bed.settings))
    with open_ledger(bed.settings) as ledger:
        executor = Executor(ledger, {KIND: partial(corpus_handler, bed.settings)}, 30.0)
        while (taken := ledger.take(lambda: "test", 30.0)) is not None:
            if taken.kind == KIND:
                executor.run(taken)
        assert [job.state for job in ledger.list_jobs(kind=KIND)] == ["done"]
    assert len(read) == 3
    assert sorted(set(read)) == read, "each part once"
    assert plan_corpus(bed.settings).known == 1
    assert [entry.path for entry in bed.entries() if "linter" in entry.body]
