"""A home folder, a vault and a state folder of their own, and the commands and hooks run in them.

Everything goes through real processes with the environment a user's would have, so that what works here
works for them. The demo and the acceptance tests share it.
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
    """A command or hook did not do what it must; the text has its output."""


@dataclass
class Sandbox:
    """Paths and processes below one folder, which the caller makes and removes."""

    root: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    """More environment variables: settings that differ from the defaults."""
    python: str = sys.executable
    """The interpreter whose installed package runs."""
    hook_ms: list[tuple[str, float]] = field(default_factory=list)
    """Event and time of every hook that was run, as whole processes, in milliseconds."""
    _hook_argv: dict[str, list[str]] = field(default_factory=dict)
    """By event, asked once: a host, too, has it from its settings."""

    def __post_init__(self) -> None:
        self.vault.mkdir(parents=True, exist_ok=True)
        self.projects.mkdir(parents=True, exist_ok=True)

    @property
    def vault(self) -> Path:
        """The folder MemoryVault/ inside an Obsidian vault."""
        return self.root / "Obsidian" / "MemoryVault"

    @property
    def projects(self) -> Path:
        """Where the host keeps its transcripts."""
        return self.root / "home" / ".claude" / "projects"

    @property
    def state(self) -> Path:
        """The state folder of the vault; there once a command has run."""
        (folder,) = (path for path in (self.root / "state").iterdir() if (path / "markers").is_dir())
        return folder

    @property
    def environment(self) -> dict[str, str]:
        """What a process sees: nothing of ours but where its things are."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
        return {
            **kept,
            "HOME": str(self.root / "home"),
            "MEMORY_CONFIG": str(self.root / "config.toml"),
            "MEMORY_STATE_DIR": str(self.root / "state"),
            "MEMORY_VAULT_PATH": str(self.vault),
            # Whoever uses a sandbox starts and ends its processes, so that nothing is left behind.
            "MEMORY_AUTOSTART": "false",
            **self.settings,
        }

    def run(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the `memory` command, whatever comes of it."""
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
        """Run the `memory` command, which must succeed; its stdout."""
        done = self.run(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise SandboxFailure(f"memory {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        return json.loads(self.memory(*arguments, "--json"))

    def hook_argv(self, event: str) -> list[str]:
        """What a host runs for an event."""
        known = self._hook_argv.get(event)
        if known is None or not os.path.exists(known[0]):  # Its launcher is gone with the state folder.
            self._hook_argv[event] = json.loads(self.memory("config", "hook-command", event, "--json"))
        return self._hook_argv[event]

    def hook(self, event: str, payload: Mapping[str, Any], *, argv: list[str] | None = None) -> str:
        """Run a hook exactly as a host would; its stdout. It must exit with 0."""
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
        """A transcript where the host would have written it."""
        path = self.projects / "-home-dev-shop" / f"{session}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(lines, "utf-8")
        return path

    @contextmanager
    def process(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A `memory` command that goes on while the block runs."""
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
        """The recall service, with its model loaded or known to be missing."""
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
