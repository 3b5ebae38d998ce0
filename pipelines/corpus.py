"""Grouping, ranking and bounding what a whole corpus of old sessions says. Pure.

A session's reflection decides on each saying as it is mined. An old corpus holds hundreds of them at once, so here
they are first counted over all of its sessions; then the strongest are put to the user, and the rest is kept as
counted lines in one note.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..vault.entry import fingerprint
from ..vault.wording import counted, cut
from .candidate import Candidate
from .likeness import LikenessLimits, Wording, filter_words, is_same, speaks_of_this_project, wording_of_saying
from .review import Approve, Reject
from .routing import PASSED_ON, RULE_CATEGORIES, Thresholds, Tier, is_pattern, project_of, tier_of

MOST_LINES = 200
"""Most lines of the digest; weaker patterns are only counted."""
LINE_CHARACTERS = 220
HEADING = "## Ranked, strongest first"
"""Heading of the generated part of the digest; what a person writes above it stays."""
KEY_CHARACTERS = 8
_DECIDED_LINE = re.compile(r"^\s*[-*+] \[(?P<mark>[^\]\n])\]\s.*?\^(?P<key>[0-9a-f]{8})\s*$", re.MULTILINE)
_LISTED_LINE = re.compile(r"^\s*[-*+] \[[^\]\n]\]\s+(?P<says>.*?)\s+\^(?P<key>[0-9a-f]{8})\s*$", re.MULTILINE)
_DECISIONS: Mapping[str, Approve | Reject] = {"x": Approve(), "X": Approve(), "-": Reject()}

HOW_TO_MARK = (
    "Tick a line to keep it (`[x]`), or write `[-]` into its box, and it never comes again: the worker does it within "
    "seconds. `memory review --digest` asks for one after the other."
)

_TIERS = {Tier.HIGH: 0, Tier.MEDIUM: 1, Tier.LOW: 2}
_CATEGORIES = {"preference": 0, "correction": 0, "fact": 0, "workflow": 1, "fix": 2, "idea": 3}


@dataclass(frozen=True)
class Saying:
    """A candidate of an old session."""

    candidate: Candidate
    host: str
    order: tuple[float, str, int]
    """Sort key: when it was said, else when its transcript was last written; the transcript's name; the place in it."""

    @property
    def key(self) -> str:
        """What names it in the digest: the same whatever else is mined."""
        said = self.candidate
        parts = (said.session, *said.records, said.category, said.statement)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:KEY_CHARACTERS]


@dataclass(frozen=True)
class Pattern:
    """Sayings that say the same; the first gives the wording."""

    sayings: tuple[Saying, ...]
    tier: Tier

    @property
    def candidate(self) -> Candidate:
        return self.sayings[0].candidate

    @property
    def passed_on(self) -> bool:
        """Every one of them stands in a text that was passed on."""
        return all(saying.candidate.passed_on for saying in self.sayings)

    @property
    def sessions(self) -> frozenset[str]:
        return frozenset(saying.candidate.session for saying in self.sayings)

    @property
    def strength(self) -> tuple[int, int, int, int, float, str]:
        """Sort key, the strongest first: tier, sessions, occurrences, category, the miner's score."""
        best = max(saying.candidate.score for saying in self.sayings)
        return (
            _TIERS[self.tier],
            -len(self.sessions),
            -len(self.sayings),
            _CATEGORIES[self.candidate.category],
            -round(best, 3),
            self.candidate.statement,
        )


