"""The fields and the receipt that research writes into an idea's note, which are not decisions of the user."""

from __future__ import annotations

from ...pipelines.research import receipt_in, with_receipt, without_receipt
from ...runtime.errors import EntryInvalid
from ...vault.entry import parse_text
from ...vault.fields import StoreValue
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore

FIELDS = ("research", "research_pass")


def without_research(store: VaultStore, path: str, text: str) -> str:
    """Return an idea's note as it was before any research."""
    entry = parse_text(path, text)
    body = Scrubbed.trusted(without_receipt(entry.body), reason="it was in the vault before")
    fields: dict[str, StoreValue] = {**dict.fromkeys(FIELDS), "updated": entry.updated}
    try:
        return str(store.render_edit(text, fields, body))
    except EntryInvalid:
        return text


def with_research_of(store: VaultStore, path: str, before: str, now: str) -> str:
    """Return the earlier note `before` with the research done since. Raises EntryInvalid."""
    old, new = (parse_text(path, text) for text in (before, now))
    receipt = receipt_in(new.body)
    body = Scrubbed.trusted(with_receipt(old.body, receipt) if receipt else old.body, reason="both are in the vault")
    fields: dict[str, StoreValue] = {}
    for name in FIELDS:
        value = new.extra.get(name)
        fields[name] = None if value is None else Scrubbed.trusted(str(value), reason="it is in the vault")
    return str(store.render_edit(before, {**fields, "updated": old.updated}, body))
