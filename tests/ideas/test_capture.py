"""A captured idea becomes a note and, with the user's consent, a section in Ideas.md."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from memoryvault.cli.context import Context
from memoryvault.cli.editor import Drafts
from memoryvault.cli.review_dialogue import Dialogue
from memoryvault.pipelines.review import Approve, Reject, Supersede
from memoryvault.runtime.errors import BoundaryRefused, EntryInvalid, EntryNotFound, MemoryVaultError, SettingsError
from memoryvault.services.agent_proposals import AgentProposals
from memoryvault.services.boundary import outside_write
from memoryvault.services.ideas.ledger import MOST_QUESTIONS, ask_next, find_idea, ideas, pitch_of
from memoryvault.services.journal import Change
from memoryvault.services.remembering import ideas_to_research
from memoryvault.services.reviewing import DecisionOutcome
from memoryvault.services.undoing import Selector, Why
from memoryvault.tasks.jobs.research import WebAccess, plan
from memoryvault.vault.evidence import LOOKED_UP, strip_evidence
from memoryvault.vault.scrubbed import Scrubbed

from ..review.support import RULE, Bed, said
from .support import IDEA, INCUBATOR, OTHER, SLUG, ideas_file, outside, write_down

SIX = [
    replace(IDEA, statement=f"Idea: a museum of {thing}.", records=(thing,))
    for thing in ("kites", "looms", "clocks", "boats", "lamps", "drums")
]


def test_an_idea_is_kept_with_its_session_its_time_its_reason_and_its_passage(bed: Bed) -> None:
    bed.remember(IDEA)
    entry = find_idea(bed.store, SLUG)
    assert (entry.kind, entry.status, entry.surfaced_in_session) == ("idea", "incubating", "s1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry.surfaced_at or "")
    assert IDEA.reason in entry.body
    assert f"> {IDEA.excerpt}" in entry.body
    with pytest.raises(EntryNotFound):
        find_idea(bed.store, "no-such-idea")
    with pytest.raises(EntryInvalid):
        find_idea(bed.store, "../../etc")


@pytest.mark.parametrize(
    ("said_at", "kept"), [("2024-02-03T04:05:06Z", True), ("2999-01-01T00:00:00Z", False), (None, False)]
)
def test_idea_of_an_old_session_keeps_its_time_in_a_new_note(silent: Bed, said_at: str | None, kept: bool) -> None:
    before = silent.journal.stamp()
    rule = replace(IDEA, category="preference", statement="Always use tabs in this repo.", said_at=said_at)
    silent.remember(replace(IDEA, said_at=said_at), rule)
    for entry in silent.entries():
        if kept:
            assert entry.surfaced_at == said_at
        elif entry.kind == "idea":
            assert before <= (entry.surfaced_at or "") <= silent.journal.stamp()
        else:
            assert entry.surfaced_at is None
        assert entry.created == entry.updated == silent.store.today().isoformat()


def test_a_list_of_ideas_inside_the_vault_is_refused(silent: Bed) -> None:
    (silent.root / "way").symlink_to(silent.vault)
    for target in (silent.vault / "Ideas.md", silent.root / "way" / "Ideas.md"):
        silent.env = {**silent.env, "IDEAS_SURFACE_PATH": str(target)}
        with pytest.raises(SettingsError, match="outside of it: name a note there"):
            write_down(silent, "Offline maps", "Ship the tiles with the app.")
        assert silent.files() == {}


def test_each_idea_of_a_session_has_its_note_and_its_section_in_silent_mode(silent: Bed) -> None:
    remembered = silent.remember(IDEA, OTHER)
    slugs = [entry.path.split("/")[-2] for entry in ideas(silent.store)]
    assert len(slugs) == 2
    text = ideas_file(silent)
    today = silent.store.today().isoformat()
    assert re.findall(r"^## (\S+): ", text, re.MULTILINE) == [today, today]
    for slug in slugs:
        assert f"\nSee deep research: [[MemoryVault/{INCUBATOR}/{slug}/_index.md]]\n" in text
    assert not (silent.vault / "personal-private/_review").exists(), "silent mode asks nothing"
    assert sorted(ideas_to_research(silent.store, remembered)) == sorted(slugs)


def test_the_note_that_ideas_md_leads_to_says_whether_anything_was_looked_up(silent: Bed) -> None:
    silent.remember(IDEA)
    write_down(silent, "Offline maps", "Ship the tiles with the app.")
    for entry in ideas(silent.store):
        assert entry.body.rstrip().endswith("What is looked up about this idea is listed below.")
        assert LOOKED_UP not in strip_evidence(entry.body), "it is no part of what the idea says"
        assert LOOKED_UP not in pitch_of(entry)
    assert "looked up" not in ideas_file(silent)


def test_the_same_session_mined_again_changes_nothing(silent: Bed) -> None:
    silent.remember(IDEA)
    before, text = silent.files(), ideas_file(silent)
    remembered = silent.remember(IDEA)
    assert (silent.files(), ideas_file(silent)) == (before, text)
    assert ideas_to_research(silent.store, remembered) == [SLUG], "an attempt that died before it asked asks now"


@pytest.mark.parametrize("mode", ["interactive", "auto"])
def test_nothing_outside_the_vault_is_written_before_the_user_agreed(bed: Bed, mode: str) -> None:
    bed.env = {**bed.env, "MEMORY_REVIEW_MODE": mode}
    (bed.root / "Ideas.md").write_bytes(b"# Mine\r\nno end")
    (bed.root / "Diary.md").write_text("private")
    before = outside(bed)
    bed.remember(IDEA, OTHER, said(IDEA, "s2"))
    assert outside(bed) == before
    assert len(list(ideas(bed.store))) == 2
    assert len(bed.reviewer.waiting()) == (2 if mode == "interactive" else 0), "auto asks nothing and writes nothing"


def test_an_idea_that_an_agent_wrote_down_reaches_ideas_md_once_the_user_approves_it(bed: Bed) -> None:
    for title, summary in (("Offline maps", "Ship the map with the app."), ("Paper maps", "Print them.")):
        AgentProposals(bed.settings, bed.store).propose("idea", title, summary)
    before = outside(bed)
    first, second = bed.reviewer.waiting()
    decided = bed.reviewer.decide(first.path, Approve(), run="r")
    assert decided.listed_in == str(bed.root / "Ideas.md")
    section = f"## {bed.store.today()}: Offline maps\nShip the map with the app.\n"
    assert section in ideas_file(bed)
    assert bed.reviewer.waiting() == [second], "nothing more is asked"
    bed.reviewer.undo_last()
    assert outside(bed) == before
    bed.reviewer.decide(second.path, Reject(), run="r")
    assert outside(bed) == before


def test_yes_to_the_question_writes_the_section_and_no_is_remembered(bed: Bed) -> None:
    bed.remember(IDEA, OTHER)
    first, second = bed.reviewer.waiting()
    assert f"> See deep research: [[MemoryVault/{INCUBATOR}/" in first.body, "the question says what would be written"
    assert f"stays in [[{INCUBATOR}/" in first.body, "it is in the vault"
    assert "Ideas.md" in first.body
    assert str(bed.root) not in first.body
    with pytest.raises(EntryInvalid):
        bed.reviewer.decide(first.path, Supersede("x"), run="t")
    done = bed.reviewer.decide(first.path, Approve(), run="t")
    assert done.verdict == "surfaced"
    refused = bed.reviewer.decide(second.path, Reject(), run="t")
    assert refused.verdict == "not surfaced"
    assert bed.store.read(refused.path).extra["surface"] == "declined"
    text = ideas_file(bed)
    assert text.count("## 2") == 1
    assert bed.reviewer.waiting() == []
    bed.remember(said(IDEA, "s3"), said(OTHER, "s3"))
    assert bed.reviewer.waiting() == [], "an idea is asked for once"
    assert ideas_file(bed) == text


@pytest.mark.parametrize("other", [{"role": "assistant"}, {"confirmed": False}])
def test_idea_that_nothing_says_the_user_typed_waits_in_the_incubator(silent: Bed, other: dict[str, Any]) -> None:
    silent.remember(replace(IDEA, **other))
    assert len(list(ideas(silent.store))) == 1
    assert outside(silent) == {}


@pytest.mark.parametrize("other", [{"role": "assistant"}, {"role": "tool"}, {"typed": False}, {"confirmed": False}])
def test_links_that_only_an_agent_mentioned_are_not_followed(silent: Bed, other: dict[str, Any]) -> None:
    mentioned = replace(IDEA, excerpt=f"{IDEA.excerpt} See https://example.org/agent", **other)
    silent.remember(mentioned)
    (idea,) = ideas(silent.store)
    assert plan(silent.settings, WebAccess(), idea).links == []
    silent.remember(replace(said(IDEA, "s2"), excerpt="Yes: https://example.org/mine"))
    silent.remember(replace(said(mentioned, "s3"), excerpt="Or https://example.org/other"))
    (idea,) = ideas(silent.store)
    assert plan(silent.settings, WebAccess(), idea).links == ["https://example.org/mine"]


def test_a_heap_of_ideas_is_asked_for_a_few_at_a_time(bed: Bed) -> None:
    bed.remember(*SIX)
    assert len(list(ideas(bed.store))) == len(SIX)
    assert len(bed.reviewer.waiting()) == MOST_QUESTIONS
    asked = set()
    for _ in range(2):
        while waiting := bed.reviewer.waiting():
            asked.add(waiting[0].extra["idea"])
            decision = Approve() if len(asked) % 2 else Reject()
            bed.reviewer.decide(waiting[0].path, decision, run=f"t{len(asked)}")
        ask_next(bed.settings, bed.journal)
    assert len(asked) == len(SIX)
    assert ideas_file(bed).count("\n## ") == len(SIX) / 2
    assert ask_next(bed.settings, bed.journal) == 0


def test_an_idea_that_was_asked_about_later_is_named_and_stays_with_its_question(bed: Bed) -> None:
    """That another idea was answered made room for the question: the idea is not as the run left it."""
    bed.remember(*SIX)
    (question, *_) = bed.reviewer.waiting()
    bed.reviewer.decide(question.path, Reject(), run="t")
    ask_next(bed.settings, bed.journal)
    declined = {entry.path for entry in ideas(bed.store) if entry.extra.get("surface") == "declined"}
    (asked,) = (act.changes[0].path for act in bed.journal.acts() if act.what.startswith("asked: "))
    its_question = f"personal-private/_review/surface-{asked.split('/')[-2]}.md"
    plan = bed.undo.carry_out(Selector(last=True))
    assert {entry.path for entry in ideas(bed.store)} == declined | {asked}
    assert [entry.path for entry in bed.reviewer.waiting()] == [its_question]
    assert {step.path: step.why for step in plan.steps if step.step == "leave"} == {
        asked: Why.CHANGED,
        **dict.fromkeys(declined, Why.DECIDED),
    }


def test_mode_auto_asks_about_no_waiting_idea(bed: Bed) -> None:
    bed.remember(*SIX)
    for entry in bed.reviewer.waiting():
        (bed.vault / entry.path).unlink()
    bed.env = {**bed.env, "MEMORY_REVIEW_MODE": "auto"}
    assert ask_next(bed.settings, bed.journal) == 0
    bed.env = {**bed.env, "MEMORY_REVIEW_MODE": "interactive"}
    assert ask_next(bed.settings, bed.journal) == len(SIX) - MOST_QUESTIONS


def test_a_copy_of_the_question_is_answered_with_it_and_goes(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = bed.reviewer.waiting()
    copy = question.path.replace(".md", "-2.md")
    (bed.vault / copy).write_bytes((bed.vault / question.path).read_bytes())
    for path in (question.path, copy):
        done = bed.reviewer.decide(path, Approve(), run="t")
        assert isinstance(done, DecisionOutcome)
        assert done.verdict == "surfaced"
        assert not (bed.vault / path).exists()


def test_a_step_that_changed_nothing_takes_no_other_decision_back(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = bed.reviewer.waiting()
    dialogue = Dialogue(bed.reviewer, Context(bed.env), [question, question], [], Drafts())
    bed.reviewer.decide(question.path, Approve(), run=dialogue.run_name)
    dialogue.go_on("surfaced")
    dialogue.go_on("surfaced")
    dialogue.undo()
    assert dialogue.at == 1, "nothing was changed there"
    assert SLUG in ideas_file(bed)
    dialogue.undo()
    assert dialogue.at == 0
    assert not (bed.root / "Ideas.md").exists() or SLUG not in ideas_file(bed)


def test_taking_the_answer_back_takes_the_section_out_and_asks_again(bed: Bed) -> None:
    bed.remember(IDEA)
    (bed.root / "Ideas.md").write_text("# Mine\n")
    (question,) = bed.reviewer.waiting()
    bed.reviewer.decide(question.path, Approve(), run="t")
    with (bed.root / "Ideas.md").open("a") as file:
        file.write("\n## Written since\n")
    bed.reviewer.undo_last()
    assert ideas_file(bed) == "# Mine\n\n## Written since\n"
    assert [entry.path for entry in bed.reviewer.waiting()] == [question.path]


@pytest.mark.parametrize(
    ("typed", "left"), [("\n## Written since\n", 0), ("My own thoughts on it.\n", 1)], ids=["below it", "in it"]
)
def test_undo_takes_note_and_section_back_but_none_that_the_user_added_to(silent: Bed, typed: str, left: int) -> None:
    (silent.root / "Ideas.md").write_text("# Mine\n")
    silent.remember(IDEA)
    before = ideas_file(silent)
    with (silent.root / "Ideas.md").open("a") as file:
        file.write(typed)
    assert silent.undo.carry_out(Selector(last=True)).left == left
    assert ideas_file(silent) == ("# Mine\n" if left == 0 else before) + typed
    assert left or list(ideas(silent.store)) == []


def test_an_idea_said_again_in_like_words_is_evidence_for_the_first(bed: Bed) -> None:
    bed.remember(IDEA)
    again = said(
        IDEA, "s2", "We should build a small page that shows how many charges were retried. It would end the guessing."
    )
    bed.remember(replace(again, excerpt="that page with the retried charges again"))
    (entry,) = ideas(bed.store)
    assert entry.occurrences == 2
    assert {source.session for source in entry.sources} == {"s1", "s2"}
    assert "> that page with the retried charges again" in entry.body
    assert "Session s2" in entry.body


def test_another_idea_of_the_same_name_gets_a_name_of_its_own(bed: Bed) -> None:
    first = write_down(bed, "Retry page")
    second = write_down(bed, "Retry page", "Print every failed webhook on paper and post it to the office.")
    third = write_down(bed, "Retry page")
    assert first.path == f"{INCUBATOR}/retry-page/_index.md"
    assert second.path == f"{INCUBATOR}/retry-page-2/_index.md"
    assert (third.path, third.is_new, third.occurrences) == (first.path, False, 2)


def test_a_typed_title_makes_an_idea_of_its_own_though_the_summary_is_alike(bed: Bed) -> None:
    first = write_down(bed, "Dark mode", "A toggle in the settings page.")
    second = write_down(bed, "Compact mode", "A toggle in the settings page.")
    again = write_down(bed, "The dark mode", "A toggle in the settings page.")
    assert second.is_new
    assert (again.path, again.is_new) == (first.path, False)
    assert {entry.title for entry in ideas(bed.store)} == {"Dark mode", "Compact mode"}


def test_the_note_of_a_mined_idea_takes_the_title_that_is_typed_for_it(bed: Bed) -> None:
    bed.remember(IDEA)
    assert not write_down(bed, "Retry dashboard", IDEA.statement).is_new
    (idea,) = ideas(bed.store)
    assert idea.title == "Retry dashboard"
    assert write_down(bed, "Charges by day", IDEA.statement).is_new


@pytest.mark.parametrize("is_declined", [False, True])
def test_an_idea_that_the_user_writes_down_is_no_longer_asked_for_or_declined(bed: Bed, is_declined: bool) -> None:
    bed.remember(IDEA)
    (question,) = bed.reviewer.waiting()
    if is_declined:
        bed.reviewer.decide(question.path, Reject(), run="t")
    written = write_down(bed, "Retry page", IDEA.statement)
    assert (written.is_new, written.appended) == (False, True)
    (idea,) = ideas(bed.store)
    assert "surface" not in idea.extra
    assert bed.reviewer.waiting() == []
    assert ideas_file(bed).count("\n## ") == 1


@pytest.mark.parametrize("fault", ["no folder", "read-only", "a folder", "in a file"])
def test_a_list_that_cannot_be_written_holds_nothing_else_up(silent: Bed, fault: str) -> None:
    """What was begun is taken back; it must not wait for the list and all later memories with it."""
    target = silent.root / "Notes" / "Ideas.md"
    if fault == "read-only":
        target.parent.mkdir()
        target.write_text("# Mine\n")
        target.chmod(0o444)
    elif fault == "a folder":
        target.mkdir(parents=True)
    elif fault == "in a file":
        target.parent.write_text("")
    silent.env = {**silent.env, "IDEAS_SURFACE_PATH": str(target)}
    with pytest.raises(MemoryVaultError, match=r"Ideas\.md|Notes"):
        write_down(silent, "Retry page")
    assert not silent.journal.is_interrupted
    assert list(ideas(silent.store)) == []
    silent.remember(IDEA, RULE)
    assert not silent.journal.is_interrupted
    assert {entry.kind for entry in silent.entries()} == {"idea", "preferences"}
    if fault == "read-only":
        assert target.read_text() == "# Mine\n"


def test_a_list_that_goes_after_a_crash_holds_nothing_up(silent: Bed) -> None:
    """Killed between the note and the list, then the list's folder was renamed: before, not half."""
    folder = silent.root / "Notes"
    folder.mkdir()
    silent.env = {**silent.env, "IDEAS_SURFACE_PATH": str(folder / "Ideas.md")}
    assert silent.run_python(CAPTURE, "journal-applied") == -9
    folder.rename(silent.root / "Renamed")
    assert silent.journal.recover(), "there was something to end"
    assert not silent.journal.is_interrupted
    assert list(ideas(silent.store)) == []


