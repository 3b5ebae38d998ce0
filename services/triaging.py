"""Put the inbox in order: merge similar notes, promote frequent ones, expire old ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..pipelines.likeness import (
    Compared,
    Relation,
    of_two_projects,
    relation,
    shared_words,
    statement_of,
    wording_of_saying,
)
from ..pipelines.review import group_of
from ..pipelines.routing import is_widened
from ..pipelines.triage import TriageStep, triage
from ..runtime.errors import EditConflict, EntryInvalid, EntryNotFound
from ..runtime.layout import ARCHIVE, DEFAULT_GROUP, INBOX, REVIEW
from ..runtime.settings import Settings
from ..runtime.slug import slugify, validate_name, validate_note_name
from ..vault.entry import Entry
from ..vault.evidence import NOT_CONFIRMED_TAG
from ..vault.fields import StoreValue
from ..vault.scrubbed import Scrubbed
from .evolving import archived_entry
from .journal import Change
from .remembering import free_path
from .retrying import read_seen
from .reviewing import Reviewer
from .semantic_similarity import SemanticSimilarity

INBOX_ENTRIES = 500
"""If the inbox has more entries, the oldest are archived."""


@dataclass(frozen=True)
class TriageOutcome:
    """The result of a step: promoted, merged, expired, rejected, or left and why."""

    step: TriageStep
    result: str
    path: str | None = None
    """Path of the kept note."""


def plan_triage(settings: Settings, reviewer: Reviewer) -> tuple[list[TriageStep], dict[str, Entry]]:
    """Return the steps to do, and the inbox by path, without notes that hold a decision of the user."""
    entries = {entry.path: entry for entry in reviewer.waiting(INBOX) if "decision" not in entry.extra}
    wordings = {path: wording_of_saying(statement_of(entry.body)) for path, entry in entries.items()}
    with SemanticSimilarity(settings) as meaning:

        def same(one: Entry, other: Entry) -> bool:
            left, right = wordings[one.path], wordings[other.path]
            if not shared_words(left, right) or of_two_projects(_said_in(one), _said_in(other)):
                return False
            # Not by the second model: a full inbox has many pairs.
            cosine = meaning.cosines(left.text, [right.text])[0]
            return relation(left, right, None if cosine is None else Compared(cosine)) is Relation.SAME

        steps = triage(
            [*entries.values()],
            same,
            reviewer.store.today(),
            expire_days=settings.reflection.inbox_days,
            most=INBOX_ENTRIES,
        )
    return steps, entries


def run_triage(
    settings: Settings,
    reviewer: Reviewer,
    *,
    still_owned: Callable[[], bool] = lambda: True,
) -> list[TriageOutcome]:
    """Carry out the plan. Raises VaultUnavailable."""
    reviewer.journal.recover()
    steps, entries = plan_triage(settings, reviewer)
    run = reviewer.journal.new_run("triage")
    doer = _Runner(settings, reviewer, entries, run)
    results = []
    for step in steps:
        if not still_owned():
            break
        try:
            results.append(doer.do(step))
        except (EditConflict, EntryNotFound, EntryInvalid) as error:
            results.append(TriageOutcome(step, f"left: {error}"))
    return results


class _Runner:
    """One run over the inbox."""

    def __init__(self, settings: Settings, reviewer: Reviewer, entries: Mapping[str, Entry], run: str) -> None:
        self._mode = settings.memory.review_mode
        self._store = reviewer.store
        self._journal = reviewer.journal
        self._entries = entries
        self._run = run

    def do(self, step: TriageStep) -> TriageOutcome:
        match step.name:
            case "promote":
                return self._promote(step)
            case "merge":
                return self._merge(step)
            case "expire":
                return TriageOutcome(step, "expired", self._put_away(*step.paths))

    def _promote(self, step: TriageStep) -> TriageOutcome:
        paths = step.paths
        keeper = self._entries[paths[0]]
        target, status = self._promoted_path(keeper, paths)
        if target is None:
            if len(paths) > 1:
                return self._merge(step)
            return TriageOutcome(step, "left: in mode auto it waits in the inbox")
        if status == "active" and self._store.exists(target):
            return TriageOutcome(step, f"left: there is already an entry {target}")
        target = free_path(target, self._store)
        fields = {**self._merged_fields(paths), "status": status, "confidence": "MEDIUM"}
        before = self._text(paths[0])
        changes = [
            Change(target, None, self._store.render_edit(before, fields)),
            *self._archived(paths[1:], target),
            Change(paths[0], before, None),
        ]
        self._commit(changes, f"promoted: {keeper.slug}")
        return TriageOutcome(step, "promoted", target)

    def _promoted_path(self, keeper: Entry, paths: Sequence[str]) -> tuple[str | None, str]:
        """Return the path: `_review`, or the final place if the user said so; None if mode `auto` has to leave it."""
        # Only the user can say whether it replaces another rule, in any mode,
        # or whether a statement that was relayed, or of unknown origin, is a memory at all.
        if self._mode == "interactive" or keeper.supersedes is not None or NOT_CONFIRMED_TAG in keeper.tags:
            return f"{DEFAULT_GROUP}/{REVIEW}/{keeper.path.rsplit('/', 1)[-1]}", "pending"
        if self._mode == "silent":
            wide = is_widened([self._entries[path].project for path in paths])
            group = DEFAULT_GROUP if wide else group_of(keeper.group, keeper.project)
            return f"{group}/{validate_name('kind', keeper.kind or '')}/{validate_note_name(keeper.slug)}.md", "active"
        return None, ""

    def _merge(self, step: TriageStep) -> TriageOutcome:
        keeper, before = self._entries[step.paths[0]], self._text(step.paths[0])
        text = self._store.render_edit(before, self._merged_fields(step.paths))
        changes = [Change(keeper.path, before, text), *self._archived(step.paths[1:], keeper.path)]
        self._commit(changes, f"merged: {keeper.slug}")
        return TriageOutcome(step, "merged", keeper.path)

    def _merged_fields(self, paths: Sequence[str]) -> dict[str, StoreValue]:
        group = [self._entries[path] for path in paths]
        fields: dict[str, StoreValue] = {
            "occurrences": sum(entry.occurrences for entry in group),
            "source": [*dict.fromkeys(source for entry in group for source in entry.sources)],
        }
        if is_widened([entry.project for entry in group]):
            fields |= {"project": None, "group": DEFAULT_GROUP}
        return fields

    def _archived(self, paths: Sequence[str], kept: str) -> list[Change]:
        """Return the notes merged into another one, as archived."""
        changes = []
        reason = Scrubbed.trusted("it says the same", reason="our own words")
        for path in paths:
            before = self._text(path)
            changes += [archived_entry(self._journal, path, before, kept, reason), Change(path, before, None)]
        return changes

    def _put_away(self, path: str) -> str:
        """Archive a note; return its new path."""
        name = path.rpartition("/")[2]
        target = free_path(f"{DEFAULT_GROUP}/{ARCHIVE}/{name}", self._store)
        before = self._text(path)
        text = self._store.render_edit(before, {"status": "archived"})
        changes = [Change(target, None, text), Change(path, before, None)]
        self._commit(changes, f"expired: {name.removesuffix('.md')}")
        return target

    def _text(self, path: str) -> str:
        """Return the note as it was when the plan was made. Raises EntryNotFound, EditConflict."""
        return read_seen(self._store, path, self._entries[path].content_hash).text

    def _commit(self, changes: Sequence[Change], what: str) -> None:
        self._journal.commit(changes, run=self._run, actor="triage", what=what)


def _said_in(entry: Entry) -> tuple[str, str | None]:
    """Return the note's statement, and its project's slug if it has one."""
    return statement_of(entry.body), slugify(entry.project) if entry.project else None
