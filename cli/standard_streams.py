"""Standard streams that whoever started the command has closed: cron, service managers and agents' shells do that."""

from __future__ import annotations

import os
import sys

_STREAMS = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_WRONLY), ("stderr", "w", os.O_WRONLY))
"""By descriptor: its name in `sys`, and how it is opened."""


def open_closed_streams() -> None:
    """Each closed one leads to the null device: an empty input, an output that takes everything.

    Python has None for them, and the next file that is opened gets the free descriptor: a child would print into a
    note. To be called before anything is opened.
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
    """What is still to be written, and all that follows, goes nowhere: the interpreter flushes once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
