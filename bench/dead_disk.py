"""A disk that does not answer: files that whoever opens them waits for.

The kernel lets an open wait while another process holds a lease on the file (fcntl(2), `F_SETLEASE`), for as long as
/proc/sys/fs/lease-break-time says (45 s, unless it was changed). Looking at the name and the size does not wait, so the
files are written again, which makes everybody who knows them look inside. Linux only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

OTHER_FILES = 256
"""Descriptors that are left for everything else."""


@contextmanager
def unanswered(paths: Sequence[Path]) -> Iterator[int]:
    """Hold as many of `paths` as this process may have open, changed; how many those are. Main thread only."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    _raise_limit(len(paths) + OTHER_FILES)
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES
    told = signal.signal(signal.SIGIO, signal.SIG_IGN)  # somebody waits: that is what we want
    held: list[int] = []
    try:
        for path in paths[:room]:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            held.append(descriptor)
            os.write(descriptor, b"\n")
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield len(held)
    finally:
        for descriptor in held:
            os.close(descriptor)  # its lease ends with it
        signal.signal(signal.SIGIO, told)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _raise_limit(wanted: int) -> None:
    """As far as it goes: root may, others only up to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((wanted, max(hard, wanted)), (min(wanted, hard), hard)):
        if wanted > soft:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                return
