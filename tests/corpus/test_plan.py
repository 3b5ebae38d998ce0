"""The plan of a backfill, and the sessions that it leaves to other jobs."""

import os
import time
from pathlib import Path

import pytest

from memoryvault.cli.corpus import _describe_outcome
from memoryvault.services.corpus.backfill import (
    KIND,
    advance,
    cursors_of,
    enqueue_corpus,
    plan_corpus,
    progress_of,
    queued_count,
)
from memoryvault.services.cursors import Cursors
from memoryvault.services.mining import Mined
from memoryvault.services.tombstones import removed_evidence
from memoryvault.sources.transcripts.corpus import Transcript
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.review.support import Bed
from memoryvault.tests.support.command import Command
from memoryvault.vault.marker import Marker, create_marker, mark_reflected

from .sessions import DAY, old_session


@pytest.fixture
def projects(bed: Bed) -> Path:
    return bed.settings.session_folders["claude"] / "-home-dev-shop"


@pytest.mark.parametrize("reflected", [False, True])
def test_a_session_with_a_marker_is_left_to_its_own_reflection(bed: Bed, projects: Path, reflected: bool) -> None:
    path = old_session(projects, 1)
    old_session(projects, 2)
    markers = bed.settings.state.markers
    create_marker(markers, Marker(path.stem, "2026-01-01T00:00:00Z", "startup", str(path), "/w", "claude", 0))
    if reflected:
        mark_reflected(markers, path.stem)
    plan = plan_corpus(bed.settings)
    assert (len(plan.to_mine), plan.live) == (1, 1)


def test_since_and_project_narrow_it_down(bed: Bed, projects: Path) -> None:
    old_session(projects, 1, at=1_600_000_000, cwd="/home/dev/shop")
    old_session(projects, 2, at=1_700_000_000, cwd="/home/dev/shop")
    old_session(projects, 3, at=1_700_000_000, cwd="/home/dev/web")
    assert len(plan_corpus(bed.settings, since=1_650_000_000).to_mine) == 2
    plan = plan_corpus(bed.settings, since=1_650_000_000, project="Shop")
    assert (len(plan.to_mine), plan.left_out) == (1, 2)


@pytest.mark.usefixtures("ask")
def test_transcripts_that_cannot_be_read_are_named_with_why(bed: Bed, projects: Path, memory: Command) -> None:
    readable = old_session(projects, 1)
    for number in range(2, 7):
        path = old_session(projects, number)
        path.chmod(0)
        if os.geteuid() == 0:  # A file mode does not stop root, but nobody can read the beginning of this.
            path.unlink()
            path.symlink_to("/proc/self/mem")
    plan = plan_corpus(bed.settings)
    assert [each.path for each in plan.to_mine] == [readable]
    assert len(plan.unread) == 5
    told = memory("reflect", "corpus")
    assert "5 unreadable" in told.out
    (line,) = (line for line in told.err.splitlines() if line.startswith("memory: unreadable:"))
    assert plan.unread[0][0].name + f" ({plan.unread[0][1]})" in line
    assert line.endswith(" and 2 more")
    assert len(memory.json("reflect", "corpus")["unreadable_files"]) == 5


@pytest.mark.usefixtures("ask")
def test_transcripts_that_no_job_would_read_get_none(bed: Bed, projects: Path, tmp_path: Path, memory: Command) -> None:
    """A link out of the agent's folder, and a name that no job can say."""
    readable = old_session(projects, 1)
    moved = old_session(tmp_path / "other-disk", 2)
    (projects / moved.name).symlink_to(moved)
    old_session(projects, 3).rename(projects / "\udcff\udcfe.jsonl")
    plan = plan_corpus(bed.settings)
    assert [each.path for each in plan.to_mine] == [readable]
    assert len(plan.unread) == 2
    told = memory("reflect", "corpus")
    assert "2 unreadable" in told.out
    assert f"{moved.name} (it leads out of the agent's folder: --root {moved.parent} reads it)" in told.err
    assert "(its name has characters that cannot be printed)" in told.err
    assert "1 session to mine" in memory("reflect", "corpus", "--root", str(moved.parent)).out


def mine_to_its_end(bed: Bed, found: Transcript, *, has_more: bool = False) -> Cursors:
    advance(bed.settings, found, Mined((), found.size, found.size, 0, False, "claude", has_more=has_more))
    return cursors_of(bed.settings)


def test_the_newest_are_mined_first(bed: Bed, projects: Path) -> None:
    paths = [old_session(projects, number) for number in range(3)]
    plan = plan_corpus(bed.settings)
    assert [each.path for each in plan.to_mine] == paths[::-1]
    run = enqueue_corpus(bed.settings, plan)
    assert run is not None
    with open_ledger(bed.settings) as ledger:
        taken = ledger.take(lambda: "me", 30.0)
    assert taken is not None
    assert run.jobs[taken.job_id].path == paths[-1]


def test_a_mined_transcript_is_planned_again_only_when_it_grew_or_was_reset(bed: Bed, projects: Path) -> None:
    path = old_session(projects, 1)
    (found,) = plan_corpus(bed.settings).to_mine
    cursors = mine_to_its_end(bed, found)
    assert (plan_corpus(bed.settings).to_mine, plan_corpus(bed.settings).known) == ((), 1)
    mine_to_its_end(bed, found, has_more=True)
    assert len(plan_corpus(bed.settings).to_mine) == 1, "of a long one a part is left"
    mine_to_its_end(bed, found)
    with path.open("a") as out:
        out.write('{"type":"summary"}\n')
    plan = plan_corpus(bed.settings)
    assert plan.bytes == len('{"type":"summary"}\n')
    cursors.forget()
    assert plan_corpus(bed.settings).bytes == path.stat().st_size


