"""Normal forms in which texts are compared: one letter has several spellings in Unicode.

Half-width katakana (ｶﾞ), full-width Latin (ＡＰＩ), ligatures out of PDFs (ﬁ), and letters apart from their accents, as
macOS names files, would never meet their usual spelling. Only what is derived of a note is normalised, never the note.

Light module: hooks import it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

PIECE_CHARACTERS = 1_000


def normal_form(text: str) -> str:
    """Return `text` in NFKC (Unicode Standard Annex 15)."""
    if text.isascii():
        return text
    return _normalized("NFKC", text)


def composed(text: str) -> str:
    """Return `text` in NFC, for names: equivalent spellings become one, other characters stay."""
    if text.isascii():
        return text
    return _normalized("NFC", text)


def fingerprint(text: str) -> str:
    """Return the SHA-256, in hexadecimal, of the text in NFC with case folded and runs of white space made one space,
    to recognise a statement or a failure."""
    from hashlib import sha256  # No hook that runs at each event needs it.

    return sha256(" ".join(composed(text).split()).casefold().encode("utf-8", "surrogatepass")).hexdigest()


def _normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Normalise piece by piece: the time to sort accents in a row grows with the square of their number, and a
    stranger's text may consist of them. A piece ends before an ASCII character, which composes with nothing before it,
    where one is near."""
    from unicodedata import is_normalized, normalize

    pieces = []
    start = 0
    while start < len(text):
        end = start + PIECE_CHARACTERS
        last = min(len(text), end + PIECE_CHARACTERS)
        while end < last and text[end] > "\x7f":
            end += 1
        piece = text[start:end]
        pieces.append(piece if is_normalized(form, piece) else normalize(form, piece))
        start = end
    return "".join(pieces)
