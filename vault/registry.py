"""Find entries by their fingerprints, rejected ones included: in the files, which are the truth."""

from __future__ import annotations

import re

from .entry import Entry
from .store import VaultStore

_FINGERPRINT = re.compile(r"[0-9a-f]{8,128}")


def find_by_fingerprint(store: VaultStore, fingerprint: str) -> list[Entry]:
    """Find every entry with this fingerprint, whatever its status and folder, sorted by path.

    YAML is parsed only where the bytes of the fingerprint occur. A file that vanishes or cannot be read is skipped.
    Raises VaultUnavailable when the vault is gone, ValueError for a text that is no fingerprint.
    """
    if _FINGERPRINT.fullmatch(fingerprint) is None:
        raise ValueError(f"not a fingerprint: {fingerprint!r}")
    candidates = sorted(path for path, data in store.contents() if fingerprint.encode("ascii") in data)
    store.require_vault()  # a vault that was unmounted half-way has not been searched
    found = [entry for entry in store.readable(candidates) if entry.fingerprint == fingerprint]
    store.require_vault()
    return found
