"""Undo restores what the program wrote and nobody has changed since, byte for byte, and names the rest."""

import json
import shutil
import uuid
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.pipelines.review import Approve
from memoryvault.runtime.errors import EntryInvalid, MemoryVaultError, UsageError
from memoryvault.services import tombstones
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.journal import Change
from memoryvault.services.remembering import preview
from memoryvault.services.tombstones import EMPTY, NOTE, Evidence, evidence_of, text_with
from memoryvault.services.undoing import Selector, UndoPlan, Why
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.readonly import memory_with_readonly
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.vault.entry import Source
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import MAX_ENTRY_BYTES

from .support import CHOICE, GUESS, RULE, Bed, said

LAST = Selector(last=True)
OTHER = "Never commit on a Friday"


NOTED = "personal-private/preferences/always-use-pnpm-not-npm.md"
PROPOSED = "personal-private/_review/release-report-reads-well-bullet-list.md"
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
    return {session for session, _ in tombstones.removed_evidence(bed.store)}


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


def test_a_decided_note_is_not_undone_until_the_decision_is_taken_back(bed: Bed) -> None:
    bed.remember(said(CHOICE, "a"))
    proposal = bed.only("pending").path
    place = bed.reviewer.decide(proposal, Approve(), run="r").path
    before = bed.files()
    assert undo(bed).changes == []
    plan = undo(bed, Selector(session="a"))
    assert (plan.changes, whys(plan)) == ([], {proposal: Why.GONE, place: Why.DECIDED})
    assert bed.files() == before
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


