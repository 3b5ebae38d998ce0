"""Decide whether two statements say the same, contradict each other, or neither. Pure.

Similarity alone cannot tell: "Deploy on Mondays" and "Deploy on Thursdays" are nearer in meaning than most pairs of
wordings for one thing. So three things are compared: how similar the statements are (cosine of their vectors, or common
words without vectors), which words are negated, and which words only one of them has. A contradiction is put to the
user. The thresholds were chosen on half of the pairs in `tests/review/data/statement_pairs.tsv`.
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
"""A statement with as many content words is compared without the question that it answers."""
NEAR = 0.6
"""Least cosine of two statements about the same subject."""
NEAR_WORDS = 1 / 3
"""The same without vectors, as a share of common words."""
HALF = 0.5
LEAST_SHARED = 0.15
"""Statements with a smaller share of common words are not compared by their vectors."""
SUBSTITUTED = 0.8
"""Least cosine of two statements that are the same although each has a word that the other lacks."""
SAME_WORDING = 0.8
"""Least share of common words of two statements that say the same."""
SAME_MEANING = 0.75
"""Least cosine of two statements that say the same."""
MOST_VALUE_WORDS = 2
"""Most words of one value: "merge commit", "Tuesday mornings"."""

_TOKEN = re.compile(r"--?[a-z]\w[\w-]*|[a-z0-9\u00c0-\u04ff][\w+#./-]*|[^\x00-\x7f\s]+|[,;:!?()]")
_CONTRACTION = re.compile(r"\b(?:i|you|we|they|he|she|it|that|there|here|who|what|let)['’](?:d|ll|m|re|ve|s)\b")
"""Removed first, since without its apostrophe "I'd" would be "id" and "she'll" would be "shell"."""
_APOSTROPHE = re.compile(r"(?<=[a-z])['’](?=[a-z])")
_FORMS = (
    (re.compile(r"\bno (?=\w+ than\b)"), ""),  # "no longer than 40 lines" is a limit, not a negation.
    (
        re.compile(r"\b(\S+) (?:is|are) (?:(?:no longer|not) (?:used|in use|allowed)|out|gone|banned|deprecated)\b"),
        r"without \1",
    ),
    (re.compile(r"\bany ?more\b"), ""),
    (re.compile(r"\bno (?:longer|more)\b"), "no"),
    (re.compile(r"\breplac\w* (\S+) (?:with|by)\b"), r"without \1,"),
    (re.compile(r"\b(?:instead of|rather than|in place of|replaces)\b"), "without"),
    (re.compile(r"\b(prefer\w*\b[^.,;:!?]{1,80}?) over\b"), r"\1 without"),
    (re.compile(r"\b((?:switch|mov|migrat|chang)\w*) from (\S+) to\b"), r"\1 without \2, to"),
    (re.compile(r"\.(?=\s|\Z)"), " ; "),
)
"""Rewrites choices and negations to one form each, with "without" before what is not wanted."""
_NEGATIONS = frozenset(
    "never no not dont doesnt didnt isnt arent shouldnt mustnt wont cant cannot avoid stop without"
    " nie niemals nicht kein keine keinen jamais pas nunca nao não никогда не nigdy nooit niet geen aldrig inte mai non"
    " asla".split()
)
_NEGATIVE_SCRIPTS = re.compile(r"不|没|勿|别|別|禁|ない|ません|지 ?마|않|금지|안 ")
"""Negations in scripts without spaces between words."""
_CANCELS = frozenset("without until unless".split())
"""After a negation they ask for something: "never push without the tests"."""
_CONDITIONS = frozenset("for when whenever if while during unless before after until because since".split())
"""Words after which a rule says for what or when it holds; two rules that differ there both hold."""
_JOINS = frozenset("or nor and oder ou o и или".split())
_ORDERS = frozenset("before after until than into to".split())
"""A rule in which two things change places around one of these is another rule."""
# Words of rules that say how, not what.
_RULE_WORDS = frozenset(
    "always please ever use using used prefer want should must need code repo project actually instead longer"
    " anymore only just make sure rather ok okay yes back switch switched go lets stick may remember mind".split()
)
# Stems of words in which two wordings of one thing differ. No verbs that name an act (run, push, ask).
_INTERCHANGEABLE = frozenset(
    "keep make writ put get come like love try ensur set give take let do be thing way time good nic really very well"
    " bit stuff plea".split()
)
_TELLING = re.compile(r"`[^`]+`|\[\[[^\]]+\]\]|\S*[\d_/\\#@=<>]\S*|\b\w+[.-]\w[\w.-]*|--?\w[\w-]*")
_INFLECTION_RATIO = 0.75
"""Least similarity of two forms of one word: linter and lint, but not Monday and Tuesday."""
LEAST_STEM = 5
_USED = re.compile(r"\bused?\b", re.IGNORECASE)
_THIS_PROJECT = re.compile(r"\b(?:this|our|here)\b", re.IGNORECASE)
_CODE_NAME = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b|\b[A-Za-z]\w{4,}(?=\(\))")
_HEADING = re.compile(r"\A\s{0,3}#\s[^\n]*(?:\n+|\Z)")
_CONTEXT = re.compile(r"\s*\((?:when refusing|asked:|in answer to:|about) [^\n]*\)\Z")
_OCCASION = re.compile(rf"(?:\(|^{SAID})(?:when refusing |asked: |in answer to: )", re.MULTILINE)
_QUOTED = re.compile(r"^> ?(.*)$", re.MULTILINE)

_NONE: frozenset[str] = frozenset()
T = TypeVar("T")


class Relation(Enum):
    """The relation of two statements."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    """About the same subject, but opposite or with another value: only the user knows which of them holds."""
    OTHER = "other"


@dataclass(frozen=True)
class Wording:
    """The parts of a statement that are compared."""

    text: str
    order: tuple[str, ...]
    """Stems of the content words, in order."""
    words: frozenset[str]
    telling: frozenset[str]
    """Numbers, paths, options, code and links, which must be equal in statements that say the same."""
    wanted: frozenset[str]
    refused: frozenset[str]
    """Negated words."""
    further: frozenset[str]
    """Those of them behind an "or": each of the things that it joins is refused by itself."""
    conditional: frozenset[str]
    """Words that say when or for what the statement holds."""
    behind: tuple[tuple[str, frozenset[str]], ...]
    """The words after each of the words in `_ORDERS`."""


@lru_cache(maxsize=8192)
def wording_of(text: str) -> Wording:
    """Split a statement into its parts."""
    text = normal_form(text[:MAX_STATEMENT_CHARACTERS])
    telling = frozenset(match.group().strip("`'\"().,;:!?").lower() for match in _TELLING.finditer(text))
    order: list[str] = []
    wanted: set[str] = set()
    refused: set[str] = set()
    further: set[str] = set()
    conditional: set[str] = set()
    behind: dict[str, frozenset[str]] = {}
    for clause in _clauses(text):
        negated = clause_refuses = _NEGATIVE_SCRIPTS.search(" ".join(clause)) is not None
        is_condition, is_further, turned, said = False, False, "", set[str]()
        for token in clause:
            if token in _CANCELS and clause_refuses:
                wanted |= said
                refused -= said
                negated = clause_refuses = False
                is_condition = True
            elif token in _NEGATIONS:
                negated = clause_refuses = True
            is_condition |= token in _CONDITIONS
            is_further |= token in _JOINS
            turned = token if token in _ORDERS else turned
            stem = _content(token)
            if stem:
                order.append(stem)
                said.add(stem)
                (refused if negated else wanted).add(stem)
                if negated and is_further:
                    further.add(stem)
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
        frozenset(further & refused - wanted),
        frozenset(conditional),
        tuple(behind.items()),
    )


def content_words(text: str) -> frozenset[str]:
    """Return the stems of a text's content words. "don't" is one word, however it is typed."""
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
    """Return the stem of a word; '' for a function word."""
    bare = token.rstrip("./-")
    return "" if not bare or bare in ENGLISH or bare in _RULE_WORDS or bare in _NEGATIONS else _stem(bare)


