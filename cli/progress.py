"""Progress at a terminal: a status line, the mining bar, and the jobs that are being worked on."""

from __future__ import annotations

import sys
import threading

from ..services.corpus.backfill import KIND, Progress
from ..tasks.queue.progress import RunProgress
from .output import note
from .terminal_safety import line_columns, redraw

BAR = 25
MARK_SECONDS = 0.4
"""How long the moving mark stays in one place."""


class StatusLine:
    """A line on stderr that is rewritten, on a terminal only, and cleared at the end of the block. Thread-safe."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.shown = sys.stderr.isatty() and not quiet
        """Whether the line is shown at all."""
        self._drawn = False
        self._lock = threading.Lock()

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
            self._clear()

    def note(self, line: str) -> None:
        """Print a line to stderr that stays, also without a terminal."""
        with self._lock:
            self._clear()
            note(line)

    def _clear(self) -> None:
        if self._drawn:
            redraw("", end="\r")
            self._drawn = False


def draw_share(what: str, done: int, total: int, unit: int = 1) -> None:
    """Draw `embedding [##########               ]  40% 4/10` on stderr's line, in units of `unit`; end it when done."""
    share = done / max(total, 1)
    end = "\n" if done >= total else ""
    redraw(f"{what} [{'#' * int(share * BAR):<{BAR}}] {share:4.0%} {done // unit}/{total // unit}", end=end)


def draw_mining(
    progress: Progress, *, has_worker: bool = True, paused: bool = False, seconds: float | None = None
) -> None:
    """Draw the mining bar on stderr's line, with the reason if it does not move: no worker, or `paused`.

    With `seconds`, the time since the start, a mark moves through the rest: one long session can take a while.
    """
    share = progress.finished / max(progress.sessions, 1)
    said = f" {share:4.0%} {progress.finished}/{progress.sessions} sessions"
    if paused:
        said += ", paused (memory resume)"
    elif progress.paused:
        said += f", paused (memory jobs resume {KIND})"
    elif not has_worker:
        said += ", no worker runs (memory service up)"
    if seconds is not None:
        said += f", {seconds:.0f} s"
    width = max(0, min(BAR, line_columns() - len(said) - len("mining []")))
    done = int(share * width)
    bar = "#" * done + " " * (width - done)
    if seconds is not None and done < width:
        mark = done + int(seconds / MARK_SECONDS) % (width - done)
        bar = bar[:mark] + ">" + bar[mark + 1 :]
    bar = f"mining [{bar}]" if width else "mining"
    redraw(f"{bar}{said}")


def progress_line(progress: RunProgress) -> str:
    """`working for 34 s: 5 done, left: 9 reflect.session, 2 research.idea`."""
    left = [f"{number:,} {kind}" for kind, number in progress.left.items()]
    by = "the worker that is running works" if progress.elsewhere else "working"
    done = [] if progress.elsewhere else [f"{progress.done:,} done"]
    return f"{by} for {progress.seconds:.0f} s: {', '.join([*done, 'left: ' + ', '.join(left) if left else 'ending'])}"
