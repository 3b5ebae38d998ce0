"""The user's switches that stop all recording and jobs: `memory pause`, and the setting memory.enabled.

`memory pause` creates the file `markers/STOP`, which running hooks and workers check regardless of their settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..runtime.errors import QueueUnavailable
from ..runtime.layout import FILE_MODE, StatePaths
from ..runtime.settings import Settings


def pause(state: StatePaths) -> bool:
    """Create the STOP file; return False if it existed. Raises QueueUnavailable."""
    try:
        if os.path.islink(state.stop_file) and not os.path.exists(state.stop_file):
            os.unlink(state.stop_file)  # A broken link, which hooks and worker treat as no file.
        os.close(os.open(state.stop_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        return False
    except OSError as error:
        raise QueueUnavailable(f"{state.stop_file} cannot be created: {error.strerror}; nothing is paused") from error
    return True


def resume(state: StatePaths) -> bool:
    """Delete the STOP file; return False if there was none. Raises QueueUnavailable."""
    try:
        os.unlink(state.stop_file)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise QueueUnavailable(f"{state.stop_file} cannot be deleted: {error.strerror}; it stays paused") from error
    return True


def paused_since(state: StatePaths) -> float | None:
    """Return the Unix time of the STOP file; None if there is none."""
    try:
        return os.stat(state.stop_file).st_mtime
    except OSError:
        return None


def _switches(settings: Settings) -> Iterator[tuple[str, str]]:
    """Return the active switches, and how to switch each off."""
    if not settings.memory.enabled:
        if settings.origins.get("memory.enabled") == "MEMORY_ENABLED":
            yield "memory.enabled is false", "take MEMORY_ENABLED out of the environment"
        else:
            yield "memory.enabled is false", f"set memory.enabled = true in {settings.config_file}"
    if os.path.exists(settings.state.stop_file):
        yield "MemoryVault is paused", "`memory resume`"


def why_nothing_starts(settings: Settings) -> str | None:
    """Name the switches that keep every job from starting; None if there are none."""
    return " and ".join(why for why, _ in _switches(settings)) or None


def why_sealed(settings: Settings) -> str:
    """Return why no command may write to the vault; '' if commands may. `memory pause` does not forbid it."""
    if settings.memory.enabled:
        return ""
    return "memory.enabled is false: the vault stays as it is; `memory --force COMMAND` writes all the same"


def how_to_go_on(settings: Settings) -> str:
    """Return how to end what `why_nothing_starts` names."""
    return " and ".join(how for _, how in _switches(settings))


def pause_notice(settings: Settings) -> str | None:
    """Return `why_nothing_starts` with its consequences and the remedy; None if nothing is switched off."""
    why = why_nothing_starts(settings)
    return why and f"{why}: nothing is recorded and no job starts; to go on, {how_to_go_on(settings)}"
