"""Set a damaged database aside under a dated name, and replace it. A broken file is never deleted here.

queue.db starts empty and is filled again from the spool and the session markers; state.db, which has no other source,
is restored from its daily copy.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from ...runtime.atomic_file import SIDE_FILES, name_aside, replace_file, set_aside, sync_folder
from ...runtime.errors import QueueUnavailable, VaultUnavailable
from ...runtime.killpoint import kill_point
from ...runtime.layout import StatePaths
from ...runtime.lock import hold_lock
from ...vault.marker import has_ended, last_event_at, list_markers, marker_path, read_marker
from . import queries, schema
from .kinds import POLICIES, KindPolicy
from .ledger import Ledger
from .records import NewJob
from .schema import DATABASE_ERRORS, QueueDamaged, Shape, find_damage, open_readonly


def open_queue(
    state: StatePaths, *, policies: Mapping[str, KindPolicy] = POLICIES, busy_seconds: float
) -> tuple[Ledger, str | None]:
    """Return the ledger of this state folder, and a line for the user if a damaged file was set aside for it. The
    caller must hold the worker's lock.

    Raises QueueUnavailable (locked, read-only, disk full) and SchemaTooNew, as Ledger does.
    """
    path = Path(state.queue_db)
    damage = find_damage(path, schema.SHAPE)
    if damage is None:
        try:
            return Ledger(path, policies=policies, busy_seconds=busy_seconds), None
        except QueueDamaged as error:
            damage = str(error)
    kept = set_aside(path)
    kill_point("queue-set-aside")
    note = (
        f"queue.db was damaged ({damage}): it is kept as {kept.name}; "
        "the jobs come again from the spool and the session markers"
    )
    return Ledger(path, policies=policies, busy_seconds=busy_seconds), note


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
    with sole_use(path):
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
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)
    except DATABASE_ERRORS as error:
        raise QueueUnavailable(f"cannot copy {path}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return True


def restore_if_damaged(path: Path, shape: Shape | None = None) -> str | None:
    """Set a broken database aside and restore its daily copy; return what was done, None if it is sound.

    Only one of several processes does so, when nobody has the file open any more (`sole_use`). Raises OSError.
    """
    if not path.exists() or find_damage(path, shape) is None:
        return None
    with sole_use(path):
        return None if (damage := find_damage(path, shape)) is None else _restore(path, damage, shape)


LOCK_SECONDS = 20.0
"""Longer than any transaction: a process that holds the lock for longer was stopped, and must not block others."""


@contextlib.contextmanager
def sole_use(path: Path) -> Iterator[None]:
    """Hold the lock beside the file, so that one process at a time opens or replaces it. SQLite finds a database's log
    by its name, so a process with the old file open would write into the log of the new one. Raises OSError.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(path.with_name(f"{path.name}.lock"), LOCK_SECONDS))
        except VaultUnavailable as error:
            raise TimeoutError(f"another process has had {path.name} open for {LOCK_SECONDS:g} s") from error
        yield


def _restore(path: Path, damage: str, shape: Shape | None) -> str:
    copy = backup_of(path)
    if not copy.exists() or find_damage(copy, shape) is not None:
        kept_as = set_aside(path)
        return f"{path.name} was damaged ({damage}): it is kept as {kept_as.name}; there is no copy, it starts empty"
    kept_as = name_aside(path)
    temporary = path.with_name(f".{path.name}.restored.tmp")
    replace_file(temporary, copy.read_bytes())  # Before anything is moved: the disk may be full.
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


def restore_pauses(state: StatePaths, ledger: Ledger) -> None:
    """Restore schedules' last slots and the user's pauses from the daily copy, if the ledger has none."""
    source = backup_of(Path(state.queue_db))
    if not source.exists() or find_damage(source, schema.SHAPE) is not None:
        return
    schedules, pauses = [], []
    with contextlib.suppress(*DATABASE_ERRORS), contextlib.closing(open_readonly(source)) as conn:
        schedules = conn.execute(queries.LAST_SLOTS).fetchall()
        pauses = conn.execute(queries.ALL_PAUSES).fetchall()
    with ledger.transaction(durable=True) as new:
        new.executemany(queries.RESTORE_SCHEDULE, schedules)
        new.executemany(queries.RESTORE_PAUSE, pauses)
