# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Sentences whose form alone says what they are: a refusal with what to do, an idea called one, a cause and its fix.

And what is read off such a sentence: what it replaces, and whether it says what to do.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from ..candidate import Category
from .common_patterns import DEICTIC, IMPERATIVE_CHOICE, LOOKED_AT_AGAIN, cue, without_lead_in

EXPLICIT: tuple[tuple[Category, str, re.Pattern[str]], ...] = (
    ("correction", "refuses, and says what to do", cue(
        r"""^(?:no|nope|nah|stop|wait|wrong|not\ that|argh+|please\ no)\b[\s,.!:;–—-]+(?:(?:please|pls|just|rather|you\ should|let's|lets)\s+)*
            (?:use|run|call|name|put|keep|leave|move|rename|write|make|create|add|do\ not|don'?t|never|always|revert|undo|only|stick|switch|take|go\ with)\s+\S+"""
    )),
    ("correction", "repeats what was said before", cue(
        r"\bi\s+(?:already\s+)?(?:said|told\ you|asked\ (?:you|for))\b(?!\s*[?])(?!.*\?\s*$)\s+(?:(?:to|not|you|that|about|before|for)\b|(?!so\b)\w+)"
    )),
    ("correction", "says what should have been done", cue(r"^(?:\w+[,.!]?\s+){0,3}you\s+(?:should(?:n'?t|\ not)?\ have|forgot\ (?:to|the)|were\ (?:not\ )?supposed\ to)\b")),
    ("preference", "says what to use instead of what", cue(
        r"^(?:please\s+|let'?s\s+|we\s+(?:should\s+)?)?use\s+[^,.;?]{2,50}?(?:,?\s+(?:and\s+)?not\s+|\s+instead\ of\s+|\s+rather\ than\s+|\s+over\s+)(?!(?:this|that|it|the\ (?:first|second|old))\b)[^,.;?]{2,40}[.!]?$"
    )),
    ("idea", "called an idea", cue(
        r"^(?:(?:new|another|one\ more|random|crazy|wild|quick|also\ an|other|feature)\s+){0,2}(?:ideas?|brainstorm|feature\ (?:idea|request)|follow[\s-]?up|for\ later|note\ to\ self|notes?\ for\ later|thought|parking\ lot|future\ work|stretch\ goal|nice\ to\ have|wish\s?list|someday|todo\ (?:for\ )?later)\s*[:—–]\s*\S+\s+\S+"
    )),
    ("idea", "called an idea", cue(
        r"^(?:(?:feature|open|more)\ )?(?:ideas?|brainstorm(?:ing)?|wish\s?list|backlog|nice\ to\ have|for\ later|someday)\s*:$"
    )),
    ("idea", "called an idea", cue(
        r"""^(?:\w+\s+){0,2}?(?:idea\ for\ (?:a(?:nother)?|the\ next|later)\b|(?:side\ )?project\ idea\b|as\ a\ stretch\ goal\b|something\ to\ (?:consider|keep\ in\ mind)\ for\ (?:later|the\ future)\b|open\ question\ for\ later\b|i\ ha(?:ve|d)\ (?:this|an)\ idea\b)
          | ^(?:(?:an?|the|one|another|new)\s+){0,2}feature\ request\ from\b
          | \b(?:add|put)\s+(?:(?:it|this|that|these)\s+)?(?:to|on)\s+(?:the|our|my)\s+(?:wish\s?list|backlog|roadmap|someday\ list|list\ of\ ideas)\b | \bput\ a\ pin\ in\b | \bremind\ me\ to\ look\ (?:into|at)\b"""
    )),
    ("idea", "wishes for it", cue(
        r"""\b(?:would|could|might|it'd|that'd)\ (?:also\ )?(?:be\ )?(?:\w+\ )?(?:cool|neat|awesome|sweet|fun|a\ dream)\ (?:if|to|for|having)\b | \bwouldn'?t\ it\ be\ (?:cool|great|nice|neat|awesome|fun)\b
          | \bhow\ cool\ would\b | \bi\ (?:dream\ of|wish\ (?:we|it|there))\b | ^wish\ (?:we|it|there)\b | \bi(?:'d|\ would)?\ (?:really\ )?love\ (?:to\ (?:have|see|get\ rid)|a|an|it\ if)\b[^.?!]*\b(?:some\s?day|one\ day|eventually|later|at\ some\ point)\b
          | \bworth\ (?:exploring|investigating|a\ paper)\b | \b(?:might|could|may)\ be\ worth\ (?:a\ (?:try|look|shot)|trying|looking)\b"""
    )),
    ("idea", "wonders whether", cue(
        r"""\bwonder(?:ing)?\s+(?:if|whether)\s+(?:there(?:'s|\ is)\s+(?:an?|any|some)\s+(?:\w+\s+)?way\s+to|we\s+(?:could|might|should)|it\s+(?:would|might)\s+make\s+sense)\b
          | ^(?:\w+[,.!]?\s+){0,2}would\s+it\s+(?:make\s+sense|be\s+(?:worth(?:\s?while)?|nice|useful|cool|neat))\s+to\b"""
    )),
    ("idea", "something for the future", cue(
        r"""^(?:in\ (?:the\ )?future,?|eventually,?|some\s?day,?|later(?:\ on)?,?|at\ some\ point,?|one\ day,?|down\ the\ (?:road|line),?)\s+(?:we|this|it|i|that|the\ \w+|there)\s+(?:could|should|might|can|may|will\ want)\b
          | ^(?:\w+[,.!]?\s+){0,2}(?:we|this|it|i|that|the\ \w+)\s+(?:could|should|might|can|may)\s+(?:also\s+)?(?:eventually|some\s?day|one\ day|at\ some\ point|later(?:\ on)?)\s+[a-z]
          | \b(?:some\s?day|one\ day|one\ of\ these\ days|at\ some\ point|down\ the\ (?:road|line)|in\ the\ long\ run|long(?:er)?[\s-]term|if\ we\ ever|when\ we\ (?:have|get|find)\ (?:the\ )?time|(?:post|after)[\s-]launch|in\ (?:an\ ideal|a\ perfect)\ world|in\ v\d|for\ the\ next\ (?:\w+\ )?(?:major|version|release|rev\w*)|not\ urgent)\b[^.?!]{0,60}\b(?:could|should|might|would|i'd|we'd|want\ to|ought\ to|love\ to|make\ sense)\b
          | ^[^?]*\b(?:could|might|should|would|i'd|we'd|want\ to|ought\ to|need)\b[^.?!]{0,70}\b(?:some\s?day|one\ day|eventually|at\ some\ point|down\ the\ (?:road|line)|another\ day|but\ later|but\ not\ now)\s*[.!…]*$"""
    )),
    ("idea", "put off on purpose", cue(
        r"""\b(?:(?:let'?s|we\ (?:should|could|can)|i'd)\s+(?:\w+\s+){0,4}?(?:leave|park|defer|postpone|save|keep)\s+(?:this|that|it|the\s[\w\s]{2,30}?)\s+for\s+(?:a\s+|another\s+|the\s+)?(?:follow|future|later|next|separate|another|day)|(?:future|later)\ (?:enhancement|exercise|improvement)|fast\ follow
            |(?:add|put|move|leave|park|keep|note|log|track|push|bump|stick|throw|save|file|defer|postpone|belongs?|goes)\b[^.?!]{0,60}\b(?:on|to)\ (?:the|our|an?)\ (?:backlog|roadmap|wish\s?list|investigate\ list)|could\ be\ (?:its|a)\ own\ \w+)\b"""
    )),
    ("fix", "says how it was solved", cue(
        r"^(?:[\w\s,']{0,40}\b)?(?:fixed|solved|resolved|worked\ around)\s+(?:it\s+|this\s+|that\s+)?by\s+\w+ing\b"
    )),
    ("fix", "names a workaround", cue(r"^(?:(?:there\ is|there's|the|a|my|as\ a|possible|known)\s+)*work[\s-]?around(?:\s+(?:is|for\s[^:]{2,40}))?\s*[:,-]?\s+(?:is\s+)?(?:to\s+)?\w+ing?\b|^(?:there\ is|there's)\ a\ work[\s-]?around\b")),
    ("fix", "says what the problem was", cue(
        r"^(?:\w+[\s,]+){0,5}?(?:the\ )?(?:actual\ |real\ )?(?:issue|problem|bug|cause|culprit)\s+(?:was|turned\ out\ to\ be)\s+(?!fixed|solved|there|still|not\b|in\b)\S+\s+\S+"
    )),
    ("fix", "says when it breaks", cue(
        r"^(?:when|if|since|because)\s+[^.?!]{8,120},\s*(?:this|it|that|the\s[\w\s]{2,30}?)\s+(?:can\ |will\ |may\ )?(?:fails?|panics?|crash(?:es)?|breaks?|hangs?|deadlocks?)\b"
    )),
    ("fix", "names the cause", cue(
        r"\b(?:bug|failure|crash|error|problem|issue|failures|hang|leak|regression|outage)\b[^.?!]{0,60}?\b(?:was|were|is|came|comes|got)\s+(?:most\ likely\ |probably\ |actually\ |only\ )?(?:caused\ by|due\ to|because\ of|from\ (?:a|the))\s+\w+"
    )),
)  # fmt: skip


