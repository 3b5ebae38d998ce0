# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Does a sentence, by its form, state a rule for the future?

`standing_rule` alone decides; how plainly a rule is stated, and so whether it may be saved without asking, is
judged in `rule_certainty.py`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from .common_patterns import DEICTIC, IMPERATIVE_CHOICE, LOOKED_AT_AGAIN, TO_MEMORY, cue, order_of, without_expletive
from .named_project import without_named_project
from .rewording import OTHER_WAYS, in_known_words, only_asks
from .rule_certainty import Certainty, certainty, orders_from_now_on

_MOMENT = cue(
    r"""\b(?:for\ now|right\ now|for\ the\ moment|at\ the\ moment|at\ this\ point|this\ time|just\ this\ once|today|tonight|
        for\ this\ (?:one|pr|change|task|commit|session|branch|issue|ticket|step|review|test|time)|in\ this\ (?:pr|change|task|commit|
        session|branch|issue|step)|yet|until|while\ (?:i|we|you)|before\ (?:i|we)\b|temporarily|(?<!asking\ )(?<!asking\ me\ )(?<!me\ )first\b(?!\s+(?:person|class)))\b"""
)

_THIRD_PERSON_VERB = re.compile(
    r"^(?:\w{2,}(?:[^s]s|es|ed|ing)|was|were|is|are|had|has|been|did|does|got|went|came|saw|ran)$"
)
_BASE_VERB_IN_S = frozenset(
    [
        "address",
        "pass",
        "access",
        "process",
        "express",
        "discuss",
        "focus",
        "bypass",
        "compress",
        "suppress",
        "miss",
        "press",
        "cross",
        "guess",
        "assess",
        "dress",
        "toss",
        "bring",
        "string",
        "ring",
        "embed",
        "feed",
        "need",
        "seed",
        "speed",
        "exceed",
        "proceed",
        "shed",
        "wed",
        "red",
        "sing",
        "ping",
    ]
)

