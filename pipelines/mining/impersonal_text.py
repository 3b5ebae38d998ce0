# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Does a paragraph speak in anybody's voice, or is it a text that the user passed on?

Review comments, tickets and answers of other tools are pasted without a mark. They say "should" and "consider" as users
do, so modal verbs are no voice. What tells them is that nobody speaks and nobody is spoken to, in finished sentences.
"""

from __future__ import annotations

import functools
import re

from .common_patterns import FOR_GOOD, REPLIES, cue
from .rule_certainty import WORK_ORDER
from .standing_rules import standing_rule

LEAST_WORDS = 25
"""Of a paragraph of one sentence."""
WRAPPED_CHARS = 60
"""A line of so many characters may go on in the next one; a shorter one without a full stop is a note or a heading."""

_SPEAKS = cue(
    rf"""\bi\b(?!\.\s?e\b) | \b(?:i['’]\w+|we|we['’]\w+|you|you['’]\w+|me|my|mine|our|ours|us|your|yours|let['’]?s|please|pls|plz)\b
      | ^\W*(?:hi|hello|hey|thanks|thank\ you|thx|yes|yep|yeah|no|nope|nah|ok|okay|sure|wait|stop|wrong|right|great|good|nice|perfect|cool|actually|sorry|oh|hm+|btw)\b
      | ^\W*{REPLIES}
      | {FOR_GOOD}
      | [?😀-🙏🌀-🗿🤀-🧿🚀-🛿]"""
)
_BEGINS = re.compile(r"[\s>*•-]*[A-Z`]")
_ENDS = re.compile(r"[.!…:][\"'”’)\]*_`]*\s*\Z")
_NEXT_SENTENCE = re.compile(r"[.!…][\"'”’)\]*_`]*\s+(?=[A-Z`\"'(])")
_ENGLISH = cue(r"\b(?:the|an?|is|are|be|should|must|to|of)\b")
"""Of other languages the words by which somebody speaks are not known."""


def paragraph_at(text: str, start: int, end: int) -> str:
    """The lines around [start, end), up to the blank ones."""
    high = end
    for line in text[end:].splitlines(keepends=True):
        if not line.strip() and high > end:
            break
        high += len(line)
    return (paragraph_before(text, start) + text[start:high]).strip()


def paragraph_before(text: str, start: int) -> str:
    """The lines before `start`, up to the blank one."""
    low = start
    for line in reversed(text[:start].splitlines(keepends=True)):
        if not line.strip() and line.endswith(("\n", "\r")):
            break
        low -= len(line)
    return text[low:start]


@functools.lru_cache(maxsize=8)
def in_nobodys_voice(paragraph: str) -> bool:
    """Is it, by its look, a text that was passed on? One that begins with a standing rule is an order to the agent."""
    if not _BEGINS.match(paragraph) or _SPEAKS.search(paragraph) or not _ENGLISH.search(paragraph):
        return False
    lines = paragraph.splitlines()
    if not _ENDS.search(paragraph) or any(len(line) < WRAPPED_CHARS and not _ENDS.search(line) for line in lines[:-1]):
        return False
    sentences = _NEXT_SENTENCE.split(paragraph)
    if len(sentences) < 2 and len(paragraph.split()) < LEAST_WORDS:
        return False
    return standing_rule(" ".join(sentences[0].split())) is None


_REPROVES = cue(
    r"^\W*(?:that|this|it)(?:['’]s|\ is|\ was)\ (?:(?:just|still|simply|completely|totally|really)\ )*(?:wrong|incorrect|unacceptable|bad|not\ (?:right|ok|okay|good|correct|how|what|acceptable|true))\b"
)


def reproves(paragraph: str) -> bool:
    """Does it open with what one says to who did something wrong? Then the user may speak, or a reviewer."""
    return _REPROVES.match(paragraph) is not None


def orders_something(paragraph: str) -> bool:
    """Does it open with an order? Then the user may speak, or a reviewer whose comment was pasted."""
    return WORK_ORDER.match(paragraph) is not None
