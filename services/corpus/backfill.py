"""Plan a backfill: choose the old sessions to mine, and enqueue a low-priority job for each."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...runtime.errors import QueueUnavailable
from ...runtime.layout import resolve_within
from ...runtime.settings import Settings
from ...runtime.slug import slugify
from ...sources.transcripts.compressed import SUFFIX
from ...sources.transcripts.corpus import Transcript, find_transcripts, newest_transcript
from ...tasks.queue.enqueue import open_ledger
from ...tasks.queue.kinds import Json
from ...tasks.queue.ledger import Ledger
from ...tasks.queue.records import NewJob
from ...vault.marker import every_marker, is_session_id
from ...vault.project import is_left_out, project_of, top_of
from ..cursors import Cursors
from ..mining import Mined

KIND = "reflect.corpus"
MOST_JOBS = 1_000_000
SCAN, ROOTS = "corpus", "corpus.roots"
"""Scan names in state.db: how far each old session is mined, and the folders that the user named with --root."""


@dataclass(frozen=True)
class Plan:
    """The transcripts that a backfill would mine, and counts of the others."""

    to_mine: tuple[Transcript, ...]
    """Newest first: recent statements are the most likely to still hold."""
    known: int
    """Transcripts that are mined and have not grown since."""
    live: int
    """Transcripts with a marker: reflect.session mines them."""
    headless: int
    """Transcripts of sessions that a program ran."""
    left_out: int
    """Transcripts excluded by --since, --project or a project's own file `.memoryvault`."""
    unread: tuple[tuple[Path, str], ...]
    """Files that cannot or must not be read, each with the reason."""
    offsets: Mapping[str, int]
    """Byte offset at which mining begins, by identity; the default is 0."""

    @property
    def bytes(self) -> int:
        """Total bytes left to mine."""
        return sum(each.size - self.offsets.get(each.identity, 0) for each in self.to_mine)


@dataclass(frozen=True)
class BackfillRun:
    """The jobs that were enqueued together."""

    name: str
    jobs: Mapping[int, Transcript]
    """Transcripts by the id of their job, which an earlier run may have enqueued."""


def plan_corpus(
    settings: Settings,
    *,
    root: Path | None = None,
    since: float | None = None,
    project: str | None = None,
    remine: bool = False,
) -> Plan:
    """Plan to mine the transcripts of all hosts, or of the folder `root`. Writes nothing.

    `since` is in unix seconds; `remine` ignores what is already mined.
    """
    hosts = [(None, root)] if root is not None else _host_folders(settings)
    search = find_transcripts(hosts)
    cursors = {} if remine else cursors_of(settings).all()
    live = live_transcripts(settings)
    folders = [*readable_folders(settings), *([str(root)] if root is not None else [])]
    to_mine: list[Transcript] = []
    refused: list[tuple[Path, str]] = []
    offsets: dict[str, int] = {}
    known = marked = left_out = 0
    for each in search.transcripts:
        cursor = cursors.get(each.identity, {})
        named = (project_of(each.cwd), slugify(os.path.basename(each.cwd)))
        is_outside = (since is not None and each.modified < since) or (
            project is not None and slugify(project) not in named
        )
        if is_outside or is_left_out(each.cwd):
            left_out += 1
        elif is_live(each, live):
            marked += 1
        elif is_mined(each, cursor):
            known += 1
        elif (why := refusal(str(each.path), folders)) is not None:
            refused.append((each.path, why))
        else:
            to_mine.append(each)
            offsets[each.identity] = min(int(cursor.get("offset", 0)), each.size)
    unread = (*search.unreadable, *refused)
    return Plan(tuple(reversed(to_mine)), known, marked, search.headless, left_out, unread, offsets)


def cursors_of(settings: Settings) -> Cursors:
    """Return how far old sessions are mined, by the transcript's identity, as `advance` stores it."""
    return Cursors(settings.state.state_db, SCAN)


def readable_folders(settings: Settings) -> list[str]:
    """Return the folders in which jobs may read transcripts: the agents' own, and those that the user has named."""
    return [*map(str, settings.transcript_folders), *Cursors(settings.state.state_db, ROOTS).all()]


def advance(settings: Settings, transcript: Transcript, mined: Mined) -> None:
    """Store how far a transcript is mined. Call it after its results are written."""
    cursors_of(settings).set(
        transcript.identity,
        {
            "offset": mined.mined_until,
            "resume": mined.context_offset,
            "size": transcript.size,
            "modified": transcript.modified,
            "has_more": mined.has_more,
        },
    )


