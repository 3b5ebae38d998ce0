"""Scrub the user's own list of ideas, which lies beside the vault: written through the boundary, on the user's word."""

from __future__ import annotations

from collections import Counter

from ...pipelines.scrub import Policy, findings, scrub
from ...runtime.settings import Settings
from ...vault.boundary import Consent
from ...vault.store import VaultStore
from ..boundary import outside_write, text_outside
from ..journal import hash_of


def scrub_ideas_list(settings: Settings, store: VaultStore, *, apply: bool) -> Counter[str]:
    """Secrets in Ideas.md by kind; with `apply`, which the user has asked for, they are replaced.

    Raises EditConflict, OutsideUnavailable, VaultUnavailable.
    """
    path = str(settings.ideas_path)
    text = text_outside(store, path)
    if text is None:
        return Counter()
    if apply and (clean := scrub(text, Policy.SECRETS)) != text:
        outside_write(store, path, clean, hash_of(text), Consent.REQUESTED)
    return Counter(finding.kind for finding in findings(text, Policy.SECRETS))
