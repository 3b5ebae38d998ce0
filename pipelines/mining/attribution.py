# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Lines that introduce what follows ("The README says:"), and whose words follow them.

What stands below a line that ends in a colon may be the user's ("Please follow these:") or somebody's whose words are
passed on. Only where the line itself tells that it is the user's may a rule below it be saved unasked.
"""

from __future__ import annotations

import re
from enum import IntEnum

from .common_patterns import cue


class Attribution(IntEnum):
    """Whose words a line holds, by the lines above it."""

    OWN = 0
    """Nothing says that they are not the user's."""
    INTRODUCED = 1
    """They stand below a line that does not tell whose they are."""
    QUOTED = 2
    """They stand below a line that names where they are from."""


_ENDS_OPEN = re.compile(r"[:：][*_`\s]*\Z")
_LAST_SENTENCE = re.compile(r"[.!?][\"')\]*_]*\s+(?=\S)")
_LISTED = re.compile(r"\s*(?:[-*•+]\s|\(?\d{1,2}[.)]\s|[A-Za-z][.)]\s)|(?:\t| {2,})\s*\S")
"""An item of a list, or what is indented below one."""

_SAID_MYSELF = cue(
    r"\b(?:i|we)(?:'ve|\ have|\ had|\ just|\ already|\ always)*\ (?:said|told|asked|wrote|mentioned|suggested|noted)\b"
)
_NAMES_SOURCE = cue(
    r"""\b(?:says?|said|saying|wrote|writes|written\ by|told|tells|(?<!questions\ )asked|asks|wants|suggests?|suggested|recommends?|recommended|advises?|advised|states?|stated
        |replied|answered|posted|commented|mentions|mentioned|reported|quotes?|quoted|quoting|according\ to
        |readme|feedback|reviews?|reviewers?|comments|suggestions?|findings?)\b
      | ^\W*from\s(?!(?:now|here|today|this\ point)\b)
      | \b(?:this|these|those|it|is|are|was|got|comes?|came|copied|pasted|taken|straight|notes?|rules?|list|guide(?:line)?s?|advice|mail|email|message|thread)\ from\ (?!(?:now|here|today|this\ point)\b)"""
)
_SPEAKS = cue(r"\b(?:i|i'm|i'd|i'll|i've|we|we're|we'd|we'll|we've|you|you're|please|pls)\b")
_NAMES_RULES = cue(
    r"\b(?:rules?|preferences?|conventions?|remember|memori[sz]e|always|never|from\ (?:now|here|today|this\ point)\ on(?:wards?)?|going\ forward)\b"
)
_ON_TEXTS = r"(?:add|put|write|insert|append|include|paste|translate|rephrase|reword|proofread|fix|check|review|summari[sz]e|explain|document|copy|update|change|replace|turn|convert|look|see|read|address|discuss|answer|compare|implement)"
_ABOUT_TEXT = cue(rf"\b(?:{_ON_TEXTS}|mean|think)\b")
"""What follows "please add these to the docs:" or "what do you think of:" is a text to work on."""
_ORDERS = cue(
    rf"^\W*(?:also\s+|and\s+|then\s+|now\s+|please\s+|pls\s+|(?:can|could|would)\s+you\s+)*(?:{_ON_TEXTS}|use|run|make|create|remove|do|rename|move|test)\b"
)


class AttributionTracker:
    """Follows the lines of a message, in order, and knows of each whose words it holds."""

    def __init__(self) -> None:
        self._attribution = Attribution.OWN
        self._after = Attribution.OWN
        """Whose words come once the passage that was introduced is over."""
        self._began: bool | None = None
        """The passage began with an item of a list; None: it has not begun."""
        self._blank = False
        self._own_list = False
        """What is listed was introduced as the user's own."""

    def blank(self) -> None:
        """A blank line."""
        self._blank = True

    def next(self, line: str, *, typed: bool) -> Attribution:
        """Whose words this line holds. `typed`: it is prose that may have been typed, and may so introduce others."""
        listed = _LISTED.match(line) is not None
        if self._began is None:
            self._began = listed
        elif not listed and (self._blank or self._began):
            self._attribution, self._own_list = self._after, False
        self._blank = False
        attribution = self._attribution
        if typed and _ENDS_OPEN.search(line) is not None:
            self._introduce(_LAST_SENTENCE.split(line)[-1], listed)
        return attribution

    def _introduce(self, line: str, listed: bool) -> None:
        source = _names_source(line)
        if not source and listed and self._own_list:
            return  # A heading within the user's own list.
        if source:
            self._attribution, self._after = Attribution.QUOTED, Attribution.INTRODUCED
        elif self._attribution is Attribution.OWN:
            self._own_list = _is_own(line)
            if not self._own_list:
                self._attribution = Attribution.INTRODUCED
                # After an order ("Fix these:") the user speaks on; after a heading what is passed on may go on.
                self._after = Attribution.OWN if _ORDERS.match(line) else Attribution.INTRODUCED
        self._began = None


def introduces_own(lead: str) -> bool:
    """Does the text before a passage say that the passage is the user's ("Remember this:")?"""
    return _ENDS_OPEN.search(lead) is not None and not _names_source(lead) and _is_own(lead)


def _names_source(line: str) -> bool:
    return _NAMES_SOURCE.search(_SAID_MYSELF.sub("", line)) is not None


def _is_own(line: str) -> bool:
    """Does the line say that what follows is the user's?"""
    speaks = _SPEAKS.search(line) is not None or _NAMES_RULES.search(line) is not None
    return speaks and _ABOUT_TEXT.search(line) is None
