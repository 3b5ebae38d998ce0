"""A sentence that is asked for many things: its words tell which of them it may hold, and only these are searched."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from .cues import CUES, WORKFLOW_CUES
from .fixes import STATES_CURE
from .forms import AGENT_IDEA, EXPLICIT, Explicit, explicit
from .gated import CaselessPattern, fold, is_lowered_in_ascii_alone
from .rules import RULE_FORMS, Rule, standing_rule
from .wanted import WordGates
from .wording import without_lead_in
from .words import buckets_of, words_in, words_of, words_of_lines

_OF_AGENTS: Mapping[str, re.Pattern[str]] = {
    **{name: pattern for name, pattern in CUES.items() if name.startswith("fix:")},
    "sets aside": AGENT_IDEA,
    "states a cure": STATES_CURE,
}
PATTERNS: Mapping[str, re.Pattern[str]] = {
    **_OF_AGENTS,
    **{f"rule {place}": pattern for place, pattern in enumerate(RULE_FORMS)},
    **{f"explicit {place}": pattern for place, (_, _, pattern) in enumerate(EXPLICIT)},
    **{name: pattern for name, pattern in CUES.items() if name not in _OF_AGENTS},
}
"""All that a sentence is searched for."""
USERS = WordGates(PATTERNS)
AGENTS = WordGates(_OF_AGENTS)
"""What a sentence of the agent's is searched for: its bits are the lowest of the user's."""
BITS: Mapping[str, int] = USERS.bits
"""Name of a pattern -> its bit in `Searched.may_show`."""
CUE_BITS: Mapping[str, int] = {name: BITS[name] for name in CUES}
"""Cue -> its bit in `Searched.may_show`."""
_CUE_OF_BIT = {bit: name for name, bit in CUE_BITS.items()}
_ALL_CUES = functools.reduce(operator.or_, CUE_BITS.values())
# In the order of RULE_FORMS, and above them those of EXPLICIT.
_FIRST_RULE = len(_OF_AGENTS)
_FIRST_EXPLICIT = _FIRST_RULE + len(RULE_FORMS)
RULE_BITS = ((1 << len(RULE_FORMS)) - 1) << _FIRST_RULE
EXPLICIT_BITS = ((1 << len(EXPLICIT)) - 1) << _FIRST_EXPLICIT
PROCEDURE_BITS = functools.reduce(operator.or_, (BITS[f"workflow:{name}"] for name in WORKFLOW_CUES))
"""Without one of them a sentence describes no procedure."""
ASIDE_BIT = BITS["sets aside"]
CURE_BIT = BITS["states a cure"]
_CASELESS = {name: CaselessPattern(pattern) for name, pattern in CUES.items()}


class Glance:
    """Sentences of a message at a first glance: what their words say of all of them together."""

    __slots__ = ("_as_it_is", "_ends", "_hashed", "_of_words", "_texts", "may_show", "words")

    def __init__(self, texts: Sequence[str]) -> None:
        """None of them may hold a line end."""
        text = "\n".join(texts)
        cut = words_of_lines(text)
        as_it_is = cut is not None
        if cut is None:
            cut = [words_of(line) for line in fold(text).split("\n")]
        self._as_it_is = as_it_is
        """The words that are hashed are those whose patterns are known."""
        self._texts = texts
        self._ends = [*accumulate(map(len, cut), initial=0)]
        self._of_words, *self._hashed = _known_of([*chain.from_iterable(cut)])
        self.may_show = USERS.open_by(self._of_words, text)
        """Bits of what they may show together; each alone may show less."""
        if not as_it_is:
            # The classifier was trained on lower case; the two differ for a few letters of other alphabets.
            _, *self._hashed = _known_of(words_of(text.lower()))
        self.words = len(self._hashed[0])
        """How many they have."""

    def ngrams(self, most_words: int) -> set[int]:
        """The buckets of the n-grams of so many words."""
        return buckets_of(*(column[:most_words] for column in self._hashed))

    def ngrams_of(self, place: int, most_words: int) -> set[int]:
        """The same of one of the sentences alone."""
        if not self._as_it_is:
            return buckets_of(*_known_of(words_of(self._texts[place].lower())[:most_words])[1:])
        begin = self._ends[place]
        end = min(self._ends[place + 1], begin + most_words)
        return buckets_of(*(column[begin:end] for column in self._hashed))

    def searched(self, place: int) -> Searched:
        """One of the sentences, to be looked at closely."""
        return Searched(self._texts[place], USERS, self._of_words[self._ends[place] : self._ends[place + 1]])


def _known_of(words: Sequence[str]) -> Sequence[Sequence[Any]]:
    """A column for each thing that is known of words."""
    return [*zip(*map(USERS.known.__getitem__, words), strict=True)] or [(), (), (), ()]


class Searched:
    """A sentence that is asked for one thing after the other: for what its words say that it `may_show`."""

    __slots__ = ("_asked", "_core", "_lower", "_shown", "may_show", "text")

    def __init__(self, text: str, gates: WordGates = USERS, of_words: Sequence[int] | None = None) -> None:
        """`of_words`: what the gates know of its words, where that was asked before."""
        self.text = text
        if of_words is None:
            of_words = [gates.known[word][0] for word in words_in(text)]
        self.may_show = gates.open_by(of_words, text)
        """The bits of the cues that it may show, and of the forms that it may have: it holds the words for them."""
        self._lower: str | None = None
        """The lower case where it tells as much as the text, else ""; None: not looked at."""
        self._core: str | None = None
        """What may match where the text does not; None: not looked at."""
        self._asked = self._shown = 0

    def shows(self, cue: str) -> bool:
        """Does it show this cue, with the words that open it or without them?"""
        bit = CUE_BITS[cue]
        if not self._asked & bit:
            self._asked |= bit
            if self._search(_CASELESS[cue]):
                self._shown |= bit
        return self._shown & bit != 0

    def _search(self, asked: CaselessPattern) -> bool:
        if self._lower is None:
            self._lower = self.text.lower() if is_lowered_in_ascii_alone(self.text) else ""
        if self._lower and asked.in_lower_case is not None:
            if asked.in_lower_case.search(self._lower):
                return True
        elif asked.pattern.search(self.text):
            return True
        if self._core is None:
            self._core = without_lead_in(self.text)
        if self._core == self.text or not (asked.asks_for_beginning or self._begins_within_a_word()):
            return False
        return asked.pattern.search(self._core) is not None

    def _begins_within_a_word(self) -> bool:
        """Can a pattern that asks for no beginning match the core alone? Only where the edge of a word was cut off."""
        core = self._core or ""
        return not self.text.endswith(core) or self.text[: len(self.text) - len(core)].endswith("_")

    @property
    def standing_rule(self) -> Rule | None:
        """`standing_rule` of it."""
        possible = (self.may_show & RULE_BITS) >> _FIRST_RULE
        return standing_rule(self.text, possible) if possible else None

    @property
    def explicit(self) -> tuple[Explicit, ...]:
        """`explicit` of it."""
        possible = (self.may_show & EXPLICIT_BITS) >> _FIRST_EXPLICIT
        return explicit(self.text, possible) if possible else ()


def cues(sentence: str) -> frozenset[str]:
    """The names ("idea:later") of all cues that the sentence shows."""
    return frozenset(cues_of(Searched(sentence)))


def cues_of(searched: Searched, asked: int = _ALL_CUES) -> list[str]:
    """The same, in the order of `CUES`, of a sentence that was looked at before; only those with the bits `asked`."""
    left = searched.may_show & asked
    shown = []
    while left:
        bit = left & -left
        left ^= bit
        if searched.shows(name := _CUE_OF_BIT[bit]):
            shown.append(name)
    return shown
