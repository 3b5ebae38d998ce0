"""Standard streams that are closed at the start, as cron, service managers and agents' shells leave them."""

from __future__ import annotations

import os
import sys

_STREAMS = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_WRONLY), ("stderr", "w", os.O_WRONLY))
"""By descriptor: name in `sys`, mode, flags."""


def open_closed_streams() -> None:
    """Connect each closed stream to the null device. Call it before anything is opened.

    Python has None for a closed stream, and the next opened file would get its descriptor: a child would print into a
    note.
    """
    for descriptor, (name, mode, flags) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened == descriptor:
                os.set_inheritable(descriptor, True)
            else:
                os.dup2(opened, descriptor)
                os.close(opened)
        stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  It stays open.
        setattr(sys, name, stream)


def discard_outputs() -> None:
    """Send stdout and stderr to the null device, since the interpreter flushes both once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
