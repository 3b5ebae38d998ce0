"""Does a statement turn a known rule into its opposite? By wording alone; the user decides. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..vault.normal_form import normal_form

_WORD = re.compile(r"[a-z0-9][\w+#./-]*|[^\x00-\x7f\s]+")
_NEGATION = re.compile(
    r"\b(?:never|no longer|not|(?:do|does|should|must)n['’]?t|do not|avoid|stop|without|no more"
    r"|instead of|rather than|over)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:never|not|(?:do|does|should|must)n['’]?t|avoid)\b[^.;!?]{0,200}?\b(?:without|until|unless)\b",
    re.IGNORECASE,
)
"""Says no to one thing without another ("never push without running the tests"): an order to do the other."""
_PLACE = re.compile(
    r"\b(?:in|for|inside|within)\s+(?:(?:the|our|my)\s+)?[\w.+#/-]+"
    r"(?:\s+(?:messages?|names?|descriptions?|titles?|bod(?:y|ies)|files?|tests?|code|comments?|docs?|docstrings?|notes)\b)?",
    re.IGNORECASE,
)
_FORBIDS_ASKING = re.compile(
    r"\b(?:stop|never|no longer|avoid|do not|don['’]?t)\s+(?:ever\s+)?ask(?:ing)?\b", re.IGNORECASE
)
_ASKS = re.compile(r"\b(?:ask(?:ing|ed)?|permission|approval|confirm\w*)\b", re.IGNORECASE)
_CHOICE = re.compile(
    r"\b(?:use|using|prefer|want|like|love|favou?r|choose|pick|with|switch(?:ed|ing)? (?:back )?to|go back to|moved? to"
    r"|stick (?:to|with)|write|in)"
    r"\s+(?P<wanted>[^,.;]{1,60}?)"
    r"\s*(?:[,(]\s*)?\b(?:not|instead of|rather than|over|and not|never|no more)\s+(?P<refused>[^,.;]{1,60})",
    re.IGNORECASE,
)
_ONLY_HERE = re.compile(
    r"\b(?:in|for|inside|within)\s+(?:this|our|the\s+[\w-]+)\s+(?:repo(?:sitory)?|project|code\s?base|package|workspace)\b",
    re.IGNORECASE,
)
_CONDITIONAL = re.compile(
    r"(?:and|so|but)?\s*\b(?:if|when(?:ever)?|every time|before|after|while|since|as|because|once|unless|although|in|on"
    r"|for|with|during)\b",
    re.IGNORECASE,
)
_NEXT_ORDER = re.compile(
    r"""[;!?]\s+(?:(?:and|but|also)\s+)*
      | \.\s+(?=(?-i:[A-Z]))
      | (?:\s*,\s*|\s+(?=(?:and|but)\b))(?:(?:and|but|also|please)\s+)*
        (?=(?:always|never|do\ not|don['’]?t|use|ask|run|keep|write|prefer|open|push|commit)\b(?!,|\s+(?:or|and)\b))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Where one order ends and the next begins: "never use print, use the logger" says no to one thing alone."""
_TURNING = "before|after|until|over|above|below|under|than|not|into|onto|to|from|with|instead of|rather than"
_TURNED = re.compile(
    rf"\b(?P<word>{_TURNING})\b\s+(?P<behind>(?:(?!\b(?:{_TURNING})\b)[^,.;:!?])+)",
    re.IGNORECASE,
)
"""Words between two things that cannot change places, and what stands behind them."""
# Words that say how, not what, in statements of rules. Other texts have other empty words: the lists are not shared.
_EMPTY_WORDS = frozenset(
    """
    a an the and or but to of in on at for from with by as is are be been it its this that these those we i you me
    my our us your please always never not no dont do does use using used prefer want should must need have
    can will just only also ever every any all when whenever before after if then than so from now on actually
    instead longer more anymore avoid stop make sure without over rather ok okay yes again back switch switched go
    lets stick here project repo code into
    doesnt didnt isnt arent wasnt shouldnt mustnt wont cant couldnt wouldnt im ive youre weve theres thats
    """.split()  # noqa: SIM905  a list of literals would take a page
)


MOSTLY = 0.6
"""So much of the words must two rules share to be about the same matter."""
NEARLY_ALL = 0.8
"""So much of them, to be one rule but for the order of its words."""


@dataclass(frozen=True)
class Rule:
    """A known rule: where it is, and what it says."""

    path: str
    statement: str


def find_reversed(statement: str, rules: Iterable[Rule]) -> Rule | None:
    """The rule that `statement` reverses; the one that shares most with it when there are several."""
    best: tuple[float, Rule] | None = None
    for rule in rules:
        if reverses(statement, rule.statement):
            shared = _overlap(content_words(statement), content_words(rule.statement))
            if best is None or shared > best[0]:
                best = (shared, rule)
    return best[1] if best else None


def reverses(statement: str, known: str) -> bool:
    """Do the two contradict each other: the same matter, one for and one against it, or the choices swapped?"""
    new, old = _choice(statement), _choice(known)
    new_words, old_words = content_words(statement), content_words(known)
    if not new_words or not old_words:
        return False
    shared = len(new_words & old_words)
    if is_negative(statement) != is_negative(known) and _changes_places(statement, known, "before"):
        return False  # "never commit before running the tests": that is to run them before.
    if shared >= NEARLY_ALL * (len(new_words) + len(old_words) - shared) and _changes_places(statement, known):
        return True
    if new and old:
        if (old[0] <= new[1] or new[0] <= old[1]) and not new[0] & old[0]:
            # "use poetry instead of uv" after "use uv instead of pip", or before it.
            chosen = new[0] | new[1] | old[0] | old[1]
            return _covers(new_words - chosen, old_words - chosen)
        # "use npm, not pnpm" after "use pnpm, not npm".
        swapped = (new[0] & old[1]) | (new[1] & old[0])
        return bool(new[0] & old[1]) and not new[0] & old[0] and _covers(new_words - swapped, old_words - swapped)
    if new or old:
        wanted, refused = new or old or (frozenset(), frozenset())
        # Of several words that are wanted, some say of what: "write comments in English, not German".
        rest = (new_words if new else old_words) - refused - (wanted if len(wanted) == 1 else frozenset())
        other_words, other_text = (old_words, known) if new else (new_words, statement)
        # "use npm, not pnpm" after "always use pnpm"; "use npm" after "use pnpm, not npm".
        # Of several orders the one about what is wanted: "never use print, use the logger" is for the logger.
        order = next((each for each in _orders(other_text) if wanted & content_words(each)), other_text)
        against, agrees = (wanted, refused) if is_negative(order) else (refused, wanted)
        return bool(against & other_words) and not agrees & other_words and _covers(rest, other_words - against)
    new_orders, old_orders = _orders(statement), _orders(known)
    if len(new_orders) > 1 or len(old_orders) > 1:
        return any(_is_opposite(one, other) for one in new_orders for other in old_orders)
    if _is_one_for_one_against(statement, known):
        # What shares only one half of "never push without asking" says something else.
        halved = [words for text, words in ((statement, new_words), (known, old_words)) if _CONDITION.search(text)]
        least = max(map(len, halved), default=min(len(new_words), len(old_words)))
        # "In TypeScript" alone is where, not what.
        places = content_words(" ".join(_PLACE.findall(statement) + _PLACE.findall(known)))
        return shared >= MOSTLY * least and not new_words & old_words <= places
    return False


def _orders(text: str) -> list[str]:
    """The orders that stand in one statement; with a condition they are one."""
    found: list[str] = []
    low = 0
    for match in _NEXT_ORDER.finditer(text):
        if match.start() > low and not _CONDITIONAL.match(text[low : match.start()].lstrip()):
            found.append(text[low : match.start()])
            low = match.end()
    return [*found, text[low:]]


def _is_opposite(order: str, known: str) -> bool:
    """Of two orders that stand beside others: is one for, the other against the same? What is said in a few words
    beside another order has to be nearly the same."""
    words, known_words = content_words(order), content_words(known)
    shared = len(words & known_words)
    return _is_one_for_one_against(order, known) and 0 < shared >= MOSTLY * max(len(words), len(known_words))


def _is_one_for_one_against(one: str, other: str) -> bool:
    """Who says "stop asking me to run the tests" is against the asking, and not against the tests."""
    if is_negative(one) == is_negative(other):
        return False
    return (_FORBIDS_ASKING.search(one) is None or _ASKS.search(other) is not None) and (
        _FORBIDS_ASKING.search(other) is None or _ASKS.search(one) is not None
    )


def _changes_places(statement: str, known: str, around: str = "") -> bool:
    """Does what stands behind "before", "not" or the like in one stand before it in the other, and the reverse? "Lint
    before the tests" after "test before the linter": the same words, but not the same rule. `around`: of that word."""
    new, old = _behind(statement), _behind(known)
    new_words, old_words = content_words(statement), content_words(known)
    return any(
        (new[word] - old[word]) & old_words and (old[word] - new[word]) & new_words
        for word in new.keys() & old.keys()
        if around in ("", word)
    )


def _behind(text: str) -> dict[str, frozenset[str]]:
    """What stands behind each of the words in `_TURNING`."""
    found: dict[str, frozenset[str]] = {}
    for match in _TURNED.finditer(text):
        word = match["word"].lower()
        found[word] = found.get(word, frozenset()) | content_words(match["behind"])
    return found


def _covers(rest: frozenset[str], left: frozenset[str]) -> bool:
    """Is a choice about the same matter as another rule? `rest`: what its rule says beside the choice, `left`: what the
    other says beside what is chosen. One that says nothing else holds in general."""
    return len(left & rest) >= MOSTLY * len(left) or (not rest and len(left) == 1)


def is_for_one_project(statement: str) -> bool:
    """Does it say that it holds for this project only? Then it is an exception to a rule for everything."""
    return _ONLY_HERE.search(statement) is not None


def is_negative(text: str) -> bool:
    """Does it say not to do something? To do nothing without another thing is to do that one."""
    return _NEGATION.search(_CONDITION.sub(" ", text)) is not None


def _choice(text: str) -> tuple[frozenset[str], frozenset[str]] | None:
    match = _CHOICE.search(text)
    if match is None:
        return None
    wanted, refused = content_words(match["wanted"]), content_words(match["refused"])
    # What both name ("two spaces, not four spaces") distinguishes nothing.
    return (wanted - refused, refused - wanted) if wanted - refused and refused - wanted else None


_CONTRACTION = re.compile(r"\b(?:i|you|we|they|he|she|it|that|there|here|who|what|let)['’](?:d|ll|m|re|ve|s)\b")
"""Empty words; without the apostrophe some of them would be others: "I'd" is no "id", "she'll" no "shell"."""
_APOSTROPHE = re.compile(r"(?<=[a-z])['’](?=[a-z])")


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that say what, not how. "don't" is one word, however it is typed."""
    words = _WORD.findall(_APOSTROPHE.sub("", _CONTRACTION.sub(" ", normal_form(text).lower())))
    # Without the full stop behind it: "without asking me." ends in the same empty word as "without asking me".
    bare = (word.rstrip("./-") for word in words)
    return frozenset(_stem(word) for word in bare if word and word not in _EMPTY_WORDS)


def _stem(word: str) -> str:
    """The word without its ending: further reduced than for a search, since both rules are reduced alike."""
    for ending in ("ing", "es", "s", "ed"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            stem = word[: -len(ending)].rstrip("e")
            # "committing" is "commit"; "passing" is "pass".
            return stem[:-1] if stem[-2:-1] == stem[-1:] and stem[-1:] not in "lsz" else stem
    return word.rstrip("e") if len(word) > 4 else word


def _overlap(left: Sequence[str] | frozenset[str], right: Sequence[str] | frozenset[str]) -> float:
    """Shared words by the smaller of the two; 0 when one is empty."""
    a, b = frozenset(left), frozenset(right)
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0
