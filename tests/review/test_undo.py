"""Undo restores what the program wrote and nobody has changed since, byte for byte, and names the rest."""

import json
import shutil
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryvault.pipelines.review import Approve
from memoryvault.runtime.errors import UsageError
from memoryvault.services.journal import Change
from memoryvault.services.tombstones import Tombstones
from memoryvault.services.undoing import Selector, UndoPlan, Why
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.vault.marker import Marker, create_marker
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import MAX_ENTRY_BYTES

from .support import CHOICE, GUESS, RULE, Bed, said

LAST = Selector(last=True)
OTHER = "Never commit on a Friday"


NOTED = "personal-private/preferences/always-use-pnpm-not-npm.md"
PROPOSED = "personal-private/_review/release-report-reads-well.md"
WAITING = PROPOSED.replace("_review", "_inbox")


def undo(bed: Bed, selector: Selector = LAST) -> UndoPlan:
    return bed.undo.carry_out(selector)


def steps(plan: UndoPlan) -> dict[str, str]:
    return {step.path.rsplit("/", 1)[-1]: step.step for step in plan.steps}


def whys(plan: UndoPlan) -> dict[str, Why]:
    return {step.path: step.why for step in plan.steps}


def sessions(bed: Bed, path: str) -> list[str]:
    return [source.session for source in bed.store.read(path).sources]


def listed(bed: Bed) -> set[str]:
    """The sessions of which `taken-back.md` says something."""
    return {session for session, _ in Tombstones(bed.store).evidence()}


