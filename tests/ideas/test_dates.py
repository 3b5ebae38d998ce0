"""An idea has the date on which it was said, however late its session is mined."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.pipelines.review import Approve
from memoryvault.services.ideas.ledger import ideas
from memoryvault.tests.support.forked import ForkedSandbox

from ..corpus.sessions import old_session
from ..review.support import Bed, said
from .support import IDEA, OTHER, ideas_file, write_down

LONG_AGO = replace(IDEA, said_at="2026-01-30T15:43:58Z")
BEFORE = replace(OTHER, said_at="2025-12-24T08:00:00Z")
HEADINGS = re.compile(r"^## (\d{4}-\d\d-\d\d): ", re.MULTILINE)


@pytest.fixture(params=["Pacific/Kiritimati", "Pacific/Honolulu"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The machine's, 14 hours before UTC and 10 behind."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_a_section_bears_the_day_of_the_user_on_which_the_idea_was_said(silent: Bed, zone: str) -> None:
    silent.remember(replace(IDEA, said_at="2026-01-30T10:30:00Z"), replace(OTHER, said_at="2026-01-30T09:30:00Z"))
    other, one = ("2026-01-29", "2026-01-30") if zone.endswith("Honolulu") else ("2026-01-30", "2026-01-31")
    assert HEADINGS.findall(ideas_file(silent)) == [other, one]


def test_sections_of_old_sessions_are_in_order_whichever_is_mined_first(silent: Bed) -> None:
    (silent.root / "Ideas.md").write_text("# Ideas\n\nMy own words.\n")
    write_down(silent, "Museum of kites")
    silent.remember(LONG_AGO)
    silent.remember(BEFORE)
    days = HEADINGS.findall(ideas_file(silent))
    assert days == ["2025-12-24", "2026-01-30", silent.store.today().isoformat()]
    assert ideas_file(silent).startswith("# Ideas\n\nMy own words.\n\n## 2025-12-24: ")


def test_question_shows_exactly_what_a_yes_writes(bed: Bed) -> None:
    bed.remember(replace(LONG_AGO, project="shop", scope="project"))
    (question,) = bed.reviewer.waiting()
    shown = "".join(f"{line.removeprefix('> ')}\n" for line in question.body.splitlines() if line.startswith("> "))
    assert HEADINGS.findall(shown) == ["2026-01-30"]
    bed.reviewer.decide(question.path, Approve(), run="t")
    assert ideas_file(bed) == f"# Ideas\n\n{shown}"


def test_an_idea_said_again_keeps_the_time_it_came_up(silent: Bed) -> None:
    silent.remember(LONG_AGO)
    text = ideas_file(silent)
    silent.remember(replace(said(LONG_AGO, "s2"), said_at="2026-08-01T00:00:00Z"))
    (entry,) = ideas(silent.store)
    assert (entry.surfaced_at, entry.occurrences) == (LONG_AGO.said_at, 2)
    assert ideas_file(silent) == text


@pytest.mark.parametrize("broken", ["", "last week", "9999-12-31T23:59:59-12:00"])
def test_a_note_that_does_not_tell_when_it_was_said_has_the_day_it_was_made(bed: Bed, broken: str) -> None:
    bed.remember(LONG_AGO)
    (entry,) = ideas(bed.store)
    bed.edit(entry.path, f"surfaced_at: {LONG_AGO.said_at}", f"surfaced_at: {broken}")
    bed.edit(entry.path, f"created: {entry.created}", "created: 2026-02-01")
    (question,) = bed.reviewer.waiting()
    bed.reviewer.decide(question.path, Approve(), run="t")
    assert HEADINGS.findall(ideas_file(bed)) == ["2026-02-01"]


# What a section says


def only_section(bed: Bed) -> list[str]:
    heading, summary, _ = ideas_file(bed).removeprefix("# Ideas\n\n").splitlines()
    return [heading.partition(": ")[2], summary]


ONE = replace(
    IDEA, statement="we could later draw the states", excerpt="we could later draw the states", project="shop"
)


def test_the_first_sentence_is_the_heading_and_the_next_are_the_summary(silent: Bed) -> None:
    silent.remember(replace(ONE, statement="We could draw it. It would end the guessing. And the calls."))
    assert only_section(silent) == ["We could draw it", "It would end the guessing. And the calls."]


def test_one_sentence_alone_is_followed_by_where_it_was_said(silent: Bed) -> None:
    silent.remember(replace(ONE, scope="project"))
    assert only_section(silent) == ["We could later draw the states", "Said while working on shop."]


def test_a_sentence_that_the_title_of_the_note_cuts_is_whole_where_a_heading_has_room_for_it(silent: Bed) -> None:
    statement = (
        "Great. And now: if we have the right agent in the resume commands too, we could also put it into the log?"
    )
    silent.remember(replace(ONE, scope="project", statement=statement))
    whole = "If we have the right agent in the resume commands too, we could also put it into the log?"
    assert only_section(silent) == [whole, "Said while working on shop."]


def test_the_summary_that_the_user_gave_stands_as_it_was_given(silent: Bed) -> None:
    write_down(silent, "Retry page", "retry page")
    assert only_section(silent) == ["Retry page", "retry page"]


# From the sessions to the list


@pytest.mark.slow
def test_a_backfill_lists_ideas_by_the_days_they_were_said_and_a_yes_writes_that_day(tmp_path: Path) -> None:
    sandbox: Sandbox = ForkedSandbox(tmp_path)
    folder = sandbox.projects / "-home-dev-shop"
    texts = ("Idea: a museum of kites in the shop.", "Idea: print every failed webhook on paper.")
    for number, text in enumerate(texts, 1):
        path = old_session(folder, number, text)
        path.write_text(path.read_text("utf-8").replace("2026-03-01T", f"2026-0{5 - number}-01T"), "utf-8")
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory("service", "worker", "--until-idle")
    listed = sandbox.json("idea", "list")
    assert sorted(idea["surfaced_at"][:10] for idea in listed) == ["2026-03-01", "2026-04-01"]
    assert {line.split()[2] for line in sandbox.memory("idea", "list").splitlines()[1:]} == {"2026-03-01", "2026-04-01"}
    for idea in sorted(listed, key=lambda one: str(one["surfaced_at"]), reverse=True):
        sandbox.memory("review", "--decide", f"surface-{idea['slug']}=approve")
    text = (sandbox.vault.parent / "Ideas.md").read_text("utf-8")
    assert HEADINGS.findall(text) == ["2026-03-01", "2026-04-01"]
    assert sandbox.json("idea", "gc") == [], "captured today, however long ago it was said"
    sandbox.memory("reflect", "corpus", "--reset", "--execute")
    sandbox.memory("service", "worker", "--until-idle")
    dated = {idea["slug"]: idea["surfaced_at"] for idea in listed}
    assert {idea["slug"]: idea["surfaced_at"] for idea in sandbox.json("idea", "list")} == dated, "mined anew"
    assert (sandbox.vault.parent / "Ideas.md").read_text("utf-8") == text
