"""Passages that a user marked `<private>…</private>`: where they begin and end.

One answer for everybody who leaves them out: readers of transcripts, and the scrubber before every write.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"(?:<|&lt;)\s{0,3}(?P<closes>/?)\s{0,3}private(?:\s[^<>]{0,100}?)?\s{0,3}(?:>|&gt;)", re.IGNORECASE)


def may_hold(text: str) -> bool:
    """Could there be a tag, plain or escaped (`&lt;`)? Most texts have none, and a plain search spares them all else.

    The `i` is left out of the search: where case is ignored, the Turkish `İ` and `ı` are one as well.
    """
    return ("<" in text or "&" in text) and "vate" in text.lower()


def private_spans(text: str) -> list[tuple[int, int]]:
    """[start, end) of each passage with its tags, in order, not overlapping; what lies inside another is part of it.

    One that is never closed reaches to the end of the text: better to lose words than to keep what was to be left out.
    A closing tag without an opening one marks nothing. Linear in the length of the text.
    """
    spans: list[tuple[int, int]] = []
    opened: list[re.Match[str]] = []
    for tag in _TAG.finditer(text):
        if not tag.group("closes"):
            opened.append(tag)
        elif opened:
            start = opened.pop().start()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, tag.end()))
    # "the `<private>` tag": a name in a sentence, unless something closes it.
    unclosed = next((tag for tag in opened if not _is_quoted(text, tag)), None)
    if unclosed is None:
        return spans
    return [span for span in spans if span[0] < unclosed.start()] + [(unclosed.start(), len(text))]


def without_private(text: str) -> str:
    """The text without its private passages. One whose beginning was cut off is taken to begin with the text."""
    parts: list[str] = []
    position = 0
    for start, end in private_spans(text):
        parts.append(text[position:start])
        position = end
    rest = "".join([*parts, text[position:]])
    closing = [tag.end() for tag in _TAG.finditer(rest) if tag.group("closes") and not _is_quoted(rest, tag)]
    return rest[closing[-1] :] if closing else rest


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    return text[max(0, tag.start() - 1) : tag.start()] == "`" == text[tag.end() : tag.end() + 1]
