"""What machines hand each other beside jobs: contents to be judged and what came of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...runtime.days import SECONDS_PER_DAY
from ..queue.kinds import Json
from ..queue.ledger import NewJob
from ..sharing.judging import MAX_OUTCOME_BYTES
from ..sharing.packing import MAX_CONTENT_BYTES
from .ledger import PostgresLedger
from .statements import translated

MINE = "share.mine"
RESULT = "share.result"
KEPT_SECONDS = 31 * SECONDS_PER_DAY
"""Longer than any machine waits (queue.wait_hours): what is older is of a machine that never came back."""

_PUT = translated("""
    INSERT INTO content (key, home, data, created_at) VALUES (:key, :home, :data, :now)
    ON CONFLICT DO NOTHING RETURNING key
""")
_FETCH = translated("""
    SELECT data FROM content WHERE key = :key AND home = :home AND octet_length(data) BETWEEN 1 AND :most
""")
_HELD = translated("SELECT key FROM content WHERE home = :home AND created_at < :before ORDER BY created_at")
_COUNT = translated("SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM content WHERE home = :home")
# Nobody reads it again: the words go with the first answer. That locks the row, so that it is not withdrawn meanwhile.
_STANDS = translated("UPDATE content SET data = '' WHERE key = :key AND home = :home")
_ANSWER = translated("""
    INSERT INTO outcome (key, data, worker, created_at) VALUES (:key, :data, :worker, :now)
    ON CONFLICT DO NOTHING
""")
_OUTCOME = translated("""
    SELECT outcome.data FROM outcome JOIN content USING (key)
    WHERE key = :key AND content.home = :home AND octet_length(outcome.data) <= :most
""")
_STANDING = translated("""
    SELECT (SELECT count(*) FROM content WHERE key = :key AND home = :home),
           (SELECT count(*) FROM outcome WHERE key = :key),
           (SELECT state FROM job WHERE unique_key = :mine ORDER BY id DESC LIMIT 1),
           (SELECT state FROM job WHERE unique_key = :result ORDER BY id DESC LIMIT 1)
""")
_WITHDRAW = translated("DELETE FROM content WHERE key = :key AND home = :home")
_DROP_OLD = translated("DELETE FROM content WHERE created_at < :before OR (home = :home AND created_at < :own_before)")

Standing = Literal["waiting", "gone", "failed"]
"""Of a content: it or its outcome is on its way; the database does not have it; nobody will mine it any more."""


@dataclass(frozen=True)
class Held:
    """What of one machine lies in the database."""

    contents: int
    bytes: int


class SharedContent:
    """Contents and outcomes over the connection of a ledger. Every method raises QueueUnavailable."""

    def __init__(self, ledger: PostgresLedger) -> None:
        self._ledger = ledger

    def put(self, key: str, home: str, data: bytes) -> bool:
        """Put a content there and ask for it to be judged, both or neither; False if it is there already."""
        args: Mapping[str, Json] = {"content": key, "home": home}
        with self._ledger.transaction(durable=True) as conn:
            parameters = {"key": key, "home": home, "data": data, "now": self._ledger.now()}
            if conn.execute(_PUT, parameters).fetchone() is None:
                return False
            self._ledger.enqueue_all([NewJob(MINE, args, f"{MINE}:{key}")])
        return True

    def fetch(self, key: str, home: str) -> bytes | None:
        """None once it was answered or withdrawn, and for one that is larger than any of ours."""
        rows = self._ledger.read(_FETCH, {"key": key, "home": home, "most": MAX_CONTENT_BYTES})
        return bytes(rows[0][0]) if rows else None

    def answer(self, key: str, home: str, data: bytes, worker: str) -> bool:
        """Put the outcome there and tell the machine at home, both or neither; False if nobody waits for it."""
        args: Mapping[str, Json] = {"to": home, "content": key}
        with self._ledger.transaction(durable=True) as conn:
            if conn.execute(_STANDS, {"key": key, "home": home}).rowcount != 1:
                return False
            parameters = {"key": key, "data": data, "worker": worker, "now": self._ledger.now()}
            if conn.execute(_ANSWER, parameters).rowcount == 1:  # RETURNING would read what is not for this machine.
                self._ledger.enqueue_all([NewJob(RESULT, args, f"{RESULT}:{key}")])
        return True

    def outcome(self, key: str, home: str) -> bytes | None:
        """None where there is none, or no longer, and for one that is larger than any of ours."""
        rows = self._ledger.read(_OUTCOME, {"key": key, "home": home, "most": MAX_OUTCOME_BYTES})
        return bytes(rows[0][0]) if rows else None

    def standing(self, key: str, home: str) -> Standing:
        """What has become of a content."""
        parameters = {"key": key, "home": home, "mine": f"{MINE}:{key}", "result": f"{RESULT}:{key}"}
        ((here, answered, mine, result),) = self._ledger.read(_STANDING, parameters)
        if not here:
            return "gone"
        state = result if answered else mine
        return "waiting" if state in ("queued", "running") else "failed"

    def withdraw(self, key: str, home: str) -> bool:
        """Delete a content with its outcome. A job that still asks for it finds nothing to do.

        False when nothing was deleted: it is gone, or this login is not the one that put it there.
        """
        with self._ledger.transaction(durable=True) as conn:
            return conn.execute(_WITHDRAW, {"key": key, "home": home}).rowcount > 0

    def keys(self, home: str, *, older_than_seconds: float | None = None) -> list[str]:
        """What of this machine lies there, or what of it for longer than that; oldest first."""
        before = math.inf if older_than_seconds is None else self._ledger.now() - older_than_seconds
        return [row[0] for row in self._ledger.read(_HELD, {"home": home, "before": before})]

    def held(self, home: str) -> Held:
        """How much of this machine lies there."""
        ((contents, size),) = self._ledger.read(_COUNT, {"home": home})
        return Held(int(contents), int(size))

    def drop_old(self, home: str, wait_seconds: float) -> int:
        """Delete what nobody waits for any more; how many contents."""
        with self._ledger.transaction() as conn:
            now = self._ledger.now()
            parameters = {"home": home, "before": now - KEPT_SECONDS, "own_before": now - wait_seconds}
            return conn.execute(_DROP_OLD, parameters).rowcount