@pytest.mark.usefixtures("ask")
def test_a_model_that_cannot_be_asked_is_told_before_the_mining(bed: Bed, projects: Path, memory: Command) -> None:
    old_session(projects, 1)
    config = Path(bed.env["MEMORY_CONFIG"])
    config.write_text('[reflection]\nminer = "openai"\n', "utf-8")
    assert "warning: reflection.miner is openai: set reflection.endpoint" in memory("reflect", "corpus").err
    assert "set reflection.endpoint" in memory("reflect", "corpus", "--execute", code=1).err
    assert not Path(bed.settings.state.queue_db).exists()


@pytest.mark.usefixtures("ask")
def test_the_dry_run_says_what_it_takes_and_the_host_deletes_soon(bed: Bed, projects: Path, memory: Command) -> None:
    old_session(projects, 1, at=time.time() - 26 * DAY)
    old_session(projects, 2, at=time.time() - DAY)
    report = memory.json("reflect", "corpus")
    assert (report["dry_run"], report["to_process"], len(report["deleted_soon"])) == (True, 2, 1)
    printed = memory("reflect", "corpus")
    assert "2 sessions to mine" in printed.out
    assert "add --execute" in printed.out
    assert "deletes 1 of them within 7 days, the first in 4 days" in printed.err
    settings = bed.settings.hosts.claude_config_dir / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 365}')
    assert "warning" not in memory("reflect", "corpus").err
    assert not Path(bed.settings.state.queue_db).exists()


@pytest.mark.usefixtures("ask")
def test_nothing_is_forgotten_before_it_is_to_be_done(bed: Bed, projects: Path, memory: Command) -> None:
    old_session(projects, 1)
    (found,) = plan_corpus(bed.settings).to_mine
    cursors = mine_to_its_end(bed, found)
    would = "--reset would forget that 1 session was mined; what is in the vault stays"
    assert would in memory("reflect", "corpus", "--reset").out
    report = memory.json("reflect", "corpus", "--reset")
    assert (report["to_process"], report["forgets"]) == (1, 1)
    assert cursors.all()
    assert "forgotten that 1 session was mined" in memory("reflect", "corpus", "--reset", "--execute").out
    assert not cursors.all()


@pytest.mark.usefixtures("ask")
def test_reset_forgets_removed_evidence_and_cursors(bed: Bed, memory: Command) -> None:
    bed.record_removal(("s1", "r1"), ("s1", "r2"), ("s2", "r1"))
    would = "--reset would forget what you took back of 2 sessions; what is in the vault stays"
    assert would in memory("reflect", "corpus", "--reset").out.splitlines()
    assert len(removed_evidence(bed.store)) == 3
    assert "forgotten what you took back of 2 sessions" in memory("reflect", "corpus", "--reset", "--execute").out
    assert removed_evidence(bed.store) == set()


@pytest.mark.usefixtures("ask")
def test_while_the_vault_is_away_nothing_is_forgotten(bed: Bed, projects: Path, memory: Command) -> None:
    old_session(projects, 1)
    cursors = mine_to_its_end(bed, plan_corpus(bed.settings).to_mine[0])
    bed.vault.rename(bed.root / "unmounted")
    assert memory("reflect", "corpus", "--reset", "--execute", code=1).err.count("\n") == 1
    assert cursors.all()


def test_how_far_it_is_holds_for_jobs_that_an_earlier_run_had_enqueued(bed: Bed, projects: Path) -> None:
    for number in range(4):
        old_session(projects, number)
    plan = plan_corpus(bed.settings)
    enqueue_corpus(bed.settings, plan)
    run = enqueue_corpus(bed.settings, plan)
    assert run is not None
    with open_ledger(bed.settings) as ledger:
        assert (queued_count(bed.settings, plan), len(ledger.list_jobs(kind=KIND))) == (4, 4)
        before = progress_of(ledger, run)
        assert (before.mined, before.sessions, before.is_done, before.paused) == (0, 4, False, False)
        first, second, third, fourth = run.jobs
        for job, found in ((first, {"for_review": 3, "inboxed": 1}), (second, {"for_review": 1, "made_room": 2})):
            claim = ledger.take(lambda: "somebody", 60)
            assert claim is not None
            assert claim.job_id == job
            ledger.complete(claim, found)
        ledger.cancel(third)
        ledger.pause(KIND)
        after = progress_of(ledger, run)
        assert (after.mined, after.finished, after.cancelled, after.is_done, after.paused) == (2, 3, 1, False, True)
        ledger.resume(KIND)
        claim = ledger.take(lambda: "somebody", 60)
        assert claim is not None
        assert claim.job_id == fourth
        ledger.bury(claim, "it cannot be read")
        last = progress_of(ledger, run)
        assert (last.mined, last.failed, last.is_done) == (2, 1, True)
    told = "mined: 2 put to you (memory review), 3 in the inbox (memory review --inbox); 1 cancelled"
    assert _describe_outcome(last) == told


def test_sessions_of_a_project_that_is_left_out_are_not_mined(bed: Bed, projects: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("shop", "secret")):
        (tmp_path / name / ".git").mkdir(parents=True)
        old_session(projects, number, cwd=str(tmp_path / name))
    (tmp_path / "secret" / ".memoryvault").write_text("off\n")
    plan = plan_corpus(bed.settings)
    assert ([each.cwd for each in plan.to_mine], plan.left_out) == ([str(tmp_path / "shop")], 1)