_ALWAYS_NEVER = cue(
    r"""^(?:(?:you|we|claude|agents?)\s+(?:should|must|need\ to|have\ to|shall)\s+|let'?s\s+)?
        (?:always|never(?:,?\s+ever)?(?:,?\s+under\s+any\s+circumstances,?)?|ever
          |under\s+no\s+circumstances(?:,|\s+(?:should|must|may|can|shall)\s+(?:you|we))?)
        \s+`?(?P<verb>[a-z][\w'-]*)\b"""
)
_MODAL_ALWAYS = cue(
    r"""\b(?:you|we|claude|agents?|it|this|that|they|tests?|commits?|code|prs?|everything|names?|comments?|messages?|docs?|errors?|
        functions?|files?|branch(?:es)?|logs?|scripts?|hooks?|\w+s)
        \s+(?:should|must|need\ to|needs\ to|have\ to|has\ to|shall)\s+(?:always|never)\s+[a-z]"""
)
_WE_ALWAYS = cue(
    r"""\b(?:we|i)\s+(?:always|never)\s+(?:want|need|like|prefer|expect)\b
    | ^(?:we|i)\s+(?:always|never)\s+(?:use|do|write|commit|push|run|call|name|put|keep|add|test|merge|squash|rebase|ship|log|format)\b(?!.*\b(?:but|which|then|so|because|when|and\ (?:it|then|now))\b)"""
)
_NEVER_WITHOUT = cue(r"^(?:never|(?:do\ not|don'?t)\s+ever)\s+[a-z]")
_FROM_NOW_ON = cue(
    r"""\b(?:from\ (?:now|here|this\ point|today)\ on(?:wards?)?|going\ forwards?|moving\ forwards?|henceforth|as\ a\ (?:general\ )?rule)\b
    | \bin\ (?:the\ )?future,?\ (?:please|always|never|do|don'?t|use|make|ask|run|check|avoid|i\ want)\b
    | \b(?:when(?:ever)?|every\ (?:single\ )?time|each\ time|if)\ you\ [^,.?]{3,80},\s*(?:then\ )?(?:please\ )?(?:you\ (?:should|must|need\ to)\ )?
        (?:always|never|make\ sure|remember|also|first|ask|use|run|do\ not|don'?t|update|add|write|check|tell|show|commit|keep|follow|create)\b
    | ^(?:whenever|every\ (?:single\ )?time|each\ time)\ you\ [^.?!]{3,100}?,\s*(?:then\ )?(?:please\ )?(?:bump|regenerate|rebuild|re-?run|rename|link|include|mention|explain|list|put|log|document|record|note|give|open|add|start|switch|pull|push|lint|format|test|verify|confirm|wait|summari[sz]e|describe|report|review)\b
    | ^(?:always\ |please\ )?(?:ask|tell|show|run|update|add|write|check|use|commit|keep|follow|create|format|lint|test|rebase|pull|verify|build)\b[^.?!]{0,80}
        \b(?:whenever|every\ time|each\ time|when(?:ever)?)\ you\b
    | (?:^|\b(?:run|check|ask|test|lint|format|build|rebase|pull|commit|push|verify|review|do|execute|update|me|tests?)\b[^.?!]{0,60}\ )
        (?:before|after|on|for|with|in)\ (?:every|each|any|all)\ (?:commit|push|pr|pull\ request|change|edit|merge|release|deploy|task|refactor|feature)s?\b
    | ^(?:before|after|for|with|in)\ (?:every|each|any|all)\ [^,.?!]{2,40},\s*(?:please\s+)?(?:always|never)\s+[a-z]
    | ^(?:before|after)\ you\ [^,.?!]{3,80},\s*(?:please\s+)?(?:always|never)\s+[a-z]
    | ^(?:when|before|after|while)\ \w+ing(?:\ [^,.?!]{2,80})?,\s*(?:please\s+)?(?:always|never)\s+[a-z]
    | ^(?:if|unless)\ [^,.?!]{3,80},\s*(?:please\s+)?(?:always|never)\s+(?!mind\b)[a-z]
    | ^(?:when(?:ever)?|if|every\ time)\ i\ (?:say|type|write)\ [^,.?!]{2,60},\s*(?:then\ )?(?:please\ )?(?:always\ |never\ )?(?:ask|build|check|commit|create|deploy|do|explain|format|lint|make|merge|open|pull|push|rebase|release|run|ship|show|start|stop|summari[sz]e|tag|test|update|write)\b
    | ^whenever\ (?:an?|any|the)\ (?:new\ )?(?:migration|test|dependency|package|endpoint|api|schema|file|module|component|bug|feature|function|doc|changelog|commit|pr|build)s?\b[^,.?!]{2,60},\s*(?:also\ )?(?:add|ask|bump|commit|document|format|lint|mention|rebase|regenerate|run|tell|test|update|write)\b
    | ^(?:(?:your|our|my)\ )?(?:commit\ messages?|commits|prs?|pull\ requests?|branch\ names?|tests?|docstrings?|comments?|docs|changelogs?|answers?)\s*:\s*(?:always|never)\b
    | ^(?:in|on|for|with)\ (?!(?:the|this|that|these|those|my|your|its|which|such|case|an?|general|fact)\b)(?:(?!(?:we|i|you|they|he|she|it|people|users?)\b)[\w/.-]+\ ){1,2}(?:always|never)\ (?=(?:add|ask|commit|create|delete|include|link|merge|mention|push|put|rebase|run|squash|test|use|write)\b)
    | ^whenever\ [^,.?!]{3,80},\s*(?:please\s+)?(?:ask|tell|show|warn)\ me\b
    | ^(?:i|i'm|we|we're|my|our)\b[^,.?!]{2,60},\s*so\s+(?:please\s+)?(?:always|never)\s+(?!mind\b)[a-z]
    | ^(?:use|write|put|keep|name|indent|format|answer|reply|respond)\ [^,.?!]{2,60},\s*(?:and\s+)?never\ [a-z]
    | ^(?:in|on|for|with)\ (?!(?:the|this|that|these|those|my|your|its|which|such|case|an?)\b)[^,.?!]{2,40},\s*(?:please\s+)?(?:always|never)\s+[a-z]
    | ^(?:when|if)\ (?:in\ doubt|(?:you(?:'re|\ are)\ )?(?:unsure|not\ sure|uncertain)),\s*(?:please\s+)?(?:always|never|ask|do\ not|don'?t|check|prefer|use|say|tell|stop)\b"""
)
_EVERY = cue(
    r"""^(?:(?:we|you)\s+(?:should|must|need\ to|have\ to)\s+(?!fix|check|look|see|find|go)[^.?!]{2,60}\bany\s+(?!of\b|other\b|one\b|more\b|longer\b|case\b)\w+
        | (?:tests|commits|prs|functions|commands|errors|messages|docs|names|comments|logs|files|(?:every|each|any|all)\s+(?:new\s+)?[\w-]+)
            \s+(?:should|must|needs?\ to|ha(?:ve|s)\ to)\s+(?:be|have|start|end|use|contain|include|come|go|live|return|carry|build|pass|support|follow)\b
        | (?:tests|commits|prs|functions|commands|errors|messages|docs|names|comments|logs|files)\s+(?:should|must)\s+(?:not|never|only)\s+\w+
        | (?:keep|sign|prefix|start|end)\s+(?:[\w-]+\s+){0,4}?(?:each|every)\s+(?!of\b|other\b|one\b)\w+)"""
)
_PREFER = cue(
    r"""(?:^(?:i|we)(?:\s+(?:really|much|generally|usually|strongly|always|would|'d|do|just|tend\ to))*\s+prefer(?:\ to)?\s+\S+ |
        \b(?:i|we)(?:\ (?:really|much|generally|usually|strongly|always|do))*\ prefer\s+\S+ |
        ^prefer\s+\S+ | ^my\ preference\ is | ^i\ (?:really\ )?(?:hate|dislike|can't\ stand|don'?t\ like)\ (?:when|it\ when|seeing|to\ see|having|using|\w+ing)\b |
        ^i\ like\ (?:my|our|when|it\ when|\w+s\ (?:to\ be|short|small|in|with|without)\b))"""
)
_TASTE = cue(r"^i\ (?:really\ )?(?:hate|dislike|like|don'?t\ like|can't)\b")
_GENERAL_WANT = cue(
    r"""^(?:i|we)\s+(?:always\s+)?(?:want|need|expect|require|like)\s+(?:an?\s+|the\s+)?[^.?]{0,60}\b(?:for\ every|for\ each|in\ every|in\ each|on\ every|with\ every|
        for\ all|in\ all|every\ time|each\ time|whenever|at\ all\ times)\b"""
)
_NEVER_WANT = cue(
    r"\b(?:i|we)\s+(?:never|don'?t\ ever|do\ not\ ever)\s+(?:want|wanna)\b|\bi\ (?:don'?t|do\ not)\ want\ you\ to\ ever\b"
)
_HOUSE_RULE = cue(
    r"""\b(?:in\ this\ (?:repo(?:sitory)?|project|code\s?base|team|company|org|monorepo|workspace|package|vault)|
        (?:here|in\ here)\s+we|(?:our|the\ team'?s?|my)\ (?:convention|policy|rule|standard|style|coding\ style|practice|workflow)\ (?:is|here|says|requires))\b"""
)
_POLICY = cue(
    r"^(?:our|my|the\ team'?s?)\ (?:convention|policy|rule|standard|style|practice)\ (?:is|says|requires)\b\s*:?\s*(?!not\b|that\s+(?:it|they)|broken|wrong|unclear)\S+\s+\S+"
)
_HOUSE_VERB = cue(
    r"\b(?:always|never|don'?t|do\ not|prefer|must|should|only|avoid|(?:is|are)\ to|we\ (?:use|want|keep|put|write|name|run|commit|format|test|log|squash|rebase|require|follow)|use|keep|put|write)\b"
)
_STYLE = cue(
    r"""\b(?:(?:use|using|in|write|prefer|stick\ (?:to|with))\s+(?:the\s+)?(?:aus\w*|british|american|us|uk|en-\w+)(?:/\w+)?\s+(?:spelling|english) |
        (?:use|prefer|stick\ (?:to|with))\s+(?:conventional\ commits|snake_?case|camel_?case|kebab-?case|pascal_?case|(?:tabs|spaces|(?:\d|two|four)\s+spaces)(?=\s*(?:$|[.,!)]|for\ indent|not|instead|over|in\ (?:this|all|every)|everywhere))|bullet\ points|semantic\ versioning))(?!\w)"""
)
_NEGATIVE = cue(r"^(?:do\ not|don'?t|dont|avoid|no\ more|stop)\s+(?P<verb>[a-z]+)")
_GENERIC_OBJECT = cue(
    r"""\b(?:any(?:thing|where|one|body)?|ever|unless|without\s+(?:asking|my|being|permission|checking|telling|confirm\w*)|
        in\ general|by\ default|automatically|on\ your\ own)\b"""
)
_ANYTHING_NOW = cue(
    r"^(?:do\ not|don'?t|dont)\s+(?:change|do|touch|edit|say|write|start|implement|break|fix|modify)\s+any(?:thing)?\b(?!.*\b(?:without|unless|ever)\b)"
)
_PLURAL_OBJECT = re.compile(
    r"^(?:do not|don'?t|dont|avoid|stop)\s+\w+(?:ing)?\s+(?:to\s+)?(?:[\w/-]+\s+){0,2}?(?!this|thus|its|his|was|is|yes)[\w-]{3,}(?<!s)s\b",
    re.IGNORECASE,
)
_WORRY = cue(
    r"\b(?:worry|bother|forget|mind|think|know|understand|see|need|have|get|care|panic|believe|like|want|mean)\b"
)
_ASK_BEFORE = cue(
    r"^(?:please\s+|always\s+)*(?:ask|check\ with|consult|warn|tell)\s+(?:me\s+)?(?:first\s+)?before\s+(?:you\s+)?(?:ever\s+)?\w+(?:\s+\w+){0,3}?\s+(?:anything|any|new|an?|(?!this|its|his)[\w-]{3,}(?<!s)s)\b"
)
_ASKS_TOO_MUCH = cue(
    r"^(?:stop\ asking|(?:do\ not|don'?t|dont)\ ask)\s+(?:me\s+)?(?:for\s+(?:my\s+)?(?:permission|confirmation|approval)|before)\b"
)
REMEMBERED = "asked to remember"
"""The form of a fact that is not an order."""
REQUEST = rf"""(?:(?:remember|keep\ in\ mind|memori[sz]e)\s*(?:that\b|:)
    | (?:note\ )?for\ (?:the\ )?future(?:\ reference)?\s*[:,]
    | remember\s*,\s+(?=(?:i|we|my|our)\b) | remember\s+(?=(?:i|we)\ (?:hate|love|like|prefer|use|want|need|am|are|don'?t)\b) | (?:do\ not|don'?t)\s+forget\s*(?:that\b|:) | make\ a\ note\s*(?:that\b|:)
    | {TO_MEMORY}\s*:)"""
