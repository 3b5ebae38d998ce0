"""Enqueues the slots that are due, and remembers them in the same transaction."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...runtime.errors import UsageError
from ...runtime.killpoint import kill_point
from ...schedules.due import Due, decide, jitter, next_slot, slot_key
from ...schedules.table import SCHEDULES, Schedule
from . import queries
from .ledger import Ledger, NewJob

LOCALTIME = "/etc/localtime"


@dataclass(frozen=True)
class ScheduleStatus:
    """A schedule with its times, for `memory jobs schedule`."""

    schedule: Schedule
    last_run: datetime | None
    """When a job of it started last; None when the ledger knows of none."""
    next_slot: datetime
    paused: bool


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
        machine: str | None = None,
    ) -> None:
        self._ledger = ledger
        self._tz = tz
        self._schedules = [schedule for schedule in schedules if schedule.kind in kinds]
        self._machine = platform.node() if machine is None else machine

    def tick(self) -> int:
        """Enqueue what is due and return the number of jobs. Two workers at once enqueue a slot only once."""
        now, zone = _datetime(self._ledger.now()), self._tz or local_timezone()
        if not self._changes(now, zone):
            return 0
        jobs = []
        with self._ledger.transaction(durable=True) as conn:
            for schedule, due in self._changes(now, zone):  # Another worker may have written meanwhile.
                self._remember(schedule, due.last_slot)
                key_range = {"first": f"{schedule.name}:", "after": f"{schedule.name};"}  # ';' follows ':'
                if due.slot is None or conn.execute(queries.LIVE_IN_KEY_RANGE, key_range).fetchone() is not None:
                    continue
                key = slot_key(schedule, due.slot)
                start = max(due.slot + timedelta(seconds=jitter(schedule, due.slot, self._machine)), now)
                jobs.append(NewJob(schedule.kind, {"slot": key}, key, run_at=start.timestamp()))
            self._ledger.enqueue_all(jobs)
            kill_point("schedule-tick")
        return len(jobs)

    def _changes(self, now: datetime, zone: tzinfo) -> list[tuple[Schedule, Due]]:
        """What to store for each schedule, and to enqueue; nothing for those that are paused or have no new slot."""
        changes, last_slots = [], self._last_slots()
        for schedule in self._schedules:
            last, paused = last_slots.get(schedule.name, (None, False))
            last_slot = None if last is None else _datetime(last)
            due = decide(schedule, last_slot, now, zone)
            if not paused and due.last_slot != last_slot:
                changes.append((schedule, due))
        return changes

    def _remember(self, schedule: Schedule, slot: datetime) -> None:
        with self._ledger.transaction() as conn:
            conn.execute(queries.SET_LAST_SLOT, {"name": schedule.name, "last_slot": slot.timestamp()})

    def _last_slots(self) -> dict[str, tuple[float, bool]]:
        rows = self._ledger.read(queries.SCHEDULE_STATES)
        return {name: (last, paused_at is not None) for name, last, paused_at in rows}

    def status(self) -> list[ScheduleStatus]:
        """Return every schedule, in the order of the table."""
        last_slots, now = self._last_slots(), _datetime(self._ledger.now())
        zone = self._tz or local_timezone()
        last_runs = dict(self._ledger.read(queries.LAST_RUNS))
        return [
            ScheduleStatus(
                schedule,
                _datetime(last_runs[schedule.name]) if schedule.name in last_runs else None,
                next_slot(schedule, now, zone),
                last_slots.get(schedule.name, (0.0, False))[1],
            )
            for schedule in self._schedules
        ]

    def run_now(self, name: str) -> int:
        """Enqueue the schedule's job now and return its id. Raises UsageError for an unknown name."""
        schedule = self._named(name)
        key = f"{schedule.name}:by-hand"
        return self._ledger.enqueue(schedule.kind, {"slot": key}, unique_key=key)

    def pause(self, name: str, *, paused: bool = True) -> None:
        """Pause or resume a schedule; a slot that passed meanwhile runs on resuming. Raises UsageError."""
        schedule = self._named(name)
        with self._ledger.transaction(durable=True) as conn:
            now = self._ledger.now()
            if schedule.name not in self._last_slots():
                first = decide(schedule, None, _datetime(now), self._tz or local_timezone())
                self._remember(schedule, first.last_slot)
            parameters = {"name": schedule.name, "paused_at": now if paused else None}
            conn.execute(queries.PAUSE_SCHEDULE, parameters)

    def _named(self, name: str) -> Schedule:
        for schedule in self._schedules:
            if schedule.name == name:
                return schedule
        names = ", ".join(schedule.name for schedule in self._schedules)
        raise UsageError(f"no schedule {name!r}; there are: {names}")


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
