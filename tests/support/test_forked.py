"""What is forked does what a process that starts from nothing does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.tests.support import forked

pytestmark = pytest.mark.slow

PROGRAMS = {
    "streams": "import sys; print(sys.stdin.read() + '!'); print('also', file=sys.stderr)",
    "place": "import os; print(os.getcwd(), sorted(os.environ.items()), os.umask(0))",
    "status": "import sys; sys.exit(3)",
    "words": "import sys; sys.exit('no')",
    "signal": "import os, signal; print('lost'); os.kill(os.getpid(), signal.SIGKILL)",
    "end": (
        "import atexit, threading, time; atexit.register(print, 'last')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start(); print('first')"
    ),
    "main": "print(__name__)",
    "kill point": "from memoryvault.runtime.killpoint import kill_point as k; k('a'); print('b'); k('here')",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_ends_as_a_process_of_its_own_does(tmp_path: Path, program: str) -> None:
    env = {"PATH": "/usr/bin:/bin", "LC_CTYPE": "C.UTF-8", "MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": "here"}
    done = forked.run(program, env=env, cwd=tmp_path, stdin="grüße")
    alone = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        cwd=tmp_path,
        input="grüße",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_a_fault_is_told_and_is_1() -> None:
    done = forked.run("1 / 0", env={})
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ZeroDivisionError: division by zero")


def test_it_runs_beside_others_until_it_is_told_to_leave() -> None:
    with open(os.devnull, "r+b") as null:
        streams = [null.fileno()] * 3
        long = forked.start("import time; time.sleep(60)", [], env={}, streams=streams)
    assert long.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        long.wait(0.01)
    assert forked.run("print('meanwhile')", env={}).stdout == "meanwhile\n"
    long.terminate()
    assert long.wait(60.0) == long.poll() == -signal.SIGTERM


@pytest.mark.parametrize("libraries", [(), ("colorsys",)])
def test_libraries_are_found_imported_by_those_who_ask_for_them(libraries: tuple[str, ...]) -> None:
    done = forked.run("import sys; print('colorsys' in sys.modules)", env={}, libraries=libraries)
    assert (done.returncode, done.stdout) == (0, f"{bool(libraries)}\n")
