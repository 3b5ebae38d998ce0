"""Enqueue jobs from commands, which write a row and wake the worker, and from hooks, which write a file.

The worker or a command enqueues the jobs in the files of the spool. A file is deleted after its job is committed. After
a crash in between it is enqueued twice, which the job's unique key and idempotence make harmless. Nothing is dropped:
what can't be enqueued becomes a dead job.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ... import __version__
from ...runtime.errors import QueueUnavailable
from ...runtime.json_text import parse_json
from ...runtime.killpoint import kill_point
from ...runtime.paths import ensure_state
from ...runtime.settings import Settings
from .kinds import ArgsInvalid, Json
from .ledger import Ledger
from .records import NewJob
from .wakeup import wake_worker

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 256 * 1024
COMMAND_PATIENCE_SECONDS = 2.0
"""How long a command waits for the queue. Its changes of files do not depend on it."""


def open_ledger(settings: Settings) -> Ledger:
    """Return the ledger of this vault, with the jobs that hooks have put into the spool; its commits wake the worker.

    Raises QueueUnavailable, SchemaTooNew.
    """
    state = settings.state
    ensure_state(state)
    ledger = Ledger(
        state.queue_db,
        busy_seconds=COMMAND_PATIENCE_SECONDS,
        wakeup=lambda: wake_worker(state.wake_socket, __version__),
    )
    with suppress(QueueUnavailable):
        Spool(state.spool, ledger).ingest()
    return ledger


def enqueue(settings: Settings, kind: str, args: Mapping[str, Json] | None = None, *, unique_key: str) -> int:
    """Enqueue one job that is due now; return its id. Raises QueueUnavailable."""
    with open_ledger(settings) as ledger:
        return ledger.enqueue(kind, args, unique_key=unique_key)


def request_indexing(settings: Settings) -> None:
    """Enqueue the indexing of changed files, if the queue is available; else the next walk of the vault finds them."""
    with suppress(QueueUnavailable):
        enqueue(settings, "index.reconcile", unique_key="index.reconcile")


class Spool:
    """The folder `spool/` with files `<time_ns>-<pid>.json`, which are written elsewhere and renamed into it."""

    def __init__(self, folder: Path | str, ledger: Ledger) -> None:
        self._folder = Path(folder)
        self._ledger = ledger

    def is_empty(self) -> bool:
        """Whether the folder is empty."""
        return not self._waiting()

    def _waiting(self) -> list[str]:
        try:
            with os.scandir(self._folder) as found:
                names = [entry.name for entry in found if entry.name.endswith(".json") and entry.name[0] != "."]
        except OSError:
            return []
        stamps = {name: name.partition("-")[0] for name in names}
        return sorted(names, key=lambda name: (int(stamps[name]) if stamps[name].isdecimal() else 0, name))

    def ingest(self) -> int:
        """Enqueue all files, oldest first; return the number of jobs. Raises QueueUnavailable; the files stay then."""
        jobs: list[NewJob] = []
        done: list[Path] = []
        for name in self._waiting():
            path = self._folder / name
            try:
                text = _read(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                log.warning("can't read %s: %s", path, error)
                with suppress(OSError):
                    path.rename(path.with_suffix(".unreadable"))
                continue
            try:
                job = _parse(text)
                self._ledger.check(job)
                jobs.append(job)
            except (ValueError, ArgsInvalid) as error:
                self._ledger.record_dead("spool.ingest", json.dumps(text[:4096]), f"{name}: {error}")
            done.append(path)
        if done:
            self._ledger.enqueue_all(jobs)
            kill_point("spool-ingest")
            log.info("took %d jobs from the spool, %d refused", len(jobs), len(done) - len(jobs))
        for path in done:
            with suppress(FileNotFoundError):
                path.unlink()
        return len(jobs)


def _read(path: Path) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(fd, "rb") as file:
        return file.read(MAX_FILE_BYTES).decode(errors="replace")


def _parse(text: str) -> NewJob:
    """Parse a file. Raises ValueError with the problem."""
    fields: Any = parse_json(text)
    fields = fields if isinstance(fields, dict) else {}
    kind, args, key = fields.get("kind"), fields.get("args"), fields.get("unique_key")
    run_at, due = fields.get("run_at"), fields.get("policy") or "sooner"
    if not (
        isinstance(kind, str)
        and isinstance(args, dict)
        and isinstance(key, str | None)
        and isinstance(run_at, int | float | None)
        and due in ("sooner", "later")
    ):
        raise ValueError("it is no job")
    return NewJob(kind, args, unique_key=key, run_at=run_at, due="later" if due == "later" else "sooner")
