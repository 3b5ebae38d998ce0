"""The side of the machine at home: what of its old sessions is with others, and what came back.

A transcript's share goes through three states, each a row in state.db: *away* (its words lie in the shared database),
*picked* (what came back names places; the transcript is mined there) and *at home* (nobody else will look at it: it is
mined as if nothing were shared). The row goes once the transcript is mined. Nothing here ends a job: the local job
waits, and is the only one that writes what was mined.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ...sources.transcripts.corpus import Transcript, claude_cleanup_days
from ...vault.errors import QueueUnavailable
from ...vault.killpoint import kill_point
from ...vault.project import project_of
from ...vault.settings import Settings
from ...vault.slug import slugify
from ..child_job import run_json_child
from ..corpus.store import SHARED
from ..cursors import Cursors
from ..mining import MiningRequest
from ..queue.job import Retry, RunningJob
from ..shared_queue import is_shared, machine_name, open_shared
from .packing import MAX_CONTENT_BYTES, Packed, PackingRequest, bundle, key_of, packed_from

if TYPE_CHECKING:
    from ..postgres.content import SharedContent
    from ..postgres.ledger import PostgresLedger

log = logging.getLogger(__name__)

CHILD = "memoryvault.tasks.sharing.packing"
PACKING_SECONDS = 800.0
MAX_OUTPUT_BYTES = MAX_CONTENT_BYTES + (16 << 20)
SOONEST_LOOK_SECONDS = 15.0
LATEST_LOOK_SECONDS = 900.0
"""How long a job waits before it asks by itself what has become of its share; a result makes it due at once."""
UNREACHABLE_SECONDS = 60.0
"""So long a database that could not be reached is not asked again, whatever for."""
GIVEN_UP_SECONDS = 3600.0
"""A database that could not be reached for so long is waited for no more: the whole backfill is settled together."""
DAYS_TO_SPARE = 2.0
"""Beside the waiting time: what its host deletes sooner is mined here at once."""
EVERYTHING = "*"
OUTAGE = "corpus.shared.outage"
_DATABASE = "database"


@dataclass(frozen=True)
class Share:
    """What of one transcript other machines were asked."""

    identity: str
    key: str
    """Of the content; '' when it is at home."""
    place: int
    """Of the reading among those of the content."""
    readings: int
    """In the content."""
    start: int
    end: int
    """Of the bytes that were packed."""
    words: int
    since: float
    """Unix seconds of this machine's clock."""
    kept_back: tuple[int, ...] = ()
    picked: tuple[int, ...] | None = None


class Shares:
    """The shares of this machine, in state.db."""

    def __init__(self, path: str) -> None:
        self._cursors = Cursors(path, SHARED)

    def get(self, identity: str) -> Share | None:
        """Of one transcript."""
        value = self._cursors.get(identity)
        return None if value is None else _share(identity, value)

    def all(self) -> list[Share]:
        """Of every transcript."""
        return [_share(identity, value) for identity, value in self._cursors.all().items()]

    def of_key(self, key: str) -> list[Share]:
        """Those whose readings are in this content, in their order there."""
        found = self._cursors.having("key", key)
        return sorted((_share(*item) for item in found.items()), key=lambda share: share.place)

    def put(self, shares: Iterable[Share]) -> None:
        """All of them or none, durably."""
        self._cursors.set_all({share.identity: {**asdict(share), "identity": None} for share in shares})

    def forget(self, identity: str) -> None:
        """It is mined, or never went away."""
        self._cursors.forget(identity)


class Outage:
    """Since when the shared database could not be reached, in state.db: a worker's restart does not end it."""

    def __init__(self, path: str) -> None:
        self._cursors = Cursors(path, OUTAGE)
        self._since: float | None = None
        self._is_known = False

    def since(self) -> float | None:
        """Unix seconds of the first attempt that failed; None if the last one did not."""
        if not self._is_known:
            value = self._cursors.get(_DATABASE)
            self._since, self._is_known = None if value is None else float(value["since"]), True
        return self._since

    def began(self, now: float) -> None:
        """An attempt has failed."""
        since = self.since()
        if since is None or since > now:  # Later than now: the clock was set back.
            self._cursors.set(_DATABASE, {"since": now})
            self._since = now

    def over(self) -> None:
        """An attempt has not failed."""
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


