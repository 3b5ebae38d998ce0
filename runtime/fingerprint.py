"""Fingerprints of texts, to recognise a statement or a failure."""

from __future__ import annotations

import hashlib

from .normal_form import composed


def fingerprint(text: str) -> str:
    """Return the SHA-256, in hexadecimal, of the text in NFC with case folded and runs of white space made one
    space."""
    return hashlib.sha256(" ".join(composed(text).split()).casefold().encode("utf-8", "surrogatepass")).hexdigest()
