"""The dialogue of `memory review` at a terminal: proposals, ideas of a list and conflict copies, one key each."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from ..pipelines.incubation import GC_KIND, KIND_IN_WORDS, SURFACE_KIND, Answer, listed, part_of
from ..pipelines.likeness import statement_of, tells_occasion
from ..pipelines.review import Approve, Decision, KeepBoth, Reject, Supersede
from ..pipelines.routing import REVERSES
from ..pipelines.scrub import Policy, scrub
from ..runtime.days import day_of, parse_local_day
from ..runtime.errors import EditConflict, EntryNotFound, MemoryVaultError, UsageError
from ..services.action_index import compile_rule, may_guard
from ..services.conflicts import Choice, ConflictCopy, settle_copy, waiting_copies
from ..services.excerpts import excerpts_of, occasion_of
from ..services.remembering import SESSION
from ..services.replacing import replaced_now
from ..services.reviewing import Reviewer
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import ACTIVE, INCIDENT, Entry
from ..vault.evidence import EVIDENCE_HEADING, SAID
from ..vault.note_text import is_title_cut, said_once
from ..vault.note_text import without_replacement_line as kept_text
from ..vault.scrubbed import Scrubbed
from .context import Context
from .editor import Drafts
from .output import LEAST_COLUMNS, counted, cut, in_line
from .terminal import LEAVE, Interrupted, read_key, read_line
from .terminal_safety import line_columns

KEYS = {
    "a": ("[a]pprove", "keep it"),
    "l": ("a[l]ways", "keep it, and give it to every session at its start"),
    "m": ("re[m]ind", "keep it, and stop the agent once in a session, before it breaks the rule"),
    "k": ("[k]eep both", "keep it beside the note that it would replace"),
    "e": ("[e]dit", "change its text, then keep it"),
    "r": ("[r]eject", "drop it; what is much like it is not proposed again"),
    "s": ("[s]kip", "decide later"),
    "p": ("su[p]ersede", "keep it in place of a note that you name"),
    "w": ("[w]here it was said", "show what was said around it"),
    "u": ("[u]ndo", "take the last decision back"),
    "q": ("[q]uit", "leave"),
}
"""Key -> its label, and what it does, as `?` prints it."""
REFUSED = {SURFACE_KIND: "eplm", "idea": "plm"}
"""Kind of a proposal -> keys that it does not have."""
MOST_SESSIONS = 3
"""How many sessions `w` shows."""
PIECE_CHARACTERS = 300
REPLACES_KEYS = "[a]pprove, archiving it  [k]eep both  [n]either "
TAKE_BACK = "take it back? [y]es [n]o "
_OF_ALL = {"s": "[s]kip", "u": "[u]ndo", "q": "[q]uit"}
IDEA_KEYS = {"k": "[k]eep", "a": "[a]rchive", "d": "[d]elete", **_OF_ALL}
COPY_KEYS = {"m": "[m]ine: the note", "t": "[t]heirs: the copy", "e": "[e]dit both", **_OF_ALL}
ANSWERS = {"k": Answer.KEEP, "a": Answer.ARCHIVE, "d": Answer.DELETE}
SKIPPED = "skipped"
_SKIP = frozenset({"s", "\r", "\n", " "})
SHOWN_LINES = 40
"""Lines of a conflict copy that are shown; the rest is counted."""


def day_said(entry: Entry) -> str | None:
    """Return the day on which the memory was said, as ISO text; None if the note has none."""
    day = parse_local_day(entry.surfaced_at)
    return day.isoformat() if day is not None else None


_REVERSAL = re.compile(rf"; {REVERSES}[^\n]+(?=\.$)", re.MULTILINE)
"""What the evidence says of the note that would be replaced: the last line of what is shown says it in words."""


def _in_words(entry: Entry) -> str:
    if entry.kind in KIND_IN_WORDS:  # Not a rule, which would hold somewhere.
        return KIND_IN_WORDS[entry.kind]
    return f"{entry.kind or '-'}, {entry.project or 'any project'}"


def _in_rows(labels: Iterable[str]) -> str:
    """Put the labels of keys on lines that fit the terminal."""
    rows = [""]
    for label in labels:
        row = f"{rows[-1]}{label}  "
        if rows[-1] and len(row.rstrip()) > line_columns():
            rows.append(f"{label}  ")
        else:
            rows[-1] = row
    return "\n".join(row.rstrip() for row in rows) + " "


def _print_wrapped(lines: Iterable[str]) -> None:
    """Print lines indented, and continued below their indent where the terminal ends; words are kept whole."""
    for line in lines:
        indent = "    " + "> " * line.startswith("> ")
        print(
            textwrap.fill(
                line.removeprefix("> "),
                max(line_columns(), LEAST_COLUMNS),
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            or indent.rstrip()
        )


def _without_marks(text: str) -> list[str]:
    """Return the lines without the heading of the evidence, the ids of its sessions, which `w` shows, and the empty
    lines that these leave."""
    said, _, evidence = text.partition(f"## {EVIDENCE_HEADING}\n")
    kept = said.splitlines()
    kept += [line for line in evidence.splitlines() if not (line.startswith(SESSION) and len(line.split()) == 2)]
    parted = [line for line, before in zip(kept, ["", *kept], strict=False) if line or before]
    return parted if not parted or parted[-1] else parted[:-1]


def summarize(verdicts: Iterable[str], left: str) -> str:
    """The last line of a review: `this review: 2 approved, 1 skipped; left: 3 proposals`."""
    counts = Counter(verdicts)
    skipped = counts.pop(SKIPPED, 0)
    parts = [f"{number:,} {verdict}" for verdict, number in counts.items()] or ["nothing decided"]
    if skipped:
        parts.append(f"{skipped:,} {SKIPPED}")
    return f"this review: {', '.join(parts)}; left: {left}"


class _Place(NamedTuple):
    """What is asked about at once."""

    path: str
    slug: str = ""
    """The idea, if the note is a list of ideas."""
    is_copy: bool = False
    """Whether it is a copy that a sync conflict left."""


class _Question(NamedTuple):
    """The keys that answer it, each with its label and what it does."""

    labels: Mapping[str, str]
    acts: Mapping[str, Callable[[], None]]
    looks: Mapping[str, Callable[[], None]] = MappingProxyType({})
    """What keys show, before another is asked for."""


class Dialogue:
    """Ask about one thing after the other, one key each."""

    def __init__(
        self,
        reviewer: Reviewer,
        context: Context,
        waiting: Sequence[Entry],
        copies: Sequence[ConflictCopy],
        drafts: Drafts,
    ) -> None:
        self._reviewer = reviewer
        self._context = context
        self._drafts = drafts
        self._places = [
            _Place(entry.path, slug)
            for entry in waiting
            for slug in (listed(entry.body) if entry.kind == GC_KIND else ("",))
        ]
        self._places += [_Place(copy.path, is_copy=True) for copy in copies]
        self._paths = [*dict.fromkeys(place.path for place in self._places)]
        self.run_name = reviewer.journal.new_run("review")
        """Name of the dialogue's acts in the journal."""
        self.at = 0
        self._left: list[tuple[int, str | None]] = []
        """The places that were left, in order, each with the id of the act that was made there, if any."""
        self.verdicts: list[str] = []
        """The verdict of each of them."""
        self._known: set[str] = set()
        """Ids of all acts that were made, including undone ones."""
        self._changed = False
        self._decided: list[str] = []

    def run(self) -> None:
        """Ask until all are decided or the user leaves."""
        try:
            while self.at < len(self._places) and self._ask(self._places[self.at]):
                pass
        finally:
            if self._changed:
                request_indexing(self._context.settings)

    def _ask(self, place: _Place) -> bool:
        """Show what is asked about, read one key and act on it; False to leave."""
        about = self._about_copy if place.is_copy else self._about_idea if place.slug else self._about_proposal
        try:
            question = about(place)
        except EntryNotFound:  # Decided on elsewhere meanwhile.
            self.at += 1
            return True
        key = _key_for(question)
        if key in LEAVE:
            return False
        try:
            if key == "u":
                self.undo()
            elif key in _SKIP:
                self.go_on(SKIPPED)
            else:
                question.acts[key]()
        except EditConflict as error:
            print(f"{error}; this is its present text")
            self._drafts.report_kept(place.path)
        except EntryNotFound as error:
            print(str(error))
        except MemoryVaultError as error:
            print(f"not done: {error}")
            if not self._drafts.report_kept(place.path):
                self.go_on(SKIPPED)
        return True

    def _about_proposal(self, place: _Place) -> _Question:
        entry = self._reviewer.store.read(place.path)
        self._show(entry)
        refused = REFUSED.get(entry.kind or "", "") + ("" if entry.supersedes else "k")
        refused += "" if any(source.session for source in entry.sources) else "w"
        refused += "" if may_guard(entry) else "m"
        labels = {key: label for key, (label, _) in KEYS.items() if key not in refused}
        acts: Mapping[str, Callable[[], None]] = {
            "a": lambda: self._decide(entry, Approve()),
            "l": lambda: self._decide(entry, Approve(always=True)),
            "m": lambda: self._decide(entry, Approve(guard="remind")),
            "k": lambda: self._decide(entry, KeepBoth()),
            "e": lambda: self._edit(entry),
            "r": lambda: self._decide(entry, Reject()),
            "p": lambda: self._supersede(entry),
        }
        looks: dict[str, Callable[[], None]] = {
            "?": lambda: print("\n".join(f"{key}  {KEYS[key][1]}" for key in labels))
        }
        if "w" in labels:
            looks["w"] = lambda: self._print_excerpts(entry)
        return _Question(labels, acts, looks)

    def _about_idea(self, place: _Place) -> _Question:
        body = self._reviewer.store.read(place.path).body
        left = listed(body)
        if place.slug not in left:
            raise EntryNotFound(f"{place.slug} is decided on")
        print(f"{self._heading(place.path)} {counted(len(left), 'idea')} that nobody came back to")
        print("\n".join(f"    {line}" for line in part_of(body, place.slug)))
        acts = {key: partial(self._answer, place, answer) for key, answer in ANSWERS.items()}
        return _Question(IDEA_KEYS, acts)

    def _about_copy(self, place: _Place) -> _Question:
        copy = next((one for one in waiting_copies(self._reviewer.store) if one.path == place.path), None)
        if copy is None:
            raise EntryNotFound(f"{place.path} is gone")
        print(f"{self._heading(place.path)} a sync client kept two texts of {copy.note}")
        _show_copy(copy)
        acts: Mapping[str, Callable[[], None]] = {
            "m": lambda: self._settle(copy, "mine", "kept"),
            "t": lambda: self._settle(copy, "theirs", "taken"),
            "e": lambda: self._merge(copy),
        }
        return _Question(COPY_KEYS, acts)

    def _heading(self, path: str) -> str:
        return f"\n[{self._paths.index(path) + 1}/{len(self._paths)}]"

    def _show(self, entry: Entry) -> None:
        print(f"{self._heading(entry.path)} {_in_words(entry)}, ", end="")
        print(f"seen {entry.occurrences} times" if entry.occurrences > 1 else "seen once", end="")
        said = day_said(entry)
        print(f", said {said}" if said else f", noted {entry.created}" if entry.created else "", end="")
        print(", proposed by an agent" if entry.written_by_agent else "")
        replaces = self._replacement(entry)
        body = _REVERSAL.sub("", kept_text(entry.body)) if replaces else entry.body
        titled = [] if is_title_cut(body, entry.title) else [entry.title, ""]
        _print_wrapped([*titled, *_without_marks(said_once(body, entry.title))])
        if not tells_occasion(entry.body) and (answered := occasion_of(self._context.settings, entry.sources)):
            _print_wrapped([f"{SAID}{answered} (from the transcript)"])
        if entry.channel == "core" and entry.kind not in REFUSED:
            _print_wrapped(["It seems to be a habit for all work: l gives it to every session at its start"])
        if replaces:
            _print_wrapped([replaces])

    def _replacement(self, entry: Entry) -> str:
        """What approving the proposal archives, '' if nothing."""
        with suppress(MemoryVaultError):  # The decision reports the error.
            if (replaced := replaced_now(self._reviewer.store, entry)) is not None:
                says = cut(statement_of(self._reviewer.store.read(replaced).body), PIECE_CHARACTERS)
                return f"Approving it archives “{says}” ({replaced})"
        return ""

    def go_on(self, verdict: str) -> None:
        """Go to the next place. The act of this one is the newest of the run, unless it changed no file."""
        act = None
        if verdict != SKIPPED:
            self._changed = True
            newest = next((act.id for act in self._reviewer.journal.newest() if act.run == self.run_name), None)
            act = None if newest is None or newest in self._known else newest
            self._known.update(filter(None, [act]))
        self.verdicts.append(verdict)
        self._left.append((self.at, act))
        self.at += 1

    def undo(self) -> None:
        """Go back to the place before, and undo what was decided there.

        If the last decision was made before this dialogue, show it and undo it only if the user says yes.
        """
        try:
            if not self._left:
                self._take_back_older()
                return
            place, act = self._left[-1]
            if act is not None:
                self._take_back(act)
        except MemoryVaultError as error:
            print(str(error))
            return
        self._left.pop()
        self.verdicts.pop()
        self.at = place

    def _take_back_older(self) -> None:
        act = self._reviewer.last_decision()
        if act is None:
            print("there is no decision to take back")
            return
        print(f"nothing was decided here yet; the last decision before is of {day_of(act.at)}: {act.what}")
        if read_key(TAKE_BACK) == "y":
            self._take_back(act.id)
        else:
            print("nothing was taken back")

    def _take_back(self, act: str) -> None:
        if (undone := self._reviewer.undo_last(act)) is not None:
            self._changed = True
            print(undone.what)

    def _decide(self, entry: Entry, decision: Decision, body: Scrubbed | None = None) -> None:
        decided = self._reviewer.decide(
            entry.path, decision, run=self.run_name, body=body, expected_hash=entry.content_hash
        )
        print(decided.told)
        self._decided.append(decided.path)
        self.go_on(decided.verdict if body is None else "edited")

    def _answer(self, place: _Place, answer: Answer) -> None:
        verdict = "no longer there"  # Stays if it went meanwhile: that is an act, too, which takes it off the list.
        for decided in self._reviewer.answer(place.path, {place.slug: answer}, run=self.run_name):
            print(decided.told)
            verdict = decided.verdict
        self.go_on(verdict)

    def _settle(self, copy: ConflictCopy, choice: Choice, verdict: str, text: str | None = None) -> None:
        print(f"{verdict}: {settle_copy(self._reviewer.journal, copy, choice, run=self.run_name, text=text)}")
        self.go_on(verdict)

    def _merge(self, copy: ConflictCopy) -> None:
        text = self._drafts.edit(copy.path, copy.both())
        if text is None:
            print("nothing was changed")
            self._drafts.report_kept(copy.path)
            return
        self._settle(copy, "merged", "merged", text)
        self._drafts.used(copy.path)

    def speaks_of_actions(self) -> bool:
        """Whether a rule that was kept, and not taken back, speaks of what the agent does."""
        kept = self._reviewer.store.readable(self._decided)
        return any(entry.effective_status == ACTIVE and compile_rule(entry)[1] for entry in kept)

    def _edit(self, entry: Entry) -> None:
        """Edit the text and approve it; if it is unchanged or empty, ask again."""
        shown = kept_text(entry.body)
        text = self._drafts.edit(entry.path, shown)
        if text is None or not text.strip() or text.strip() == shown.strip():
            print("nothing was changed")
            if text is not None:
                self._drafts.used(entry.path)
            self._drafts.report_kept(entry.path)
            return
        clean = scrub(text.strip(), Policy.FULL if entry.kind == INCIDENT else Policy.SECRETS)
        if clean != text.strip():
            print("secrets in the text were replaced")
        decision = self._approval(entry)
        if decision is None:
            self._drafts.report_kept(entry.path)
            return
        self._decide(entry, decision, clean)
        self._drafts.used(entry.path)

    def _approval(self, entry: Entry) -> Decision | None:
        """Ask whether the edited text replaces the older entry, which the editor did not show."""
        replaced = replaced_now(self._reviewer.store, entry)
        if replaced is None:
            return Approve()
        print(f"it would replace {replaced}")
        answers: Mapping[str, Decision | None] = {"a": Approve(), "k": KeepBoth(), "n": None, **dict.fromkeys(LEAVE)}
        while (key := read_key(REPLACES_KEYS)) not in answers:
            print("press one of: a k n")
        return answers[key]

    def _print_excerpts(self, entry: Entry) -> None:
        """Print what was said around the evidence, from the transcripts that still exist."""
        said_in = [source for source in entry.sources if source.session]
        for excerpt in excerpts_of(self._context.settings, said_in[:MOST_SESSIONS]):
            print(f"  {excerpt.host}, session {excerpt.session}{': ' * bool(excerpt.missing)}{excerpt.missing}")
            for piece in excerpt.pieces:
                who = f"{piece.who.value}, {day_of(piece.at)}" if piece.at else piece.who.value
                print(f"  {'>' if piece.is_evidence else ' '} {who}: {cut(str(piece.text), PIECE_CHARACTERS)}")
        if len(said_in) > MOST_SESSIONS:
            print(f"    and {counted(len(said_in) - MOST_SESSIONS, 'more session')}")

    def _supersede(self, entry: Entry) -> None:
        near = self._reviewer.nearest(entry)
        for number, one in enumerate(near, 1):
            print(f"  {number}  {statement_of(one.body)}\n     {in_line(one.path)}")
        if not near:
            print("no entry is near; give its path or slug")
        try:
            answer = read_line("which one does it replace? (number, path or slug; empty: none) ")
        except Interrupted:  # This leaves the question, not the review.
            return
        if not answer:
            return
        chosen = near[int(answer) - 1].path if answer.isdigit() and 0 < int(answer) <= len(near) else answer
        try:
            self._decide(entry, Supersede(chosen))
        except (EntryNotFound, UsageError) as error:
            print(str(error))


def _key_for(question: _Question) -> str:
    """Read a key that answers the question, or leaves it."""
    while True:
        key = read_key(_in_rows(question.labels.values()))
        if key in question.looks:
            question.looks[key]()
        elif key in (*question.labels, *LEAVE, *_SKIP):
            return key
        else:
            print(f"press one of: {' '.join(question.labels)}" + "  (? explains them)" * ("?" in question.looks))


def _show_copy(copy: ConflictCopy) -> None:
    if copy.mine is None:
        print("    there is no note of this name any more; the copy says:")
        lines = copy.theirs.splitlines()
    else:
        lines = copy.difference or ["both say the same"]
    print("\n".join(f"    {line}" for line in lines[:SHOWN_LINES]))
    if len(lines) > SHOWN_LINES:
        print(f"    and {counted(len(lines) - SHOWN_LINES, 'more line')}")
