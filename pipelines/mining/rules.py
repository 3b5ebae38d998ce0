# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""What a sentence says by its form: a standing rule, a correction, an idea, a cause and its fix, a procedure.

`standing_rule` alone decides; how plainly a rule is stated, and so whether it may be saved without asking, is
judged in `standing.py`. The other cues are evidence that the classifier weighs (`features.py`).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..candidate import Category
from .fixes import STATES_CURE
from .gated import GatedPattern, fold
from .standing import Certainty, certainty
from .wanted import WordGates
from .words import words_of

LOOKED_AT_AGAIN = 256
"""Sentences: those of one message are looked at for its features, for what it says, and for the best of them."""
_FLAGS = re.IGNORECASE | re.VERBOSE


def _cue(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, _FLAGS)


# ---------------------------------------------------------------------------------------------- standing rules

_LEAD_IN = _cue(
    r"""^(?:(?:(?:remember|try|make\ sure|be\ sure)\ to(?=\ (?:always|never))|no|nope|nah|yes|yep|yeah|yup|ok|okay|sure|right|alright|great|good|cool|perfect|thanks|hey|hi|wait|stop|oh|ah|
        hmm+|hm|well|so|and|but|also|btw|by\ the\ way|actually|please|pls|plz|again|now|then|note|nb|reminder|important|
        remember|one\ more\ thing|for\ the\ record|fyi|in\ general|generally|honestly|look|rule|new\ rule|as\ a\ rule|
        (?:as\ )?(?:i\ )?(?:said|told\ you)(?:\ before)?|just\ remember|keep\ in\ mind|make\ sure(?:\ (?:that|to|you))?|
        be\ sure\ to|you\ (?:should|must|need\ to|have\ to)|(?:can|could|would)\ you(?:\ please)?|
        i(?:'d|\ would)?\ (?:want|need|like|expect)\ you\ to)
        (?:\s*[,:;.!–—-]+\s*|\s+))"""
)

_DEICTIC = _cue(
    r"""\b(?:this|that|these|those|it|its|it's|here|there|above|below|now|yet|today|currently|instead|anymore|again|for\ now|
        right\ now|at\ the\ moment|at\ this\ point|the\ (?:first|second|third|last|next|previous|current|new|old|latter|former))\b"""
)

