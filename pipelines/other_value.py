# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Is a statement the same rule as another, but with another value where only one can hold? Pure.

"Always deploy on Tuesdays" after "Always deploy on Mondays". Two rules that differ in a word mostly both hold ("Use ruff
for linting", "Use black for formatting"), and so do two prohibitions. So this is told only where the value is one of few
kinds, stands where the order says what to do and not in its condition ("use the proxy for port 8080"), and every other
word is the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..vault.normal_form import normal_form
from .reversal import Rule, is_negative

_FLAGS = re.IGNORECASE | re.VERBOSE

_FILLERS = frozenset(
    """
    a an the always just only please also and so but ok okay no yes now actually instead again then well i we you must
    should need to have agents claude really rather remember that mind keep-in-mind from-now-on going-forward
    """.split()  # noqa: SIM905  a list of literals would take a page
)
"""Words in which two ways to state one rule differ."""
_PHRASES = tuple(
    (re.compile(rf"\b{phrase.replace('-', ' ')}\b"), phrase)
    for phrase in ("keep-in-mind", "from-now-on", "going-forward")
)

_SPELLED = (
    (re.compile(r"\b([ap])\.m\b\.?"), r"\1m"),
    (
        re.compile(r"\b(\d+|two|three|four|six|eight)-(space|column|character|line|word|second|minute|hour)\b"),
        r"\1 \2s",
    ),
    (re.compile(r"\b(\d{1,2})(?::00)? ?(am|pm)\b"), r"\1\2"),
    (re.compile(r"\b(snake|camel|kebab|pascal)[_ -]?case\b"), r"\1case"),
)
"""Values that are written in several ways."""
_SYNONYMS = {"us": "american", "uk": "british", "golang": "go", "postgresql": "postgres"}

_NUMBERS = {
    word: str(number)
    for number, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), 2)  # noqa: SIM905  as above
}
_NUMBER = r"\d+(?:\.\d+)*"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PART = r"(?:morning|noon|afternoon|evening|night|midnight)"
_LANGUAGE = "english|german|french|spanish|portuguese|italian|dutch|polish|russian|ukrainian|turkish|swedish|czech|chinese|japanese|korean"
_RUNTIME = r"python|node(?:\.?js)?|java|go|golang|rust|ruby|php|typescript|kotlin|swift|scala|perl|lua|postgres(?:ql)?|mysql|mariadb|sqlite|redis|django|rails|react|vue|angular|spring|kubernetes|ubuntu|debian|alpine|version"
_UNITS = r"spaces|columns?|characters?|chars|lines|words|sentences|seconds|minutes|hours|days|weeks|workers|threads|processes|retries|attempts|approvals?|reviewers?|levels|%|percent|kb|mb|gb|px|ms"

# What may stand between verb and value: not the words with which a condition begins.
_NO_CONDITION = r"(?:(?!(?:for|in|on|at|when|whenever|if|before|after|until|unless|while|where|which|with|without|because|since|by|as|than|or)\b)[\w'`/-]+\ )"

# deploy on Mondays; release on Tuesday mornings; run the backup at 3am
_SCHEDULED = rf"""(?:deploy(?:s|ments)?|releases?|ship|publish|roll\ out|merge|tag|cut|upgrade|schedule|plan|hold|do|run|push|start|send)\ {_NO_CONDITION}{{0,4}}
    (?:(?:on|at|by|before|after|in|every|each|happen\ on|go\ out\ on|are\ on)\ )?"""


@dataclass(frozen=True)
class _Slot:
    """Where a value excludes another. `lead`: all words of the rule before it; `value`; `rest`: how the rest begins."""

    lead: str
    value: str
    rest: str = r"\Z|(?=\ )"

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"\A(?P<lead>{self.lead})(?P<value>{self.value})(?P<rest>(?:{self.rest}).*)\Z", _FLAGS)


