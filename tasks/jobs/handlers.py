"""The handler of each kind of job."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from functools import partial

from ...runtime.settings import Settings
from ..queue.job import Handler, RunningJob
from ..queue.kinds import Json

HANDLERS: Mapping[str, tuple[str, str]] = {
    "reflect.session": ("reflection", "reflect_handler"),
    "reflect.corpus": ("corpus_mining", "corpus_handler"),
    "skills.index": ("skills", "skills_handler"),
    "recover.orphans": ("markers", "recover_handler"),
    "markers.gc": ("markers", "collect_handler"),
    "index.reconcile": ("indexing", "reconcile_handler"),
    "embed.drain": ("indexing", "drain_handler"),
    "model.upgrade": ("upgrading", "upgrade_handler"),
    "logs.rotate": ("upkeep", "rotate_handler"),
    "review.apply": ("written_decisions", "apply_handler"),
    "session.cost": ("sweeps", "cost_handler"),
    "memory.import": ("sweeps", "import_handler"),
    "inbox.triage": ("sweeps", "triage_handler"),
    "incubator.gc": ("sweeps", "gc_handler"),
    "dashboard.write": ("dashboard", "dashboard_handler"),
    "research.idea": ("research", "research_handler"),
    "discover.scan": ("discovering", "discover_handler"),
    "adapt.evaluate": ("discovering", "adapt_handler"),
}
"""By kind: the module, and the function in it that handles a job by the settings."""


class LazyHandler:
    """A handler whose module is imported with its first job, because most runs have jobs of few kinds."""

    def __init__(self, kind: str, settings: Settings) -> None:
        self._kind, self._settings = kind, settings
        self._lock = threading.Lock()
        self._handler: Handler | None = None

    def load(self) -> Handler:
        """Import the handler if that is not done yet."""
        with self._lock:
            if self._handler is None:
                module, name = HANDLERS[self._kind]
                handle = getattr(importlib.import_module(f".{module}", __package__), name)
                self._handler = partial(handle, self._settings)
            return self._handler

    def __call__(self, job: RunningJob, /) -> Mapping[str, Json] | None:
        return self.load()(job)


def handlers(settings: Settings) -> Mapping[str, LazyHandler]:
    """Return the handlers of the kinds that this version knows; schedules of other kinds do not run."""
    return {kind: LazyHandler(kind, settings) for kind in HANDLERS}
