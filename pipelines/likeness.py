"""How two statements are related: the same in other words, one against the other, or neither. Pure.

Likeness alone does not decide: "Deploy on Mondays" and "Deploy on Thursdays" are nearer in meaning than most ways to
say one thing, and merging them would lose one. So three things are compared: how near the statements are, by the
cosine of their vectors or else by their common words; which words stand behind a negation; and what only one of them
has. What contradicts is never decided, the user is asked. The thresholds were chosen on half of the pairs in
`tests/review/data/statement_pairs.tsv`.
"""

# ruff: noqa: SIM905  lists of literals would take pages

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache
from typing import TypeVar

from ..runtime.function_words import ENGLISH
from ..runtime.normal_form import normal_form
from ..vault.evidence import SAID

MAX_STATEMENT_CHARACTERS = 600
LEAST_OWN_WORDS = 4
"""Of so many words that say what, a statement is compared without the question that it answers."""
NEAR = 0.6
"""Cosine from which on two statements are about one matter."""
NEAR_WORDS = 1 / 3
"""Share of common words that stands for it where there is no vector."""
HALF = 0.5
LEAST_SHARED = 0.15
"""Of statements that share fewer words the vectors are not asked for."""
SUBSTITUTED = 0.8
"""Cosine from which on two statements are the same although each has a word that the other lacks."""
MOST_VALUE_WORDS = 2
"""So many words in a row are one value: "merge commit", "Tuesday mornings"."""

_TOKEN = re.compile(r"--?[a-z]\w[\w-]*|[a-z0-9\u00c0-\u04ff][\w+#./-]*|[^\x00-\x7f\s]+|[,;:!?()]")
_CONTRACTION = re.compile(r"\b(?:i|you|we|they|he|she|it|that|there|here|who|what|let)['’](?:d|ll|m|re|ve|s)\b")
"""Empty words; without the apostrophe some of them would be others: "I'd" is no "id", "she'll" no "shell"."""
_APOSTROPHE = re.compile(r"(?<=[a-z])['’](?=[a-z])")
_FORMS = (
    (re.compile(r"\bno (?=\w+ than\b)"), ""),  # "no longer than 40 lines" is a limit, not a negation.
    (re.compile(r"\bno (?:longer|more)\b"), "no"),
    (re.compile(r"\b(?:instead of|rather than)\b"), "without"),
    (re.compile(r"\b(prefer\w*\b[^.,;:!?]{1,80}?) over\b"), r"\1 without"),
    (re.compile(r"\b((?:switch|mov|migrat|chang)\w*) from (\S+) to\b"), r"\1 without \2, to"),
    (re.compile(r"\.(?=\s|\Z)"), " ; "),
)
"""Choices and negations in one form each, and the ends of sentences: what stands behind "without" is not wanted."""
_NEGATIONS = frozenset(
    "never no not dont doesnt didnt isnt arent shouldnt mustnt wont cant cannot avoid stop without"
    " nie niemals nicht kein keine keinen jamais pas nunca nao não никогда не nigdy nooit niet geen aldrig inte mai non"
    " asla".split()
)
_NEGATIVE_SCRIPTS = re.compile(r"不|没|勿|别|別|禁|ない|ません|지 ?마|않|금지|안 ")
"""Where words stand without spaces, a negation is a part of one."""
_CANCELS = frozenset("without until unless".split())
"""Behind a negation they order something: "never push without the tests"."""
_CONDITIONS = frozenset("for when whenever if while during unless before after until because since".split())
"""What stands behind is for what, or when, a rule holds: with another one both hold."""
_ORDERS = frozenset("before after until than into to".split())
"""Two things that change places around them make another rule."""
# Words of rules that say how, not what.
_RULE_WORDS = frozenset(
    "always please ever use using used prefer want should must need code repo project actually instead longer"
    " anymore only just make sure rather ok okay yes back switch switched go lets stick may remember mind".split()
)
# Praise and verbs in which two ways to say one thing differ. Those that name an act (run, push, ask) are not here.
_INTERCHANGEABLE = frozenset(
    "keep make writ put get come like love try ensur set give take let do be thing way time good nic really very well"
    " bit stuff plea".split()
)
_TELLING = re.compile(r"`[^`]+`|\[\[[^\]]+\]\]|\S*[\d_/\\#@=<>]\S*|\b\w+[.-]\w[\w.-]*|--?\w[\w-]*")
_INFLECTION_RATIO = 0.75
"""Likeness from which on two words are forms of one: linter and lint, but not Monday and Tuesday."""
LEAST_STEM = 5
_THIS_PROJECT = re.compile(r"\b(?:this|our|here)\b", re.IGNORECASE)
_CODE_NAME = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b|\b[A-Za-z]\w{4,}(?=\(\))")
_HEADING = re.compile(r"\A\s{0,3}#\s[^\n]*(?:\n+|\Z)")
_CONTEXT = re.compile(r"\s*\((?:when refusing|asked:|in answer to:|about) [^\n]*\)\Z")
_OCCASION = re.compile(rf"(?:\(|^{SAID})(?:when refusing |asked: |in answer to: )", re.MULTILINE)
_QUOTED = re.compile(r"^> ?(.*)$", re.MULTILINE)

