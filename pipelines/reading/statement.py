"""Choose the statement of a memory: as many of the user's own sentences as can be understood alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...runtime.safe_text import visible
from ..candidate import without_opening
from ..likeness import content_words
from .forms import explicit_form, holds_for_now, without_request
from .sentences import Sentence

MOST_CHARS = 600
_REFERS = re.compile(
    r"^(?:(?:and|but|so|because|also|then)\s+)?(?:it|it['’]?s|this|that|that['’]?s|these|those|they|them|he|she|same"
    r"|there|the ones?)\b"
    r"|\b(?:that way|that one|this one|like this|like that|above|below)\b[\s.!]*$"
    r"|^(?!.*(?:[,;]|\b(?:so|if|when|because)\b)).*\b(?:it|them)\b[\s.!]*$",
    re.IGNORECASE | re.DOTALL,
)
"""Matches a sentence that refers to another one. An "it" at the end of several clauses mostly means what one of them
names: labellers quoted 1 of 7 such statements together with the sentence before it, and 5 of 8 of one clause."""
_BACK = re.compile(r"(?:it|it['’]?s|this|that|that['’]?s|these|those|they|them)\b", re.IGNORECASE)
_BRACKETED = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*\w[.!]?)\)[.!]?")
LEAST_WORDS = 4
"""A sentence of fewer words needs the one beside it."""


def needs_neighbour(sentence: str) -> bool:
    """Whether a sentence says too little by itself, or refers to another one."""
    return len(sentence.split()) < LEAST_WORDS or _refers(sentence)


def _refers(sentence: str) -> bool:
    return _REFERS.search(without_opening(sentence) or sentence.strip()) is not None


def rarely_lasts(said: str) -> bool:
    """Whether words of this kind are mostly no lasting rule: a question, what says that it holds for the moment, two or
    three words ("No, use pnpm.") without a form ("always use pnpm"), or only a reference ("remember that"). See ADR 34.
    """
    words = statement(said)
    is_brief = words.isascii() and len(words.split()) < LEAST_WORDS and explicit_form(said) is None
    return is_brief or not content_words(words) or holds_for_now(said) or words.endswith(("?", "？"))


def thought(text: str, parts: Sequence[Sentence], chosen: int, is_workflow: bool = False) -> tuple[int, int]:
    """Return the range [first, last) of sentences that are needed to understand the chosen one.

    A sentence that refers to another one needs the one before it, else the one after it. One that ends in a colon needs
    the next one, or the whole list after it. An item of a list stands alone, unless it is a workflow's or refers to
    another one: then it needs its whole list.
    """
    first, last = chosen, chosen + 1
    sentence = parts[chosen].of(text)
    if parts[chosen].is_item:
        if is_workflow or _refers(sentence):
            first, last = _items(parts, chosen)
            if first > 0 and _names_list(text, parts[first - 1], parts[first]):
                first -= 1
    elif needs_neighbour(sentence):
        before = chosen > 0 and parts[chosen].paragraph - parts[chosen - 1].paragraph <= 1
        behind = last < len(parts) and parts[last].paragraph == parts[chosen].paragraph
        if before and without_opening(parts[chosen - 1].of(text)):
            first -= 1
        elif behind:
            last += 1
    if parts[last - 1].of(text).endswith(":") and last < len(parts):
        last = _items(parts, last)[1] if parts[last].is_item else last + 1
    if parts[last - 1].end - parts[first].start > MOST_CHARS:
        return chosen, chosen + 1
    return first, last


def end_of_idea(text: str, parts: Sequence[Sentence], last: int) -> int:
    """Return where an idea up to `last` ends: the sentences of its paragraph that speak of it belong to it."""
    paragraph = parts[last - 1].paragraph
    while last < len(parts) and parts[last].paragraph == paragraph and _BACK.match(parts[last].of(text)):
        last += 1
    return last


def whole_fix(text: str, parts: Sequence[Sentence], first: int, last: int) -> tuple[int, int]:
    """Return the range with the sentences before and after it in its paragraph: what was wrong, and what cured it."""
    paragraph = parts[first].paragraph
    before = first > 0 and parts[first - 1].paragraph == paragraph and without_opening(parts[first - 1].of(text))
    wider = first - 1 if before else first, last + (last < len(parts) and parts[last].paragraph == paragraph)
    return wider if parts[wider[1] - 1].end - parts[wider[0]].start <= MOST_CHARS else (first, last)


def _items(parts: Sequence[Sentence], chosen: int) -> tuple[int, int]:
    """Return the range [first, last) of the list with the chosen item."""
    first = last = chosen
    while first > 0 and parts[first - 1].is_item:
        first -= 1
    while last < len(parts) and parts[last].is_item:
        last += 1
    return first, last


def _names_list(text: str, line: Sentence, item: Sentence) -> bool:
    """Whether a line names the list that begins with the item: by its colon, or right above it without a stop."""
    between = text[line.end : item.start]
    return line.of(text).endswith(":") or (between.count("\n") == 1 and line.of(text)[-1] not in ".!?…。！？,;")


def statement(text: str) -> str:
    """Put a text on one line, without invisible characters, opening words ("Okay. Remember: …") and brackets around it
    all; '' if nothing of it can be seen."""
    line = " ".join(visible(" ".join(text.split())).split())
    if (bracketed := _BRACKETED.fullmatch(line)) is not None:
        line = bracketed[1]
    return without_request(without_opening(line) or line)


def headline(sentence: str) -> str:
    """Return the best sentence of several as their title; '' if it says too little by itself or announces a list."""
    line = statement(sentence)
    return "" if len(line.split()) < LEAST_WORDS or _BACK.match(line) or line.endswith(":") else line
