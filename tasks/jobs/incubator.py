"""The job incubator.gc: list the ideas that nobody came back to, ask about waiting ideas, request missing research."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.settings import Settings
from ...services.device import acting_device, acts_here
from ...services.ideas.incubator import refresh_list
from ...services.ideas.ledger import ask_next
from ...services.ideas.research import request_research, unresearched
from ...services.journal import Journal
from ...services.stores import vault_store
from ..queue.job import RunningJob
from ..queue.kinds import Json


def gc_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle incubator.gc. Running it again writes the same note."""
    store = vault_store(settings)
    store.require_vault()
    if not acts_here(store.vault):
        return {"elsewhere": acting_device(store.vault) or ""}
    journal = Journal(settings.state, store)
    journal.recover()
    found = refresh_list(settings, journal, still_owned=job.still_owned)
    asked = ask_next(settings, journal)
    for slug, pass_ in unresearched(settings, store):  # Its capture may have been killed before it enqueued this.
        request_research(job, slug, pass_)
    return {"listed": len(found), "asked": asked}
