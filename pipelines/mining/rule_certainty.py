# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Is a rule stated so plainly that it may be saved without asking?

A wrong rule that was saved unasked is worse than one key in a review. So what `standing_rules.standing_rule` takes for a
rule by its form is saved at once only if it is an order to the agent that says itself that it holds beyond this moment
(always, never, from now on, every time, a convention named as one), and nothing in the sentence speaks against that.
"""

from __future__ import annotations

import re
from enum import StrEnum

from .common_patterns import count_words
from .program_rules import AGENTS_WORK, OWN_WORK, tells_program
from .rewording import LABELLED

LEAST_WORDS = 3
"""Of fewer ("never use") the object is missing, or was taken out."""
_FLAGS = re.IGNORECASE | re.VERBOSE


class Certainty(StrEnum):
    """How plainly a sentence states a rule for the future."""

    STATED = "stated"
    """Outright: it is saved."""
    LIKELY = "likely"
    """It has the form of a rule, but may be about the matter in hand: the user is asked."""
    DOUBTFUL = "doubtful"
    """Asked, reported, ironic, past, or bound to this moment."""


# Verbs of a developer's work. What an agent is told to do or to leave is one of them; "always null", "never again" and
# "never say never" are not.
_WORK = r"""(?:
    accept|add|adhere|amend|annotate|announce|answer|append|apply|ask|assert|assign|assume|attach|avoid|backup|back\ up|base|batch|
    begin|branch|break|build|bump|bundle|capitali[sz]e|catch|change|check(?:\ out)?|choose|cite|clean(?:\ up)?|close|comment(?:\ out)?|
    commit|compile|compress|confirm|consult|convert|copy|cover|create|declare|default|define|delete|deploy|disable|discuss|
    document|double[- ]check|draft|drop|edit|enable|encrypt|end|ensure|escape|execute|explain|export|extract|fetch|fix|follow|force[- ]?push|
    format|generate|give|group|guess|hard-?code|ignore|implement|import|include|indent|inline|install|introduce|invent|keep|label|launch|leave|
    let|limit|link|lint|list|localize|lock|log|look\ (?:at|up|for)|make|mark|measure|mention|merge|mix|mock|modify|mutate|name|nest|omit|open|optimi[sz]e|
    order|output|override|overwrite|paginate|paste|pin|place|plan|prefer|prefix|present|preserve|print|profile|propose|provide|publish|pull|
    purge|push|put|quote|raise|read|rebase|refactor|refer|reformat|refuse|release|rely|remove|rename|reorder|replace|reply|report|
    reproduce|request|reset|respond|restart|retry|return|reuse|revert|review|rewrite|round|run|sanitize|save|scrub|search|send|separate|
    set|ship|show|sign|silence|simplify|skip|sort|spawn|speak|specify|spell|split|squash|stage|start|stash|state|stick|stop|store|
    strip|submit|suggest|summari[sz]e|suppress|swallow|switch|tag|talk|tell|test|throw|touch|translate|treat|trim|trust|try|turn|type|
    uninstall|update|upgrade|use|validate|verify|wait|warn|work|wrap|write|
    backfill|benchmark|bisect|bypass|download|fit|justify|note|rebuild|regenerate|reindex|reinstall|stub|subclass|unwrap|vendor|wipe
)(?!\w|-)"""

WORK_ORDER = re.compile(rf"\W*{_WORK}", _FLAGS)
"""An order to do some of it, at the beginning of a text."""

_OCCASION = r"(?:want\ to|add|change|commit|push|edit|write|create|delete|rename|update|touch|modify|finish|fix|release|refactor|install|make|start\ (?:a|on)|bump|move|remove|edit|deploy|rebase|refactor|implement|introduce|upgrade|migrate|review|document|propose|answer|reply|respond|cite|regenerate|need\ to|are\ (?:about\ to|done\ with|unsure|not\ sure)|open\ a\ (?:pr|pull\ request)|work\ on)"

_STATED = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        # always X; never, ever X; you should always X; I want you to never X
        rf"""^(?:(?:you|we|claude|agents?)\s+(?:should|must|need\ to|have\ to|shall)\s+)?
            (?:always|never(?:,?\s+ever)?(?:,?\s+under\s+any\s+circumstances)?|(?:do\ not|don'?t|dont)\s+ever
              |under\s+no\s+circumstances(?:,|\s+(?:should|must|may|can|shall|do)\s+(?:you|we|i\s+want\s+you\s+to))?)
            \s*,?\s+(?:please\s+|just\s+)?(?:(?:manually|directly|blindly|silently|explicitly|automatically|carefully|simply|ever)\s+)?(?:be\s+(?:brief|concise|explicit|specific|honest)|`?(?:git|{_WORK}))""",
        rf"^(?:please\s+)?(?:do\ not|don'?t|dont)\s+{_WORK}\b[^.?!]*,?\s+ever\s*[.!]*$",
        r"\bi\s+(?:never|always|don'?t\ ever|do\ not\ ever)\s+want\ you\ to\ |\bi\ (?:don'?t|do\ not)\ want\ you\ to\ ever\b",
        rf"^i\s+(?:never|don'?t\ ever|do\ not\ ever)\s+want\s+(?:to\ see\s+|(?!to\b))(?:[^.?!]|\.(?=\w))*\b(?:{OWN_WORK}|in\ (?:your|the)\ code|code\ (?:that\ )?you|you\ (?:write|hand|give|send|commit|push))\b",
        # no X, one X per Y, where it is called a rule
        r"^henceforth:\s+(?:no|one|only|at\ most)\s",
        r"^(?:i|we)\s+(?:always|never)\s+(?:want\ (?:to\ see|to\ (?:have|review|approve))\ (?:the\ |a\ |your\ )?(?:plan|diff|tests?|changes?)|(?:use|write|commit|push|name|squash|rebase|format|indent|merge|prefer)\b)",
        # from now on X; X from now on
        rf"""^(?:from\ (?:now|here|this\ point|today)\ on(?:wards?)?|(?:going|moving)\ forwards?|henceforth|as\ a\ (?:general\ )?rule
            |in\ (?:the\ )?future(?=,?\ (?:please\ )?(?:always|never|don'?t|do\ not|use|ask|run|check|make\ sure|write|you)\b))\s*[,:]?\s+
            (?:make\ sure\ (?:to|that|you)\s+|please\s+|just\s+|only\s+|always\s+|never\s+|do\ not\s+|don'?t\s+|(?:i'?d?|we|you)\s+(?:would\ |should\ |must\ )?(?:want|like|need|prefer|always|never)?\s*(?:you\ )?(?:to\ )?)*{_WORK}""",
        rf"^(?:please\s+)?(?:do\ not\s+|don'?t\s+)?{_WORK}\b[^.?!;]*\b(?:from\ (?:now|here)\ on|going\ forward|moving\ forward|at\ all\ times|every\ (?:single\ )?time)\s*[.!]*$",
        # whenever you X, Y; Y whenever you X
        rf"^(?:whenever|every\ (?:single\ )?time|each\ time)\s+you\s+{_OCCASION}\b[^.?!]*?,\s*(?:then\s+)?(?:please\s+|always\s+|never\s+|also\s+|do\ not\s+|don'?t\s+|make\ sure\s+)*{_WORK}",
        rf"^(?:when|if|before|after)\s+(?:ever\ )?you\s+[^.?!,]+,\s*(?:then\s+)?(?:please\s+)?(?:always|never)\s+{_WORK}",
        # Of the agent's work alone: "when saving the form, always show …" is the program's.
        rf"^when\s+(?:writing|editing|committing|refactoring|reviewing|debugging|coding|documenting|rebasing|answering|replying|working\s+(?:on|with|in))\s+(?!(?:the|to)\b)[^.?!,]+,\s*(?:please\s+)?(?:always|never)\s+{_WORK}",
        rf"^(?:please\s+)?(?:ask|tell|show|run|update|check|lint|format|test|rebase|pull|verify)\b[^.?!]*\b(?:whenever|every\ (?:single\ )?time|each\ time)\s+you\s+(?:want\ to\s+|are\ about\ to\s+)?{_WORK}",
        # before every commit X; X before every commit
        rf"""^(?:before|after|on|for|with)\ (?:every|each|any)\ (?:commit|push|pr|pull\ request|change|edit|merge|release|task|refactor)s?\s*,?\s+
            (?:please\s+|always\s+|also\s+|you\ (?:should|must)\s+|make\ sure\s+)*{_WORK}""",
        rf"^(?:before|after|for|with|in)\ (?:every|each|any|all)\ (?:new\ )?(?:{OWN_WORK}|bug\s?fix(?:es)?|features?)\s*,\s*(?:please\s+)?(?:always|never)\s+{_WORK}",
        r"""^(?:please\s+)?(?:(?:do\ not|don'?t|dont)\s+)?(?:run|check|ask|test|lint|format|rebase|verify|execute)\b[^.?!,]*\ (?:before|after|for)\ (?:every|each|any)\ (?:commit|push|pr|pull\ request|change|edit|merge)s?\b
            (?!\ (?:in|on|by|via|with|from)\b)""",
        rf"^(?:every|each|all)\ (?:new\ )?{OWN_WORK}\s+(?:should|must|needs?\ to|ha(?:ve|s)\ to)\s+",
        rf"^(?:keep|sign|prefix|start|end)\s+(?:every|each|all)\s+{OWN_WORK}\b",
        rf"^(?:your\ |our\ |my\ )?{OWN_WORK}\s+(?:should|must|need\ to|have\ to)\s+(?:always|never)\s+",
        # ask before X
        rf"^(?:please\s+|always\s+)*(?:ask|check\ with|consult|warn|tell)\s+(?:me\s+(?:first\s+)?|first\s+)before\s+(?:you\s+)?(?:ever\s+)?(?:\w+ing|{_WORK})\s+(?:any|anything|new|an?|(?!this|its|his)[\w-]+(?<!s)s)\b",
        # Whom, it does not say: "ask before deleting any account" is as likely a wish for the program.
        r"^(?:please\s+|always\s+)*ask\s+before\s+(?:you\s+)?(?:ever\s+)?(?:add|creat|delet|edit|install|push|renam|upgrad|updat|mov|remov|bump|chang)(?:e|ing)?\s+(?:an?\s+|any\s+)?(?:anything|new\ (?:dependenc|package|librar|file|fold|modul|test)\w*|(?:dependenc|package|librar|file|fold|modul|test)\w*)\b",
        # Stop asking before checks, which change nothing. For anything else the user is asked whether it is for good.
        r"""^(?:stop\ asking|(?:do\ not|don'?t|dont)\ ask)\s+(?:me\s+)?(?:for\s+(?:my\s+)?(?:permission|confirmation|approval)\s+(?:to|before|for)|before)\s+
            (?:you\s+)?(?:run|execut)(?:e|ning|ing)?\s+(?:the\s+|your\s+)?(?:unit\s+)?(?:tests?|test\s+suite|benchmarks?|linters?|formatters?|type\s?check\w*)\s*[.!]*$""",
        # without asking
        r"^(?:do\ not|don'?t|dont|never|avoid)\b[^.?!]*\b(?:without\s+(?:first\s+)?(?:asking|my\b|being\ (?:asked|told)|permission|checking\ with|telling|confirm\w*)|unless\ i\ (?:ask|say|tell|explicitly))",
        # a convention, named as one
        r"^(?:our|my|the\ team'?s?)\ (?:convention|policy|rule|standard|style)\ (?:is|says|requires)\b",
        r"""^in\ (?:this|our)\ (?:repo(?:sitory)?|project|code\s?base|team|company|org|monorepo|workspace|package|vault)\s*[,:]?\s+
            (?:please\s+|we\s+)?(?:always|never|only|use|prefer|stick\ to|write|format|indent|name|squash|rebase)\b""",
        r"""^(?:please\s+)?(?:use|prefer|stick\ (?:to|with)|we\ use|never\ use)\s[^.?!]*\b(?:in|for|across|throughout)\ (?:this|our|the\ (?:whole|entire))\ (?:repo(?:sitory)?|project|code\s?base|team|company|org|monorepo|workspace)\s*[.!]*$""",
    )
)

_GENERIC_PREFERENCE = re.compile(
    r"""^(?:(?:i|we)(?:\s+(?:really|much|generally|usually|strongly|always|would|'d|do|just|tend\ to))*\s+)?prefer\s+
        (?!to\b|that\b|not\b|if\b|when\b)[\w`'-]""",
    _FLAGS,
)
_STYLE_CHOICE = re.compile(
    r"""^(?:use|using|write|prefer|stick\ (?:to|with)|we\ use|we\ follow)\s+(?:in\s+)?(?:the\s+)?(?:aus\w*|british|american|us|uk|en-\w+|conventional|snake|camel|kebab|
        pascal|tabs|spaces|\d\ spaces|two\ spaces|four\ spaces|bullet|semantic)""",
    _FLAGS,
)
_THIS_ONE = re.compile(
    r"""\b(?:this|these|those|it|its|here|there|now|yet|today|currently|one(?!(?:\s+[\w-]+){1,2}\s+(?:per|for\ each|for\ every)\b)|ones|above|below)\b
      | \bthat\b(?!\s+(?:we|you|i|they|the|is|are|needs?|touch\w*|change\w*)\b)""",
    _FLAGS,
)
_IN_GENERAL = re.compile(
    r"""\b(?:over|instead\ of|rather\ than|to|in\ general|generally|usually|always|strongly|whenever|everywhere|every|all|any|wherever)\b
      | [\w-]+\s+[\w-]+(?:(?<![isu])s|ing)\b(?!['’])""",
    _FLAGS,
)
"""A preference that compares, or is of a kind of things: "small functions", "pytest over unittest". Of one thing and without
a word like these ("I prefer Postgres") it is as likely the answer to a question."""
_ONE_THING = re.compile(r"\b(?:the|an?|my|your)\s+\w|\boption\b|\bv\d", re.IGNORECASE)
_ONE_PLACE = re.compile(
    r"\b(?:in|for|of|at|inside|under|within)\s+(?:the|that|my|your)\s+(?!future|code\s?base|repo|project|whole|entire)\w",
    re.IGNORECASE,
)
_HOUSE = re.compile(
    r"\b(?:this|our)\s+(?:repo(?:sitory)?|project|code\s?base|team|company|org|monorepo|workspace|package|vault|point\ on)\b",
    re.IGNORECASE,
)

_CLAUSE_END = re.compile(
    r"[,;:(–—]|\s-\s|\bthat\s+(?:is|are|was|were|has|have|had|does|do|can|could|(?:is|are|was|were|has|have|had|does|do)n'?t|can'?t)\b|\b(?:because|since|so|if|when|whenever|which|what|where|who|as|unless|until|before|after|and|but|even|how)\b",
    re.IGNORECASE,
)
_COPULA = re.compile(r"(?!^)\b(?:is|was|were|are|isn'?t|wasn'?t|been|gonna)\b", re.IGNORECASE)

_ASKED = re.compile(
    r"""\?\s*[)"'\s]*$ | ^(?:should|shall|do|does|did|is|are|was|can|could|would|will|why|what|how|where|when\ (?:do|does|should)|which|who)\s+
        (?:i|we|you|it|the|this|that|they|there|my|our)\b | ,\s*(?:is\ that\ right|right|correct|or\ not|no|ok|huh|eh|(?:is|are|do|does|did|have|has)n'?t\ (?:it|you|we|they)|why\ don'?t\ (?:you|we))\s*[?!.]*\s*$""",
    _FLAGS,
)
_HYPOTHETICAL = re.compile(
    # "If a test is flaky, never retry it" supposes nothing.
    rf"^(?:if\ (?!you\b)(?![^,.?!]{{3,80}},\s*(?:please\ )?(?:always|never)\ {_WORK})|suppose|imagine|assuming|say\ we|what\ if|even\ if)|\bif\ (?:we|i|it|they|you)\ (?:always|never)\b",
    _FLAGS,
)
_REPORTED = re.compile(
    r"""(?<!unless\ i\ )(?<!unless\ i\ explicitly\ )\b(?:says?|said|saying|told|tells|wants|insists?|insisted|thinks?|thought|believes?|claims?|claimed|suggests?|suggested|recommends?|recommended|
        argues?|wrote|writes|(?<!always\ )(?<!never\ )quote|quote[sd]|according\ to|complain\w*|warn(?:s|ed)|asked|mentions?|mentioned)\b
        (?=.*\b(?:always|never|every|from\ now|must|should|prefer)\b)(?!\s+me\b.*\bwhenever)""",
    _FLAGS,
)
_QUOTED = re.compile(r"^[\"'`“‘*_]+[^\"'`”’*_]+[\"'`”’*_]+\s*\S")
_PAST = re.compile(
    r"\bused\ to\b|\bpreviously\b|\bold\ (?:rule|convention|policy)\b|\b(?:should|must|could|would)\s+(?:always\ |never\ )?have\s+\w+(?:ed|en|ne|ad|t)\b|\b(?:always|never)\s+have\s+been\b|\bbe\s+\w+ing\b",
    _FLAGS,
)
_IRONIC = re.compile(
    r"\byeah,?\ right\b|\boh,?\ (?:great|sure|good|perfect|nice|wonderful|lovely)\b|\bwhat\ could\ (?:possibly\ )?go\ wrong|\b(?:lol|lmao|haha\w*|rofl|jk)\b|/s\s*$|\bsarcas|\b(?:brilliant|genius|splendid|lovely)\ idea\b|,\ why\ not\b|[😂🤣🙄😏]",
    _FLAGS,
)
_MOMENT = re.compile(
    r"""\b(?:for\ now|right\ now|for\ the\ moment|at\ the\ moment|at\ this\ point(?!\ on)|this\ time|(?:pr|issue|ticket)\ \#?\d+|(?:just|only)\ (?:this\ )?once|for\ once|today|tonight|tomorrow|temporarily|
        (?:for|in|on|during|with)\ this\ (?:one|pr|change|task|commit|session|branch|issue|ticket|step|review|test|time|sprint|release|migration|refactor|file|function|class|method|page|
        component|module|script|case|call|run|chat|conversation|round|loop)|
        for\ the\ next\b(?!\ sessions)|(?:to|for)\ the\ following\b|this\ (?:week|month|morning|afternoon|evening)|until|while|(?:by|before)\ (?:next\ )?(?:monday|tuesday|wednesday|thursday|friday|tomorrow|tonight|eod)(?!['’]s)|yet)\b""",
    _FLAGS,
)
_TURNS = re.compile(
    r"""\bbut\b(?!\s+(?:not|never|only)\b)|,\s*(?:can|could|would|will)\s+(?:you|we)\b|\bis\s+to\s+be\s+\w+ed\b
      |\b(?:worked|went|turned\s+out)\s+(?:out\s+)?(?:so|really|just)\s+(?:well|great|nicely|perfectly)\b""",
    _FLAGS,
)
"""What comes before was only said to say this; of what worked so well it may be mockery."""


_DOUBTED = re.compile(
    r"""^\W*yeah,?\ sure\b | \b(?:no,?\ wait|wait,?\ no|scratch\ that|ignore\ (?:that|this)|forget\ (?:that|it|this)|just\ (?:kidding|joking))\b
      # "Always run the tests first is a stupid rule"
      | (?<!this\ )(?<!that\ )(?<!it\ )(?<!which\ )\b(?:is|was|sounds\ like)\ (?:an?\ |the\ )?(?:[\w-]+\ ){0,2}(?:rule|advice|idea|convention|nonsense|joke)\b
      # "…, that's what you promised", "…, they told me"
      | ,\s*(?:as\ )?(?:that(?:['’]s|\ is|\ was)\ what\ )?(?!(?:i|we)\b)(?:\w+\ ){1,3}?(?:says?|said|told\ (?:me|us)|promised|claims?|claimed|(?:would|used\ to)\ say|wrote)\b
      # "In this repo we use Redux, which was a mistake"
      | \b(?:which|and\ (?:it|that))(?:['’]s|\ is|\ was)\ (?:an?\ )?(?:\w+\ )?(?:mistake|horrible|terrible|awful|bad|wrong|pain|mess|ugly)\b
      | \b(?:sadly|unfortunately)\b | \b(?:convention|policy|rule|standard|style)\ is\ (?:broken|wrong|unclear|outdated|inconsistent|missing)\b""",
    _FLAGS,
)
"""Beside the order it says something that speaks against it, or that somebody else gave it."""

_TAKEN_BACK = re.compile(
    r"""^\W*(?:(?:no|nah|oh|hm+|ah|well|actually|but|or|ok|okay|lol|haha|wait)\b[\s,.!…–—-]*)*
      (?: (?:just\ )?(?:kidding|joking)\b | jk\b | not\W*$ | (?:please\ )?(?:forget|ignore|scratch|skip)\ (?:that|it|this)\b | never\ ?mind\b | no\ wait\b | i\ take\ (?:that|it)\ back
        | what\ (?:could|can|should)\ (?:possibly\ )?(?:go\ wrong|happen) | why\ not\b | (?:great|good|nice|well)\ (?:job|done|idea)\b | (?:says?|said)\ (?:who|every|nobody|no\ one|the|my)\b
        | (?:that|this)(?:['’]s|\ is|\ was)\ (?:just\ |only\ )?(?:what\ (?!(?:i|we)\b) | from\ (?:the|an?|our|my)\b | not\b | (?:nonsense|sarcasm|irony|stupid|silly|outdated)\b
            | (?:the|an?|my|our|their)\ (?:[\w-]+\ ){0,2}?(?:title|criteri(?:on|a)|requirement|ticket|issue|story|quote|headline|joke|comment|description|error|message|old\ \w+)\b)
        | i\ (?:read|heard|saw|found)\ (?:that|this|it)\b | (?:do|don['’]?t)\ you\ (?:agree|think)\b | (?:agreed?|right|correct|true|or\ not|ok)\W*\?
        | (?:is|was|isn['’]?t|does|should)\ (?:that|this)\b[^?]*\? | who\ (?:says|said|wrote)\b | what\ (?:does|do)\ (?:that|this|it)\ mean\b )""",
    _FLAGS,
)
_ASKS_MEANING = re.compile(r"\bwhat\ (?:does|do|is)\ (?:this|that|it|the\ following)\ (?:mean|about)\b", _FLAGS)


def speaks_against(before: str, after: str) -> bool:
    """Does the sentence before or after a rule ask what it means, take it back, ask whether it holds, or say that it is
    somebody else's ("That's the title of the ticket")? '' where there is none."""
    return _TAKEN_BACK.match(after) is not None or _ASKS_MEANING.search(before) is not None


_ORDERS_FROM_NOW_ON = re.compile(
    rf"(?:from\ now\ on|henceforth)[,:]?\s+(?:please\s+|always\s+|never\s+|do\ not\s+|don'?t\s+)*{_WORK}", _FLAGS
)


def orders_from_now_on(core: str) -> bool:
    """Does it begin with an order for the future? Then what it says of failures is no complaint."""
    return _ORDERS_FROM_NOW_ON.match(core) is not None


def certainty(sentence: str, core: str) -> Certainty:
    """How plainly a sentence, which has the form of a rule, states one. `core`: without the words that only open it."""
    plain = core.strip()
    for veto in (_ASKED, _HYPOTHETICAL, _PAST):
        if veto.search(plain):
            return Certainty.DOUBTFUL
    for veto in (_ASKED, _REPORTED, _IRONIC, _MOMENT, _QUOTED):
        if veto.search(sentence.strip()):
            return Certainty.DOUBTFUL
    plain = re.sub(r"^(?:remember|keep\ in\ mind)\s*(?:that|to|:)?\s*", "", plain, flags=re.IGNORECASE)
    if _TURNS.search(plain) or _DOUBTED.search(sentence) or count_words(plain) < LEAST_WORDS:
        return Certainty.LIKELY
    if plain.startswith(LABELLED) and not AGENTS_WORK.search(plain):
        return Certainty.LIKELY
    if any(pattern.search(plain) for pattern in _STATED):
        return Certainty.LIKELY if _about_one_thing(plain) or tells_program(plain) else Certainty.STATED
    general = _HOUSE.sub("", plain)
    preferred = (
        _GENERIC_PREFERENCE.match(plain)
        and not _ONE_THING.search(_preferred(general))
        and _IN_GENERAL.search(re.split(r"\bprefer\b", general, maxsplit=1, flags=re.IGNORECASE)[1])
    )
    local = _THIS_ONE.search(_first_clause(general)) or _ONE_PLACE.search(general)
    if (preferred or _STYLE_CHOICE.match(plain)) and not local:
        return Certainty.STATED
    return Certainty.LIKELY


_FROM_NOW_ON = re.compile(r"\bfrom\s+(?:now|here|this\s+point|today)\s+on(?:wards?)?\b,?", re.IGNORECASE)


def _preferred(core: str) -> str:
    """What is preferred: "generators" of "prefer generators to save on memory"."""
    return re.split(r"\b(?:prefer|to|over|instead|rather|when|for|in|so)\b", _first_clause(core), flags=re.IGNORECASE)[
        1
    ]


def _about_one_thing(core: str) -> bool:
    """Does its main clause point at something here, or tell of something instead of ordering it?"""
    convention = re.match(r"(?:our|my|the team'?s?)\b", core, re.IGNORECASE)
    clause = _first_clause(_HOUSE.sub("", _FROM_NOW_ON.sub("", core).strip()))
    return _THIS_ONE.search(clause) is not None or (convention is None and _COPULA.search(clause) is not None)


def _first_clause(core: str) -> str:
    """Up to where another begins; of a sentence that opens with its condition, the whole."""
    end = _CLAUSE_END.search(core, 12)
    return core[: end.start()] if end else core
