"""Decide whether two statements say the same, contradict each other, or neither. Pure.

Similarity alone cannot tell: "Deploy on Mondays" and "Deploy on Thursdays" are nearer in meaning than most pairs of
wordings for one thing. So a linear model weighs how similar the statements are, which words only one of them has, which
are negated, and, where it was asked, what the second model says (index/mpnet.py). Its weights, in `likeness.json`, are
fitted by `training/statements/fit.py`; docs/benchmarks/likeness.md has figures. A contradiction is put to the user.
"""

# ruff: noqa: SIM905  lists of literals would take pages

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import cache, lru_cache
from math import exp
from pathlib import Path
from typing import Any, TypeVar

from ..runtime.function_words import ENGLISH
from ..runtime.normal_form import normal_form
from ..vault.evidence import SAID

WEIGHTS = Path(__file__).with_name("likeness.json")
MAX_STATEMENT_CHARACTERS = 600
LEAST_OWN_WORDS = 4
"""A statement with as many content words is compared without the question that it answers."""
CERTAIN = 0.8
"""Probability of a contradiction, by words alone, that no model overrules: models miss some negations."""
LONGEST_VALUE = 2
"""Most words of one value: "merge commit", "Tuesday mornings"."""

_TOKEN = re.compile(r"--?[a-z]\w[\w-]*|[a-z0-9\u00c0-\u04ff][\w+#./-]*|[^\x00-\x7f\s]+|[,;:!?()]")
_CONTRACTION = re.compile(r"\b(?:i|you|we|they|he|she|it|that|there|here|who|what|let)['’](?:d|ll|m|re|ve|s)\b")
"""Removed first, since without its apostrophe "I'd" would be "id" and "she'll" would be "shell"."""
_APOSTROPHE = re.compile(r"(?<=[a-z])['’](?=[a-z])")
_CHOICE = re.compile(r"\b(?:instead of|rather than|in place of)\b")
"""Is read as "without": what follows is not wanted."""
_END = re.compile(r"\.(?=\s|\Z)")
_NEGATIONS = frozenset(
    "never no not dont doesnt didnt isnt arent shouldnt mustnt wont cant cannot avoid stop without"
    " nie niemals nicht kein keine keinen jamais pas nunca nao não никогда не nigdy nooit niet geen aldrig inte mai non"
    " asla".split()
)
_CLAUSE_ENDS = frozenset(",;:!?()") | {"but"}
_NEGATIVE_SCRIPTS = re.compile(r"不|没|勿|别|別|禁|ない|ません|지 ?마|않|금지|안 ")
"""Negations in scripts without spaces between words."""
_RELATING = frozenset("before after until unless than except into from".split())
"""Function words on which it depends what a statement says: they count for its order."""
# Words of rules that say how, not what.
_RULE_WORDS = frozenset(
    "always please ever use using used prefer want should must need code repo project actually instead longer"
    " anymore only just make sure rather ok okay yes back switch switched go lets stick may remember mind".split()
)
_TELLING = re.compile(r"`[^`]+`|\[\[[^\]]+\]\]|\S*[\d_/\\#@=<>]\S*|\b\w+[.-]\w[\w.-]*|--?\w[\w-]*")
_INFLECTION_RATIO = 0.75
"""Least similarity of two forms of one word: linter and lint, but not Monday and Tuesday."""
LEAST_STEM = 5
_THIS_PROJECT = re.compile(r"\b(?:this|our|here)\b", re.IGNORECASE)
_CODE_NAME = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b|\b[A-Za-z]\w{4,}(?=\(\))")
_HEADING = re.compile(r"\A\s{0,3}#\s[^\n]*(?:\n+|\Z)")
_CONTEXT = re.compile(r"\s*\((?:when refusing|asked:|in answer to:|about) [^\n]*\)\Z")
_OCCASION = re.compile(rf"(?:\(|^{SAID})(?:when refusing |asked: |in answer to: )", re.MULTILINE)
_QUOTED = re.compile(r"^> ?(.*)$", re.MULTILINE)

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
    """Stems of the content words, and words that relate them, in order."""
    words: frozenset[str]
    telling: frozenset[str]
    """Numbers, paths, options, code and links."""
    wanted: frozenset[str]
    refused: frozenset[str]
    """Words that are only named behind a negation."""


@dataclass(frozen=True)
class Compared:
    """What models say of two statements."""

    cosine: float
    """Of their vectors."""
    logits: Sequence[float] | None = None
    """Of the same, contradiction and neither, by the second model; None if it was not asked."""