_MOMENT = _cue(
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

_ALWAYS_NEVER = _cue(
    r"""^(?:(?:you|we|claude|agents?)\s+(?:should|must|need\ to|have\ to|shall)\s+)?
        (?:always|never(?:,?\s+ever)?(?:,?\s+under\s+any\s+circumstances,?)?|ever
          |under\s+no\s+circumstances(?:,|\s+(?:should|must|may|can|shall)\s+(?:you|we))?)
        \s+`?(?P<verb>[a-z][\w'-]*)\b"""
)
_MODAL_ALWAYS = _cue(
    r"""\b(?:you|we|claude|agents?|it|this|that|they|tests?|commits?|code|prs?|everything|names?|comments?|messages?|docs?|errors?|
        functions?|files?|branch(?:es)?|logs?|scripts?|hooks?|\w+s)
        \s+(?:should|must|need\ to|needs\ to|have\ to|has\ to|shall)\s+(?:always|never)\s+[a-z]"""
)
_WE_ALWAYS = _cue(
    r"""\b(?:we|i)\s+(?:always|never)\s+(?:want|need|like|prefer|expect)\b
    | ^(?:we|i)\s+(?:always|never)\s+(?:use|do|write|commit|push|run|call|name|put|keep|add|test|merge|squash|rebase|ship|log|format)\b(?!.*\b(?:but|which|then|so|because|when|and\ (?:it|then|now))\b)"""
)
_NEVER_WITHOUT = _cue(r"^(?:never|(?:do\ not|don'?t)\s+ever)\s+[a-z]")
_FROM_NOW_ON = _cue(
    r"""\b(?:from\ (?:now|here|this\ point|today)\ on(?:wards?)?|going\ forwards?|moving\ forwards?|henceforth|as\ a\ (?:general\ )?rule)\b
    | \bin\ (?:the\ )?future,?\ (?:please|always|never|do|don'?t|use|make|ask|run|check|avoid|i\ want)\b
    | \b(?:when(?:ever)?|every\ (?:single\ )?time|each\ time|if)\ you\ [^,.?]{3,80},\s*(?:then\ )?(?:please\ )?(?:you\ (?:should|must|need\ to)\ )?
        (?:always|never|make\ sure|remember|also|first|ask|use|run|do\ not|don'?t|update|add|write|check|tell|show|commit|keep|follow|create)\b
    | ^(?:always\ |please\ )?(?:ask|tell|show|run|update|add|write|check|use|commit|keep|follow|create|format|lint|test|rebase|pull|verify|build)\b[^.?!]{0,80}
        \b(?:whenever|every\ time|each\ time|when(?:ever)?)\ you\b
    | (?:^|\b(?:run|check|ask|test|lint|format|build|rebase|pull|commit|push|verify|review|do|execute|update|me|tests?)\b[^.?!]{0,60}\ )
        (?:before|after|on|for|with|in)\ (?:every|each|any|all)\ (?:commit|push|pr|pull\ request|change|edit|merge|release|deploy|task|refactor|feature)s?\b
    | ^(?:before|after|for|with|in)\ (?:every|each|any|all)\ [^,.?!]{2,40},\s*(?:please\s+)?(?:always|never)\s+[a-z]"""
)
_EVERY = _cue(
    r"""^(?:(?:we|you)\s+(?:should|must|need\ to|have\ to)\s+(?!fix|check|look|see|find|go)[^.?!]{2,60}\bany\s+(?!of\b|other\b|one\b|more\b|longer\b|case\b)\w+
        | (?:tests|commits|prs|functions|commands|errors|messages|docs|names|comments|logs|files|(?:every|each|any|all)\s+(?:new\s+)?[\w-]+)
            \s+(?:should|must|needs?\ to|ha(?:ve|s)\ to)\s+(?:be|have|start|end|use|contain|include|come|go|live|return|carry|build|pass|support|follow)\b
        | (?:tests|commits|prs|functions|commands|errors|messages|docs|names|comments|logs|files)\s+(?:should|must)\s+(?:not|never|only)\s+\w+
        | (?:keep|sign|prefix|start|end)\s+(?:[\w-]+\s+){0,4}?(?:each|every)\s+(?!of\b|other\b|one\b)\w+)"""
)
_PREFER = _cue(
    r"""(?:^(?:i|we)(?:\s+(?:really|much|generally|usually|strongly|always|would|'d|do|just|tend\ to))*\s+prefer(?:\ to)?\s+\S+ |
        \b(?:i|we)(?:\ (?:really|much|generally|usually|strongly|always|do))*\ prefer\s+\S+ |
        ^prefer\s+\S+ | ^my\ preference\ is | ^i\ (?:really\ )?(?:hate|dislike|can't\ stand|don'?t\ like)\ (?:when|it\ when|seeing|to\ see|having|using|\w+ing)\b |
        ^i\ like\ (?:my|our|when|it\ when|\w+s\ (?:to\ be|short|small|in|with|without)\b))"""
)
_TASTE = _cue(r"^i\ (?:really\ )?(?:hate|dislike|like|don'?t\ like|can't)\b")
_GENERAL_WANT = _cue(
    r"""^(?:i|we)\s+(?:always\s+)?(?:want|need|expect|require|like)\s+(?:an?\s+|the\s+)?[^.?]{0,60}\b(?:for\ every|for\ each|in\ every|in\ each|on\ every|with\ every|
        for\ all|in\ all|every\ time|each\ time|whenever|at\ all\ times)\b"""
)
_NEVER_WANT = _cue(
    r"\b(?:i|we)\s+(?:never|don'?t\ ever|do\ not\ ever)\s+(?:want|wanna)\b|\bi\ (?:don'?t|do\ not)\ want\ you\ to\ ever\b"
)
_HOUSE_RULE = _cue(
    r"""\b(?:in\ this\ (?:repo(?:sitory)?|project|code\s?base|team|company|org|monorepo|workspace|package|vault)|
        (?:here|in\ here)\s+we|(?:our|the\ team'?s?|my)\ (?:convention|policy|rule|standard|style|coding\ style|practice|workflow)\ (?:is|here|says|requires))\b"""
)
_POLICY = _cue(
    r"^(?:our|my|the\ team'?s?)\ (?:convention|policy|rule|standard|style|practice)\ (?:is|says|requires)\b\s*:?\s*(?!not\b|that\s+(?:it|they)|broken|wrong|unclear)\S+\s+\S+"
)
_HOUSE_VERB = _cue(
    r"\b(?:always|never|don'?t|do\ not|prefer|must|should|only|avoid|(?:is|are)\ to|we\ (?:use|want|keep|put|write|name|run|commit|format|test|log|squash|rebase|require|follow)|use|keep|put|write)\b"
)
_IMPERATIVE_CHOICE = _cue(
    r"^(?:use|prefer|stick\ (?:to|with)|write|keep|avoid|run|put|name|commit|test|format|indent|sign|squash|respond|answer|reply|speak|talk|spell|do\ not|don'?t)\b"
)
_STYLE = _cue(
    r"""\b(?:(?:use|using|in|write|prefer|stick\ (?:to|with))\s+(?:the\s+)?(?:aus\w*|british|american|us|uk|en-\w+)(?:/\w+)?\s+(?:spelling|english) |
        (?:use|prefer|stick\ (?:to|with))\s+(?:conventional\ commits|snake_?case|camel_?case|kebab-?case|pascal_?case|(?:tabs|spaces|(?:\d|two|four)\s+spaces)(?=\s*(?:$|[.,!)]|for\ indent|not|instead|over|in\ (?:this|all|every)|everywhere))|bullet\ points|semantic\ versioning))(?!\w)"""
)
_NEGATIVE = _cue(r"^(?:do\ not|don'?t|dont|avoid|no\ more|stop)\s+(?P<verb>[a-z]+)")
_GENERIC_OBJECT = _cue(
    r"""\b(?:any(?:thing|where|one|body)?|ever|unless|without\s+(?:asking|my|being|permission|checking|telling|confirm\w*)|
        in\ general|by\ default|automatically|on\ your\ own)\b"""
)
_ANYTHING_NOW = _cue(
    r"^(?:do\ not|don'?t|dont)\s+(?:change|do|touch|edit|say|write|start|implement|break|fix|modify)\s+any(?:thing)?\b(?!.*\b(?:without|unless|ever)\b)"
)
_PLURAL_OBJECT = re.compile(
    r"^(?:do not|don'?t|dont|avoid|stop)\s+\w+(?:ing)?\s+(?:to\s+)?(?:[\w/-]+\s+){0,2}?(?!this|thus|its|his|was|is|yes)[\w-]{3,}(?<!s)s\b",
    re.IGNORECASE,
)
_WORRY = _cue(
    r"\b(?:worry|bother|forget|mind|think|know|understand|see|need|have|get|care|panic|believe|like|want|mean)\b"
)
_REMEMBER = _cue(
    r"^(?:please\s+)?(?:(?:remember|keep\ in\ mind|memori[sz]e)\s*(?:that\b|:)|(?:note\ )?for\ (?:the\ )?future(?:\ reference)?\s*[:,])\s*\S+"
)
_COMPLAINT = _cue(
    r"\b(?:but|doesn'?t|does\ not|didn'?t|isn'?t|currently|right\ now|why|fails?|failed|failing|broken|breaks|bugs?|crash\w*|wrong|still|i\ (?:get|see|got))\b"
)
_QUESTION = re.compile(r"\?\s*[)\"'😀-🙏🤀-🧿😅]*\s*$")
_REPORTED = _cue(
    r"""\b(?:said|says|told\ (?:him|her|them|us)|quote|according\ to|claims|wrote|the\ (?:docs?|readme|spec|error|log|output|comment|linter|test|prompt|rule)\s+(?:says?|states?|reads?|tells))\b"""
)
_DESCRIPTION = _cue(r"^(?:it|this|that|he|she|they|which|there|the\s+\w+)\s+(?:\w+\s+){0,3}?(?:always|never)\s+\w+")


_DOWNLOAD_AND_RUN = _cue(r"\b(?:curl|wget|iwr)\b[^\n]*\|\s*(?:sudo\s+)?(?:ba|z|da|fi)?sh\b")
"""The classic line of an install guide, or of an attack: nobody's rule for how to work."""


def downloads_and_runs(text: str) -> bool:
    """Does it hold a command that runs what it fetches?"""
    return "|" in text and _DOWNLOAD_AND_RUN.search(text) is not None


@dataclass(frozen=True)
class Rule:
    """A sentence that states a rule for the future, and the form by which it was recognised."""

    form: str
    certainty: Certainty = Certainty.LIKELY


@functools.lru_cache(maxsize=LOOKED_AT_AGAIN)
def without_lead_in(sentence: str) -> str:
    """The sentence without the words that only open it ("no, please, also …")."""
    rest = sentence.strip().lstrip("\"'*_`([").strip()
    for _ in range(6):
        match = _LEAD_IN.match(rest)
        if match is None or match.end() >= len(rest):
            break
        rest = rest[match.end() :]
    return rest


@functools.lru_cache(maxsize=LOOKED_AT_AGAIN)
def standing_rule(sentence: str) -> Rule | None:
    """Does the sentence, by its form, state a rule for the future, and how plainly? A remark about this moment does not."""
    rule = _rule_by_form(sentence)
    return None if rule is None else Rule(rule.form, certainty(sentence, without_lead_in(sentence)))


def _rule_by_form(sentence: str) -> Rule | None:
    if len(sentence) > 320 or len(sentence.split()) < 2 or _DOWNLOAD_AND_RUN.search(sentence):
        return None
    core = without_lead_in(sentence)
    words = core.split()
    if len(words) < 2:
        return None
    question = _QUESTION.search(sentence) is not None
    if _REPORTED.search(sentence) or _DESCRIPTION.match(core):
        return None
    if question and not _STYLE.search(sentence):
        return None
    always = _ALWAYS_NEVER.match(core)
    if always is not None:
        verb = always["verb"].lower()
        if verb in {"mind", "ever", "again", "the", "a", "an"} or (
            verb not in _BASE_VERB_IN_S and _THIRD_PERSON_VERB.match(verb) and verb != "be"
        ):
            return None
        if not re.match(r"(?:always|never|ever|under)\b", core, re.IGNORECASE) and _COMPLAINT.search(core):
            return None
        return Rule("always or never")
    if _FROM_NOW_ON.search(core) and not _COMPLAINT.search(core):
        return Rule("from now on")
    if _NEVER_WANT.search(sentence) or _WE_ALWAYS.search(sentence):
        return Rule("what the user always or never wants")
    if _MODAL_ALWAYS.search(sentence) and not _MOMENT.search(sentence) and not _COMPLAINT.search(sentence):
        return Rule("must always or never")
    if _PREFER.search(core) and not _PREFERS_HERE.search(core) and not (_TASTE.match(core) and _DEICTIC.search(core)):
        return Rule("a stated preference")
    if _EVERY.match(core) and not _DEICTIC.search(core) and not _COMPLAINT.search(core.split("(")[0]):
        return Rule("holds for every one")
    if _GENERAL_WANT.match(core):
        return Rule("wanted every time")
    if _STYLE.search(sentence) and not _MOMENT.search(sentence):
        return Rule("a style to use")
    if _POLICY.match(core):
        return Rule("a convention, named as one")
    if (
        _HOUSE_RULE.search(sentence)
        and _HOUSE_VERB.search(core)
        and not _MOMENT.search(sentence)
        and _imperative_or_we(core)
    ):
        return Rule("how this project does it")
    negative = _NEGATIVE.match(core)
    if negative is not None and not _WORRY.fullmatch(negative["verb"]) and not _MOMENT.search(sentence):
        if _GENERIC_OBJECT.search(core) and not _ANYTHING_NOW.match(core):
            return Rule("told never to")
        if not _DEICTIC.search(core) and _PLURAL_OBJECT.match(core) and not re.search(r"\bthe\s+\w+", core):
            return Rule("told not to")
    if (remember := _REMEMBER.match(sentence.strip())) and not _DEICTIC.search(sentence.strip()[remember.end() :]):
        return Rule("asked to remember")
    return None


_PREFERS_HERE = _cue(
    r"\bprefer(?:\ to)?\s+(?:option\s+)?(?:[a-d1-9]\b|the\s+(?:first|second|third|last|former|latter|other|new|old|original|current)|this|that|it|these|those|your|option|not\ to\b.*\b(?:this|now))"
)


_RULE_FORMS = (
    *(_ALWAYS_NEVER, _FROM_NOW_ON, _NEVER_WANT, _WE_ALWAYS, _MODAL_ALWAYS, _PREFER, _EVERY),
    *(_GENERAL_WANT, _STYLE, _POLICY, _HOUSE_RULE, _NEGATIVE, _REMEMBER),
)
"""Without one of these a sentence states no rule."""


def _imperative_or_we(core: str) -> bool:
    return (
        _IMPERATIVE_CHOICE.match(core) is not None
        or re.match(r"(?:in this|here|we|our|my|always|never|must|should|the convention)\b", core, re.IGNORECASE)
        is not None
    )


_SPEAKER = _cue(r"\b(?:i|we|you|let'?s|please|should|must|need|don'?t|do\ not|want)\b")
_ALWAYS = _cue(r"\b(?:always|never)\s+(?P<verb>[\w'-]+)")


def describes(sentence: str) -> bool:
    """Does its "always" or "never" tell how something behaves ("it never blocks"), and nobody's wish?"""
    match = _ALWAYS.search(sentence)
    return (
        match is not None
        and match["verb"].lower() not in _BASE_VERB_IN_S
        and (_THIRD_PERSON_VERB.match(match["verb"].lower()) is not None or "-" in match["verb"])
        and _SPEAKER.search(sentence) is None
    )


# ---------------------------------------------------------------------------------------------- cues

PREFERENCE_CUES: Mapping[str, re.Pattern[str]] = {
    "prefer": _cue(r"\b(?:i(?:'d)?|we|would)\s+(?:\w+\s+)?(?:prefer|rather)\b|\bprefer(?:ably)?\b"),
    "avoid": _cue(
        r"\b(?:avoid|let's\ not|lets\ not|don'?t\ want|do\ not\ want|shouldn'?t|rather\ than|instead\ of|not\ be\ committed|no\ need\ for)\b"
    ),
    "negative_order": _cue(r"^(?:\w+[,!]?\s+){0,2}(?:do\ not|don'?t|dont|never|no\ more|stop)\s+\w+"),
    "order_of_work": _cue(
        r"\b(?:first|before\s+(?:we|you|that|committing|pushing)|separate\s+(?:pr|commit|branch)|(?:cut|new|create)\s+a\s+branch|pull\s+rebase|rebase\s+first|draft\s+pr)\b"
    ),
    "consistency": _cue(
        r"\b(?:consisten\w+|convention\w*|style|standard\w*|best\ practice|existing\ (?:helper|code|function|pattern|test)|reuse|re-use|duplicat\w+|single\ source\ of\ truth|source\ of\ truth|same\ (?:as|way|style|pattern))\b"
    ),
    "readability": _cue(
        r"\b(?:readab\w+|easier\ to|hard\ to\ (?:read|follow|understand)|grok|obvious|clear(?:er|ly)?|friendl\w+|simpl(?:er|ify|icity|e)|concise|short(?:er)?|verbose|literal)\b"
    ),
    "always_any": _cue(r"\b(?:always|never|every|any|all|only|each|everywhere|anywhere)\b"),
    "want": _cue(
        r"\b(?:i(?:'d|\ would)?\s+(?:also\s+)?(?:like|want|need|love)|i\ do\ (?:want|need)|i'd\ go\ with|we\ (?:want|need))\b"
    ),
    "should": _cue(
        r"\b(?:we|it|this|they|that|there|tests?|function|code)\s+should(?:n'?t)?\b|\bshould\ (?:we|be|not|all|this|it)\b|\bneeds?\ to\ be\b|\bhas\ to\b|\bmust\b"
    ),
    "lets": _cue(r"\b(?:let'?s|lets)\s+(?:not|also|always|just|use|keep|do|have|call|make|move|drop|avoid)\b"),
    "tooling_request": _cue(
        r"\b(?:can|could)\s+(?:we|you)\s+(?:not|use|change|make|keep|move|rename|rewrite|also|please)\b|\bany\ chance\b"
    ),
    "reason_given": _cue(
        r"\b(?:because|since|so\ that|so\ we|so\ i|too\ (?:slow|long|verbose|intrusive|noisy|granular|complex)|consume|that'?ll\ make|for\ clarity|to\ save)\b"
    ),
    "really_way": _cue(
        r"\b(?:really\ the\ way|should\ (?:we|this|all)|is\ there\ (?:any\ )?(?:other|another|a\ better)\ way|better\ way|are\ we\ \w+ing\ too)\b"
    ),
}

CORRECTION_CUES: Mapping[str, re.Pattern[str]] = {
    "opens_no": _cue(
        r"^(?:no|nope|nah|not\ quite|wait|stop|hold\ on|hmm+|huh|argh+|actually|well\ actually|umm*|uhh*|technically|wrong|incorrect)\b"
    ),
    "not_right": _cue(
        r"\b(?:not|isn'?t|wasn'?t|aren'?t|doesn'?t\ (?:seem|look))\s+(?:\w+\s+)?(?:right|correct|true|accurate|what\ i)\b|\b(?:wrong|incorrect|mistake|misread|misunderst\w+|made\ (?:it|this|that)\ up|make\ it\ up)\b"
    ),
    "i_said": _cue(
        r"\bi\s+(?:said|told\ you|asked|did(?:n'?t|\ not)\s+(?:say|ask|mean|want)|meant|mean)\b|\bas\ i\ said\b|\bwhat\ i\ (?:said|asked|meant|want(?:ed)?)\b"
    ),
    "should_be": _cue(
        r"\b(?:should\ (?:be|have\ been|have)|is\ supposed\ to|it'?s\ not|not\ a\b|it\ should|should\ also|shouldn'?t\ have)\b"
    ),
    "revert": _cue(
        r"\b(?:revert|undo|put\ (?:it|that|this)\ back|roll\ back|go\ back|ignore\ (?:this|that)|drop|remove\ (?:this|that)|don'?t\ (?:check|commit|do|change|touch|add|remove))\b"
    ),
    "x_not_y": _cue(r"\b(?:not|instead\ of|rather\ than)\s+[`\"']?[\w./:-]+[`\"']?\s*(?:[.,!)]|$)|,\s*not\s+\w+"),
    "still": _cue(r"\b(?:still|again|already)\b"),
    "on_purpose": _cue(
        r"\b(?:on\ purpose|intentional(?:ly)?|deliberate(?:ly)?|by\ design|have\ in\ mind|keep\ in\ mind)\b"
    ),
    "why_did_you": _cue(r"\bwhy\s+(?:did|are|would|do|have|is|was)\s+(?:you|it|this|we)\b|\bhave\ you\b|\bdid\ you\b"),
    "you_did": _cue(
        r"\byou\s+(?:\w+\s+)?(?:forgot|missed|removed|deleted|changed|broke|added|committed|skipped|didn'?t|should\ have|were\ supposed)\b"
    ),
}

IDEA_CUES: Mapping[str, re.Pattern[str]] = {
    "declares": _cue(
        r"^(?:(?:new|another|one|random|crazy|wild|quick|other)\s+)?(?:idea|thought|feature\ idea|brainstorm(?:ing)?|proposal|wishlist|todo|follow[\s-]?up)\s*[:—–-]\s*\S"
    ),
    "brainstorm": _cue(
        r"\b(?:brainstorm\w*|roadmap|backlog|wish\s?list|investigate\ list|parking\ lot|nice\ to\ have|fast\ follow)\b"
    ),
    "follow_up": _cue(r"\b(?:follow[\s-]?ups?)\b"),
    "later": _cue(
        r"\b(?:(?:come\ back|look|get|return|revisit|discuss\w*|tackle|handle|do|build|add)\b[^.?!]{0,40}\b(?:later|another\ time|some\ other\ time|down\ the\ (?:road|line)|eventually)|later\ on|for\ later|for\ discussion|revisit)\b"
    ),
    "future": _cue(
        r"\b(?:(?:in|for|a)\s+(?:the\s+|a\s+)?(?:near\s+)?future(?!\ test|\ prompt)|future\s+(?:enhancement|exercise|work|improvement|feature|version|release|iteration|pr|integration)s?|some\s?day|eventually|down\ the\ (?:road|line)|long(?:er)?[\s-]term|next\ (?:version|iteration|release))\b"
    ),
    "separate": _cue(
        r"\b(?:separate|own|different|another|new)\s+(?:pr|pull\ request|feature|issue|ticket|project|package|plan|branch|plugin|tool|command|repo)\b"
    ),
    "ticket": _cue(
        r"\b(?:(?:create|add|open|log|make|file|raise)\s+(?:\w+\s+){0,3}(?:linear|jira|github|gh|follow[\s-]?up)?\s*(?:issue|ticket|task|story)s?)\b"
    ),
    "we_could": _cue(
        r"\b(?:we|you|i|it|this|one|could)\s+(?:could|might)\s+(?:\w+\s+){0,2}(?:also|even|build|add|have|use|offer|make|split|extract|create|move|turn|support|cache|show|do)\b|\bcould\ also\b|\bcould\ be\ (?:its|a)\s+(?:own\s+)?\w+"
    ),
    "should_also": _cue(
        r"\bwe\s+should\s+(?:also|probably|maybe|eventually|really|at\ some\ point)\b|\bmaybe\s+we\s+(?:should|could|can)\b"
    ),
    "what_if": _cue(
        r"\b(?:what\ (?:if|about|do\ you\ think\ (?:about|of))|how\ (?:about|much\ effort|hard|difficult)|wondering\ (?:if|whether)|would\ it\ (?:make\ sense|be\ (?:possible|nice|cool|good|useful|worth))|wouldn'?t\ it|imagine)\b"
    ),
    "would_be_nice": _cue(
        r"\b(?:would\ be\ (?:nice|cool|great|good|useful|helpful|awesome|handy|interesting)|it'?d\ be\ (?:nice|cool|great|good)|i\ would\ (?:love|like)\ to\ (?:see|have))\b"
    ),
    "defer": _cue(
        r"\b(?:leave\ (?:this|that|it)\ for|defer\w*|out\ of\ scope|not\ (?:in|part\ of)\ (?:scope|the\ (?:initial|current)\ plan)|park\ (?:this|that|it)|punt|postpone)\b"
    ),
    "at_some_point": _cue(
        r"\b(?:at\ some\ point|one\ day|one\ of\ these\ days|when\ we\ (?:have|get)\ time|in\ a\ later)\b"
    ),
}

FIX_CUES: Mapping[str, re.Pattern[str]] = {
    "root_cause": _cue(
        r"\b(?:root\ cause|the\ (?:actual|real|underlying|fundamental|core)\ (?:bug|issue|problem|cause)|culprit)\b"
    ),
    "the_issue_is": _cue(
        r"\b(?:the|this|that|your|amend)\s+(?:\w+\s+)?(?:issue|problem|bug|cause|reason|failure|error|crash|regression)\b[^.\n]{0,60}?(?:\b(?:is|was|were|are|comes\ from|came\ from|stems\ from|due\ to)\b|:)"
    ),
    "found": _cue(
        r"\b(?:found\ (?:it|the\ (?:\w+\s+)?(?:bug|issue|problem|cause|culprit))|there\ it\ is|that\ explains|aha|now\ i\ see\ (?:the|what|why))\b"
    ),
    "caused_by": _cue(
        r"\b(?:caused\ by|because\ of\ (?:a|the|an)|due\ to|was\ because|is\ because|happens\ because|fails\ because|failed\ because|the\ reason\ (?:is|was)|this\ is\ because|happening\ because)\b"
    ),
    "the_fix": _cue(
        r"\b(?:the|a|this|my|correct|proper|right|clean)\s+(?:\w+\s+){0,2}?(?:fix|solution|workaround)\s*(?:\b(?:is|was|works|worked|resolved|should\ be|would\ be|for)\b|:)"
    ),
    "fixed_by": _cue(
        r"\b(?:fixed|solved|resolved|worked\ around|addressed)\s+(?:\w+\s+){0,3}?(?:by|with|via|in)\b|\b(?:fixes|fixed|resolves|resolved)\s+(?:the|this|a|an|it)\b"
    ),
    "workaround": _cue(r"\bwork[\s-]?around\b"),
    "mechanism": _cue(
        r"\b(?:doesn'?t|does\ not|didn'?t|isn'?t|not)\s+(?:\w+\s+)?(?:respect|honou?r|propagate|set|read|handle|resolve|include|inherit|tracked|detect|account|see|exist|reset|clear|persist|update|call|check|work)\w*\b"
    ),
    "breaks": _cue(
        r"\b(?:overwrit\w+|clobber\w*|leak\w*|panic\w*|crash\w*|dereference|nil\ pointer|race\ condition|deadlock|undefined|out\ of\ (?:range|bounds)|never\ (?:reached|called|set|closed)|unreachable|silently|instead\ of|mismatch|stale|corrupt\w*|infinite\ loop|off[\s-]by[\s-]one|symlink|timeout|times\ out|too\ early|too\ late|before\ (?:the|it)|premature\w*|wrong\ (?:path|file|branch|directory|order|type|value))\b"
    ),
    "fails": _cue(r"\b(?:fails?|failed|failing|breaks?|broken|broke|error(?:ed|s)?|throws?|refuses)\b"),
    "so_that": _cue(r"\b(?:so|which\ means|meaning|therefore|as\ a\ result|causing|leads\ to|leading\ to)\b"),
    "let_me_fix": _cue(
        r"\b(?:let\ me\ fix|i'?ll\ fix|need\ to\ (?:fix|use|change|update)|should\ i\ (?:implement|fix)|the\ fix)\b"
    ),
    "ticks": _cue(r"`[^`]+`"),
    "before_after": _cue(r"\b(?:before|previously|used\ to|old\ code)\b[^.\n]{0,80}\b(?:after|now|new\ code)\b"),
}

ROUTINE_CUES: Mapping[str, re.Pattern[str]] = {
    "let_me": _cue(
        r"^(?:(?:ok|okay|now|good|great|perfect|excellent)[,.!]?\s+)?(?:now\s+)?(?:let\ me|i'?ll|i\ will|i\ need\ to|i'?m\ going\ to|next|now)\b"
    ),
    "all_pass": _cue(
        r"\b(?:all\ (?:\d+\s+)?(?:\w+\s+)?(?:tests?\s+)?pass|tests?\ pass|lint\ (?:is\ )?clean|build\ succeeds|everything\ passes)\b"
    ),
    "summary": _cue(
        r"\b(?:summary\ of\ (?:the\ )?changes|here'?s\ (?:a\ summary|what\ (?:changed|i\ did))|all\ done|done\.|changes\ made|successfully)\b"
    ),
    "question": _cue(r"\?\s*$"),
    "acknowledge": _cue(
        r"^(?:yes|yep|yeah|yup|ok|okay|sure|great|good|nice|cool|perfect|thanks|thank\ you|lgtm|sounds\ good|looks\ good|go\ ahead|continue|proceed|do\ it|commit|push)\b"
    ),
    "ask_info": _cue(
        r"^(?:what|why|how|where|when|which|who|is|are|does|do|did|can\ you\ (?:explain|tell|show|check|look|read|review|see|find|confirm))\b"
    ),
    "describes": _cue(
        r"\b(?:it|this|that|they|which|users?|test|was|were|is|are|has|have|had|the\ \w+)\s+(?:\w+\s+){0,2}(?:always|never)\s+\w+"
    ),
    "git_order": _cue(r"\b(?:commit|push|pr\ description|commit\ message|open\ (?:a\ )?(?:draft\ )?pr|merge|rebase)\b"),
}

WORKFLOW_CUES: Mapping[str, re.Pattern[str]] = {
    "ordered": _cue(
        r"\b(?:first|start\ (?:by|with))\b[^.\n]{3,120}\b(?:then|after\ that|afterwards|next|finally|before)\b"
    ),
    "arrow": _cue(r"\S+\s*(?:->|→|=>)\s*\S+[^.\n]*(?:->|→|=>)\s*\S+"),
    "whenever_steps": _cue(
        r"\b(?:before|after|when(?:ever)?|every\ time|each\ time|once|as\ soon\ as)\b[^.\n]{3,80}[,:]\s*(?:please\s+)?(?:always\s+)?(?:run|commit|push|update|check|open|create|write|rebase|do|execute|build|test|lint|format)\b[^.\n]{2,80}\b(?:then|and|followed\ by)\b"
    ),
    "process": _cue(
        r"\b(?:our|my|the|your)\s+(?:release|deploy(?:ment)?|review|usual|normal|standard|dev|development|testing|git|branching|pr)?\s*(?:process|workflow|procedure|routine|flow|checklist|steps)\s+(?:is|are|goes|should|:)"
    ),
}

ALL_CUES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "preference": PREFERENCE_CUES,
    "correction": CORRECTION_CUES,
    "idea": IDEA_CUES,
    "fix": FIX_CUES,
    "routine": ROUTINE_CUES,
    "workflow": WORKFLOW_CUES,
}