def test_without_consent_no_path_leads_outside(bed: Bed) -> None:
    target = str(bed.root / "Ideas.md")
    with pytest.raises(BoundaryRefused):
        outside_write(bed.store, target, Scrubbed("x"), None, None)
    with pytest.raises(BoundaryRefused):
        bed.journal.commit([Change(target, None, Scrubbed("x"))], run="t", actor="reflection", what="t")
    assert not bed.journal.is_interrupted
    assert outside(bed) == {}


def test_a_save_of_the_editor_in_between_is_kept(silent: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Obsidian saves after the file was read and before it is replaced: looked at again, nothing is lost."""
    ideas_path = silent.root / "Ideas.md"
    ideas_path.write_text("# Mine\n")
    from memoryvault.vault import store as store_module

    saved: list[int] = []

    def save_once(name: str) -> None:
        if name == "vault-before-rename" and not saved and silent.vault.rglob("_index.md"):
            saved.append(1)
            ideas_path.write_text("# Mine\n\nTyped just now.\n")

    monkeypatch.setattr(store_module, "kill_point", save_once)
    silent.remember(IDEA)
    assert ideas_file(silent).startswith("# Mine\n\nTyped just now.\n\n## ")
    assert len(list(ideas(silent.store))) == 1


CAPTURE = """
from memoryvault.services.remembering import remember
from memoryvault.tests.ideas.support import IDEA
with store.lock():
    remember([IDEA], store, settings, host="claude")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    ["journal-pending", "vault-before-rename", "vault-before-rename@2", "journal-applied", "journal-applied@2",
     "journal-recorded"],
)  # fmt: skip
def test_killed_at_any_step_an_idea_is_in_both_places_once(silent: Bed, point: str) -> None:
    (silent.root / "Ideas.md").write_text("# Mine\n")
    assert silent.run_python(CAPTURE, point) == -9
    silent.remember(IDEA)  # the job runs again
    assert len(list(ideas(silent.store))) == 1
    assert ideas_file(silent).startswith("# Mine\n\n## ")
    assert ideas_file(silent).count("\n## ") == 1


