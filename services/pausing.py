"""The user's switches by which nothing is recorded and no job starts: `memory pause`, and the setting memory.enabled.

`memory pause` makes the file `markers/STOP`: hooks and worker look for it, whatever the settings say and however long
they have run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..runtime.errors import QueueUnavailable
from ..runtime.layout import FILE_MODE, StatePaths
from ..runtime.settings import Settings


def pause(state: StatePaths) -> bool:
    """Make the STOP file; False where there was one. Raises QueueUnavailable."""
    try:
        if os.path.islink(state.stop_file) and not os.path.exists(state.stop_file):
            os.unlink(state.stop_file)  # It leads nowhere: for hooks and worker there is no such file.
        os.close(os.open(state.stop_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        return False
    except OSError as error:
        raise QueueUnavailable(f"{state.stop_file} cannot be made: {error.strerror}; nothing is paused") from error
    return True


def resume(state: StatePaths) -> bool:
    """Delete the STOP file; False where there was none. Raises QueueUnavailable."""
    try:
        os.unlink(state.stop_file)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise QueueUnavailable(f"{state.stop_file} cannot be deleted: {error.strerror}; it stays paused") from error
    return True


def paused_since(state: StatePaths) -> float | None:
    """Unix time of the STOP file; None where there is none."""
    try:
        return os.stat(state.stop_file).st_mtime
    except OSError:
        return None


def _switches(settings: Settings) -> Iterator[tuple[str, str]]:
    """What keeps everything from starting, and what ends that."""
    if not settings.memory.enabled:
        if settings.origins.get("memory.enabled") == "MEMORY_ENABLED":
            yield "memory.enabled is false", "take MEMORY_ENABLED out of the environment"
        else:
            yield "memory.enabled is false", f"set memory.enabled = true in {settings.config_file}"
    if os.path.exists(settings.state.stop_file):
        yield "MemoryVault is paused", "`memory resume`"


def why_nothing_starts(settings: Settings) -> str | None:
    """The switches by which the user keeps every job from starting, in words; None where none does."""
    return " and ".join(why for why, _ in _switches(settings)) or None


def why_sealed(settings: Settings) -> str:
    """Why no command writes to the vault, '' where it may: `memory pause` ends what happens by itself, not the user."""
    if settings.memory.enabled:
        return ""
    return "memory.enabled is false: the vault stays as it is; `memory --force COMMAND` writes all the same"


def how_to_go_on(settings: Settings) -> str:
    """What ends what `why_nothing_starts` names."""
    return " and ".join(how for _, how in _switches(settings))


def pause_notice(settings: Settings) -> str | None:
    """`why_nothing_starts` with what that means and what switches it on; None where nothing is switched off."""
    why = why_nothing_starts(settings)
    return why and f"{why}: nothing is recorded and no job starts; to go on, {how_to_go_on(settings)}"
