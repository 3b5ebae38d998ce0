"""The handlers of the shared queue's jobs: share.mine on any machine, share.result on the origin's.

Both may run twice, and be killed anywhere: a result is stored together with the job that announces it, both or neither;
the origin stores it before the local job is made due, and deletes the content last.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...runtime.errors import QueueUnavailable
from ...runtime.killpoint import kill_point
from ...runtime.settings import Settings
from ..queue.child_job import run_module
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
"""Most by which the clocks of a machine and the database may differ."""
UNAWAITED_SECONDS = 300.0
"""Age from which on a content of this machine is withdrawn if no share waits for it."""


def shared_handlers(settings: Settings, own: Ledger, shared: PostgresLedger) -> Mapping[str, Handler]:
    """Make the handlers of all kinds in the shared queue, over the ledgers of the worker's two loops."""
    return {
        "share.mine": silent(mine_handler(settings, shared)),
        "share.result": silent(result_handler(settings, own, shared)),
    }


def silent(handler: Handler) -> Handler:
    """Wrap a handler so that its errors tell the shared queue nothing.

    They may name files of this machine, and every machine that works in the queue may read why a job failed.
    """

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
    """Delete contents that nobody waits for.

    Of this machine those that it has forgotten (`--reset`) or could not withdraw, and all after their waiting time; of
    others those that were never withdrawn. Each state folder needs a machine name of its own: with one name for two,
    each would withdraw what the other waits for.
    """
    contents, machine = content_of(shared), machine_name(settings)
    contents.drop_old(machine, settings.queue.wait_hours * 3600.0 + SLACK_SECONDS)
    # Shares are stored before their contents and read after them here: none is missed.
    stored = contents.keys(machine, older_than_seconds=UNAWAITED_SECONDS)
    if stored:
        awaited = {share.key for share in ShareStore(settings.state.state_db).all()}
        for key in stored:
            if key not in awaited:
                contents.withdraw(key, machine)


def mine_handler(settings: Settings, shared: PostgresLedger) -> Handler:
    """Make the handler of share.mine, which neither reads nor writes a vault."""
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
            # Without its last words: an error may quote what was read, and every machine sees this one.
            raise Retry(f"judging failed with exit status {result.returncode}")
        job.check_owned()
        kill_point("share-judged")
        waited_for = contents.answer(key, home, result.stdout, machine)
        kill_point("share-answered")
        return {"bytes": len(content)} if waited_for else {"nothing": "it was withdrawn"}

    return handle


def result_handler(settings: Settings, own: Ledger, shared: PostgresLedger) -> Handler:
    """Make the handler of share.result."""
    contents, machine = content_of(shared), machine_name(settings)

    def handle(job: RunningJob) -> Mapping[str, Json]:
        key = str(job.args["content"])
        if job.args["to"] != machine:
            raise Dead(f"it is addressed to {job.args['to']}, this is {machine}")
        outcome = contents.outcome(key, machine)
        shares = ShareStore(settings.state.state_db)
        waiting = shares.of_key(key)
        report: dict[str, Json] = {"transcripts": len(waiting)}
        asked = [share for share in waiting if share.picked is None]
        if asked:
            answered, refused = _apply_outcome(asked, outcome)
            if refused:
                report["refused"] = refused
            job.check_owned()
            shares.put(answered)
            kill_point("share-picked")
        for share in waiting:
            own.hasten(f"{LOCAL}:{share.identity}")
        kill_point("share-hastened")
        contents.withdraw(key, machine)
        kill_point("share-withdrawn")
        return report

    return handle


def _apply_outcome(waiting: list[Share], outcome: bytes | None) -> tuple[list[Share], str]:
    """Add the picked messages to the shares; make them local, with the reason, if the result is no valid answer."""
    first = waiting[0]
    asked = {share.place: (share.start, share.end, share.words) for share in waiting}
    # Some readings may have been withdrawn since: of their answers only the form is checked.
    anything = (0, 1 << 53, 1 << 53)
    try:
        if outcome is None:
            raise OutcomeInvalid("it is gone, or larger than any")
        picked = picked_from(outcome, [asked.get(place, anything) for place in range(first.readings)])
    except OutcomeInvalid as error:
        log.warning("what another machine sent is refused, %d transcripts are mined here: %s", len(waiting), error)
        return [replace(share, key="") for share in waiting], str(error)
    return [replace(share, picked=picked[share.place]) for share in waiting], ""
