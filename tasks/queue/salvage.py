"""A broken database is set aside with its date, and what it knew is put together again.

queue.db comes back from what can still be read of it, from its daily copy, from the spool and from the
session markers; state.db from its daily copy.  The broken file is kept: nothing of it is ever deleted here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...vault.errors import QueueUnavailable
from ...vault.killpoint import kill_point
from ...vault.layout import StatePaths
from ...vault.marker import has_ended, last_event_at, list_markers, marker_path, read_marker
from ...vault.wording import counted
from . import queries
from .kinds import POLICIES, KindPolicy
from .ledger import Ledger, NewJob
from .schema import QueueDamaged, is_damage

log = logging.getLogger(__name__)

CHECKED_BYTES = 64 * 1024 * 1024
"""A file up to this size is read through at the worker's start; a larger one shows its damage in use."""
COPY_BUSY_SECONDS = 5.0
_SIDE_FILES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class OpenedQueue:
    """A ledger that works, and what had to be done for it."""

    ledger: Ledger
    rebuilt: bool
    """It is new or was damaged: spool and markers must be looked through."""
    notes: tuple[str, ...]
    """What the user should know, one line each."""


def open_queue(state: StatePaths, *, policies: Mapping[str, KindPolicy] = POLICIES, busy_seconds: float) -> OpenedQueue:
    """The ledger of this state folder, whatever state its file is in.  Only for who holds the worker's lock.

    Raises QueueUnavailable (locked, read-only, disk full) and SchemaTooNew, as Ledger does.
    """
    path = Path(state.queue_db)
    salvaged = path.with_name(f"{path.name}.salvaging")
    damage = "its salvage was interrupted" if _moved_in_part(salvaged) else find_damage(path)
    if damage is None and not is_readable_anew(path):  # Of a large file, which `find_damage` does not read through.
        damage = "its newest job can't be read"
    ledger = None
    if damage is None:
        try:
            ledger = Ledger(path, policies=policies, busy_seconds=busy_seconds)
        except QueueDamaged as error:
            damage = str(error)
    if ledger is None:
        if salvaged.exists() and not _moved_in_part(salvaged):
            set_aside(salvaged, path)  # Damaged again before the first salvage was done.
        _move(path, salvaged)
        kill_point("salvage")
        ledger = Ledger(path, policies=policies, busy_seconds=busy_seconds)
    rebuilt, notes = not ledger.is_complete(), []
    if salvaged.exists():
        rebuilt = True
        found = _take_over_jobs(ledger, salvaged)
        copied = _take_over_jobs(ledger, backup_of(path))
        _restore_pauses(ledger, salvaged)
        read = counted(found, "job was", "jobs were")
        notes.append(
            f"queue.db was damaged ({damage or 'its salvage was interrupted'}): {read} read from it, "
            f"{copied} more from the copy of the last night, the rest comes from the spool and the session markers"
        )
    if rebuilt:
        _restore_pauses(ledger, backup_of(path))
    return OpenedQueue(ledger, rebuilt, tuple(notes))


def finish_rebuilding(state: StatePaths, ledger: Ledger, quiet_seconds: float) -> int:
    """Make the jobs of unmined sessions again, then note that queue.db is complete; how many jobs.

    Killed before the end, the next start does it all again, to no further effect.
    """
    made = requeue_unmined(state, ledger, quiet_seconds)
    path = Path(state.queue_db)
    salvaged = path.with_name(f"{path.name}.salvaging")
    if salvaged.exists():
        log.warning("the damaged file is kept as %s", set_aside(salvaged, path).name)
    ledger.mark_complete()
    return made


def find_damage(path: Path) -> str | None:
    """What SQLite finds wrong with the file, None if nothing, or if it can't be looked at now."""
    try:
        size = path.stat().st_size
        if not 0 < size <= CHECKED_BYTES:
            return None
        with contextlib.closing(_open_readonly(path)) as conn:
            found = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return str(error) if is_damage(error) else None
    except OSError:
        return None
    return None if found == "ok" else " ".join(str(found).split())