AGENT_IDEA = cue(
    r"""\b(?:(?:great|good|nice|natural|useful|worthwhile|possible|separate)\ follow[\s-]?up |
        (?:in|as|for)\ (?:a|another)\ (?:separate\ )?follow[\s-]?up |
        future\ (?:\w+\ )?(?:improvement|enhancement|integration|work|iteration)s? |
        (?:deferred|later|future)[^.\n]{0,40}(?:not\ in|out\ of)\ scope | (?:not\ in|out\ of)\ scope[^.\n]{0,60}(?:later|future|follow) |
        (?:you|we)\ could\ (?:\w+\ ){1,6}(?:as\ a\ cleanup|as\ a\ follow[\s-]?up|later|down\ the\ road))\b"""
)


def sets_aside(sentence: str) -> bool:
    """Does the agent put something off for later? It proposes all day long; only that is an idea."""
    return AGENT_IDEA.search(sentence) is not None and not sentence.rstrip().endswith("?")


@dataclass(frozen=True)
class ExplicitForm:
    """A sentence whose form alone says what it is, with why."""

    category: Category
    reason: str


@functools.lru_cache(maxsize=LOOKED_AT_AGAIN)
def explicit_forms(sentence: str, possible: int = -1) -> tuple[ExplicitForm, ...]:
    """What the sentence is by its form: at most one per category. For what is short and clear; the classifier has the
    rest. `possible`: bit n says that number n of `EXPLICIT` may match; the others are not searched."""
    if len(sentence) > 240:
        return ()
    found: dict[str, ExplicitForm] = {}
    for place, (category, reason, pattern) in enumerate(EXPLICIT):
        if possible >> place & 1 and category not in found and pattern.search(sentence):
            found[category] = ExplicitForm(category, reason)
    if "idea" in found and asks_for_it(sentence):
        del found["idea"]
    return tuple(found.values())


