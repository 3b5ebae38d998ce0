"""Files that are replaced whole (runtime/atomic_file.py)."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memoryvault.runtime.atomic_file import replace_file


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
    faults: list[OSError] = []

    def write(data: bytes) -> None:
        try:
            for _ in range(5):
                replace_file(file, data, synced=False)
        except OSError as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert file.read_bytes() in contents
    assert list(file.parent.iterdir()) == [file]
