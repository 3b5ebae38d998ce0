"""Where a candidate goes: its tier, and what is to be done with it. Pure.

HIGH is saved at once, MEDIUM waits for the user's decision, LOW lies in the inbox. What is known already is
strengthened, never written again; what was rejected stays rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, Protocol

from ..runtime.layout import DEFAULT_GROUP, INBOX, INCUBATOR, PROJECTS, REVIEW
from ..runtime.slug import idea_slug, mining_slug, slugify
from .candidate import Candidate

ReviewMode = Literal["interactive", "auto", "silent"]


def review_mode(text: str) -> ReviewMode:
    """The mode of that name; what is none asks the user, as the default does."""
    match text:
        case "auto" | "silent":
            return text
        case _:
            return "interactive"


class Tier(StrEnum):
    """How sure it is that the user wants this remembered."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Action(StrEnum):
    """What is to be done with a candidate."""

    WRITE = "write"
    STRENGTHEN = "strengthen"
    """The entry at `destination` gets its evidence, and one more occurrence but for a further finding."""
    NOTHING = "nothing"
    """This very evidence was counted already, or the user rejected it."""


@dataclass(frozen=True)
class Known:
    """An entry that says the same as a candidate."""

    path: str
    status: str
    occurrences: int
    records: frozenset[str]
    """Ids of the transcript records that are its evidence already, of those that the candidate names."""
    sessions: frozenset[str] = frozenset()
    """The sessions these are from."""
    project: str | None = None
    """Its project's slug; None: it holds everywhere."""
    replaces: str | None = None
    """Path of the rule that it is proposed to replace."""
    pieces: int = 0
    """So many records its evidence names, those of several sessions counted each."""
    is_counted: bool = False
    """Its evidence holds this saying already: the same words in this session, or a copy of it of the same time."""
    others_words: bool = False
    """Its text is not known to be the user's: an agent proposed it, a file holds it, a model put it so, it was passed
    on, or no host's record says who typed it; and the candidate does not say the very same."""


@dataclass(frozen=True)
class ReversedRule:
    """A living rule that a candidate contradicts."""

    path: str
    project: str | None = None
    """Its project's slug; None: it holds everywhere."""
    said: str = ""
    """When it was said last, as `Candidate.said_at`; '' where that is not known."""


class KnownMemories(Protocol):
    """What the vault knows, asked for one candidate at a time."""

    def same(self, candidate: Candidate) -> Sequence[Known]:
        """Every entry that says what the candidate says, whatever its status; the live ones first."""

    def reversed_rule(self, candidate: Candidate) -> ReversedRule | None:
        """A living rule that the candidate turns into its opposite, or states with another value; None when there is
        none."""


@dataclass(frozen=True)
class RoutedCandidate:
    """A candidate with its tier and what becomes of it. `destination` is a vault-relative path."""

    candidate: Candidate
    tier: Tier
    action: Action
    destination: str
    why: str
    supersedes: str | None = None
    """WRITE: the rule it would replace. STRENGTHEN: where the entry is now, which moves to `destination`."""
    widened: bool = False
    """Said in another project than the entry's: it is the user's rule, not the project's."""


RULE_CATEGORIES = frozenset({"preference", "correction", "fact"})
REJECTED_STATUSES = frozenset({"rejected", "dismissed"})
"""The user said no; saying it again does not change that."""
ONE_OCCURRENCE = "inferred from one occurrence"
"""Why it has no better tier."""
REVERSES = "reverses "
"""Why it would replace the rule whose path follows."""
UNCONFIRMED = "nothing in the session's record says that you typed it"
"""Why a standing rule has no better tier."""
MOST_PIECES = 1000
"""Records. An entry with so much evidence gets no more, and is counted no further: every piece that was counted stays
named, so what is read again is known again, and what is undone is found; and its header stays of a size to read."""
REVIEW_OCCURRENCES = 3
"""Occurrences from which on something is a pattern, about which the user is asked."""
LEAST_SESSIONS = 2
"""Fewest sessions in which a pattern was seen."""
PUT_AWAY_STATUSES = frozenset({"superseded", "archived", "resolved"})
"""It held once. Said again, it is news: it is proposed anew."""


