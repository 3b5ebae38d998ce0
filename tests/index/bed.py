"""A vault, its index and its recall service in a temporary folder."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from memoryvault.index.client import RecallClient, ServiceRefused, ServiceUnavailable
from memoryvault.index.drain import DrainReport, drain, embed_with
from memoryvault.index.embedder import Embedder
from memoryvault.index.engine import RecallEngine, RecallQuery, RecallResult
from memoryvault.index.filters import parse_filter
from memoryvault.index.reconcile import ReconcileReport, reconcile
from memoryvault.index.store import IndexStore
from memoryvault.runtime.layout import StatePaths
from memoryvault.tests.support.fake_embedder import FakeEmbedder
from memoryvault.tests.support.files import put
from memoryvault.vault.store import VaultStore

TODAY = date(2026, 7, 1)


@dataclass
class Bed:
    """`write` notes, `index` them, `recall`."""

    root: Path
    state: StatePaths = field(init=False)
    vault: Path = field(init=False)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    _store: IndexStore | None = None
    _engines: list[RecallEngine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.vault = self.root / "MemoryVault"
        self.vault.mkdir()
        self.state = StatePaths(self.root / "state")
        self.state.ensure()

    @property
    def index_db(self) -> Path:
        return Path(self.state.index_db)

    @property
    def store(self) -> IndexStore:
        if self._store is None:
            self._store = IndexStore(self.index_db)
        return self._store

    def walk(self) -> Iterator[str]:
        return VaultStore(self.vault, Path(self.state.vault_lock), lambda: TODAY).walk()

    def write(self, path: str, body: str, **fields: Any) -> Path:
        lines = [f"{key}: {value}" for key, value in fields.items()]
        head = "---\n" + "\n".join(lines) + "\n---\n\n" if lines else ""
        return put(self.vault / path, head + body + "\n")

    def index(self) -> ReconcileReport:
        return reconcile(self.store, self.vault, self.walk)

    def embed(self, embedder: Embedder | None = None) -> DrainReport:
        chosen = embedder or self.embedder
        return drain(self.store, embed_with(chosen), model=chosen.name)

    def refresh(self) -> None:
        """Index and embed what is in the vault now."""
        self.index()
        self.embed()

    def engine(self, *, dense: bool = True) -> RecallEngine:
        embedder = self.embedder if dense else None
        engine = RecallEngine(self.index_db, self.vault, embedder)
        self._engines.append(engine)
        return engine

    def recall(self, text: str, *, dense: bool = True, **options: Any) -> RecallResult:
        options["filter"] = parse_filter(options.get("filter"), TODAY)
        return self.engine(dense=dense).recall(RecallQuery(text, **options))

    def close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def close(self) -> None:
        self.close_store()
        for engine in self._engines:
            engine.close()


def slugs(result: RecallResult) -> list[str]:
    return [hit.slug for hit in result.hits]


class ServiceProcess:
    """`memory service serve` as a real process, with the fake embedder unless `model` names a real one.

    `packages`: a folder whose packages it loads before the installed ones.
    """

    def __init__(self, vault: Path, state: StatePaths, *options: str, packages: Path | None = None) -> None:
        self._socket = state.recall_socket
        environment = {"PATH": os.environ["PATH"], "HOME": str(vault.parent), "MALLOC_ARENA_MAX": "2"}
        module = "memoryvault.tests.index.serve"
        loader = (
            f"import runpy, sys; sys.path.insert(0, {str(packages)!r}); runpy.run_module({module!r}, None, '__main__')"
        )
        program = ["-m", module] if packages is None else ["-c", loader]
        argv = [sys.executable, "-I", *program, str(vault), state.root]
        self.process = subprocess.Popen(
            [*argv, *options], env=environment, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def client(self) -> RecallClient:
        return RecallClient(self._socket)

    def wait_until_listening(self, *, model: bool = True, seconds: float = 60.0) -> dict[str, Any]:
        """The ping's answer, once the model is loaded (or has failed to load)."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                with self.client() as client:
                    answer = client.ping()
                if not (model and answer["loading"]):
                    return answer
            except (ServiceUnavailable, ServiceRefused):
                if self.process.poll() is not None:
                    raise RuntimeError(self.wait()) from None
            if time.monotonic() > deadline:
                raise TimeoutError("the service does not listen")
            time.sleep(0.01)

    def wait(self, seconds: float = 60.0) -> str:
        """What the process printed, once it has ended by itself."""
        out, errors = self.process.communicate(timeout=seconds)
        return (out + errors).decode()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.communicate()
