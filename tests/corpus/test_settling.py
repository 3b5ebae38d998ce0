"""corpus.settle: what was mined becomes a bounded number of notes, once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.hooks.session_start import format_reminder
from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.incubation import Answer
from memoryvault.pipelines.review import Approve, Reject
from memoryvault.services.corpus import settling
from memoryvault.services.corpus.backfill import SETTLE
from memoryvault.services.corpus.settling import DIGEST, REFRESH, SettleCounts, refresh_digest, settle
from memoryvault.services.corpus.store import CorpusStore
from memoryvault.services.ideas.incubator import decide_on_idea
from memoryvault.services.ideas.ledger import ideas, promote, slug_of
from memoryvault.services.mining import Mined
from memoryvault.services.scrubbing import scrub_everything
from memoryvault.services.tombstones import NOTE, TakenBack
from memoryvault.services.undoing import Selector
from memoryvault.tasks.jobs.corpus_settling import digest_handler, settle_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.tests.review.support import CHOICE, GUESS, RULE, Bed, make_bed, said
from memoryvault.vault.pending import question_path
from memoryvault.vault.registry import HEADER_BYTES


def keep(bed: Bed, session: str, *candidates: Candidate, offset: int = 0) -> None:
    """As mining this session's transcript would."""
    found = [replace(each, session=session, records=(f"{session}-{offset}-{n}",)) for n, each in enumerate(candidates)]
    mined = Mined(tuple(found), 100, 100, 100, 0, False, "claude")
    store = CorpusStore(bed.settings.state)
    store.keep(f"claude-{session}", offset, float(len(session)), mined)
    store.advance(f"claude-{session}", {"offset": 100, "resume": 100, "size": 100})


def mined(bed: Bed, session: str, *candidates: Candidate) -> None:
    """The same, of a transcript that is known by its session."""
    keep(bed, session, *candidates)
    CorpusStore(bed.settings.state).advance(f"claude-{session}", {"offset": 100, "size": 100, "session": session})


def settled(bed: Bed) -> SettleCounts:
    return settle(bed.settings, bed.store)


def choices(count: int) -> list[Candidate]:
    things = ("fixtures", "diagrams", "invoices", "migrations", "screenshots", "translations", "benchmarks")
    return [replace(CHOICE, statement=f"No, put the {things[n]} into their own folder") for n in range(count)]


def statuses(bed: Bed) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in bed.entries():
        if entry.path != DIGEST:
            found[entry.effective_status] = found.get(entry.effective_status, 0) + 1
    return found


def test_an_old_corpus_does_not_flood_what_waits_for_the_user(bed: Bed) -> None:
    keep(bed, "s1", RULE, GUESS, *choices(5))
    assert settled(bed) == SettleCounts(saved=1, proposed=2, held=4, strengthened=0)
    assert statuses(bed) == {"active": 1, "pending": 2}
    digest = bed.files()[DIGEST]
    assert digest.count("\n- ") == 4
    assert "3 more are sure enough" in digest


def ideas_of_old(count: int) -> list[Candidate]:
    things = ("museum", "harbour", "orchard", "theatre", "bakery", "library", "stadium", "airport", "castle", "garden")
    names = [f"{thing} for {whom}" for whom in ("kites", "clocks", "drums") for thing in things]
    return [replace(GUESS, category="idea", statement=f"Idea: a {names[n]} in the shop.") for n in range(count)]


@pytest.mark.parametrize("answer", ["approve", "reject", "keep", "archive", "promote"])
def test_an_idea_on_which_the_user_has_decided_makes_room_for_the_next(bed: Bed, answer: str) -> None:
    keep(bed, "s1", *ideas_of_old(5))
    assert settled(bed) == SettleCounts(saved=0, proposed=2, held=3, strengthened=0)
    assert settled(bed).proposed == 0, "none was decided on"
    idea = next(ideas(bed.store))
    if answer in ("approve", "reject"):
        decision = Approve() if answer == "approve" else Reject()
        bed.reviewer.decide(question_path(slug_of(idea.path)), decision, run="t")
    elif answer == "promote":
        promote(bed.settings, bed.journal, slug_of(idea.path))
    else:
        decide_on_idea(bed.settings, bed.journal, slug_of(idea.path), Answer(answer), run="t")
    assert settled(bed) == SettleCounts(saved=0, proposed=1, held=2, strengthened=0)
    assert settled(bed).proposed == 0


