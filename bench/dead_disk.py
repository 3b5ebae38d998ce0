"""Imitate a disk that does not answer, with files on which opening blocks. Linux only.

An open blocks while another process holds a lease on the file (fcntl(2), `F_SETLEASE`), for the time in
/proc/sys/fs/lease-break-time (45 s by default). Reading name and size does not block, so the files are also changed,
which makes programs that know them read them again.
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
"""Descriptors that are left for other files."""


@contextmanager
def unanswered(paths: Sequence[Path]) -> Iterator[int]:
    """Change and hold as many of `paths` as this process may open; yield their number. Main thread only."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    _raise_limit(len(paths) + OTHER_FILES)
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES
    told = signal.signal(signal.SIGIO, signal.SIG_IGN)  # Sent when another process waits.
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
    """Raise the limit of open files; without root only up to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((wanted, max(hard, wanted)), (min(wanted, hard), hard)):
        if wanted > soft:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                return