_CUES: Mapping[str, re.Pattern[str]] = {
    f"{family}:{name}": pattern for family, patterns in ALL_CUES.items() for name, pattern in patterns.items()
}
CUE_NAMES = tuple(_CUES)


# ---------------------------------------------------------------------------------------------- explicit forms

_EXPLICIT: tuple[tuple[Category, str, re.Pattern[str]], ...] = (
    ("correction", "refuses, and says what to do", _cue(
        r"""^(?:no|nope|nah|stop|wait|wrong|not\ that|argh+|please\ no)\b[\s,.!:;–—-]+(?:(?:please|pls|just|rather|you\ should|let's|lets)\s+)*
            (?:use|run|call|name|put|keep|leave|move|rename|write|make|create|add|do\ not|don'?t|never|always|revert|undo|only|stick|switch|take|go\ with)\s+\S+"""
    )),
    ("correction", "repeats what was said before", _cue(
        r"\bi\s+(?:already\s+)?(?:said|told\ you|asked\ (?:you|for))\b(?!\s*[?])(?!.*\?\s*$)\s+(?:(?:to|not|you|that|about|before|for)\b|(?!so\b)\w+)"
    )),
    ("correction", "says what should have been done", _cue(r"^(?:\w+[,.!]?\s+){0,3}you\s+(?:should(?:n'?t|\ not)?\ have|forgot\ (?:to|the)|were\ (?:not\ )?supposed\ to)\b")),
    ("preference", "says what to use instead of what", _cue(
        r"^(?:please\s+|let'?s\s+|we\s+(?:should\s+)?)?use\s+[^,.;?]{2,50}?(?:,?\s+(?:and\s+)?not\s+|\s+instead\ of\s+|\s+rather\ than\s+|\s+over\s+)(?!(?:this|that|it|the\ (?:first|second|old))\b)[^,.;?]{2,40}[.!]?$"
    )),
    ("idea", "called an idea", _cue(
        r"^(?:(?:new|another|one\ more|random|crazy|wild|quick|also\ an|other|feature)\s+){0,2}(?:ideas?|brainstorm|feature\ (?:idea|request)|follow[\s-]?up|for\ later|nice\ to\ have|wish\s?list|someday|todo\ (?:for\ )?later)\s*[:—–]\s*\S+\s+\S+"
    )),
    ("idea", "called an idea", _cue(
        r"^(?:(?:feature|open|more)\ )?(?:ideas?|brainstorm(?:ing)?|wish\s?list|backlog|nice\ to\ have|for\ later|someday)\s*:$"
    )),
    ("idea", "wonders whether", _cue(
        r"""\bwonder(?:ing)?\s+(?:if|whether)\s+(?:there(?:'s|\ is)\s+(?:an?|any|some)\s+(?:\w+\s+)?way\s+to|we\s+(?:could|might|should)|it\s+(?:would|might)\s+make\s+sense)\b
          | ^(?:\w+[,.!]?\s+){0,2}would\s+it\s+(?:make\s+sense|be\s+(?:worth(?:\s?while)?|nice|useful|cool|neat))\s+to\b"""
    )),
    ("idea", "something for the future", _cue(
        r"""^(?:in\ (?:the\ )?future,?|eventually,?|some\s?day,?|later(?:\ on)?,?|at\ some\ point,?|one\ day,?|down\ the\ (?:road|line),?)\s+(?:we|this|it|i|that|the\ \w+|there)\s+(?:could|should|might|can|may|will\ want)\b
          | ^(?:\w+[,.!]?\s+){0,2}(?:we|this|it|i|that|the\ \w+)\s+(?:could|should|might|can|may)\s+(?:also\s+)?(?:eventually|some\s?day|one\ day|at\ some\ point|later(?:\ on)?)\s+[a-z]"""
    )),
    ("idea", "put off on purpose", _cue(
        r"\b(?:(?:let'?s|we\ (?:should|could|can)|i'd)\s+(?:\w+\s+){0,4}?(?:leave|park|defer|postpone|save|keep)\s+(?:this|that|it|the\s[\w\s]{2,30}?)\s+for\s+(?:a\s+|another\s+|the\s+)?(?:follow|future|later|next|separate|another|day)|(?:future|later)\ (?:enhancement|exercise|improvement)|fast\ follow|(?:on|to)\ (?:the|our|an?)\ (?:backlog|roadmap|wish\s?list|investigate\ list)|could\ be\ (?:its|a)\ own\ \w+)\b"
    )),
    ("fix", "says how it was solved", _cue(
        r"^(?:[\w\s,']{0,40}\b)?(?:fixed|solved|resolved|worked\ around)\s+(?:it\s+|this\s+|that\s+)?by\s+\w+ing\b"
    )),
    ("fix", "names a workaround", _cue(r"^(?:(?:there\ is|there's|the|a|my|as\ a|possible|known)\s+)*work[\s-]?around(?:\s+(?:is|for\s[^:]{2,40}))?\s*[:,-]?\s+(?:is\s+)?(?:to\s+)?\w+ing?\b|^(?:there\ is|there's)\ a\ work[\s-]?around\b")),
    ("fix", "says what the problem was", _cue(
        r"^(?:\w+[\s,]+){0,5}?(?:the\ )?(?:actual\ |real\ )?(?:issue|problem|bug|cause|culprit)\s+(?:was|turned\ out\ to\ be)\s+(?!fixed|solved|there|still|not\b|in\b)\S+\s+\S+"
    )),
    ("fix", "says when it breaks", _cue(
        r"^(?:when|if|since|because)\s+[^.?!]{8,120},\s*(?:this|it|that|the\s[\w\s]{2,30}?)\s+(?:can\ |will\ |may\ )?(?:fails?|panics?|crash(?:es)?|breaks?|hangs?|deadlocks?)\b"
    )),
    ("fix", "names the cause", _cue(
        r"\b(?:bug|failure|crash|error|problem|issue|failures|hang|leak|regression|outage)\b[^.?!]{0,60}?\b(?:was|were|is|came|comes|got)\s+(?:most\ likely\ |probably\ |actually\ |only\ )?(?:caused\ by|due\ to|because\ of|from\ (?:a|the))\s+\w+"
    )),
)  # fmt: skip