def test_what_is_written_into_the_list_unasked_was_not_decided_on(tmp_path: Path) -> None:
    (tmp_path / "silent").mkdir()
    bed = make_bed(tmp_path / "silent", MEMORY_REFLECTION_CORPUS_REVIEW_ENTRIES="2", MEMORY_REVIEW_MODE="silent")
    keep(bed, "s1", *ideas_of_old(5))
    assert settled(bed).proposed == 2
    assert settled(bed).proposed == 0


def test_a_backfill_leaves_room_for_ideas_of_new_sessions_before_the_incubator_is_told_to_be_full(
    tmp_path: Path,
) -> None:
    (tmp_path / "default").mkdir()
    bed = make_bed(tmp_path / "default")
    keep(bed, "s1", *ideas_of_old(30))
    settled(bed)
    assert len([*ideas(bed.store)]) == 15

    def told() -> str:
        return format_reminder(str(bed.vault), str(bed.settings.state.harness), "s9")

    for number in range(5):
        fresh = replace(
            GUESS, category="idea", statement=f"Idea: {'abcde'[number] * 4} shown on page {'fghij'[number]}."
        )
        bed.remember(said(fresh, f"fresh-{number}"))
        assert "incubator" not in told()
    bed.remember(
        said(replace(GUESS, category="idea", statement="Idea: a sixth one, of quite another sort."), "fresh-6")
    )
    assert "the incubator holds 21 ideas" in told()


def test_settling_again_changes_nothing(bed: Bed) -> None:
    keep(bed, "s1", RULE, GUESS, *choices(5))
    settled(bed)
    before = bed.files()
    assert settled(bed) == SettleCounts(saved=0, proposed=0, held=4, strengthened=0)
    assert bed.files() == before


@pytest.mark.slow
def test_settling_again_changes_nothing_of_a_note_with_much_evidence(bed: Bed) -> None:
    for number in range(40):
        long = f"session-{number}-" + "x" * 100
        found = [replace(RULE, session=long, records=tuple(f"{long}-{n}" for n in range(4)))]
        corpus = CorpusStore(bed.settings.state)
        corpus.keep(f"claude-{number}", 0, float(number), Mined(tuple(found), 100, 100, 100, 0, False, "claude"))
        corpus.advance(f"claude-{number}", {"offset": 100, "resume": 100, "size": 100})
    settled(bed)
    (path,) = (path for path in bed.files() if path != DIGEST)
    assert bed.store.read(path).occurrences == 40
    before = bed.files()
    assert len(before[path]) > HEADER_BYTES
    assert settled(bed) == SettleCounts(saved=0, proposed=0, held=0, strengthened=0)
    assert bed.files() == before


def test_an_idea_of_several_sessions_came_up_in_the_first_of_them_whenever_their_files_were_written(bed: Bed) -> None:
    """A backup that was restored has the times of its restoration."""
    idea = replace(GUESS, category="idea", statement="Idea: a museum of kites in the shop.")
    keep(bed, "s1", replace(idea, said_at="2026-05-01T10:00:00Z"))
    keep(bed, "longer", replace(idea, said_at="2026-01-30T10:00:00Z"))
    settled(bed)
    (entry,) = (entry for entry in bed.entries() if entry.kind == "idea")
    assert (entry.surfaced_in_session, entry.surfaced_at) == ("longer", "2026-01-30T10:00:00Z")
    assert entry.occurrences == 2


def rules(count: int) -> list[Candidate]:
    things = ("fixtures", "diagrams", "invoices", "migrations", "screenshots", "translations", "benchmarks")
    return [replace(RULE, statement=f"Always put {things[n]} into their own folder") for n in range(count)]


@pytest.fixture
def only_one_rule_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "SAVED_RULES", 1)


