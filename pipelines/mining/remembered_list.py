"""A list below a line that asks to remember it: "Please remember:", and a fact to each item.

No item says itself that it is to be remembered, so each is looked at with the line above the list in mind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .common_patterns import TO_MEMORY, count_words, cue, order_of
from .rule_certainty import Certainty, certainty
from .sentences import Sentence
from .standing_rules import REMEMBERED, Rule
from .statement_context import needs_context

_HEADING = cue(
    rf"^(?:(?:ok|okay|and|also|btw|please|pls)\b[\s,:;–—-]*)*(?:remember|keep\ in\ mind|memori[sz]e|{TO_MEMORY})\s*:$"
)
_ITEM = re.compile(r"(?m)^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+")
LISTED = "in a list that is to be remembered"
"""The form of an item."""
LEAST_WORDS = 3


_OF_THE_USER = cue(r"\b(?:i|i'm|i'd|my|me|mine|myself)\b")


def is_fact_of_project(rule: Rule, sentence: str) -> bool:
    """Is it a fact to remember, and none about the user? "The database is called stg2" is true of one project."""
    is_fact = rule.form in (REMEMBERED, LISTED) and rule.certainty is not Certainty.STATED
    return is_fact and _OF_THE_USER.search(sentence) is None


def asked_in_list(parts: Sequence[Sentence], text: str) -> Iterator[tuple[int, Rule]]:
    """The items, by their index among the sentences, that a line of the user's asks to remember. An item of several
    sentences counts with its first."""
    open_list = False
    for index, part in enumerate(parts):
        if part.text.endswith(":") and part.typed and part.spoken and not part.introduced and _HEADING.match(part.text):
            open_list = True
            continue
        if not open_list or not part.opens:
            continue
        if _ITEM.match(text, text.rfind("\n", 0, part.start) + 1) is None:
            open_list = False
            continue
        if part.typed and count_words(part.text) >= LEAST_WORDS and not needs_context(part.text):
            how_plainly = certainty(part.text, order_of(part.text))
            if how_plainly is not Certainty.DOUBTFUL:
                yield index, Rule(LISTED, Certainty.LIKELY)
