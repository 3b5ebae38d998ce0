# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Patterns that rules, cues and explicit forms share: opening words, and words that point at something."""

from __future__ import annotations

import functools
import re

LOOKED_AT_AGAIN = 256
"""Most sentences in a cache: those of one message are used several times."""


def cue(pattern: str) -> re.Pattern[str]:
    """Compile a verbose, caseless pattern."""
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


TO_MEMORY = r"""(?:(?:remember|memori[sz]e)\ (?:this|these|the\ following)(?:\ (?:for|in)\ [^:.?!]{2,40}?)?
    | (?:save|store|put|add|write|keep|commit|note)\ (?:(?:this|these|it|the\ following)\ )?(?:down\ )?(?:in|to|into)\ (?:(?:your|the|my|long[\ -]term)\ )*memory)"""
"""What is to be remembered comes after a colon. It is an order to keep a memory, and no part of what is kept."""

_LEAD_IN = cue(
    rf"""^(?:(?:{TO_MEMORY}(?=\s*:)|(?:remember|try|make\ sure|be\ sure)\ to(?=\ (?:always|never))|no|nope|nah|yes|yep|yeah|yup|ok|okay|sure|right|alright|great|good|cool|perfect|thanks|hey|hi|wait|stop|oh|ah|
        hmm+|hm|um+|uh+|well|so|and|but|also|btw|by\ the\ way|actually|please|pls|plz|again|now|then|note|nb|reminder|important|
        remember|one\ more\ thing|for\ the\ record|fyi|in\ general|generally|honestly|look|rule|new\ rule|as\ a\ rule|
        (?:as\ )?(?:i\ )?(?:said|told\ you)(?:\ before)?|just\ remember|keep\ in\ mind|make\ sure(?:\ (?:that|to|you))?|
        be\ sure\ to|you\ (?:should|must|need\ to|have\ to)|(?:can|could|would)\ you(?:\ please)?|
        i(?:'d|\ would)?\ (?:want|need|like|expect)\ you\ to)
        (?:\s*[,:;.!–—-]+\s*|\s+))"""
)

REPLIES = r"""(?:not\ (?:now|yet|today|again|quite|so\ fast)|later|fine|enough|agreed|understood|never\ ?mind
    |forget\ (?:that|it|this|about\ (?:that|it))|scratch\ that|(?:new|change\ of)\ plans?|listen(?:\ up)?)(?=\s*[.,;:!–—-])"""
"""Answers of a word or two, in which nobody else than the user speaks."""

FOR_GOOD = r"""\b(?:from\ (?:now|here|this\ point|today)\ on(?:wards?)?|going\ forwards?|henceforth|for\ (?:the\ future|next\ time)
    |starting\ (?:now|today)|one\ (?:general|more|other|quick|last)\ thing)\b"""
"""Who says so speaks, and not a document."""

DEICTIC = cue(
    r"""\b(?:this|that|these|those|it|its|it's|here|there|above|below|now|yet|today|currently|instead|anymore|again|for\ now|
        right\ now|at\ the\ moment|at\ this\ point|the\ (?:first|second|third|last|next|previous|current|new|old|latter|former))\b"""
)

_EXPLETIVE = cue(r"\b(hate|dislike|like|stand)\ it\ (?=when\ you\b)")

IMPERATIVE_CHOICE = cue(
    r"^(?:use|prefer|stick\ (?:to|with)|write|keep|avoid|run|put|name|commit|test|format|indent|sign|squash|respond|answer|reply|speak|talk|spell|do\ not|don'?t)\b"
)


@functools.lru_cache(maxsize=LOOKED_AT_AGAIN)
def without_lead_in(sentence: str) -> str:
    """Remove the words that only open a sentence ("no, please, also …")."""
    rest = sentence.strip().lstrip("\"'*_`([").strip()
    for _ in range(6):
        match = _LEAD_IN.match(rest)
        if match is None or match.end() >= len(rest):
            break
        rest = rest[match.end() :]
    return rest


_STOP_DOING = re.compile(r"\bstop\s+(?=\w+ing\b)", re.IGNORECASE)


def order_of(sentence: str) -> str:
    """The same, but for the "stop" of "stop adding emojis", which is the order itself."""
    core = without_lead_in(sentence)
    start = sentence.rstrip().rfind(core)
    stop = _STOP_DOING.search(sentence, max(0, start - len("stop  ")))
    return sentence[stop.start() :].rstrip() if stop is not None and stop.end() == start else core


def without_expletive(text: str) -> str:
    """Remove an "it" that points at nothing: "I hate it when you add emojis"."""
    return _EXPLETIVE.sub(r"\1 ", text)


_EXPLETIVE_WISH = cue(
    r"\bit(?:\ would|'d|’d|\ might|\ could)(?:\ also)?\ be\ (?:\w+\ )?(?:nice|cool|neat|great|good|useful|handy|helpful|awesome|fun)\ (?=(?:to|if|for)\b)"
)


def without_expletive_wish(text: str) -> str:
    """Remove the "it" of "it would be nice to have dark mode", which points at nothing, with its verb."""
    return _EXPLETIVE_WISH.sub("", text)


def count_words(text: str) -> int:
    """Number of words; "force-push" counts as the two that it is also written as."""
    return len(text.lower().replace("force-push", "force push").split())
