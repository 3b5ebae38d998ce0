"""Deciding whether two statements say the same: by wording, and by meaning where a model answers. Pure.

Merging two rules that differ in one word that matters loses one of them, so likeness alone does not decide:
what contradicts, or names another number, file or tool, is never the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import ceil
from typing import TypeVar

from ..vault.evidence import SAID
from ..vault.normal_form import normal_form
from .foreign_language import is_negative_in_its_language
from .reversal import content_words, is_negative, reverses

MAX_STATEMENT_CHARACTERS = 600
LEAST_SHARED = 0.34
"""Least share of common words for a likeness in meaning to count."""
LEAST_OWN_WORDS = 4
"""Of so many words that say what, a statement is compared without the question that it answers."""
_TELLING = re.compile(
    r"`[^`]+`|\[\[[^\]]+\]\]|\S*[\d_/\\#@=<>]\S*|\b\w+[.-]\w[\w.-]*|--?\w[\w-]*"
    r"|\b(?:before|after|until|unless|except|without)\b",
    re.IGNORECASE,
)
# Verbs and praise in which two ways to say one thing differ. Those that name an act (run, push, ask) are not here.
_INTERCHANGEABLE = frozenset(
    """
    keep make writ put get come like love try ensur remember set give take let do be thing way time good nic
    really very well bit stuff want plea stick alway
    """.split()  # noqa: SIM905  a list of literals would take a page
)
_INFLECTION_RATIO = 0.75
"""Likeness from which on two words are forms of one: linter and lint, but not Monday and Tuesday."""
_HEADING = re.compile(r"\A\s{0,3}#\s[^\n]*(?:\n+|\Z)")

T = TypeVar("T")


@dataclass(frozen=True)
class LikenessLimits:
    """Thresholds of likeness, from the settings."""

    wording: float = 0.8
    """Least share of common words."""
    meaning: float = 0.88
    """Least cosine of the two vectors."""


@dataclass(frozen=True)
class Wording:
    """The parts of a statement that are compared."""

    text: str
    words: frozenset[str]
    telling: frozenset[str]
    """Numbers, paths, options, code, links: what must be equal in two statements that say the same."""
    negative: bool


def wording_of(text: str) -> Wording:
    """Split a statement into its parts."""
    text = normal_form(text)
    telling = frozenset(match.group().strip("`'\"().,;:!?").lower() for match in _TELLING.finditer(text))
    words = content_words(text)
    kept = words - _INTERCHANGEABLE
    negative = is_negative(text) or is_negative_in_its_language(text)
    return Wording(text, kept if len(kept) > 1 else words, telling - {""}, negative)


def statement_of(body: str) -> str:
    """Extract the first paragraph of a note below its heading: its statement, of a sentence or two."""
    text = _HEADING.sub("", body.replace("\r\n", "\n"), count=1).strip()
    paragraph = text.split("\n\n", 1)[0] or body.strip().lstrip("# ").split("\n", 1)[0]
    return " ".join(paragraph.split())[:MAX_STATEMENT_CHARACTERS]


_CONTEXT = re.compile(r"\s*\((?:when refusing|asked:|in answer to:|about) [^\n]*\)\Z")


_OCCASION = re.compile(rf"(?:\(|^{SAID})(?:when refusing |asked: |in answer to: )", re.MULTILINE)


def tells_occasion(body: str) -> bool:
    """Whether a mined note tells what the user answered, in its statement or below it."""
    return _OCCASION.search(body) is not None


def own_words(statement: str) -> str:
    """Remove the context that the miner appended to a statement."""
    return _CONTEXT.sub("", statement)


_QUOTED = re.compile(r"^> ?(.*)$", re.MULTILINE)


def is_reworded(body: str) -> bool:
    """Is the statement of a mined note not among the words that it quotes? Then a model, or the user, put it so."""
    quoted, own = (" ".join(text.lower().split()) for text in (quotes_of(body), own_words(statement_of(body))))
    return bool(quoted) and own not in quoted


def quotes_of(body: str) -> str:
    """What a note quotes, on one line; '' for nothing."""
    return " ".join(_QUOTED.findall(body))


def wording_of_saying(statement: str) -> Wording:
    """The parts of a mined statement that are compared: what it answers only where its own words say too little.

    The same thing is said again after another question.
    """
    own = wording_of(own_words(statement))
    return own if len(own.words) >= LEAST_OWN_WORDS else wording_of(statement)


def shared_words(one: Wording, other: Wording) -> float:
    """Share of common words in all words; 0 to 1."""
    both = one.words | other.words
    return len(one.words & other.words) / len(both) if both else 0.0


def filter_words(wording: Wording, share: float) -> list[str]:
    """List words of which every statement with this share of common words has one: prefix filtering of set joins.

    Long words first, since they are rarer: few statements are compared.
    """
    ordered = sorted(wording.words, key=lambda word: (-len(word), word))
    # 0.34 of 50 is a little more than 17 in floating point, and 17 shared words are enough.
    least = ceil(share * len(ordered) - 1e-9)
    return ordered[: len(ordered) - least + 1] if ordered else []


def may_be_same(one: Wording, other: Wording) -> bool:
    """Whether two statements may be the same if their vectors are close enough."""
    # The cheapest first: in a full inbox each is compared with each, and nearly all share nothing.
    if one.telling != other.telling or one.negative != other.negative or shared_words(one, other) < LEAST_SHARED:
        return False
    return not _is_substitution(one, other) and not reverses(one.text, other.text)


def _is_substitution(one: Wording, other: Wording) -> bool:
    """Whether each has a word that the other lacks. Monday for Tuesday, unit for integration: that is another rule,
    and a model finds them nearly the same."""
    left, right = one.words - other.words, set(other.words - one.words)
    unmatched = 0
    for word in sorted(left):
        twin = next((candidate for candidate in sorted(right) if _are_forms(word, candidate)), None)
        if twin is None:
            unmatched += 1
        else:
            right.discard(twin)
    return unmatched > 0 and bool(right)


def _are_forms(one: str, other: str) -> bool:
    return one[:3] == other[:3] and SequenceMatcher(None, one, other).ratio() >= _INFLECTION_RATIO


def is_same(one: Wording, other: Wording, meaning: float | None, limits: LikenessLimits) -> bool:
    """Whether two statements say the same. `meaning` is the cosine of their vectors, None without a model."""
    if not may_be_same(one, other):
        return False
    if shared_words(one, other) >= limits.wording:
        return True
    return meaning is not None and meaning >= limits.meaning


def grouped(items: Sequence[T], same: Callable[[T, T], bool]) -> list[list[T]]:
    """Group items that say the same as the first of the group, in the order of the items."""
    groups: list[list[T]] = []
    for item in items:
        home = next((group for group in groups if same(group[0], item)), None)
        if home is None:
            groups.append([item])
        else:
            home.append(item)
    return groups