def patterns_of(sayings: Sequence[Saying], limits: LikenessLimits, thresholds: Thresholds) -> list[Pattern]:
    """Group sayings into patterns, strongest first; the order of the sayings does not matter."""
    groups: list[_Group] = []
    by_print: dict[tuple[str, str, str], _Group] = {}
    by_word: dict[tuple[str, str, str], list[_Group]] = {}
    for saying in sorted(sayings, key=lambda each: each.order):
        candidate = saying.candidate
        if candidate.category in RULE_CATEGORIES and not candidate.from_user:
            continue  # at no tier, however often it is read
        is_apart = candidate.category != "idea" and speaks_of_this_project(candidate.statement)
        project = (project_of(candidate) if is_apart else None) or ""
        exact = (candidate.kind, project, fingerprint(candidate.statement))
        group = by_print.get(exact)
        if group is None:
            wording = wording_of_saying(candidate.statement)
            keys = [(candidate.kind, project, word) for word in filter_words(wording, limits.wording)]
            near = (group for key in keys for group in by_word.get(key, ()))
            group = next((each for each in near if is_same(each.wording, wording, None, limits)), None)
            if group is None:
                group = _Group(wording, [])
                groups.append(group)
                for key in keys:
                    by_word.setdefault(key, []).append(group)
            by_print[exact] = group
        group.sayings.append(saying)
    return sorted((_pattern(group.sayings, thresholds) for group in groups), key=lambda each: each.strength)


@dataclass
class _Group:
    wording: Wording
    sayings: list[Saying]


def _pattern(sayings: Sequence[Saying], thresholds: Thresholds) -> Pattern:
    tiers = [tier_of(saying.candidate)[0] for saying in sayings]
    best = min(tiers, key=lambda tier: _TIERS[tier])
    # The surest saying gives the wording; of equals, the first that was said in the user's own voice.
    first = min(range(len(sayings)), key=lambda n: (_TIERS[tiers[n]], sayings[n].candidate.passed_on, n))
    ordered = (sayings[first], *sayings[:first], *sayings[first + 1 :])
    sessions = {saying.candidate.session for saying in sayings}
    category = ordered[0].candidate.category
    # Of a fix, each session counts once: see is_further_finding.
    seen = len(sessions) if category == "fix" else len(sayings)
    pattern = Pattern(tuple(ordered), best)
    may_rise = best is Tier.LOW and category != "idea" and not pattern.passed_on
    return replace(pattern, tier=Tier.MEDIUM) if may_rise and is_pattern(seen, sessions, thresholds) else pattern


@dataclass(frozen=True)
class Selection:
    """What to do with the patterns that are not in the vault yet; each field strongest first."""

    saved: tuple[Pattern, ...]
    """The strongest standing rules in the user's own words, saved as those of a fresh session are."""
    proposed: tuple[Pattern, ...]
    """The next strongest; a standing rule among them is `unconfirmed`."""
    held: tuple[Pattern, ...]
    """Patterns that are only counted in the digest."""


def most_ideas(entries: int) -> int:
    """How many ideas of old sessions may wait if `entries` memories may: a quarter fewer.

    By default that is 15. With 20, a backfill would fill the incubator to the number above which each session begins
    with a word on it, and the very next idea of a fresh session would bring that word up.
    """
    return entries - entries // 4


def select(patterns: Sequence[Pattern], rule_room: int, room: int, idea_room: int) -> Selection:
    """Choose what to save and propose, within the room left for rules saved unasked, for review, and for ideas.

    Ideas wait long, and for themselves. Rules beyond their room wait with the other memories, before them.
    """
    saved: list[Pattern] = []
    proposed: list[Pattern] = []
    held: list[Pattern] = []
    for pattern in patterns:
        is_idea = pattern.candidate.category == "idea"
        if pattern.tier is Tier.HIGH and rule_room > 0:
            saved.append(pattern)
            rule_room -= 1
        elif pattern.tier is not Tier.LOW and (idea_room if is_idea else room) > 0:
            proposed.append(unconfirmed(pattern) if pattern.tier is Tier.HIGH else pattern)
            idea_room -= is_idea
            room -= not is_idea
        else:
            held.append(pattern)
    return Selection(tuple(saved), tuple(proposed), tuple(held))


def unconfirmed(pattern: Pattern) -> Pattern:
    """Make a proposal of a standing rule, for the user to decide on."""
    sayings = (
        replace(saying, candidate=replace(saying.candidate, standing_rule=False, claimed_rule=True))
        if saying.candidate.standing_rule
        else saying
        for saying in pattern.sayings
    )
    return Pattern(tuple(sayings), Tier.MEDIUM)


