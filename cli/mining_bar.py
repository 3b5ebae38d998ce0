"""The bar that `memory reflect corpus --execute` and `memory init` show while old sessions are mined."""

from __future__ import annotations

from ..services.corpus.backfill import KIND, Progress
from .plain import line_columns, redraw

BAR = 25
MARK_SECONDS = 0.4
"""So long the mark stays in its place."""


def draw_mining(
    progress: Progress, *, has_worker: bool = True, paused: bool = False, seconds: float | None = None
) -> None:
    """On stderr's line. What keeps the bar where it is stands beside it: no worker runs, or all is `paused`. With the
    `seconds` since it began a mark runs through what is left: of a long session the number stands still for a while."""
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