"""How the user asks to remember what follows: any further pattern for it is made of this one."""
_REMEMBER = cue(
    rf"^(?:(?:and|also|oh|btw|by\ the\ way|one\ more\ thing)\b[\s,:;–—-]*)*(?:(?:please|pls)\s+)?(?:also\s+)?{REQUEST}\s*\S+"
)
_COMPLAINT = cue(
    r"\b(?:but|doesn'?t|does\ not|didn'?t|isn'?t|currently|right\ now|why|fails?|failed|failing|broken|breaks|bugs?|crash\w*|wrong|still|i\ (?:get|see|got))\b"
)
_BEHIND_CONDITION = cue(
    r"^(?:if|unless|when(?:ever)?|before|after)\ [^,.?!]{3,80},\s*(?=(?:please\ )?(?:always|never)\b)"
)
"""Of "if the tests fail, never …" the condition complains of nothing."""
_QUESTION = re.compile(r"\?\s*[)\"'😀-🙏🤀-🧿😅]*\s*$")
_REPORTED = cue(
    r"""\b(?:said|says|told\ (?:him|her|them|us)|(?<!always\ )(?<!never\ )quote|according\ to|claims|wrote|the\ (?:docs?|readme|spec|error|log|output|comment|linter|test|prompt|rule)\s+(?:says?|states?|reads?|tells))\b"""
)
_DESCRIPTION = cue(r"^(?:it|this|that|he|she|they|which|there|the\s+\w+)\s+(?:\w+\s+){0,3}?(?:always|never)\s+\w+")


