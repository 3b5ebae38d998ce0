"""Processes in the background step back for those that somebody waits for.

When an agent's hooks start, they need a core before they can ask the recall service anything. A service that is still
working then for others (or embedding) at the same priority takes it from them.
"""

from __future__ import annotations

import os

BACKGROUND_NICENESS = 5
"""A third of the processor beside somebody who wants all of it; all of it when nobody does."""


def step_back(niceness: int = BACKGROUND_NICENESS) -> None:
    """Lower this process's priority for good, before it starts threads (each has its own). Never raises.

    Linux shares the processor among sessions first (sched(7), autogroup) and asks for niceness only within one, so a
    process that leads its session lowers that as well.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), niceness))
        if os.getsid(0) != os.getpid():
            return  # The session is the user's shell's, say.
        with open("/proc/self/autogroup", "r+b", buffering=0) as file:
            now = int(file.read().rpartition(b"nice ")[2] or 0)
            if now < niceness:
                file.write(b"%d\n" % niceness)
    except (OSError, ValueError):
        return
