"""Whether the worker and the recall service may be started on demand: not after `memory uninstall`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from ..runtime.layout import FILE_MODE, UNINSTALLED, StatePaths
from ..runtime.settings import Settings

IsWired = Callable[[Settings], bool]
"""Whether any agent runs our hooks. Called only where it matters, since it reads the agents' settings."""


def is_uninstalled(state: StatePaths) -> bool:
    """Whether `memory uninstall` was run last; then recalls are answered in the process that asks."""
    return os.path.exists(f"{state.run}/{UNINSTALLED}")


def may_start(settings: Settings) -> bool:
    """Whether hooks, commands, jobs and tools may start a process and leave it running."""
    return settings.memory.autostart and not is_uninstalled(settings.state)


def what_starts_a_worker(settings: Settings, is_wired: IsWired) -> str:
    """Return how a worker is started, for a user who finds that none runs."""
    by_hook = may_start(settings) and is_wired(settings)
    return "the next session starts it, or `memory service up`" if by_hook else "`memory service up`"


def forbid_starts(state: StatePaths) -> None:
    """Forbid starts from now on, if the disk allows that. A missing state folder is not created for it."""
    with suppress(OSError):
        os.close(os.open(f"{state.run}/{UNINSTALLED}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))


def allow_starts(state: StatePaths) -> None:
    """Undo `forbid_starts`."""
    with suppress(OSError):
        os.unlink(f"{state.run}/{UNINSTALLED}")