def test_the_last_reflection_goes_then_the_one_before(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    first = bed.files()
    bed.remember(said(RULE, "b"), said(GUESS, "b"), said(RULE, "b", OTHER))
    planned = bed.undo.plan(LAST)
    assert len(bed.files()) == 3, "a plan changes nothing"
    done = undo(bed)
    assert steps(done) == steps(planned)
    assert sorted(steps(done).values()) == ["remove", "remove", "restore"]
    assert bed.files() == first, "byte for byte"
    undo(bed)
    assert bed.files() == {}
    assert undo(bed).changes == []


def test_no_empty_folder_is_left_of_what_was_taken_back(bed: Bed) -> None:
    """Obsidian shows them; a folder in which the user has put something stays with it."""
    bed.remember(CHOICE, GUESS)
    (bed.vault / "personal-private/_review/mine.txt").write_text("mine")
    undo(bed)
    left = [p.relative_to(bed.vault).as_posix() for p in bed.vault.glob("personal-private/*")]
    assert left == ["personal-private/_review"]


def test_a_promoted_note_is_put_back_into_the_inbox(bed: Bed) -> None:
    for session in ("a", "b"):
        bed.remember(said(GUESS, session))
    before = bed.files()
    bed.remember(said(GUESS, "c"))
    assert bed.only("pending")
    undo(bed)
    assert bed.files() == before


def test_note_strengthened_by_a_later_session_stays(bed: Bed) -> None:
    bed.remember(said(RULE, "a"), said(RULE, "a", OTHER))
    bed.remember(said(RULE, "b"))
    before = bed.files()[NOTED]
    plan = undo(bed, Selector(session="a"))
    assert steps(plan) == {"always-use-pnpm-not-npm.md": "leave", "never-commit-on-a-friday.md": "remove"}
    assert (whys(plan)[NOTED], plan.left) == (Why.CHANGED, 1)
    assert bed.files() == {NOTED: before}
    for session in ("b", "a"):
        undo(bed, Selector(session=session))
    assert bed.files() == {}
    assert listed(bed) == {"a", "b"}


def test_a_session_that_came_back_after_another_keeps_what_it_said_first(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    bed.remember(said(RULE, "b"))
    before = bed.files()
    more = Scrubbed(before[NOTED].replace("Always use", "Always and only use"))
    bed.journal.commit(
        [Change(NOTED, before[NOTED], more)], run="reflect:3", actor="reflection", what="strengthened", session="a"
    )
    plan = undo(bed, Selector(session="a"))
    assert bed.files() == before
    assert [(step.step, step.why) for step in plan.steps] == [("restore", Why.CHANGED)]


def test_a_note_that_a_later_session_moved_is_named_where_it_is(bed: Bed) -> None:
    for session in ("a", "b", "c"):
        bed.remember(said(GUESS, session))
    assert list(bed.files()) == [PROPOSED]
    before = bed.files()
    plan = undo(bed, Selector(session="a"))
    assert whys(plan) == {WAITING: Why.CHANGED, PROPOSED: Why.HOLDS_MORE}
    assert (bed.files(), listed(bed)) == (before, set())
    for session in ("c", "b"):
        undo(bed, Selector(session=session))
    assert sessions(bed, WAITING) == ["a"]
    undo(bed, Selector(session="a"))
    assert bed.files() == {}


def test_a_new_note_under_its_old_name_is_not_taken_for_it(bed: Bed) -> None:
    bed.remember(said(GUESS, "a"))
    (bed.vault / WAITING).rename(bed.vault / "kept.md")
    bed.remember(said(GUESS, "b"))
    before = bed.files()
    assert undo(bed, Selector(session="a")).changes == []
    assert bed.files() == before


def test_a_decision_that_was_taken_back_is_none(bed: Bed) -> None:
    bed.remember(CHOICE)
    bed.reviewer.decide(bed.only("pending").path, Approve(), run="r")
    bed.reviewer.undo_last()
    undo(bed)
    assert bed.files() == {}


def test_a_decision_between_two_sessions_stays_decided(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    text = bed.files()[NOTED]
    decided = Scrubbed(text.replace("Always use", "Always and only use"))
    bed.journal.commit([Change(NOTED, text, decided)], run="evolve:1", actor="review", what="evolved")
    bed.remember(said(RULE, "c"))
    undo(bed, Selector(session="c"))
    assert whys(undo(bed, Selector(session="a"))) == {NOTED: Why.DECIDED}
    assert bed.files() == {NOTED: str(decided)}


@pytest.mark.parametrize("kill_point", ["journal-pending", "journal-applied", "journal-recorded"])
def test_killed_in_the_middle_it_is_done_or_can_be_done_again(bed: Bed, kill_point: str) -> None:
    for session in ("a", "b"):
        bed.remember(said(RULE, session))
    code = "from memoryvault.cli.main import main; main(['undo', '--session', 'b', '--yes'])"
    assert bed.run_python(code, kill_point) == -9
    bed.journal.recover()
    undo(bed, Selector(session="b"))
    assert sessions(bed, NOTED) == ["a"]
    assert listed(bed) == {"b"}
    assert len([act for act in bed.journal.acts() if act.actor == "undo"]) == 1


def test_since_a_time(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    now = datetime.now(UTC)
    assert undo(bed, Selector(since=now + timedelta(hours=1))).changes == []
    undo(bed, Selector(since=now - timedelta(hours=1)))
    assert bed.files() == {}


def test_an_edited_note_stays_and_is_named(bed: Bed) -> None:
    bed.remember(said(RULE, "a"), said(RULE, "a", OTHER))
    bed.edit(NOTED, "## Evidence", "Mine.\n\n## Evidence")
    plan = undo(bed)
    assert list(bed.files()) == [NOTED]
    assert plan.left == 1
    assert whys(plan)[NOTED] is Why.EDITED


def test_decided_note_is_not_undone(bed: Bed) -> None:
    bed.remember(said(CHOICE, "a"))
    bed.reviewer.decide(bed.only("pending").path, Approve(), run="r")
    before = bed.files()
    for selector in (LAST, Selector(session="a")):
        plan = undo(bed, selector)
        assert plan.changes == []
        assert bed.files() == before


def test_missing_note_does_not_count_as_kept(bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    bed.enter(monkeypatch)
    bed.remember(CHOICE)
    moved = bed.only("pending").path
    bed.reviewer.decide(moved, Approve(), run="r")
    shown = memory("undo", "--dry-run")
    assert shown.out.splitlines()[1:] == [f"gone: {moved}", f"    {Why.GONE}"]
    assert "stay" not in shown.err


def test_before_the_question_a_long_list_is_cut(bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    bed.enter(monkeypatch)
    bed.remember(said(RULE, "b"), said(RULE, "b", "Always sign the commits"))
    monkeypatch.setattr("memoryvault.cli.undo.MOST_LISTED", 1)
    monkeypatch.setattr("memoryvault.cli.undo.is_agreed", lambda question: False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert memory("undo", code=1).out.splitlines()[2:] == ["and 1 more note; --dry-run lists all"]
    assert "more note" not in memory("undo", "--dry-run").out


def test_a_run_of_which_nothing_can_be_taken_back_does_not_hide_the_ones_before(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    bed.enter(monkeypatch)
    bed.remember(said(RULE, "a", OTHER))
    bed.remember(said(RULE, "b"), said(RULE, "b", "Always sign the commits"))
    edited = "personal-private/preferences/always-use-pnpm-not-npm.md"
    bed.edit(edited, "## Evidence", "Mine.\n\n## Evidence")
    bed.remember(said(CHOICE, "c", "No, use tabs instead of spaces"))
    bed.reviewer.decide(bed.only("pending").path, Approve(), run="r")
    decided = "use-tabs-instead-of-spaces"
    shown = memory("undo", "--last", "--dry-run")
    assert shown.out.startswith("written by an earlier run, a reflection, 20")
    assert "memory: a reflection, 20" in shown.err
    assert "is left: all that was written was decided on, moved or changed since\n" in shown.err
    assert steps(undo(bed)) == {"always-use-pnpm-not-npm.md": "leave", "always-sign-the-commits.md": "remove"}
    plan = undo(bed)  # What is left of the second run, the edited note, does not hide the first either.
    assert steps(plan) == {"never-commit-on-a-friday.md": "remove"}
    assert len(plan.later) == 2
    (mine,) = [path for path in bed.files() if path != edited]
    assert decided in mine
    for _ in range(2):
        plan = undo(bed)
        assert (plan.changes, plan.later) == ([], []), "what is said of the last run"
        assert list(steps(plan).values()) == ["gone"]


def test_without_the_journal_what_a_session_said_is_named_and_stays(bed: Bed) -> None:
    bed.remember(said(RULE, "a"), said(RULE, "a", OTHER))
    bed.remember(said(RULE, "b"))
    bed.note("personal-private/preferences/mine.md", "Mine.", kind="preferences")
    for file in bed.journal.files:
        file.unlink(missing_ok=True)
    before = bed.files()
    plan = undo(bed, Selector(session="a"))
    assert bed.files() == before
    assert set(whys(plan).values()) == {Why.HOLDS_MORE}
    assert plan.left == 2


def test_a_note_that_cannot_be_read_does_not_keep_a_session_from_being_taken_back(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    (bed.vault / "log.md").write_bytes(b"x" * (MAX_ENTRY_BYTES + 1))
    undo(bed, Selector(session="a"))
    assert list(bed.files()) == ["log.md"]


SESSION = "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11"
ALIKE = "3f0c6a52-0000-4c55-9a51-0f6f6f2b8a11"


def test_the_beginning_of_an_id_names_its_session(bed: Bed) -> None:
    bed.remember(said(RULE, SESSION))
    assert bed.undo.session_called("3f0c6a") == SESSION
    assert bed.undo.session_called(SESSION) == SESSION
    assert bed.undo.session_called("ffffff") == "ffffff", "there is nothing of it to take back"
    with pytest.raises(UsageError, match="at least the first 6 characters"):
        bed.undo.session_called("3f0c6")


def test_a_beginning_that_two_sessions_share_names_neither(bed: Bed) -> None:
    bed.remember(said(RULE, SESSION))
    bed.remember(said(RULE, ALIKE, OTHER))
    with pytest.raises(UsageError, match=f"may be {ALIKE}, {SESSION}: give more of the id"):
        bed.undo.session_called("3f0c6a52")
    assert bed.undo.session_called("3f0c6a52-7") == SESSION
    undo(bed, Selector(session=SESSION))
    with pytest.raises(UsageError, match="may be"):
        bed.undo.session_called("3f0c6a52")  # Said again, it must not mean the other one.


def test_an_id_that_is_how_another_begins_is_meant_itself(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    bed.remember(said(RULE, "ab", OTHER))
    assert bed.undo.session_called("a") == "a"


def test_a_session_is_found_by_its_beginning_without_a_journal(bed: Bed) -> None:
    bed.remember(said(RULE, SESSION))
    shutil.rmtree(Path(bed.settings.state.root) / "journal")
    assert bed.undo.session_called("3f0c6a") == SESSION


# --- the command ---


def test_a_session_that_nothing_is_known_of_fails_unlike_one_with_nothing_left(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    bed.enter(monkeypatch)
    bed.remember(said(RULE, SESSION))
    markers = bed.settings.state.markers
    create_marker(markers, Marker("quiet-one", "2026-01-01T00:00:00Z", "startup", "/t.jsonl", "/x", "claude", 0))
    for _ in range(2):
        memory("undo", "--session", SESSION, "--yes")
    for known in (SESSION[:8], "quiet-one"):
        assert "there is nothing to take back" in memory("undo", "--session", known, "--yes").out
    for options in ([], ["--dry-run"], ["--json"]):
        said_of_it = memory("undo", "--session", "zzzzzzz", *options, code=1)
        assert said_of_it.out == ""
        assert said_of_it.err == "memory: there is no session 'zzzzzzz': is that its id?\n"


def test_plan_that_was_shown_is_carried_out_despite_later_writes(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    bed.enter(monkeypatch)
    bed.remember(said(RULE, "shown"))

    def answer(_: str) -> str:
        bed.remember(said(RULE, "since", OTHER))
        return "y"

    monkeypatch.setattr("memoryvault.cli.terminal._read_beside", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    shown, done = (line for line in memory("undo").out.splitlines() if line.startswith("written by"))
    assert shown == done
    assert [entry.sources[0].session for entry in bed.entries()] == ["since"]


def test_a_runaway_session_is_taken_back_by_one_command(sandbox: Sandbox) -> None:
    session = str(uuid.uuid4())
    shipped = (Path(__file__).resolve().parents[2] / "demo" / "session.jsonl").read_text("utf-8")
    own = json.loads(shipped.splitlines()[0]).get("sessionId") or session
    transcript = sandbox.transcript(session, shipped)
    sandbox.memory("save", "preferences", "mine", "--body", "My own.")
    sandbox.memory("reflect", "--session", str(transcript))
    written = len(list(sandbox.vault.rglob("*.md")))
    assert written > 1
    shown = sandbox.memory("undo", "--session", own, "--dry-run")
    assert len(list(sandbox.vault.rglob("*.md"))) == written
    assert shown.count("remove: ") == written - 1
    done = sandbox.json("undo", "--session", own, "--yes")
    assert done["done"]
    assert {path.name for path in sandbox.vault.rglob("*.md")} == {"mine.md", "taken-back.md"}
    assert sandbox.memory("undo").strip() == "there is nothing to take back"


@pytest.mark.slow
@pytest.mark.parametrize("json_wanted", [False, True])
def test_without_a_terminal_it_shows_and_refuses_until_yes_is_said(sandbox: Sandbox, json_wanted: bool) -> None:
    session = str(uuid.uuid4())
    shipped = (Path(__file__).resolve().parents[2] / "demo" / "session.jsonl").read_text("utf-8")
    sandbox.memory("reflect", "--session", str(sandbox.transcript(session, shipped)))
    before = {path: path.read_bytes() for path in sandbox.vault.rglob("*.md")}
    own = json.loads(shipped.splitlines()[0]).get("sessionId") or session
    arguments = ("undo", "--session", own[:8], *(("--json",) if json_wanted else ()))
    done = sandbox.run(*arguments, stdin="y\n")
    assert done.returncode == 2
    assert "--yes takes this back" in done.stderr.splitlines()[-1]
    if json_wanted:
        assert json.loads(done.stdout)["done"] is False
    else:
        assert done.stdout.count("remove: ") == len(before)
    assert {path: path.read_bytes() for path in sandbox.vault.rglob("*.md")} == before
    sandbox.memory(*arguments, "--yes")
    assert [path.name for path in sandbox.vault.rglob("*.md")] == ["taken-back.md"]


@pytest.mark.parametrize("arguments", [("--since", "yesterday-ish"), ("--session", " "), ("--last", "--since", "2h")])
def test_bad_usage_exits_with_2(sandbox: Sandbox, arguments: tuple[str, ...]) -> None:
    sandbox.refused("undo", *arguments, code=2)