def as_claimed(pattern: Pattern) -> Pattern:
    """The pattern as what its words claim to be, a rule: it is asked whether it replaces another one."""
    sayings = (
        replace(saying, candidate=replace(saying.candidate, claimed_rule=True, limit=0.0)) for saying in pattern.sayings
    )
    return Pattern(tuple(sayings), Tier.MEDIUM)


@dataclass(frozen=True)
class CorpusFigures:
    """Figures in the head of the digest."""

    sessions: int
    in_vault: int
    """Number of patterns that are in the vault, rejected ones included."""


def digest_body(
    held: Sequence[Pattern],
    figures: CorpusFigures,
    marks: Mapping[str, str] = MappingProxyType({}),
    awaiting: Sequence[Pattern] = (),
) -> str:
    """Render the generated part of the digest, from its heading on; the same input gives the same bytes.

    `marks`: what the user has written into boxes, by the key of the line; what is not carried out yet must not be lost.
    `awaiting`: what waits in the vault, listed only where the user has decided on its line before it was there.
    """
    waiting = sum(each.tier is not Tier.LOW for each in held)
    lines = [
        HEADING,
        "",
        f"{counted(figures.sessions, 'old session was', 'old sessions were')} read. "
        f"{counted(figures.in_vault, 'memory of theirs is', 'memories of theirs are')} in the vault, ideas among them; "
        "`memory review` and `memory idea list` show what waits for you now.",
        f"{counted(waiting, 'more is', 'more are')} sure enough to be put to you, after those (`memory reflect corpus "
        f"--more`); {counted(len(held) - waiting, 'was', 'were')} seen too seldom. Another occurrence counts for each.",
        "",
        HOW_TO_MARK,
        "",
    ]
    listed = [pattern for place, pattern in enumerate(held) if place < MOST_LINES or _mark(pattern, marks)]
    decided = [pattern for pattern in awaiting if _mark(pattern, marks) in _DECISIONS]
    lines += [_line(pattern, marks) for pattern in (*listed, *decided)]
    if len(held) > len(listed):
        lines += ["", f"and {counted(len(held) - len(listed), 'weaker one')}, counted but not listed."]
    return "\n".join(lines) + "\n"


def marks_in(body: str) -> dict[str, str]:
    """Read what is written into the boxes of the digest, by the lines' keys; empty boxes are left out."""
    return {match["key"]: match["mark"] for match in _DECIDED_LINE.finditer(body) if match["mark"] != " "}


def decisions_in(body: str) -> dict[str, Approve | Reject]:
    """Read what the user has decided in the digest, by the lines' keys."""
    return {key: _DECISIONS[mark] for key, mark in marks_in(body).items() if mark in _DECISIONS}


def listed_lines(body: str) -> dict[str, str]:
    """Read the lines of the digest, by their keys, without markup."""
    return {match["key"]: match["says"].replace("**", "") for match in _LISTED_LINE.finditer(body)}


def _line(pattern: Pattern, marks: Mapping[str, str]) -> str:
    candidate = pattern.candidate
    text = cut(candidate.statement, LINE_CHARACTERS)
    seen = f"{len(pattern.sayings)}× in {len(pattern.sessions)} session{'s' if len(pattern.sessions) > 1 else ''}"
    if pattern.tier is not Tier.LOW:
        seen = f"**{seen}**"
    where = f", {candidate.project}" if candidate.project else ""
    passed_on = f", {PASSED_ON}" if pattern.passed_on else ""
    mark = _mark(pattern, marks) or " "
    # The key is a block's name in Obsidian, which does not show it.
    return f"- [{mark}] {seen} ({candidate.category}{where}{passed_on}): {text} ^{pattern.sayings[0].key}"


def _mark(pattern: Pattern, marks: Mapping[str, str]) -> str:
    """What the user has written into the box of the pattern's line; '' for nothing."""
    return next((marks[saying.key] for saying in pattern.sayings if saying.key in marks), "")
