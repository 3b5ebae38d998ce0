# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Other ways to say that something holds from now on, put in the words that the forms of a rule know.

"Permanent instruction: use uv", "make it a habit to use uv" and "can you please always use uv?" say what "from now on,
use uv" says. Only the words that frame an order are put differently, and only to judge it: the statement stays as typed.
"""

from __future__ import annotations

import re

from .common_patterns import cue

_AND = r"^\W*(?:(?:and|also|but|so|ok|okay|oh|yes|no|well|then|btw|by\ the\ way|please|hey|hi|hello|remember|note|keep\ in\ mind)\b[\s,:;.!–—-]*)*"
_COLON = r"\s*(?::|\s[-–—]|–|—)\s*"
_FOR_GOOD = r"(?=(?:please\ )?(?:always|never|avoid|do\ not|don'?t|dont|only|ask|check\ with)\b)"
"""Without one of these, what is said to be for the future may be wished for the program ("for the future: add an export")."""

ALWAYS, LABELLED = "from now on, ", "henceforth: "
"""What is called a rule may be one of the program ("Rule: save the draft"); `rule_certainty` tells them apart."""

_OPENINGS: tuple[re.Pattern[str], ...] = (
    # A thing is said to come, and nothing of what it is.
    cue(
        rf"{_AND}(?:just\ )?(?:(?:an?|one|two|three|four|five|a\ few|another|some)\ )?(?:(?:quick|small|general|little|last|final|other|more|important|simple|further)\ )*(?:things?|notes?|points?|reminders?|requests?|remarks?)"
        rf"(?:\ (?:before\ (?:we|you|i)\ \w+|in\ general|for\ (?:you|later|me)|first|upfront|though))*{_COLON}(?=\S)"
    ),
    cue(rf"{_AND}(?:this|it)(?:'s|\ is)\ (?:very\ |really\ )?important(?:\ to\ me)?{_COLON}(?=\S)"),
    cue(rf"{_AND}as\ a\ rule\ of\ thumb,?\ (?=\S)"),
    # It was said before.
    cue(
        rf"""{_AND}(?:as\ a\ reminder|for\ the\ (?:last|second|third|\w+th)\ time|i(?:'ve|\ have)?\ (?:already\ )?(?:told|asked)\ you\ (?:[\w,\ ]{{1,30}}?\ )?(?:times|before|already)
            |how\ (?:often|many\ times)\ (?:do|must|should)\ i\ (?:have\ to\ |need\ to\ )?(?:say|repeat|tell|ask)[^:?.!]{{0,25}})\s*[:,!–—-]\s*(?=(?:please\ )?(?:always|never|do\ not|don'?t)\b)"""
    ),
    cue(rf"{_AND}before\ (?:anything\ else|we\ (?:start|begin|go\ on|continue)|i\ forget)\s*[:,–—-]\s*(?=\S)"),
    # Something else held before.
    cue(
        rf"{_AND}(?:i(?:'ve|\ have)?\ changed\ my\ mind(?:\ (?:about|on)\ [^:,;.]{{1,40}})?|on\ second\ thoughts?|scratch\ that|forget\ what\ i\ said(?:\ (?:before|earlier|about\ [^:,;.]{{1,40}}))?)\s*[:,;–—-]\s*(?=\S)"
    ),
)
"""What opens an order, and says nothing of what is ordered."""

_PLEADS = cue(
    rf"{_AND}(?:(?:can|could|would|will)\ you\ (?:please|pls|plz)|please\ (?:can|could|would|will)\ you)\ ((?:always|never|from\ now\ on|in\ (?:the\ )?future)\b[^?]*)\?*\s*$"
)
_FROM_NOW = r"(?:from\ now\ on|going\ forwards?|in\ (?:the\ )?future)"
_ASKS: tuple[re.Pattern[str], ...] = (
    # "Can you always trust the cache?" asks what is possible, "would you always rebase?" for advice.
    cue(
        rf"{_AND}(?:can|could|will)\ you\ ((?:(?:always|never)\ (?!(?:assume|count|expect|find|get|guarantee|guess|know|predict|read|rely|reproduce|see|tell|trust)\b)|{_FROM_NOW},?\ )[^?]*)\?*\s*$"
    ),
    cue(
        rf"{_AND}(?:can|could|will)\ (?:you|we)\ ([^?]*\b(?:{_FROM_NOW}|every\ (?:single\ )?time(?:\ you\ [^?]*)?|whenever\ you\ [^?]*|(?:before|after)\ (?:every|each)\ (?:commit|push|merge|change|release)))(?:,?\ please)?\?+\s*$"
    ),
    cue(
        rf"^([^?]*\b(?:always|never|{_FROM_NOW})\b[^?]*),\ *(?:ok|okay|okey|alright|all\ right|please|pls|agreed|understood|got\ it|deal|will\ you|can\ you)\ *\?+\s*$"
    ),
)
"""A wish in the form of a question, in which no "please" tells that it is one."""

_WAYS: tuple[tuple[re.Pattern[str], str], ...] = (
    # Misspelt.
    (cue(r"\b(?:alwyas|alwasy|allways|alwys|alwas|alawys|alays|alwayas)\b"), "always"),
    (cue(r"\b(?:nevr|nver|neber|nevver|enver|neevr)\b"), "never"),
    (cue(r"\b(?:form|frm|from)\ (?:now|nwo|no)\ (?:on|onn)\b"), "from now on"),
    (cue(r"\b(?:pls|plz)\b"), "please"),
    # Said with weight.
    (cue(r"\b(?:do\ not|don'?t|dont)\s*,?\s+ever\s*,"), "don't ever"),
    (cue(rf"{_AND}(?:do\ not|don'?t|dont)\ you\ ever\b"), "don't ever"),
    (
        cue(
            rf"{_AND}(?!(?:it|this|that|these|those|they|i|we|you|he|she|the|an?|there|my|your|our)\b)([a-z][^.?!,;:]*),\ always(?=\s*[.!]*$)"
        ),
        r"always \1",
    ),
    (
        cue(
            r"\bnever\ again,?\s+(?=[a-z])(?!(?:will|would|have|had|has|did|do|was|is|be|in|with|for|to|that|this|on|after)\b)"
        ),
        "never ",
    ),
    (cue(r"\b(always|never),?\s+i\ (?:repeat|say\ it\ again)\s*[,:]?\s*(?:\1\b)?\s*,?"), r"\1"),
    (cue(r"\b(always|never),?\s+and\ i\ (?:really\ |do\ )?mean\ (?:it|that|always|never|ever)\s*,?"), r"\1"),
    *((opening, "") for opening in _OPENINGS),
    # A rule is said to come.
    (
        cue(
            rf"""{_AND}(?:an?\ |another\ |my\ )?(?:(?:new|simple|important)\ )*(?:standing|permanent|general|global)\ (?:orders?|instructions?|guidelines?)
                (?:\ (?:for\ (?:you|the\ future)|from\ me))?{_COLON}(?=\S)"""
        ),
        ALWAYS,
    ),
    (
        cue(
            rf"""{_AND}(?:(?:an?|one|two|three|four|five|some|a\ few|another|my|our|here(?:'?s|\ are)\ (?:an?|another|my|our|some|a\ few|two|three))\ )?
                (?:(?:new|standing|permanent|general|global|hard|strict|firm|house|ground|golden|team|project|simple|important|coding|style)\ )*
                (?:rules?|policy|convention)(?:\ (?:for\ (?:you|us|the\ future)|from\ me|of\ mine|here))?{_COLON}(?=\S)"""
        ),
        LABELLED,
    ),
    (
        cue(
            rf"{_AND}it(?:'?s|\ is)\ (?:an?|my|our)\ (?:(?:new|hard|strict|firm|general|standing|house|ground|team)\ )*(?:rule|policy|convention)(?:\ (?:of\ mine|of\ ours|for\ us|here))?\s*(?:that\ |:\s*)"
        ),
        LABELLED,
    ),
    (cue(rf"{_AND}let'?s\ agree\ (?:(?:on\ (?:this|one\ thing|the\ following))?\s*[:,]|that)\s+"), LABELLED),
    (
        cue(
            rf"{_AND}(?:make\ (?:it\ )?(?:an?|your)\ (?:habit|rule|practice|point)\ (?:to|of)|get\ in(?:to)?\ the\ habit\ of)\ "
        ),
        ALWAYS,
    ),
    # For good.
    (
        cue(r"\bfrom\ (?:this\ (?:point|moment)|here|now|today)\ (?:forwards?|on(?:wards?)?(?:\ (?:out|forward))?)\b"),
        "from now on",
    ),
    (cue(rf"{_AND}starting\ (?:now|today)\s*[:,]\s*"), ALWAYS),
    (
        cue(
            rf"{_AND}for\ (?:(?:the|all)\ future|next\ time)(?:,?\ and\ (?:every|any|each|all)\ (?:other\ )?times?(?:\ after)?)?{_COLON}{_FOR_GOOD}"
        ),
        ALWAYS,
    ),
    (
        cue(
            rf"{_AND}(?:in|for|across)\ (?:all|any|every|each|the)\ (?:of\ )?(?:(?:your|our|my)\ )?(?:(?:future|further|coming|upcoming|later|your|our|my)\ )(?:work|tasks?|sessions?|projects?|changes|commits?|prs?|conversations?|chats?)\s*[:,]?\s+"
        ),
        ALWAYS,
    ),
    (
        cue(
            r",?\s+(?:in|for|across)\ (?:all|any|every|each)\ (?:of\ )?(?:(?:your|our|my)\ )?(?:future|further|coming|upcoming|later)\ (?:work|tasks?|sessions?|projects?|changes|commits?|prs?|conversations?|chats?)(?=\s*[.!]*$)"
        ),
        " from now on",
    ),
    # Asked for.
    (_PLEADS, r"please \1"),
    *((asks, r"\1") for asks in _ASKS),
    (
        cue(
            rf"{_AND}i(?:'d|\ would)?\ (?:really\ |much\ )?(?:prefer|want|expect|like|insist|need)(?:\ it)?\ (?:that|if)\ you\ (?=(?:always|never)\b)"
        ),
        "",
    ),
    (
        cue(
            rf"{_AND}(?:it(?:'d|\ would)\ be\ (?:great|nice|good|helpful|cool)|i(?:'d|\ would)\ appreciate\ it)\ if\ you\ (?:could\ |would\ )(?=(?:always|never)\b)"
        ),
        "",
    ),
    (
        cue(
            rf"{_AND}it(?:'?s|\ is)\ (?:very\ |really\ )?important(?:\ to\ me)?\ (?:that\ you|to)\ (?=(?:always|never)\b)"
        ),
        "",
    ),
    # Forbidden.
    (cue(rf"{_AND}you(?:'re|\ are)\ never\ (?:allowed|permitted|supposed)\ to\ "), "never "),
    (
        cue(
            rf"{_AND}(?:you|we)\ (?:(?:must|may|should|shall|can)\ (?:not|never)|mustn'?t|shouldn'?t|can'?t|cannot)\ ([^.?!]*?),?\ ever(?:\ again)?(?=\s*[.!]*$)"
        ),
        r"don't ever \1",
    ),
    (
        cue(rf"{_AND}(no\ (?:more\ )?(?!one\b|problem)[^.?!,]*),?\ ever(?:\ again)?(?=\s*[.!]*$)"),
        r"from now on, \1",
    ),
    # On each occasion.
    (
        cue(
            rf"{_AND}((?:whenever|every\ (?:single\ )?time|each\ time)\ you\ [^.?!,]{{3,80}}?),?\ (?:then\ )?you\ (?:must|should|have\ to|need\ to)\ (?:also\ |always\ )?(?!be\b|never\b|not\b)"
        ),
        r"\1, always ",
    ),
    (
        cue(
            rf"{_AND}((?:before|after|for|with|on)\ (?:every|each|any)\ [^.?!,]{{2,40}}?),?\ you\ (?:must|should|have\ to|need\ to)\ (?:also\ |always\ )?(?!be\b|never\b|not\b)"
        ),
        r"\1, always ",
    ),
)

_SAYS_SO_ITSELF = cue(
    r"^(?:from\ now\ on,|henceforth:)\s+(?=(?:please\ )?(?:always|never|(?:do\ not|don'?t)\ ever|under\ no|whenever|every\ (?:single\ )?time|each\ time|before|after)\b)"
)

OTHER_WAYS = tuple(pattern for pattern, _ in _WAYS)
"""A sentence that `in_known_words` changes has one of them. One by one, since words rule out each for itself: nearly no
sentence is without a word of some of them."""


def in_known_words(sentence: str) -> str:
    """The sentence, with what frames its order put in the words that the forms of a rule know."""
    for pattern, known in _WAYS:
        sentence, changed = pattern.subn(known, sentence, count=1)
        if changed and known in (ALWAYS, LABELLED):
            sentence = _SAYS_SO_ITSELF.sub("", sentence)
    return sentence


def only_asks(sentence: str) -> bool:
    """Is what the sentence wishes put as a question ("can you always run black?"), so that it may be one?"""
    return _PLEADS.match(sentence) is None and any(asks.match(sentence) for asks in _ASKS)


_NAMES_MATTER = cue(r"\b(?:mind\ (?:about|on)|said\ about)\ ")
"""Matches in an opening that says what the order is about ("I changed my mind about tabs, always use them")."""


def without_opening(sentence: str) -> str:
    """The sentence without words that open an order and say nothing of it ("One more thing: …")."""
    for opening in _OPENINGS:
        opens = opening.match(sentence)
        if opens is not None and _NAMES_MATTER.search(opens[0]) is None:
            sentence = sentence[opens.end() :]
    return sentence
