"""Which ideas are still to be looked up, and the request to do so (`tasks/jobs/research.py` carries it out)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from ...runtime.errors import EntryInvalid, EntryNotFound, PathRefused
from ...runtime.settings import Settings
from ...tasks.queue.job import RunningJob
from ...tasks.queue.kinds import Json
from ...tasks.queue.ledger import Ledger
from ...vault.pending import IDEA_NOTE, INCUBATOR_FOLDER
from ...vault.store import VaultStore
from .ledger import find_idea, research_key

log = logging.getLogger(__name__)

KIND = "research.idea"
WAITING = "waiting"
"""The network did not answer, or a host or the vault not yet; the job comes back to it."""
LOCAL = "local"
CONSENT_PASS = "consent"
"""The pass that goes on, on what is left of the budget, when the user has agreed since."""


def request_research(queue: Ledger | RunningJob, slug: str, pass_: str = "") -> None:
    """Enqueue the research of an idea; a further `pass_` of one that was researched has a budget of its own, but for
    CONSENT_PASS. Of one idea one pass waits at a time."""
    args: dict[str, Json] = {"slug": slug, **({"pass": pass_} if pass_ else {})}
    queue.enqueue(KIND, args, unique_key=research_key(slug))


def unresearched(settings: Settings, store: VaultStore) -> Iterator[tuple[str, str]]:
    """(slug, pass) of the ideas that are still to be looked up. Raises OSError, VaultUnavailable."""
    # Not a walk over the whole vault: a worker that is starting asks.
    for note in sorted((store.vault / INCUBATOR_FOLDER).glob(f"*/{IDEA_NOTE}")):
        try:
            idea = find_idea(store, note.parent.name)
        except (EntryNotFound, EntryInvalid, PathRefused):
            continue
        state = idea.extra.get("research")
        if idea.status != "incubating":
            continue
        if state is None:
            yield note.parent.name, ""
        elif state == WAITING:  # In the pass it waits in: its job is most likely there still.
            yield note.parent.name, str(idea.extra.get("research_pass") or "")
        elif state == LOCAL and settings.research.network:
            yield note.parent.name, CONSENT_PASS
