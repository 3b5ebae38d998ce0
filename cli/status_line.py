"""The line at a terminal's end that says what is being done, and goes when there is something to keep."""

from __future__ import annotations

import sys
import threading

from .output import note
from .plain import redraw


class StatusLine:
    """On stderr, where that is a terminal; elsewhere nothing is shown. At the block's end it is gone. Threads may
    share it."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._shown = sys.stderr.isatty() and not quiet
        self._drawn = False
        self._lock = threading.Lock()

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    @property
    def shown(self) -> bool:
        """Whether anybody sees it: else there is no need to find out what it would say."""
        return self._shown

    def show(self, text: str) -> None:
        """In place of what it showed before."""
        if self._shown:
            with self._lock:
                redraw(text)
                self._drawn = True

    def clear(self) -> None:
        """Leave the line empty, for what is printed next."""
        with self._lock:
            self._clear()

    def note(self, line: str) -> None:
        """A remark that stays, on stderr whatever that is."""
        with self._lock:
            self._clear()
            note(line)

    def _clear(self) -> None:
        if self._drawn:
            redraw("", end="\r")
            self._drawn = False
