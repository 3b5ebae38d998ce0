"""What this machine has offered to other machines, in state.db, and since when their database is out of reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...services.corpus.store import SHARED
from ...services.cursors import Cursors

if TYPE_CHECKING:
    from ..postgres.content import SharedContent
    from ..postgres.ledger import PostgresLedger

OUTAGE = "corpus.shared.outage"
_DATABASE = "database"


@dataclass(frozen=True)
class Share:
    """The reading of one transcript that other machines were asked to judge."""

    identity: str
    """Identity of the transcript."""
    key: str
    """Key of the content that the reading is in; '' once the transcript is to be mined locally."""
    place: int
    """Position of the reading in the content, from 0."""
    readings: int
    """Number of readings in the content."""
    start: int
    """Byte offset in the transcript of the first packed byte."""
    end: int
    """Byte offset behind the last packed byte."""
    words: int
    """Number of messages in the reading."""
    since: float
    """When it was offered, unix seconds of this machine's clock."""
    kept_back: tuple[int, ...] = ()
    """Offsets of the messages that did not leave."""
    picked: tuple[int, ...] | None = None
    """Offsets of the messages that another machine picked; None before its result."""

    @property
    def is_awaited(self) -> bool:
        """Whether a result is still to come."""
        return bool(self.key) and self.picked is None


class ShareStore:
    """The shares of this machine, in state.db."""

    def __init__(self, path: str) -> None:
        self._cursors = Cursors(path, SHARED)

    def get(self, identity: str) -> Share | None:
        """Load the share of one transcript."""
        value = self._cursors.get(identity)
        return None if value is None else _share(identity, value)

    def all(self) -> list[Share]:
        """Load the shares of all transcripts."""
        return [_share(identity, value) for identity, value in self._cursors.all().items()]

    def of_key(self, key: str) -> list[Share]:
        """Load the shares whose readings are in this content, in their order there."""
        rows = self._cursors.having("key", key)
        return sorted((_share(*row) for row in rows.items()), key=lambda share: share.place)

    def put(self, shares: Iterable[Share]) -> None:
        """Store all of them or none, durably."""
        self._cursors.set_all({share.identity: {**asdict(share), "identity": None} for share in shares})

    def forget(self, identity: str) -> None:
        """Delete the share of a transcript that is mined, or was never offered."""
        self._cursors.forget(identity)


class Outage:
    """Since when the shared database is out of reach, in state.db, so that a restart of the worker does not end it."""

    def __init__(self, path: str) -> None:
        self._cursors = Cursors(path, OUTAGE)
        self._since: float | None = None
        self._is_loaded = False

    def since(self) -> float | None:
        """When the first failed attempt was, unix seconds; None if the last attempt succeeded."""
        if not self._is_loaded:
            value = self._cursors.get(_DATABASE)
            self._since, self._is_loaded = None if value is None else float(value["since"]), True
        return self._since

    def record_failure(self, now: float) -> None:
        """Note a failed attempt; only the first of a row counts."""
        since = self.since()
        if since is None or since > now:  # Later than now: the clock was set back.
            self._cursors.set(_DATABASE, {"since": now})
            self._since = now

    def record_success(self) -> None:
        """Note that an attempt succeeded."""
        if self.since() is not None:
            self._cursors.forget(_DATABASE)
            self._since = None


def _share(identity: str, value: Mapping[str, Any]) -> Share:
    picked = value["picked"]
    fields = {
        **value,
        "identity": identity,
        "kept_back": tuple(value["kept_back"]),
        "picked": None if picked is None else tuple(picked),
    }
    return Share(**fields)


def content_of(ledger: PostgresLedger) -> SharedContent:
    """The contents in the database of this ledger. psycopg is an extra, so it is imported only once one is open."""
    from ..postgres.content import SharedContent

    return SharedContent(ledger)
