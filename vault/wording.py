"""Word messages: numbers with their nouns, texts on one line. Light module: hooks import it."""

from __future__ import annotations

CUT = " …"
"""Marks the end of a text that was cut."""
LEAST_LEFT_OUT = 16
"""A text that is longer by at most this many characters is not cut, since the mark would save nothing."""
_ENDS_WORD = frozenset(" \t\n\r\v\f\"'`")
_UNSPACED_FROM = "\u0e00"
"""The first letter of the scripts without blanks between words (Thai, Chinese, Japanese). No secret has one of them."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 note`, `2 notes`. `many`: a plural that is not `one` with an s, as in `1,200
    entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def one_line(text: str) -> str:
    """Return `text` with each run of white space made one space, and none at its ends."""
    return " ".join(text.split())


def cut(text: str, characters: int, leeway: int = LEAST_LEFT_OUT) -> str:
    """Return `text` on one line; if longer than about `characters`, cut after a word, with `CUT` appended.

    `leeway`: so many more characters are allowed before it is cut.
    """
    line = one_line(text)
    if len(line) <= characters + leeway:
        return line
    kept = line[: characters + 1].rpartition(" ")[0]
    if len(kept) < characters // 2:  # One long word, such as an address, fills most of the line.
        kept = line[:characters]
    return (kept.rstrip(" ,;:.-–—(") or kept) + CUT


def _ends_word(character: str) -> bool:
    return character in _ENDS_WORD or character >= _UNSPACED_FROM


def beginning_of(text: str, characters: int) -> str:
    """Return at most the first `characters` of a text, cut between words.

    The scrubber does not recognise half a secret. A single word that is longer is cut all the same.
    """
    if len(text) <= characters:
        return text
    end = characters
    if not _ends_word(text[end]):
        while end and not _ends_word(text[end - 1]):
            end -= 1
    return text[: end or characters]


def end_of(text: str, characters: int) -> str:
    """Return at most the last `characters` of a text, cut between words; at a line's beginning if one is near.

    The name before a secret, on the same line, may identify it.
    """
    if len(text) <= characters:
        return text
    start = len(text) - characters
    line = text.find("\n", start - 1, start + characters // 4)
    if line >= 0:
        return text[line + 1 :]
    if not _ends_word(text[start - 1]):
        while start < len(text) and not _ends_word(text[start]):
            start += 1
    return text[start:] or text[-characters:]