def test_since_a_time(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    now = datetime.now(UTC)
    assert undo(bed, Selector(since=now + timedelta(hours=1))).changes == []
    undo(bed, Selector(since=now - timedelta(hours=1)))
    assert bed.files() == {}


def test_missing_note_does_not_count_as_kept(ask: Bed, memory: Command) -> None:
    ask.remember(CHOICE)
    moved = ask.only("pending").path
    ask.reviewer.decide(moved, Approve(), run="r")
    shown = memory("undo", "--dry-run")
    assert shown.out.splitlines()[1:] == [f"gone: {moved}", f"    {Why.GONE}"]
    assert "stay" not in shown.err


def test_before_the_question_a_long_list_is_cut(ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    ask.remember(said(RULE, "b"), said(RULE, "b", "Always sign the commits"))
    monkeypatch.setattr("memoryvault.cli.undo.MOST_LISTED", 1)
    monkeypatch.setattr("memoryvault.cli.undo.is_agreed", lambda question: False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert memory("undo", code=1).out.splitlines()[2:] == ["and 1 more note; --dry-run lists all"]
    assert "more note" not in memory("undo", "--dry-run").out


def test_a_run_of_which_nothing_can_be_taken_back_does_not_hide_the_ones_before(ask: Bed, memory: Command) -> None:
    ask.remember(said(RULE, "a", OTHER))
    ask.remember(said(RULE, "b"), said(RULE, "b", "Always sign the commits"))
    ask.edit(NOTED, "## Evidence", "Mine.\n\n## Evidence")
    ask.remember(said(CHOICE, "c", "No, use tabs instead of spaces"))
    ask.reviewer.decide(ask.only("pending").path, Approve(), run="r")
    shown = memory("undo", "--last", "--dry-run")
    assert shown.out.startswith("written by an earlier run, a reflection, 20")
    assert "memory: what later runs wrote is left: " in shown.err
    plan = undo(ask)
    assert steps(plan) == {"always-use-pnpm-not-npm.md": "leave", "always-sign-the-commits.md": "remove"}
    assert (whys(plan)[NOTED], plan.left) == (Why.EDITED, 1)
    done = memory.json("undo", "--last", "--yes")  # What is left of the second run does not hide the first either.
    assert [(step["path"].rsplit("/", 1)[-1], step["step"]) for step in done["steps"]] == [
        ("never-commit-on-a-friday.md", "remove")
    ]
    assert done["is_earlier"]
    assert ask.files().keys() == {NOTED, "personal-private/preferences/use-tabs-instead-of-spaces.md"}
    for _ in range(2):
        plan = undo(ask)
        assert (plan.changes, plan.is_earlier) == ([], False), "what is said of the last run"
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


@pytest.mark.parametrize("with_journal", [True, False])
def test_the_beginning_of_an_id_names_its_session(bed: Bed, with_journal: bool) -> None:
    bed.remember(said(RULE, SESSION))
    bed.remember(said(RULE, f"{SESSION}-b", OTHER))
    if not with_journal:
        shutil.rmtree(Path(bed.settings.state.root) / "journal")
    assert bed.undo.session_called(f"{SESSION}-") == f"{SESSION}-b"
    assert bed.undo.session_called(SESSION) == SESSION, "though another begins so"
    with pytest.raises(MemoryVaultError, match="nothing to take back of a session 'ffffff'"):
        bed.undo.session_called("ffffff")
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


def test_a_session_that_nothing_is_known_of_fails(ask: Bed, memory: Command) -> None:
    ask.remember(said(RULE, SESSION))
    for _ in range(2):
        memory("undo", "--session", SESSION, "--yes")
    assert "there is nothing to take back" in memory("undo", "--session", SESSION[:8], "--yes").out
    for session, *options in (
        ("zzzzzzz",),
        ("zzzzzzz", "--dry-run"),
        ("zzzzzzz", "--json"),
        (SESSION, "--of", "triage"),
    ):
        said_of_it = memory("undo", "--session", session, *options, code=1)
        assert said_of_it.out == ""
        assert said_of_it.err == f"memory: there is nothing to take back of a session {session!r}\n"


def test_plan_that_was_shown_is_carried_out_despite_later_writes(
    ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    ask.remember(said(RULE, "shown"))

    def answer(_: str) -> str:
        ask.remember(said(RULE, "since", OTHER))
        return "y"

    monkeypatch.setattr("memoryvault.cli.terminal._read_beside", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    shown, done = (line for line in memory("undo").out.splitlines() if line.startswith("written by"))
    assert shown == done
    assert [entry.sources[0].session for entry in ask.entries()] == ["since"]


@pytest.mark.slow
@pytest.mark.parametrize("json_wanted", [False, True])
def test_one_command_takes_a_session_back_and_without_a_terminal_needs_yes(sandbox: Sandbox, json_wanted: bool) -> None:
    shipped = (Path(__file__).resolve().parents[2] / "demo" / "session.jsonl").read_text("utf-8")
    sandbox.memory("reflect", "--session", str(sandbox.transcript(str(uuid.uuid4()), shipped)))
    session = str(json.loads(shipped.splitlines()[0])["sessionId"])
    sandbox.memory("save", "preferences", "mine", "--body", "My own.")
    before = {path: path.read_bytes() for path in sandbox.vault.rglob("*.md")}
    arguments = ("undo", "--session", session[:8], *(("--json",) if json_wanted else ()))
    done = sandbox.run(*arguments, stdin="y\n")
    assert done.returncode == 2
    assert "--yes takes this back" in done.stderr.splitlines()[-1]
    if json_wanted:
        assert json.loads(done.stdout)["done"] is False
    else:
        assert done.stdout.count("remove: ") == len(before) - 1
    assert {path: path.read_bytes() for path in sandbox.vault.rglob("*.md")} == before
    told = sandbox.memory(*arguments, "--yes")
    assert not json_wanted or json.loads(told)["done"] is True
    assert {path.name for path in sandbox.vault.rglob("*.md")} == {"mine.md", "taken-back.md"}


@pytest.mark.parametrize("arguments", [("--since", "yesterday-ish"), ("--session", " "), ("--last", "--since", "2h")])
def test_bad_usage_exits_with_2(sandbox: Sandbox, arguments: tuple[str, ...]) -> None:
    sandbox.refused("undo", *arguments, code=2)


# Removed evidence is recorded in a note by ids, sorted, and counts until the user deletes it there


ONE: set[Evidence] = {("s1", "r1")}


def note_of(bed: Bed) -> Path:
    return bed.vault / NOTE


def test_removed_evidence_is_not_written_again_from_its_session(bed: Bed) -> None:
    rule, guess = said(RULE, "a"), replace(said(GUESS, "a"), records=("a-other",))
    bed.remember(rule, guess)
    bed.undo.carry_out(LAST)
    shutil.rmtree(bed.settings.state.root)
    bed.settings.state.ensure()
    again = bed.remember(rule, guess)
    assert (again.written, again.counts) == ((), {"taken_back": 2})
    assert {routed.why for routed in again.routed} == {f"you took it back: {NOTE}"}
    assert preview([rule], bed.store, bed.settings)[0].why == f"you took it back: {NOTE}"
    assert bed.files() == {}


def test_said_anew_it_is_written_with_the_new_evidence_alone(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    bed.undo.carry_out(LAST)
    bed.remember(said(RULE, "a"), replace(said(RULE, "a"), records=("a-later",)))
    (entry,) = bed.entries()
    assert (entry.sources, entry.occurrences) == ((Source("claude", "a", ("a-later",)),), 1)


def test_only_the_record_that_says_it_counts_not_what_it_is_about(bed: Bed) -> None:
    found = replace(GUESS, category="fix", role="tool", session="a", records=("failure", "cause"))
    bed.remember(found)
    bed.undo.carry_out(LAST)
    other = replace(found, statement="The port was taken by the old server", records=("failure", "another"))
    assert bed.remember(found).written == ()
    assert len(bed.remember(other).written) == 1


@pytest.mark.parametrize(
    ("record", "is_other"),
    [("3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11", False), ("line:0", True), ("step:0", True), ("0", True), ("msg-1", True)],
)
def test_a_copy_of_a_record_in_another_session_is_the_same_but_not_one_that_is_only_counted(
    bed: Bed, record: str, is_other: bool
) -> None:
    first, other = (replace(RULE, session=session, records=(record,)) for session in ("a", "b"))
    bed.remember(first)
    bed.undo.carry_out(LAST)
    assert bed.remember(first).written == ()
    assert bool(bed.remember(other).written) is is_other


def test_the_note_holds_ids_and_none_of_the_words_that_went(bed: Bed) -> None:
    bed.remember(said(RULE, "b"), said(CHOICE, "a"))
    bed.undo.carry_out(LAST)
    assert note_of(bed).read_text("utf-8") == EMPTY + "- `a`: `a-record`\n- `b`: `b-record`\n"


def test_names_of_files_that_were_imported_are_words_and_stay_out_of_it(bed: Bed) -> None:
    bed.record_removal(("s1", "never-say-this.md"), ("", "r1"), ("a session", "r2"))
    assert not note_of(bed).exists()


ids = st.text("abcXYZ019-_:", min_size=1, max_size=6)
evidence = st.sets(st.tuples(st.text("abZ09.-_", min_size=1, max_size=6).filter(lambda s: s[0] != "."), ids))


@given(evidence, evidence)
def test_two_devices_that_take_the_same_back_have_the_same_note(first: set[Evidence], second: set[Evidence]) -> None:
    text = text_with(EMPTY, first | second)
    assert evidence_of(text) == first | second
    assert text_with(text_with(EMPTY, first), first | second) == text
    assert text_with(text, ()) == EMPTY


@given(st.text(st.characters(exclude_characters="`", exclude_categories=["Cs"])), evidence)
def test_lines_of_the_user_stay_byte_for_byte(own: str, found: set[Evidence]) -> None:
    text = text_with(f"{own}\n", found)
    assert text.startswith(f"{own}\n")
    assert evidence_of(text) == found
    assert text_with(text, ()) == f"{own}\n"


@pytest.mark.parametrize(
    "line", ["- a line of mine\r\n", "- `s9`: `r 9`\n", "- `s9`: r9\n", "- `s9`:\n", "- `.s9`: `r9`\n", "`s9`: `r9`\n"]
)
def test_a_line_that_cannot_be_read_says_nothing_and_stays(bed: Bed, line: str) -> None:
    bed.record_removal(*ONE)
    file = note_of(bed)
    file.write_bytes(file.read_bytes() + line.encode() + b"\xff last, without an end")
    assert tombstones.removed_evidence(bed.store) == ONE
    bed.record_removal(("s0", "r0"))
    ours = b"- `s0`: `r0`\n- `s1`: `r1`\n"
    assert file.read_bytes() == EMPTY.encode() + ours + line.encode() + b"\xff last, without an end"


def test_deleting_a_line_allows_the_evidence_again(bed: Bed) -> None:
    for session in ("a", "b"):
        bed.remember(said(RULE if session == "a" else GUESS, session))
        bed.undo.carry_out(LAST)
    bed.edit(NOTE, "- `a`: `a-record`\n", "")
    assert len(bed.remember(said(RULE, "a")).written) == 1
    assert bed.remember(said(GUESS, "b")).written == ()
    note_of(bed).unlink()
    assert len(bed.remember(said(GUESS, "b")).written) == 1


def test_a_copy_that_a_sync_client_left_counts_too(bed: Bed) -> None:
    bed.record_removal(*ONE)
    copy = note_of(bed).with_name("taken-back.sync-conflict-20260101-101010-ABCDEFG.md")
    copy.write_text(text_with(EMPTY, {("s2", "r2")}), "utf-8")
    assert tombstones.removed_evidence(bed.store) == {*ONE, ("s2", "r2")}
    tombstones.forget_removals(bed.store)
    assert (tombstones.removed_evidence(bed.store), copy.exists(), note_of(bed).exists()) == (set(), False, False)


def test_a_note_that_is_no_note_hides_nothing_from_mining_and_stops_undo_before_it_changes_anything(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    note_of(bed).mkdir(parents=True)
    before = bed.files()
    with pytest.raises(EntryInvalid):
        bed.undo.carry_out(LAST)
    assert bed.files() == before
    assert len(bed.remember(said(GUESS, "b")).written) == 1


def test_recall_never_shows_it(bed: Bed) -> None:
    bed.remember(said(RULE, "a"), said(GUESS, "pnpm"))
    bed.undo.carry_out(LAST)
    reconcile_now(bed.settings)
    with closing(RecallEngine(Path(bed.settings.state.index_db), bed.vault, None)) as engine:
        for asked in ("what did I take back from pnpm-record?", "taken back memory undo sessions records"):
            assert engine.recall(RecallQuery(asked, all_projects=True)).hits == ()


def test_forgetting_takes_our_lines_out_and_leaves_the_users(bed: Bed) -> None:
    bed.record_removal(*ONE)
    tombstones.forget_removals(bed.store)
    assert tombstones.removed_evidence(bed.store) == set()
    assert not note_of(bed).exists()
    bed.record_removal(*ONE)
    bed.edit(NOTE, "# Taken back", "# Mine")
    tombstones.forget_removals(bed.store)
    assert note_of(bed).read_text("utf-8") == EMPTY.replace("# Taken back", "# Mine")


@pytest.mark.parametrize(
    ("kill_point", "is_done"), [("journal-pending", False), ("journal-applied", True), ("journal-recorded", True)]
)
def test_removal_is_recorded_if_and_only_if_the_vault_is_changed(bed: Bed, kill_point: str, is_done: bool) -> None:
    bed.remember(said(RULE, "a"))
    code = (
        "from memoryvault.services.undoing import Selector, Undo\nUndo(store, journal).carry_out(Selector(last=True))\n"
    )
    before = bed.files()
    assert bed.run_python(code, kill_point=kill_point) == -9
    bed.journal.recover()
    done: tuple[object, object] = ({}, {("a", "a-record")})
    assert (bed.files(), tombstones.removed_evidence(bed.store)) == (done if is_done else (before, set()))
    assert bed.run_python(code) == 0
    assert (bed.files(), tombstones.removed_evidence(bed.store)) == done
    assert len([act for act in bed.journal.acts() if act.actor == "undo"]) == 1


@pytest.mark.parametrize("folder", ["", "personal-private"])
def test_failed_undo_records_no_removal(bed: Bed, folder: str) -> None:
    bed.remember(said(RULE, "a"), said(GUESS, "b"))
    bed.record_removal(("b", "b-record"))
    before = (bed.files(), note_of(bed).read_bytes())
    place = bed.vault / folder
    done = memory_with_readonly(place, bed.env, "undo", "--yes")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("memory: ")
    assert "cannot be written: " in line
    assert (bed.files(), note_of(bed).read_bytes()) == before
    assert tombstones.removed_evidence(bed.store) == {("b", "b-record")}


def test_the_command_says_where_the_removal_stands(ask: Bed, memory: Command) -> None:
    ask.remember(said(RULE, "a"))
    assert NOTE not in memory("undo", "--dry-run").err
    assert NOTE in memory("undo", "--yes").err
    assert NOTE not in memory("undo", "--yes").err