def newest_session(settings: Settings, folder: str) -> Transcript | None:
    """Return the most recent session of this folder, or of its project; None if there is none.

    Without a repository its project are the folders above it, too, up to the home folder.
    """
    project = project_of(folder)
    top, home = Path(top_of(folder)), Path.home()
    is_repository = top != home and (top / ".git").exists()
    above = set() if is_repository else set(Path(folder).parents) - set(home.parents)
    folders = [*map(str, settings.transcript_folders)]

    def is_here(each: Transcript) -> bool:
        of_here = each.cwd == folder or (project != "" and project_of(each.cwd) == project) or Path(each.cwd) in above
        return of_here and refusal(str(each.path), folders) is None

    return newest_transcript(_host_folders(settings), is_here)


def _host_folders(settings: Settings) -> list[tuple[str | None, Path]]:
    """Return each agent's session folder with the agent's name."""
    return [*settings.session_folders.items(), ("codex", settings.codex_archive)]


def is_mined(transcript: Transcript, cursor: Mapping[str, Any]) -> bool:
    """Whether the transcript was mined as it is. Its host may have compressed it since, which keeps its time."""
    if cursor.get("has_more"):
        return False
    same_size = cursor.get("size") == transcript.size
    return same_size or (transcript.path.suffix == SUFFIX and cursor.get("modified") == transcript.modified)


def refusal(path: str, folders: Iterable[str]) -> str | None:
    """Return why no job may read the transcript at `path`; None if one may. Jobs read within `folders`."""
    if resolve_within(path, folders) is not None:
        return None
    if not path.isprintable():
        return "its name has characters that cannot be printed"
    return f"it leads out of the agent's folder: --root {os.path.dirname(os.path.realpath(path))} reads it"


def live_transcripts(settings: Settings) -> frozenset[str]:
    """Return the session ids and real paths of all transcripts with a marker, mined completely or not."""
    live = set()
    for session, marker in every_marker(settings.state.markers):
        live.add(session)
        if marker is not None and marker.transcript:
            live.add(os.path.realpath(marker.transcript))
    return frozenset(live)


def is_live(transcript: Transcript, live: frozenset[str]) -> bool:
    """Whether the session has a marker."""
    return transcript.session in live or os.path.realpath(transcript.path) in live


def enqueue_corpus(settings: Settings, plan: Plan, *, root: Path | None = None) -> BackfillRun | None:
    """Enqueue a job for each transcript, all or none; None if there is nothing to mine."""
    if not plan.to_mine:
        return None
    if root is not None:
        Cursors(settings.state.state_db, ROOTS).set(str(root), {})
    run = secrets.token_hex(6)
    with open_ledger(settings) as ledger:
        jobs = ledger.enqueue_all(
            NewJob(KIND, _job_args(each, run), unique_key=f"{KIND}:{each.identity}") for each in plan.to_mine
        )
    return BackfillRun(run, dict(zip(jobs, plan.to_mine, strict=True)))


def _job_args(transcript: Transcript, run: str) -> dict[str, Json]:
    session = transcript.session if is_session_id(transcript.session) else transcript.identity
    return {"session": session, "identity": transcript.identity, "path": str(transcript.path), "run": run}


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    sessions: int
    waiting: int = 0
    failed: int = 0
    cancelled: int = 0
    """Sessions whose jobs the user cancelled."""
    paused: bool = False
    """Whether the user has paused the work."""
    found: Mapping[str, int] = field(default_factory=dict)
    """Numbers of written notes, by the names in the jobs' results."""

    @property
    def finished(self) -> int:
        """Number of sessions that are mined, given up or cancelled."""
        return self.sessions - self.waiting

    @property
    def mined(self) -> int:
        return self.finished - self.failed - self.cancelled

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to mine."""
        return not self.waiting


def progress_of(ledger: Ledger, run: BackfillRun) -> Progress:
    """Return the current progress of the run."""
    states: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for job in ledger.list_jobs(kind=KIND, most=MOST_JOBS):
        if job.id in run.jobs:
            states[job.state] += 1
            for step in job.history:
                result = step.get("result")
                counts = result if isinstance(result, dict) else {}
                found.update({name: count for name, count in counts.items() if isinstance(count, int)})
    return Progress(
        sessions=len(run.jobs),
        waiting=states["queued"] + states["running"],
        failed=states["dead"],
        cancelled=states["cancelled"],
        paused=KIND in ledger.paused(),
        found=found,
    )


def queued_count(settings: Settings, plan: Plan) -> int:
    """Return how many of the plan's transcripts are in the queue already; 0 without a queue."""
    wanted, jobs = {each.identity for each in plan.to_mine}, []
    if Path(settings.state.queue_db).exists():
        with suppress(QueueUnavailable), open_ledger(settings) as ledger:
            jobs = ledger.list_jobs(["queued", "running"], kind=KIND, most=MOST_JOBS)
    return len(wanted & {str(job.args.get("identity")) for job in jobs if isinstance(job.args, dict)})