_DOWNLOAD_AND_RUN = cue(r"\b(?:curl|wget|iwr)\b[^\n]*\|\s*(?:sudo\s+)?(?:ba|z|da|fi)?sh\b")
"""The classic line of an install guide, or of an attack: nobody's rule for how to work."""


def downloads_and_runs(text: str) -> bool:
    """Does it hold a command that runs what it fetches?"""
    return "|" in text and _DOWNLOAD_AND_RUN.search(text) is not None


LONGEST_RULE = 320
"""Characters."""


@dataclass(frozen=True)
class Rule:
    """A sentence that states a rule for the future, and the form by which it was recognised."""

    form: str
    certainty: Certainty = Certainty.LIKELY
    language: str = ""
    """Name of the language it is stated in; "" for English."""


@functools.lru_cache(maxsize=LOOKED_AT_AGAIN)
def standing_rule(sentence: str, possible: int = -1) -> Rule | None:
    """Does the sentence, by its form, state a rule for the future, and how plainly? A remark about this moment does not.
    `possible`: bit n says that number n of `RULE_FORMS` may match; the others are not searched."""
    there = without_named_project(sentence)
    asks = False
    if possible & _IF_OTHER_WAY and len(there) <= LONGEST_RULE:
        known = in_known_words(there)
        if known != there:
            asks = only_asks(there)
            there, possible = known, -1
    form = _rule_form(there, possible)
    if form is None:
        return None
    plainly = certainty(there, order_of(there))
    if asks:
        # Without the question it has to be an order stated outright; with it the user is asked.
        return Rule(form, Certainty.LIKELY) if plainly is Certainty.STATED else None
    return Rule(form, plainly)


