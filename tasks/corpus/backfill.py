"""reflect.corpus: old sessions are mined, one job for each transcript, behind everything that is fresh.

A job puts what it mined into the state folder (`store`); once none is left, corpus.settle counts and ranks
all of it and writes to the vault (`settling`). So the order in which jobs end, and how often they were
killed, does not show in the vault.

A child process costs more to start than a usual transcript to mine. So a job's child reads ahead: it mines the next
transcripts in line as well, and their jobs find it done and tell by which job. Not so with a model, which takes longer
than any start: then each job has its own child, whose deadline is meant for one transcript.

Where machines share a queue, and the user lets a project's words leave, other machines look at them first (`sharing`):
the job waits for what they say, and goes on alone when nothing comes.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...sources.transcripts.claude import transcript_files
from ...sources.transcripts.corpus import Found, Transcript, describe, find_transcripts
from ...sources.transcripts.hosts import HOSTS
from ...vault.killpoint import kill_point
from ...vault.layout import resolve_within
from ...vault.marker import REFLECTED, START, is_session_id, list_markers, marker_path, read_marker
from ...vault.project import project_of
from ...vault.settings import Settings
from ...vault.slug import slugify
from ..child_job import run_json_child
from ..mining import MiningRequest, mined_from_json
from ..model_mining import AnswerCache
from ..queue.enqueue import open_ledger
from ..queue.job import Dead, Handler, Postpone, Retry, RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger, NewJob
from ..reflection import ATTEMPTS_WITH_A_MODEL
from ..sharing.home import SOONEST_LOOK_SECONDS, AtHome, Away, Home, MayLeave
from .store import CorpusStore

KIND = "reflect.corpus"
SETTLE = "corpus.settle"
FRESH = "reflect.session"
CHILD = "memoryvault.tasks.corpus.mining_child"
MINING_SECONDS = 800.0
AHEAD_BYTES = 24 << 20
AHEAD_TRANSCRIPTS = 16
"""At most so much is mined ahead: what a kill costs, and what a fresh session may have to wait for."""
SETTLE_GUARD_SECONDS = 60.0
MAX_OUTPUT_BYTES = 64 << 20
MINED = "mined already"
MOST_JOBS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """What a backfill would do."""

    to_mine: tuple[Transcript, ...]
    """Oldest first, so that what the host deletes soon comes first."""
    known: int
    """Mined already, and not grown since."""
    live: int
    """With a marker: reflect.session mines them."""
    headless: int
    unreadable: int
    left_out: int
    """By --since or --project."""
    unread: tuple[tuple[Path, str], ...]
    """The unreadable ones, each with why."""
    offsets: Mapping[str, int]
    """Where mining begins, by identity; absent: at the beginning."""

    @property
    def bytes(self) -> int:
        """Left to mine."""
        return sum(each.size - self.offsets.get(each.identity, 0) for each in self.to_mine)


@dataclass(frozen=True)
class Run:
    """What was asked for at once."""

    name: str
    jobs: Mapping[int, Transcript]
    """By the id of its job, which may be one that an earlier run had enqueued."""


def plan_corpus(
    settings: Settings,
    *,
    root: Path | None = None,
    since: float | None = None,
    project: str | None = None,
    anew: bool = False,
) -> Plan:
    """Look at the transcripts of all hosts, or of one folder; `anew`: as if none were mined. Writes nothing."""
    hosts: list[tuple[str | None, Path]]
    if root is not None:
        hosts = [(None, root)]
    else:
        hosts = list(zip(("claude", "codex", "copilot", "antigravity"), settings.transcript_roots, strict=True))
    found: Found = find_transcripts(hosts)
    known_ones = not anew and Path(settings.state.state_db).exists()
    cursors = CorpusStore(settings.state).cursors() if known_ones else {}
    live = live_transcripts(settings)
    to_mine: list[Transcript] = []
    offsets: dict[str, int] = {}
    known = marked = left_out = 0
    for each in found.transcripts:
        cursor = cursors.get(each.identity, {})
        if (since is not None and each.modified < since) or (project is not None and not _is_of(each, project)):
            left_out += 1
        elif is_live(each, live):
            marked += 1
        elif cursor.get("size") == each.size and "failed" not in cursor:
            known += 1
        else:
            to_mine.append(each)
            offsets[each.identity] = min(int(cursor.get("offset", 0)), each.size)
    unread = tuple(_unread(hosts)) if found.unreadable else ()
    return Plan(tuple(to_mine), known, marked, found.headless, found.unreadable, left_out, unread, offsets)


def _unread(places: Sequence[tuple[str | None, Path]]) -> Iterator[tuple[Path, str]]:
    """Which files the search could not read, and why."""
    for host, root in places:
        if not root.is_dir():
            continue
        for path in HOSTS[host].find(root) if host is not None else transcript_files(root):
            try:
                with path.open("rb") as file:
                    file.read(1)
            except OSError as error:
                yield path, error.strerror or type(error).__name__


def _is_of(transcript: Transcript, project: str) -> bool:
    wanted = slugify(project)
    return wanted in (project_of(transcript.cwd), slugify(os.path.basename(transcript.cwd)))


def live_transcripts(settings: Settings) -> frozenset[str]:
    """Session ids and real paths of all that have a marker, mined to their end or not."""
    harness = settings.state.harness
    found = set()
    for state in (START, REFLECTED):
        for session in list_markers(harness, state):
            found.add(session)
            marker = read_marker(marker_path(harness, session, state))
            if marker is not None and marker.transcript:
                found.add(os.path.realpath(marker.transcript))
    return frozenset(found)


def is_live(transcript: Transcript, live: frozenset[str]) -> bool:
    """Whether the session has a marker."""
    return transcript.session in live or os.path.realpath(transcript.path) in live


def enqueue_corpus(settings: Settings, plan: Plan, *, root: Path | None = None) -> Run | None:
    """One job for each transcript, all of them or none; None when there is nothing to do."""
    if not plan.to_mine:
        return None
    if root is not None:
        CorpusStore(settings.state).allow_root(root)
    run = secrets.token_hex(6)
    with open_ledger(settings) as ledger:
        jobs = ledger.enqueue_all(
            NewJob(KIND, _args(each, run), unique_key=f"{KIND}:{each.identity}") for each in plan.to_mine
        )
    return Run(run, dict(zip(jobs, plan.to_mine, strict=True)))


def _args(transcript: Transcript, run: str) -> dict[str, Json]:
    session = transcript.session if is_session_id(transcript.session) else transcript.identity
    return {"session": session, "identity": transcript.identity, "path": str(transcript.path), "run": run}


def enqueue_settling(settings: Settings) -> int:
    """Put the next strongest to the user; the job's id."""
    with open_ledger(settings) as ledger:
        return ledger.enqueue(SETTLE, {"run": secrets.token_hex(6)}, unique_key=SETTLE)


