"""Scrub the user's list of ideas, which lies beside the vault, through the boundary and on the user's request."""

from __future__ import annotations

from collections import Counter

from ...pipelines.scrub import Policy, findings, scrub
from ...runtime.settings import Settings
from ...vault.boundary import Consent
from ...vault.entry import hash_of
from ...vault.store import VaultStore
from ..boundary import outside_write, text_outside


def scrub_ideas_list(settings: Settings, store: VaultStore, *, apply: bool) -> Counter[str]:
    """Count the secrets in Ideas.md by kind; with `apply`, at the user's request, replace them.

    Raises EditConflict, OutsideUnavailable, VaultUnavailable.
    """
    path = str(settings.ideas_path)
    text = text_outside(store, path)
    if text is None:
        return Counter()
    if apply and (clean := scrub(text, Policy.SECRETS)) != text:
        outside_write(store, path, clean, hash_of(text), Consent.REQUESTED)
    return Counter(finding.kind for finding in findings(text, Policy.SECRETS))
