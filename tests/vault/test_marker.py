"""Session markers."""

import multiprocessing
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryvault.vault.marker import (
    REFLECTED,
    START,
    Marker,
    create_marker,
    is_session_id,
    last_event_at,
    list_markers,
    mark_reflected,
    marker_path,
    read_marker,
    remove_marker,
    resume_marker,
    rewrite_marker,
    touch_marker,
)


def a_marker(session: str = "abc123", offset: int = 0) -> Marker:
    return Marker(session, "2026-07-01T10:00:00Z", "startup", "/t/abc123.jsonl", "/w/app", "claude-code", offset)


def offset_in(markers: Path) -> int:
    marker = read_marker(marker_path(str(markers), "abc123"))
    assert marker is not None
    return marker.offset


def test_a_marker_is_seven_readable_lines(tmp_path: Path) -> None:
    assert create_marker(str(tmp_path), a_marker())
    path = tmp_path / "session-id-abc123.start"
    assert path.read_text() == (
        "session_id: abc123\n"
        "started_at: 2026-07-01T10:00:00Z\n"
        "source: startup\n"
        "transcript: /t/abc123.jsonl\n"
        "cwd: /w/app\n"
        "host: claude-code\n"
        "offset: 0\n"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [path.name]


def _create(markers: str, number: int, start: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    os._exit(0 if create_marker(markers, a_marker(offset=number)) else 1)


def test_of_many_processes_exactly_one_creates_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    start = context.Event()
    workers = [context.Process(target=_create, args=(str(tmp_path), n, start)) for n in range(8)]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(20)
    codes = [worker.exitcode for worker in workers]
    assert codes.count(0) == 1
    assert offset_in(tmp_path) == codes.index(0)


def test_touch_moves_the_last_event_and_rewrite_keeps_it(tmp_path: Path) -> None:
    markers = str(tmp_path)
    create_marker(markers, a_marker())
    path = marker_path(markers, "abc123")
    os.utime(path, (1000, 1000))
    rewrite_marker(markers, a_marker(offset=99))
    assert last_event_at(path) == 1000
    assert read_marker(path) == a_marker(offset=99)
    assert touch_marker(markers, "abc123")
    assert (last_event_at(path) or 0) > 1000


def test_a_resumed_session_goes_on_where_mining_stopped(tmp_path: Path) -> None:
    markers = str(tmp_path)
    create_marker(markers, a_marker())
    rewrite_marker(markers, a_marker(offset=500))
    assert mark_reflected(markers, "abc123")
    assert list_markers(markers) == []
    assert list_markers(markers, REFLECTED) == ["abc123"]
    assert not create_marker(markers, a_marker())
    assert offset_in(tmp_path) == 500
    assert list_markers(markers, REFLECTED) == []
    assert mark_reflected(markers, "abc123")
    assert touch_marker(markers, "abc123")
    assert list_markers(markers, START) == ["abc123"]


def test_operations_on_a_session_without_marker_say_no(tmp_path: Path) -> None:
    markers = str(tmp_path)
    assert not touch_marker(markers, "x")
    assert not mark_reflected(markers, "x")
    assert not resume_marker(markers, "x")
    assert not remove_marker(markers, "x", START)
    assert read_marker(marker_path(markers, "x")) is None
    assert last_event_at(marker_path(markers, "x")) is None
    assert list_markers(markers + "/absent") == []
    with pytest.raises(FileNotFoundError):
        rewrite_marker(markers, a_marker("x"))


@pytest.mark.parametrize(
    "bad", ["", ".", "..", ".hidden", "a/b", "../../etc/passwd", "a b", "a\0", "a\n", "ä", "x" * 129, None, 7]
)
def test_an_id_that_is_no_safe_file_name_is_refused(tmp_path: Path, bad: object) -> None:
    assert not is_session_id(bad)
    with pytest.raises(ValueError, match="session id"):
        marker_path(str(tmp_path), bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"session_id: other\n", b"session_id: ../x\n", b"offset: 5\n"]
)
def test_a_damaged_marker_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "session-id-abc123.start"
    path.write_bytes(content)
    assert read_marker(str(path)) is None


@pytest.mark.parametrize("offset", ["-5", "x", "1e3", "٣", "9" * 40, ""])
def test_a_damaged_offset_reads_the_session_again_from_the_start(tmp_path: Path, offset: str) -> None:
    (tmp_path / "session-id-abc123.start").write_text(f"session_id: abc123\noffset: {offset}\n")
    assert offset_in(tmp_path) == 0


ANY_TEXT = st.text(st.characters(), max_size=200)


@settings(max_examples=60, deadline=None)
@given(
    session=st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,60}", fullmatch=True),
    texts=st.tuples(*[ANY_TEXT] * 5),
    offset=st.integers(0, 10**17),
)
@example(session="x" * 128, texts=("", "", "", "", ""), offset=0)
def test_what_is_written_is_read(session: str, texts: tuple[str, str, str, str, str], offset: int) -> None:
    marker = Marker(session, *texts, offset)
    with TemporaryDirectory() as markers:
        assert create_marker(markers, marker)
        assert read_marker(marker_path(markers, session)) == marker


def test_two_threads_of_the_worker_that_write_a_marker_do_not_meet_in_one_file(tmp_path: Path) -> None:
    markers = str(tmp_path)
    written = [Marker("s", transcript="/t" * length, offset=length) for length in (1, 2000)]
    create_marker(markers, written[0])

    def write(marker: Marker) -> bool:
        for _ in range(100):
            rewrite_marker(markers, marker)
        return read_marker(marker_path(markers, "s")) in written

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(write, written)) == [True, True]
    assert [path.name for path in tmp_path.iterdir()] == ["session-id-s.start"]
