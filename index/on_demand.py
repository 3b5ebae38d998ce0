"""Whether worker and recall service may be started by what happens to need them: not since `memory uninstall`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from ..runtime.layout import FILE_MODE, UNINSTALLED, StatePaths
from ..runtime.settings import Settings

IsWired = Callable[[Settings], bool]
"""Whether any agent runs hooks of ours; asked only where it matters, since their settings are read for it."""


def is_uninstalled(state: StatePaths) -> bool:
    """Whether `memory uninstall` was the last word: recall then answers in the process that asks."""
    return os.path.exists(f"{state.run}/{UNINSTALLED}")


def may_start(settings: Settings) -> bool:
    """Whether hooks, commands, jobs and tools may start a process and leave it running."""
    return settings.memory.autostart and not is_uninstalled(settings.state)


def what_starts_a_worker(settings: Settings, is_wired: IsWired) -> str:
    """What is said to somebody who finds that none runs."""
    by_hook = may_start(settings) and is_wired(settings)
    return "the next session starts it, or `memory service up`" if by_hook else "`memory service up`"


def forbid_starts(state: StatePaths) -> None:
    """Nothing is started from now on, if the disk takes that; a state folder that is not there is not made for it."""
    with suppress(OSError):
        os.close(os.open(f"{state.run}/{UNINSTALLED}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))


def allow_starts(state: StatePaths) -> None:
    """As before `forbid_starts`."""
    with suppress(OSError):
        os.unlink(f"{state.run}/{UNINSTALLED}")