_NONE: frozenset[str] = frozenset()
T = TypeVar("T")


class Relation(Enum):
    """How one statement stands to another."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    """Near in meaning, but against it, or with another value: which of them holds, only the user knows."""
    OTHER = "other"


@dataclass(frozen=True)
class LikenessLimits:
    """From which likeness on two statements are one memory."""

    wording: float = 0.8
    """Least share of common words."""
    meaning: float = 0.75
    """Least cosine of the two vectors."""


@dataclass(frozen=True)
class Wording:
    """The parts of a statement that are compared."""

    text: str
    order: tuple[str, ...]
    """Stems of the words that say what, in their order."""
    words: frozenset[str]
    telling: frozenset[str]
    """Numbers, paths, options, code, links: what must be equal in two statements that say the same."""
    wanted: frozenset[str]
    refused: frozenset[str]
    """Words behind a negation."""
    conditional: frozenset[str]
    """Words that say when, or for what, it holds."""
    behind: tuple[tuple[str, frozenset[str]], ...]
    """What stands behind each of the words in `_ORDERS`."""


@lru_cache(maxsize=8192)
def wording_of(text: str) -> Wording:
    """Split a statement into its parts."""
    text = normal_form(text[:MAX_STATEMENT_CHARACTERS])
    telling = frozenset(match.group().strip("`'\"().,;:!?").lower() for match in _TELLING.finditer(text))
    order: list[str] = []
    wanted: set[str] = set()
    refused: set[str] = set()
    conditional: set[str] = set()
    behind: dict[str, frozenset[str]] = {}
    for clause in _clauses(text):
        negated = clause_refuses = _NEGATIVE_SCRIPTS.search(" ".join(clause)) is not None
        is_condition, turned, said = False, "", set[str]()
        for token in clause:
            if token in _CANCELS and clause_refuses:
                wanted |= said
                refused -= said
                negated = clause_refuses = False
                is_condition = True
            elif token in _NEGATIONS:
                negated = clause_refuses = True
            is_condition |= token in _CONDITIONS
            turned = token if token in _ORDERS else turned
            stem = _content(token)
            if stem:
                order.append(stem)
                said.add(stem)
                (refused if negated else wanted).add(stem)
                if is_condition:
                    conditional.add(stem)
                if turned:
                    behind[turned] = behind.get(turned, frozenset()) | {stem}
    kept = frozenset(order) - _INTERCHANGEABLE
    words = kept if len(kept) > 1 else frozenset(order)
    return Wording(
        text,
        tuple(order),
        words,
        telling - {""},
        frozenset(wanted),
        frozenset(refused - wanted),
        frozenset(conditional),
        tuple(behind.items()),
    )


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that say what, not how. "don't" is one word, however it is typed."""
    return frozenset(wording_of(text).order)