_AT_ONCE = cue(
    r"""(?<!\bfor\ )(?<!until\ )(?<!till\ )(?<!from\ )(?<!not\ )(?<!not\ right\ )(?<!\bby\ )(?<!as\ of\ )\bnow\b(?!\ that\b) | \b(?:right\ away|immediately|today|go\ ahead)\b"""
)
_WORK_ORDER = cue(
    r"^(?:(?:first|next|just|go\ ahead\ and|start\ (?:to|by)|continue\ (?:to|with|by))[\s,]+)*(?:implement|build|run|fix|do|finish|ship|deploy|work\ on|pick\ up|tackle|make|write|add|create|test|start|continue)(?:ing)?\b"
)
_PUTS_OFF = cue(
    r"""(?:\b(?:later|some\s?day|one\ day|another\ (?:day|time)|some\ other\ (?:day|time)|eventually|future|at\ some\ point|down\ the\ (?:road|line)|not\ (?:right\ )?now|not\ yet|long(?:er)?[\s-]term
        |next\ (?:version|release|sprint|major|step|rev\w*)|(?:post|after)[\s-]launch|as\ a\ stretch\ goal|fast\ follow|(?:as|for|in|to)\ an?\ (?:\w+\ )?follow[\s-]?up|separate\ (?:pr|issue|ticket|feature))
        |(?:(?:^|[,;]\ |\b(?:and|then|to|you|please|let'?s|should|could|can|must|but|also)\ )(?:just\ |also\ )?)(?:log|file|create|open|make|add|raise|write|bump|put|move|leave|park|keep|defer|postpone|save|note|track|push|stick)\b[^.?!]{0,80}\b(?:issues?|tickets?|follow[\s-]?ups?|backlog|roadmap|wish\s?list|list|parking\ lot|notes?|idea))\b"""
)
_WISHES = cue(r"\b(?:would|could|might|wouldn'?t|wish|wonder(?:ing)?|dream|imagine)\b")
_LABEL = cue(r"^(?P<name>[\w\s-]{2,30})[:—–]\s*")
_OF_WORK = cue(r"^(?:follow[\s-]?ups?|to-?dos?|next)\b")
"""Labels of what is to be done; "idea: add a cache" is no order."""


