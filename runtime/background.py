"""Start the worker or the recall service in the background, with nothing inherited from the caller.

Not on demand after `memory uninstall`. Hooks have no time for these imports; they use hooks/autostart.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from .errors import MemoryVaultError
from .layout import FILE_MODE, UNINSTALLED, StatePaths, open_private
from .settings import Settings, child_environment

# The caller waits for the intermediate process, so there is no zombie; the program itself is a child of init, in a
# session of its own.
_DETACH = "import os,sys; os.fork() and os._exit(0); os.setsid(); os.execv(sys.argv[1], sys.argv[1:])"

IsWired = Callable[[Settings], bool]
"""Whether any agent runs our hooks. Called only where it matters, since it reads the agents' settings."""


class CannotStart(MemoryVaultError):
    """The program cannot be started, for example where the state folder cannot be written."""


def start_in_background(settings: Settings, name: Literal["worker", "serve"], command: Sequence[str]) -> None:
    """Start `command`, its first word an absolute path, as `memory service <name>`: in a session of its own, working
    directory `/`, allow-listed environment, its stderr appended to `log/<name>.stderr`.

    A second one that is started meanwhile finds the lock taken and ends. Raises CannotStart.
    """
    try:
        settings.state.ensure()
        with open(Path(settings.state.log) / f"{name}.stderr", "ab", opener=open_private) as errors:
            subprocess.run(
                [sys.executable, "-I", "-S", "-c", _DETACH, *command],
                env=child_environment(settings),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                check=True,
            )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotStart(f"`memory service {name}` cannot be started: {error}") from error


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
