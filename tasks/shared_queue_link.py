"""What the worker last knew of the shared queue, for those who must not wait for a network: `memory health`, a console.

One small file in run/, written when that changes: reached, or away and why.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ..runtime.atomic_file import replace_file
from ..runtime.layout import StatePaths

FILE = "shared-queue.json"


@dataclass(frozen=True)
class Link:
    """Whether the worker reaches the shared queue. `why` not, in one line without a password; '' if it does."""

    reached: bool
    why: str
    since: float
    """Unix seconds of this machine's clock."""


class LinkNote:
    """The worker's end."""

    def __init__(self, state: StatePaths) -> None:
        self._path = Path(state.run, FILE)
        self._last: tuple[bool, str] | None = None

    def tell(self, reached: bool, why: str = "") -> None:
        """Write it down if it has changed. A disk that is full is no fault: it is only told."""
        if self._last == (reached, why):
            return
        self._last = reached, why
        with contextlib.suppress(OSError):
            text = json.dumps(asdict(Link(reached, why, time.time())))
            replace_file(self._path, text.encode("ascii"), synced=False)


def read_link(state: StatePaths) -> Link | None:
    """What was last told; None if nothing was, or it cannot be read."""
    try:
        fields = json.loads(Path(state.run, FILE).read_text("utf-8"))
        return Link(bool(fields["reached"]), str(fields["why"]), float(fields["since"]))
    except (OSError, ValueError, TypeError, LookupError):
        return None