def asks_for_it(sentence: str) -> bool:
    """Does it ask that the thing be done at once? An idea is put off."""
    core = without_lead_in(sentence)
    label = _LABEL.match(core)
    said = core[label.end() :] if label else core
    if _PUTS_OFF.search(said) is not None:
        return False
    orders = _WORK_ORDER.match(said) is not None
    at_once = _AT_ONCE.search(sentence) is not None
    if label is not None:
        return orders and at_once and _OF_WORK.match(label["name"]) is not None
    return orders or (at_once and _WISHES.search(said) is None)


# What to do instead: "use pnpm, not npm" says both what to use and what it replaces.
_NEW = r"(?P<new>(?:[^,.;!?]|\.(?=\w)){2,60}?)"
_OLD = r"(?P<old>(?:[^,.;!?]|\.(?=\w)){2,60})"
_REPLACES = tuple(
    cue(pattern)
    for pattern in (
        rf"\buse\s+{_NEW}(?:,|\s)\s*(?:and\s+)?not\s+{_OLD}",
        rf"\b(?:use|prefer|want|like|choose|see|have)\s+{_NEW}\s+(?:instead\ of|over|rather\ than)\s+{_OLD}",
        rf"\b(?:switch|change|move|migrate)\w*\s+from\s+{_OLD}\s+to\s+{_NEW}(?:$|[.,;!?\s])",
        rf"\b(?:should\ be|is|called|named)\s+{_NEW}(?:,\s*not|\s+instead\ of|\s+rather\ than)\s+{_OLD}",
        rf"\b(?:no\ longer|not|stop|don'?t)\s+(?:use|using|run|running)\s+{_OLD}\s*(?:any\s?more|any\ longer)\b",
        # Said to the agent, with a comma: "the parser should keep names, not numbers" tells of a program.
        rf"^(?:(?:no|nope|nah|wrong|please|pls)[\s,.!]+)+(?:put|name|call|write|keep|place|make|run)\s+(?!(?:it|this|that|these|those)\b){_NEW},\s*not\s+{_OLD}",
        rf"\binstead\ of\s+{_OLD},\s*(?:please\s+)?(?:use|do|run|write|make|print|call)\s+{_NEW}",
    )
)


_AMOUNT = re.compile(r"[~<>]?\d[\d.,]*\s*(?:%|[a-z]{1,2}\b)?[\s.…]*\Z", re.IGNORECASE)
_ASKS = cue(
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
            if old and not DEICTIC.fullmatch(old):
                return old
    return None


def names_what_to_do(sentence: str) -> bool:
    """A correction that says what to do instead, not only that something is wrong."""
    core = without_lead_in(sentence)
    return (
        replaced(sentence) is not None
        or IMPERATIVE_CHOICE.match(core) is not None
        or re.search(
            r"\b(?:should|must|let'?s|instead|rather|just|only|want|need|called?|rename|move|revert|separate)\b",
            core,
            re.IGNORECASE,
        )
        is not None
    )
