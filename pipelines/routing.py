"""Decide the tier and the destination of a candidate. Pure.

HIGH is saved at once, MEDIUM waits for the user's decision, LOW goes to the inbox. A memory that is known already is
strengthened instead of written again, and a rejected one stays rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from ..runtime.layout import DEFAULT_GROUP, INBOX, INCUBATOR, PROJECTS, REVIEW
from ..runtime.slug import idea_slug, mining_slug, slugify
from ..vault.failure import PLACE, read_cure
from .candidate import Candidate


class Tier(StrEnum):
    """How certain it is that the user wants a memory."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Action(StrEnum):
    """What becomes of a candidate."""

    WRITE = "write"
    STRENGTHEN = "strengthen"
    """Add its evidence to the entry at `destination`, and an occurrence, except for `is_further_finding`."""
    NOTHING = "nothing"
    """Its evidence was counted already, or the user rejected it."""


@dataclass(frozen=True)
class Known:
    """An entry that says the same as a candidate."""

    path: str
    status: str
    occurrences: int
    records: frozenset[str]
    """Those of the candidate's transcript records that are already evidence of the entry."""
    sessions: frozenset[str] = frozenset()
    """Sessions that its evidence is from."""
    project: str | None = None
    """Slug of its project; None if it holds everywhere."""
    replaces: str | None = None
    """Path of the rule that the entry is proposed to replace."""
    pieces: int = 0
    """Number of records in its evidence."""
    is_counted: bool = False
    """Whether its evidence has this saying already: the same words in this session or in a copied one."""
    others_words: bool = False
    """Whether its text may be somebody else's: an agent proposed it, a file holds it, a model worded it, or no record
    of the host says who typed it; and the candidate does not say exactly the same."""
    is_users: bool = False
    """Whether the user approved, wrote or, as the host says, typed it."""


@dataclass(frozen=True)
class ReversedRule:
    """A rule in use that a candidate contradicts."""

    path: str
    project: str | None = None
    """Slug of its project; None if it holds everywhere."""
    said: str = ""
    """When it was said last, as `Candidate.said_at`; '' if unknown."""


class KnownMemories(Protocol):
    """Searches the vault for one candidate at a time."""

    def same(self, candidate: Candidate) -> Sequence[Known]:
        """Return all entries that say the same, of any status; those in use first."""

    def reversed_rule(self, candidate: Candidate) -> ReversedRule | None:
        """Return the rule in use that the candidate contradicts; None if there is none."""


@dataclass(frozen=True)
class RoutedCandidate:
    """A candidate with its tier and its action. `destination` is a vault-relative path."""

    candidate: Candidate
    tier: Tier
    action: Action
    destination: str
    why: str
    supersedes: str | None = None
    """WRITE: path of the rule it would replace. STRENGTHEN: present path of the entry, which moves to `destination`."""
    widened: bool = False
    """It was said in another project than the entry's, so it becomes a rule for everywhere."""


RULE_CATEGORIES = frozenset({"preference", "correction", "fact"})
REJECTED_STATUSES = frozenset({"rejected", "dismissed"})
"""Statuses of entries that the user refused; saying the same again does not change that."""
ONE_OCCURRENCE = "inferred from one occurrence"
"""Reason for the tier LOW."""
REVERSES = "reverses "
"""Reason for a proposal to replace a rule; its path follows."""
UNCONFIRMED = "the words may not be your own"
"""Reason for the tier MEDIUM of a standing rule."""
MOST_PIECES = 1000
"""Most records in the evidence of an entry; after that it is neither extended nor counted. Every counted record stays
named, so that re-reading recognises it and undo finds it, and the header stays readable."""
REVIEW_OCCURRENCES = 3
"""Occurrences from which on something is a pattern, about which the user is asked."""
LEAST_SESSIONS = 2
"""Fewest sessions in which a pattern was seen."""
PUT_AWAY_STATUSES = frozenset({"superseded", "archived", "resolved"})
"""Statuses of entries that held once; the same said again is proposed anew."""


