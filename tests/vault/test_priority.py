"""What runs in the background steps back (vault/priority.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.vault.priority import BACKGROUND_NICENESS

STEP_BACK = """
import os, threading
from memoryvault.vault.priority import step_back
step_back()
step_back()
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


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel does not group by session")
def test_the_session_it_leads_steps_back_and_no_other() -> None:
    show = STEP_BACK + "print(open('/proc/self/autogroup').read().rpartition('nice ')[2])"
    assert said(show, session=True)[-1] == str(BACKGROUND_NICENESS)
    before = Path("/proc/self/autogroup").read_text()
    said(show, session=False)
    assert Path("/proc/self/autogroup").read_text() == before