def unfinished(ledger: Ledger, store: CorpusStore) -> list[str]:
    """Identities whose job has not had its effect yet."""
    jobs = ledger.list(["queued", "running"], kind=KIND, most=MOST_JOBS)
    cursors = store.cursors()  # After the jobs: one that ends in between counts as done.
    return [
        identity
        for job in jobs
        if isinstance(job.args, dict)
        and cursors.get(identity := str(job.args.get("identity")), {}).get("run") != job.args.get("run")
    ]


# The job


def corpus_handler(settings: Settings) -> Handler:
    """The handler of reflect.corpus."""

    home = Home(settings)

    def handle(job: RunningJob) -> Mapping[str, Json]:
        identity, run = str(job.args.get("identity", "")), str(job.args.get("run", ""))
        if not identity or not job.args.get("path"):
            raise Dead("it names no transcript: ask for it by `memory reflect corpus`")
        store = CorpusStore(settings.state)
        with open_ledger(settings) as ledger:
            if _fresh_one_waits(ledger, settings):
                raise Postpone("a fresh session goes first", 0.0)
        try:
            result = _mine(settings, job, store, home, identity, run)
        except Retry as error:
            if job.attempt < job.policy.attempts:
                raise
            # It must not keep the others from being settled; a later backfill tries it again.
            store.advance(identity, {**store.cursor(identity), "run": run, "failed": str(error)})
            _ask_for_settling(settings, job, run)
            raise Dead(str(error)) from error
        _ask_for_settling(settings, job, run)
        return result

    return handle


