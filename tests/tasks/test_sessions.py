"""The markers tell which sessions are still to be mined."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.sessions import (
    OUTSIDE,
    SweepResult,
    Verdict,
    collect_old_markers,
    follow_transcript,
    judge,
    sweep,
)
from memoryvault.sources.transcripts.compressed import transcript_status
from memoryvault.tasks.jobs.sweeps import recover_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.tasks.queue.job import Dead, Handler
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.hosts.opencode_rows import OpenCodeRows, typed
from memoryvault.tests.support.files import put
from memoryvault.tests.support.zstd_frames import needs_decoder, packed
from memoryvault.tests.tasks.test_worker import raising
from memoryvault.vault.marker import (
    REFLECTED,
    START,
    Marker,
    create_marker,
    list_markers,
    mark_reflected,
    marker_path,
    read_marker,
    rewrite_marker,
)

AN_HOUR = 3600.0


@pytest.mark.parametrize(
    ("silent", "offset", "size", "is_gone", "verdict"),
    [
        (10, 0, 500, False, Verdict.LIVE),
        (1799, 0, 500, False, Verdict.LIVE),
        (1800, 0, 500, False, Verdict.MINE),
        (1800, 500, 500, False, Verdict.LIVE),
        (4600, 500, 500, False, Verdict.FINISHED),
        (1800, 500, 400, False, Verdict.MINE),
        (0, 0, None, False, Verdict.LIVE),
        (4600, 0, None, True, Verdict.DEAD_POINTER),
        (4600, 0, None, False, Verdict.LIVE),
    ],
)
def test_a_session_is_judged_by_its_silence_and_its_unmined_bytes(
    silent: float, offset: int, size: int | None, is_gone: bool, verdict: Verdict
) -> None:
    assert judge(silent, offset, size, is_gone=is_gone) is verdict


@pytest.fixture
def markers(tmp_path: Path) -> Path:
    """Of sessions whose transcripts lie elsewhere."""
    folder = tmp_path / "markers"
    folder.mkdir()
    return folder


def _session(
    folder: Path,
    name: str,
    *,
    event_age: float = 4600,
    text_age: float | None = 4600,
    offset: int = 0,
    transcripts: Path | None = None,
) -> Path:
    """Its marker, and its transcript of three bytes if that has an age; the path of the latter."""
    now = time.time()
    transcript = (transcripts or folder) / f"{name}.jsonl"
    if text_age is not None:
        put(transcript, "{}\n")
        os.utime(transcript, (now - text_age, now - text_age))
    create_marker(str(folder), Marker(name, transcript=str(transcript), offset=offset))
    os.utime(marker_path(str(folder), name), (now - event_age, now - event_age))
    return transcript


def swept(markers: Path, transcripts: Path | None = None) -> SweepResult:
    """Of markers beside the transcripts, unless these lie elsewhere."""
    roots = [str(transcripts or markers)]
    return sweep(str(markers), roots, now=time.time())


def test_a_crashed_session_is_found_a_finished_one_put_away_and_a_live_one_left(tmp_path: Path) -> None:
    _session(tmp_path, "crashed")
    _session(tmp_path, "finished", offset=3)
    _session(tmp_path, "gone", text_age=None)
    _session(tmp_path, "fresh", event_age=0, text_age=0)
    _session(tmp_path, "in-a-long-turn", event_age=9000, text_age=5)  # It fires no hook for hours, but writes.
    result = swept(tmp_path)
    assert [each.session for each in result.to_mine] == ["crashed"]
    assert list_markers(str(tmp_path), REFLECTED) == ["finished"]
    assert list_markers(str(tmp_path), START) == ["crashed", "fresh", "in-a-long-turn"]


def test_a_session_under_a_clock_a_year_ahead_is_found_once_that_is_set_right(tmp_path: Path) -> None:
    """Its host was killed, so no hook comes any more."""
    a_year = 365 * 86_400.0
    _session(tmp_path, "crashed", event_age=-a_year, text_age=-a_year)
    _session(tmp_path, "finished", event_age=-a_year, text_age=4600, offset=3)
    found = swept(tmp_path)
    assert ([each.session for each in found.to_mine], found.finished) == (["crashed"], ("finished",))


@pytest.mark.parametrize("away", ["not mounted", "an empty mount point", "not to be read"])
def test_a_session_on_a_volume_that_is_away_keeps_its_marker(tmp_path: Path, markers: Path, away: str) -> None:
    volume = tmp_path / "volume"
    _session(markers, "away", offset=1, transcripts=volume / "projects" / "-p")
    volume.rename(tmp_path / "elsewhere")
    if away == "an empty mount point":
        (volume / "projects").mkdir(parents=True)
    elif away == "not to be read":
        volume.write_text("")
    assert swept(markers, volume / "projects").dead_pointers == ()
    shutil.rmtree(volume) if volume.is_dir() else volume.unlink(missing_ok=True)
    (tmp_path / "elsewhere").rename(volume)
    assert [each.session for each in swept(markers, volume / "projects").to_mine] == ["away"]
    assert (marker := read_marker(marker_path(str(markers), "away"))) is not None
    assert marker.offset == 1


@pytest.mark.parametrize(
    ("host", "before", "after"),
    [
        ("claude", "-home-dev-shop/moved.jsonl", "-home-dev-store/moved.jsonl"),
        ("codex", "2026/06/17/rollout-2026-06-17T10-07-16-moved.jsonl", "2026/06/18/rollout-x-moved.jsonl"),
    ],
)
def test_moved_transcripts_are_mined_there(tmp_path: Path, markers: Path, host: str, before: str, after: str) -> None:
    projects, then = tmp_path / "projects", time.time() - 4600
    old, new = projects / before, projects / after
    create_marker(str(markers), Marker("moved", transcript=str(old), host=host, offset=3, resume=0))
    put(new, '{}\n{"said":"since"}\n')
    for path in (new, Path(marker_path(str(markers), "moved"))):
        os.utime(path, (then, then))
    result = swept(markers, projects)
    assert [(each.session, each.transcript) for each in result.to_mine] == [("moved", str(new))]
    marker = read_marker(marker_path(str(markers), "moved"))
    assert marker == Marker("moved", transcript=str(new), host=host, offset=3, resume=0)


def test_text_mined_during_the_search_for_a_moved_transcript_is_not_mined_again(tmp_path: Path, markers: Path) -> None:
    projects = tmp_path / "projects"
    new = put(projects / "-home-dev-store" / "moved.jsonl", "{}\n{}\n")
    looked_at = Marker("moved", transcript=str(projects / "-home-dev-shop" / "moved.jsonl"), host="claude", offset=0)
    create_marker(str(markers), looked_at.with_offset(3))
    followed = follow_transcript(str(markers), looked_at, [str(projects)])
    assert followed == looked_at.with_offset(3).with_transcript(str(new))
    assert read_marker(marker_path(str(markers), "moved")) == followed
    Path(marker_path(str(markers), "moved")).unlink()  # As when it is put away meanwhile.
    assert follow_transcript(str(markers), looked_at, [str(projects)]) == looked_at
    assert list_markers(str(markers)) == []


def test_a_link_out_of_the_hosts_folders_is_no_place_of_a_moved_transcript(tmp_path: Path, markers: Path) -> None:
    new = tmp_path / "projects" / "-p" / "moved.jsonl"
    new.parent.mkdir(parents=True)
    (tmp_path / "elsewhere.jsonl").write_text("{}\n", "utf-8")
    new.symlink_to(tmp_path / "elsewhere.jsonl")
    marker = Marker("moved", transcript=str(tmp_path / "projects" / "-o" / "moved.jsonl"), host="claude")
    create_marker(str(markers), marker)
    assert follow_transcript(str(markers), marker, [str(tmp_path / "projects")]) == marker


@needs_decoder
def test_a_session_that_was_compressed_before_it_was_mined_is_mined_all_the_same(tmp_path: Path, markers: Path) -> None:
    sessions = tmp_path / "sessions"
    _session(markers, "old", event_age=9 * AN_HOUR, text_age=9 * AN_HOUR, offset=3, transcripts=sessions)
    text, compressed = b"{}\n{}\n", sessions / "old.jsonl.zst"
    compressed.write_bytes(packed(text))
    shutil.copystat(sessions / "old.jsonl", compressed)
    (sessions / "old.jsonl").unlink()
    (mine,) = swept(markers, sessions).to_mine
    assert mine.transcript == str(compressed)
    path = marker_path(str(markers), "old")
    marker = read_marker(path)
    assert marker is not None
    rewrite_marker(str(markers), marker.with_offset(len(text)))
    os.utime(path, (time.time() - 9 * AN_HOUR,) * 2)
    assert swept(markers, sessions).to_mine == (), "all of it is mined, whatever its size"
    assert list_markers(str(markers), REFLECTED) == ["old"]


def test_lines_that_the_host_wrote_after_the_session_was_put_away_are_mined(tmp_path: Path) -> None:
    _session(tmp_path, "late", offset=1)
    _session(tmp_path, "whole", offset=3)
    for name in ("late", "whole"):
        mark_reflected(str(tmp_path), name)
    result = swept(tmp_path)
    assert [each.session for each in result.to_mine] == ["late"]
    assert list_markers(str(tmp_path), REFLECTED) == ["whole"]


def test_a_session_of_opencode_is_looked_at_in_its_database(tmp_path: Path, markers: Path) -> None:
    then = time.time() - 4600
    with closing(OpenCodeRows(tmp_path / "opencode")) as rows:
        rows.session("ses_1", "/home/dev/shop")
        rows.user("ses_1", typed("Never deploy on a Friday."))
        for session in ("ses_1", "ses_deleted"):
            create_marker(str(markers), Marker(session, transcript=str(rows.named(session)), host="opencode"))
            os.utime(marker_path(str(markers), session), (then, then))
        result = swept(markers, rows.path.parent)
        assert ([each.session for each in result.to_mine], result.dead_pointers) == (["ses_1"], ("ses_deleted",))
        marker = read_marker(marker_path(str(markers), "ses_1"))
        assert marker is not None
        rewrite_marker(str(markers), marker.with_offset(transcript_status(rows.named("ses_1")).size))
        os.utime(marker_path(str(markers), "ses_1"), (then, then))
        assert swept(markers, rows.path.parent).finished == ("ses_1",)
        rows.user("ses_1", typed("Nor on a Monday."))
        assert [each.session for each in swept(markers, rows.path.parent).to_mine] == ["ses_1"]


def test_half_a_line_that_a_killed_host_left_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    _session(tmp_path, "cut", offset=3)
    transcript, then = tmp_path / "cut.jsonl", time.time() - 4600
    transcript.write_text('{}\n{"type":"us', "utf-8")
    os.utime(transcript, (then, then))
    for _ in range(2):
        assert swept(tmp_path).to_mine == ()
        assert list_markers(str(tmp_path), REFLECTED) == ["cut"]
    with transcript.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    os.utime(transcript, (then, then))
    assert [each.session for each in swept(tmp_path).to_mine] == ["cut"]


def test_only_reflected_markers_grow_old(tmp_path: Path) -> None:
    for name in ("old", "young", "open"):
        _session(tmp_path, name, event_age=86_400 * (31 if name != "young" else 1), text_age=0)
    for name in ("old", "young"):
        mark_reflected(str(tmp_path), name)
    assert collect_old_markers(str(tmp_path), now=time.time(), days=30) == 1
    assert list_markers(str(tmp_path), REFLECTED) == ["young"]
    assert list_markers(str(tmp_path), START) == ["open"]


def test_a_session_whose_transcript_can_have_no_such_name_is_no_failure_and_hides_no_other(tmp_path: Path) -> None:
    for number, name in enumerate(("x" * 300, "y" * 250, "/".join(["z" * 200] * 30), "\0")):
        marker = Marker(f"a-{number}", transcript=f"{tmp_path}/{name}.jsonl", host="claude")
        create_marker(str(tmp_path), marker)
        os.utime(marker_path(str(tmp_path), marker.session_id), (time.time() - 4600,) * 2)
        assert follow_transcript(str(tmp_path), marker, [str(tmp_path)]) == marker
    _session(tmp_path, "crashed")
    assert [each.session for each in swept(tmp_path).to_mine] == ["crashed"]


# The sweep enqueues sessions that are not mined, but not again and again those that cannot be


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    with open_ledger(settings) as ledger:
        yield ledger


def run_one(ledger: Ledger, kind: str, handler: Handler) -> None:
    taken = ledger.take(lambda: "test", 30.0)
    assert taken is not None
    Executor(ledger, {kind: handler}, 30.0).run(taken)


def waiting_after(ledger: Ledger, sweep: Handler) -> int:
    """Return how many sessions wait to be mined after a sweep."""
    ledger.enqueue("recover.orphans")
    run_one(ledger, "recover.orphans", sweep)
    return len(ledger.list_jobs(["queued"], kind="reflect.session"))


def test_a_session_whose_job_died_is_mined_if_it_goes_on(sandbox: Sandbox, settings: Settings, ledger: Ledger) -> None:
    transcript = _session(Path(settings.state.markers), "poison", transcripts=sandbox.projects / "-p")
    sweep = partial(recover_handler, settings)
    assert waiting_after(ledger, sweep) == 1
    run_one(ledger, "reflect.session", raising(Dead("the child was killed")))
    assert waiting_after(ledger, sweep) == 0
    with ledger.transaction() as conn:
        conn.execute("UPDATE job SET finished_at = ? WHERE state = 'dead'", (time.time() - 4000,))
    assert waiting_after(ledger, sweep) == 0
    then = time.time() - AN_HOUR
    os.utime(transcript, (then, then))
    assert waiting_after(ledger, sweep) == 1


def test_sessions_of_a_folder_that_the_worker_does_not_know_wait_for_one_that_does(
    sandbox: Sandbox, settings: Settings, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """Two profiles of Claude Code, and a worker that was started without the second one's CLAUDE_CONFIG_DIR."""
    profile = sandbox.root / "home" / ".claude-work"
    transcript = _session(Path(settings.state.markers), "poison", transcripts=profile / "projects" / "-p")
    sweep = partial(recover_handler, settings)
    ledger.enqueue("reflect.session", {"session": "poison"})  # By its own hook.
    run_one(ledger, "reflect.session", raising(Dead(OUTSIDE)))
    assert [waiting_after(ledger, sweep) for _ in range(3)] == [0, 0, 0]
    (told,) = [record.getMessage() for record in caplog.records if record.name.endswith(".sweeps")]
    assert str(transcript.parent) in told
    knowing = load_settings({**sandbox.environment, "CLAUDE_CONFIG_DIR": str(profile)})
    assert waiting_after(ledger, partial(recover_handler, knowing)) == 1
