"""The short jobs that put things in order at their times: the agent's notes, the inbox, the incubator, the skills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace

from ...runtime.large_change import note_large_change
from ...runtime.layout import home_folder
from ...runtime.settings import Settings
from ...services.device import acting_device, acts_here
from ...services.ideas.incubator import refresh_list
from ...services.ideas.ledger import ask_next
from ...services.ideas.research import request_research, unresearched
from ...services.importing import HostMemory
from ...services.journal import Journal
from ...services.reviewing import Reviewer
from ...services.skills import all_roots, index_skills, scan
from ...services.stores import vault_store
from ...services.triaging import run_triage
from ..queue.job import RunningJob
from ..queue.kinds import Json


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
