"""Enqueues the slots that are due, and remembers them in the same transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...runtime.errors import UsageError
from ...runtime.killpoint import kill_point
from ...schedules.due import Due, decide, next_slot, slot_key
from ...schedules.table import SCHEDULES, Schedule
from . import queries
from .ledger import Ledger
from .records import NewJob

LOCALTIME = "/etc/localtime"


@dataclass(frozen=True)
class ScheduleStatus:
    """A schedule with its times, for `memory jobs schedule`."""

    schedule: Schedule
    last_run: datetime | None
    """When a job of it started last; None when the ledger knows of none."""
    next_slot: datetime
    paused: bool
    """Whether jobs of its kind are paused."""


class Scheduler:
    """Enqueues the due slots of the schedules whose kind is in `kinds`.

    `tz` None: the machine's time zone, looked up each time, because a laptop may travel while its worker runs.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        kinds: Collection[str],
        tz: tzinfo | None = None,
        schedules: Sequence[Schedule] = SCHEDULES,
    ) -> None:
        self._ledger = ledger
        self._tz = tz
        self._schedules = [schedule for schedule in schedules if schedule.kind in kinds]

    def tick(self) -> int:
        """Enqueue what is due and return the number of jobs. Two workers at once enqueue a slot only once."""
        now, zone = _datetime(self._ledger.now()), self._tz or local_timezone()
        if not self._changes(now, zone):
            return 0
        jobs = []
        with self._ledger.transaction(durable=True) as conn:
            for schedule, due in self._changes(now, zone):  # Another worker may have written meanwhile.
                conn.execute(queries.SET_LAST_SLOT, {"name": schedule.name, "last_slot": due.last_slot.timestamp()})
                key_range = {"first": f"{schedule.name}:", "after": f"{schedule.name};"}  # ';' follows ':'
                if due.slot is None or conn.execute(queries.LIVE_IN_KEY_RANGE, key_range).fetchone() is not None:
                    continue
                key = slot_key(schedule, due.slot)
                jobs.append(NewJob(schedule.kind, {"slot": key}, key))
            self._ledger.enqueue_all(jobs)
            kill_point("schedule-tick")
        return len(jobs)

    def _changes(self, now: datetime, zone: tzinfo) -> list[tuple[Schedule, Due]]:
        """What to store for each schedule, and to enqueue; nothing for those that have no new slot."""
        changes, last_slots = [], dict(self._ledger.read(queries.LAST_SLOTS))
        for schedule in self._schedules:
            last = last_slots.get(schedule.name)
            last_slot = None if last is None else _datetime(last)
            due = decide(schedule, last_slot, now, zone)
            if due.last_slot != last_slot:
                changes.append((schedule, due))
        return changes

    def status(self) -> list[ScheduleStatus]:
        """Return every schedule, in the order of the table."""
        now, zone = _datetime(self._ledger.now()), self._tz or local_timezone()
        last_runs, paused = dict(self._ledger.read(queries.LAST_RUNS)), self._ledger.paused()
        return [
            ScheduleStatus(
                schedule,
                _datetime(last_runs[schedule.name]) if schedule.name in last_runs else None,
                next_slot(schedule, now, zone),
                schedule.kind in paused,
            )
            for schedule in self._schedules
        ]

    def run_now(self, name: str) -> int:
        """Enqueue the schedule's job now and return its id. Raises UsageError for an unknown name."""
        schedule = next((schedule for schedule in self._schedules if schedule.name == name), None)
        if schedule is None:
            names = ", ".join(schedule.name for schedule in self._schedules)
            raise UsageError(f"no schedule {name!r}; there are: {names}")
        key = f"{schedule.name}:by-hand"
        return self._ledger.enqueue(schedule.kind, {"slot": key}, unique_key=key)


def local_timezone(environ: Mapping[str, str] = os.environ, localtime: str = LOCALTIME) -> tzinfo:
    """Find the machine's time zone with its rules; where that is impossible, today's offset.

    Each call looks it up anew and tells the C library, which would otherwise keep the zone it started with.
    """
    time.tzset()
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        if "TZ" in environ:  # As in the C library, it comes before the machine's zone.
            return ZoneInfo(environ["TZ"].removeprefix(":"))
        with open(localtime, "rb") as file:
            return ZoneInfo.from_file(file)
    offset = datetime.now(UTC).astimezone().utcoffset()
    return timezone(offset) if offset is not None else UTC


def _datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
