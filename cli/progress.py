"""Progress at a terminal: a status line, and a bar."""

from __future__ import annotations

import sys
import threading

from .output import note
from .terminal_safety import redraw

BAR = 25


class StatusLine:
    """A line on stderr that is rewritten, on a terminal only, and cleared at the end of the block. Thread-safe."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.shown = sys.stderr.isatty() and not quiet
        """Whether the line is shown at all."""
        self._drawn = False
        self._lock = threading.RLock()

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Replace the text of the line."""
        if self.shown:
            with self._lock:
                redraw(text)
                self._drawn = True

    def clear(self) -> None:
        """Empty the line before something else is printed."""
        with self._lock:
            if self._drawn:
                redraw("", end="\r")
                self._drawn = False

    def note(self, line: str) -> None:
        """Print a line to stderr that stays, also without a terminal."""
        with self._lock:
            self.clear()
            note(line)


def draw_share(what: str, done: int, total: int, unit: int = 1) -> None:
    """Draw `embedding [##########               ]  40% 4/10` on stderr's line, in units of `unit`; end it when done."""
    share = done / max(total, 1)
    end = "\n" if done >= total else ""
    redraw(f"{what} [{'#' * int(share * BAR):<{BAR}}] {share:4.0%} {done // unit}/{total // unit}", end=end)
