"""The job research.idea: look up what is known about an idea, within a budget.

A child (`research_child`) does the look-ups; the handler plans them, kills the child at its deadline, and writes its
results. The network is used only if the user has agreed to it (`research.network`).
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ...index.client import ensure_service
from ...pipelines.discovery import place_of
from ...pipelines.likeness import statement_of
from ...pipelines.research import (
    RELATED_MEMORIES,
    WRITTEN_HASH,
    hash_as_written,
    one_line,
    query_of,
    receipt_text,
    typed_links,
    with_receipt,
)
from ...pipelines.scrub import scrub
from ...runtime.background import may_start
from ...runtime.errors import (
    EntryExists,
    EntryInvalid,
    EntryNotFound,
    MemoryVaultError,
    QueueUnavailable,
    VaultUnavailable,
)
from ...runtime.json_text import parse_json
from ...runtime.killpoint import kill_point, kill_point_environment
from ...runtime.layout import home_folder
from ...runtime.settings import Settings, child_environment
from ...services.ideas.ledger import find_idea, slug_of
from ...services.ideas.research import LOCAL, STATE, WAITING, is_researched, notes_root, request_research, unresearched
from ...services.retrying import retry_edit
from ...services.spending import SpendingBook, Unit
from ...services.stores import vault_store
from ...vault.entry import RESEARCH_KIND, Entry, fingerprint
from ...vault.fields import StoreValue
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..queue import supervisor
from ..queue.enqueue import open_ledger
from ..queue.job import JobLost, Postpone, Retry, RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger
from .research_child import (
    PURPOSE,
    REQUESTS_FILE,
    SAID_FILE,
    Finding,
    Report,
    ResearchRequest,
    findings_in,
    lines_in,
)

log = logging.getLogger(__name__)

CHILD = "memoryvault.tasks.jobs.research_child"
WALK = "index.reconcile"
START_SECONDS = 5.0
"""Seconds for the child to start and to end, in addition to the budget."""
WRITE_SECONDS = 20.0
"""Seconds of the job's time that are reserved for the work after the child."""
INDEX_PAUSE_SECONDS = 2.0
SERVICE_SECONDS = 20.0
"""Seconds that the recall service gets to load its model."""
MAX_REPORT_BYTES = 64 * 1024


@dataclass(frozen=True)
class WebAccess:
    """Addresses of web services. Production uses the defaults; tests replace them by servers on loopback."""

    bases: Mapping[str, str] = field(default_factory=dict)
    """Addresses of search engines, by name."""
    allow: frozenset[tuple[str, int]] = frozenset()
    """Hosts and ports that may be asked over http although they are loopback."""


def enqueue_missing_research(settings: Settings, ledger: Ledger) -> None:
    """Request, at the worker's start, research of ideas that have none, and of those researched only on this machine
    before the user agreed to the network.

    So research does not depend on the process that captured the idea, which may have been killed.
    """
    try:
        for slug in unresearched(settings, vault_store(settings)):
            request_research(ledger, slug)
    except (QueueUnavailable, VaultUnavailable, OSError) as error:
        log.warning("ideas wait for their research: %s", error)


def research_handler(settings: Settings, job: RunningJob, web: WebAccess | None = None) -> Mapping[str, Json]:
    """Handle research.idea."""
    web = web or WebAccess()
    store = vault_store(settings)
    try:
        idea = find_idea(store, str(job.args["slug"]))
    except (EntryNotFound, EntryInvalid) as error:
        return {"nothing": str(error)}
    if is_researched(settings, idea):
        return {"nothing": "researched already"}
    request = plan(settings, web, idea)
    if request.local:
        _wait_for_index(settings)
    last = job.attempt >= job.policy.attempts
    request = replace(request, service=_has_service(settings), last=last)
    report = _run_child(settings, job, request)
    state = _state(report, request, last)
    _write(settings, job, request, state)
    job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    if state == WAITING and report.again_at:
        raise Retry("a host's rate limit is reached: trying again later", max(0.0, report.again_at - time.time()))
    if state == WAITING:
        raise Retry("not every source answered: the rest is asked again")
    shutil.rmtree(request.folder, ignore_errors=True)  # The findings are in the vault.
    return {"research": state, "overrun": ", ".join(report.overrun)} if report.overrun else {"research": state}


def _wait_for_index(settings: Settings) -> None:
    """Raise Postpone while written notes are not indexed yet."""
    with open_ledger(settings) as ledger:
        if WALK not in ledger.paused() and ledger.list_jobs(["queued", "running"], kind=WALK, most=1):
            raise Postpone("waiting for the index to be updated", INDEX_PAUSE_SECONDS)


def _has_service(settings: Settings) -> bool:
    """Whether the recall service runs with its model; starts it if the settings allow."""
    if not may_start(settings):
        return False
    with suppress(MemoryVaultError):
        ensure_service(settings, SERVICE_SECONDS, wait_for_model=True)
    return True