def _stem(word: str) -> str:
    """Remove the ending of a word. This cuts more than a search does, since both statements are cut alike."""
    for ending in ("ing", "es", "s", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            stem = word[: -len(ending)].rstrip("e")
            # "committing" is "commit"; "passing" is "pass".
            return stem[:-1] if stem[-2:-1] == stem[-1:] and stem[-1:] not in "lsz" else stem
    return word.rstrip("e") if len(word) > 4 else word


def relation(one: Wording, other: Wording, cosine: float | None) -> Relation:
    """Return the relation of two statements. `cosine`: of their vectors; None without a model."""
    shared = shared_words(one, other)
    near = shared >= NEAR_WORDS if cosine is None else cosine >= NEAR
    opposite = (
        (near and (_negates(one, other) or _negates(other, one)))
        or (shared >= NEAR_WORDS and (_allows_part(one, other) or _allows_part(other, one)))
        or _replaces(one, other)
        or _replaces(other, one)
    )
    turned = shared >= SAME_WORDING and _changes_places(one, other)
    if opposite != turned:
        return Relation.CONTRADICTS
    if not near:
        return Relation.OTHER
    left, right = _unmatched(one, other)
    if left and right and _is_other_value(one, other, left, right):
        # Without vectors: one word, in rules that share most of their words or have it as their object.
        is_object = {one.order[-1]} == left and {other.order[-1]} == right
        if cosine is not None or (len(left) == len(right) == 1 and (shared >= HALF or is_object)):
            return Relation.CONTRADICTS
    if (
        left
        and right
        and cosine is not None
        and (_has_other(one, other, left, cosine) or _has_other(other, one, right, cosine))
    ):
        return Relation.CONTRADICTS
    if not (_has_all(one.telling, other) and _has_all(other.telling, one)):
        return Relation.OTHER
    least = SUBSTITUTED if left and right else SAME_MEANING
    if (cosine is None or cosine < least) and (shared < SAME_WORDING or (left and right)):
        return Relation.OTHER
    if len(one.refused & other.wanted | one.wanted & other.refused) > len(
        one.wanted & other.wanted | one.refused & other.refused
    ):
        return Relation.CONTRADICTS
    return Relation.SAME if bool(one.refused) == bool(other.refused) else Relation.OTHER


def _has_all(telling: frozenset[str], other: Wording) -> bool:
    """Whether the other statement has these too, in backticks or not."""
    return all(name in other.telling or _content(name) in other.order for name in telling)


def _negates(one: Wording, other: Wording) -> bool:
    """Whether the other statement wants what this one refuses."""
    return bool(one.refused) and one.refused <= other.wanted


def _allows_part(one: Wording, other: Wording) -> bool:
    """Whether the other statement wants the first of several things that this one refuses."""
    first = one.refused - one.further
    return bool(first and one.further) and first <= other.wanted and not one.further & other.refused


def _replaces(one: Wording, other: Wording) -> bool:
    """Whether one only refuses a value, for one that the other lacks or as no longer used, and the other wants it."""
    chosen = one.wanted - one.conditional
    is_news = not chosen <= other.words if chosen else _USED.search(one.text) is not None
    return _negates(one, other) and len(chosen) <= MOST_VALUE_WORDS and is_news


def _changes_places(one: Wording, other: Wording) -> bool:
    """Whether two things change places around "before" or the like."""
    left, right = dict(one.behind), dict(other.behind)
    if left.get("before", _NONE) & right.get("after", _NONE) or left.get("after", _NONE) & right.get("before", _NONE):
        return True
    return any(
        (left[word] - right[word]) & other.words and (right[word] - left[word]) & one.words
        for word in left.keys() & right.keys()
    )


def _unmatched(one: Wording, other: Wording) -> tuple[set[str], set[str]]:
    """Return the words that only one of the statements has in any form."""
    left, right = set(one.words - other.words), set(other.words - one.words)
    for word in sorted(left):
        twin = next((candidate for candidate in sorted(right) if _are_forms(word, candidate)), None)
        if twin is not None:
            left.discard(word)
            right.discard(twin)
    return left, right


def _are_forms(one: str, other: str) -> bool:
    # Not for numbers, nor for other alphabets: in Turkish an ending negates.
    if not (f"{one}{other}".isascii() and one.isalpha() and other.isalpha()) or one[:3] != other[:3]:
        return False
    short, long = sorted((one, other), key=len)
    is_cut = len(short) >= LEAST_STEM and long.startswith(short)  # config, configuration
    return is_cut or SequenceMatcher(None, one, other).ratio() >= _INFLECTION_RATIO


def _is_other_value(one: Wording, other: Wording, left: set[str], right: set[str]) -> bool:
    """Whether the statements differ in one value, of which only one can hold.

    Two prohibitions can both hold, and so can rules for two cases.
    """
    if _holds_beside(one, other) or (left <= one.refused and right <= other.refused):
        return False
    return all(
        len(words) <= MOST_VALUE_WORDS and not words & wording.conditional and _is_row(wording.order, words)
        for wording, words in ((one, left), (other, right))
    )


def _holds_beside(one: Wording, other: Wording) -> bool:
    """Whether one of them forbids and the other does not, or both name the same numbers: then no value differs."""
    has_numbers = any(any(map(str.isdigit, name)) for name in one.telling)
    return (has_numbers and one.telling == other.telling) or bool(one.refused) != bool(other.refused)


def _has_other(one: Wording, other: Wording, value: set[str], cosine: float) -> bool:
    """Whether all that is one's own is a value, in whose place the other has another one, and adds words: "Deploy on
    Mondays", "Deploy on Tuesdays now, since the release is on Wednesday". Numbers tell it better than words."""
    if len(value) > MOST_VALUE_WORDS or value & (one.conditional | one.refused) or _holds_beside(one, other):
        return False
    for kind, start, end, begin, _ in SequenceMatcher(None, one.order, other.order, autojunk=False).get_opcodes():
        if kind == "replace" and set(one.order[start:end]) == value:
            pair = one.order[start], other.order[begin]
            is_number = all(word[0].isdigit() for word in pair)
            return pair[1] not in one.words | other.conditional and (is_number or cosine >= SUBSTITUTED)
    return False


def _is_row(order: Sequence[str], words: set[str]) -> bool:
    places = [at for at, word in enumerate(order) if word in words]
    return places[-1] - places[0] < len(words)


def shared_words(one: Wording, other: Wording) -> float:
    """Return the share of common words in all words; 0 to 1."""
    both = one.words | other.words
    return len(one.words & other.words) / len(both) if both else 0.0


def may_be_same(one: Wording, other: Wording) -> bool:
    """Whether two statements may be the same if their vectors are close enough."""
    # A cheap test: in a full inbox all pairs are compared, and nearly all share nothing.
    telling_alike = _has_all(one.telling, other) and _has_all(other.telling, one)
    return telling_alike and shared_words(one, other) >= LEAST_SHARED


def is_same(one: Wording, other: Wording, cosine: float | None) -> bool:
    """Whether two statements say the same; for `cosine` see `relation`."""
    return relation(one, other, cosine) is Relation.SAME


def grouped(items: Sequence[T], same: Callable[[T, T], bool]) -> list[list[T]]:
    """Group the items that are the `same` as the first of a group, in the order of the items."""
    groups: list[list[T]] = []
    for item in items:
        home = next((group for group in groups if same(group[0], item)), None)
        if home is None:
            groups.append([item])
        else:
            home.append(item)
    return groups


def without_heading(body: str) -> str:
    """Return a note's text below its heading."""
    return _HEADING.sub("", body.replace("\r\n", "\n"), count=1).strip()


def statement_of(body: str) -> str:
    """Return the first paragraph of a note below its heading: its statement, of a sentence or two."""
    text = without_heading(body)
    paragraph = text.split("\n\n", 1)[0] or body.strip().lstrip("# ").split("\n", 1)[0]
    return " ".join(paragraph.split())[:MAX_STATEMENT_CHARACTERS]


def tells_occasion(body: str) -> bool:
    """Whether a mined note says what the user answered, in its statement or below it."""
    return _OCCASION.search(body) is not None


def own_words(statement: str) -> str:
    """Return a statement without the context that the miner appended."""
    return _CONTEXT.sub("", statement)


def is_reworded(body: str) -> bool:
    """Whether a mined note's statement is not in the words that it quotes, because a model or the user reworded it."""
    quoted, own = (" ".join(text.lower().split()) for text in (quotes_of(body), own_words(statement_of(body))))
    return bool(quoted) and own not in quoted


def quotes_of(body: str) -> str:
    """Return all that a note quotes, on one line; '' for nothing."""
    return " ".join(_QUOTED.findall(body))


def wording_of_saying(statement: str) -> Wording:
    """Return the parts of a mined statement; what it answers is included only if its own words say too little.

    The same may be said again in answer to another question.
    """
    own = wording_of(own_words(statement))
    return own if len(own.words) >= LEAST_OWN_WORDS else wording_of(statement)


def speaks_of_this_project(statement: str) -> bool:
    """Whether a statement speaks of the current project without naming it."""
    return _THIS_PROJECT.search(statement) is not None


def of_two_projects(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    """Whether two similar statements speak of different projects. Each comes with its project's slug, or None.

    "In this repo, never squash.", said in two projects, is a rule of each and not of a third.
    """
    return one[1] != other[1] and any(
        project is not None and speaks_of_this_project(statement) for statement, project in (one, other)
    )


def code_names(text: str) -> frozenset[str]:
    """Return the functions and variables that a text names, in one spelling."""
    return frozenset(match.group().replace("_", "").casefold() for match in _CODE_NAME.finditer(text))
