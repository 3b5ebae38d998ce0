"""Judge by a rubric whether a pattern is worth adopting (pass 1); docs/how-to/discovery.md lists the rules. Pure.

The result holds only words of our own: the pattern's text is never repeated, so that no instruction in it gets into the
vault.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from enum import IntEnum

from ..runtime.function_words import STOP_WORDS
from ..runtime.slug import slugify
from ..vault.wording import counted
from .discovery import Pattern
from .skills import gives_orders, is_lookalike
from .url_identity import repository_of


class Confidence(IntEnum):
    """How strongly the evidence favours adopting a pattern."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


HIGH_SCORE = 3
MEDIUM_SCORE = 1
HIGH_STARS = 500
LOW_STARS = 50
RECENT_DAYS = 365
PERMISSIVE = frozenset({"MIT", "Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "ISC", "MPL-2.0"})
_DEFAULT_TRUSTED = (
    "anthropics anthropic google googleworkspace googlecloudplatform microsoft vercel hashicorp openai cloudflare "
    "github supabase redis kubernetes docker pytorch huggingface modelcontextprotocol"
)
DEFAULT_TRUSTED = _DEFAULT_TRUSTED.split()


@dataclass(frozen=True)
class Facts:
    """A repository's facts from GitHub; None where unknown."""

    owner: str
    name: str
    stars: int | None = None
    pushed: date | None = None
    licence: str | None = None
    """SPDX id."""
    archived: bool = False


@dataclass(frozen=True)
class Rule:
    """A rule that applied."""

    id: str
    points: int
    why: str


@dataclass(frozen=True)
class UserSetup:
    """What the user has and trusts."""

    skills: Collection[str] = ()
    """Slugs of personal skills."""
    always_load: Collection[str] = ()
    """Slugs and tags of always-load entries."""
    trusted: Collection[str] = ()
    """Owners that the user trusts, in lower case."""


@dataclass(frozen=True)
class Judgement:
    """The verdict of pass 1."""

    score: int
    confidence: Confidence
    rules: tuple[Rule, ...]
    trusted: bool
    trust: tuple[str, ...]
    """The repository's facts in words."""
    moved: tuple[str, ...] = ()
    """Why the confidence differs from that of the score."""


def _words_of(*words: str) -> re.Pattern[str]:
    """Compile a pattern that matches any of the words, whole."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)


_AGENTS = _words_of(
    "agents?", "agentic", "skills?", "hooks?", "workflows?", "claude", "antigravity", "gemini", "mcp",
    "memory", "memories", "contexts?", "automation", "automates?", "automated", "ci", "releases?",
)  # fmt: skip
_PRIMITIVE = _words_of(
    "mcp[- ]servers?", "mcp", "hooks?", "skills?", "primitives?", "sub-?agents?", "rules?", "commands?"
)
_UNSTABLE = _words_of(
    "experimental", "wip", "work in progress", "hacks?", "workarounds?", "deprecated", "alpha", "beta", "unstable",
    "broken", "abandoned", "unmaintained",
)  # fmt: skip
_VENDOR = _words_of("windsurf", "codex", "jetbrains", "intellij", "pycharm", "vs ?code", "visual studio code")
# An everyday word, which means the editor only in some spellings or before certain words.
_CURSOR = re.compile(
    r"(?<!\w)\.?cursorrules(?!\w)|(?<!\w)\.cursor/|(?<!\w)cursor\.(?:com|sh)(?!\w)"
    r"|(?<!\w)(?:[Ff]or|[Ii]n|[Ww]ith) Cursor(?!\w)"
)
_CURSOR_TRADE = re.compile(r"(?i)(?<!\w)cursor (?:ide|ai|editor|rules?|extension|plugin|composer)(?!\w)")
_OURS = _words_of("claude(?: code)?", "agent skills?", "antigravity", "any agent", "cross-platform")
_STOP = STOP_WORDS | {"new", "one", "use", "used", "uses", "using", "via", "within", "without"}
"""Words without content about a skill's purpose."""


def judge(
    pattern: Pattern, held: UserSetup, facts: Facts | None, today: date, *, is_text_judged: bool = False
) -> Judgement:
    """Judge a pattern. Rules R1 to R8 give the score; the repository's facts change the confidence by one step.

    The rules see a name and a description, which may be tame where the skill's text is not. So it is HIGH only if the
    text was judged, too (`is_text_judged`), or the owner is trusted.
    """
    text = f"{pattern.title}. {pattern.description}"
    rules = [rule for rule in _rules(pattern, text, held) if rule.points]
    score = sum(rule.points for rule in rules)
    level = Confidence.HIGH if score >= HIGH_SCORE else Confidence.MEDIUM if score >= MEDIUM_SCORE else Confidence.LOW
    owner = facts.owner if facts is not None else (repository_of(pattern.url) or ("", ""))[0]
    trusted = owner.casefold() in {name.casefold() for name in held.trusted}
    weight, trust = _trust(facts, owner, trusted, today)
    by_score = level
    if weight <= -2:
        level = Confidence(max(0, level - 1))
    elif weight >= 2 and score == HIGH_SCORE - 1:
        level = Confidence.HIGH
    moved: tuple[str, ...] = ()
    if level is Confidence.HIGH and not (is_text_judged or trusted):
        level = Confidence.MEDIUM
        moved = ("it was HIGH, but no model judged its text, and its owner is none that you trust",)
    elif level != by_score:
        moved = (f"it was {by_score.name} by its score, before its repository and owner counted",)
    return Judgement(score, level, tuple(rules), trusted, tuple(trust), moved)


def _rules(pattern: Pattern, text: str, held: UserSetup) -> Iterable[Rule]:
    slug = slugify(pattern.title)
    is_name = (len(slug) <= 40 and "-" in slug) or len(slug) <= 20
    if is_name and not any(slug == skill or skill.endswith(f"--{slug}") for skill in held.skills):
        yield Rule("R1:new-tool-not-yet-owned", 1, "you have no skill of this name")
    own_words = {word for slug in held.always_load for word in slug.casefold().split("-") if len(word) > 2} - _STOP
    shared = sorted(own_words & set(re.findall(r"[^\W_]+", text.casefold())))
    if len(shared) >= 2:
        yield Rule("R2:touches-your-rules", 1, f"your always-load entries speak of the same: {', '.join(shared[:6])}")
    if _AGENTS.search(text):
        yield Rule("R3:agent-building-context", 1, "it speaks of the work of agents")
    if _PRIMITIVE.search(text):
        yield Rule("R4:names-primitive", 1, "it names something an agent can be extended with")
    if _UNSTABLE.search(text):
        yield Rule("R5:experimental-flag", -1, "it calls itself unfinished")
    if _is_for_another_editor(text):
        yield Rule("R6:cross-vendor-proprietary", -2, "it is made for another vendor's editor")
    if is_lookalike(pattern.title) or is_lookalike(pattern.url):
        yield Rule("R7:lookalike-name", -4, "its name mixes letters of several alphabets")
    if gives_orders(text):
        yield Rule("R8:gives-orders", -4, "its description gives orders to whoever reads it")


def _is_for_another_editor(text: str) -> bool:
    named = _VENDOR.search(text) or _CURSOR.search(text) or _CURSOR_TRADE.search(text)
    return named is not None and _OURS.search(text) is None


def _trust(facts: Facts | None, owner: str, trusted: bool, today: date) -> tuple[int, list[str]]:
    """Return the weight of the repository's facts, and the facts in words."""
    weight = 2 if trusted else 0
    said = [f"{owner} is one of your trusted owners"] if trusted else []
    if facts is None:
        return weight, said
    if facts.stars is not None:
        weight += 1 if facts.stars >= HIGH_STARS else -1 if facts.stars < LOW_STARS else 0
        said.append(counted(facts.stars, "star"))
    if facts.archived:
        weight -= 2
        said.append("archived by its owner")
    elif facts.pushed is not None:
        old = (today - facts.pushed).days > RECENT_DAYS
        weight += -1 if old else 0
        said.append(f"last change {facts.pushed.isoformat()}" + (", more than a year ago" if old else ""))
    if facts.licence in PERMISSIVE:
        weight += 1
    said.append(f"licence {facts.licence}" if facts.licence else "no licence that GitHub knows")
    return weight, said
