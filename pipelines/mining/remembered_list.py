# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""A list below a line that asks to remember it: "Please remember:", and a fact to each item; or below one that says
from when the items hold: "From now on:", and a rule to each.

No item says itself what it is, so each is looked at with the line above the list in mind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .common_patterns import FOR_GOOD, TO_MEMORY, count_words, cue, order_of
from .rule_certainty import Certainty, certainty
from .sentences import Sentence
from .standing_rules import REMEMBERED, Rule
from .statement_context import needs_context

_HEADING = cue(
    rf"^(?:(?:ok|okay|and|also|btw|please|pls)\b[\s,:;–—-]*)*(?:remember|keep\ in\ mind|memori[sz]e|{TO_MEMORY})\s*:$"
)
_HEADS_RULES = cue(
    rf"""^(?:[\w',]+\ ){{0,6}}?{FOR_GOOD}(?:,?\ [\w']+){{0,4}}\s*:$
      | ^(?:(?:here\ are|these\ are|and|also|so|ok|okay)\ )?(?:(?:my|our|the|some|a\ few|two|three|four|five)\ )?(?:new\ |general\ |ground\ |house\ )?(?:rules?|conventions?)
          \ (?:for\ (?:you|us|this|our|the)|in\ (?:this|our))(?:\ (?:repo(?:sitory)?|project|code\s?base|team|package|workspace))?\s*:$"""
)
_ITEM = re.compile(r"(?m)^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+")
LISTED = "in a list that is to be remembered"
"""The form of an item."""
RULE_LISTED = "in a list of what holds from now on"
"""The form of an item of the other list that says nothing of it itself."""
LEAST_WORDS = 3


_OF_THE_USER = cue(r"\b(?:i|i'm|i'd|my|me|mine|myself)\b")


def is_fact_of_project(rule: Rule, sentence: str) -> bool:
    """Is it a fact to remember, and none about the user? "The database is called stg2" is true of one project."""
    is_fact = rule.form in (REMEMBERED, LISTED) and rule.certainty is not Certainty.STATED
    return is_fact and _OF_THE_USER.search(sentence) is None


def heads_rules(part: Sentence) -> bool:
    """Is it a line of the user's that says of a list below it that it holds from now on?"""
    return (
        part.text.endswith(":")
        and part.typed
        and not part.introduced
        and _HEADS_RULES.match(part.text) is not None
        and certainty(part.text, order_of(part.text)) is not Certainty.DOUBTFUL
    )


def asked_in_list(parts: Sequence[Sentence], text: str) -> Iterator[tuple[int, Rule]]:
    """The items, by their index among the sentences, that a line of the user's asks to remember. An item of several
    sentences counts with its first."""
    form = ""
    for index, part in enumerate(parts):
        if part.text.endswith(":") and part.typed and part.spoken and not part.introduced:
            form = LISTED if _HEADING.match(part.text) else RULE_LISTED if heads_rules(part) else form
            if form:
                continue
        if not form or not part.opens:
            continue
        if _ITEM.match(text, text.rfind("\n", 0, part.start) + 1) is None:
            form = ""
            continue
        if part.typed and count_words(part.text) >= LEAST_WORDS and not needs_context(part.text):
            how_plainly = certainty(part.text, order_of(part.text))
            if how_plainly is not Certainty.DOUBTFUL:
                yield index, Rule(form, Certainty.LIKELY)
