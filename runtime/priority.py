"""Lower the priority of background processes, so that the user's programs get a core.

The hooks of an agent need one before they can ask the recall service. Processes that work in the background at the same
priority would take it from them.
"""

from __future__ import annotations

import os
import time

BACKGROUND_NICENESS = 5
"""A third of a core next to a process of normal priority that wants all of it; all of it otherwise."""

TRIES = 10
TRY_SECONDS = 0.11
"""Linux allows one change of a session's niceness in 0.1 s, by all unprivileged users together."""

_AUTOGROUP = "/proc/self/autogroup"


def lower_priority(niceness: int = BACKGROUND_NICENESS) -> None:
    """Lower this process's priority for good, before it starts threads (each has its own). Never raises.

    Linux shares the processor among sessions first (sched(7), autogroup) and asks for niceness only within one, so a
    process that leads its session lowers that of the session, too, and waits a moment if it may not at once.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), niceness))
        if os.getsid(0) != os.getpid():
            return  # The session belongs to another process, such as the user's shell.
        for _ in range(TRIES):
            if _lower_session_priority(niceness):
                return
            time.sleep(TRY_SECONDS)
    except (OSError, ValueError):
        return


def _lower_session_priority(niceness: int) -> bool:
    """Lower it; return False to try again. Raises OSError or ValueError where it is impossible."""
    file = os.open(_AUTOGROUP, os.O_RDWR | os.O_CLOEXEC)
    try:
        if int(os.read(file, 100).rpartition(b"nice ")[2] or 0) < niceness:
            os.write(file, b"%d\n" % niceness)  # A file object would hide EAGAIN.
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True
