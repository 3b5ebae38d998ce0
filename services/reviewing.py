"""Carry out the user's decisions on notes, whether made by key, by flag or by a line in the note.

`Reviewer.decide` and `answer` do it. Every decision is in the journal, so that the last one can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ..hooks.wiring import actions_wired
from ..index.recall import recall_as_it_is
from ..pipelines.incubation import GC_KIND, SURFACE_KIND, Answer, listed
from ..pipelines.likeness import statement_of
from ..pipelines.review import (
    Accepted,
    Approve,
    Decision,
    PutAway,
    Reject,
    Skip,
    Supersede,
    link_target,
    parse_decision,
    settle,
    why_none,
    with_title_of_statement,
)
from ..runtime.errors import (
    EditConflict,
    EntryInvalid,
    EntryNotFound,
    SettingsError,
    UsageError,
)
from ..runtime.layout import ALWAYS_LOAD, REVIEW, special_folder
from ..runtime.settings import Settings
from ..runtime.slug import slugify
from ..vault.entry import CONTRADICTS, IN_INBOX, PENDING, PROBABILITY, Entry, fingerprint, hash_of, parse_entry
from ..vault.evidence import NOT_CONFIRMED_TAG
from ..vault.fields import StoreValue
from ..vault.frontmatter import carry_fields, require_sound
from ..vault.note_text import without_replacement_line
from ..vault.pending import is_idea_path, pending_folder
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .boundary import consent_of, is_outside
from .decision_property import DECISION, apply_written, clear_problem, decision_keys, read_decision
from .decision_property import DecisionOutcome as DecisionOutcome
from .decision_property import DecisionProblem as DecisionProblem
from .entry_names import require_living, resolve_entry
from .evolving import SUPERSEDED, archived_entry
from .ideas.incubator import decide_on_idea, parse_listed
from .ideas.ledger import asked_idea, commit_idea, decline, slug_of, surface, taken_back
from .ideas.research import request_research_if_possible, with_research_of, without_research
from .journal import Act, Change, FolderMove, Journal, Recorded, rewritten, text_of
from .remembering import free_path, inside_vault
from .replacing import replaced_now
from .retrying import read_seen, retry_edit
from .stores import DECISION_FOLDERS, vault_store

_WAITING_KEYS = (PROBABILITY, CONTRADICTS)
_USUAL = frozenset({"", ALWAYS_LOAD})
NEAREST = 5
RECALL_SECONDS = 3.0
ONE_BY_ONE = "it lists several ideas: tick a box below each, or `memory idea keep SLUG` (archive, delete)"


@dataclass(frozen=True)
class _Deciding:
    """A decision that is carried out: the waiting note, and what came with the decision."""

    entry: Entry
    run: str
    body: Scrubbed | None
    """The text as the user changed it."""
    expected_old: str | None
    marks: Mapping[str, StoreValue]

    @property
    def body_after(self) -> Scrubbed | None:
        """The body to write; None leaves it byte for byte."""
        text = self.entry.body if self.body is None else with_title_of_statement(str(self.body), self.entry.body)
        kept = without_replacement_line(text)
        if kept == self.entry.body:
            return None
        return Scrubbed.trusted(kept, reason="the note's own text, or the user's, which the caller scrubbed")


class Reviewer:
    """The proposals of one vault, and the decisions on them."""

    def __init__(self, settings: Settings, store: VaultStore | None = None) -> None:
        self._settings = settings
        self.store = store or vault_store(settings)
        self.journal = Journal(settings.state, self.store)

    def waiting(self, folder: str = REVIEW) -> list[Entry]:
        """Return the readable notes in every folder of this name, oldest first."""
        return self.waiting_and_unreadable(folder)[0]

    def waiting_and_unreadable(self, folder: str = REVIEW) -> tuple[list[Entry], dict[str, str]]:
        """Return the readable notes, oldest first, and the errors of the others by path."""
        found, unreadable = [], {}
        for path in self.store.walk_special({folder}):
            if pending_folder(path) == folder:
                try:
                    found.append(self.store.read(path))
                except EntryInvalid as error:
                    unreadable[path] = str(error)
                except EntryNotFound:
                    continue
        return sorted(found, key=lambda entry: (entry.created or "", entry.path)), unreadable

    def find(self, name: str) -> str:
        """Return the path of a waiting note by path or slug. Raises EntryNotFound, or UsageError if several fit."""
        slug = name.removesuffix(".md").rsplit("/", 1)[-1]
        every = list(self.store.walk())
        paths = [path for path in every if special_folder(path) in DECISION_FOLDERS]
        exact = [path for path in paths if name in (path, path.removesuffix(".md"))]
        found = exact or [path for path in paths if path.rsplit("/", 1)[-1] == f"{slug}.md"]
        # A note in _review takes precedence over one of the same name in the inbox.
        first = [path for path in found if special_folder(path) == REVIEW] or found
        if len(first) > 1:
            raise UsageError(f"{name} is the name of several notes; give the path: {', '.join(first)}")
        if not first:
            elsewhere = (p for p in every if p.rpartition("/")[2] == f"{slug}.md" and special_folder(p) in _USUAL)
            for entry in self.store.readable(elsewhere):
                if entry.effective_status in (PENDING, IN_INBOX):
                    raise EntryNotFound(
                        f"{entry.path} was moved out of its folder as `status: {entry.status}`: "
                        f"write `status: active` into it if it holds, or move it back to {REVIEW}"
                    )
            raise EntryNotFound(f"nothing called {name} waits for a decision: `memory review --list` shows what does")
        return first[0]

    def decide(
        self,
        path: str,
        decision: Decision,
        *,
        run: str,
        body: Scrubbed | None = None,
        expected_hash: str | None = None,
        expected_old: str | None = None,
    ) -> DecisionOutcome:
        """Carry out a decision; `body` is the text as the user changed it.

        `expected_hash` is the hash of the note that the user saw, `expected_old` that of the entry it replaces. Raises
        EditConflict if either has changed, EntryNotFound, EntryInvalid, UsageError, VaultUnavailable; nothing is
        changed then.
        """

        def attempt() -> DecisionOutcome:
            with self.journal.locked():
                entry = read_seen(self.store, path, expected_hash, "does not wait any more")
                if special_folder(path) not in DECISION_FOLDERS:
                    raise EntryInvalid(f"{path} does not wait for a decision: it is in no _review or _inbox folder")
                decided = self._carry_out(entry, decision, run, body, expected_old)
            if is_idea_path(decided.path):
                request_research_if_possible(self._settings, slug_of(decided.path))
            return replace(decided, effect=_effect(decision, self._settings))

        return retry_edit(attempt, again=expected_hash is None and expected_old is None)

    def answer(self, path: str, answers: Mapping[str, Answer], *, run: str) -> list[DecisionOutcome]:
        """Carry out the answers about the ideas listed in the note at `path`, but for ideas that have gone.

        Raises EditConflict, VaultUnavailable; answers before the failing one stay carried out.
        """
        done = []
        for slug, answer in answers.items():
            with suppress(EntryNotFound):
                done.append(decide_on_idea(self._settings, self.journal, slug, answer, run=run, list_path=path))
        return done

    def last_decision(self, path: str | None = None) -> Act | None:
        """Return the newest decision that is not undone; with `path`, the one that made that note what it is."""
        undone: set[str] = set()
        for act in self.journal.newest():
            undone.update(act.undoes)  # An undo comes after the act that it undoes.
            made = [change.path for change in act.changes if change.after_hash is not None]
            if act.actor == "review" and act.id not in undone and (path is None or path in made):
                return act
        return None

    def undo_last(self, expected: str | None = None, *, path: str | None = None) -> Act | None:
        """Undo the last decision, or with `path` the one that made that note what it is; return None if there is none.

        `expected` is the id of the act that the user saw as the last one. Raises EditConflict if the last act is
        another, so that two windows do not undo two decisions, or if a note was edited since.
        """
        with self.journal.locked():
            act = self.last_decision(path)
            if expected is not None and (act is None or act.id != expected):
                raise EditConflict("that decision is not the last one any more; nothing was taken back")
            if act is None:
                return None
            changes = [self._restored(act, change) for change in reversed(act.changes)]
            return self.journal.commit(
                changes,
                run=self.journal.new_run("undo"),
                actor="undo",
                what=f"took back: {act.what}",
                undoes=[act.id],
                moves=[FolderMove(move.to, move.path) for move in reversed(act.moves)],
                consent=consent_of(self._settings, requested=True),
            )

    def _restored(self, act: Act, change: Recorded) -> Change:
        """Return the change that restores one file as it was before the act, wherever the act moved it."""
        now = text_of(self.store, change.path)
        text = change.before
        if (None if now is None else hash_of(now)) != change.after_hash:
            text = taken_back(self.store, act, now) if is_outside(change.path) else self._beside_research(change, now)
            if text is None:
                raise EditConflict(f"{change.path} was changed after the decision: take it back by hand")
        path = change.path
        for move in act.moves:
            if path.startswith(move.to + "/"):
                path = move.path + path[len(move.to) :]
        old = None if text is None else Scrubbed.trusted(text, reason="it was there before")
        return Change(path, now, old)

    def _beside_research(self, change: Recorded, now: str | None) -> str | None:
        """Return an idea's earlier text plus the research added since; None if anything else was changed."""
        if now is None or change.before is None or not is_idea_path(change.path):
            return None
        if hash_of(without_research(self.store, change.path, now)) != change.after_hash:
            return None
        return with_research_of(self.store, change.path, change.before, now)

    def nearest(self, entry: Entry, most: int = NEAREST) -> list[Entry]:
        """Return active entries with similar content, found by recall."""
        answer = recall_as_it_is(
            self._settings.state,
            self.store.vault,
            statement_of(entry.body),
            caller="review",
            timeout_seconds=RECALL_SECONDS,
            k=most,
            all_projects=True,
        )
        return [*self.store.readable(str(hit["path"]) for hit in answer.hits)]

    # Decisions in notes

    def decided_notes(self) -> Iterator[tuple[str, str]]:
        """Return (path, decision) of every waiting note with a written decision or a ticked box."""
        for path, data in self.store.contents(self.store.walk_special(DECISION_FOLDERS)):
            if DECISION.encode() in data.lower() and (written := read_decision(parse_entry(path, data))):
                yield path, written
            elif GC_KIND.encode() in data and any(listed(parse_entry(path, data).body).values()):
                yield path, ""

    def apply_notes(self, still_owned: Callable[[], bool] = lambda: True) -> list[DecisionOutcome | DecisionProblem]:
        """Carry out the decisions written in notes. Raises VaultUnavailable."""
        self.journal.recover()
        run = self.journal.new_run("review")
        return apply_written(self.store, [*self.decided_notes()], partial(self._apply, run=run), still_owned)

    def _apply(self, path: str, written: str, *, run: str) -> list[DecisionOutcome]:
        entry = self.store.read(path)
        if entry.kind == GC_KIND:
            if answers := parse_listed(entry):
                return self.answer(path, answers, run=run)
            raise EntryInvalid(ONE_BY_ONE)
        decision = parse_decision(written, entry.supersedes)
        if decision is None:
            raise EntryInvalid(why_none(written))
        decided = self.decide(path, decision, run=run)
        if decided.verdict != "skipped":
            return [decided]
        clear_problem(self.store, path)
        return []

    # Carrying out

    def _carry_out(
        self, entry: Entry, decision: Decision, run: str, body: Scrubbed | None, expected_old: str | None
    ) -> DecisionOutcome:
        path = entry.path
        if not isinstance(decision, Skip):
            require_sound(entry.text, path)
        if entry.kind == SURFACE_KIND:
            return self._surface(entry, decision, run)
        if entry.kind == GC_KIND and not isinstance(decision, Skip):
            raise EntryInvalid(ONE_BY_ONE)
        deciding = _Deciding(entry, run, body, expected_old, _marks(decision))
        match settle(entry, decision):
            case None:
                return DecisionOutcome(path, "skipped", path)
            case PutAway(destination, status):
                return self._put_away(deciding, destination, status)
            case Accepted() as accepted:
                if (old := self._replaced(entry, accepted, decision)) is not None:
                    return self._replace(deciding, accepted, old)
                return self._accept(deciding, accepted)

    def _surface(self, entry: Entry, decision: Decision, run: str) -> DecisionOutcome:
        """Whether the idea may be added to Ideas.md; the answer holds for this idea only."""
        slug = asked_idea(self.store, entry)
        match decision:
            case Skip():
                return DecisionOutcome(entry.path, "skipped", entry.path)
            case Approve():
                path = surface(self._settings, self.journal, slug, run=run, confirmed=True, question=entry.path)
                return DecisionOutcome(entry.path, "surfaced", path)
            case Reject():
                return DecisionOutcome(entry.path, "not surfaced", decline(self.journal, slug, entry.path, run=run))
        raise EntryInvalid(f"{entry.path} asks whether an idea may be put into Ideas.md: approve or reject it")

    def _put_away(self, deciding: _Deciding, destination: str, status: str) -> DecisionOutcome:
        entry = deciding.entry
        target = free_path(destination, self.store)
        text = self.store.render_edit(entry.text, {**_decided(entry), "status": status}, deciding.body_after)
        self._commit(rewritten(entry, text, target), deciding.run, f"{status}: {entry.slug}")
        return DecisionOutcome(entry.path, status, target)

    def _accept(self, deciding: _Deciding, accepted: Accepted) -> DecisionOutcome:
        entry, run = deciding.entry, deciding.run
        same = self._same_entry(accepted.path, entry)
        if same is not None and deciding.body is None:  # A body that the user has edited was not compared yet.
            return self._merge(deciding, same)
        target = free_path(accepted.path, self.store)
        fields = {**_decided(entry), **_placed(target, accepted.status), "guard": None, **deciding.marks}
        text = self.store.render_edit(entry.text, {**fields, "supersedes": None}, deciding.body_after)
        note, proposal = rewritten(entry, text, target)
        what = f"approved: {entry.slug}"
        if is_idea_path(target):
            done = commit_idea(
                self._settings, self.journal, note, run=run, actor="review", what=what, approved=proposal
            )
            listed = next((change.path for change in done if is_outside(change.path)), None)
            return DecisionOutcome(entry.path, "approved", target, listed_in=listed)
        self._commit([note, proposal], run, what)
        return DecisionOutcome(entry.path, "approved", target)

    def _same_entry(self, path: str, entry: Entry) -> Entry | None:
        path = inside_vault(path, self.store)
        if not self.store.exists(path):
            return None
        other = self.store.read(path)
        known = other.fingerprint is not None and other.fingerprint == entry.fingerprint
        return other if known and other.effective_status == "active" else None

    def _merge(self, deciding: _Deciding, other: Entry) -> DecisionOutcome:
        """Add the evidence to the entry that says the same, and archive the proposal."""
        entry = deciding.entry
        fields: dict[str, StoreValue] = {
            "occurrences": other.occurrences + entry.occurrences,
            "source": [*dict.fromkeys((*other.sources, *entry.sources))],
            **deciding.marks,
        }
        reason = Scrubbed.trusted("it was known already", reason="our own words")
        changes = [
            archived_entry(self.journal, entry.path, entry.text, other.path, reason),
            Change(other.path, other.text, self.store.render_edit(other.text, fields)),
            Change(entry.path, entry.text, None),
        ]
        self._commit(changes, deciding.run, f"merged: {entry.slug}")
        return DecisionOutcome(entry.path, "merged", other.path)

    def _replaced(self, entry: Entry, accepted: Accepted, decision: Decision) -> str | None:
        """Return the entry to supersede; None if it is gone since it was proposed."""
        if accepted.replaces is None:
            return None
        if isinstance(decision, Supersede):
            old = resolve_entry(self.store, link_target(accepted.replaces))
        elif (found := replaced_now(self.store, entry)) is not None:
            old = found
        else:
            return None
        if old == entry.path:
            raise UsageError(f"{entry.path} can't supersede itself")
        return old

    def _replace(self, deciding: _Deciding, accepted: Accepted, old: str) -> DecisionOutcome:
        entry = deciding.entry
        old_entry = require_living(self.store, old)
        if deciding.expected_old not in (None, old_entry.content_hash):
            raise EditConflict(f"{old}, which it would replace, is not what you saw: compare them again")
        # The new text of an entry that an agent evolved keeps the path, because links lead to it.
        evolved = entry.written_by_agent and accepted.replaces == entry.supersedes
        wanted = old if old_entry.always_load or evolved else accepted.path
        target = wanted if wanted == old else free_path(wanted, self.store)
        reason = Scrubbed.trusted(f"replaced by {target} in a review", reason="our own words")
        archived = archived_entry(self.journal, old, old_entry.text, target, reason)
        if target == old:
            text = self._in_its_place(deciding, old_entry, accepted, archived.path)
        else:
            fields: dict[str, StoreValue] = {
                **_decided(entry),
                **_placed(target, accepted.status),
                "guard": old_entry.guard or None,  # The user's mark on the rule carries over.
                **deciding.marks,
                "created": self.store.today(),
                "supersedes": archived.path,
            }
            text = self.store.render_edit(entry.text, fields, deciding.body_after)
        changes = [archived, *rewritten(old_entry, text, target), Change(entry.path, entry.text, None)]
        self._commit(changes, deciding.run, f"superseded {old_entry.slug}: {entry.slug}")
        return DecisionOutcome(entry.path, "superseded", target, archived.path)

    def _in_its_place(self, deciding: _Deciding, old: Entry, accepted: Accepted, archive: str) -> Scrubbed:
        """Return the old entry's text with the proposal's body and evidence; name, place and the user's own keys
        stay."""
        entry = deciding.entry
        given = {*entry.extra, "aliases", "priority"} - decision_keys(entry) - {"guard", *_WAITING_KEYS}
        in_place = carry_fields(old.text, entry.text, given)
        held = {NOT_CONFIRMED_TAG, *old.tags, *map(slugify, old.tags)}  # An agent's proposal has them as slugs.
        tags = [tag for tag in entry.tags if tag not in held]
        kept = deciding.body_after or Scrubbed.trusted(entry.body, reason="the proposal's own text")
        fields: dict[str, StoreValue] = {
            "status": accepted.status,
            "created": self.store.today(),
            "updated": self.store.today(),
            **({"tags": [*old.tags, *tags]} if tags else {}),
            "fingerprint": _decided(entry)["fingerprint"],
            "confidence": entry.confidence,
            "occurrences": entry.occurrences,
            "source": [*entry.sources],
            "surfaced_in_session": entry.surfaced_in_session,
            "surfaced_at": entry.surfaced_at,
            "supersedes": archive,
            **dict.fromkeys(SUPERSEDED),
            **deciding.marks,
        }
        return self.store.render_edit(in_place, fields, kept)

    def _commit(self, changes: list[Change], run: str, what: str) -> None:
        self.journal.commit(changes, run=run, actor="review", what=what)


