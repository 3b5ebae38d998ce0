"""The idea ledger: where ideas are kept and how one is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ..vault.entry import Entry
from ..vault.errors import EntryInvalid, EntryNotFound
from ..vault.layout import ARCHIVE, DEFAULT_GROUP, INCUBATOR
from ..vault.slug import validate_slug
from ..vault.store import VaultStore

IDEA_NOTE = "_index.md"
INCUBATOR_FOLDER = f"{DEFAULT_GROUP}/{INCUBATOR}"
IDEA_ARCHIVE = f"{INCUBATOR_FOLDER}/{ARCHIVE}"


def idea_folder(slug: str) -> str:
    """Vault-relative folder of an idea in the incubator. Raises EntryInvalid."""
    return f"{INCUBATOR_FOLDER}/{validate_slug(slug)}"


def find_idea(store: VaultStore, slug: str) -> Entry:
    """The note of an idea that is in the incubator now. Raises EntryNotFound, EntryInvalid, VaultUnavailable."""
    path = f"{idea_folder(slug)}/{IDEA_NOTE}"
    try:
        return store.read(path)
    except EntryNotFound as error:
        raise EntryNotFound(f"there is no idea {slug}: `memory idea list` shows what there is") from error


def ideas(store: VaultStore) -> Iterator[Entry]:
    """The notes of all ideas in the incubator, by path; those that cannot be read are passed over."""
    for path in store.walk():
        folder, _, name = path.rpartition("/")
        if name == IDEA_NOTE and folder.rpartition("/")[0] == INCUBATOR_FOLDER:
            with suppress(EntryNotFound, EntryInvalid):
                yield store.read(path)