_SLOTS = (
    *(
        _Slot(_SCHEDULED, time)
        for time in (rf"{_DAY}(?:\ {_PART})?", _PART, r"\d{1,2}(?::\d\d)?(?:am|pm)", r"\d{1,2}:\d\d")
    ),
    # keep lines under 100 characters; wrap at 80 columns; use 2 spaces; wait 5 minutes
    _Slot(
        rf"""(?:use|prefer|stick\ to|stick\ with|keep|limit|cap|wrap|break|indent|set|wait|require)\ {_NO_CONDITION}{{0,4}}
            (?:(?:at|under|below|above|within|with|to|by|for|of|at\ most|at\ least|up\ to|less\ than|more\ than|no\ more\ than)\ )?""",
        _NUMBER,
        rf"\ (?:{_UNITS})\b|%",
    ),
    # the line length is 100; a maximum line length of 88
    _Slot(
        rf"""(?:(?:use|prefer|set|keep|limit)\ )?(?:our\ )?{_NO_CONDITION}{{0,3}}(?:line\ length|line\ width|max\ line\ length|timeout|coverage|indentation|tab\ width|text\ width)\s
            (?:(?:is|of|at|under|below|above|be|limit\ is)\ ){{0,2}}""",
        _NUMBER,
    ),
    # use port 8080; run the server on port 3000; staging is at port 8081
    _Slot(
        rf"(?:(?:use|run|start|serve|bind|host|put|set)\ {_NO_CONDITION}{{0,4}}(?:(?:on|at|to)\ )?|{_NO_CONDITION}{{1,4}}(?:(?:is|runs|lives|listens|sits|are)\ )(?:(?:at|on)\ )?)port\ ",
        r"\d+",
    ),
    # use Python 3.12
    _Slot(rf"(?:use|prefer|stick\ to|stick\ with|target|pin)\ (?:[\w.-]+\ )?(?:{_RUNTIME})\ (?:version\ )?", _NUMBER),
    # tabs, spaces, 2 spaces
    _Slot(
        r"(?:use|prefer|indent|stick\ to|stick\ with)\ (?:(?:code|files|everything)\ )?(?:(?:with|using|by)\ )?",
        rf"tabs|(?:(?:{_NUMBER})\ )?spaces",
    ),
    _Slot(
        rf"(?:use|prefer|write|stick\ to|stick\ with)\ {_NO_CONDITION}{{0,3}}(?:in\ |with\ )?",
        "single|double",
        r"\ quotes?\b",
    ),
    _Slot(
        rf"(?:use|prefer|write|spell|stick\ to|stick\ with)\ {_NO_CONDITION}{{0,3}}(?:in\ )?",
        "british|american|australian|canadian",
        r"\ (?:english|spelling)\b",
    ),
    _Slot(
        rf"(?:use|prefer|name|write|stick\ to|stick\ with)\ {_NO_CONDITION}{{0,3}}(?:in\ |with\ )?",
        r"(?:snake|camel|kebab|pascal)case",
    ),
    # answer in German
    _Slot(rf"(?:answer|reply|respond|talk|speak|write)\ {_NO_CONDITION}{{0,4}}(?:in\ )", _LANGUAGE),
)


def with_other_value(statement: str, rules: Iterable[Rule]) -> list[Rule]:
    """The rules that `statement` states with another value, of which only one can hold."""
    new = _words(statement)
    stated = [(slot, match) for slot in _SLOTS if (match := slot.pattern.match(new))]
    if not stated or is_negative(statement):
        return []  # Not on Fridays, and not on Mondays either.
    return [
        rule
        for rule in rules
        if any(_differ(match, slot.pattern.match(_words(rule.statement))) for slot, match in stated)
        and not is_negative(rule.statement)
    ]


def _differ(one: re.Match[str], other: re.Match[str] | None) -> bool:
    """Are they the same but for a value that excludes the other?"""
    if other is None or (one["lead"], one["rest"]) != (other["lead"], other["rest"]):
        return False
    return _exclude(one["value"], other["value"])


def _exclude(one: str, other: str) -> bool:
    """Whether only one of them can hold: not of "Tuesday" and "Tuesday mornings", nor of "spaces" and "2 spaces"."""
    short, long = sorted((one, other), key=len)
    return not f" {long} ".startswith(f" {short} ") and not f" {long} ".endswith(f" {short} ")


@functools.lru_cache(maxsize=4096)
def _words(text: str) -> str:
    """The words that say what, in lower case, numbers in digits, days in the singular."""
    line = normal_form(text).lower().replace("’", "'")
    for phrase, one_word in (*_PHRASES, *_SPELLED):
        line = phrase.sub(one_word, line)
    words = (word.strip("\"'`*()[]!?.,;:") for word in line.split())
    return " ".join(_plain(word) for word in words if word and word not in _FILLERS)


_PLURAL_TIME: Callable[[str], re.Match[str] | None] = re.compile(rf"(?:{_DAY}|{_PART})s").fullmatch
_VERSION: Callable[[str], re.Match[str] | None] = re.compile(rf"v{_NUMBER}").fullmatch


def _plain(word: str) -> str:
    word = word[:-1] if _PLURAL_TIME(word) else word[1:] if _VERSION(word) else word
    return _NUMBERS.get(word) or _SYNONYMS.get(word) or word
