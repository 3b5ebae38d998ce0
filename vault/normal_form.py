"""The form in which two texts are compared: one letter has several spellings in Unicode.

Half-width katakana (ｶﾞ), full-width Latin (ＡＰＩ), ligatures out of PDFs (ﬁ), and letters apart from their accents, as
macOS names files, would never meet their usual spelling. Only what is derived of a note is normalised, never the note.

Light module: hooks import it.
"""

from __future__ import annotations


def normal_form(text: str) -> str:
    """`text` in NFKC (Unicode Standard Annex 15)."""
    if text.isascii():
        return text
    from unicodedata import is_normalized, normalize

    return text if is_normalized("NFKC", text) else normalize("NFKC", text)


def composed(text: str) -> str:
    """`text` in NFC, for names: equivalent spellings become one, other characters stay what they are."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)
