"""The evidence of a session is taken back where the program itself has moved the note for other sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.pipelines.review import Approve
from memoryvault.services.journal import Act, Change
from memoryvault.services.reviewing import Reviewer
from memoryvault.services.tombstones import TakenBack
from memoryvault.services.triaging import run_triage
from memoryvault.services.undoing import Selector, UndoPlan
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import VaultStore

from .support import GUESS, RULE, Bed, said

WAITING = "personal-private/_inbox/the-release-report-reads-well-as.md"
PROPOSED = WAITING.replace("_inbox", "_review")
PUT_AWAY = WAITING.replace("_inbox", "_archive")


def undo(bed: Bed, session: str, **options: bool) -> UndoPlan:
    return bed.undo.carry_out(Selector(session=session), **options)


def steps(plan: UndoPlan) -> dict[str, str]:
    return {step.path: step.step for step in plan.steps}


def sessions(bed: Bed, path: str) -> list[str]:
    return [source.session for source in bed.store.read(path).sources]


def listed(bed: Bed) -> set[str]:
    """The sessions of which `taken-back.md` says something."""
    return {session for session, _ in TakenBack(bed.settings.state, bed.store).evidence()}


def promoted(bed: Bed) -> None:
    """Said in three sessions, and so moved from the inbox to be reviewed."""
    for session in ("a", "b", "c"):
        bed.remember(said(GUESS, session))
    assert list(bed.files()) == [PROPOSED]


def expire(bed: Bed) -> None:
    """A year later."""
    settings = bed.settings
    store = VaultStore(bed.vault, settings.state.vault_lock, lambda: bed.store.today() + timedelta(365))
    assert [result.result for result in run_triage(settings, Reviewer(settings, store))] == ["expired"]


def forget(bed: Bed, *, first: int) -> None:
    """As a journal that has become too long does."""
    lines = bed.journal.files[-1].read_bytes().splitlines(keepends=True)
    bed.journal.files[-1].write_bytes(b"".join(lines[first:]))


def test_where_a_later_session_promoted_it(bed: Bed) -> None:
    promoted(bed)
    planned = bed.undo.plan(Selector(session="a"))
    assert steps(planned) == {PROPOSED: "weaken"}
    assert planned.steps[0].why == "it was moved there since: only this one's evidence goes"
    assert steps(undo(bed, "a")) == steps(planned)
    assert sessions(bed, PROPOSED) == ["b", "c"]
    assert bed.store.read(PROPOSED).occurrences == 2
    assert listed(bed) == {"a"}
    assert undo(bed, "a").steps == []
    bed.remember(said(GUESS, "a"))
    assert sessions(bed, PROPOSED) == ["b", "c"], "it is not written again"


def test_of_the_session_that_only_strengthened_it(bed: Bed) -> None:
    promoted(bed)
    undo(bed, "b")
    assert sessions(bed, PROPOSED) == ["a", "c"]
    assert listed(bed) == {"b"}


def test_where_a_second_project_widened_it(bed: Bed) -> None:
    bed.remember(said(RULE, "a", "Always sign commits", scope="project", project="shop"))
    bed.remember(said(RULE, "b", "Always sign commits", scope="project", project="admin"))
    wide = "personal-private/preferences/always-sign-commits.md"
    assert steps(undo(bed, "a")) == {wide: "weaken"}
    assert sessions(bed, wide) == ["b"]
    assert listed(bed) == {"a"}


def test_where_it_moved_and_was_strengthened_there(bed: Bed) -> None:
    promoted(bed)
    bed.remember(said(GUESS, "d"))
    undo(bed, "a")
    assert sessions(bed, PROPOSED) == ["b", "c", "d"]


def test_of_the_session_that_moved_it_where_others_have_added_since(bed: Bed) -> None:
    """It stays where it is: that others said it counts too. Who came before is followed past it, too."""
    promoted(bed)
    bed.remember(said(GUESS, "d"))
    assert steps(undo(bed, "c")) == {PROPOSED: "weaken"}
    assert sessions(bed, PROPOSED) == ["a", "b", "d"]
    assert listed(bed) == {"c"}


def test_a_new_note_under_its_old_name_is_not_taken_for_it(bed: Bed) -> None:
    """Nor does it hide where the old one is."""
    bed.remember(said(GUESS, "a"))
    expire(bed)
    bed.remember(said(GUESS, "b"))
    assert sorted(bed.files()) == [PUT_AWAY, WAITING]
    undo(bed, "a", include_edited=True)
    assert list(bed.files()) == [WAITING]
    assert sessions(bed, WAITING) == ["b"]


def test_where_triage_put_it_into_another(bed: Bed) -> None:
    """Out of that one, and out of the copy that went to the archive."""
    bed.remember(said(GUESS, "a"))
    text = Scrubbed(bed.files()[WAITING].replace("session: a", "session: b").replace("a-record", "b-record"))
    other = WAITING.replace("the-release", "zz-release")
    bed.journal.commit([Change(other, None, text)], run="reflect:2", actor="reflection", what="written", session="b")
    assert [result.result for result in run_triage(bed.settings, bed.reviewer)] == ["merged"]
    (copy,) = set(bed.files()) - {WAITING}
    assert steps(undo(bed, "b")) == {WAITING: "weaken", copy: "remove"}
    assert (list(bed.files()), sessions(bed, WAITING)) == ([WAITING], ["a"])
    assert listed(bed) == {"b"}


def test_one_session_after_the_other_until_nothing_is_left(bed: Bed) -> None:
    promoted(bed)
    for session in ("b", "a", "c"):
        undo(bed, session)
    assert bed.files() == {}
    assert listed(bed) == {"a", "b", "c"}


def test_one_session_after_the_other_of_a_note_that_never_moved(bed: Bed) -> None:
    """What an undo wrote is no decision of the user."""
    for session in ("a", "b", "c"):
        bed.remember(said(RULE, session))
    for session in ("b", "a"):
        undo(bed, session)
    (path,) = bed.files()
    assert sessions(bed, path) == ["c"]
    bed.edit(path, "## Evidence", "Mine.\n\n## Evidence")
    bed.remember(said(RULE, "d"))
    for session in ("c", "d"):
        undo(bed, session)
    assert "Mine." in bed.files()[path]


def test_a_decision_between_them_stays_decided(bed: Bed) -> None:
    for session in ("a", "b"):
        bed.remember(said(RULE, session))
    (path,) = bed.files()
    text = bed.files()[path]
    decided = Scrubbed(text.replace("Always use", "Always and only use"))
    bed.journal.commit([Change(path, text, decided)], run="evolve:1", actor="evolve", what="evolved")
    bed.remember(said(RULE, "c"))
    undo(bed, "c")
    assert steps(undo(bed, "a")) == {path: "leave"}
    assert bed.files() == {path: str(decided)}


def test_what_the_user_edited_on_the_way_is_not_removed(bed: Bed) -> None:
    bed.remember(said(GUESS, "a"))
    bed.edit(WAITING, "## Evidence", "Mine.\n\n## Evidence")
    expire(bed)
    before = bed.files()
    plan = undo(bed, "a")
    assert steps(plan) == {PUT_AWAY: "leave"}
    assert (plan.left, plan.edited) == (1, 1)
    assert bed.files() == before
    undo(bed, "a", include_edited=True)
    assert bed.files() == {}


def test_what_the_user_edited_before_it_moved_is_not_removed_with_the_last_session(bed: Bed) -> None:
    bed.remember(said(GUESS, "a"))
    bed.edit(WAITING, "## Evidence", "Mine.\n\n## Evidence")
    for session in ("b", "c"):
        bed.remember(said(GUESS, session))
    for session in ("a", "b"):
        assert steps(undo(bed, session)) == {PROPOSED: "weaken"}
    assert steps(undo(bed, "c")) == {PROPOSED: "leave"}
    assert "Mine." in bed.files()[PROPOSED]
    undo(bed, "c", include_edited=True)
    assert bed.files() == {}


def test_what_the_user_edited_where_it_is_now_stays(bed: Bed) -> None:
    promoted(bed)
    bed.edit(PROPOSED, "## Evidence", "Mine.\n\n## Evidence")
    before = bed.files()
    assert steps(undo(bed, "a")) == {PROPOSED: "leave"}
    assert bed.files() == before
    assert listed(bed) == set()
    undo(bed, "a", include_edited=True)
    assert sessions(bed, PROPOSED) == ["b", "c"]
    assert "Mine." in bed.files()[PROPOSED]


def test_what_the_user_decided_on_stays_decided(bed: Bed) -> None:
    promoted(bed)
    bed.reviewer.decide(PROPOSED, Approve(), run="r")
    bed.remember(said(GUESS, "d"))
    before = bed.files()
    plan = undo(bed, "a", include_edited=True)
    assert (plan.changes, steps(plan)) == ([], {PROPOSED: "gone"})
    assert bed.files() == before


def test_a_decision_that_was_taken_back_is_none(bed: Bed) -> None:
    promoted(bed)
    bed.reviewer.decide(PROPOSED, Approve(), run="r")
    bed.reviewer.undo_last()
    undo(bed, "a")
    assert sessions(bed, PROPOSED) == ["b", "c"]


def test_since_a_time_where_the_later_move_stays(bed: Bed) -> None:
    """What moved it is no reflection, so it is not asked for."""
    bed.remember(said(GUESS, "a"))
    bed.remember(said(GUESS, "b"))
    expire(bed)
    since = Selector(since=datetime.now(UTC) - timedelta(hours=1), actor="reflection")
    plan = bed.undo.carry_out(since, include_edited=True)
    assert steps(plan) == {PUT_AWAY: "remove"}
    assert listed(bed) == {"a", "b"}


def test_a_move_that_is_taken_back_with_it_is_not_followed(bed: Bed) -> None:
    promoted(bed)
    plan = bed.undo.carry_out(Selector(since=datetime.now(UTC) - timedelta(hours=1)))
    assert steps(plan) == {PROPOSED: "remove"}
    assert bed.files() == {}


def test_a_move_that_was_taken_back_before_is_not_followed(bed: Bed) -> None:
    promoted(bed)
    undo(bed, "c")
    assert list(bed.files()) == [WAITING]
    undo(bed, "a")
    assert sessions(bed, WAITING) == ["b"]


def test_what_the_journal_remembers_only_the_later_part_of(bed: Bed) -> None:
    """That it knows the note is no reason to be silent about it."""
    promoted(bed)
    forget(bed, first=2)
    before = bed.files()
    plan = undo(bed, "a")
    assert (steps(plan), plan.edited) == ({PROPOSED: "leave"}, 1)
    assert bed.files() == before
    undo(bed, "a", include_edited=True)
    assert sessions(bed, PROPOSED) == ["b", "c"]
    assert undo(bed, "a", include_edited=True).steps == []


@pytest.mark.parametrize("kill_point", ["taken-back-noted", "journal-pending", "journal-applied", "journal-recorded"])
def test_killed_in_the_middle_it_is_done_or_can_be_done_again(bed: Bed, kill_point: str) -> None:
    promoted(bed)
    code = "from memoryvault.cli.main import main; main(['undo', '--session', 'a', '--yes'])"
    assert bed.run_python(code, kill_point) == -9
    bed.journal.recover()
    undo(bed, "a")
    assert sessions(bed, PROPOSED) == ["b", "c"]
    assert listed(bed) == {"a"}
    acts: list[Act] = [act for act in bed.journal.acts() if act.actor == "undo"]
    assert len(acts) == 1


def test_the_list_says_which_note_will_lose_evidence(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in bed.env.items():
        monkeypatch.setenv(name, value)
    promoted(bed)
    assert main(["undo", "--session", "a", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"take evidence out of: {PROPOSED}",
        "    it was moved there since: only this one's evidence goes",
    ]
    assert Path(bed.vault / PROPOSED).read_text("utf-8").count("session: a") == 1