def route(candidate: Candidate, known: KnownMemories, *, mode: ReviewMode = "interactive") -> RoutedCandidate:
    """Decide what becomes of one candidate."""
    if candidate.category in RULE_CATEGORIES and not candidate.from_user:
        # An order in a README or a tool's output is not the user's, at no tier and however often it is read.
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
        # What waits as a guess may still be saved: the host may say only now that the user typed it.
        rises = tier is Tier.HIGH and living.status in ("inbox", "pending")
        if living.is_counted and not rises:
            return _settled(candidate, living, "this was counted already")
        return _strengthened(candidate, living, tier, why, mode)
    reversed_rule = known.reversed_rule(candidate)
    if reversed_rule is not None and candidate.category != "idea":
        if candidate.said_at is not None and candidate.said_at < reversed_rule.said:
            # Sessions are not always read in the order in which they were held.
            return RoutedCandidate(candidate, tier, Action.NOTHING, reversed_rule.path, "you said otherwise later")
        # Two rules that contradict each other must not stand side by side, and only the user knows which holds.
        if reversed_rule.project is None:
            # What takes the place of a rule for everything holds for everything: else it would hold in one project,
            # and the old one nowhere.
            candidate = replace(candidate, scope="personal")
        destination = destination_of(candidate, Tier.MEDIUM, "auto" if mode == "auto" else "interactive")
        return RoutedCandidate(
            candidate, Tier.MEDIUM, Action.WRITE, destination, f"{REVERSES}{reversed_rule.path}", reversed_rule.path
        )
    return RoutedCandidate(candidate, tier, Action.WRITE, destination_of(candidate, tier, mode), why)


def _lives(entry: Known, saves: bool) -> bool:
    """Is it the memory that one more occurrence, which would be saved (`saves`), strengthens?

    What is saved unasked is saved in the user's words: a text of others goes on waiting beside it.
    """
    waits_for_user = saves and entry.others_words and entry.status in ("inbox", "pending")
    return entry.status not in PUT_AWAY_STATUSES and not waits_for_user


def _strengthened(candidate: Candidate, living: Known, tier: Tier, why: str, mode: ReviewMode) -> RoutedCandidate:
    """Decide on one more occurrence of `living`, which may now be sure enough to leave the place where it waits."""
    # An idea stays where it is: a promoted one is a project of its own.
    idea = candidate.category == "idea"
    widened = (
        not idea
        and living.project is not None
        and is_widened([living.project, project_of(candidate)])
        # What another text says elsewhere makes no rule of one project the user's own.
        and (candidate.role != "user" or (candidate.confirmed and candidate.from_user))
    )
    occurrences = living.occurrences + (not is_further_finding(candidate, living.sessions))
    is_hint = tier is Tier.LOW and not (candidate.standing_rule or candidate.claimed_rule)
    if tier is Tier.LOW and is_pattern(occurrences, living.sessions | {candidate.session}):
        tier, why = Tier.MEDIUM, f"seen {occurrences} times"
    # What is saved unasked is saved in the user's words (`_lives`), also when it is seen often.
    # A rule that is stated outright needs no decision any more, also when the guess at it still waits for one;
    # but whether it replaces another one, only the user knows.
    if living.others_words and mode == "silent":
        mode = "interactive"
    waits = living.status == "inbox" or (living.status == "pending" and tier is Tier.HIGH)
    if waits and tier is not Tier.LOW and not idea and living.replaces is None:
        promoted = _moved(living.path, destination_of(candidate, tier, mode, widened=widened or living.project is None))
        # In the mode `auto` what waits in the inbox goes on waiting there.
        if status_at(promoted) != living.status:
            return RoutedCandidate(candidate, tier, Action.STRENGTHEN, promoted, why, living.path, widened)
    else:
        why = f"known: {living.status}"
        if widened and living.status == "active":
            target = _moved(living.path, destination_of(candidate, Tier.HIGH, mode, widened=True))
            return RoutedCandidate(candidate, tier, Action.STRENGTHEN, target, why, living.path, widened)
    if is_hint and living.status == "active" and not widened:
        # A question about a saved rule is no further statement of it.
        return RoutedCandidate(candidate, tier, Action.NOTHING, living.path, f"{why}; a hint at it counts for nothing")
    if living.pieces >= MOST_PIECES and not widened:
        return RoutedCandidate(
            candidate, tier, Action.NOTHING, living.path, f"{why}, with all the evidence it can hold"
        )
    return RoutedCandidate(candidate, tier, Action.STRENGTHEN, living.path, why, widened=widened)


