"""Offering old sessions to other machines, from the machine whose sessions they are.

A share of a transcript is in one of three states, each a row in state.db: *awaited* (its words are in the shared
database), *picked* (the result names messages, and the transcript is mined there only) and *local* (it is mined as if
nothing were shared). The row is deleted once the transcript is mined. Nothing here ends a job: the local job waits, and
is the only one that writes what was mined.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from ...runtime.errors import QueueUnavailable
from ...runtime.killpoint import kill_point
from ...runtime.settings import Settings
from ...runtime.slug import slugify
from ...services.mining import MiningRequest
from ...sources.transcripts.corpus import Transcript, claude_cleanup_days
from ...vault.project import project_of
from ..queue.child_job import run_json_child
from ..queue.job import Retry, RunningJob
from ..shared_queue import is_shared, machine_name, open_shared
from .packing import MAX_CONTENT_BYTES, Packed, PackingRequest, bundle, key_of, packed_from
from .shares import Outage, Share, ShareStore, content_of

log = logging.getLogger(__name__)

CHILD = "memoryvault.tasks.sharing.packing"
PACKING_SECONDS = 800.0
MAX_OUTPUT_BYTES = MAX_CONTENT_BYTES + (16 << 20)
MIN_POLL_SECONDS = 15.0
MAX_POLL_SECONDS = 900.0
"""Shortest and longest time until a job asks what has become of its share; a result makes the job due at once."""
UNREACHABLE_SECONDS = 60.0
"""A database that could not be reached is not asked again for so long, whatever for."""
GIVE_UP_SECONDS = 3600.0
"""Once a database has been out of reach for so long no result is waited for: a backfill is settled as a whole."""
DAYS_TO_SPARE = 2.0
"""A transcript that its host deletes within these days after the waiting time is mined here without waiting."""
EVERYTHING = "*"


@dataclass(frozen=True)
class MineLocally:
    """Mine the transcript now, by this request."""

    request: MiningRequest


@dataclass(frozen=True)
class Shareable:
    """The transcript may be offered to other machines; otherwise mine it here."""


@dataclass(frozen=True)
class Waiting:
    """Other machines judge the transcript; ask again after so many seconds."""

    seconds: float


Placement = MineLocally | Shareable | Waiting
"""Where a transcript is mined."""


class ShareOrigin:
    """Offers this machine's transcripts and resolves where each is mined. For one thread at a time."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._shares = ShareStore(settings.state.state_db)
        self._outage = Outage(settings.state.state_db)
        self._unreachable_until = 0.0
        self._polled_at: dict[str, float] = {}
        """When the database was last asked about a content: its answer holds for all readings in it."""
        self.machine = machine_name(settings)

    @property
    def is_sharing(self) -> bool:
        """Whether there is a queue to share with, and work to share: a model is asked from this machine only."""
        return is_shared(self._settings) and self._settings.reflection.miner == "local"

    @property
    def projects(self) -> frozenset[str] | None:
        """Slugs of the projects whose words may leave this machine; None: all."""
        names = [name.strip() for name in self._settings.queue.share.split(",") if name.strip()]
        return None if EVERYTHING in names else frozenset(map(slugify, names))

    def may_leave(self, transcript: Transcript) -> bool:
        """Whether the user has consented, and there is time to wait for a result."""
        projects = self.projects
        if not self.is_sharing or projects == frozenset():
            return False
        if projects is not None and not (transcript.cwd and project_of(transcript.cwd) in projects):
            return False
        if transcript.host != "claude":
            return True
        days = claude_cleanup_days(self._settings.hosts.claude_config_dir) - DAYS_TO_SPARE
        has_time = self._clock() - transcript.modified + self._wait_seconds < days * 86_400.0
        return has_time or self._is_outside_host_folder(transcript)

    def awaited_count(self) -> int:
        """How many transcripts other machines are judging."""
        return sum(share.is_awaited for share in self._shares.all())

    def _is_outside_host_folder(self, transcript: Transcript) -> bool:
        """Whether it is in a folder of the user's own, where no host deletes anything."""
        root = str(self._settings.session_folders["claude"]).rstrip("/") + "/"
        return not str(transcript.path).startswith(root)

    @property
    def _wait_seconds(self) -> float:
        return self._settings.queue.wait_hours * 3600.0

    def resolve_placement(self, transcript: Transcript, request: MiningRequest, *, poll: bool = False) -> Placement:
        """Decide where the transcript is mined, and withdraw a share that is waited for no longer.

        With `poll` the database may be asked whether a result is still to come.
        """
        if not self.is_sharing:
            return MineLocally(request)
        share = self._shares.get(transcript.identity)
        if share is None or share.start != request.mined_until or share.end > transcript.size:
            may_offer = self._may_connect() and self.may_leave(transcript)
            return Shareable() if may_offer else MineLocally(request)
        if share.picked is not None:
            return MineLocally(replace(request, picked=(*share.picked, *share.kept_back), picked_until=share.end))
        if not share.key:
            return MineLocally(request)
        age = self._clock() - share.since
        if not 0 <= age < self._wait_seconds or not self._is_consented(transcript):
            self.withdraw(share)
            return MineLocally(request)
        if poll and age >= MIN_POLL_SECONDS and not self._poll_is_waiting(share):
            # Lost, failed or out of reach. It is not offered again: a queue that loses everything would never end.
            self.withdraw(share)
            return MineLocally(request)
        return Waiting(min(max(age, MIN_POLL_SECONDS), MAX_POLL_SECONDS, self._wait_seconds - age + 1.0))

    def _is_consented(self, transcript: Transcript) -> bool:
        projects = self.projects
        return projects is None or project_of(transcript.cwd) in projects

    def _poll_is_waiting(self, share: Share) -> bool:
        """Ask the database whether a result is still to come; assume so while it is out of reach, for an hour."""
        now = self._clock()
        if 0 <= now - self._polled_at.get(share.key, 0.0) < MIN_POLL_SECONDS:
            return True
        if not self._may_connect():
            return not self._has_given_up()
        self._polled_at = {key: at for key, at in self._polled_at.items() if 0 <= now - at < MIN_POLL_SECONDS}
        self._polled_at[share.key] = now
        try:
            with open_shared(self._settings) as ledger:
                standing = content_of(ledger).standing(share.key, self.machine)
        except QueueUnavailable as error:
            log.info("what was shared is waited for: %s", error)
            self._record_failure()
            return not self._has_given_up()
        self._outage.record_success()
        return standing == "waiting"

    def _may_connect(self) -> bool:
        """Whether the database has not just failed: each attempt may take as long as a server that does not answer."""
        return not 0 < self._unreachable_until - self._clock() <= UNREACHABLE_SECONDS

    def _record_failure(self) -> None:
        now = self._clock()
        self._unreachable_until = now + UNREACHABLE_SECONDS
        self._outage.record_failure(now)

    def _has_given_up(self) -> bool:
        since = self._outage.since()
        return since is not None and self._clock() - since >= GIVE_UP_SECONDS

    def withdraw(self, share: Share) -> None:
        """Mine all readings of the share's content locally, and delete the content. A later result is dropped."""
        shares = self._shares.of_key(share.key)
        log.warning("what was shared of %d transcripts has not come back: they are mined here", len(shares))
        self._shares.put(replace(each, key="") for each in shares)
        if not self._may_connect():
            return  # The worker's upkeep withdraws what no share waits for, once it can.
        try:
            with open_shared(self._settings) as ledger:
                content_of(ledger).withdraw(share.key, self.machine)
        except QueueUnavailable as error:
            log.info("it stays in the shared database until that is reached again: %s", error)
            self._record_failure()

    def forget(self, identity: str) -> None:
        """Delete the share of a transcript. Call it once the transcript is mined, and that is stored."""
        if self.is_sharing:
            self._shares.forget(identity)

    # ---- offering

    def offer(self, job: RunningJob, readings: Sequence[tuple[Transcript, MiningRequest]]) -> bool:
        """Offer the first of these to other machines, with as many of the rest as fit.

        False if the first has to be mined here: it has no words that may leave, or the database is out of reach.

        Raises JobLost, Retry.
        """
        try:
            with open_shared(self._settings) as ledger:
                shared = content_of(ledger)
                packed = self._pack(job, [request for _, request in readings])
                leaving = [
                    (transcript.identity, request.mined_until, each)
                    for (transcript, request), each in zip(readings, packed, strict=True)
                    if each is not None and each.words
                ]
                first = readings[0][0].identity
                if not leaving or leaving[0][0] != first:
                    self._shares.put([_local_share(first, readings[0][1].mined_until)])
                    return False
                content = bundle([each for _, _, each in leaving])
                key = key_of(content, self.machine)
                job.check_owned()
                now = self._clock()
                # Before the content, so that any result finds its share. A share without a content is found to be lost.
                self._shares.put(
                    Share(identity, key, place, len(leaving), start, each.end, each.words, now, each.kept_back)
                    for place, (identity, start, each) in enumerate(leaving)
                )
                kill_point("share-recorded")
                try:
                    shared.put(key, self.machine, content)
                except QueueUnavailable:
                    for identity, _, _ in leaving:
                        self._shares.forget(identity)
                    raise
                self._outage.record_success()
                kill_point("share-put")
        except QueueUnavailable as error:
            log.warning("nothing is shared for a while: %s", error)
            self._record_failure()
            return False
        return True

    def _pack(self, job: RunningJob, requests: Sequence[MiningRequest]) -> list[Packed | None]:
        projects = self.projects
        packing_requests = [
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
            packing_requests,
            parse=packed_from,
            deadline_seconds=PACKING_SECONDS,
            verb="packing",
            answer="readings",
            max_stdout_bytes=MAX_OUTPUT_BYTES,
        )
        if len(packed) != len(requests):
            raise Retry(f"packing printed {len(packed)} answers to {len(requests)} requests")
        return packed


def _local_share(identity: str, start: int) -> Share:
    return Share(identity, "", 0, 0, start, start, 0, 0.0)
