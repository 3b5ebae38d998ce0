"""A sentence that is asked for many things: its words tell which of them it may hold, and only these are searched."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping

from .cues import CUES
from .fixes import STATES_CURE
from .forms import AGENT_IDEA, EXPLICIT, Explicit, explicit
from .gated import fold
from .rules import RULE_FORMS, Rule, standing_rule
from .wanted import WordGates
from .wording import without_lead_in
from .words import words_of

PATTERNS: Mapping[str, re.Pattern[str]] = {
    **CUES,
    **{f"rule {place}": pattern for place, pattern in enumerate(RULE_FORMS)},
    **{f"explicit {place}": pattern for place, (_, _, pattern) in enumerate(EXPLICIT)},
    "sets aside": AGENT_IDEA,
    "states a cure": STATES_CURE,
}
"""All that a sentence is searched for."""
_GATES = WordGates(PATTERNS)
BITS: Mapping[str, int] = _GATES.bits
"""Name of a pattern -> its bit in `Searched.may_show`."""
CUE_BITS: Mapping[str, int] = {name: BITS[name] for name in CUES}
"""Cue -> its bit in `Searched.may_show`."""
_ALL_CUES = functools.reduce(operator.or_, CUE_BITS.values())
RULE_BITS = functools.reduce(operator.or_, (bit for name, bit in BITS.items() if name.startswith("rule ")))
EXPLICIT_BITS = functools.reduce(operator.or_, (bit for name, bit in BITS.items() if name.startswith("explicit ")))
ASIDE_BIT = BITS["sets aside"]
CURE_BIT = BITS["states a cure"]


class Searched:
    """A sentence that is asked for one thing after the other: for what its words say that it `may_show`."""

    __slots__ = ("_asked", "_core", "_shown", "may_show", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        folded = fold(text)
        self.words = seen = words_of(folded)
        if not text.isascii():
            # The classifier was trained on lower case; the two differ for a few letters of other alphabets.
            self.words = words_of(text.lower())
        self.may_show = _GATES.open_to(seen, folded)
        """The bits of the cues that it may show, and of the forms that it may have: it holds the words for them."""
        self._core: str | None = None
        self._asked = self._shown = 0

    def shows(self, cue: str) -> bool:
        """Does it show this cue, with the words that open it or without them?"""
        bit = CUE_BITS[cue]
        if not self._asked & bit:
            self._asked |= bit
            if self._search(CUES[cue]):
                self._shown |= bit
        return self._shown & bit != 0

    def _search(self, pattern: re.Pattern[str]) -> bool:
        if pattern.search(self.text):
            return True
        if self._core is None:
            self._core = without_lead_in(self.text)
        return self._core != self.text and pattern.search(self._core) is not None

    @property
    def standing_rule(self) -> Rule | None:
        """`standing_rule` of it."""
        return standing_rule(self.text) if self.may_show & RULE_BITS else None

    @property
    def explicit(self) -> tuple[Explicit, ...]:
        """`explicit` of it."""
        return explicit(self.text) if self.may_show & EXPLICIT_BITS else ()


def cues(sentence: str) -> frozenset[str]:
    """The names ("idea:later") of all cues that the sentence shows."""
    return frozenset(cues_of(Searched(sentence)))


def cues_of(searched: Searched) -> list[str]:
    """The same, in the order of `CUES`, of a sentence that was looked at before."""
    may_show = searched.may_show & _ALL_CUES
    return [name for name, bit in CUE_BITS.items() if may_show & bit and searched.shows(name)] if may_show else []