def plan(settings: Settings, web: WebAccess, idea: Entry) -> ResearchRequest:
    """Return the child's request. Everything that may leave the machine is decided here."""
    limits = settings.research
    vault = settings.required_vault_path
    title, summary = scrub(idea.name), scrub(statement_of(idea.body))
    home = Path(home_folder(settings.environment))
    root = notes_root(vault, home)
    private = [home.name, vault.parent.name, *([idea.project] if idea.project else [])]
    bases, searxng = dict(web.bases), limits.searxng
    names = [name.strip() for name in limits.providers.split(",") if name.strip()]
    if searxng:
        bases["searxng"] = searxng
    if "searxng" in bases:
        names.insert(0, "searxng")
    # A slug may be reused for another idea, but its budget may not.
    subject = "/".join(filter(None, (slug_of(idea.path), idea.surfaced_at or idea.created)))
    return ResearchRequest(
        subject=subject,
        idea=idea.path,
        title=title,
        summary=summary,
        query=query_of(title, summary, private),
        links=typed_links(scrub(idea.body), written_by_agent=idea.written_by_agent, plain=web.allow),
        local=not (vault / idea.path).with_name(f"{RELATED_MEMORIES}.md").exists(),
        network=limits.network,
        providers=names,
        bases=bases,
        allow=sorted(web.allow),
        searxng_allow=[*place_of(searxng)],
        notes_root=None if root is None else str(root),
        leave_out=[str(vault), str(settings.ideas_path)],
        vault=str(vault),
        state=settings.state.root,
        folder=str(Path(settings.state.cache) / PURPOSE / fingerprint(subject)[:16]),
        seconds=limits.seconds,
        fetches=limits.fetches,
        tokens=limits.tokens,
    )


def _run_child(settings: Settings, job: RunningJob, request: ResearchRequest) -> Report:
    """Run the child for the rest of the idea's time. After that it is killed, and its results so far are used."""
    book = SpendingBook(settings.state.state_db, PURPOSE)
    left = book.left(request.subject, request.cap("seconds"))
    if left < 1:
        return Report(["seconds"], offline=False)
    result = supervisor.run_child(
        [sys.executable, "-m", CHILD],
        json.dumps(asdict(request)).encode(),
        max(1.0, min(left + START_SECONDS, job.remaining_seconds() - WRITE_SECONDS)),
        env={**child_environment(settings), **kill_point_environment()},
        stop=job.lost,
        max_stdout_bytes=MAX_REPORT_BYTES,
    )
    if result.ended == "stopped":
        raise JobLost(f"job {job.id} was stopped")
    if result.ended == "deadline":
        return Report(["seconds"], offline=False)
    if result.returncode == 0:
        return Report(**parse_json(result.stdout))
    reason = f"research failed: {result.last_words()}"
    if job.attempt < job.policy.attempts:
        raise Retry(reason)
    log.error("%s: %s", request.subject, reason)
    return Report(["attempts"], offline=False)


def _state(report: Report, request: ResearchRequest, last: bool) -> str:
    """Return what the note says: done: everything planned; partial: the budget was too small; waiting: some sources are
    asked again; local: the user has not agreed to the network; offline: nothing answered in any attempt."""
    if report.overrun:
        return "partial"
    if report.again_at and not last:
        return WAITING
    if report.offline:
        return "offline" if last else WAITING
    return "done" if request.network else LOCAL


def _write(settings: Settings, job: RunningJob, request: ResearchRequest, state: str) -> None:
    """Write the research notes, then the idea's note. Repeated after a crash, it writes what is missing."""
    store = vault_store(settings)
    findings = findings_in(Path(request.folder))
    with store.lock():
        job.check_owned()
        if not store.exists(request.idea):
            return  # Promoted, archived or deleted meanwhile: its folder must not come back.
        kill_point("before-effect")
        for finding in findings:
            if finding.body:
                _write_note(store, request.idea.rpartition("/")[0], finding)
        _write_receipt(settings, store, request, state, findings)
        kill_point("after-effect")


def _write_note(store: VaultStore, folder: str, finding: Finding) -> None:
    """Write one note. An existing one stays: an earlier attempt or the user wrote it."""
    # A page's title is untrusted text, too, and its heading is the only line of the note that is not quoted.
    title = _scrubbed(one_line(finding.title))
    body = _scrubbed(f"# {title}\n\n{finding.body}")
    fields: dict[str, str | bool | Scrubbed] = {"kind": RESEARCH_KIND, "status": "incubating"}
    fields[WRITTEN_HASH] = _scrubbed(hash_as_written(body))
    if finding.untrusted:
        fields |= {"untrusted": True, "url": _scrubbed(finding.address)}
    with suppress(EntryExists):
        store.create(f"{folder}/{finding.name}.md", fields, None, body)


def _write_receipt(
    settings: Settings, store: VaultStore, request: ResearchRequest, state: str, findings: list[Finding]
) -> None:
    book = SpendingBook(settings.state.state_db, PURPOSE)
    units: tuple[Unit, ...] = ("seconds", "fetches", "tokens")
    caps = [request.cap(unit) for unit in units]
    spent = {str(cap.unit): (cap.limit - book.left(request.subject, cap), cap.limit) for cap in caps}
    folder = Path(request.folder)
    lines = [finding.line for finding in findings]
    if not request.network:
        lines.append("The network was not asked: research.network is off.")
    answered = tuple(f"{finding.name}: " for finding in findings)
    lines += [line for line in lines_in(folder, SAID_FILE) if not line.startswith(answered)]
    if state == WAITING:
        lines.append("Not everything has answered yet; it is tried again.")
    section = scrub(receipt_text(state, spent, lines_in(folder, REQUESTS_FILE), lines))

    def settled() -> None:
        idea = store.read(request.idea)
        # `updated` stays: this is no activity of the user.
        fields: dict[str, StoreValue] = {STATE: _scrubbed(state), "updated": idea.updated}
        store.update(idea.path, idea.content_hash, fields=fields, body=_scrubbed(with_receipt(idea.body, section)))

    with suppress(EntryNotFound):  # Promoted or deleted meanwhile.
        retry_edit(settled)


def _scrubbed(text: str) -> Scrubbed:
    return Scrubbed.trusted(text, reason="the child scrubbed what it found; the rest was in the note or is our own")