def _clauses(text: str) -> list[list[str]]:
    text = _APOSTROPHE.sub("", _CONTRACTION.sub(" ", text.lower()))
    for form, plain in _FORMS:
        text = form.sub(plain, text)
    clauses: list[list[str]] = [[]]
    for token in _TOKEN.findall(text):
        if token in ",;:!?()" or token == "but":
            clauses.append([])
        else:
            clauses[-1].append(token)
    return clauses


def _content(token: str) -> str:
    """Its stem, '' for a word that says nothing by itself."""
    bare = token.rstrip("./-")
    return "" if not bare or bare in ENGLISH or bare in _RULE_WORDS or bare in _NEGATIONS else _stem(bare)


def _stem(word: str) -> str:
    """The word without its ending: further reduced than for a search, since both rules are reduced alike."""
    for ending in ("ing", "es", "s", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            stem = word[: -len(ending)].rstrip("e")
            # "committing" is "commit"; "passing" is "pass".
            return stem[:-1] if stem[-2:-1] == stem[-1:] and stem[-1:] not in "lsz" else stem
    return word.rstrip("e") if len(word) > 4 else word


def relation(one: Wording, other: Wording, cosine: float | None, limits: LikenessLimits = LikenessLimits()) -> Relation:
    """How they are related. `cosine`: of their vectors, None where there is no model."""
    shared = shared_words(one, other)
    near = shared >= NEAR_WORDS if cosine is None else cosine >= NEAR
    opposite = (
        (near and (_negates(one, other) or _negates(other, one))) or _replaces(one, other) or _replaces(other, one)
    )
    turned = shared >= limits.wording and _changes_places(one, other)
    if opposite != turned:
        return Relation.CONTRADICTS
    if not near:
        return Relation.OTHER
    left, right = _unmatched(one, other)
    if left and right and _is_other_value(one, other, left, right):
        # Without a vector: one word, of a rule of which most is common or to which it is the object.
        is_object = {one.order[-1]} == left and {other.order[-1]} == right
        if cosine is not None or (len(left) == len(right) == 1 and (shared >= HALF or is_object)):
            return Relation.CONTRADICTS
    if one.telling != other.telling:
        return Relation.OTHER
    least = max(limits.meaning, SUBSTITUTED) if left and right else limits.meaning
    if (cosine is None or cosine < least) and (shared < limits.wording or (left and right)):
        return Relation.OTHER
    if len(one.refused & other.wanted | one.wanted & other.refused) > len(
        one.wanted & other.wanted | one.refused & other.refused
    ):
        return Relation.CONTRADICTS
    return Relation.SAME if bool(one.refused) == bool(other.refused) else Relation.OTHER


def _negates(one: Wording, other: Wording) -> bool:
    """Does the other want what this refuses?"""
    return bool(one.refused) and one.refused <= other.wanted


def _replaces(one: Wording, other: Wording) -> bool:
    """Is it a choice and nothing else, and does the other want what is not wanted any more, whatever else it says?"""
    chosen = one.wanted - one.conditional
    return _negates(one, other) and 0 < len(chosen) <= MOST_VALUE_WORDS and not chosen & other.words


def _changes_places(one: Wording, other: Wording) -> bool:
    """Does what stands behind "before" or the like in one stand before it in the other, and the reverse?"""
    left, right = dict(one.behind), dict(other.behind)
    if left.get("before", _NONE) & right.get("after", _NONE) or left.get("after", _NONE) & right.get("before", _NONE):
        return True
    return any(
        (left[word] - right[word]) & other.words and (right[word] - left[word]) & one.words
        for word in left.keys() & right.keys()
    )


def _unmatched(one: Wording, other: Wording) -> tuple[set[str], set[str]]:
    """The words that only one of them has, in no form."""
    left, right = set(one.words - other.words), set(other.words - one.words)
    for word in sorted(left):
        twin = next((candidate for candidate in sorted(right) if _are_forms(word, candidate)), None)
        if twin is not None:
            left.discard(word)
            right.discard(twin)
    return left, right


def _are_forms(one: str, other: str) -> bool:
    # Not numbers; and in Turkish an ending says no.
    if not (f"{one}{other}".isascii() and one.isalpha() and other.isalpha()) or one[:3] != other[:3]:
        return False
    short, long = sorted((one, other), key=len)
    is_cut = len(short) >= LEAST_STEM and long.startswith(short)  # config, configuration
    return is_cut or SequenceMatcher(None, one, other).ratio() >= _INFLECTION_RATIO


def _is_other_value(one: Wording, other: Wording, left: set[str], right: set[str]) -> bool:
    """Do they differ in one value of which one can hold? Two prohibitions both hold, and so do rules for two cases."""
    if bool(one.refused) != bool(other.refused) or (left <= one.refused and right <= other.refused):
        return False
    return all(
        len(words) <= MOST_VALUE_WORDS and not words & wording.conditional and _is_row(wording.order, words)
        for wording, words in ((one, left), (other, right))
    )


def _is_row(order: Sequence[str], words: set[str]) -> bool:
    places = [at for at, word in enumerate(order) if word in words]
    return places[-1] - places[0] < len(words)


def shared_words(one: Wording, other: Wording) -> float:
    """Share of common words in all words; 0 to 1."""
    both = one.words | other.words
    return len(one.words & other.words) / len(both) if both else 0.0


def may_be_same(one: Wording, other: Wording) -> bool:
    """Whether two statements may be the same if their vectors are close enough."""
    # The cheapest first: in a full inbox each is compared with each, and nearly all share nothing.
    return one.telling == other.telling and shared_words(one, other) >= LEAST_SHARED


def is_same(one: Wording, other: Wording, meaning: float | None, limits: LikenessLimits) -> bool:
    """Whether two statements say the same. `meaning` is the cosine of their vectors, None without a model."""
    return relation(one, other, meaning, limits) is Relation.SAME


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


def without_heading(body: str) -> str:
    """Extract a note's text below its heading."""
    return _HEADING.sub("", body.replace("\r\n", "\n"), count=1).strip()


def statement_of(body: str) -> str:
    """Extract the first paragraph of a note below its heading: its statement, of a sentence or two."""
    text = without_heading(body)
    paragraph = text.split("\n\n", 1)[0] or body.strip().lstrip("# ").split("\n", 1)[0]
    return " ".join(paragraph.split())[:MAX_STATEMENT_CHARACTERS]


def tells_occasion(body: str) -> bool:
    """Whether a mined note tells what the user answered, in its statement or below it."""
    return _OCCASION.search(body) is not None


def own_words(statement: str) -> str:
    """Remove the context that the miner appended to a statement."""
    return _CONTEXT.sub("", statement)


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


def speaks_of_this_project(statement: str) -> bool:
    """Does it speak of the project in which it is said, without naming it?"""
    return _THIS_PROJECT.search(statement) is not None


def of_two_projects(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    """Do two statements in like words speak of two projects? Each with its project's slug, None where it has none.

    "In this repo, never squash." said in two of them is a rule of each, and no rule for a third.
    """
    return one[1] != other[1] and any(
        project is not None and speaks_of_this_project(statement) for statement, project in (one, other)
    )


def code_names(text: str) -> frozenset[str]:
    """The functions and variables that a text names, in one spelling. Findings that share one are about one problem."""
    return frozenset(match.group().replace("_", "").casefold() for match in _CODE_NAME.finditer(text))
