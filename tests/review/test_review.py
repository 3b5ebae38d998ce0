"""One decision by three ways; each ends in the files."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from memoryvault.pipelines.review import (
    Approve,
    Decision,
    KeepBoth,
    Reject,
    Skip,
    Supersede,
    parse_decision,
    settle,
)
from memoryvault.runtime.errors import EditConflict, EntryInvalid, EntryNotFound, UsageError
from memoryvault.services.action_index import compile_rule
from memoryvault.services.entry_decisions import edit
from memoryvault.services.reviewing import DecisionOutcome, DecisionProblem, Reviewer
from memoryvault.vault.entry import Entry, parse_text
from memoryvault.vault.scrubbed import Scrubbed

from .support import CHOICE, Bed, said

PROPOSAL = parse_text("personal-private/_review/use-pnpm.md", "---\nkind: preferences\n---\n\n# Use pnpm\n")


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("approve", Approve()),
        (" Approved ", Approve()),
        ('"yes"', Approve()),
        ("“Approve.”", Approve()),
        ("keep both", KeepBoth()),
        ("reject", Reject()),
        ("skip", Skip()),
        ("supersede personal-private/preferences/tabs.md", Supersede("personal-private/preferences/tabs.md")),
        ("supersede: [[tabs|my tabs]]", Supersede("tabs")),
        ("supersedes [[a/b#Heading]]", Supersede("a/b")),
        ("Supersede [[a/b]].", Supersede("a/b")),
        ("supersede [[Wow!]]", Supersede("Wow!")),
        ("supersede", None),
        ("app", None),
        ("", None),
        ("approve?", None),
    ],
)
def test_a_decision_is_read_from_a_line(text: str, decision: Decision | None) -> None:
    assert parse_decision(text) == decision


@pytest.mark.parametrize("text", ["supersede", "Supersede."])
def test_supersede_alone_means_the_entry_that_the_note_names(text: str) -> None:
    assert parse_decision(text, "a/b.md") == Supersede("a/b.md")


def test_no_decision_leads_out_of_the_vault_or_lets_an_idea_take_another_place() -> None:
    with pytest.raises(EntryInvalid, match="an idea takes no other note's place"):
        settle(replace(PROPOSAL, kind="idea"), Supersede("old.md"))
    for bad in (
        replace(PROPOSAL, kind=None),
        replace(PROPOSAL, kind="../x"),
        replace(PROPOSAL, group="../../etc"),
        replace(PROPOSAL, slug="../x"),
    ):
        with pytest.raises(EntryInvalid):
            settle(bad, Approve())


@pytest.fixture
def proposal(bed: Bed) -> str:
    bed.remember(said(CHOICE, "a"))
    return bed.only("pending").path


def decide(bed: Bed, path: str, decision: Decision, **options: object) -> DecisionOutcome:
    return bed.reviewer.decide(path, decision, run="test", **options)  # type: ignore[arg-type]


def test_approved_it_moves_to_its_place_with_its_evidence(bed: Bed, proposal: str) -> None:
    text = bed.files()[proposal]
    done = decide(bed, proposal, Approve())
    assert done.path.startswith("personal-private/preferences/")
    entry = bed.only("active")
    assert entry.path == done.path
    assert [source.session for source in entry.sources] == ["a"]
    assert bed.files()[done.path].split("---", 2)[2] == text.split("---", 2)[2], "the body stays byte for byte"
    assert len(bed.files()) == 1


def test_a_project_rule_is_approved_into_its_project(bed: Bed) -> None:
    bed.remember(said(CHOICE, "a", scope="project", project="My Shop"))
    done = decide(bed, bed.only("pending").path, Approve())
    assert done.path.startswith("personal-projects/my-shop/preferences/")


def test_approved_with_another_text_it_is_still_known_by_the_first(bed: Bed, proposal: str) -> None:
    decide(bed, proposal, Approve(), body=Scrubbed("# Pnpm\n\nUse pnpm, for all of our front ends."))
    entry = bed.only("active")
    assert entry.body.endswith("for all of our front ends.")
    bed.remember(said(CHOICE, "b"))
    assert bed.only("active").occurrences == 2
    assert len(bed.files()) == 1


def test_a_title_follows_the_text_it_was_made_of_and_not_the_users_own(bed: Bed) -> None:
    bed.remember(said(CHOICE, "a", CHOICE.statement, said_at="2026-11-12T10:00:00Z"))
    path = bed.only("pending").path
    assert compile_rule(bed.store.read(path))[0].said == "12 Nov 2026"

    def changed(old: str, new: str) -> Entry:
        entry = bed.store.read(path)
        edit(bed.reviewer, path, Scrubbed(entry.body.replace(old, new, 1)), entry.content_hash)
        return bed.store.read(path)

    body = bed.store.read(path).body.replace(f"\n\n{CHOICE.statement}", "\n\nNever use npm. It is slow.")
    path = decide(bed, path, Approve(), body=Scrubbed(body)).path
    assert bed.store.read(path).title == "Never use npm. It is slow"
    assert not compile_rule(bed.store.read(path))[0].said, "nobody said these words then"
    assert changed("\n\nNever use npm. It is slow.", "\n\nUse pnpm.").title == "Use pnpm"
    assert changed("# Use pnpm", "# Packages").title == "Packages"
    assert changed("\n\nUse pnpm.", "\n\nUse yarn.").title == "Packages"


def test_an_always_load_entry_is_superseded_in_its_place(bed: Bed, proposal: str) -> None:
    old = bed.note("personal-private/_always-load/packages.md", "Use npm.", kind="preferences", always_load=True)
    assert decide(bed, proposal, Supersede("packages")).path == old
    assert bed.only("active").always_load


def test_superseding_what_is_not_there_changes_nothing(bed: Bed, proposal: str) -> None:
    before = bed.files()
    with pytest.raises(EntryNotFound):
        decide(bed, proposal, Supersede("nothing-of-that-name"))
    with pytest.raises(UsageError):
        decide(bed, proposal, Supersede(proposal))
    assert bed.files() == before


def test_existing_entry_gets_the_evidence(bed: Bed, proposal: str) -> None:
    entry = bed.only("pending")
    name = proposal.rsplit("/", 1)[-1]
    bed.note(f"personal-private/preferences/{name}", "Use pnpm.", kind="preferences", fingerprint=entry.fingerprint)
    assert decide(bed, proposal, Approve()).verdict == "merged"
    held = bed.only("active")
    assert (held.body, held.occurrences, len(held.sources)) == ("Use pnpm.", 2, 1)


def test_a_taken_name_is_not_overwritten(bed: Bed, proposal: str) -> None:
    name = proposal.rsplit("/", 1)[-1]
    bed.note(f"personal-private/preferences/{name}", "Something else.", kind="preferences")
    done = decide(bed, proposal, Approve())
    assert done.path.endswith("-2.md")
    assert bed.store.read(done.path).slug.endswith("-2")


def test_a_note_outside_review_and_inbox_is_not_decided_on(bed: Bed) -> None:
    path = bed.note("personal-private/preferences/x.md", "x", kind="preferences")
    with pytest.raises(EntryInvalid):
        decide(bed, path, Reject())


def test_every_decision_can_be_taken_back_until_the_note_is_edited(bed: Bed, proposal: str) -> None:
    bed.note("personal-private/preferences/package-manager.md", "Use npm.", kind="preferences")
    before = bed.files()
    for decision in (Approve(), Reject(), Supersede("package-manager")):
        decide(bed, proposal, decision)
        assert bed.files() != before
        assert bed.reviewer.undo_last() is not None
        assert bed.files() == before
    assert bed.reviewer.undo_last() is None
    done = decide(bed, proposal, Approve())
    bed.edit(done.path, "## Evidence", "Mine.\n\n## Evidence")
    with pytest.raises(EditConflict):
        bed.reviewer.undo_last()
    assert bed.store.exists(done.path)


def test_the_nearest_entries_are_offered_by_wording_without_an_index(bed: Bed, proposal: str) -> None:
    near = bed.note("personal-private/preferences/packages.md", "Use npm for the front end.", kind="preferences")
    bed.note("personal-private/preferences/tabs.md", "Indent with tabs.", kind="preferences")
    bed.note("personal-private/_archive/npm.md", "Use npm.", kind="preferences", status="rejected")
    assert [one.path for one in bed.reviewer.nearest(bed.only("pending"))] == [near]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("decision: approve", "active"),
        ("Decision: Approved", "active"),
        ("DECISION: reject", "rejected"),
        ('"Decision": no', "rejected"),
        ('decision: "approve"', "active"),
        ("decision:\n  - approve", "active"),
        ("decision: true", "active"),
        ("decision: Approve ", "active"),
    ],
)
def test_a_decision_in_the_note_is_carried_out_once(bed: Bed, proposal: str, line: str, status: str) -> None:
    bed.edit(proposal, "---\n", f"---\n{line}\n")
    (done,) = bed.reviewer.apply_notes()
    assert isinstance(done, DecisionOutcome)
    assert "ecision" not in bed.files()[bed.only(status).path]
    after = bed.files()
    assert bed.reviewer.apply_notes() == []
    assert bed.files() == after


@pytest.mark.parametrize(
    "place",
    [
        "personal-private/preferences/x.md", "personal-private/_always-load/x.md", "personal-private/_archive/x.md",
        "personal-private/x.md", "personal-projects/shop/fix/x.md", "x.md",
    ],
)  # fmt: skip
@pytest.mark.parametrize("written", ["approve", "reject", "supersede y"])
def test_a_decision_that_stands_elsewhere_decides_nothing(bed: Bed, place: str, written: str) -> None:
    bed.note("personal-private/preferences/y.md", "Y.", kind="preferences")
    path = bed.note(place, "X.", kind="preferences", status="pending")
    bed.decide_in_note(path, written)
    before = bed.files()
    assert bed.reviewer.apply_notes() == []
    assert bed.files() == before


@pytest.mark.parametrize("age", [300, -86_400], ids=["written a while ago", "by a clock that was ahead"])
def test_invalid_decision_is_told_in_the_note_but_not_while_somebody_types(bed: Bed, proposal: str, age: int) -> None:
    bed.decide_in_note(proposal, "appro")
    (problem,) = bed.reviewer.apply_notes()
    assert isinstance(problem, DecisionProblem)
    assert "decision_error" not in bed.files()[proposal]
    long_ago = (bed.vault / proposal).stat().st_mtime - age
    os.utime(bed.vault / proposal, (long_ago, long_ago))
    bed.reviewer.apply_notes()
    told = bed.files()[proposal]
    assert "decision_error: " in told
    os.utime(bed.vault / proposal, (long_ago, long_ago))
    bed.reviewer.apply_notes()
    assert bed.files()[proposal] == told
    bed.edit(proposal, "decision: appro", "decision: approve")
    bed.reviewer.apply_notes()
    assert "decision_error" not in bed.files()[bed.only("active").path]


def test_a_skip_in_the_note_stays_and_takes_back_what_was_told_of_an_earlier_decision(bed: Bed, proposal: str) -> None:
    bed.decide_in_note(proposal, "skip")
    skipped = bed.files()
    assert bed.reviewer.apply_notes() == []
    assert bed.files() == skipped
    bed.edit(proposal, "decision: skip", "decision: appro")
    os.utime(bed.vault / proposal, (0, 0))
    bed.reviewer.apply_notes()
    bed.edit(proposal, "decision: appro", "decision: skip")
    assert bed.reviewer.apply_notes() == []
    assert "decision_error" not in bed.files()[proposal]


def test_supersede_alone_is_told_what_it_lacks(bed: Bed, proposal: str) -> None:
    bed.decide_in_note(proposal, "supersede")
    (problem,) = bed.reviewer.apply_notes()
    assert isinstance(problem, DecisionProblem)
    assert "does not say what it replaces: write supersede [[entry]], with its name or path" in problem.problem


def test_one_bad_note_does_not_keep_the_others_from_being_decided(bed: Bed, proposal: str) -> None:
    bed.note("personal-private/_review/a.md", "no kind", status="pending")
    bed.decide_in_note("personal-private/_review/a.md", "approve")
    bed.decide_in_note(proposal, "approve")
    results = bed.reviewer.apply_notes()
    assert {type(result) for result in results} == {DecisionOutcome, DecisionProblem}
    assert bed.only("active")


def test_a_note_that_leads_out_of_the_vault_is_refused(bed: Bed) -> None:
    path = bed.note("personal-private/_review/a.md", "x", kind="preferences", status="pending")
    bed.edit(path, "status: pending", "status: pending\ngroup: ../../outside")
    bed.decide_in_note(path, "approve")
    (problem,) = bed.reviewer.apply_notes()
    assert isinstance(problem, DecisionProblem)
    assert list(bed.files()) == [path]


def test_a_worker_that_lost_its_job_decides_nothing_more(bed: Bed, proposal: str) -> None:
    bed.decide_in_note(proposal, "approve")
    assert bed.reviewer.apply_notes(lambda: False) == []
    assert bed.only("pending")


def test_a_save_meanwhile_is_not_overwritten(bed: Bed, proposal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note changes between the look at it and the write: it is looked at again."""
    carry_out = Reviewer._carry_out
    saved: list[str] = []

    def meanwhile(self: Reviewer, entry: Entry, *rest: object) -> DecisionOutcome:
        if not saved:
            bed.edit(entry.path, "## Evidence", "Saved meanwhile.\n\n## Evidence")
            saved.append(entry.path)
        return carry_out(self, entry, *rest)  # type: ignore[arg-type]  # whatever it takes

    monkeypatch.setattr(Reviewer, "_carry_out", meanwhile)
    decide(bed, proposal, Approve())
    assert "Saved meanwhile." in bed.only("active").body


