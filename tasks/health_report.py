"""`memory health` as one object: how things stand, in figures; for the command and the console."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..index.client import RecallClient, ServiceRefused, ServiceUnavailable
from ..index.drain import NO_EXTENSION
from ..index.embedder import model_name
from ..index.models import why_not_loaded
from ..index.receipts import marks_of, read_marks
from ..index.store import IndexStore
from ..vault.days import SECONDS_PER_DAY
from ..vault.errors import MemoryVaultError
from ..vault.lock import lock_holder
from ..vault.settings import Settings
from .active_counts import ActiveCounts, count_active_and_pending
from .health import (
    TRIAL_SESSION,
    hook_times,
    last_reflection,
    log_lines,
    oldest_waiting,
    resident_megabytes,
    warnings_of,
    week_before,
    why_unheard,
)
from .indexing import open_index, vault_store
from .queue.enqueue import open_ledger
from .settings_in_force import why_nothing_starts
from .shared_queue import NO_CLIENT, is_shared
from .shared_queue_link import read_link
from .spending import spending_report

AWAY_DAYS = 2
"""A shared queue that was not reached for so long is worth a warning; until then all goes on without it."""
MOST_REFLECTIONS = 20
"""Among so many is the last one that was no trial of the hooks."""


def health_report(settings: Settings, now: float, lines: Iterable[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Everything as one JSON object; what cannot be reached is said in `warnings`. Raises SettingsError.

    `lines` are the log's (`log_lines`), of a week at least, from a caller that has read them.
    """
    state = settings.state
    faults: list[str] = []
    unheard: list[str] = []
    counts = waiting = queue = index = None
    done_at: list[float] = []
    try:
        if not settings.only_works_for_others:
            vault = vault_store(settings)
            vault.require_vault()
            counts, waiting = count_active_and_pending(settings, vault)
    except (MemoryVaultError, OSError) as error:
        faults.append(str(error))
    try:
        with open_ledger(settings) as ledger:
            backlog = ledger.backlog()
            dead = sum(count for _, state_of, count in ledger.live_counts() if state_of == "dead")
            queue = {"running": backlog.running, "due": backlog.due, "delayed": backlog.delayed, "dead": dead}
            done = [
                job
                for job in ledger.list(["done"], kind="reflect.session", most=MOST_REFLECTIONS)
                if not str(job.args.get("session") if isinstance(job.args, dict) else "").startswith(TRIAL_SESSION)
            ][:1]
            done_at = [
                job.finished_at
                for job in (*done, *ledger.list(["done"], kind="reflect.corpus", most=1))
                if job.finished_at is not None
            ]
            unheard = [why for job in done if (why := why_unheard(job.history)) is not None]
    except MemoryVaultError as error:
        faults.append(str(error))
    try:
        with open_index(settings) as store:
            index = {**asdict(store.stats()), **_model(settings, store)}
    except MemoryVaultError as error:
        faults.append(str(error))
    spending = None
    try:
        spending = spending_report(state.state_db, now)
    except MemoryVaultError as error:
        faults.append(str(error))
    week = week_before(now)
    hooks = hook_times(log_lines(Path(state.log_file), week) if lines is None else lines, week)
    last = last_reflection(state.harness, done_at)
    marks = marks_of(read_marks(Path(state.log) / "marks.jsonl"))
    warnings = warnings_of(waiting, last, oldest_waiting(state.harness), hooks, now)
    if why := why_nothing_starts(settings):
        warnings.append(f"{why}: nothing is recorded, and every job waits")
    if queue is not None and queue["dead"]:
        dead_jobs = "1 job is" if queue["dead"] == 1 else f"{queue['dead']} jobs are"
        warnings.append(f"{dead_jobs} dead: `memory jobs list --state dead` says why")
    shared = _shared_queue(settings, now, warnings)
    return {
        "warnings": [*faults, *warnings, *unheard],
        "entries": _entries(counts) if counts is not None else None,
        "waiting": asdict(waiting) if waiting is not None else None,
        "last_reflection": datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds") if last else None,
        "queue": queue,
        "shared_queue": shared,
        "index": index,
        "hooks": [asdict(times) for times in hooks],
        "miner": settings.reflection.miner,
        "spending": spending,
        "marked": {"useful": sum(marks.values()), "noise": len(marks) - sum(marks.values())},
        "processes": _processes(state.worker_lock, state.recall_socket),
    }


def _entries(counts: ActiveCounts) -> dict[str, Any]:
    return {"groups": counts.groups, "in_use": counts.entries, "set_aside": counts.set_aside}


def _model(settings: Settings, store: IndexStore) -> dict[str, str | None]:
    """The model that answers, None before the first passages are embedded; the one that does or would, and what keeps
    this machine from using that."""
    in_force = store.in_force()
    usual = in_force or model_name(settings.embedding.model)
    problem = why_not_loaded(usual, Path(settings.state.models)) if store.has_vectors else NO_EXTENSION
    return {"model": in_force, "model_to_use": usual, "model_problem": problem}


def _shared_queue(settings: Settings, now: float, warnings: list[str]) -> dict[str, Any] | None:
    """What the worker last knew of it: nobody here waits for a network."""
    if not is_shared(settings):
        return None
    if importlib.util.find_spec("psycopg") is None:
        warnings.append(NO_CLIENT)
    link = read_link(settings.state)
    if link is None:
        return {"reached": None, "why": "no worker has told yet", "since": None}
    if not link.reached and now - link.since > AWAY_DAYS * SECONDS_PER_DAY:
        days = int((now - link.since) // SECONDS_PER_DAY)
        warnings.append(f"the shared queue has been away for {days} days: {link.why}")
    return {**asdict(link), "since": datetime.fromtimestamp(link.since, UTC).isoformat(timespec="seconds")}


def _processes(worker_lock: str, recall_socket: str) -> dict[str, dict[str, Any] | None]:
    pids: dict[str, int | None] = {"worker": lock_holder(worker_lock), "recall": None}
    try:
        with RecallClient(recall_socket) as client:
            pids["recall"] = int(client.ping()["pid"])
    except (ServiceUnavailable, ServiceRefused):
        pids["recall"] = None
    return {
        name: None if pid is None else {"pid": pid, "megabytes": _rounded(resident_megabytes(pid))}
        for name, pid in pids.items()
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
