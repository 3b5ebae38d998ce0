"""Ranking by keywords: which words of a prompt count, and which entries cover enough of them. Pure.

Without vectors the danger is noise: any two texts about code share words. So a word is weighted by its rarity in the
vault, a word of too many entries is ignored, and an entry is recalled only if the words that it shares with the prompt
have a large part of the prompt's weight.
"""

from __future__ import annotations

from ..vault.cjk import cut_cjk, function_letters
from ..vault.function_words import foreign_function_words
from ..vault.normal_form import normal_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeVar

    Id = TypeVar("Id", int, str)

WORD_LIMIT = 40
"""Each word costs a query; of a long prompt the beginning and the end are taken."""
MIN_COVERAGE = 0.3
"""Share of the prompt's weight, 0..1, that an entry must cover."""
MIN_SKILL_COVERAGE = 0.5
"""The same for a skill: dozens of them describe common work in common words."""
COVERAGE_WORDS = 5
"""The weight of a prompt is that of its rarest words, at most so many: a longer prompt must not be harder to cover."""
COMMON_SHARE = 0.2
"""A word in more than this share of the entries, and in more than `COMMON_COUNT` of them, is ignored."""
COMMON_COUNT = 8

# Tuned together with the thresholds above; index/query.py has a list of its own, tuned with its ranking.
_STOP = (
    "a about above after again against ago all almost already also always am among an and another any "
    "anyone anything anyway are aren around as ask at away back bad be became because been before "
    "being below best better between big bit both but by bye call came can cannot change check come "
    "continue could couldn did didn different do does doesn doing don done down during each either "
    "else end enough etc even ever every everything exactly explain far few find finally fine first "
    "for found from full further gave get gets getting give given gives go goes going gonna good got "
    "great had hadn happen happened happens has hasn have haven having he hello help her here hers "
    "hey hi him his how however i idea if im in instead into is isn issue it its itself ive just keep "
    "kind knew know last later least less let lets like little ll long look looking looks lot lots "
    "made mainly make makes making many may maybe me mean might mine more most much must my myself "
    "need needs never new next nice no nope not nothing now of off often oh ok okay old on once one "
    "ones only onto or other others otherwise our ours out over own part per perfect perhaps please "
    "possible pretty probably problem put quite rather re read ready really right said same saw say "
    "says see seem seems seen several shall she should shouldn show side similar simply since so some "
    "someone something soon sorry sort start still stop stuff such sure take taken takes tell than "
    "thank thanks that thats the their them then there these they thing things think this those "
    "though through time to today together told too took total totally toward tried tries true try "
    "trying two under understand unless until up upon us use used using usually ve very via want "
    "wanted wants was wasn way ways we well went were weren what whatever when where whether which "
    "while who whole whom whose why will wish with within without won wonder work works worth would "
    "wouldn wow yeah yes yesterday yet you your yours yourself "
)
STOP_WORDS = frozenset(_STOP.split())


def significant_words(text: str) -> list[str]:
    """Distinct lower-case words of `text` without stop words, in order, at most WORD_LIMIT."""
    found = []
    for run in split_words(normal_form(text)):
        grammar = function_letters(run)
        found += [run[start:end] for start, end in cut_cjk(run) if grammar.isdisjoint(range(start, end))]
    ignored = foreign_function_words(found, STOP_WORDS)
    words = list(
        dict.fromkeys(w for w in found if w not in STOP_WORDS and w not in ignored and (len(w) > 1 or not w.isascii()))
    )
    if len(words) > WORD_LIMIT:
        words = words[: WORD_LIMIT // 2] + words[-(WORD_LIMIT // 2) :]
    return words


def split_words(text: str) -> list[str]:
    """The runs of letters and digits of `text`, lower case."""
    return "".join([c if c.isalnum() else " " for c in text.lower()]).split()


def max_common_entries(total: int) -> int:
    """Number of `total` entries above which a word that they contain is ignored."""
    return max(COMMON_COUNT, int(total * COMMON_SHARE))


def rank(
    entries_by_word: Mapping[str, Collection[Id]],
    total: int,
    log: Callable[[float], float],
    min_coverage: float = MIN_COVERAGE,
) -> list[tuple[Id, float]]:
    """(entry, coverage) of the entries that cover at least `min_coverage`, best first, ties by id; coverage in (0, 1].

    `entries_by_word`: for every significant word of the prompt the entries that contain it, maybe none; `total`: number
    of entries searched; `log`: the natural logarithm. A word that no entry contains weighs most: then the prompt is
    about something else.
    """
    limit = max_common_entries(total)
    weights = {
        word: log(1.0 + total / max(len(ids), 0.5)) for word, ids in entries_by_word.items() if len(ids) <= limit
    }
    prompt_weight = sum(_heaviest(list(weights.values())))
    if not prompt_weight:
        return []
    covered: dict[Id, float] = {}
    for word, weight in weights.items():
        for entry in entries_by_word[word]:
            covered[entry] = covered.get(entry, 0.0) + weight
    scored = [
        (entry, min(weight / prompt_weight, 1.0))
        for entry, weight in covered.items()
        if weight / prompt_weight >= min_coverage
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _heaviest(weights: Sequence[float]) -> Sequence[float]:
    return sorted(weights, reverse=True)[:COVERAGE_WORDS]
