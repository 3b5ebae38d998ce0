"""Collect the figures of `memory health`, one section per subject, and what needs the user's attention; for the
command and the console. `hook_log` computes the times of hooks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ..index.catalog_reader import CatalogReader
from ..index.client import RecallClient, ServiceRefused, ServiceUnavailable
from ..index.drain import NO_EXTENSION
from ..index.embedder import model_name
from ..index.models import why_not_loaded
from ..index.store import IndexStats
from ..runtime.background import IsWired, may_start
from ..runtime.days import SECONDS_PER_DAY
from ..runtime.errors import MemoryVaultError
from ..runtime.hooklog import busy_notice
from ..runtime.large_change import large_change_notice
from ..runtime.layout import StatePaths
from ..runtime.process_lock import lock_holder
from ..runtime.settings import Settings
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.records import Backlog, Job, WorkerBeat
from ..vault.core import select_core
from ..vault.entry import ACTIVE, Entry
from ..vault.marker import REFLECTED, START, last_event_at, list_markers, marker_path
from ..vault.wording import counted
from .active_counts import ActiveCounts, count_active
from .hook_log import HOOK_DAYS, HookTimes, hook_times, read_hook_runs
from .pausing import pause_notice, why_nothing_starts
from .pending_counts import PendingCounts, count_pending, why_full
from .spending import SpendingReport, spending_report
from .stores import open_index, vault_store
from .waiting_sessions import SessionFigures, read_sessions

RESEARCH = "research"
"""Purpose of research in the spending table; importing its module would be slow."""
SILENT_WORKER_SECONDS = 120.0
"""A worker without a beat for this long has stopped: it beats every ten seconds."""
MOST_REFLECTIONS = 20
"""How many reflections are read: enough to count what was not confirmed."""
SILENT_DAYS = 7
NAMED = 5

Section = TypeVar("Section")


@dataclass(frozen=True)
class IndexFigures(IndexStats):
    """Counts of the index, and the models: `model` is in use (None before the first passages are embedded),
    `model_to_use` is in use or will be, and `model_problem` says why this machine cannot use it."""

    model: str | None
    model_to_use: str
    model_problem: str | None


@dataclass(frozen=True)
class ProcessFigures:
    """A running process."""

    pid: int
    answers: bool = True
    """Whether the recall service answers; False if it hangs."""


@dataclass(frozen=True)
class Processes:
    """The background processes; None for one that is not running."""

    worker: ProcessFigures | None
    recall: ProcessFigures | None


@dataclass(frozen=True)
class HealthReport:
    """The state of the installation; `asdict` gives the JSON of `memory health --json`.

    A section is None if it cannot be read, which is one of the warnings, or if it does not exist.
    """

    warnings: tuple[str, ...]
    entries: ActiveCounts | None
    waiting: PendingCounts | None
    last_reflection: str | None
    """ISO 8601, UTC, to the second."""
    unconfirmed: int | None
    """Messages in the newest MOST_REFLECTIONS that no record attributes to a person; they only become proposals."""
    queue: Backlog | None
    sessions: SessionFigures | None
    """The reason why sessions wait in the queue, if any."""
    index: IndexFigures | None
    hooks: tuple[HookTimes, ...]
    miner: str
    spending: SpendingReport | None
    processes: Processes


def health_report(settings: Settings, now: float, is_wired: IsWired, *, count_entries: bool = True) -> HealthReport:
    """Read all sections; `warnings` says why a section cannot be read. Raises SettingsError.

    `now` is Unix time. Without `count_entries`, which is slow in a large vault, `entries` is None.
    """
    state, week = settings.state, now - HOOK_DAYS * SECONDS_PER_DAY
    faults: list[str] = []

    def read(section: Callable[[], Section]) -> Section | None:
        try:
            return section()
        except (MemoryVaultError, OSError) as error:
            faults.append(str(error))
            return None

    store = vault_store(settings)
    entries = read(lambda: count_active(store)) if count_entries else None
    waiting = read(lambda: count_pending(store))
    ledger = read(lambda: _read_ledger(settings))
    index = read(lambda: _read_index(settings))
    spending = read(lambda: _read_spending(settings, now))
    hooks = hook_times(read_hook_runs(Path(state.log_file), week), week)
    reflected = [*(ledger.reflected_at if ledger else ()), *_event_times(state.markers, REFLECTED)]
    last = max(reflected, default=None)
    processes = _find_processes(state)
    is_locked = store.vault.is_dir() and not os.access(store.vault, os.W_OK | os.X_OK)
    warnings = [
        *faults,
        *store.passed_over.values(),
        busy_notice(str(state.log_file), now),
        *warnings_of(waiting, last, min(_event_times(state.markers, START), default=None), now),
        why_no_room(core_left_out(settings), settings.recall.core_words),
        "the vault cannot be written, so nothing is kept: `memory doctor` says why" if is_locked else None,
        pause_notice(settings),
        large_change_notice(state.markers, now),
    ]
    if ledger is not None:
        waits = ledger.queue.due and processes.worker is None and why_nothing_starts(settings) is None
        is_idle = bool(waits) and not (may_start(settings) and is_wired(settings))
        warnings += _warnings_of_queue(ledger, processes.worker, now, is_idle=is_idle)
    return HealthReport(
        warnings=tuple(dict.fromkeys(filter(None, warnings))),
        entries=entries,
        waiting=waiting,
        last_reflection=datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds") if last else None,
        unconfirmed=ledger.unconfirmed if ledger else None,
        queue=ledger.queue if ledger else None,
        sessions=ledger.sessions if ledger else None,
        index=index,
        hooks=tuple(hooks),
        miner=settings.reflection.miner,
        spending=spending,
        processes=processes,
    )


def _read_spending(settings: Settings, now: float) -> SpendingReport:
    """What was spent. Research that asks this machine alone costs the user nothing, and is left out."""
    report = spending_report(settings.state.state_db, now)
    if settings.research.network:
        return report
    today, week = (tuple(one for one in sums if one.purpose != RESEARCH) for sums in (report.today, report.week))
    return SpendingReport(today, week)


@dataclass(frozen=True)
class _LedgerFigures:
    """Figures of the job ledger: the queue, and the last reflections that were not tests of the hooks."""

    queue: Backlog
    sessions: SessionFigures
    reflected_at: tuple[float, ...]
    """Unix times."""
    beat: WorkerBeat | None
    unheard: str | None
    """The warning that the model took no part in the last reflection, if so."""
    held: tuple[str, ...]
    """The paused kinds of job."""
    unconfirmed: int


def _warnings_of_queue(
    ledger: _LedgerFigures, worker: ProcessFigures | None, now: float, *, is_idle: bool
) -> Iterator[str]:
    """Yield what needs the user in the queue. `is_idle`: jobs are due, and nothing will start a worker."""
    if ledger.queue.dead:
        yield f"{counted(ledger.queue.dead, 'job is', 'jobs are')} dead: `memory jobs list --state dead` says why"
    if is_idle:
        yield f"{counted(ledger.queue.due, 'job is', 'jobs are')} due and no worker runs: `memory service up`"
    if worker and ledger.beat and ledger.beat.pid == worker.pid and now - ledger.beat.beat_at >= SILENT_WORKER_SECONDS:
        minutes = counted(int((now - ledger.beat.beat_at) // 60), "minute")
        yield f"the worker (process {worker.pid}) has not responded for {minutes}: `memory doctor`"
    if ledger.held:
        kinds = ", ".join(ledger.held)
        yield f"paused by hand: {kinds}; no such job starts until `memory jobs resume {ledger.held[0]}`"
    if ledger.unheard:
        yield ledger.unheard


def warnings_of(pending: PendingCounts | None, last: float | None, waiting: float | None, now: float) -> list[str]:
    """Return one line for each problem that needs the user. `last` and `waiting`: the last reflection, and the last
    event of the session that has waited longest for its own."""
    found = why_full(pending) if pending is not None else []
    # Without any reflection, count from the session that has waited longest, if any.
    since = last if last is not None else waiting
    if since is not None and now - since > SILENT_DAYS * SECONDS_PER_DAY:
        days = int((now - since) // SECONDS_PER_DAY)
        found.append(f"nothing was reflected for {counted(days, 'day')}: `memory doctor`")
    return found


def why_no_room(names: Sequence[str], words: int) -> str | None:
    """Return the warning about always-load entries beyond the budget of `words`; None if there are none."""
    if not names:
        return None
    named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return (
        f"no room at a session's start for {named} (`recall.core_words` is {words}): shorten, merge, or "
        f"`memory always --off {names[0]}`"
    )


def _result_of(job: Job) -> Mapping[str, Any]:
    """Return the counts of the last attempt."""
    result = job.history[-1].get("result") if job.history else None
    return result if isinstance(result, Mapping) else {}


def _why_unheard(job: Job) -> str | None:
    """Return the warning that the model took no part in a reflection; None if it did, or none is set."""
    model = _result_of(job).get("model")
    if not isinstance(model, Mapping):
        return None
    why = model.get("failed") or model.get("refused")
    return f"the last session was mined without {model.get('miner')} or not all by it: {why}" if why else None


def _read_ledger(settings: Settings) -> _LedgerFigures:
    """Read the figures of the ledger. Raises QueueUnavailable."""
    with open_ledger(settings) as ledger:
        backlog = ledger.backlog()
        sessions = ledger.list_jobs(["done"], kind="reflect.session", most=MOST_REFLECTIONS)
        waiting, beat = read_sessions(ledger), ledger.worker()
        done = [*sessions[:1], *ledger.list_jobs(["done"], kind="reflect.corpus", most=1)]
        held = tuple(ledger.paused())
    return _LedgerFigures(
        queue=backlog,
        sessions=waiting,
        reflected_at=tuple(job.finished_at for job in done if job.finished_at is not None),
        beat=beat,
        unheard=_why_unheard(sessions[0]) if sessions else None,
        held=held,
        unconfirmed=sum(int(_result_of(job).get("unconfirmed") or 0) for job in sessions),
    )


def _read_index(settings: Settings) -> IndexFigures:
    """Read the figures of the index. Raises IndexUnavailable."""
    with open_index(settings) as store:
        in_force = store.in_force()
        usual = in_force or model_name(settings.embedding.model)
        problem = why_not_loaded(usual, Path(settings.state.models)) if store.has_vectors else NO_EXTENSION
        return IndexFigures(**vars(store.stats()), model=in_force, model_to_use=usual, model_problem=problem)


def core_left_out(settings: Settings) -> tuple[str, ...]:
    """Return the names of always-load entries that exceed the budget at a session's start, for the user and each
    project.

    Empty without a vault or an index.
    """
    if settings.vault_path is None:
        return ()
    try:
        with closing(CatalogReader(Path(settings.state.index_db))) as reader:
            paths = reader.always_load_paths()
        entries = [entry for entry in vault_store(settings).readable(paths) if entry.effective_status == ACTIVE]
    except MemoryVaultError:  # Reported by the sections of the vault and the index.
        return ()
    found: dict[str, Entry] = {}
    for project in sorted({entry.project or "" for entry in entries}):
        given = [entry for entry in entries if (entry.project or "") in ("", project)]
        found.update((entry.path, entry) for entry in select_core(given, settings.recall.core_words)[1])
    return tuple(entry.slug for entry in found.values())


def _event_times(markers: str, state: str) -> list[float]:
    """Return the Unix time of the last event of each session whose marker is in this state."""
    times = (last_event_at(marker_path(markers, session, state)) for session in list_markers(markers, state))
    return [at for at in times if at is not None]


def _find_processes(state: StatePaths) -> Processes:
    recall, answers = lock_holder(state.recall_lock), True
    try:
        with RecallClient(state.recall_socket) as client:
            recall = int(client.ping()["pid"])
    except (ServiceUnavailable, ServiceRefused):
        answers = False  # Or it is not running.
    worker = lock_holder(state.worker_lock)
    return Processes(
        worker=None if worker is None else ProcessFigures(worker),
        recall=None if recall is None else ProcessFigures(recall, answers),
    )
