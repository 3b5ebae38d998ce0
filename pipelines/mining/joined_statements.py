"""Two statements in one sentence: "never push on Fridays, and please remember that staging is at port 8081".

Each is a memory of its own: one note of both says neither where it is looked for, nor can be replaced by itself. A
sentence is divided only where the user asks, in these words, to remember a fact, and where the fact can be understood
without the first half.
"""

from __future__ import annotations

from collections.abc import Sequence

from .common_patterns import cue
from .sentences import Sentence
from .standing_rules import REMEMBERED, REQUEST, standing_rule
from .statement_context import needs_context

_ASKING = ("remember that ", "in mind that ", "memorize that ", "memorise that ")
_JOINT = cue(
    r"""(?P<joint>\s*;\s+(?:and\s+)?(?:also\s+)? | \s*,\s+(?:and\s+|also\s+|and\s+also\s+)
            | \s+and\s+(?:also\s+)?(?=(?:please|pls)\s))
        (?P<asked>(?:(?P<please>please|pls)\s+)?(?:also\s+)?(?:remember|keep\ in\ mind|memori[sz]e)\s+that\s+\S.*)\Z"""
)
_ASKED = cue(rf"^.{{0,40}}?\b{REQUEST}")
_CONDITION = cue(
    r"^(?:and\s+|so\s+|but\s+)*(?:if|when|whenever|before|after|while|since|as|because|once|unless|although)\b"
)
LEAST_WORDS = 2
"""Of the first half."""


def divided(parts: Sequence[Sentence]) -> Sequence[Sentence]:
    """The sentences, those that join a request to remember something to something else in two."""
    found: list[Sentence] = []
    for part in parts:
        found += _halves(part)
    return found if len(found) > len(parts) else parts


def states_fact(sentence: str) -> bool:
    """Is it a fact that the user asks to remember, and that can be understood by itself?"""
    rule = standing_rule(sentence)
    if rule is None or rule.form != REMEMBERED:
        return False
    # The "that" of "remember that" points at nothing.
    return not needs_context(_ASKED.sub("", sentence, count=1))


def _halves(part: Sentence) -> list[Sentence]:
    if not part.typed or not any(words in part.text.lower() for words in _ASKING):
        return [part]
    match = _JOINT.search(part.text)
    if match is None or not states_fact(match["asked"]):
        return [part]
    head = part.text[: match.start()]
    # "Save the form, and remember that it was closed" may be what a program does.
    is_certain = match["please"] or ";" in match["joint"] or standing_rule(head) is not None
    if not is_certain or _CONDITION.match(head) or len(head.split()) < LEAST_WORDS:
        return [part]
    start = part.start + match.start("asked")
    first = part._replace(text=head, end=part.start + match.start())
    return [first, part._replace(text=match["asked"], start=start, opens=False)]
