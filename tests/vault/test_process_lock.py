"""The lock of a process that runs once for each state folder (runtime/process_lock.py); locks here are of one process,
as flock tells open files apart and not processes."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from memoryvault.runtime.process_lock import ProcessLock, lock_holder


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
