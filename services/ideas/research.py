"""Find the ideas that are not researched yet, request research (`tasks/jobs/research.py` carries it out), and separate
what research writes into an idea's note from the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...pipelines.research import receipt_in, with_receipt, without_receipt
from ...runtime.errors import EntryInvalid, EntryNotFound, PathRefused, QueueUnavailable
from ...runtime.settings import Settings
from ...tasks.queue.enqueue import open_ledger
from ...tasks.queue.job import RunningJob
from ...tasks.queue.ledger import Ledger
from ...vault.entry import Entry, parse_text
from ...vault.fields import StoreValue
from ...vault.pending import IDEA_NOTE, INCUBATOR_FOLDER
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from .ledger import find_idea

KIND = "research.idea"
WAITING = "waiting"
"""State of a pass that waits for the network, a host or the vault; the job retries it."""
LOCAL = "local"
STATE = "research"
"""Property of an idea's note that research writes; it and the receipt are no decisions of the user."""


def request_research(queue: Ledger | RunningJob, slug: str) -> None:
    """Enqueue the research of an idea: one job per idea may wait."""
    queue.enqueue(KIND, {"slug": slug}, unique_key=f"{KIND}:{slug}")


def request_research_if_possible(settings: Settings, slug: str) -> None:
    """Do so from a command. Without a queue, the worker's start and the weekly check find the idea, too."""
    with suppress(QueueUnavailable), open_ledger(settings) as ledger:
        request_research(ledger, slug)


def is_researched(settings: Settings, idea: Entry) -> bool:
    """Whether nothing is left to look up: on this machine, and on the network once the user has agreed to it."""
    state = idea.extra.get(STATE)
    return not (state in (None, WAITING) or (state == LOCAL and settings.research.network))


def unresearched(settings: Settings, store: VaultStore) -> Iterator[str]:
    """Return the slugs of the ideas that are not researched yet. Raises OSError, VaultUnavailable."""
    # Not a walk over the whole vault, because a starting worker calls this.
    for note in sorted((store.vault / INCUBATOR_FOLDER).glob(f"*/{IDEA_NOTE}")):
        try:
            idea = find_idea(store, note.parent.name)
        except (EntryNotFound, EntryInvalid, PathRefused):
            continue
        if idea.status == "incubating" and not is_researched(settings, idea):
            yield note.parent.name


def notes_root(vault: Path, home: Path) -> Path | None:
    """Return the folder around MemoryVault/, whose notes are searched; None for a home folder without Obsidian."""
    root = vault.parent
    if (root / ".obsidian").is_dir():
        return root
    return None if root.resolve() in (Path("/"), home.resolve()) else root


def without_research(store: VaultStore, path: str, text: str) -> str:
    """Return an idea's note as it was before any research."""
    entry = parse_text(path, text)
    body = Scrubbed.trusted(without_receipt(entry.body), reason="it was in the vault before")
    fields: dict[str, StoreValue] = {STATE: None, "updated": entry.updated}
    try:
        return str(store.render_edit(text, fields, body))
    except EntryInvalid:
        return text


def with_research_of(store: VaultStore, path: str, before: str, now: str) -> str:
    """Return the earlier note `before` with the research done since. Raises EntryInvalid."""
    old, new = (parse_text(path, text) for text in (before, now))
    receipt = receipt_in(new.body)
    body = Scrubbed.trusted(with_receipt(old.body, receipt) if receipt else old.body, reason="both are in the vault")
    value = new.extra.get(STATE)
    state = None if value is None else Scrubbed.trusted(str(value), reason="it is in the vault")
    return str(store.render_edit(before, {STATE: state, "updated": old.updated}, body))
