"""Dismiss an entry by its name, with the effect of `status: dismissed` in the note, and undo it."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from memoryvault.cli.main import main
from memoryvault.pipelines.incubation import SURFACE_KIND
from memoryvault.pipelines.learned import APPROVED_SHIFT, LEAST_DECISIONS, learned_shift, shifted
from memoryvault.pipelines.review import Approve, Reject, Supersede
from memoryvault.pipelines.routing import Action, route
from memoryvault.runtime.errors import EditConflict, EntryInvalid, UsageError
from memoryvault.runtime.layout import WATCHLIST
from memoryvault.services.agent_proposals import AgentProposals
from memoryvault.services.decision_property import SETTLED_SECONDS
from memoryvault.services.entry_decisions import dismiss
from memoryvault.services.entry_names import find_entry, resolve_entry
from memoryvault.services.indexing import APPLY_KEY
from memoryvault.services.known_memories import VaultMemories
from memoryvault.services.semantic_similarity import SemanticSimilarity
from memoryvault.tasks.jobs.sweeps import apply_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.tests.support.command import Command
from memoryvault.vault.automemory import TOPIC_KIND
from memoryvault.vault.store import VaultStore

from .support import CHOICE, GUESS, RULE, TABS, Bed, said, tabs


def test_dismissed_note_of_the_user_is_not_proposed_in_any_kind(bed: Bed) -> None:
    bed.note("personal-private/decision/pnpm.md", RULE.statement, kind="decision")
    dismiss(bed.reviewer, "personal-private/decision/pnpm.md")
    assert bed.remember(RULE).written == ()
    proposed = AgentProposals(bed.settings, bed.store).propose("preferences", "pnpm", RULE.statement)
    assert proposed.verdict == "rejected before"


@pytest.mark.parametrize("candidate", [CHOICE, GUESS])
def test_dismissing_a_waiting_note_rejects_it(bed: Bed, candidate: object) -> None:
    (path,) = bed.remember(replace(RULE, **vars(candidate))).written
    done = dismiss(bed.reviewer, path)
    assert (done.verdict, bed.only("rejected").path) == ("rejected", done.path)
    assert dismiss(bed.reviewer, done.path).was_so
    assert bed.reviewer.undo_last() is not None
    assert bed.store.exists(path)


def test_notes_of_other_commands_are_refused_with_the_command(bed: Bed) -> None:
    asks = bed.note("personal-private/_review/surface-x.md", "May it?", kind=SURFACE_KIND, status="pending", idea="x")
    idea = bed.note("personal-private/_idea-incubator/x/_index.md", "x", kind="idea", status="incubating")
    found = bed.note(f"{WATCHLIST}/list/x.md", "x", kind="skill-pattern", status="pending")
    topic = bed.note("personal-projects/shop/memory/x.md", "x", kind=TOPIC_KIND)
    old = bed.note("personal-private/_archive/x.md", "x", kind="preferences", status="superseded")
    own = bed.note("_meta/x.md", "x", kind="dashboard")
    before = bed.files()
    for path, instead in {
        asks: "memory review",
        idea: "memory idea archive",
        found: "special folder|memory skills watchlist dismiss",
        topic: "memory vault topics rm",
        old: "its status is superseded",
        own: "MemoryVault's own",
    }.items():
        with pytest.raises(EntryInvalid, match=instead):
            dismiss(bed.reviewer, path)
    assert bed.files() == before


def test_a_note_in_the_vaults_own_folder_is_found_as_a_list_prints_it(bed: Bed) -> None:
    for path in ("tabs.md", "tabs"):
        (bed.vault / "tabs.md").write_text("---\nkind: preferences\n---\n\nIndent with tabs.\n", "utf-8")
        assert find_entry(bed.store, path).path == resolve_entry(bed.store, path) == "tabs.md"
    tabs(bed)
    assert find_entry(bed.store, "tabs.md").path == "tabs.md"
    with pytest.raises(UsageError, match=f"give the path: tabs.md, {TABS}"):
        find_entry(bed.store, "tabs")


@pytest.mark.parametrize("name", [TABS, TABS[:-3], "tabs", "tabs.md", "Tabs or spaces", "tabs or  spaces."])
def test_an_entry_is_found_by_its_path_its_file_name_or_its_title(bed: Bed, name: str) -> None:
    tabs(bed)
    bed.note("personal-private/_archive/other.md", "# Tabs or spaces\n\nTwo.", kind="x", status="superseded")
    assert find_entry(bed.store, name).path == resolve_entry(bed.store, name) == TABS


def test_a_name_of_several_names_them(bed: Bed) -> None:
    other = "personal-projects/shop/preferences/spaces.md"
    tabs(bed)
    tabs(bed, other)
    for find in (find_entry, resolve_entry):
        with pytest.raises(UsageError, match=f"give the path: {TABS}, {other}"):
            find(bed.store, "Tabs or spaces")


def test_inactive_entry_is_shown_if_no_other_has_its_name(bed: Bed) -> None:
    archived = tabs(bed, "personal-private/_archive/tabs.md", status="superseded")
    assert find_entry(bed.store, "tabs").path == find_entry(bed.store, "Tabs or spaces").path == archived
    for name in ("tabs", "Tabs or spaces"):
        with pytest.raises(EntryInvalid):
            resolve_entry(bed.store, name)
    tabs(bed)
    assert find_entry(bed.store, "tabs").path == TABS


@pytest.mark.parametrize("name", ["", ".", "nothing", "personal-projects/shop/preferences/tabs.md", "../tabs"])
def test_missing_entry_is_told_in_one_line(ask: Bed, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    tabs(ask)
    for command in (["show", name], ["dismiss", name, "--yes"]):
        assert main(command) in (1, 2)
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n"), told.err.startswith("memory: ")) == ("", 1, True)


def test_show_prints_what_is_known_of_it_and_its_text(ask: Bed, memory: Command) -> None:
    ask.remember(RULE)
    entry = ask.only("active")
    facts, _, text = memory("show", entry.slug).out.partition("\n\n")
    assert text == entry.body + "\n"
    told = dict(line.split(maxsplit=1) for line in facts.splitlines())
    assert told["path"] == entry.path
    assert (told["status"], told["sessions"], told["seen"]) == ("active", "s1", "once")
    found = memory.json("show", entry.slug)
    assert (found["path"], found["text"]) == (entry.path, entry.body)
    assert found["source"] == [{"host": "claude", "session": "s1", "records": ["r1"], "said": ""}]


def test_dismissed_entry_stays_as_a_note_and_undo_restores_it(ask: Bed, memory: Command) -> None:
    ask.remember(RULE)
    before = ask.files()
    (path,) = before
    assert f"--yes dismisses {path}" in memory("dismiss", path, code=2).err
    memory("dismiss", path, "--json", code=2)
    assert ask.files() == before
    told = memory("dismiss", path, "--yes")
    assert (told.out, told.err) == (f"dismissed: {path}\n", f"memory: `memory review --undo {path}` takes it back\n")
    assert ask.files() == {path: before[path].replace("status: active", "status: dismissed")}
    assert memory("dismiss", path).out == f"{path} is dismissed already\n"
    assert memory.json("dismiss", path) == {"path": path, "status": "dismissed", "changed": False}
    memory("review", "--undo")
    assert ask.files() == before


def test_dismissal_is_undone_by_name_after_later_decisions(ask: Bed, memory: Command) -> None:
    other = tabs(ask, "personal-projects/shop/preferences/tabs.md", project="shop")
    tabs(ask)
    before = ask.files()
    memory("dismiss", TABS, "--yes")
    memory("dismiss", other, "--yes")
    memory("review", "--undo", "", code=2)
    assert main(["review", "--undo", "tabs"]) == 2, "of two that are called so the user says which"
    assert memory("review", "--undo", TABS).out.endswith("took back: dismissed: tabs\n")
    assert {path for path, text in ask.files().items() if text != before[path]} == {other}
    again = memory("review", "--undo", TABS, code=1)
    assert again.err == f"memory: no decision on {TABS} is remembered: nothing was taken back\n"
    ask.edit(other, "four", "two")
    assert "was changed after the decision" in memory("review", "--undo", other, code=1).err


@pytest.mark.parametrize("name", ["tabs", "tabs.md", TABS, "Tabs or spaces"])
def test_superseding_is_undone_by_the_earlier_name(ask: Bed, name: str) -> None:
    ask.remember(CHOICE)
    tabs(ask)
    before = ask.files()
    ask.reviewer.decide(ask.only("pending").path, Supersede(TABS), run="r")
    assert TABS not in ask.files()
    assert main(["review", "--undo", name]) == 0
    assert ask.files() == before


# The worker carries out decisions in notes, and states problems with a decision in the note


def worker_looks(bed: Bed) -> float | None:
    """Seconds from now until it looks again by itself; None if it does not."""
    with open_ledger(bed.settings) as ledger:
        job = ledger.enqueue("review.apply", unique_key=APPLY_KEY)
        taken = ledger.take(lambda: "test", 30.0)
        assert taken is not None
        Executor(ledger, {"review.apply": partial(apply_handler, bed.settings)}, 30.0).run(taken)
        assert ledger.get(job).state == "done"
        again = ledger.list_jobs(["queued"], kind="review.apply")
        return again[0].run_at - ledger.now() if again else None


def test_a_note_that_nobody_touches_again_is_told_after_a_minute(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    proposal = bed.note("personal-private/_review/x.md", "Lists read well.", kind="preferences", status="pending")
    caplog.set_level(logging.WARNING)
    bed.decide_in_note(proposal, "aprove")
    wait = worker_looks(bed)
    assert wait is not None
    assert 0 < wait <= SETTLED_SECONDS
    assert not caplog.records, "it may be half typed"
    os.utime(bed.vault / proposal, (0, 0))
    assert worker_looks(bed) is None
    assert "decision_error: " in bed.files()[proposal]
    (told,) = caplog.messages
    assert told == f"{proposal}: its decision could not be carried out; it says why itself"
    worker_looks(bed)
    assert len(caplog.records) == 1, "once is enough"


def test_unwritable_note_is_not_described_as_told(
    bed: Bed, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = bed.note("personal-private/_review/x.md", "Lists read well.", kind="preferences", status="pending")
    bed.decide_in_note(proposal, "rejct")
    os.utime(bed.vault / proposal, (0, 0))

    def edited(*_: object, **__: object) -> None:
        raise EditConflict(f"{proposal} was changed since it was read")

    monkeypatch.setattr(VaultStore, "update", edited)
    caplog.set_level(logging.WARNING)
    worker_looks(bed)
    (told,) = caplog.messages
    assert (
        told == f"{proposal}: its decision could not be carried out; `memory review` says why when it is decided there"
    )


# The user's decisions on proposals affect later ones


FIRST = "No, put the release notes into the wiki"
OTHER_WORDS = "Release notes belong on our wiki pages"


class Meaning(SemanticSimilarity):
    """All texts are as near in meaning as it says."""

    def __init__(self, bed: Bed, cosine: float | None) -> None:
        super().__init__(bed.settings)
        self._cosine_of_all = cosine

    def cosines(self, text: str, others: Sequence[str]) -> list[float | None]:
        return [self._cosine_of_all] * len(others)


def memories(bed: Bed, cosine: float | None) -> VaultMemories:
    return VaultMemories(bed.store, Meaning(bed, cosine))


def decide(bed: Bed, decision: Approve | Reject) -> None:
    bed.remember(replace(said(CHOICE, "a", FIRST), excerpt=FIRST))
    bed.reviewer.decide(bed.only("pending").path, decision, run="review-1")


@pytest.mark.parametrize(("cosine", "action"), [(0.85, Action.NOTHING), (0.5, Action.WRITE), (None, Action.WRITE)])
def test_statement_similar_to_a_rejected_one_is_not_proposed(bed: Bed, cosine: float | None, action: Action) -> None:
    decide(bed, Reject())
    assert route(said(CHOICE, "b", OTHER_WORDS), memories(bed, cosine)).action is action


def test_a_standing_rule_in_the_users_own_words_is_heard_though_something_near_it_was_rejected(bed: Bed) -> None:
    decide(bed, Reject())
    statement = "Always put the release notes into the wiki and into docs/notes.md"
    assert route(said(CHOICE, "b", statement), memories(bed, 0.85)).action is Action.NOTHING
    assert route(said(RULE, "b", statement), memories(bed, 0.85)).action is Action.WRITE


def test_contradiction_of_a_rejected_statement_is_not_taken_for_it(bed: Bed) -> None:
    decide(bed, Reject())
    opposite = said(CHOICE, "b", "Don't put the release notes into the wiki")
    assert route(opposite, memories(bed, 0.95)).action is Action.WRITE


def test_statement_similar_to_an_approved_one_is_more_probable(bed: Bed) -> None:
    candidate = said(CHOICE, "b", OTHER_WORDS)
    assert memories(bed, 0.7).shift(candidate) == 0
    decide(bed, Approve())
    assert memories(bed, 0.7).shift(candidate) == APPROVED_SHIFT
    assert memories(bed, None).shift(candidate) == 0


def test_after_thirty_decisions_the_share_of_approvals_counts() -> None:
    assert learned_shift(0, LEAST_DECISIONS - 1, None) == 0
    assert learned_shift(0, LEAST_DECISIONS, None) < 0 < learned_shift(LEAST_DECISIONS, 0, None)
    assert learned_shift(15, 15, None) == pytest.approx(0)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_probability_stays_one(probability: float) -> None:
    less, same, more = (shifted(probability, shift) for shift in (-2.0, 0.0, 2.0))
    assert 0 <= less <= same <= more <= 1
    assert same == pytest.approx(probability)
