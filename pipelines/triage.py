"""Plan which notes of the inbox are merged, proposed or archived. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import ClassVar, Literal, TypeAlias

from .likeness import grouped
from .routing import LEAST_SESSIONS, REVIEW_OCCURRENCES


@dataclass(frozen=True)
class InboxItem:
    """A note in the inbox."""

    path: str
    kind: str
    statement: str
    occurrences: int
    sessions: frozenset[str]
    last_seen: date | None
    """Day on which it was written or strengthened; None if unknown, which counts as oldest."""


@dataclass(frozen=True)
class TriageLimits:
    """Limits from the settings."""

    expire_days: int = 90
    most: int = 500
    """0: no limit."""


@dataclass(frozen=True)
class Promote:
    """Propose a note that was seen often enough. The others of `paths` are merged into the first."""

    paths: tuple[str, ...]
    occurrences: int
    name: ClassVar[Literal["promote"]] = "promote"


@dataclass(frozen=True)
class Merge:
    """Merge notes that say the same into the first."""

    paths: tuple[str, ...]
    name: ClassVar[Literal["merge"]] = "merge"


@dataclass(frozen=True)
class Expire:
    """Archive a note."""

    path: str
    why: str
    name: ClassVar[Literal["expire"]] = "expire"

    @property
    def paths(self) -> tuple[str, ...]:
        """The note, as the other steps list theirs."""
        return (self.path,)


TriageStep: TypeAlias = "Promote | Merge | Expire"
Same = Callable[[InboxItem, InboxItem], bool]


def triage(items: Sequence[InboxItem], same: Same, today: date, limits: TriageLimits) -> list[TriageStep]:
    """Plan the steps, no two of which touch the same note. `same`: whether two notes are one memory."""
    steps: list[TriageStep] = []
    rest: list[InboxItem] = []
    by_weight = sorted(items, key=lambda item: (-item.occurrences, item.last_seen or date.min, item.path))
    for group in grouped(by_weight, lambda one, other: one.kind == other.kind and same(one, other)):
        paths = tuple(item.path for item in group)
        occurrences = sum(item.occurrences for item in group)
        latest = max((item.last_seen or date.min for item in group), default=date.min)
        if occurrences >= REVIEW_OCCURRENCES and _is_spread(group):
            steps.append(Promote(paths, occurrences))
        elif latest < today - timedelta(days=limits.expire_days):
            steps += [Expire(path, f"not seen for {limits.expire_days} days") for path in paths]
        else:
            if len(group) > 1:
                steps.append(Merge(paths))
            rest.append(group[0])
    if limits.most and len(rest) > limits.most:
        rest.sort(key=lambda item: (item.last_seen or date.min, item.occurrences, item.path))
        too_many = {item.path for item in rest[: len(rest) - limits.most]}
        # A group that is merged now stays until the next run, so that no note is touched twice.
        merging = {step.paths[0] for step in steps if isinstance(step, Merge)}
        steps += [Expire(path, f"more than {limits.most} in the inbox") for path in sorted(too_many - merging)]
    return steps


def _is_spread(group: Sequence[InboxItem]) -> bool:
    """Whether the notes are from more than one session; a note without a session counts as one of its own."""
    sessions = frozenset().union(*(item.sessions for item in group))
    unnamed = any(not item.sessions for item in group)
    return unnamed or len(sessions) >= LEAST_SESSIONS