_AGENT_IDEA = _cue(
    r"""\b(?:(?:great|good|nice|natural|useful|worthwhile|possible|separate)\ follow[\s-]?up |
        (?:in|as|for)\ (?:a|another)\ (?:separate\ )?follow[\s-]?up |
        future\ (?:\w+\ )?(?:improvement|enhancement|integration|work|iteration)s? |
        (?:deferred|later|future)[^.\n]{0,40}(?:not\ in|out\ of)\ scope | (?:not\ in|out\ of)\ scope[^.\n]{0,60}(?:later|future|follow) |
        (?:you|we)\ could\ (?:\w+\ ){1,6}(?:as\ a\ cleanup|as\ a\ follow[\s-]?up|later|down\ the\ road))\b"""
)


def sets_aside(sentence: str) -> bool:
    """Does the agent put something off for later? It proposes all day long; only that is an idea."""
    return _AGENT_IDEA.search(sentence) is not None and not sentence.rstrip().endswith("?")


@dataclass(frozen=True)
class Explicit:
    """A sentence whose form alone says what it is, with why."""

    category: Category
    reason: str


@functools.lru_cache(maxsize=LOOKED_AT_AGAIN)
def explicit(sentence: str) -> tuple[Explicit, ...]:
    """What the sentence is by its form: at most one per category. For what is short and clear; the classifier has the
    rest."""
    if len(sentence) > 240:
        return ()
    found: dict[str, Explicit] = {}
    folded = fold(sentence)
    for category, reason, pattern in _GATED_EXPLICIT:
        if category not in found and pattern.search(sentence, folded):
            found[category] = Explicit(category, reason)
    return tuple(found.values())