def _rule_form(sentence: str, possible: int) -> str | None:
    if len(sentence) > LONGEST_RULE or len(sentence.split()) < 2:
        return None
    core = order_of(sentence)
    if len(core.split()) < 2:
        return None
    form = _form(sentence, core, possible)
    if form is None or downloads_and_runs(sentence) or _REPORTED.search(sentence) or _DESCRIPTION.match(core):
        return None
    if _QUESTION.search(sentence) and not _STYLE.search(sentence):
        return None
    return form


def _form(sentence: str, core: str, possible: int) -> str | None:
    """The name of the form, if what the sentence reports or asks is let pass."""
    always = _ALWAYS_NEVER.match(core) if possible & _IF_ALWAYS_NEVER else None
    if always is not None:
        verb = always["verb"].lower()
        if verb in {"mind", "ever", "again", "the", "a", "an"} or (
            verb not in _BASE_VERB_IN_S and _THIRD_PERSON_VERB.match(verb) and verb != "be"
        ):
            return None
        if not re.match(r"(?:always|never|ever|under)\b", core, re.IGNORECASE) and _COMPLAINT.search(core):
            return None
        return "always or never"
    if (
        possible & _IF_FROM_NOW_ON
        and _FROM_NOW_ON.search(core)
        and (orders_from_now_on(core) or not _COMPLAINT.search(_BEHIND_CONDITION.sub("", core)))
    ):
        return "from now on"
    if (possible & _IF_NEVER_WANT and _NEVER_WANT.search(sentence)) or (
        possible & _IF_WE_ALWAYS and _WE_ALWAYS.search(sentence)
    ):
        return "what the user always or never wants"
    if (
        possible & _IF_MODAL_ALWAYS
        and _MODAL_ALWAYS.search(sentence)
        and not _MOMENT.search(sentence)
        and not _COMPLAINT.search(sentence)
    ):
        return "must always or never"
    if (
        possible & _IF_PREFER
        and _PREFER.search(core)
        and not _PREFERS_HERE.search(core)
        and not (_TASTE.match(core) and DEICTIC.search(without_expletive(core)))
    ):
        return "a stated preference"
    if (
        possible & _IF_EVERY
        and _EVERY.match(core)
        and not DEICTIC.search(core)
        and not _COMPLAINT.search(core.split("(")[0])
    ):
        return "holds for every one"
    if possible & _IF_GENERAL_WANT and _GENERAL_WANT.match(core):
        return "wanted every time"
    if possible & _IF_STYLE and _STYLE.search(sentence) and not _MOMENT.search(sentence):
        return "a style to use"
    if possible & _IF_POLICY and _POLICY.match(core):
        return "a convention, named as one"
    if (
        possible & _IF_HOUSE_RULE
        and _HOUSE_RULE.search(sentence)
        and _HOUSE_VERB.search(core)
        and not _MOMENT.search(sentence)
        and _imperative_or_we(core)
    ):
        return "how this project does it"
    negative = _NEGATIVE.match(core) if possible & _IF_NEGATIVE else None
    if negative is not None and not _WORRY.fullmatch(negative["verb"]) and not _MOMENT.search(sentence):
        if _GENERIC_OBJECT.search(core) and not _ANYTHING_NOW.match(core):
            return "told never to"
        if not DEICTIC.search(core) and _PLURAL_OBJECT.match(core) and not re.search(r"\bthe\s+\w+", core):
            return "told not to"
    if possible & _IF_ASK_BEFORE and _ASK_BEFORE.match(core) and not _MOMENT.search(sentence):
        return "wants to be asked"
    if (
        possible & _IF_ASKS_TOO_MUCH
        and _ASKS_TOO_MUCH.match(core)
        and not DEICTIC.search(core)
        and not _MOMENT.search(sentence)
    ):
        return "wants to be asked less"
    remember = _REMEMBER.match(sentence.strip()) if possible & _IF_REMEMBER else None
    if remember is not None and not DEICTIC.search(sentence.strip()[remember.end() :]):
        return REMEMBERED
    return None