# An idea has the date on which it was said, however late its session is mined


LONG_AGO = replace(IDEA, said_at="2026-01-30T15:43:58Z")
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


WHERE = "Said while working on shop."
LONG = "If we have the right agent in the resume commands too, we could also put it into the log?"


@pytest.mark.parametrize(
    ("statement", "section"),
    [
        ("We could draw it. It would end it. And the calls.", ["We could draw it", "It would end it. And the calls."]),
        ("we could later draw the states", ["We could later draw the states", WHERE]),
        ("Later we could draw it (in answer to: “Draw the states?”)", ["Later we could draw it", WHERE]),
        (f"Great. And now: {LONG[0].lower()}{LONG[1:]}", [LONG, WHERE]),
    ],
    ids=["several sentences", "one sentence", "context of an answer", "longer than a note's title"],
)
def test_the_heading_is_the_first_sentence_above_rest_or_place(silent: Bed, statement: str, section: list[str]) -> None:
    silent.remember(replace(IDEA, statement=statement, excerpt=statement, project="shop", scope="project"))
    assert only_section(silent) == section


def test_the_summary_that_the_user_gave_stands_as_it_was_given(silent: Bed) -> None:
    write_down(silent, "Retry page", "retry page")
    assert only_section(silent) == ["Retry page", "retry page"]