@pytest.mark.usefixtures("only_one_rule_saved")
def test_an_old_corpus_full_of_rules_saves_the_strongest_and_asks_for_the_others(bed: Bed) -> None:
    keep(bed, "s1", *rules(5))
    assert settle(bed.settings, bed.store) == SettleCounts(saved=1, proposed=2, held=2, strengthened=0)
    assert statuses(bed) == {"active": 1, "pending": 2}
    before = bed.files()
    assert settle(bed.settings, bed.store) == SettleCounts(saved=0, proposed=0, held=2, strengthened=0)
    assert bed.files() == before
    for path in [entry.path for entry in bed.entries() if entry.effective_status == "active"]:
        (bed.vault / path).unlink()
    keep(bed, "s2", *rules(5))
    assert settle(bed.settings, bed.store).saved == 1
    assert statuses(bed) == {"active": 1, "pending": 2}, "what waits is not saved because it was said again"


@pytest.mark.parametrize("days", [("Mondays", "Tuesdays"), ("Tuesdays", "Mondays")])
def test_of_two_old_rules_that_exclude_each_other_the_later_is_proposed(bed: Bed, days: tuple[str, str]) -> None:
    for session, day in zip(("s", "longer"), days, strict=True):
        keep(bed, session, replace(RULE, statement=f"Always deploy on {day}."))
    settled(bed)
    (active,) = [entry for entry in bed.entries() if entry.effective_status == "active" and entry.path != DIGEST]
    assert days[0] in active.body
    assert days[1] in bed.only("pending").body


def test_a_decision_makes_room_for_the_next(bed: Bed) -> None:
    keep(bed, "s1", *choices(5))
    settled(bed)
    for entry in bed.reviewer.waiting("_review"):
        bed.decide_in_note(entry.path, "reject")
    bed.reviewer.apply_notes()
    assert settled(bed).proposed == 2
    assert statuses(bed) == {"rejected": 2, "pending": 2}


def test_occurrences_add_up_over_the_whole_corpus(bed: Bed) -> None:
    keep(bed, "s1", GUESS)
    keep(bed, "s2", GUESS)
    assert settled(bed).proposed == 0
    assert "- [ ] 2× in 2 sessions" in bed.files()[DIGEST]
    keep(bed, "s3", GUESS)
    assert settled(bed).proposed == 1
    entry = bed.only("pending")
    assert entry.occurrences == 3
    assert {source.session for source in entry.sources} == {"s1", "s2", "s3"}
    assert "\n- " not in bed.files()[DIGEST].split("## Ranked", 1)[1]


def test_one_occurrence_strengthens_what_a_live_session_left_in_the_inbox(bed: Bed) -> None:
    bed.remember(said(GUESS, "live-1"), said(GUESS, "live-2"))
    keep(bed, "s1", GUESS)
    assert settled(bed).strengthened == 1
    assert bed.only("pending").occurrences == 3


def test_what_a_backfill_wrote_of_many_sessions_is_one_run_to_undo(bed: Bed) -> None:
    bed.remember(said(GUESS, "live"))
    before = bed.files()
    keep(bed, "s1", RULE, *choices(1))
    keep(bed, "s2", *choices(1))
    settled(bed)
    plan = bed.undo.carry_out(Selector(last=True))
    assert (plan.run.partition(":")[0], plan.sessions) == ("backfill", 2)
    files = bed.files()
    del files[DIGEST]
    assert files == before


@pytest.mark.usefixtures("only_one_rule_saved")
def test_what_was_taken_back_comes_again_when_it_is_said_again_or_all_is_forgotten(bed: Bed) -> None:
    keep(bed, "s1", RULE, *choices(1))
    settle(bed.settings, bed.store)
    bed.undo.carry_out(Selector(last=True))
    shutil.rmtree(Path(bed.settings.state.root) / "journal")
    assert settle(bed.settings, bed.store) == SettleCounts(saved=0, proposed=0, held=0, strengthened=0)
    keep(bed, "s2", *choices(1), replace(RULE, statement="Never deploy after lunch"))
    assert settle(bed.settings, bed.store).saved == 0, "what was taken back makes no room for another rule"
    assert statuses(bed) == {"pending": 2}
    assert {source.session for entry in bed.entries() for source in entry.sources} == {"s2"}
    TakenBack(bed.settings.state, bed.store).forget()
    CorpusStore(bed.settings.state).forget()
    keep(bed, "s1", RULE, *choices(1))
    assert settle(bed.settings, bed.store).saved == 1