_PREFERS_HERE = cue(
    r"\bprefer(?:\ to)?\s+(?:option\s+)?(?:[a-d1-9]\b|the\s+(?:first|second|third|last|former|latter|other|new|old|original|current)|this|that|it|these|those|your|option|not\ to\b.*\b(?:this|now))"
)


RULE_FORMS = (
    *(_ALWAYS_NEVER, _FROM_NOW_ON, _NEVER_WANT, _WE_ALWAYS, _MODAL_ALWAYS, _PREFER, _EVERY),
    *(_GENERAL_WANT, _STYLE, _POLICY, _HOUSE_RULE, _NEGATIVE, _ASK_BEFORE, _REMEMBER, _ASKS_TOO_MUCH),
    *OTHER_WAYS,
)
"""Without one of these a sentence states no rule."""
(
    _IF_ALWAYS_NEVER,
    _IF_FROM_NOW_ON,
    _IF_NEVER_WANT,
    _IF_WE_ALWAYS,
    _IF_MODAL_ALWAYS,
    _IF_PREFER,
    _IF_EVERY,
    _IF_GENERAL_WANT,
    _IF_STYLE,
    _IF_POLICY,
    _IF_HOUSE_RULE,
    _IF_NEGATIVE,
    _IF_ASK_BEFORE,
    _IF_REMEMBER,
    _IF_ASKS_TOO_MUCH,
) = (1 << place for place in range(len(RULE_FORMS) - len(OTHER_WAYS)))
_IF_OTHER_WAY = sum(1 << place for place in range(len(RULE_FORMS) - len(OTHER_WAYS), len(RULE_FORMS)))


def _imperative_or_we(core: str) -> bool:
    return (
        IMPERATIVE_CHOICE.match(core) is not None
        or re.match(r"(?:in this|here|we|our|my|always|never|must|should|the convention)\b", core, re.IGNORECASE)
        is not None
    )


_SPEAKER = cue(r"\b(?:i|we|you|let'?s|please|should|must|need|don'?t|do\ not|want)\b")
_ALWAYS = cue(r"\b(?:always|never)\s+(?P<verb>[\w'-]+)")


def describes(sentence: str) -> bool:
    """Does its "always" or "never" tell how something behaves ("it never blocks"), and nobody's wish?"""
    match = _ALWAYS.search(sentence)
    return (
        match is not None
        and match["verb"].lower() not in _BASE_VERB_IN_S
        and (_THIRD_PERSON_VERB.match(match["verb"].lower()) is not None or "-" in match["verb"])
        and _SPEAKER.search(sentence) is None
    )