def route(candidate: Candidate, known: KnownMemories, *, mode: str = "interactive") -> RoutedCandidate:
    """Decide what becomes of one candidate. `mode`: the setting `memory.review_mode`."""
    if candidate.category in RULE_CATEGORIES and not candidate.from_user:
        # An order in a README or a tool's output is never a rule of the user, however often it is read.
        return RoutedCandidate(candidate, Tier.LOW, Action.NOTHING, "", "not in words you typed")
    same = known.same(candidate)
    for entry in same:
        if entry.records >= set(candidate.records):
            return _settled(candidate, entry, "this was counted already")
    for entry in same:
        if entry.status in REJECTED_STATUSES:
            return _settled(candidate, entry, "you rejected it")
    tier, why = tier_of(candidate)
    saves = status_at(destination_of(candidate, tier, mode)) == "active"
    living = next((entry for entry in same if _lives(entry, saves)), None)
    if living is not None:
        # A guess that waits may be saved now, if only this time the host says that the user typed it.
        rises = tier is Tier.HIGH and living.status in ("inbox", "pending")
        if living.is_counted and not rises:
            return _settled(candidate, living, "this was counted already")
        if living.is_users and candidate.from_user and not candidate.confirmed and candidate.category != "idea":
            return _settled(candidate, living, f"known: {living.status}; {UNCONFIRMED}")
        return _strengthened(candidate, living, tier, why, mode)
    reversed_rule = known.reversed_rule(candidate)
    if reversed_rule is not None and candidate.category != "idea":
        if candidate.said_at is not None and candidate.said_at < reversed_rule.said:
            # Sessions are not always read in their order.
            return RoutedCandidate(candidate, tier, Action.NOTHING, reversed_rule.path, "you said otherwise later")
        # Two rules that contradict each other must not both be in use, and only the user knows which holds.
        if reversed_rule.project is None:
            # The replacement of a rule for everywhere must hold everywhere, too.
            candidate = replace(candidate, scope="personal")
        destination = destination_of(candidate, Tier.MEDIUM, "auto" if mode == "auto" else "interactive")
        return RoutedCandidate(
            candidate, Tier.MEDIUM, Action.WRITE, destination, f"{REVERSES}{reversed_rule.path}", reversed_rule.path
        )
    return RoutedCandidate(candidate, tier, Action.WRITE, destination_of(candidate, tier, mode), why)


def _lives(entry: Known, saves: bool) -> bool:
    """Whether one more occurrence strengthens this entry. `saves`: whether the occurrence would be saved unasked.

    Only the user's own words are saved unasked, so a waiting text of others is left alone.
    """
    waits_for_user = saves and entry.others_words and entry.status in ("inbox", "pending")
    return entry.status not in PUT_AWAY_STATUSES and not waits_for_user


def _strengthened(candidate: Candidate, living: Known, tier: Tier, why: str, mode: str) -> RoutedCandidate:
    """Decide on one more occurrence of `living`, which may now be sure enough to leave the place where it waits."""
    # An idea stays where it is: a promoted one is a project.
    idea = candidate.category == "idea"
    widened = (
        not idea
        and living.project is not None
        and is_widened([living.project, project_of(candidate)])
        # Unconfirmed words do not make a rule of one project a rule for everywhere, nor does a tool what was approved.
        and ((candidate.confirmed and candidate.from_user) or (candidate.role != "user" and living.status != "active"))
    )
    occurrences = living.occurrences + (not is_further_finding(candidate, living.sessions))
    is_hint = tier is Tier.LOW and not (candidate.standing_rule or candidate.claimed_rule)
    sessions = living.sessions | {candidate.session}
    if tier is Tier.LOW and occurrences >= REVIEW_OCCURRENCES and len(sessions) >= LEAST_SESSIONS:
        tier, why = Tier.MEDIUM, f"seen {occurrences} times"
    # Only the user's own words are saved unasked (`_lives`), also when something is seen often. A rule that is stated
    # outright needs no decision, unless it would replace another one.
    if living.others_words and mode == "silent":
        mode = "interactive"
    waits = living.status == "inbox" or (living.status == "pending" and tier is Tier.HIGH)
    if waits and tier is not Tier.LOW and not idea and living.replaces is None:
        # A text of others that the user types holds where they type it.
        widened = widened and (living.is_users or not candidate.confirmed)
        is_general = living.project is None and (living.is_users or not candidate.confirmed)
        promoted = _moved(living.path, destination_of(candidate, tier, mode, widened=widened or is_general))
        # In the mode `auto` an inbox note stays in the inbox.
        if status_at(promoted) != living.status:
            return RoutedCandidate(candidate, tier, Action.STRENGTHEN, promoted, why, living.path, widened)
    else:
        why = f"known: {living.status}"
        if widened and living.status == "active":
            target = _moved(living.path, destination_of(candidate, Tier.HIGH, mode, widened=True))
            return RoutedCandidate(candidate, tier, Action.STRENGTHEN, target, why, living.path, widened)
    if is_hint and living.status == "active" and not widened:
        # A question about a saved rule does not state it again.
        return RoutedCandidate(candidate, tier, Action.NOTHING, living.path, f"{why}; a hint at it counts for nothing")
    if living.pieces >= MOST_PIECES and not widened:
        return RoutedCandidate(
            candidate, tier, Action.NOTHING, living.path, f"{why}, with all the evidence it can hold"
        )
    return RoutedCandidate(candidate, tier, Action.STRENGTHEN, living.path, why, widened=widened)


