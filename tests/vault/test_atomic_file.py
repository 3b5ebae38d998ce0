"""Files that are replaced whole (runtime/atomic_file.py), and the lock of a process (runtime/process_lock.py)."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memoryvault.runtime.atomic_file import replace_file
from memoryvault.runtime.process_lock import ProcessLock, lock_holder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    return path


def test_the_new_content_is_private_whatever_the_umask_unless_another_mode_is_asked_for(file: Path) -> None:
    before = os.umask(0)
    try:
        replace_file(file, b"new")
        assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o600)
        os.umask(0o077)
        replace_file(file, b"newer", mode=0o644)
    finally:
        os.umask(before)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"newer", 0o644)
    assert list(file.parent.iterdir()) == [file]


def test_a_writer_that_is_killed_leaves_the_old_content_and_a_name_that_upkeep_knows(file: Path) -> None:
    code = f"from memoryvault.runtime.atomic_file import replace_file; replace_file({str(file)!r}, b'new')"
    env = {**os.environ, "MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": "before-replace"}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == b"old"
    assert [path.suffix for path in file.parent.glob(".state.json-*")] == [".tmp"]


def test_what_cannot_be_put_in_its_place_leaves_nothing_behind(tmp_path: Path) -> None:
    taken = tmp_path / "state.json"
    taken.mkdir()
    with pytest.raises(OSError, match=r"state\.json"):
        replace_file(taken, b"new")
    assert list(tmp_path.iterdir()) == [taken]


def test_of_many_threads_that_write_it_at_once_one_wins_and_none_fails(file: Path) -> None:
    contents = [bytes([48 + number]) * 100_000 for number in range(8)]

    def write(data: bytes) -> None:
        for _ in range(5):
            replace_file(file, data, synced=False)

    with ThreadPoolExecutor(len(contents)) as pool:
        list(pool.map(write, contents))
    assert file.read_bytes() in contents
    assert list(file.parent.iterdir()) == [file]


# The lock of a process that runs once for each state folder: flock tells open files apart, so one process will do


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "worker.lock"


def test_one_holds_it_and_the_file_says_who_until_it_is_dropped(path: Path) -> None:
    first, second = ProcessLock(path), ProcessLock(path)
    assert lock_holder(path) is None
    assert first.acquire()
    assert (second.acquire(), second.is_held(), lock_holder(path)) == (False, False, os.getpid())
    first.release()
    assert (first.is_held(), lock_holder(path)) == (False, None)
    assert second.acquire()
    second.release()


def test_who_looks_whether_one_runs_keeps_none_from_starting(path: Path) -> None:
    path.parent.mkdir()
    with open(path, "w") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        release = threading.Timer(0.01, lambda: fcntl.flock(look, fcntl.LOCK_UN))
        release.start()
        lock = ProcessLock(path)
        assert lock.acquire()
        lock.release()
        release.join()


def test_of_two_that_take_over_from_a_stopped_one_the_first_holds_it_and_the_stopped_one_finds_out(path: Path) -> None:
    stopped, first, second = (ProcessLock(path) for _ in range(3))
    assert stopped.acquire()
    assert not first.acquire()
    assert not second.acquire()
    assert first.take_over()
    assert not second.take_over()
    assert [lock.is_held() for lock in (stopped, first, second)] == [False, True, False]
    for lock in (stopped, first):
        lock.release()


def test_a_lock_whose_file_was_deleted_is_held_no_more(path: Path) -> None:
    lock = ProcessLock(path)
    assert lock.acquire()
    path.unlink()
    assert not lock.is_held()
    lock.release()
