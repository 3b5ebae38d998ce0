"""The job dashboard.write: update the note in which Obsidian shows how the vault stands.

Only the device that acts on the whole vault writes it, and only when its content changes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC

from ...pipelines.dashboard import BEGIN, END, DashboardItem, dashboard, with_dashboard
from ...runtime.days import parse_local_day
from ...runtime.errors import EditConflict, EntryExists, EntryNotFound
from ...runtime.layout import META
from ...runtime.settings import Settings
from ...services.conflicts import copy_paths
from ...services.device import acting_device, acts_here
from ...services.pending_counts import list_pending_notes
from ...services.stores import vault_store
from ...vault.active import is_entry, is_entry_place
from ...vault.entry import ACTIVE, DASHBOARD_KIND, parse_entry
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..queue.job import Postpone, RunningJob
from ..queue.kinds import Json

log = logging.getLogger(__name__)

DASHBOARD = f"{META}/dashboard.md"
TITLE = "MemoryVault"
INTRODUCTION = "How the vault stands. Write what you like above or below the two grey lines: it stays."
EDIT_PAUSE_SECONDS = 60.0
"""How long the job waits when the user is editing the note."""


def dashboard_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle dashboard.write. Running it again writes nothing."""
    store = vault_store(settings)
    store.require_vault()
    if not acts_here(store.vault):
        return {"elsewhere": acting_device(store.vault) or ""}
    job.check_owned()
    try:
        written = refresh_dashboard(store)
    except EditConflict as error:
        raise Postpone(str(error), EDIT_PAUSE_SECONDS) from error
    if written:
        # The index must forget the old text at once: it may hold the title of a deleted note.
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {"written": written}


def refresh_dashboard(store: VaultStore) -> bool:
    """Write the note, or its generated part; return whether it changed. Raises EditConflict, VaultUnavailable."""
    generated = Scrubbed.trusted(render(store), reason="titles of notes in the vault and our own words")
    with store.lock():
        try:
            data = store.read_bytes(DASHBOARD)
        except EntryNotFound:
            body = Scrubbed.joined([Scrubbed.trusted(INTRODUCTION, reason="our own words"), generated])
            fields = {"kind": DASHBOARD_KIND, "status": None, "slug": None, "always_load": None}
            with suppress(EntryExists):
                store.create(DASHBOARD, fields, Scrubbed.trusted(TITLE, reason="our own words"), body)
            return True
        entry = parse_entry(DASHBOARD, data)
        body = Scrubbed.trusted(with_dashboard(entry.body, generated), reason="the user's own note and scrubbed parts")
        if body.strip() == entry.body.strip():
            if END not in entry.body.partition(BEGIN)[2]:
                log.warning("%s is not written: put its last line back, or delete its first: %s", DASHBOARD, END)
            return False
        store.update(DASHBOARD, entry.content_hash, body=body)
        return True


def render(store: VaultStore) -> str:
    """Return the generated part, made of the notes."""
    # Where any device may write it, all must write the same day: that of UTC. A named device writes its own.
    zone = None if acting_device(store.vault) else UTC
    waiting = list_pending_notes(store)
    wanted = {path for paths in waiting.values() for path in paths}
    listed: dict[str, DashboardItem] = {}
    living: list[DashboardItem] = []
    for path, data in store.contents():
        if path not in wanted and not is_entry_place(path):
            continue
        entry = parse_entry(path, data)
        said = entry.surfaced_at or ""
        meant = said if said[:4].isdigit() else entry.created or ""
        day = str(parse_local_day(meant, zone) or meant[:10])
        note = DashboardItem(path, entry.title, entry.kind or "", day)
        if path in wanted:
            listed[path] = note
        elif is_entry(entry) and entry.effective_status == ACTIVE:
            living.append(note)
    store.require_vault()
    for path in wanted.intersection(store.passed_over):
        listed.setdefault(path, DashboardItem(path, store.passed_over[path], "", ""))
    by_place = {place: [listed[path] for path in paths if path in listed] for place, paths in waiting.items()}
    return dashboard(living, by_place, copy_paths(store))
