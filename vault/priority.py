"""Processes in the background step back for those that somebody waits for.

When an agent's hooks start, they need a core before they can ask the recall service anything. A service that is still
working then for others (or embedding) at the same priority takes it from them.
"""

from __future__ import annotations

import os
import threading
import time

BACKGROUND_NICENESS = 5
"""A third of the processor beside somebody who wants all of it; all of it when nobody does."""

TRIES = 10
TRY_SECONDS = 0.11
"""Linux lets the users of a machine change a session's niceness once in 0.1 s, all of them together."""

_AUTOGROUP = "/proc/self/autogroup"
_changing = threading.Lock()


def step_back(niceness: int = BACKGROUND_NICENESS) -> None:
    """Lower this process's priority for good, before it starts threads (each has its own). Never raises.

    Linux shares the processor among sessions first (sched(7), autogroup) and asks for niceness only within one, so a
    process that leads its session lowers that as well: a moment later (by a thread) where others were just let do so.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), niceness))
        if os.getsid(0) != os.getpid():
            return  # The session is the user's shell's, say.
        if not _session_steps_back(niceness):
            threading.Thread(target=_try_again, args=(niceness,), name="step-back", daemon=True).start()
    except (OSError, ValueError, RuntimeError):
        return


def _session_steps_back(niceness: int) -> bool:
    """False if it has to be tried again. Raises OSError or ValueError where it can't be done at all."""
    with _changing:
        file = os.open(_AUTOGROUP, os.O_RDWR | os.O_CLOEXEC)
        try:
            if int(os.read(file, 100).rpartition(b"nice ")[2] or 0) < niceness:
                os.write(file, b"%d\n" % niceness)  # A file object would say nothing of EAGAIN.
        except BlockingIOError:
            return False
        finally:
            os.close(file)
    return True


def _try_again(niceness: int) -> None:
    for _ in range(TRIES):
        time.sleep(TRY_SECONDS)
        try:
            if _session_steps_back(niceness):
                return
        except (OSError, ValueError):
            return
