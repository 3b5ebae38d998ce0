"""The short jobs: markers of sessions, decisions in notes, the agent's notes, the inbox, the incubator, the skills."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from ...runtime.large_change import note_large_change
from ...runtime.layout import home_folder, resolve_within
from ...runtime.settings import Settings
from ...services.decision_property import SETTLED_SECONDS, DecisionProblem
from ...services.device import acting_device, acts_here
from ...services.discovery.watchlist import Watchlist
from ...services.ideas.incubator import refresh_list
from ...services.ideas.ledger import ask_next
from ...services.ideas.research import request_research, unresearched
from ...services.importing import HostMemory
from ...services.indexing import APPLY_KEY
from ...services.journal import Journal
from ...services.reviewing import Reviewer
from ...services.sessions import OUTSIDE, Unmined, collect_old_markers, sweep
from ...services.skills import all_roots, index_skills, scan
from ...services.stores import vault_store
from ...services.triaging import run_triage
from ..queue.enqueue import open_ledger
from ..queue.job import RunningJob
from ..queue.kinds import Json
from ..queue.ledger import MAX_DEAD, Ledger
from ..queue.worklog import Lasting

log = logging.getLogger(__name__)
UNKNOWN_FOLDER = Lasting(log)

MARKER_DAYS = 30
"""Days after which the marker of a reflected session is deleted."""


def recover_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle recover.orphans: it enqueues reflect.session for each silent session that is not mined
    completely.

    Sessions whose job has died since their last activity are left out, because it would die again every few minutes.
    """
    roots = [str(root) for root in settings.transcript_folders]
    result = sweep(settings.state.markers, roots, now=time.time())
    known = [each for each in result.to_mine if resolve_within(each.transcript, roots) is not None]
    if outside := next((each for each in result.to_mine if each not in known), None):
        folder = os.path.dirname(outside.transcript)
        UNKNOWN_FOLDER.is_so(f"sessions in {folder} are not mined: the worker knows no agent that keeps its own there")
    given_up = _given_up(settings, known)
    to_mine = [each.session for each in known if each.session not in given_up]
    for session in to_mine:
        job.enqueue("reflect.session", {"session": session}, unique_key=f"reflect.session:{session}")
    return {
        "to_mine": len(to_mine),
        "given_up": len(given_up),
        "outside": len(result.to_mine) - len(known),
        "finished": len(result.finished),
        "dead_pointers": len(result.dead_pointers),
    }


def _given_up(settings: Settings, unmined: Sequence[Unmined]) -> set[str]:
    """Return the sessions whose job has died since, for a reason that still holds; each one's folder is known by
    now."""
    if not unmined:
        return set()
    died: dict[str, float] = {}
    with open_ledger(settings) as ledger:
        for dead in ledger.list_jobs(["dead"], kind="reflect.session", most=MAX_DEAD):
            if isinstance(dead.args, dict) and dead.finished_at is not None and dead.error != OUTSIDE:
                session = str(dead.args.get("session"))
                died[session] = max(died.get(session, 0.0), dead.finished_at)
    return {each.session for each in unmined if died.get(each.session, 0.0) > each.last_sign}


def collect_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle markers.gc: it deletes the markers of sessions that were reflected long ago."""
    job.check_owned()
    return {"deleted": collect_old_markers(settings.state.markers, now=time.time(), days=MARKER_DAYS)}


def enqueue_decisions(settings: Settings, ledger: Ledger) -> None:
    """Enqueue review.apply at the worker's start, for decisions and an interrupted change from before."""
    ledger.enqueue("review.apply", unique_key=APPLY_KEY)


def apply_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle review.apply."""
    reviewer = Reviewer(settings)
    ended = reviewer.journal.recover()
    if not acts_here(reviewer.store.vault):
        # Two devices that see one decision would each carry it out, and their files would collide.
        return {"elsewhere": acting_device(reviewer.store.vault) or ""}
    results = [
        *reviewer.apply_notes(job.still_owned),
        *Watchlist(settings, reviewer.store, reviewer.journal).apply_notes(job.still_owned),
    ]
    problems = [result for result in results if isinstance(result, DecisionProblem)]
    decided = len(results) - len(problems)
    if any(problem.may_be_typed for problem in problems):
        # The note does not change until then, so the watcher would not enqueue this job again.
        job.enqueue("review.apply", {}, unique_key=APPLY_KEY, delay_seconds=SETTLED_SECONDS)
    if decided or ended:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {"decided": decided, **({"problems": len(problems)} if problems else {})}


def import_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle memory.import: copy the notes that Claude Code keeps itself, unless the settings forbid it."""
    if settings.memory.disable_auto_memory or not settings.memory.import_host_memory:
        return {"nothing": "it is switched off"}
    counts = Counter(one.result for one in HostMemory(settings, vault_store(settings)).bring_in())
    what = "archived: Claude Code has deleted its own"
    if counts["updated"]:
        what = "archived or rewritten, as Claude Code did with its own"
    many = counts["removed"] + counts["updated"]
    note_large_change(settings.state.markers, "import", many, what, "`memory undo --of import` takes it back")
    if counts["imported"] or counts["updated"] or counts["removed"]:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {result.replace(" ", "_"): count for result, count in sorted(counts.items())}


def triage_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle inbox.triage: promote, merge or archive notes of the inbox."""
    results = run_triage(settings, Reviewer(settings), still_owned=job.still_owned)
    what, remedy = "put elsewhere from the inbox", "`memory undo --of triage` takes it back"
    note_large_change(settings.state.markers, "triage", len(results), what, remedy)
    if results:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return dict(Counter(result.result.split(":", 1)[0] for result in results))


def gc_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle incubator.gc: list the ideas that nobody came back to, ask about waiting ones, request missing research.

    Running it again writes the same note.
    """
    store = vault_store(settings)
    store.require_vault()
    if not acts_here(store.vault):
        return {"elsewhere": acting_device(store.vault) or ""}
    journal = Journal(settings.state, store)
    journal.recover()
    found = refresh_list(settings, journal, still_owned=job.still_owned)
    asked = ask_next(settings, journal)
    for slug in unresearched(settings, store):  # Its capture may have been killed before it enqueued this.
        request_research(job, slug)
    return {"listed": len(found), "asked": asked}


def skills_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle skills.index."""
    store = vault_store(settings)
    store.require_vault()
    found = scan(all_roots(settings), home_folder(settings.environment))
    with store.lock():
        result = index_skills(found, store, job.check_owned)
    what, remedy = "archived: their skills are gone", "once these are there again, the notes come back"
    note_large_change(settings.state.markers, "skills", result.archived, what, remedy)
    if result.changed:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {**asdict(replace(result, warnings=())), "warnings": len(result.warnings)}