def _ask_for_settling(settings: Settings, job: RunningJob, run: str) -> None:
    """Now if this was the last one; else later, for the case that the last one dies without a word."""
    with open_ledger(settings) as ledger:
        left = ledger.queued_count(KIND)
    delay = SETTLE_GUARD_SECONDS if left else 0.0
    job.enqueue(SETTLE, {"run": run} if run else {}, unique_key=SETTLE, delay_seconds=delay)


def _fresh_one_waits(ledger: Ledger, settings: Settings) -> bool:
    """Is a session of now due, with no worker free for it but this one? Its own limits aside."""
    if FRESH not in dict(ledger.oldest_due()) or FRESH in ledger.paused():
        return False
    running = ledger.list(["running"], most=1000)
    of_kind = sum(each.kind == FRESH for each in running)
    return len(running) >= settings.queue.workers and of_kind < ledger.policies[FRESH].concurrency


def _mine(
    settings: Settings, job: RunningJob, store: CorpusStore, home: Home, identity: str, run: str
) -> Mapping[str, Json]:
    """Mine this transcript, and ahead what comes after it; keep what was found. Raises Postpone while others look."""
    roots = [str(root) for root in settings.transcript_roots] + store.roots()
    live = live_transcripts(settings)
    own = _look(identity, Path(str(job.args["path"])), roots, live, store)
    if isinstance(own, str):
        cursor = store.cursor(identity)
        store.advance(identity, {**cursor, "run": run})
        home.forget(identity)
        mined_by: Mapping[str, Json] = cursor.get("mined_by", {})
        if own == MINED and mined_by.get("run") == run:
            return {name: value for name, value in mined_by.items() if name != "run"}
        return {"nothing": own}
    with_model = settings.reflection.miner != "local" and job.attempt <= ATTEMPTS_WITH_A_MODEL
    own = replace(own, request=replace(own.request, session=own.transcript.session, local_only=not with_model))
    # What makes a child fail may lie in a transcript that was read ahead.
    alone = with_model or job.attempt > 1
    stands = home.stand(own.transcript, own.request, ask=True) if not with_model else AtHome(own.request)
    if isinstance(stands, Away):
        raise Postpone("other machines look at it", stands.seconds)
    ahead = [] if alone else _ahead(settings, job, own.bytes, roots, live, store)
    standing = [home.stand(each.transcript, each.request) for each in ahead]
    if isinstance(stands, MayLeave) and not alone:
        going = [own, *(each for each, how in zip(ahead, standing, strict=True) if isinstance(how, MayLeave))]
        if home.send(job, [(each.transcript, each.request) for each in going]):
            raise Postpone("other machines look at it", SOONEST_LOOK_SECONDS)
    readings = [replace(own, request=stands.request) if isinstance(stands, AtHome) else own]
    readings += [
        replace(each, request=how.request) for each, how in zip(ahead, standing, strict=True) if isinstance(how, AtHome)
    ]
    answers = _in_child(settings, job, [each.request for each in readings])
    if "error" in answers[0]:
        raise Retry(str(answers[0]["error"]))
    counts: dict[str, Json] = {"mined_ahead": len(readings) - 1}
    for each, answer in zip(readings, answers, strict=True):
        if "error" in answer:
            continue
        try:
            mined = mined_from_json(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise Retry(f"mining printed no candidates: {error}") from error
        job.check_owned()
        kill_point("corpus-mined")
        store.keep(each.transcript.identity, each.request.mined_until, each.transcript.modified, mined)
        kill_point("corpus-kept")
        found: dict[str, Json] = {
            "candidates": len(mined.candidates),
            "bytes": mined.mined_until - each.request.mined_until,
            "bad_lines": mined.bad_lines,
        }
        cursor = {
            "offset": mined.mined_until,
            "resume": mined.context_offset,
            "size": each.transcript.size,
            "path": str(each.transcript.path),
            "session": each.transcript.session,
            "host": each.transcript.host,
            "cwd": each.transcript.cwd,
            "modified": each.transcript.modified,
            "mined_by": {"mined_by_job": job.id, **found, "run": run},
        }
        if each is readings[0]:
            counts |= found
            if mined.model:
                counts["model"] = dict(mined.model)
            cursor["run"] = run  # The jobs of those that were mined ahead say themselves that they are done.
        store.advance(each.transcript.identity, cursor)
        home.forget(each.transcript.identity)
        AnswerCache(settings.state).forget(mined.answers)
    return counts


def _ahead(
    settings: Settings, job: RunningJob, total: int, roots: list[str], live: frozenset[str], store: CorpusStore
) -> list[_Reading]:
    """The transcripts whose jobs come after this one, as many as may be mined with it."""
    readings: list[_Reading] = []
    with open_ledger(settings) as ledger:
        following = ledger.next_args(KIND, job.id, AHEAD_TRANSCRIPTS - 1)
    for args in following:
        try:
            found = _look(str(args.get("identity")), Path(str(args.get("path"))), roots, live, store)
        except (Dead, Retry):
            continue  # Its own job will say what is wrong.
        if isinstance(found, str):
            continue
        total += found.bytes
        if total > AHEAD_BYTES:
            break
        readings.append(found)
    return readings


@dataclass(frozen=True)
class _Reading:
    transcript: Transcript
    request: MiningRequest

    @property
    def bytes(self) -> int:
        return self.transcript.size - self.request.mined_until


def _look(identity: str, path: Path, roots: list[str], live: frozenset[str], store: CorpusStore) -> _Reading | str:
    """What there is to mine of it, or why there is nothing."""
    if resolve_within(str(path), roots) is None:
        raise Dead(f"{path} lies outside the agent hosts' folders and those you named: refused")
    try:
        # As it was found: in a host's own folder the host is known, whatever the first lines look like.
        transcript = describe(path, identity.partition("-")[0])
    except FileNotFoundError:
        return "the transcript is gone"
    except KeyError as error:
        raise Dead(f"{identity} names no host of this version") from error
    except OSError as error:
        raise Retry(f"cannot be read: {error.strerror}") from error
    if transcript is None or transcript.identity != identity:
        return "another session is in the file now"
    if is_live(transcript, live):
        return "the session goes on: reflect.session mines it"
    cursor = store.cursor(identity)
    if cursor.get("size") == transcript.size and "failed" not in cursor:
        return MINED
    offset = int(cursor.get("offset", 0))
    return _Reading(
        transcript,
        MiningRequest(str(path), transcript.host, offset, int(cursor.get("resume", offset)), local_only=True),
    )


def _in_child(settings: Settings, job: RunningJob, requests: Sequence[MiningRequest]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = run_json_child(
        job,
        settings,
        CHILD,
        [asdict(request) for request in requests],
        parse=lambda stdout: [json.loads(line) for line in stdout.splitlines()],
        deadline_seconds=MINING_SECONDS,
        verb="mining",
        answer="candidates",
        max_stdout_bytes=MAX_OUTPUT_BYTES,
    )
    if len(answers) != len(requests):
        raise Retry(f"mining printed {len(answers)} answers to {len(requests)} requests")
    return answers
