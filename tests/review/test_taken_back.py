"""Removed evidence is recorded in a note by ids, sorted, and counts until the user deletes it there."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.runtime.errors import EntryInvalid
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.remembering import preview
from memoryvault.services.tombstones import EMPTY, NOTE, Evidence, Tombstones, evidence_of, text_with
from memoryvault.services.undoing import Selector
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.readonly import with_readonly
from memoryvault.vault.entry import Source

from .support import CHOICE, GUESS, RULE, Bed, said

LAST = Selector(last=True)
ONE: set[Evidence] = {("s1", "r1")}


def taken_back(bed: Bed) -> Tombstones:
    return Tombstones(bed.store)


def note_of(bed: Bed) -> Path:
    return bed.vault / NOTE


# --- read again, and said anew ---


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


def test_a_copy_of_the_record_in_a_session_that_was_resumed_under_a_new_id_is_the_same(bed: Bed) -> None:
    first, copied = (
        replace(RULE, session=session, records=("3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11",)) for session in ("a", "b")
    )
    bed.remember(first)
    bed.undo.carry_out(LAST)
    assert bed.remember(copied).written == ()


@pytest.mark.parametrize("place", ["line:0", "step:0", "0", "msg-1"])
def test_records_that_are_only_counted_are_told_apart_by_session(bed: Bed, place: str) -> None:
    first, other = (replace(RULE, session=session, records=(place,)) for session in ("a", "b"))
    bed.remember(first)
    bed.undo.carry_out(LAST)
    assert bed.remember(first).written == ()
    assert len(bed.remember(other).written) == 1


# --- the note ---


def test_the_note_holds_ids_and_none_of_the_words_that_went(bed: Bed) -> None:
    bed.remember(said(RULE, "b"), said(CHOICE, "a"))
    bed.undo.carry_out(LAST)
    text = note_of(bed).read_text("utf-8")
    assert text == EMPTY + "- `a`: `a-record`\n- `b`: `b-record`\n"
    assert "pnpm" not in text


def test_names_of_files_that_were_imported_are_words_and_stay_out_of_it(bed: Bed) -> None:
    taken_back(bed).add({("s1", "never-say-this.md"), ("", "r1"), ("a session", "r2")})
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
    taken_back(bed).add(ONE)
    file = note_of(bed)
    file.write_bytes(file.read_bytes() + line.encode() + b"\xff last, without an end")
    assert taken_back(bed).evidence() == ONE
    taken_back(bed).add({("s0", "r0")})
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
    taken_back(bed).add(ONE)
    copy = note_of(bed).with_name("taken-back.sync-conflict-20260101-101010-ABCDEFG.md")
    copy.write_text(text_with(EMPTY, {("s2", "r2")}), "utf-8")
    assert taken_back(bed).evidence() == {*ONE, ("s2", "r2")}
    taken_back(bed).forget()
    assert (taken_back(bed).evidence(), copy.exists(), note_of(bed).exists()) == (set(), False, False)


def test_a_damaged_state_folder_hides_neither_the_note_nor_what_is_read(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    bed.undo.carry_out(LAST)
    Path(bed.settings.state.state_db).write_bytes(b"no database" * 500)
    assert taken_back(bed).evidence() == {("a", "a-record")}
    assert bed.remember(said(RULE, "a")).written == ()
    assert len(bed.remember(said(GUESS, "b")).written) == 1
    bed.undo.carry_out(LAST)
    assert ("b", "b-record") in taken_back(bed).evidence()


def test_a_note_that_is_no_note_hides_nothing_from_mining_and_stops_undo_before_it_changes_anything(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    note_of(bed).mkdir(parents=True)
    before = bed.files()
    with pytest.raises(EntryInvalid):
        bed.undo.carry_out(LAST)
    assert bed.files() == before
    assert len(bed.remember(said(GUESS, "b")).written) == 1


def test_note_that_is_too_large_is_read_in_whole_lines(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_back(bed).add({*ONE, ("s2", "r2")})
    monkeypatch.setattr("memoryvault.services.tombstones.MAX_ENTRY_BYTES", len(note_of(bed).read_bytes()) - 2)
    assert taken_back(bed).evidence() == ONE


def test_recall_never_shows_it(bed: Bed) -> None:
    bed.remember(said(RULE, "a"), said(GUESS, "pnpm"))
    bed.undo.carry_out(LAST)
    reconcile_now(bed.settings)
    engine = RecallEngine(Path(bed.settings.state.index_db), bed.vault, None)
    try:
        for asked in ("what did I take back from pnpm-record?", "taken back memory undo sessions records"):
            assert engine.recall(RecallQuery(asked, all_projects=True)).hits == ()
    finally:
        engine.close()


def test_forgetting_takes_our_lines_out_and_leaves_the_users(bed: Bed) -> None:
    taken_back(bed).add(ONE)
    taken_back(bed).forget()
    assert taken_back(bed).evidence() == set()
    assert not note_of(bed).exists()
    taken_back(bed).add(ONE)
    bed.edit(NOTE, "# Taken back", "# Mine")
    taken_back(bed).forget()
    assert note_of(bed).read_text("utf-8") == EMPTY.replace("# Taken back", "# Mine")


# --- before the vault is changed ---


def test_removal_is_recorded_before_the_vault_is_changed(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    code = (
        "import os\n"
        "from memoryvault.runtime.settings import load_settings\n"
        "from memoryvault.tests.review.support import Bed, Path\n"
        "from memoryvault.services.undoing import Selector\n"
        "Bed(Path.cwd(), os.environ).undo.carry_out(Selector(last=True))\n"
    )
    before = bed.files()
    assert bed.run_python(code, kill_point="journal-pending") == -9
    assert (bed.files(), taken_back(bed).evidence()) == (before, {("a", "a-record")})
    assert bed.run_python(code) == 0
    assert (bed.files(), taken_back(bed).evidence()) == ({}, {("a", "a-record")})


@pytest.mark.parametrize("folder", ["", "personal-private"])
def test_failed_undo_records_no_removal(bed: Bed, folder: str) -> None:
    bed.remember(said(RULE, "a"), said(GUESS, "b"))
    taken_back(bed).add({("b", "b-record")})
    before = (bed.files(), note_of(bed).read_bytes())
    place = bed.vault / folder
    try:
        argv = with_readonly(place, [sys.executable, "-m", "memoryvault", "undo", "--yes"])
        done = subprocess.run(argv, env=bed.env, cwd=bed.root, capture_output=True, text=True, check=False)
    finally:
        place.chmod(0o755)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("memory: ")
    assert "read-only for you" in line
    assert (bed.files(), note_of(bed).read_bytes()) == before
    assert taken_back(bed).evidence() == {("b", "b-record")}


def test_the_command_says_that_it_is_not_written_again_and_where_that_stands(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    bed.enter(monkeypatch)
    bed.remember(said(RULE, "a"))
    assert NOTE not in memory("undo", "--dry-run").err
    assert NOTE in memory("undo", "--yes").err
    assert NOTE not in memory("undo", "--yes").err