_GATED_EXPLICIT = tuple((category, reason, GatedPattern(pattern)) for category, reason, pattern in _EXPLICIT)


# ---------------------------------------------------------------------------------------------- a sentence's words

_GATES = WordGates(
    {
        **_CUES,
        **{f"rule {place}": pattern for place, pattern in enumerate(_RULE_FORMS)},
        **{f"explicit {place}": pattern for place, (_, _, pattern) in enumerate(_EXPLICIT)},
        "sets aside": _AGENT_IDEA,
        "states a cure": STATES_CURE,
    }
)
CUE_BITS: Mapping[str, int] = {name: _GATES.bits[name] for name in CUE_NAMES}
"""Cue -> its bit in `Searched.may_show`."""
_ALL_CUES = functools.reduce(operator.or_, CUE_BITS.values())
RULE_BITS = functools.reduce(operator.or_, (bit for name, bit in _GATES.bits.items() if name.startswith("rule ")))
EXPLICIT_BITS = functools.reduce(
    operator.or_, (bit for name, bit in _GATES.bits.items() if name.startswith("explicit "))
)
ASIDE_BIT = _GATES.bits["sets aside"]
CURE_BIT = _GATES.bits["states a cure"]


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
            if self._search(_CUES[cue]):
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
    """The same, in the order of `CUE_NAMES`, of a sentence that was looked at before."""
    may_show = searched.may_show & _ALL_CUES
    return [name for name, bit in CUE_BITS.items() if may_show & bit and searched.shows(name)] if may_show else []


