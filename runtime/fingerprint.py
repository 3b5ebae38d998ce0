"""The fingerprint of a text: by it a statement or a failure is known again."""

from __future__ import annotations

import hashlib

from .normal_form import composed


def fingerprint(text: str) -> str:
    """SHA-256, hexadecimal, of the text in NFC with case folded and runs of white space made one space."""
    return hashlib.sha256(" ".join(composed(text).split()).casefold().encode("utf-8", "surrogatepass")).hexdigest()
