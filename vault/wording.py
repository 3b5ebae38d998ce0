"""Wording of messages: numbers with their nouns, texts on one line. Light module: hooks import it."""

from __future__ import annotations

CUT = " …"
"""Marks the end of a text that was cut."""
LEAST_LEFT_OUT = 16
"""Characters: a text longer by no more than this is not cut, since the mark would save nothing."""
_ENDS_WORD = frozenset(" \t\n\r\v\f\"'`")
_UNSPACED_FROM = "\u0e00"
"""From here on lie the scripts that put no blank between words (Thai, Chinese, Japanese). No secret has one of them."""


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 note`, `2 notes`. `many` is the plural if it is not `one` with an s: `1,200
    entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def one_line(text: str) -> str:
    """`text` with each run of white space made one space, and none at its ends."""
    return " ".join(text.split())


def cut(text: str, characters: int, leeway: int = LEAST_LEFT_OUT) -> str:
    """`text` on one line; if it is longer than about `characters`, cut after a word, with `CUT` appended.

    `leeway`: by so much it may be longer and is not cut.
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
    """At most the first `characters`, without a part of a word: of a secret that was cut in two the scrubber does not
    know the half. A single word that is longer than that is cut all the same."""
    if len(text) <= characters:
        return text
    end = characters
    if not _ends_word(text[end]):
        while end and not _ends_word(text[end - 1]):
            end -= 1
    return text[: end or characters]


def end_of(text: str, characters: int) -> str:
    """At most the last `characters`, likewise; from the beginning of a line if that is near: a secret may be known by
    the name before it."""
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
