"""The job reflect.corpus, which mines one transcript of an old session, and with it the next ones in line.

Starting a child process costs more than mining a usual transcript. So a job's child also mines the transcripts whose
jobs come next; those jobs find it done, and report by which job. A model takes longer than any start: with one, each
job has its own child, whose deadline is meant for one transcript.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...runtime.killpoint import kill_point
from ...runtime.settings import Settings
from ...services.corpus.backfill import (
    AHEAD_BYTES,
    AHEAD_TRANSCRIPTS,
    KIND,
    SETTLE,
    is_live,
    is_mined,
    live_transcripts,
    refusal,
)
from ...services.corpus.store import CorpusStore
from ...services.mining import REST, MiningRequest, mined_from_json
from ...services.model_mining import AGAIN, AnswerCache, read_again_later
from ...sources.transcripts.corpus import Transcript, describe
from ..queue.child_job import run_json_child
from ..queue.enqueue import open_ledger
from ..queue.job import Dead, Handler, Postpone, Retry, RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger
from .reflection import ATTEMPTS_WITH_A_MODEL, log_mined

FRESH = "reflect.session"
CHILD = "memoryvault.tasks.jobs.corpus_mining_child"
MINING_SECONDS = 800.0
SETTLE_GUARD_SECONDS = 60.0
MAX_OUTPUT_BYTES = 64 << 20
MINED = "mined already"


@dataclass(frozen=True)
class Reading:
    """The part of a transcript that is still to be mined."""

    transcript: Transcript
    request: MiningRequest

    @property
    def bytes(self) -> int:
        """Size of the part."""
        return max(0, self.transcript.size - self.request.mined_until)


@dataclass(frozen=True)
class NothingToMine:
    """A transcript of which nothing is left to mine, and why."""

    reason: str


@dataclass(frozen=True)
class _BackfillContext:
    settings: Settings
    job: RunningJob
    store: CorpusStore
    run: str
    """Name of the backfill that enqueued the job."""
    roots: list[str]
    """Folders from which a transcript may be read."""
    live: frozenset[str]
    """Session ids and real paths that have a marker: reflect.session mines them."""


def corpus_handler(settings: Settings) -> Handler:
    """Make the handler of reflect.corpus."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        identity, run = str(job.args.get("identity", "")), str(job.args.get("run", ""))
        if not identity or not job.args.get("path"):
            raise Dead("it names no transcript: ask for it by `memory reflect corpus`")
        store = CorpusStore(settings.state)
        with open_ledger(settings) as ledger:
            if _must_yield_to_fresh_session(ledger, settings):
                raise Postpone("a fresh session goes first", 0.0)
        roots = [*map(str, settings.transcript_folders), *store.roots()]
        context = _BackfillContext(settings, job, store, run, roots, live_transcripts(settings))
        try:
            result = _mine(context, identity)
        except Retry as error:
            if job.attempt < job.policy.attempts:
                raise
            # It must not keep the others from being settled; a later backfill tries it again.
            store.advance(identity, {**store.cursor(identity), "run": run, "failed": str(error)})
            _request_settling(settings, job, run)
            raise Dead(str(error)) from error
        _request_settling(settings, job, run)
        return result

    return handle


def _request_settling(settings: Settings, job: RunningJob, run: str) -> None:
    """Enqueue the settling: now if no transcript is left, else later, in case the last job dies without asking."""
    with open_ledger(settings) as ledger:
        left = ledger.queued_count(KIND)
    delay = SETTLE_GUARD_SECONDS if left else 0.0
    job.enqueue(SETTLE, {"run": run} if run else {}, unique_key=SETTLE, delay_seconds=delay)


def _must_yield_to_fresh_session(ledger: Ledger, settings: Settings) -> bool:
    """Whether a fresh session is due, within the limits of its kind, and no worker is free for it but this one."""
    if FRESH not in dict(ledger.oldest_due()) or FRESH in ledger.paused():
        return False
    running = ledger.list(["running"], most=1000)
    of_kind = sum(each.kind == FRESH for each in running)
    return len(running) >= settings.queue.workers and of_kind < ledger.policies[FRESH].concurrency


def _mine(context: _BackfillContext, identity: str) -> Mapping[str, Json]:
    """Mine this transcript and the next ones in line, and store it. Raises Dead, Retry, JobLost, Postpone."""
    job = context.job
    reading = _next_reading(context, identity, Path(str(job.args["path"])))
    if isinstance(reading, NothingToMine):
        return _finish_without_mining(context, identity, reading)
    with_model = context.settings.reflection.miner != "local" and job.attempt <= ATTEMPTS_WITH_A_MODEL
    request = replace(reading.request, session=reading.transcript.session, local_only=not with_model)
    reading = replace(reading, request=request)
    # A transcript that was mined ahead may be what made the child of the last attempt fail.
    is_alone = with_model or job.attempt > 1
    ahead = [] if is_alone else _readings_ahead(context, reading.bytes)
    return _mine_batch(context, [reading, *ahead])


def _finish_without_mining(context: _BackfillContext, identity: str, nothing: NothingToMine) -> Mapping[str, Json]:
    """Note that the run is through with the transcript, and report the job that mined it, if one of the run did."""
    cursor = context.store.cursor(identity)
    context.store.advance(identity, {**cursor, "run": context.run})
    mined_by: Mapping[str, Json] = cursor.get("mined_by", {})
    if nothing.reason == MINED and mined_by.get("run") == context.run:
        return {name: value for name, value in mined_by.items() if name != "run"}
    return {"nothing": nothing.reason}