def is_readable_anew(path: Path) -> bool:
    """Whether somebody who opens the file now can read it: False only if SQLite says that it is broken.

    A connection that has been open for long reads what it knows already from its own cache, and goes on for hours in
    a file that nobody else can use.  This opens it anew and reads its schema and the newest job: about a millisecond.
    """
    try:
        with contextlib.closing(_open_readonly(path)) as conn:
            conn.execute(queries.NEWEST_JOB).fetchone()
    except sqlite3.DatabaseError as error:
        return not is_damage(error)
    return True


def set_aside(path: Path, name: Path | None = None) -> Path:
    """Rename a database and what belongs to it to `<name>.damaged-<date>`; the new name."""
    kept_as = _name_aside(name or path)
    _move(path, kept_as)
    return kept_as


def _name_aside(base: Path) -> Path:
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    kept_as, number = base.with_name(f"{base.name}.damaged-{stamp}"), 1
    while kept_as.exists():
        number += 1
        kept_as = base.with_name(f"{base.name}.damaged-{stamp}-{number}")
    return kept_as


def _move(path: Path, target: Path) -> None:
    # Its log first: should that be all that was moved, `_moved_in_part` tells.
    for ending in (*_SIDE_FILES, ""):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{target}{ending}")


def _moved_in_part(target: Path) -> bool:
    return not target.exists() and any(os.path.exists(f"{target}{ending}") for ending in _SIDE_FILES)


def requeue_unmined(state: StatePaths, ledger: Ledger, quiet_seconds: float) -> int:
    """Enqueue the reflection of every session whose marker says that there is text to mine; how many.

    Due when the session's quiet period ends, so that a live session is not cut into pieces.
    """
    jobs = []
    for session in list_markers(state.harness):
        path = marker_path(state.harness, session)
        marker, event_at = read_marker(path), last_event_at(path)
        if marker is None or event_at is None:
            continue
        with contextlib.suppress(OSError):
            if os.stat(marker.transcript).st_size > marker.offset:
                quiet = 0.0 if has_ended(state.harness, session) else quiet_seconds
                run_at = min(event_at, ledger.now()) + quiet
                jobs.append(
                    NewJob("reflect.session", {"session": session}, f"reflect.session:{session}", run_at=run_at)
                )
    known = [job for job in jobs if job.kind in ledger.policies]
    ledger.enqueue_all(known)
    return len(known)


def backup_of(path: Path) -> Path:
    """Where the daily copy of a database is kept."""
    return path.parent / "backup" / path.name


def back_up(path: Path) -> bool:
    """Copy a sound database to its `backup_of`, complete or not at all; False if there is none or it is damaged.

    A damaged file never takes the place of a good copy.  Raises OSError, QueueUnavailable.
    """
    if not path.exists():
        return False
    with keep_in_place(path):
        return find_damage(path) is None and _copy(path, backup_of(path))


