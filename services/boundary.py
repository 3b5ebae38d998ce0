"""The boundary of the vault: the only module that decides on and performs writes outside `MemoryVault/`.

Such a write needs the user's consent: a command that asks for it, a yes to a proposal, or the mode `silent`, which is a
yes in advance. Without one of the three, it raises BoundaryRefused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path

from ..runtime.errors import BoundaryRefused, EntryInvalid, OutsideUnavailable, PathRefused, VaultUnavailable
from ..runtime.settings import Settings
from ..vault.boundary import Approval, Consent
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore


def is_outside(path: str) -> bool:
    """Whether a change's path is outside the vault. Paths in the vault are relative."""
    return path.startswith("/")


def consent_of(settings: Settings, *, requested: bool = False, confirmed: bool = False) -> Consent | None:
    """Return the consent for writing outside now; None: the program has to ask first."""
    if requested:
        return Consent.REQUESTED
    if confirmed:
        return Consent.CONFIRMED
    return Consent.STANDING if settings.memory.review_mode == "silent" else None


def outside_write(
    store: VaultStore, path: str, text: Scrubbed | None, expected_hash: str | None, consent: Consent | None
) -> None:
    """Write a file outside the vault, or remove it (`text` None), if it is as it was read.

    Raises BoundaryRefused without consent, EntryExists, EntryNotFound, EditConflict, OutsideUnavailable,
    VaultUnavailable.
    """
    require_consent(path, consent)
    target = Path(path)
    approval = Approval(target, Consent(consent)) if consent is not None else None
    with _not_the_vaults_fault(store):
        # Replacing by rename would ignore a read-only file.
        if target.exists() and not target.stat().st_mode & 0o222:
            raise VaultUnavailable(f"{path} is read-only: make it writable first")
        store.write_outside(target, text, expected_hash, approval)


def clean_outside(store: VaultStore, path: Path) -> int:
    """Delete temporary files that killed writers left beside a file outside; return how many."""
    return store.clean_temporaries_beside(path)


def require_consent(path: str, consent: Consent | None) -> None:
    """Raise BoundaryRefused without consent."""
    if consent is None:
        raise BoundaryRefused(
            f"{path} lies outside MemoryVault/: it is written only when you ask for it, or say yes to it"
        )


def text_outside(store: VaultStore, path: str) -> str | None:
    """Return the file's exact text; None if there is none. Raises OutsideUnavailable, VaultUnavailable."""
    with _not_the_vaults_fault(store):
        found = store.read_outside(Path(path))
    return None if found is None else found[0]


def without_change(now: str | None, before: str | None, after: str | None) -> str | None:
    """Return the text `now` without the change from `before` to `after`; None if it can no longer be separated."""
    if now is None or after is None:
        return None
    old, new, lines = ((text or "").splitlines(keepends=True) for text in (before, after, now))
    for tag, i1, i2, j1, j2 in reversed(SequenceMatcher(None, old, new, autojunk=False).get_opcodes()):
        if tag == "equal":
            continue
        ours = new[j1:j2]
        places = [at for at in range(len(lines) - len(ours) + 1) if lines[at : at + len(ours)] == ours]
        if not ours or len(places) != 1:
            return None
        lines[places[0] : places[0] + len(ours)] = old[i1:i2]
    return "".join(lines)


@contextmanager
def _not_the_vaults_fault(store: VaultStore) -> Iterator[None]:
    """Separate errors of the user's file from those of an absent vault, for which jobs wait."""
    try:
        yield
    except (VaultUnavailable, EntryInvalid, PathRefused, OSError) as error:
        store.require_vault()
        raise OutsideUnavailable(str(error)) from error
