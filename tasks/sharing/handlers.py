"""The handlers of the shared queue's jobs: share.mine on any machine, share.result on the one at home.

Both may run twice, and be killed anywhere: an outcome is put down with the job that tells of it, both or neither; what
came back is put down at home before the local job is made due, and the content goes last.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...vault.errors import QueueUnavailable
from ...vault.killpoint import kill_point
from ...vault.settings import Settings
from ..child_job import run_module
from ..queue.job import Dead, Handler, JobLost, Postpone, Retry, RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger
from ..shared_queue import machine_name
from .judging import INVALID, MAX_OUTCOME_BYTES, OutcomeInvalid, picked_from
from .packing import key_of
from .shares import Share, ShareStore, content_of

if TYPE_CHECKING:
    from ..postgres.ledger import PostgresLedger

log = logging.getLogger(__name__)

LOCAL = "reflect.corpus"
POSTPONE_SECONDS = 30.0
CHILD = "memoryvault.tasks.sharing.judging"
JUDGING_SECONDS = 300.0
SLACK_SECONDS = 3600.0
"""Between the clocks of a machine and the database."""
UNAWAITED_SECONDS = 300.0
"""A content of this machine that is older, and that no share waits for, is withdrawn."""


def shared_handlers(settings: Settings, own: Ledger, shared: PostgresLedger) -> Mapping[str, Handler]:
    """The handler of each kind in the shared queue, over the ledgers of the worker's two loops."""
    return {
        "share.mine": silent(mine_handler(settings, shared)),
        "share.result": silent(result_handler(settings, own, shared)),
    }


def silent(handler: Handler) -> Handler:
    """The handler, whose errors tell the shared queue nothing: they may name files of this machine, and each machine
    that works in the queue may read why a job failed."""

    def handle(job: RunningJob) -> Mapping[str, Json] | None:
        try:
            return handler(job)
        except (Dead, Retry, Postpone, JobLost):
            raise
        except (QueueUnavailable, OSError) as error:
            log.warning("job %d (%s): %s", job.id, job.kind, error)
            raise Postpone("its machine cannot do it now", POSTPONE_SECONDS) from None
        except Exception as error:
            log.exception("job %d (%s) failed", job.id, job.kind)
            raise Retry(f"failed: {type(error).__name__}") from None

    return handle


def drop_old_contents(settings: Settings, shared: PostgresLedger) -> None:
    """What nobody waits for any more: of this machine what it has forgotten (`--reset`) or could not withdraw when it
    took it home, and all after its waiting time; of others once they never came back.

    A machine's name stands for one state folder: with two, each would withdraw what the other waits for.
    """
    contents, machine = content_of(shared), machine_name(settings)
    contents.drop_old(machine, settings.queue.wait_hours * 3600.0 + SLACK_SECONDS)
    # The shares are read after the contents, and are put down before them: none is missed.
    lying = contents.keys(machine, older_than_seconds=UNAWAITED_SECONDS)
    if lying:
        awaited = {share.key for share in ShareStore(settings.state.state_db).all()}
        for key in lying:
            if key not in awaited:
                contents.withdraw(key, machine)


def mine_handler(settings: Settings, shared: PostgresLedger) -> Handler:
    """The handler of share.mine. Needs no vault, and writes to none."""
    contents, machine = content_of(shared), machine_name(settings)

    def handle(job: RunningJob) -> Mapping[str, Json]:
        key, home = str(job.args["content"]), str(job.args["home"])
        content = contents.fetch(key, home)
        if content is None:
            return {"nothing": "it was withdrawn, or is larger than any"}
        if key_of(content, home) != key:
            raise Dead("the content is not what its key says")
        result = run_module(
            job, settings, CHILD, content, deadline_seconds=JUDGING_SECONDS, max_stdout_bytes=MAX_OUTCOME_BYTES
        )
        if result.returncode == INVALID:
            raise Dead(f"the content cannot be read: {result.last_words()}")
        if result.returncode != 0:
            # Not its last words: an error may quote what it was reading, and everybody sees this one.
            raise Retry(f"judging failed with exit status {result.returncode}")
        job.check_owned()
        kill_point("share-judged")
        waited_for = contents.answer(key, home, result.stdout, machine)
        kill_point("share-answered")
        return {"bytes": len(content)} if waited_for else {"nothing": "it was withdrawn"}

    return handle


def result_handler(settings: Settings, own: Ledger, shared: PostgresLedger) -> Handler:
    """The handler of share.result."""
    contents, machine = content_of(shared), machine_name(settings)

    def handle(job: RunningJob) -> Mapping[str, Json]:
        key = str(job.args["content"])
        if job.args["to"] != machine:
            raise Dead(f"it is addressed to {job.args['to']}, this is {machine}")
        outcome = contents.outcome(key, machine)
        shares = ShareStore(settings.state.state_db)
        waiting = shares.of_key(key)
        told: dict[str, Json] = {"transcripts": len(waiting)}
        asked = [share for share in waiting if share.picked is None]
        if asked:
            taken, refused = _taken(asked, outcome)
            if refused:
                told["refused"] = refused
            job.check_owned()
            shares.put(taken)
            kill_point("share-picked")
        for share in waiting:
            own.hasten(f"{LOCAL}:{share.identity}")
        kill_point("share-hastened")
        contents.withdraw(key, machine)
        kill_point("share-withdrawn")
        return told

    return handle


def _taken(waiting: list[Share], outcome: bytes | None) -> tuple[list[Share], str]:
    """The shares with what came back; at home, and why, where it is no answer to what was asked."""
    first = waiting[0]
    asked = {share.place: (share.start, share.end, share.words) for share in waiting}
    # Some of them may have been taken home since: what is said of those is not looked at, but for its form.
    anything = (0, 1 << 53, 1 << 53)
    try:
        if outcome is None:
            raise OutcomeInvalid("it is gone, or larger than any")
        picked = picked_from(outcome, [asked.get(place, anything) for place in range(first.readings)])
    except OutcomeInvalid as error:
        log.warning("what another machine sent is refused, %d transcripts are mined here: %s", len(waiting), error)
        return [replace(share, key="") for share in waiting], str(error)
    return [replace(share, picked=picked[share.place]) for share in waiting], ""