def _copy(path: Path, target: Path) -> bool:
    target.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with (
            contextlib.closing(_open_readonly(path)) as source,
            contextlib.closing(sqlite3.connect(temporary)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = delete")  # One file, whole in itself.
        _sync(temporary)
        os.replace(temporary, target)
        _sync(target.parent)
    except sqlite3.Error as error:
        raise QueueUnavailable(f"cannot copy {path}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return True


def restore_if_damaged(path: Path) -> str | None:
    """Set a broken database aside and put its daily copy in its place; what was done, None if it is sound.

    Of several processes that find it broken one does so, once nobody has it open any more (`keep_in_place`). Raises
    OSError.
    """
    if not path.exists() or find_damage(path) is None:
        return None
    with replacement_lock(path):
        return None if (damage := find_damage(path)) is None else _restore(path, damage)


LOCK_SECONDS = 20.0
"""Longer than any transaction: beyond it whoever holds the lock was stopped, and nobody shall hang with it."""
LOCK_POLL_SECONDS = 0.01


@contextlib.contextmanager
def keep_in_place(path: Path) -> Iterator[None]:
    """Keep the file from being replaced by its copy while it is open: SQLite finds a database's log by its name, so
    whoever still had the old file open would write into the log of the new one. Raises OSError.
    """
    with _lock_beside(path, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def replacement_lock(path: Path) -> Iterator[None]:
    """Hold the lock under which one process at a time replaces a file that nobody has open. Raises OSError."""
    with _lock_beside(path, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def _lock_beside(path: Path, operation: int) -> Iterator[None]:
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(lock, operation | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise TimeoutError(f"another process has had {path.name} open for {LOCK_SECONDS:g} s") from error
                time.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(lock)


def _restore(path: Path, damage: str) -> str:
    kept_as, copy = _name_aside(path), backup_of(path)
    if not copy.exists() or find_damage(copy) is not None:
        _move(path, kept_as)
        return f"{path.name} was damaged ({damage}): it is kept as {kept_as.name}; there is no copy, it starts empty"
    temporary = path.with_name(f".{path.name}.restored")
    temporary.write_bytes(copy.read_bytes())
    temporary.chmod(0o600)
    _sync(temporary)
    for ending in _SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{kept_as}{ending}")
    # Never without a file of this name: who found none would make one, and work in it while it is replaced.
    try:
        os.link(path, kept_as)
    except OSError:  # Some file systems have no links.
        os.rename(path, kept_as)
    os.replace(temporary, path)
    made = datetime.fromtimestamp(copy.stat().st_mtime, UTC)
    return (
        f"{path.name} was damaged ({damage}): it is kept as {kept_as.name}; "
        f"the copy of {made:%Y-%m-%d %H:%M}Z took its place"
    )


# ---- reading what can be read


def _take_over_jobs(ledger: Ledger, source: Path) -> int:
    """Jobs of `source` that the ledger has not; a running one is queued again.  How many."""
    taken = 0
    with ledger.transaction(durable=True) as conn:
        for row in _readable_jobs(source):
            job = dict(zip(queries.SALVAGED_COLUMNS, row, strict=True))
            if not _is_list(job["history"]):
                job["history"] = "[]"
            if job["state"] == "running":
                job["state"] = "queued"
            with contextlib.suppress(sqlite3.IntegrityError):  # Nonsense, or its like is there already.
                taken += conn.execute(queries.SALVAGE_JOB, job).rowcount
    return taken


def _readable_jobs(source: Path) -> Iterator[tuple[object, ...]]:
    """Every job that can be read: from the first on, from the last back, and the live ones by their index."""
    if not source.exists():
        return
    seen: set[object] = set()
    with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(_open_readonly(source)) as conn:
        for query in (queries.SALVAGE_LIVE, queries.SALVAGE_UP, queries.SALVAGE_DOWN):
            with contextlib.suppress(sqlite3.DatabaseError):
                for row in conn.execute(query):
                    if row[0] not in seen and isinstance(row[0], int):
                        seen.add(row[0])
                        yield row


def _restore_pauses(ledger: Ledger, source: Path) -> None:
    """Schedules' last slots and what the user paused, where the ledger has nothing of it."""
    if not source.exists():
        return
    schedules, pauses = [], []
    with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(_open_readonly(source)) as conn:
        schedules = conn.execute(queries.ALL_SCHEDULES).fetchall()
        pauses = conn.execute(queries.ALL_PAUSES).fetchall()
    with ledger.transaction(durable=True) as new:
        new.executemany(queries.RESTORE_SCHEDULE, schedules)
        new.executemany(queries.RESTORE_PAUSE, pauses)


def _is_list(text: object) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), list)
    except ValueError:
        return False


def _open_readonly(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=COPY_BUSY_SECONDS)
    conn.text_factory = lambda data: data.decode("utf-8", "replace")
    return conn


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