def _moved(path: str, destination: str) -> str:
    """Return the new path of an entry that moves: it keeps its name, which may be linked."""
    return f"{destination.rpartition('/')[0]}/{path.rpartition('/')[2]}"


def is_further_finding(candidate: Candidate, sessions: Collection[str]) -> bool:
    """Whether this is a further finding about a problem of these sessions: more evidence, but no new occurrence."""
    return candidate.category == "fix" and candidate.session in sessions


def is_widened(projects: Sequence[str | None]) -> bool:
    """Whether a memory that was said in these projects (None: outside of one) holds everywhere."""
    return len(set(projects)) > 1


def project_of(candidate: Candidate) -> str | None:
    """Slug of the project in which the candidate holds; None if it holds everywhere."""
    return slugify(candidate.project) if candidate.scope == "project" and candidate.project else None


def tier_of(candidate: Candidate) -> tuple[Tier, str]:
    """Return the tier of a candidate that is not known yet, and the reason."""
    if candidate.category == "idea":
        if not candidate.from_user:
            return Tier.LOW, "an idea, inferred"
        return Tier.MEDIUM, "an idea of yours" if candidate.confirmed else f"an idea; {UNCONFIRMED}"
    if candidate.standing_rule and candidate.from_user:
        if not candidate.confirmed:
            return Tier.MEDIUM, UNCONFIRMED
        return Tier.HIGH, "a standing rule in your own words"
    if candidate.claimed_rule and candidate.from_user:
        return Tier.MEDIUM, "may hold from now on"
    return Tier.LOW, ONE_OCCURRENCE


def destination_of(candidate: Candidate, tier: Tier, mode: str, *, widened: bool = False) -> str:
    """Return the vault-relative path for a candidate of this tier, which may be taken. `widened`: for no project."""
    if candidate.category == "idea":
        return f"{DEFAULT_GROUP}/{INCUBATOR}/{idea_slug(candidate.title)}/_index.md"
    otherwise = "-".join(filter(None, (candidate.kind, (candidate.said_at or "")[:10])))
    slug = mining_slug(_named_after(candidate), candidate.answered, otherwise)
    may_save = mode == "silent" and (candidate.confirmed or not candidate.from_user)
    if tier is Tier.HIGH or (tier is Tier.MEDIUM and may_save):
        return f"{DEFAULT_GROUP if widened else group_of(candidate)}/{candidate.kind}/{slug}.md"
    folder = REVIEW if tier is Tier.MEDIUM and mode == "interactive" else INBOX
    return f"{DEFAULT_GROUP}/{folder}/{slug}.md"


def _named_after(candidate: Candidate) -> str:
    """What the note's name is made of: of a command's failure what was told, since many begin with the command."""
    cure = read_cure(candidate.statement)
    if cure is None or not cure[1]:
        return candidate.title
    place = PLACE.search(cure[1])
    return cure[1][place.end() :] if place else cure[1]


def group_of(candidate: Candidate) -> str:
    """Return the group of the accepted entry: its project's, or the user's."""
    project = project_of(candidate)
    return f"{PROJECTS}/{project}" if project else DEFAULT_GROUP


def status_at(destination: str) -> str:
    """Return the status of an entry that is written to this path."""
    folders = destination.split("/")
    if REVIEW in folders:
        return "pending"
    if INBOX in folders:
        return "inbox"
    return "incubating" if INCUBATOR in folders else "active"


def beyond_limit(candidates: Sequence[Candidate], waiting: int, limit: int) -> frozenset[int]:
    """Return the indexes of a session's candidates that make no new entry, so that at most `limit` of them wait.

    `waiting`: how many wait already. The surest candidates come first; those saved at once do not count. 0: no limit.
    """
    if not limit:
        return frozenset()
    unsure = [index for index, candidate in enumerate(candidates) if tier_of(candidate)[0] is not Tier.HIGH]
    unsure.sort(key=lambda index: (tier_of(candidates[index])[0] is not Tier.MEDIUM, -candidates[index].score, index))
    return frozenset(unsure[max(0, limit - waiting) :])


def _settled(candidate: Candidate, entry: Known, why: str) -> RoutedCandidate:
    tier, _ = tier_of(candidate)
    return RoutedCandidate(candidate, tier, Action.NOTHING, entry.path, why)
