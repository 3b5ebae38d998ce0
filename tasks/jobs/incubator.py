"""incubator.gc: ideas that nobody came back to are listed."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.errors import VaultUnavailable
from ...runtime.settings import Settings
from ...services.device import acting_device, acts_here
from ...services.ideas.deleted_links import unlink_deleted
from ...services.ideas.incubator import refresh_list
from ...services.ideas.ledger import ask_next
from ...services.ideas.research import request_research, unresearched
from ...services.journal import Journal
from ...services.stores import vault_store
from ..queue.job import Handler, Postpone, RunningJob
from ..queue.kinds import Json

VAULT_PAUSE_SECONDS = 30.0


def gc_handler(settings: Settings) -> Handler:
    """incubator.gc: running it again writes the same note."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        try:
            store = vault_store(settings)
            store.require_vault()
            if not acts_here(store.vault):
                return {"elsewhere": acting_device(store.vault) or ""}
            journal = Journal(settings.state, store)
            journal.recover()
            found = refresh_list(settings, journal, still_owned=job.still_owned)
            asked = ask_next(settings, journal)
            unlinked = unlink_deleted(store)
            for slug, pass_ in unresearched(settings, store):  # Whoever noted it may not have lived to ask.
                request_research(job, slug, pass_)
        except VaultUnavailable as error:
            raise Postpone(str(error), VAULT_PAUSE_SECONDS) from error
        return {"listed": len(found), "asked": asked, "unlinked": unlinked}

    return handle