def test_a_text_that_the_user_changed_is_kept_where_the_vault_has_the_old_one_already(bed: Bed, proposal: str) -> None:
    place = decide(bed, proposal, Approve()).path
    bed.note(proposal, "x", kind="preferences", status="pending", fingerprint=bed.only("active").fingerprint)
    done = decide(bed, proposal, Approve(), body=Scrubbed("Use pnpm in all new repositories."))
    assert (done.verdict, done.path) == ("approved", place.replace(".md", "-2.md"))
    assert bed.store.read(done.path).body == "Use pnpm in all new repositories."


def test_proposal_moved_out_by_hand_is_told_what_it_lacks(bed: Bed, proposal: str) -> None:
    moved = "personal-private/_always-load/" + proposal.rpartition("/")[2]
    (bed.vault / moved).parent.mkdir()
    (bed.vault / proposal).rename(bed.vault / moved)
    with pytest.raises(EntryNotFound, match=f"{moved} was moved out of its folder.*write `status: active`"):
        bed.reviewer.find(proposal)
    bed.edit(moved, "status: pending", "status: active")
    with pytest.raises(EntryNotFound, match="nothing called"):
        bed.reviewer.find(proposal)


@pytest.mark.parametrize("decision", [Approve(), Reject()])
def test_proposal_with_both_sides_of_a_merge_names_the_line_to_mend(bed: Bed, decision: Approve | Reject) -> None:
    name = "personal-private/_review/merged.md"
    (bed.vault / name).parent.mkdir(parents=True)
    (bed.vault / name).write_text("---\n<<<<<<< HEAD\nkind: fix\n=======\nkind: x\n>>>>>>> main\n---\nText.\n")
    before = bed.files()
    with pytest.raises(EntryInvalid, match=f"line 2 of {name} can't be read, mend it first"):
        bed.reviewer.decide(name, decision, run="t")
    assert bed.files() == before