@pytest.mark.usefixtures("only_one_rule_saved")
def test_without_its_state_folder_a_backfill_does_not_bring_back_what_was_taken_back(bed: Bed) -> None:
    for _ in range(2):
        keep(bed, "s1", RULE, *choices(1))
        settle(bed.settings, bed.store)
        bed.undo.carry_out(Selector(last=True))
        assert statuses(bed) == {}
        shutil.rmtree(bed.settings.state.root)
        bed.settings.state.ensure()
    keep(bed, "s1", RULE, *choices(1), replace(RULE, statement="Never deploy after lunch"))
    assert settle(bed.settings, bed.store) == SettleCounts(saved=0, proposed=1, held=0, strengthened=0)


def test_a_list_of_evidence_that_was_taken_back_is_no_note_that_holds_it(bed: Bed) -> None:
    keep(bed, "s1", RULE)
    settled(bed)
    bed.undo.carry_out(Selector(last=True))
    note = bed.vault / NOTE
    note.write_text(note.read_text("utf-8").split("---\n")[2], "utf-8")  # without its frontmatter
    assert settled(bed) == SettleCounts(saved=0, proposed=0, held=0, strengthened=0)
    assert "0 memories of theirs are in the vault" in bed.files()[DIGEST]


def undo_by_command(bed: Bed, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    for name, value in bed.env.items():
        monkeypatch.setenv(name, value)
    assert main(["undo", *arguments, "--yes"]) == 0


def asked_for_the_digest(bed: Bed) -> bool:
    with open_ledger(bed.settings) as ledger:
        return bool(ledger.list(["queued"], kind=REFRESH))


@pytest.mark.parametrize("which", [["--last"], ["--session", "old-session-1"], ["--since", "1h"]])
def test_after_an_undo_the_digest_is_true_and_nothing_new_is_put_to_the_user(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, which: list[str]
) -> None:
    session = "old-session-1"
    mined(bed, session, RULE, GUESS, *choices(5))
    settled(bed)
    bed.edit(DIGEST, "## Ranked", "Look at this on Friday.\n\n## Ranked")
    assert "3 memories of theirs are in the vault" in bed.files()[DIGEST]
    undo_by_command(bed, monkeypatch, *which)
    assert asked_for_the_digest(bed)
    refresh_digest(bed.settings, bed.store)
    assert statuses(bed) == {}
    digest = bed.files()[DIGEST]
    assert "1 old session was read. 0 memories of theirs are in the vault" in digest
    assert "3 more are sure enough" in digest
    assert digest.count("\n- ") == 4
    assert "Look at this on Friday.\n\n## Ranked" in digest
    settled(bed)
    assert statuses(bed) == {"pending": 2}


def test_an_undo_of_a_fresh_session_leaves_the_digest_alone(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    mined(bed, "old-session-1", RULE)
    settled(bed)
    bed.remember(said(GUESS, "fresh"))
    undo_by_command(bed, monkeypatch, "--last")
    assert not asked_for_the_digest(bed)
    (bed.vault / DIGEST).unlink()
    undo_by_command(bed, monkeypatch, "--last")
    assert not asked_for_the_digest(bed), "a digest that the user deleted is not made anew"


def test_an_undo_under_the_first_settling_is_seen_by_it_and_has_the_digest_written_again(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    mined(bed, "old-session-1", RULE)
    with open_ledger(bed.settings) as ledger:
        ledger.enqueue(SETTLE, {}, unique_key=SETTLE)

    def undo_between() -> None:
        if statuses(bed):  # The rule is saved; the digest is not written yet.
            undo_by_command(bed, monkeypatch, "--last")

    settle(bed.settings, bed.store, undo_between)
    assert "0 memories of theirs are in the vault" in bed.files()[DIGEST]
    assert asked_for_the_digest(bed)


def test_a_settling_waits_for_a_digest_that_is_being_written(bed: Bed) -> None:
    mined(bed, "old-session-1", RULE)
    with open_ledger(bed.settings) as ledger:
        ledger.enqueue(REFRESH, unique_key=REFRESH)
        refreshing = ledger.take_doorbell(lambda: "test", 30.0)
        assert refreshing is not None
        settling = ledger.enqueue(SETTLE, {}, unique_key=SETTLE)
        executor = Executor(ledger, {SETTLE: settle_handler(bed.settings)}, 30.0)
        for claim, expected in ((refreshing[1], "queued"), (None, "done")):
            taken = ledger.take_doorbell(lambda: "test", 30.0)
            assert taken is not None
            executor.run(taken[1])
            assert ledger.get(settling).state == expected
            if claim is not None:
                ledger.complete(claim)
                with ledger.transaction() as conn:
                    conn.execute("UPDATE job SET run_at = 0, rung_at = NULL WHERE id = ?", (settling,))
                ledger.ring_due()


def test_the_digest_waits_for_a_settling_and_is_not_made_anew_where_it_was_deleted(bed: Bed) -> None:
    def attempt() -> str:
        with open_ledger(bed.settings) as ledger:
            number = ledger.enqueue(REFRESH, unique_key=REFRESH)
            with ledger.transaction() as conn:
                conn.execute("UPDATE job SET run_at = 0, rung_at = NULL WHERE id = ?", (number,))
            executor = Executor(ledger, {REFRESH: digest_handler(bed.settings)}, 30.0)
            ledger.ring_due()
            while (taken := ledger.take_doorbell(lambda: "test", 30.0)) is not None:
                executor.run(taken[1])
            return str(ledger.get(number).state)

    mined(bed, "old-session-1", RULE)
    settled(bed)
    with open_ledger(bed.settings) as ledger:
        settling = ledger.enqueue(SETTLE, {}, unique_key=SETTLE, delay_seconds=3600)
        assert attempt() == "queued"
        ledger.cancel(settling)
    (bed.vault / DIGEST).unlink()
    assert attempt() == "done"
    assert not (bed.vault / DIGEST).exists()


def test_evidence_that_was_taken_back_strengthens_nothing_again(bed: Bed) -> None:
    def rule() -> tuple[int, set[str]]:
        (entry,) = [entry for entry in bed.entries() if entry.effective_status == "active" and entry.sources]
        return entry.occurrences, {source.session for source in entry.sources}

    for session in ("s1", "s2"):
        keep(bed, session, RULE)
        settled(bed)
    assert rule() == (2, {"s1", "s2"})
    bed.undo.carry_out(Selector(last=True))
    assert rule() == (1, {"s1"})
    keep(bed, "s3", *choices(1))
    assert settled(bed).strengthened == 0
    assert rule() == (1, {"s1"})
    keep(bed, "s4", RULE)
    assert settled(bed).strengthened == 1
    assert rule() == (2, {"s1", "s4"})


def test_a_backfill_that_was_settled_in_two_goes_is_one_run_and_the_next_another(bed: Bed) -> None:
    for session, run in (("s1", "a"), ("s2", "b"), ("s3", "b")):
        keep(bed, session, replace(RULE, statement=f"Always write {session} into the header"))
        settle(bed.settings, bed.store, run=run)
    for left in (1, 0):
        bed.undo.carry_out(Selector(last=True))
        assert statuses(bed).get("active", 0) == left


def test_the_same_bytes_mined_twice_count_once(bed: Bed) -> None:
    keep(bed, "s1", GUESS)
    keep(bed, "s1", GUESS)
    settled(bed)
    assert "- [ ] 1× in 1 session" in bed.files()[DIGEST]


@pytest.mark.parametrize("known", [False, True], ids=["new", "in the vault"])
def test_what_a_forked_session_has_from_the_other_was_said_once(bed: Bed, known: bool) -> None:
    copies = [
        replace(GUESS, session=session, records=("0b0e1a6e-7d0c-4f1e-9a53-2d3f9b1c7e10",))
        for session in ("s1", "s2", "s3")
    ]
    if known:
        bed.remember(copies[1])
    store = CorpusStore(bed.settings.state)
    for candidate in copies:
        store.keep(f"claude-{candidate.session}", 0, 1.0, Mined((candidate,), 9, 9, 9, 0, False, "claude"))
    before = bed.files()
    assert settled(bed).proposed == 0
    if known:
        assert {path: text for path, text in bed.files().items() if path != DIGEST} == before
    else:
        assert "- [ ] 1× in 1 session" in bed.files()[DIGEST]


def test_what_a_fork_in_codex_begins_with_was_said_once_however_it_was_written_anew(bed: Bed) -> None:
    first = replace(GUESS, session="s1", records=("line:190",))
    copies = [
        replace(GUESS, session=session, records=(f"line:{place}",), forked_from=forked_from)
        for session, place, forked_from in (("s2", 438, ("s1",)), ("s3", 686, ("s2", "s1")))
    ]
    store = CorpusStore(bed.settings.state)
    for candidate in (*copies, first):
        store.keep(f"codex-{candidate.session}", 0, 1.0, Mined((candidate,), 9, 9, 9, 0, False, "codex"))
    settled(bed)
    assert "- [ ] 1× in 1 session" in bed.files()[DIGEST]


def test_records_that_have_only_a_place_in_their_file_are_told_apart_by_session(bed: Bed) -> None:
    placed = [
        replace(each, records=("line:0",)) for each in (RULE, replace(RULE, statement="Never rebase shared work"))
    ]
    bed.remember(replace(placed[0], session="other"))
    store = CorpusStore(bed.settings.state)
    store.keep("claude-s1", 0, 1.0, Mined((replace(placed[1], session="s1"),), 9, 9, 9, 0, False, "codex"))
    assert settled(bed).saved == 1


def test_what_the_user_rejected_is_neither_proposed_nor_listed(bed: Bed) -> None:
    bed.note("personal-private/_archive/guess.md", GUESS.statement, kind="preferences", status="rejected")
    keep(bed, "s1", GUESS)
    keep(bed, "s2", GUESS)
    keep(bed, "s3", GUESS)
    assert settled(bed) == SettleCounts(saved=0, proposed=0, held=0, strengthened=0)


def test_a_remark_above_the_digest_stays(bed: Bed) -> None:
    keep(bed, "s1", GUESS)
    settled(bed)
    bed.edit(DIGEST, "## Ranked", "Look at this on Friday.\n\n## Ranked")
    keep(bed, "s2", GUESS)
    settled(bed)
    assert "Look at this on Friday.\n\n## Ranked" in bed.files()[DIGEST]
    assert "- [ ] 2× in 2 sessions" in bed.files()[DIGEST]


def test_a_damaged_file_of_candidates_hides_only_itself(bed: Bed) -> None:
    keep(bed, "s1", GUESS)
    keep(bed, "s2", RULE)
    (bed.root / bed.settings.state.root / "corpus" / f"claude-s1@{0:016d}.json").write_text('{"candid')
    assert settled(bed).saved == 1


def test_memory_scrub_looks_into_what_waits_to_be_settled(bed: Bed) -> None:
    keep(bed, "s1", replace(GUESS, excerpt="the key is AKIAIOSFODNN7EXAMPLQ"))
    (found,) = scrub_everything(bed.settings, bed.store, apply=True)
    assert (found.where, found.problem) == ("corpus", None)
    (saying,) = CorpusStore(bed.settings.state).sayings()
    assert "AKIA" not in saying.candidate.excerpt
    assert saying.candidate.records == ("s1-0-0",)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["corpus-written", "corpus-written@2", "journal-applied@3", "vault-before-rename@4"])
def test_a_kill_while_settling_leaves_the_same_vault(bed: Bed, point: str) -> None:
    keep(bed, "s1", RULE, *choices(4))
    for session in ("s2", "s3", "s4"):
        keep(bed, session, GUESS)
    code = (
        "import os\n"
        "from memoryvault.runtime.settings import load_settings\n"
        "from memoryvault.services.indexing import vault_store\n"
        "from memoryvault.services.corpus.settling import settle\n"
        "settings = load_settings(os.environ)\n"
        "settle(settings, vault_store(settings))\n"
    )
    assert bed.run_python(code, kill_point=point) == -9
    settled(bed)
    killed = bed.files()
    for path in bed.vault.rglob("*.md"):
        path.unlink()
    settled(bed)
    assert killed == bed.files()


def test_the_text_that_is_written_has_no_second_line_in_the_digest(bed: Bed) -> None:
    keep(bed, "s1", replace(GUESS, statement="Two\n\n## lines"))
    settled(bed)
    assert "(preference): Two ## lines" in bed.files()[DIGEST]
