"""Running a hook as a host does: own process, own environment, nothing of the real home."""

import json
import os
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryvault.hooks.install import STUB
from memoryvault.index.store import IndexStore
from memoryvault.runtime.layout import StatePaths, leave_socket_folder, make_socket_folder, vault_id
from memoryvault.runtime.settings import compile_snapshot
from memoryvault.runtime.snapshot import read_snapshot
from memoryvault.tests.support.files import put_note
from memoryvault.tests.support.hurry import patience, patient
from memoryvault.vault.entry import parse_entry
from memoryvault.vault.marker import Marker, marker_path, read_marker

SESSION = "0b54a9e2-4b34-4e0e-9d64-7f0a5f1f2c11"


def stub() -> list[str]:
    """What hosts have Python run; in the second try on a busy machine with the script that has more time."""
    return patient([str(STUB)])


_STUCK = """\
import sys, time
sys.modules["memoryvault"] = package = type(sys)("memoryvault")
package.__path__ = [sys.argv[1]]
del sys.argv[:2]
from memoryvault.hooks import client, session_start
STUCK = lambda *arguments: time.sleep(30)
exec(open(sys.argv[0]).read(), {"__name__": "__main__", "__file__": sys.argv[0]})
"""


def stuck_in(function: str) -> tuple[str, ...]:
    """The interpreter of a hook in which `client.…` or `session_start.…` does not return in time."""
    return (sys.executable, "-I", "-S", "-c", _STUCK.replace("STUCK", function), str(STUB.parents[1]))


@dataclass(frozen=True)
class Outcome:
    stdout: str
    stderr: str
    seconds: float


@dataclass
class Sandbox:
    """A home, a vault, a project and a state folder below `root`."""

    root: Path
    extra_env: dict[str, str] = field(default_factory=dict)
    compiled: bool = True
    """Leave the settings ready for hooks, as the worker and the command do; else the first hook compiles."""

    def __post_init__(self) -> None:
        for folder in (self.home / ".claude" / "projects" / "-proj", self.vault, self.project / ".git"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def vault(self) -> Path:
        return self.root / "notes" / "MemoryVault"

    @property
    def project(self) -> Path:
        return self.root / "my_shop"

    @property
    def state_root(self) -> Path:
        return self.root / "state"

    @property
    def state(self) -> StatePaths:
        return StatePaths(self.state_root / vault_id(str(self.vault)))

    @property
    def transcript(self) -> Path:
        return self.home / ".claude" / "projects" / "-proj" / f"{SESSION}.jsonl"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "MEMORY_VAULT_PATH": str(self.vault),
            "MEMORY_STATE_DIR": str(self.state_root),
            "MEMORY_AUTOSTART": "false",
            **self.extra_env,
        }

    def payload(self, **fields: object) -> dict[str, object]:
        common = {"session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        return {**common, **fields}

    def entry(self, path: str, body: str, **header: str) -> Path:
        """Write an entry; `status: active` unless said otherwise."""
        fields = {"kind": "preferences", "status": "active", "slug": Path(path).stem, **header}
        return put_note(self.vault, path, body, **{key: value for key, value in fields.items() if value})

    def run(
        self,
        event: str,
        payload: Mapping[str, object] | bytes,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        python: tuple[str, ...] = (sys.executable, "-I", "-S"),
        prepare: Callable[[], None] | None = None,
    ) -> Outcome:
        """Let a hook run. Whatever it is given, it exits with 0 and without a traceback."""
        env = dict(self.env if env is None else env)
        if self.compiled and read_snapshot(env) is None:
            compile_snapshot(env)
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        begun = time.monotonic()
        done = subprocess.run(
            [*python, *stub(), event, *args],
            input=raw,
            env=env,
            cwd=cwd or self.project,
            capture_output=True,
            timeout=10 * patience(),
            check=False,
            preexec_fn=prepare,
        )
        seconds = time.monotonic() - begun
        outcome = Outcome(done.stdout.decode(), done.stderr.decode(), seconds)
        assert (done.returncode, "Traceback" in outcome.stderr) == (0, False), f"{event}: {outcome.stderr}"
        return outcome

    def configure(self, text: str) -> None:
        file = self.root / "config.toml"
        file.write_text(text)
        self.extra_env["MEMORY_CONFIG"] = str(file)

    def change_settings(self, before: str, after: str) -> None:
        """Write the settings file anew since it was compiled."""
        self.configure(before)
        compile_snapshot(self.env)
        self.configure(after)
        self.compiled = False

    def log_lines(self) -> list[dict[str, Any]]:
        file = Path(self.state.log_file)
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def files(self) -> set[str]:
        """Every file below `root`, to prove that nothing was written."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}


@contextmanager
def recall_service(path: str, answer: Callable[[dict[str, Any]], bytes]) -> Iterator[list[dict[str, Any]]]:
    """A service that answers every request with `answer(request)`; yields the requests it got."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    requests: list[dict[str, Any]] = []

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if line := self.rfile.readline():
                requests.append(json.loads(line))
                with suppress(OSError):
                    self.wfile.write(answer(requests[-1]))

    with socketserver.ThreadingUnixStreamServer(path, Answer) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield requests
        finally:
            server.shutdown()
            thread.join(timeout=5)
            os.unlink(path)


def answer_with(**fields: object) -> Callable[[dict[str, Any]], bytes]:
    line = json.dumps({"v": 1, "ok": True, "degraded": [], **fields}).encode() + b"\n"
    return lambda request: line


@contextmanager
def sandbox_at(root: Path) -> Iterator[Sandbox]:
    """An untouched home, vault and project; a test may put sockets where ours would be."""
    made = Sandbox(root)
    sockets = (made.state.recall_socket, made.state.wake_socket)
    if made.state.sockets != made.state.run:
        make_socket_folder(sockets[0])
    yield made
    for path in sockets:
        Path(path).unlink(missing_ok=True)
    leave_socket_folder(sockets[0])


def index(sandbox: Sandbox, *paths: str) -> None:
    """Index the files at `paths` as the worker does."""
    sandbox.state.ensure()
    with IndexStore(Path(sandbox.state.index_db)) as store:
        for path in paths:
            file = sandbox.vault / path
            status = file.stat()
            entry = parse_entry(path, file.read_bytes())
            store.upsert_entry(entry, mtime_ns=status.st_mtime_ns, size=status.st_size)


def indexed(sandbox: Sandbox, path: str, body: str, **header: str) -> None:
    sandbox.entry(path, body, **header)
    index(sandbox, path)


def marker_of(sandbox: Sandbox) -> Marker:
    """The marker of this session, which a hook has written."""
    marker = read_marker(marker_path(sandbox.state.markers, SESSION))
    assert marker is not None
    return marker
