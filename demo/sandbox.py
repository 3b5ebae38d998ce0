"""Run commands and hooks with a temporary home folder, vault and state folder.

They are real processes with a user's environment. The demo and the acceptance tests share it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..index.client import RecallClient, ServiceUnavailable
from ..runtime.layout import StatePaths, vault_id

LOAD_SECONDS = 120.0
STOP_SECONDS = 20.0


class SandboxFailure(SystemExit):
    """A command or hook failed; the message has its output."""


@dataclass
class Sandbox:
    """Paths and processes in one folder, which the caller makes and removes."""

    root: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables for settings."""
    python: str = sys.executable
    """The interpreter that has the package."""
    hook_ms: list[tuple[str, float]] = field(default_factory=list)
    """Event and milliseconds of every hook that was run, as a whole process."""
    _hook_argv: dict[str, list[str]] = field(default_factory=dict)
    """Event -> argv, cached."""

    def __post_init__(self) -> None:
        self.vault.mkdir(parents=True, exist_ok=True)
        self.projects.mkdir(parents=True, exist_ok=True)

    @property
    def vault(self) -> Path:
        """The folder MemoryVault/ inside an Obsidian vault."""
        return self.root / "Obsidian" / "MemoryVault"

    @property
    def projects(self) -> Path:
        """The host's folder of transcripts."""
        return self.root / "home" / ".claude" / "projects"

    @property
    def state(self) -> Path:
        """The state folder of the vault, which the first command makes."""
        (folder,) = (path for path in (self.root / "state").iterdir() if (path / "markers").is_dir())
        return folder

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the processes."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
        return {
            **kept,
            "HOME": str(self.root / "home"),
            "MEMORY_CONFIG": str(self.root / "config.toml"),
            "MEMORY_STATE_DIR": str(self.root / "state"),
            "MEMORY_VAULT_PATH": str(self.vault),
            # The caller starts and ends all processes, so that none is left.
            "MEMORY_AUTOSTART": "false",
            # It would be unpacked for each sandbox.
            "MEMORY_REFLECTION_SECOND_MODEL": "false",
            **self.settings,
        }

    def run(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `memory` with any result."""
        return subprocess.run(
            [self.python, "-m", "memoryvault", *arguments],
            input=stdin,
            env={**self.environment, **(env or {})},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )

    def memory(self, *arguments: str, stdin: str = "") -> str:
        """Run `memory` and return its stdout. Raises SandboxFailure if it fails."""
        done = self.run(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise SandboxFailure(f"memory {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        return json.loads(self.memory(*arguments, "--json"))

    def hook_argv(self, event: str) -> list[str]:
        """The argv that a host runs for an event."""
        known = self._hook_argv.get(event)
        if known is None or not os.path.exists(known[0]):  # The launcher was removed with the state folder.
            self._hook_argv[event] = json.loads(self.memory("config", "hook-command", event, "--json"))
        return self._hook_argv[event]

    def hook(self, event: str, payload: Mapping[str, Any], *, argv: list[str] | None = None) -> str:
        """Run a hook as a host does and return its stdout. Raises SandboxFailure unless it exits with 0."""
        command = self.hook_argv(event) if argv is None else argv
        started = time.perf_counter()
        done = subprocess.run(
            command,
            input=json.dumps({"hook_event_name": event, **payload}),
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        self.hook_ms.append((event, (time.perf_counter() - started) * 1000))
        if done.returncode != 0:
            raise SandboxFailure(f"the {event} hook exited with {done.returncode}: {done.stderr}")
        return done.stdout

    def transcript(self, session: str, lines: str) -> Path:
        """Write a transcript into the host's folder; its path."""
        path = self.projects / "-home-dev-shop" / f"{session}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(lines, "utf-8")
        return path

    @contextmanager
    def process(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a `memory` command during the block."""
        process = subprocess.Popen(
            [self.python, "-m", "memoryvault", *arguments],
            env=self.environment,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @contextmanager
    def recall_service(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the recall service during the block, once its model is loaded or known to be missing."""
        with self.process("service", "serve") as process:
            until = time.monotonic() + LOAD_SECONDS
            socket_path = StatePaths(self.root / "state" / vault_id(str(self.vault))).recall_socket
            with RecallClient(socket_path) as client:
                while True:
                    try:
                        if not client.ping()["loading"]:
                            break
                    except ServiceUnavailable:
                        pass
                    if time.monotonic() > until or process.poll() is not None:
                        raise SandboxFailure("the recall service did not come up")
                    time.sleep(0.05)
            yield process
