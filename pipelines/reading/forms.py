"""The explicit forms: words with which a person says outright that something holds. All but FAINT guarantee a
proposal.

There are ten forms in English, and the plainest ones of other languages (`forms.json`): requests, and words for
"always" and "never", which stand in reports of bugs as well. For a sentence that a reader misses, add an example to its
training, not a form.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

from ..candidate import IDEA_LABEL

_DATA = Path(__file__).with_name("forms.json")
_LEAD = r"(?:(?:ok(?:ay)?|and|also|so|but|no|please|btw|hey|thanks|hi|well|oh)\b[\s,.!:;–—-]*)*"
IDEA = "an idea"
"""Form of a sentence that is an idea."""
STEPS = "steps"
"""Form of a sentence that makes a workflow, with the list after it."""
_REQUEST = r"(?:please )?(?:remember|memorize|keep in mind|don'?t forget|note)(?:\s*:|,? that\b)"
_LIST = r"(?:steps|procedure|workflow|runbook|checklist)"
_FORMS: tuple[tuple[str, str], ...] = (
    ("asked to remember", _REQUEST),
    ("from now on", r".{0,60}\b(?:from now on|going forward|from here on|in (?:the )?future,)"),
    (
        "labelled",
        r"(?:(?:new|our|my|house|team|project) )?(?:rule|convention|preference|policy|decision|fact|locked(?: in)?)\s*:"
        r"|(?:we|i)(?:'ve| have)? (?:agreed|decided|settled)(?: that| on| to|:)",
    ),
    (
        STEPS,
        rf"(?![^:]{{0,60}}\b(?:reproduc|these|following|next|remaining))(?:(?:the|our|my) )?"
        rf"(?:{_LIST} (?:to|for) [^:]{{1,40}}:|(?:\w+[ -]){{1,2}}{_LIST}:\s*\Z|how (?:to|we|I) [^:]{{1,40}}:\s*\Z)",
    ),
    ("always or never", r"(?:you (?:should|must|can) |we )?(?:always|never|(?:don'?t|do not) ever)\s+\w+"),
    ("prefer", r"I (?:always|usually|generally|strongly)? ?(?:prefer|hate|never want|always want)\b"),
    (IDEA, IDEA_LABEL),
    ("each time", r"(?:every time|each time|whenever) (?:you|we|I)\b"),
    (
        "this project's way",
        r"in this (?:repo(?:sitory)?|project|code ?base|team|company|workspace)\b,? (?:we|use|never|no)\b",
    ),
    ("one, not the other", r"(?:we|i) use [\w.+#/-]+,? (?:not|instead of|rather than) [\w.+#/-]+"),
)
ORDERS = frozenset({"from now on", "always or never", "prefer", "each time"})
"""Forms of sentences that say how to work, so that they are no facts."""
FAINT = "always or never, in another language"
"""Form that makes a proposal only if the reader does not contradict it."""
_NO_STATEMENT = re.compile(r"\?\s*$|^(?:always|never) ?mind\b", re.IGNORECASE)
_ASKED = re.compile(_LEAD + _REQUEST, re.IGNORECASE)
_RUNS_DOWNLOADS = re.compile(r"\b(?:curl|wget)\b[^\n|]*\|\s*(?:sudo\s+)?\w*sh\b", re.IGNORECASE)


def runs_downloads(text: str) -> bool:
    """Whether a text says to run what is downloaded ("curl … | sh"), which is never saved unasked."""
    return _RUNS_DOWNLOADS.search(text) is not None


_FOR_NOW = re.compile(
    r"\b(?:for (?:now|today|the moment)|at the moment|right now|today(?!['’]s)|tonight|this time(?! zone)|this once"
    r"|(?:for|in|on|during) this (?:one|run|pr|mr|pull request|branch|commit|session|chat|conversation|task|change|step"
    r"|ticket|release|sprint)|until (?:i|we) (?:say|tell)|just once)\b",
    re.IGNORECASE,
)


def holds_for_now(text: str) -> bool:
    """Whether a text says that it holds for the moment ("for this run", "until I say so")."""
    return _FOR_NOW.search(text) is not None


def without_request(text: str) -> str:
    """Remove a leading request to remember ("Remember: …"), unless nothing else is left."""
    found = _ASKED.match(text)
    return (text[found.end() :].strip() if found else "") or text


LOST = "\ufffd"
"""Stands where a host wrote what is no character; between the words of a form it means nothing."""


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[str, re.Pattern[str]], ...]:
    forms = [(name, re.compile(_LEAD + form, re.IGNORECASE)) for name, form in _FORMS]
    others: dict[str, dict[str, list[str]]] = json.loads(_DATA.read_text("utf-8"))
    for key, name in (("request", "a rule ({})"), ("always", FAINT)):
        for language, words in others.items():
            # Languages without blanks between words have no word boundaries.
            joined = "|".join(map(re.escape, words[key]))
            spaced = joined if language in ("zh", "ja") else rf"\b(?:{joined})(?!\w)"
            forms.append((name.format(language), re.compile(rf".*?(?:{spaced})", re.IGNORECASE | re.DOTALL)))
    return tuple(forms)


def explicit_form(sentence: str) -> str | None:
    """Return the name of a sentence's form; None for none, and for questions."""
    text = sentence.strip().strip("*_\"'").replace("’", "'")
    if LOST in text:
        text = " ".join(text.replace(LOST, "").split())
    if _NO_STATEMENT.search(text):
        return None
    return next((name for name, form in _compiled() if form.match(text)), None)
