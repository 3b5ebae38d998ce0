"""Install the worker as a service of the user's login: a systemd user unit.

It runs `memory service worker` with only the variables that `identity` returns. The recall service has no unit: worker
and hooks start it on demand, and it exits when unused.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...runtime.atomic_file import replace_file
from ...runtime.errors import MemoryVaultError
from ...runtime.settings_table import SETTINGS

UNIT = "memoryvault.service"
UNIT_MODE = 0o644
"""Mode that others can read; systemd warns about a unit without."""
COMMAND_SECONDS = 30.0
RESTART_SECONDS = 30
"""Pause before a worker that left for a newer version, or found another one running, is started again."""
_WHICH = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


class ServiceManagerUnavailable(MemoryVaultError):
    """There is no service manager, or it refused."""


@dataclass(frozen=True)
class UnitState:
    """The manager's state of our unit."""

    definition: Path
    installed: bool
    running: bool


def worker_command() -> list[str]:
    """Return the worker's command line, with absolute paths and independent of the user's Python settings."""
    return [sys.executable, "-I", "-m", "memoryvault", "service", "worker"]


def identity(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `env` that select a setting or a place; other settings are read at each start."""
    known = {row.variable for row in SETTINGS if row.variable} | {"MEMORY_CONFIG", "MEMORY_STATE_DIR", *_WHICH}
    return {name: env[name] for name in sorted(known) if env.get(name)}


def _run(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, env=dict(env), cwd="/", capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceManagerUnavailable(
            f"{argv[0]} can't be used here ({error}); nothing is lost: the first hook of a session starts the worker"
        ) from error


def _checked(argv: Sequence[str], env: Mapping[str, str]) -> None:
    done = _run(argv, env)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise ServiceManagerUnavailable(
            f"`{' '.join(argv)}` failed: {said}; without it the first hook of a session starts the worker"
        )


class SystemdUser:
    """A unit of the user's systemd (Linux)."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        config = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".config")
        self.definition = Path(config) / "systemd" / "user" / UNIT

    def text(self) -> str:
        """Return the unit file."""
        variables = "".join(
            f"Environment={_quoted(f'{name}={value}')}\n" for name, value in identity(self._env).items()
        )
        return (
            "[Unit]\n"
            "Description=MemoryVault: memory for coding agents\n"
            "\n"
            "[Service]\n"
            f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in worker_command())}\n"
            f"{variables}"
            "WorkingDirectory=/\n"
            "UMask=0077\n"
            "Nice=5\n"
            "Restart=always\n"
            f"RestartSec={RESTART_SECONDS}\n"
            "KillSignal=SIGTERM\n"
            "TimeoutStopSec=60\n"
            "\n"
            "[Install]\n"
            "WantedBy=default.target\n"
        )

    def install(self) -> bool:
        """Write the definition and start the unit, now and at every login; return False if nothing changed.

        Raises ServiceManagerUnavailable with the manager's message.
        """
        _checked(["systemctl", "--user", "show-environment"], self._env)
        text = self.text()
        changed = not self.definition.is_file() or self.definition.read_text("utf-8") != text
        if changed:
            self.definition.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.definition, text.encode("utf-8"), mode=UNIT_MODE)
            _checked(["systemctl", "--user", "daemon-reload"], self._env)
        elif self.state().running:
            return False
        _checked(["systemctl", "--user", "enable", UNIT], self._env)
        _checked(["systemctl", "--user", "restart", UNIT], self._env)
        return True

    def state(self) -> UnitState:
        """Return whether it is installed, and whether it runs. Never raises."""
        try:
            running = _run(["systemctl", "--user", "is-active", "--quiet", UNIT], self._env).returncode == 0
        except ServiceManagerUnavailable:
            running = False
        return UnitState(self.definition, self.definition.is_file(), running)

    def remove(self) -> bool:
        """Stop the unit and delete its definition; return False if there was none."""
        if not self.definition.is_file():
            return False
        _checked(["systemctl", "--user", "disable", "--now", UNIT], self._env)
        self.definition.unlink()
        _checked(["systemctl", "--user", "daemon-reload"], self._env)
        return True


def _quoted(value: str) -> str:
    """Quote one word of a unit file, in which `%` begins a specifier."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"' if escaped != value or any(char in " \t'" for char in value) else value
