"""What runs in the background steps back (runtime/priority.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.runtime.priority import BACKGROUND_NICENESS

STEP_BACK = """
import os, threading
from memoryvault.runtime.priority import lower_priority
lower_priority()
lower_priority()
thread = threading.Thread(target=lambda: print(os.getpriority(os.PRIO_PROCESS, 0)))
thread.start()
thread.join()
"""


def said(script: str, *, session: bool) -> list[str]:
    argv = [sys.executable, "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, start_new_session=session)
    return done.stdout.split()


def test_its_threads_have_the_lower_priority_once() -> None:
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert said(STEP_BACK, session=False) == [str(max(ours, BACKGROUND_NICENESS))]


# Each leads a session, as an unprivileged user, and tells what came of it.
TOGETHER = """
import ctypes, os, sys, time
from memoryvault.runtime.priority import lower_priority
going, go = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.getuid() == 0:
            os.setuid(65534)
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its files in /proc are its own
        os.close(go)
        os.read(going, 1)
        lower_priority()
        until = time.monotonic() + 20
        while (said := open("/proc/self/autogroup").read().split()[-1]) == "0" and time.monotonic() < until:
            time.sleep(0.01)
        os.write(1, f"{said}\\n".encode())
        os._exit(0)
os.close(go)
for _ in range(3):
    os.wait()
"""

groups_by_session = pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="this kernel does not group by session"
)


@groups_by_session
def test_those_that_start_together_all_step_back() -> None:
    """The kernel lets all unprivileged processes together do so once in 0.1 s, and a hook starts two at once."""
    assert said(TOGETHER, session=False) == [str(BACKGROUND_NICENESS)] * 3


@groups_by_session
def test_the_session_it_leads_steps_back_and_no_other() -> None:
    show = STEP_BACK + "print(open('/proc/self/autogroup').read().rpartition('nice ')[2])"
    assert said(show, session=True)[-1] == str(BACKGROUND_NICENESS)
    before = Path("/proc/self/autogroup").read_text()
    said(show, session=False)
    assert Path("/proc/self/autogroup").read_text() == before
