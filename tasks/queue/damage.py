"""Set a damaged database aside under a dated name, and replace it. A broken file is never deleted here.

queue.db starts empty and is filled again from the spool and the session markers; state.db, which has no other source,
is restored from its daily copy.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...runtime.atomic_file import SIDE_FILES, name_aside, set_aside
from ...runtime.errors import QueueUnavailable
from ...runtime.killpoint import kill_point
from ...runtime.layout import StatePaths
from ...vault.marker import has_ended, last_event_at, list_markers, marker_path, read_marker
from . import queries, schema
from .kinds import POLICIES, KindPolicy
from .ledger import Ledger, NewJob
from .schema import DATABASE_ERRORS, QueueDamaged, Shape, find_damage, is_readable_anew, open_readonly


@dataclass(frozen=True)
class OpenedQueue:
    """A working ledger, and what had to be done for it."""

    ledger: Ledger
    rebuilt: bool
    """The file is new: spool and markers must be read."""
    note: str | None
    """A line for the user, if something was done."""


def open_queue(state: StatePaths, *, policies: Mapping[str, KindPolicy] = POLICIES, busy_seconds: float) -> OpenedQueue:
    """Return the ledger of this state folder; a damaged file is set aside first. The caller must hold the worker's
    lock.

    Raises QueueUnavailable (locked, read-only, disk full) and SchemaTooNew, as Ledger does.
    """
    path = Path(state.queue_db)
    ledger = note = None
    damage = find_damage(path, schema.SHAPE)
    if damage is None and not is_readable_anew(path):  # For a large file, which `find_damage` does not read completely.
        damage = "its newest job can't be read"
    if damage is None:
        try:
            ledger = Ledger(path, policies=policies, busy_seconds=busy_seconds)
        except QueueDamaged as error:
            damage = str(error)
    if ledger is None:
        kept = set_aside(path)
        note = (
            f"queue.db was damaged ({damage}): it is kept as {kept.name}; "
            "the jobs come again from the spool and the session markers"
        )
        kill_point("queue-set-aside")
        ledger = Ledger(path, policies=policies, busy_seconds=busy_seconds)
    rebuilt = not ledger.is_complete()
    if rebuilt:
        _restore_pauses(ledger, backup_of(path))
    return OpenedQueue(ledger, rebuilt, note)


def finish_rebuilding(state: StatePaths, ledger: Ledger, quiet_seconds: float) -> int:
    """Recreate the jobs of unmined sessions, then mark queue.db as complete; return how many jobs.

    If killed, the next start repeats it, which has no further effect.
    """
    made = requeue_unmined(state, ledger, quiet_seconds)
    ledger.mark_complete()
    return made


def set_aside_files(state: StatePaths) -> list[Path]:
    """Return the databases that were set aside as damaged, with their logs."""
    return [*Path(state.root).glob("*.db.damaged-*")]


def requeue_unmined(state: StatePaths, ledger: Ledger, quiet_seconds: float) -> int:
    """Enqueue the reflection of every session whose marker shows unmined text; return how many.

    They are due when the session's quiet period ends, so that a live session is not mined in pieces.
    """
    jobs = []
    for session in list_markers(state.markers):
        path = marker_path(state.markers, session)
        marker, event_at = read_marker(path), last_event_at(path)
        if marker is None or event_at is None:
            continue
        with contextlib.suppress(OSError):
            if os.stat(marker.transcript).st_size > marker.offset:
                quiet = 0.0 if has_ended(state.markers, session) else quiet_seconds
                run_at = min(event_at, ledger.now()) + quiet
                jobs.append(
                    NewJob("reflect.session", {"session": session}, f"reflect.session:{session}", run_at=run_at)
                )
    known = [job for job in jobs if job.kind in ledger.policies]
    ledger.enqueue_all(known)
    return len(known)


def backup_of(path: Path) -> Path:
    """Return the path of a database's daily copy."""
    return path.parent / "backup" / path.name


def back_up(path: Path) -> bool:
    """Copy a sound database to its `backup_of`, atomically; return False if there is none or it is damaged.

    A damaged file never replaces a good copy. Raises OSError, QueueUnavailable.
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
            contextlib.closing(open_readonly(path)) as source,
            contextlib.closing(sqlite3.connect(temporary)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = delete")  # So that the copy is a single file.
        _sync(temporary)
        os.replace(temporary, target)
        _sync(target.parent)
    except DATABASE_ERRORS as error:
        raise QueueUnavailable(f"cannot copy {path}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return True


def restore_if_damaged(path: Path, shape: Shape | None = None) -> str | None:
    """Set a broken database aside and restore its daily copy; return what was done, None if it is sound.

    Only one of several processes does so, when nobody has the file open any more (`keep_in_place`). Raises OSError.
    """
    if not path.exists() or find_damage(path, shape) is None:
        return None
    with replacement_lock(path):
        return None if (damage := find_damage(path, shape)) is None else _restore(path, damage, shape)


LOCK_SECONDS = 20.0
"""Longer than any transaction: a process that holds the lock for longer was stopped, and must not block others."""
LOCK_POLL_SECONDS = 0.01


@contextlib.contextmanager
def keep_in_place(path: Path) -> Iterator[None]:
    """Keep the file from being replaced while it is open. SQLite finds a database's log by its name, so a process with
    the old file open would write into the log of the new one. Raises OSError.
    """
    with _lock_beside(path, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def replacement_lock(path: Path) -> Iterator[None]:
    """Hold the lock for replacing a file that nobody has open, one process at a time. Raises OSError."""
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


def _restore(path: Path, damage: str, shape: Shape | None) -> str:
    kept_as, copy = name_aside(path), backup_of(path)
    if not copy.exists() or find_damage(copy, shape) is not None:
        set_aside(path)
        return f"{path.name} was damaged ({damage}): it is kept as {kept_as.name}; there is no copy, it starts empty"
    temporary = path.with_name(f".{path.name}.restored")
    temporary.write_bytes(copy.read_bytes())
    temporary.chmod(0o600)
    _sync(temporary)
    for ending in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{kept_as}{ending}")
    # A file of this name must always exist: otherwise another process would create one, and lose its work.
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


def _restore_pauses(ledger: Ledger, source: Path) -> None:
    """Restore schedules' last slots and the user's pauses if the ledger has none."""
    schedules, pauses = [], []
    if not source.exists() or find_damage(source, schema.SHAPE) is not None:
        return
    with contextlib.suppress(*DATABASE_ERRORS), contextlib.closing(open_readonly(source)) as conn:
        schedules = conn.execute(queries.ALL_SCHEDULES).fetchall()
        pauses = conn.execute(queries.ALL_PAUSES).fetchall()
    with ledger.transaction(durable=True) as new:
        new.executemany(queries.RESTORE_SCHEDULE, schedules)
        new.executemany(queries.RESTORE_PAUSE, pauses)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
