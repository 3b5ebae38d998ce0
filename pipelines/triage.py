"""Plan which notes of the inbox are merged, proposed or archived. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from ..runtime.days import parse_local_day
from ..vault.entry import Entry
from .likeness import grouped
from .routing import LEAST_SESSIONS, REVIEW_OCCURRENCES


@dataclass(frozen=True)
class TriageStep:
    """What to do with notes: propose them because they were seen often enough, merged into the first; merge notes that
    say the same into the first; or archive one."""

    name: Literal["promote", "merge", "expire"]
    paths: tuple[str, ...]
    why: str = ""
    """Why it expires."""


Same = Callable[[Entry, Entry], bool]


def triage(
    notes: Sequence[Entry], same: Same, today: date, *, expire_days: int = 90, most: int = 500
) -> list[TriageStep]:
    """Plan the steps, no two of which touch the same note.

    `same`: whether two notes are one memory; `expire_days`: how long a note stays that is not seen again; `most`: how
    many notes stay.
    """
    steps: list[TriageStep] = []
    rest: list[Entry] = []
    by_weight = sorted(notes, key=lambda note: (-note.occurrences, _last_seen(note), note.path))
    for group in grouped(by_weight, lambda one, other: one.kind == other.kind and same(one, other)):
        paths = tuple(note.path for note in group)
        if sum(note.occurrences for note in group) >= REVIEW_OCCURRENCES and _is_spread(group):
            steps.append(TriageStep("promote", paths))
        elif max(map(_last_seen, group)) < today - timedelta(days=expire_days):
            steps += [TriageStep("expire", (path,), f"not seen for {expire_days} days") for path in paths]
        else:
            if len(group) > 1:
                steps.append(TriageStep("merge", paths))
            rest.append(group[0])
    if len(rest) > most:
        rest.sort(key=lambda note: (_last_seen(note), note.occurrences, note.path))
        too_many = {note.path for note in rest[: len(rest) - most]}
        # A group that is merged now stays until the next run, so that no note is touched twice.
        merging = {step.paths[0] for step in steps if step.name == "merge"}
        why = f"more than {most} in the inbox"
        steps += [TriageStep("expire", (path,), why) for path in sorted(too_many - merging)]
    return steps


def _last_seen(note: Entry) -> date:
    """Return the day on which a note was written or strengthened; the oldest one if it is unknown."""
    return parse_local_day(max(note.updated or "", note.created or "")) or date.min


def _is_spread(group: Sequence[Entry]) -> bool:
    """Whether the notes are from more than one session; a note without a session counts as one of its own."""
    sessions = [{source.session for source in note.sources if source.session} for note in group]
    return not all(sessions) or len(set().union(*sessions)) >= LEAST_SESSIONS