def _moved(path: str, destination: str) -> str:
    """Where an entry goes that moves there: it keeps the name under which it may have been linked."""
    return f"{destination.rpartition('/')[0]}/{path.rpartition('/')[2]}"


def is_pattern(occurrences: int, sessions: Collection[str]) -> bool:
    """Whether something was seen often enough to ask the user, and in more than one session."""
    return occurrences >= REVIEW_OCCURRENCES and len(sessions) >= LEAST_SESSIONS


def is_further_finding(candidate: Candidate, sessions: Collection[str]) -> bool:
    """What an agent found out next about a problem of these sessions: more evidence, but seen no more often."""
    return candidate.category == "fix" and candidate.session in sessions


def is_widened(projects: Sequence[str | None]) -> bool:
    """Do these, the projects of sayings of one memory, make it the user's own? None is no project."""
    return len(set(projects)) > 1


def project_of(candidate: Candidate) -> str | None:
    """Slug of the project that the candidate holds in; None when it holds everywhere."""
    return slugify(candidate.project) if candidate.scope == "project" and candidate.project else None


def tier_of(candidate: Candidate) -> tuple[Tier, str]:
    """The tier of a candidate that nothing is known of, and why."""
    if candidate.category == "idea":
        return (Tier.MEDIUM, "an idea of yours") if candidate.from_user else (Tier.LOW, "an idea, inferred")
    if candidate.standing_rule and candidate.from_user:
        if not candidate.confirmed:
            return Tier.MEDIUM, UNCONFIRMED
        return Tier.HIGH, "a standing rule in your own words"
    if candidate.claimed_rule and candidate.from_user:
        return Tier.MEDIUM, "may hold from now on"
    return Tier.LOW, ONE_OCCURRENCE


def destination_of(candidate: Candidate, tier: Tier, mode: ReviewMode, *, widened: bool = False) -> str:
    """Vault-relative path for a candidate of this tier, were its name free; `widened`: of no project."""
    if candidate.category == "idea":
        return f"{DEFAULT_GROUP}/{INCUBATOR}/{idea_slug(candidate.title)}/_index.md"
    slug = mining_slug(candidate.title)
    may_save = mode == "silent" and (candidate.confirmed or not candidate.from_user)
    if tier is Tier.HIGH or (tier is Tier.MEDIUM and may_save):
        return f"{DEFAULT_GROUP if widened else group_of(candidate)}/{candidate.kind}/{slug}.md"
    folder = REVIEW if tier is Tier.MEDIUM and mode == "interactive" else INBOX
    return f"{DEFAULT_GROUP}/{folder}/{slug}.md"


def group_of(candidate: Candidate) -> str:
    """Where the entry belongs once it is accepted: with its project, or with the user."""
    project = project_of(candidate)
    return f"{PROJECTS}/{project}" if project else DEFAULT_GROUP


def status_at(destination: str) -> str:
    """The status of an entry that is written there."""
    folders = destination.split("/")
    if REVIEW in folders:
        return "pending"
    if INBOX in folders:
        return "inbox"
    return "incubating" if INCUBATOR in folders else "active"


def beyond_limit(candidates: Sequence[Candidate], waiting: int, limit: int) -> frozenset[int]:
    """Indexes of the candidates of one session that are to make no new entry, since `limit` entries of it wait then.

    `waiting`: how many do already. A session that runs away must not bury what others said: the surest come first.
    What is saved at once, or is known, is outside the limit. 0 is no limit.
    """
    if not limit:
        return frozenset()
    unsure = [index for index, candidate in enumerate(candidates) if tier_of(candidate)[0] is not Tier.HIGH]
    unsure.sort(key=lambda index: (tier_of(candidates[index])[0] is not Tier.MEDIUM, -candidates[index].score, index))
    return frozenset(unsure[max(0, limit - waiting) :])


def _settled(candidate: Candidate, entry: Known, why: str) -> RoutedCandidate:
    tier, _ = tier_of(candidate)
    return RoutedCandidate(candidate, tier, Action.NOTHING, entry.path, why)