# What to do instead: "use pnpm, not npm" says both what to use and what it replaces.
_NEW = r"(?P<new>(?:[^,.;!?]|\.(?=\w)){2,60}?)"
_OLD = r"(?P<old>(?:[^,.;!?]|\.(?=\w)){2,60})"
_REPLACES = tuple(
    _cue(pattern)
    for pattern in (
        rf"\buse\s+{_NEW}(?:,|\s)\s*(?:and\s+)?not\s+{_OLD}",
        rf"\b(?:use|prefer|want|like|choose|see|have)\s+{_NEW}\s+(?:instead\ of|over|rather\ than)\s+{_OLD}",
        rf"\b(?:switch|change|move|migrate)\w*\s+from\s+{_OLD}\s+to\s+{_NEW}(?:$|[.,;!?\s])",
        rf"\b(?:should\ be|is|called|named)\s+{_NEW}(?:,\s*not|\s+instead\ of|\s+rather\ than)\s+{_OLD}",
        rf"\b(?:no\ longer|not|stop|don'?t)\s+(?:use|using|run|running)\s+{_OLD}\s*(?:any\s?more|any\ longer)\b",
        rf"\binstead\ of\s+{_OLD},\s*(?:please\s+)?(?:use|do|run|write|make|print|call)\s+{_NEW}",
    )
)