def _decided(entry: Entry) -> dict[str, StoreValue]:
    """Return the frontmatter changes common to all decisions. The fingerprint is how a rejection is remembered."""
    return {
        **dict.fromkeys(decision_keys(entry)),
        **{key: None for key in _WAITING_KEYS if key in entry.extra},
        "fingerprint": entry.fingerprint or fingerprint(statement_of(entry.body)),
        # From now on it is the user's.
        **({"tags": [t for t in entry.tags if t != NOT_CONFIRMED_TAG]} if NOT_CONFIRMED_TAG in entry.tags else {}),
    }


def _marks(decision: Decision) -> dict[str, StoreValue]:
    """Return the marks that the decision sets on the entry."""
    if not isinstance(decision, Approve):
        return {}
    return {
        **({"always_load": True} if decision.always else {}),
        **({"guard": decision.guard} if decision.guard else {}),
    }


def _effect(decision: Decision, settings: Settings) -> str:
    """Return what an approval does besides keeping the note; '' if nothing."""
    if not isinstance(decision, Approve):
        return ""
    effects = ["given to every session at its start"] * decision.always
    if decision.guard:
        watched = False
        with suppress(SettingsError):  # The decision is made, whatever a host's file says.
            watched = actions_wired(settings)
        later = "" if watched else ", as soon as `memory guard --on` watches it"
        effects.append(f"stops the agent once in a session{later}")
    return ", and ".join(effects)


def _placed(path: str, status: str) -> dict[str, StoreValue]:
    name = path.rsplit("/", 2)[-2] if path.endswith("/_index.md") else path.rsplit("/", 1)[-1].removesuffix(".md")
    return {"status": status, "slug": name, "always_load": f"/{ALWAYS_LOAD}/" in f"/{path}"}
