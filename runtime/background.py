"""Start the worker or the recall service in the background, with nothing inherited from the caller.

Hooks have no time for these imports; they use hooks/autostart.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from .errors import MemoryVaultError
from .layout import open_private
from .settings import Settings, child_environment

# The caller waits for the intermediate process, so there is no zombie; the program itself is a child of init, in a
# session of its own.
_DETACH = "import os,sys; os.fork() and os._exit(0); os.setsid(); os.execv(sys.argv[1], sys.argv[1:])"


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