_AMOUNT = re.compile(r"[~<>]?\d[\d.,]*\s*(?:%|[a-z]{1,2}\b)?[\s.…]*\Z", re.IGNORECASE)
_ASKS = _cue(
    r"\b(?:should|must|use|want|need|please|pls|let'?s|lets|make|set|change|prefer|put|keep|(?:can|could)\ (?:we|you))\b"
)


def replaced(sentence: str) -> str | None:
    """What the sentence says not to do any more, where it names it."""
    for pattern in _REPLACES:
        match = pattern.search(sentence)
        if match is not None:
            old = re.split(r"\s+(?:in|for|when|because|since|so)\s+", match["old"].strip())[0].strip(" `\"'*")
            old = re.sub(r"^(?:the|a|an)\s+", "", old, flags=re.IGNORECASE)
            old = re.sub(r"\s+(?:any\s?more|any longer)$", "", old, flags=re.IGNORECASE)
            if _AMOUNT.match(old) and not _ASKS.search(sentence):
                # "it is back to 19 instead of 26" tells what was seen, not what to do.
                return None
            if old and not _DEICTIC.fullmatch(old):
                return old
    return None


def names_what_to_do(sentence: str) -> bool:
    """A correction that says what to do instead, not only that something is wrong."""
    core = without_lead_in(sentence)
    return (
        replaced(sentence) is not None
        or _IMPERATIVE_CHOICE.match(core) is not None
        or re.search(
            r"\b(?:should|must|let'?s|instead|rather|just|only|want|need|called?|rename|move|revert|separate)\b",
            core,
            re.IGNORECASE,
        )
        is not None
    )