# ---- where a transcript stands


@dataclass(frozen=True)
class AtHome:
    """Mine it now, by this request."""

    request: MiningRequest


@dataclass(frozen=True)
class MayLeave:
    """It may be offered to others; otherwise it is mined here."""


@dataclass(frozen=True)
class Away:
    """Others look at it; ask again after so many seconds."""

    seconds: float


class Home:
    """Decides for each transcript whether it is mined here now. Safe to use from one thread at a time."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._shares = Shares(settings.state.state_db)
        self._outage = Outage(settings.state.state_db)
        self._unreachable_until = 0.0
        self._asked: dict[str, float] = {}
        """When the database was asked about a content: what is true of one reading is true of all in it."""
        self.machine = machine_name(settings)

    @property
    def is_sharing(self) -> bool:
        """Is there a queue to share with, and work that can be shared? A model is asked from here."""
        return is_shared(self._settings) and self._settings.reflection.miner == "local"

    @property
    def projects(self) -> frozenset[str] | None:
        """Slugs of the projects whose words may leave; None: all."""
        names = [name.strip() for name in self._settings.queue.share.split(",") if name.strip()]
        return None if EVERYTHING in names else frozenset(map(slugify, names))

    def may_leave(self, transcript: Transcript) -> bool:
        """Has the user consented, and is there time to wait for an answer?"""
        projects = self.projects
        if not self.is_sharing or projects == frozenset():
            return False
        if projects is not None and not (transcript.cwd and project_of(transcript.cwd) in projects):
            return False
        if transcript.host != "claude":
            return True
        days = claude_cleanup_days(self._settings.hosts.claude_config_dir) - DAYS_TO_SPARE
        return self._clock() - transcript.modified + self._wait_seconds < days * 86_400.0 or self._is_elsewhere(
            transcript
        )

    def away(self) -> int:
        """How many transcripts others look at now."""
        return sum(bool(share.key) and share.picked is None for share in self._shares.all())

    def _is_elsewhere(self, transcript: Transcript) -> bool:
        """In a folder of the user's own, where no host deletes anything?"""
        root = str(self._settings.transcript_roots[0]).rstrip("/") + "/"
        return not str(transcript.path).startswith(root)

    @property
    def _wait_seconds(self) -> float:
        return self._settings.queue.wait_hours * 3600.0

    def stand(self, transcript: Transcript, request: MiningRequest, *, ask: bool = False) -> AtHome | MayLeave | Away:
        """Where it stands; with `ask` the database is asked what has become of what is away."""
        if not self.is_sharing:
            return AtHome(request)
        share = self._shares.get(transcript.identity)
        if share is None or share.start != request.mined_until or share.end > transcript.size:
            return MayLeave() if self._may_ask() and self.may_leave(transcript) else AtHome(request)
        if share.picked is not None:
            return AtHome(replace(request, picked=(*share.picked, *share.kept_back), picked_until=share.end))
        age = self._clock() - share.since
        if not share.key:
            return AtHome(request)
        if not 0 <= age < self._wait_seconds or not self._is_allowed(transcript):
            self.take_home(share)
            return AtHome(request)
        if ask and age >= SOONEST_LOOK_SECONDS and not self._is_on_its_way(share):
            # Lost, failed or out of reach: not offered anew, or one that loses everything would be waited for for ever.
            self.take_home(share)
            return AtHome(request)
        return Away(min(max(age, SOONEST_LOOK_SECONDS), LATEST_LOOK_SECONDS, self._wait_seconds - age + 1.0))

    def _is_allowed(self, transcript: Transcript) -> bool:
        projects = self.projects
        return projects is None or project_of(transcript.cwd) in projects

    def _is_on_its_way(self, share: Share) -> bool:
        now = self._clock()
        if 0 <= now - self._asked.get(share.key, 0.0) < SOONEST_LOOK_SECONDS:
            return True
        if not self._may_ask():
            return not self._is_given_up()
        self._asked = {key: at for key, at in self._asked.items() if 0 <= now - at < SOONEST_LOOK_SECONDS}
        self._asked[share.key] = now
        try:
            with open_shared(self._settings) as ledger:
                standing = content_of(ledger).standing(share.key, self.machine)
        except QueueUnavailable as error:
            log.info("what was shared is waited for: %s", error)
            self._not_reached()
            return not self._is_given_up()
        self._outage.over()
        return standing == "waiting"

    def _may_ask(self) -> bool:
        """Has the database not failed just now? Each attempt may take as long as a server that says nothing."""
        return not 0 < self._unreachable_until - self._clock() <= UNREACHABLE_SECONDS

    def _not_reached(self) -> None:
        now = self._clock()
        self._unreachable_until = now + UNREACHABLE_SECONDS
        self._outage.began(now)

    def _is_given_up(self) -> bool:
        since = self._outage.since()
        return since is not None and self._clock() - since >= GIVEN_UP_SECONDS

    def take_home(self, share: Share) -> None:
        """Nobody else is waited for, for none of the content's readings. What comes back yet is dropped."""
        together = self._shares.of_key(share.key)
        log.warning("what was shared of %d transcripts has not come back: they are mined here", len(together))
        self._shares.put(replace(each, key="") for each in together)
        if not self._may_ask():
            return  # The worker's upkeep withdraws what no share waits for, once it can.
        try:
            with open_shared(self._settings) as ledger:
                content_of(ledger).withdraw(share.key, self.machine)
        except QueueUnavailable as error:
            log.info("it stays in the shared database until that is reached again: %s", error)
            self._not_reached()

    def forget(self, identity: str) -> None:
        """To be called once the transcript is mined, after that was put down."""
        if self.is_sharing:
            self._shares.forget(identity)

    # ---- sending

    def send(self, job: RunningJob, readings: Sequence[tuple[Transcript, MiningRequest]]) -> bool:
        """Offer the first of these to others, and with it those after it that fit; False if it has to be mined here.

        Raises JobLost, Retry.
        """
        try:
            with open_shared(self._settings) as ledger:
                shared = content_of(ledger)
                packed = self._packed(job, [request for _, request in readings])
                going = [
                    (transcript.identity, request.mined_until, each)
                    for (transcript, request), each in zip(readings, packed, strict=True)
                    if each is not None and each.words
                ]
                first = readings[0][0].identity
                if not going or going[0][0] != first:
                    self._shares.put([_at_home(first, readings[0][1].mined_until)])
                    return False
                content = bundle([each for _, _, each in going])
                key = key_of(content, self.machine)
                job.check_owned()
                now = self._clock()
                # First, so that whatever comes back finds it; what was never sent is found to be gone.
                self._shares.put(
                    Share(identity, key, place, len(going), start, each.end, each.words, now, each.kept_back)
                    for place, (identity, start, each) in enumerate(going)
                )
                kill_point("share-recorded")
                try:
                    shared.put(key, self.machine, content)
                except QueueUnavailable:
                    for identity, _, _ in going:
                        self._shares.forget(identity)
                    raise
                self._outage.over()
                kill_point("share-put")
        except QueueUnavailable as error:
            log.warning("nothing is shared for a while: %s", error)
            self._not_reached()
            return False
        return True

    def _packed(self, job: RunningJob, requests: Sequence[MiningRequest]) -> list[Packed | None]:
        projects = self.projects
        asked = [
            asdict(
                PackingRequest(
                    each.transcript,
                    each.host,
                    each.mined_until,
                    each.context_offset,
                    None if projects is None else sorted(projects),
                )
            )
            for each in requests
        ]
        packed = run_json_child(
            job,
            self._settings,
            CHILD,
            asked,
            parse=packed_from,
            deadline_seconds=PACKING_SECONDS,
            verb="packing",
            answer="readings",
            max_stdout_bytes=MAX_OUTPUT_BYTES,
        )
        if len(packed) != len(requests):
            raise Retry(f"packing printed {len(packed)} answers to {len(requests)} requests")
        return packed


def _at_home(identity: str, start: int) -> Share:
    return Share(identity, "", 0, 0, start, start, 0, 0.0)


def content_of(ledger: PostgresLedger) -> SharedContent:
    """psycopg is an extra: what needs it is imported once a database is open."""
    from ..postgres.content import SharedContent

    return SharedContent(ledger)
