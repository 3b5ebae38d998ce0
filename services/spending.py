"""Spending caps that hold through crashes: an amount is reserved in state.db before it is spent.

A reservation that was never settled, because its process died, counts in full: neither a retry nor a restart gets the
same budget twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from sqlite3 import Connection
from typing import Literal, TypeAlias

from ..runtime.days import local_day
from .state_db import state_transaction

Unit = Literal["tokens", "fetches", "seconds"]


@dataclass(frozen=True)
class Cap:
    """A limit of `limit` units: per subject over all time, or per day over all subjects of a purpose."""

    unit: Unit
    limit: int
    per: Literal["subject", "day"]


class BudgetRefused(Exception):
    """The amount does not fit under a cap. Nothing was reserved."""

    def __init__(self, cap: Cap, used: int, wanted: int) -> None:
        super().__init__(f"{cap.limit} {cap.unit} per {cap.per} allowed, {used} used, {wanted} more wanted")
        self.cap = cap


Reservation: TypeAlias = Mapping[Unit, int]
"""Reserved amounts: their row ids in state.db, by unit."""


@dataclass(frozen=True)
class SpendingSum:
    """The sums of one purpose and unit over a span of days."""

    purpose: str
    unit: str
    spent: int
    """Settled amounts, and the whole of reservations that were never settled."""


@dataclass(frozen=True)
class SpendingReport:
    """The spending of today and of the last seven days."""

    today: tuple[SpendingSum, ...]
    week: tuple[SpendingSum, ...]


class SpendingBook:
    """The spending for one purpose ('mining', 'research', 'adaptation') in state.db."""

    def __init__(self, path: Path | str, purpose: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._purpose = purpose
        self._clock = clock

    def reserve(self, subject: str, amounts: Mapping[Unit, int], caps: Sequence[Cap] = ()) -> Reservation:
        """Set the amounts aside, durably, or raise BudgetRefused (all of them or none). Call this before spending."""
        now = self._clock()
        day = _day(now)
        rows: dict[Unit, int] = {}
        with state_transaction(self._path) as conn:
            for cap in caps:
                wanted = amounts.get(cap.unit, 0)
                used = self._used(conn, subject, cap, day)
                if wanted and used + wanted > cap.limit:
                    raise BudgetRefused(cap, used, wanted)
            for unit, amount in amounts.items():
                cursor = conn.execute(
                    "INSERT INTO spending(purpose, subject, unit, reserved, day, at) VALUES (?, ?, ?, ?, ?, ?)",
                    (self._purpose, subject, unit, amount, day, now),
                )
                rows[unit] = int(cursor.lastrowid or 0)
        return rows

    def settle(self, reservation: Reservation, spent: Mapping[Unit, int]) -> None:
        """Record what was really spent; units that are not named count as 0."""
        with state_transaction(self._path) as conn:
            for unit, row in reservation.items():
                conn.execute("UPDATE spending SET spent = ? WHERE id = ?", (spent.get(unit, 0), row))

    def left(self, subject: str, cap: Cap) -> int:
        """Return how much fits under the cap now, at least 0."""
        with state_transaction(self._path) as conn:
            return max(0, cap.limit - self._used(conn, subject, cap, _day(self._clock())))

    def _used(self, conn: Connection, subject: str, cap: Cap, day: str) -> int:
        column, value = ("subject", subject) if cap.per == "subject" else ("day", day)
        (used,) = conn.execute(
            "SELECT coalesce(sum(coalesce(spent, reserved)), 0) FROM spending"
            f" WHERE purpose = ? AND unit = ? AND {column} = ?",
            (self._purpose, cap.unit, value),
        ).fetchone()
        return int(used)


def spent_since(path: Path | str, since: str) -> tuple[SpendingSum, ...]:
    """Return the sums of every purpose and unit since that local date (YYYY-MM-DD)."""
    if not Path(path).exists():
        return ()
    with state_transaction(path) as conn:
        rows = conn.execute(
            "SELECT purpose, unit, sum(coalesce(spent, reserved)) FROM spending"
            " WHERE day >= ? GROUP BY purpose, unit ORDER BY purpose, unit",
            (since,),
        )
        return tuple(SpendingSum(*row) for row in rows)


def spending_report(path: Path | str, now: float) -> SpendingReport:
    """Return the spending of today and of the last seven days, for `memory health`."""
    today = _day(now)
    week = (datetime.fromisoformat(today).date() - timedelta(days=6)).isoformat()
    return SpendingReport(today=spent_since(path, today), week=spent_since(path, week))


def _day(now: float) -> str:
    return local_day(now).isoformat()
