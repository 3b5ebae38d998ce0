"""Searching a sentence for many patterns: its words rule out most of them, and only the others are searched."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from .caseless_pattern import CaselessPattern, fold, has_case_in_ascii_only
from .common_patterns import without_lead_in
from .cues import CUES, WORKFLOW_CUES
from .explicit_forms import AGENT_IDEA, EXPLICIT, ExplicitForm, explicit_forms
from .fixes import STATES_CURE
from .required_text import WordGates
from .standing_rules import RULE_FORMS, Rule, standing_rule
from .tokens import buckets_of, words_in, words_of, words_of_lines

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
"""All patterns that a sentence is searched for, by name."""
USERS = WordGates(PATTERNS)
AGENTS = WordGates(_OF_AGENTS)
"""Patterns for a sentence of the agent; their bits are the lowest of the user's."""
BITS: Mapping[str, int] = USERS.bits
"""Bits in `SentenceScan.may_show`, by the name of the pattern."""
CUE_BITS: Mapping[str, int] = {name: BITS[name] for name in CUES}
"""Bits in `SentenceScan.may_show`, by cue."""
_CUE_OF_BIT = {bit: name for name, bit in CUE_BITS.items()}
_ALL_CUES = functools.reduce(operator.or_, CUE_BITS.values())
# In the order of RULE_FORMS, and above them those of EXPLICIT.
_FIRST_RULE = len(_OF_AGENTS)
_FIRST_EXPLICIT = _FIRST_RULE + len(RULE_FORMS)
RULE_BITS = ((1 << len(RULE_FORMS)) - 1) << _FIRST_RULE
EXPLICIT_BITS = ((1 << len(EXPLICIT)) - 1) << _FIRST_EXPLICIT
PROCEDURE_BITS = functools.reduce(operator.or_, (BITS[f"workflow:{name}"] for name in WORKFLOW_CUES))
"""Bits of which a sentence that describes a procedure has at least one."""
ASIDE_BIT = BITS["sets aside"]
CURE_BIT = BITS["states a cure"]
_CASELESS = {name: CaselessPattern(pattern) for name, pattern in CUES.items()}


class MessageScan:
    """A first scan of the sentences of a message, by their words, all of them together."""

    __slots__ = ("_as_it_is", "_ends", "_hashed", "_of_words", "_texts", "may_show", "words")

    def __init__(self, texts: Sequence[str]) -> None:
        """Scan `texts`, none of which may contain a line end."""
        text = "\n".join(texts)
        cut = words_of_lines(text)
        as_it_is = cut is not None
        if cut is None:
            cut = [words_of(line) for line in fold(text).split("\n")]
        self._as_it_is = as_it_is
        """Whether the hashed words are those that the patterns were tested with."""
        self._texts = texts
        self._ends = [*accumulate(map(len, cut), initial=0)]
        self._of_words, *self._hashed = _known_of([*chain.from_iterable(cut)])
        self.may_show = USERS.open_by(self._of_words, text)
        """Bits of all patterns that may match any of them; each alone may match fewer."""
        if not as_it_is:
            # The classifier was trained on lower case; the two differ for a few letters of other alphabets.
            _, *self._hashed = _known_of(words_of(text.lower()))
        self.words = len(self._hashed[0])
        """Number of their words."""

    def ngrams(self, most_words: int) -> set[int]:
        """Buckets of the n-grams of the first `most_words` words."""
        return buckets_of(*(column[:most_words] for column in self._hashed))

    def ngrams_of(self, place: int, most_words: int) -> set[int]:
        """Buckets of the n-grams of one sentence, of at most `most_words` words."""
        if not self._as_it_is:
            return buckets_of(*_known_of(words_of(self._texts[place].lower())[:most_words])[1:])
        begin = self._ends[place]
        end = min(self._ends[place + 1], begin + most_words)
        return buckets_of(*(column[begin:end] for column in self._hashed))

    def sentence(self, place: int) -> SentenceScan:
        """Scan one of the sentences."""
        return SentenceScan(self._texts[place], USERS, self._of_words[self._ends[place] : self._ends[place + 1]])


def _known_of(words: Sequence[str]) -> Sequence[Sequence[Any]]:
    """The cached values of words, as columns."""
    return [*zip(*map(USERS.known.__getitem__, words), strict=True)] or [(), (), (), ()]


class SentenceScan:
    """Searches one sentence for one pattern after the other, if its words do not rule it out (`may_show`)."""

    __slots__ = ("_asked", "_core", "_lower", "_shown", "may_show", "text")

    def __init__(self, text: str, gates: WordGates = USERS, of_words: Sequence[int] | None = None) -> None:
        """Scan `text`; `of_words` are the clauses that its words fulfil, if they are known."""
        self.text = text
        if of_words is None:
            of_words = [gates.known[word][0] for word in words_in(text)]
        self.may_show = gates.open_by(of_words, text)
        """Bits of the cues that it may show and of the forms that it may have: it has the words for them."""
        self._lower: str | None = None
        """The text in lower case if searching that is equivalent, else ""; None: not computed."""
        self._core: str | None = None
        """The text without opening words, which may match if the text does not; None: not computed."""
        self._asked = self._shown = 0

    def shows(self, cue: str) -> bool:
        """Whether it shows this cue, with its opening words or without them."""
        bit = CUE_BITS[cue]
        if not self._asked & bit:
            self._asked |= bit
            if self._search(_CASELESS[cue]):
                self._shown |= bit
        return self._shown & bit != 0

    def _search(self, asked: CaselessPattern) -> bool:
        if self._lower is None:
            self._lower = self.text.lower() if has_case_in_ascii_only(self.text) else ""
        if self._lower and asked.lower_case_pattern is not None:
            if asked.lower_case_pattern.search(self._lower):
                return True
        elif asked.pattern.search(self.text):
            return True
        if self._core is None:
            self._core = without_lead_in(self.text)
        if self._core == self.text or not (asked.depends_on_start or self._starts_within_a_word()):
            return False
        return asked.pattern.search(self._core) is not None

    def _starts_within_a_word(self) -> bool:
        """Whether a pattern that does not depend on the start may match the core alone: if a word was cut."""
        core = self._core or ""
        return not self.text.endswith(core) or self.text[: len(self.text) - len(core)].endswith("_")

    @property
    def standing_rule(self) -> Rule | None:
        """The standing rule that it states, by `standing_rule`."""
        possible = (self.may_show & RULE_BITS) >> _FIRST_RULE
        return standing_rule(self.text, possible) if possible else None

    @property
    def explicit(self) -> tuple[ExplicitForm, ...]:
        """The explicit forms that it has."""
        possible = (self.may_show & EXPLICIT_BITS) >> _FIRST_EXPLICIT
        return explicit_forms(self.text, possible) if possible else ()


def cues(sentence: str) -> frozenset[str]:
    """Names ("idea:later") of all cues that the sentence shows."""
    return frozenset(cues_of(SentenceScan(sentence)))


def cues_of(scan: SentenceScan, asked: int = _ALL_CUES) -> list[str]:
    """Names of the cues with the bits `asked` that a scanned sentence shows, in the order of `CUES`."""
    left = scan.may_show & asked
    shown = []
    while left:
        bit = left & -left
        left ^= bit
        if scan.shows(name := _CUE_OF_BIT[bit]):
            shown.append(name)
    return shown