@lru_cache(maxsize=8192)
def wording_of(text: str) -> Wording:
    """Split a statement into its parts."""
    text = normal_form(text[:MAX_STATEMENT_CHARACTERS])
    telling = frozenset(match.group().strip("`'\"().,;:!?").lower() for match in _TELLING.finditer(text))
    order: list[str] = []
    wanted: set[str] = set()
    refused: set[str] = set()
    is_negated = False
    lower = _CHOICE.sub("without", _APOSTROPHE.sub("", _CONTRACTION.sub(" ", text.lower())))
    for token in _TOKEN.findall(_END.sub(" ; ", lower)):
        if token in _CLAUSE_ENDS:
            is_negated = False
            continue
        is_negated |= token in _NEGATIONS or _NEGATIVE_SCRIPTS.search(token) is not None
        if token in _RELATING:
            order.append(token)
        elif stem := _content(token):
            order.append(stem)
            (refused if is_negated else wanted).add(stem)
    return Wording(
        text, tuple(order), frozenset(wanted | refused), telling - {""}, frozenset(wanted), frozenset(refused - wanted)
    )


def content_words(text: str) -> frozenset[str]:
    """Return the stems of a text's content words. "don't" is one word, however it is typed."""
    return wording_of(text).words


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


def relation(one: Wording, other: Wording, compared: Compared | None = None) -> Relation:
    """Return the relation of two statements; None: they are compared by their words alone."""
    if one.order == other.order and one.telling == other.telling and one.refused == other.refused:
        return Relation.SAME
    if not shared_words(one, other):
        return Relation.OTHER
    is_asked = compared is not None and compared.logits is not None
    kind = "words" if compared is None else "model" if is_asked else "vectors"
    same, contradicts = _probabilities(one, other, compared, kind)
    if kind != "words" and _probabilities(one, other, None, "words")[1] >= CERTAIN:
        return Relation.CONTRADICTS
    is_turned = one.words == other.words and one.order != other.order
    # What another order of the words means, only the second model can tell.
    if same >= _weights()[kind]["same"]["least"] and (is_asked or not is_turned):
        return Relation.SAME
    return Relation.CONTRADICTS if contradicts >= _weights()[kind]["contradicts"]["least"] else Relation.OTHER


def _probabilities(one: Wording, other: Wording, compared: Compared | None, kind: str) -> tuple[float, float]:
    """Return the probabilities that two statements are the same, and that they contradict each other."""
    values = signs(one, other, compared)
    same, contradicts = (
        exp(row["bias"] + sum(weight * values[name] for name, weight in row["weights"].items()))
        for row in (_weights()[kind]["same"], _weights()[kind]["contradicts"])
    )
    return same / (same + contradicts + 1), contradicts / (same + contradicts + 1)


@cache
def _weights() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(WEIGHTS.read_bytes())
    return found


def signs(one: Wording, other: Wording, compared: Compared | None = None) -> dict[str, float]:
    """Return by name what `relation` weighs; the order of the two does not matter."""
    left, right = _unmatched(one, other)
    common = (len(one.words) + len(other.words) - len(left) - len(right)) / 2
    shared = common / (common + len(left) + len(right) or 1)
    fewer, more = sorted((len(left), len(right)))
    first, second = sorted((one.order, other.order))
    changes = [
        (end - start, stop - begin)
        for kind, start, end, begin, stop in SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    is_value = len(changes) == 1 and all(0 < size <= LONGEST_VALUE for size in changes[0])
    is_object = is_value and one.order[-1] in left and other.order[-1] in right
    wants_refused = max(_share(one.refused, other.wanted), _share(other.refused, one.wanted))
    only = one.telling - other.telling, other.telling - one.telling
    numbers = [any(any(map(str.isdigit, name)) for name in names) for names in only]
    found = {
        "shared": shared,
        "fewer": min(fewer, 3),
        "more": min(more, 5),
        "value": is_value,
        "object": is_object,
        "one_negates": bool(one.refused) != bool(other.refused),
        "wants_refused": wants_refused,
        "wants_all_refused": wants_refused == 1,
        "replaces": _replaces(one, other) or _replaces(other, one),
        "numbers": all(numbers),
        "names": all(map(bool, only)),
        "telling": any(only),
    }
    found |= {
        f"{name} × shared": found[name] * shared for name in ("value", "one_negates", "wants_all_refused", "numbers")
    }
    if compared is not None:
        found["cosine"] = compared.cosine
        found |= {
            f"{name} × cosine": found[name] * compared.cosine
            for name in ("value", "one_negates", "wants_refused", "numbers")
        }
        if compared.logits is not None:
            same, contradicts, neither = compared.logits
            found |= {"model_same": same - neither, "model_contradicts": contradicts - neither}
    return found


def _replaces(one: Wording, other: Wording) -> bool:
    """Whether a statement only refuses a value that the other wants, and names another in its place."""
    is_new = not one.wanted & other.words and 0 < len(one.wanted) <= LONGEST_VALUE
    return is_new and bool(one.refused) and one.refused <= other.wanted


def _share(refused: frozenset[str], wanted: frozenset[str]) -> float:
    """Return the share of the refused words that are wanted."""
    return len(refused & wanted) / len(refused) if refused else 0.0


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


def shared_words(one: Wording, other: Wording) -> float:
    """Return the share of common words in all words; 0 to 1."""
    both = one.words | other.words
    return len(one.words & other.words) / len(both) if both else 0.0


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
