"""What is still to be mined is read off the markers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memoryvault.tasks.sessions import (
    SessionFacts,
    Verdict,
    collect_old_markers,
    judge,
    sweep,
)
from memoryvault.vault.marker import (
    REFLECTED,
    START,
    Marker,
    create_marker,
    list_markers,
    mark_reflected,
    marker_path,
)

HALF_AN_HOUR, AN_HOUR = 1800.0, 3600.0


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (SessionFacts(silent=10, offset=0, size=500), Verdict.LIVE),
        (SessionFacts(silent=1799, offset=0, size=500), Verdict.LIVE),
        (SessionFacts(silent=1800, offset=0, size=500), Verdict.MINE),
        (SessionFacts(silent=1800, offset=500, size=500), Verdict.LIVE),
        (SessionFacts(silent=4600, offset=500, size=500), Verdict.FINISHED),
        (SessionFacts(silent=0, offset=0, size=None), Verdict.LIVE),
        (SessionFacts(silent=4600, offset=0, size=None), Verdict.DEAD_POINTER),
    ],
)
def test_a_session_is_judged_by_its_silence_and_its_unmined_bytes(facts: SessionFacts, verdict: Verdict) -> None:
    assert judge(facts, idle_seconds=HALF_AN_HOUR, crash_seconds=AN_HOUR) is verdict


def _session(folder: Path, name: str, *, event_age: float, text_age: float | None, offset: int = 0) -> None:
    now = time.time()
    transcript = folder / f"{name}.jsonl"
    if text_age is not None:
        transcript.write_text("{}\n", "utf-8")
        os.utime(transcript, (now - text_age, now - text_age))
    create_marker(str(folder), Marker(name, transcript=str(transcript), offset=offset))
    os.utime(marker_path(str(folder), name), (now - event_age, now - event_age))


def test_a_crashed_session_is_found_and_a_finished_one_is_put_away(tmp_path: Path) -> None:
    _session(tmp_path, "crashed", event_age=4600, text_age=4600)
    _session(tmp_path, "finished", event_age=4600, text_age=4600, offset=3)
    _session(tmp_path, "gone", event_age=4600, text_age=None)
    _session(tmp_path, "fresh", event_age=0, text_age=0)
    result = sweep(str(tmp_path), now=time.time(), idle_seconds=HALF_AN_HOUR, crash_seconds=AN_HOUR)
    assert [each.session for each in result.to_mine] == ["crashed"]
    assert list_markers(str(tmp_path), REFLECTED) == ["finished"]
    assert list_markers(str(tmp_path), START) == ["crashed", "fresh"]


def test_a_live_session_without_hook_events_is_not_taken_for_a_dead_one(tmp_path: Path) -> None:
    # A long turn fires no hook for hours, but the transcript grows.
    _session(tmp_path, "busy", event_age=9000, text_age=5)
    result = sweep(str(tmp_path), now=time.time(), idle_seconds=HALF_AN_HOUR, crash_seconds=AN_HOUR)
    assert result.to_mine == ()
    assert list_markers(str(tmp_path), START) == ["busy"]


def test_lines_that_the_host_wrote_after_the_session_was_put_away_are_mined(tmp_path: Path) -> None:
    _session(tmp_path, "late", event_age=4600, text_age=4600, offset=1)
    _session(tmp_path, "whole", event_age=4600, text_age=4600, offset=3)
    for name in ("late", "whole"):
        mark_reflected(str(tmp_path), name)
    result = sweep(str(tmp_path), now=time.time(), idle_seconds=HALF_AN_HOUR, crash_seconds=AN_HOUR)
    assert [each.session for each in result.to_mine] == ["late"]
    assert list_markers(str(tmp_path), REFLECTED) == ["whole"]


def test_only_reflected_markers_grow_old(tmp_path: Path) -> None:
    for name in ("old", "young", "open"):
        _session(tmp_path, name, event_age=86_400 * (31 if name != "young" else 1), text_age=0)
    for name in ("old", "young"):
        mark_reflected(str(tmp_path), name)
    assert collect_old_markers(str(tmp_path), now=time.time(), days=30) == 1
    assert list_markers(str(tmp_path), REFLECTED) == ["young"]
    assert list_markers(str(tmp_path), START) == ["open"]