def _mine_batch(context: _BackfillContext, readings: Sequence[Reading]) -> Mapping[str, Json]:
    """Mine the readings in one child and store each result; the counts are of the first.

    Raises Retry, JobLost; Postpone where a part is left of a long one.
    """
    answers = _run_child(context, [reading.request for reading in readings])
    if "error" in answers[0]:
        raise Retry(str(answers[0]["error"]))
    read_again_later(answers[0].get("model") or {})
    own = _store_result(context, readings[0], answers[0], is_own=True)
    for reading, answer in zip(readings[1:], answers[1:], strict=True):
        if "error" not in answer and AGAIN not in (answer.get("model") or {}):  # Else its own job reports it.
            _store_result(context, reading, answer, is_own=False)
    if answers[0]["has_more"]:
        raise Postpone(REST, 0.0)
    return {"mined_ahead": len(readings) - 1, **own}


def _run_child(context: _BackfillContext, requests: Sequence[MiningRequest]) -> list[Mapping[str, Any]]:
    """Mine in a child: for each request a `Mined` as JSON, or {"error": why}. Raises Retry, JobLost."""

    def parse(stdout: bytes) -> list[Mapping[str, Any]]:
        return [json.loads(line) for line in stdout.splitlines()]

    answers = run_json_child(
        context.job,
        context.settings,
        CHILD,
        [asdict(request) for request in requests],
        parse=parse,
        deadline_seconds=MINING_SECONDS,
        verb="mining",
        answer="candidates",
        max_stdout_bytes=MAX_OUTPUT_BYTES,
    )
    if len(answers) != len(requests):
        raise Retry(f"mining printed {len(answers)} answers to {len(requests)} requests")
    return answers


def _store_result(
    context: _BackfillContext, reading: Reading, answer: Mapping[str, Any], *, is_own: bool
) -> dict[str, Json]:
    """Store the candidates, then advance the cursor: a crash in between repeats the reading, which replaces itself.

    Returns the counts for the job's history. Raises Retry, JobLost.
    """
    try:
        mined = mined_from_json(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise Retry(f"mining printed no candidates: {error}") from error
    transcript, begin = reading.transcript, reading.request.mined_until
    context.job.check_owned()
    kill_point("corpus-mined")
    context.store.keep(transcript.identity, begin, transcript.modified, mined)
    kill_point("corpus-kept")
    counts: dict[str, Json] = {
        "candidates": len(mined.candidates),
        "bytes": mined.mined_until - begin,
        "bad_lines": mined.bad_lines,
    }
    cursor = {
        "offset": mined.mined_until,
        "resume": mined.context_offset,
        "size": transcript.size,
        "path": str(transcript.path),
        "session": transcript.session,
        "host": transcript.host,
        "cwd": transcript.cwd,
        "modified": transcript.modified,
        "mined_by": {"mined_by_job": context.job.id, **counts, "run": context.run},
    }
    if is_own:
        cursor["run"] = context.run  # The jobs of those that were mined ahead note themselves that they are done.
    context.store.advance(transcript.identity, cursor)
    log_mined(transcript.session, transcript.cwd, **counts)
    AnswerCache(context.settings.state).forget(mined.answers)
    return {**counts, "model": dict(mined.model)} if is_own and mined.model else counts


def _readings_ahead(context: _BackfillContext, total: int) -> list[Reading]:
    """Find the readings of the jobs that come next, as many as fit with the `total` bytes of this job's own."""
    readings: list[Reading] = []
    with open_ledger(context.settings) as ledger:
        following = ledger.next_args(KIND, context.job.id, AHEAD_TRANSCRIPTS - 1)
    for args in following:
        try:
            reading = _next_reading(context, str(args.get("identity")), Path(str(args.get("path"))))
        except (Dead, Retry):
            continue  # Its own job reports what is wrong.
        if isinstance(reading, NothingToMine):
            continue
        total += reading.bytes
        if total > AHEAD_BYTES:
            break
        readings.append(reading)
    return readings


def _next_reading(context: _BackfillContext, identity: str, path: Path) -> Reading | NothingToMine:
    """Find out what is left to mine of a transcript. Raises Dead, Retry."""
    if (why := refusal(str(path), context.roots)) is not None:
        raise Dead(f"{path} is refused: {why}")
    try:
        # By the host it was found with: in a host's own folder that is certain, whatever the first lines look like.
        transcript = describe(path, identity.partition("-")[0])
    except FileNotFoundError:
        return NothingToMine("the transcript is gone")
    except KeyError as error:
        raise Dead(f"{identity} names no host of this version") from error
    except OSError as error:
        raise Retry(f"cannot be read: {error.strerror}") from error
    if transcript is None or transcript.identity != identity:
        return NothingToMine("another session is in the file now")
    if is_live(transcript, context.live):
        return NothingToMine("the session goes on: reflect.session mines it")
    cursor = context.store.cursor(identity)
    if is_mined(transcript, cursor):
        return NothingToMine(MINED)
    offset = int(cursor.get("offset", 0))
    request = MiningRequest(
        str(path),
        transcript.host,
        mined_until=offset,
        context_offset=int(cursor.get("resume", offset)),
        local_only=True,
    )
    return Reading(transcript, request)
