"""`memory review`: decide on what waits, by one key each, or by flags for programs."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeAlias

from ..pipelines.incubation import GC_KIND, KIND_IN_WORDS, SURFACE_KIND, Answer, listed, part_of
from ..pipelines.likeness import statement_of, tells_occasion
from ..pipelines.review import (
    HOW_TO_DECIDE,
    Approve,
    Decision,
    KeepBoth,
    Reject,
    Skip,
    Supersede,
    parse_decision,
    why_none,
)
from ..pipelines.review import without_replacement_line as kept_text
from ..pipelines.routing import REVERSES
from ..pipelines.scrub import Policy, scrub
from ..runtime.days import day_of, parse_local_day
from ..runtime.errors import EditConflict, EntryInvalid, EntryNotFound, MemoryVaultError, UsageError
from ..runtime.layout import INBOX, INCUBATOR, REVIEW
from ..services.action_index import compile_rule
from ..services.conflicts import ConflictCopy, notes_in_conflict, settle_copy, waiting_copies
from ..services.entry_names import find_entry
from ..services.excerpts import excerpts_of, occasion_of
from ..services.ideas.incubator import parse_listed
from ..services.pending_counts import count_pending
from ..services.pending_page import likeliest_first
from ..services.remembering import SESSION
from ..services.replacing import replaced_now
from ..services.reviewing import DecisionOutcome, Reviewer
from ..tasks.queue.enqueue import request_indexing
from ..vault.core import is_ban
from ..vault.entry import ACTIVE, INCIDENT, Entry
from ..vault.evidence import EVIDENCE_HEADING, SAID
from ..vault.note_text import is_title_cut, said_once
from ..vault.pending import describe_pending, group_by_place, is_idea_path
from ..vault.scrubbed import Scrubbed
from .conflicts import ask_about_copies, choice_of, copy_as_json
from .context import Context
from .editor import Drafts
from .guard import offer_actions
from .init import CONSENT, CONSENT_QUESTION, agreed
from .output import LEAST_COLUMNS, add_json, counted, cut, in_line, note, print_json, print_table, report_passed_over
from .review_steps import SKIPPED, Steps, summarize
from .settings_file import write_setting
from .terminal import LEAVE, Interrupted, read_key, read_line
from .terminal_safety import line_columns

EPILOG = """example:
  memory review                                      asks about one after the other, by key
  memory review --decide use-pnpm=approve --decide old-habit=reject --json
  memory review --decide use-npm='supersede personal-private/preferences/use-pnpm.md'
  memory review --decide ideas-nobody-came-back-to='keep a b; archive c'
  memory review --decide 'tabs (conflicted copy)=theirs'     of a sync conflict: mine or theirs
  memory review --undo tabs
"""

REVIEWED = ("proposals", "questions", "copies")
"""Places of `PendingCounts` that the review covers without `--inbox`."""

KEYS = {
    "a": "[a]pprove",
    "l": "a[l]ways",
    "m": "re[m]ind",
    "k": "[k]eep both",
    "e": "[e]dit",
    "r": "[r]eject",
    "s": "[s]kip",
    "p": "su[p]ersede",
    "w": "[w]here it was said",
    "u": "[u]ndo",
    "q": "[q]uit",
}
MEANINGS = {
    "a": "keep it",
    "l": "keep it, and give it to every session at its start",
    "m": "keep it, and stop the agent once in a session, before it breaks the rule",
    "k": "keep it beside the note that it would replace",
    "e": "change its text, then keep it",
    "r": "drop it; what is much like it is not proposed again",
    "s": "decide later",
    "p": "keep it in place of a note that you name",
    "w": "show what was said around it",
    "u": "take the last decision back",
    "q": "leave",
}
"""What the keys do, as `?` prints it."""
REFUSED = {SURFACE_KIND: "eplm", "idea": "plm"}
"""Kind of a proposal -> keys that it does not have."""
MOST_SESSIONS = 3
"""How many sessions `w` shows."""
PIECE_CHARACTERS = 300
REPLACES_KEYS = "[a]pprove, archiving it  [k]eep both  [n]either "
IDEA_KEYS = "[k]eep  [a]rchive  [d]elete  [s]kip  [u]ndo  [q]uit "
ANSWERS = {"k": Answer.KEEP, "a": Answer.ARCHIVE, "d": Answer.DELETE}

RESEARCH_IS_LOCAL = (
    "your ideas are looked up on this machine only; `research.network = true` in the settings asks the web too "
    "(docs/how-to/research.md), `false` ends this line"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory review`."""
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--list", action="store_true", help="show what waits")
    parser.add_argument("--inbox", action="store_true", help="the inbox instead of what waits for review")
    act.add_argument(
        "--decide",
        metavar="SLUG=DECISION",
        action="append",
        default=[],
        help=f"decide without a terminal: {HOW_TO_DECIDE}; may be repeated",
    )
    act.add_argument(
        "--undo", metavar="NAME", nargs="?", const=True, help="take the last decision back, or the last one on an entry"
    )
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List, decide, undo or ask. Decisions are kept in the notes alone."""
    if args.undo is not None and args.inbox:
        raise UsageError("--undo takes the last decision back, wherever it was made: leave --inbox out")
    reviewer = Reviewer(context.settings, context.store)
    _ = context.state
    if args.undo is not None:
        return _undo(args, reviewer, context)
    if args.decide:
        return _decide_all(args, reviewer, context)
    waiting, unreadable = reviewer.waiting_and_unreadable(INBOX if args.inbox else REVIEW)
    waiting = likeliest_first(waiting) if args.inbox else waiting
    copies = [] if args.inbox else waiting_copies(reviewer.store)
    if (
        not args.json
        and CONSENT not in context.settings.origins
        and any(map(is_idea_path, reviewer.store.walk_special({INCUBATOR})))
    ):
        if args.list or args.inbox or not sys.stdin.isatty():
            note(f"memory: {RESEARCH_IS_LOCAL}")
        else:
            write_setting(context.settings.config_file, "research", "network", agreed(CONSENT_QUESTION))
    torn = [] if args.json else notes_in_conflict(reviewer.store)
    for path in torn:
        note(f"memory: git left both sides of a merge in {in_line(path)}: it is not in use until you mend it")
    report_passed_over(reviewer.store.passed_over)
    if args.list or (args.json and not args.decide):
        return _list(args, context, waiting, copies, unreadable, torn)
    for problem in unreadable.values():
        note(f"memory: {problem}")
    if not waiting and not copies:
        print(_nothing(args, context, torn or unreadable))
        return 0
    if not sys.stdin.isatty():
        waits = "waits" if len(waiting) + len(copies) == 1 else "wait"
        raise UsageError(
            f"{_counted(context, waiting, copies)} {waits}, but standard input is no terminal: "
            "use --list, and --decide SLUG=approve (or keep both, reject, skip, supersede PATH)"
        )
    with Drafts() as drafts:
        dialogue = _Dialogue(reviewer, context, waiting, drafts)
        of_copies: Steps[int] = Steps(reviewer, dialogue.run_name)
        if dialogue.run() and ask_about_copies(
            reviewer.journal, copies, run=dialogue.run_name, drafts=drafts, steps=of_copies
        ):
            request_indexing(context.settings)
    if dialogue.speaks_of_actions():
        offer_actions(context)
    left = asdict(count_pending(reviewer.store))
    asked = ("inbox",) if args.inbox else REVIEWED
    verdicts = [*dialogue.steps.verdicts, *of_copies.verdicts]
    print(summarize(verdicts, describe_pending({place: left[place] for place in asked})))
    return 0


def entry_as_json(entry: Entry) -> dict[str, Any]:
    """A waiting note as `--json` prints it."""
    return {
        "slug": entry.slug,
        "path": entry.path,
        "title": entry.title,
        "statement": statement_of(entry.body),
        "kind": entry.kind,
        "project": entry.project,
        "occurrences": entry.occurrences,
        "sessions": sorted({source.session for source in entry.sources if source.session}),
        "supersedes": entry.supersedes,
        "agent": entry.written_by_agent,
        "created": entry.created,
        "said": day_said(entry),
        **({"ideas": list(listed(entry.body))} if entry.kind == GC_KIND else {}),
    }


def day_said(entry: Entry) -> str | None:
    """Return the day on which the memory was said, as ISO text; None if the note has none."""
    day = parse_local_day(entry.surfaced_at)
    return day.isoformat() if day is not None else None


def _counted(
    context: Context, waiting: Sequence[Entry], copies: Sequence[ConflictCopy], unreadable: Iterable[str] = ()
) -> str:
    """What is listed, counted in the same words as elsewhere."""
    places = group_by_place([*(entry.path for entry in waiting), *unreadable, *context.store.walk_special({INCUBATOR})])
    counts = {"copies": len(copies), **{place: len(places[place]) for place in ("proposals", "questions", "inbox")}}
    return describe_pending(counts)


def _nothing(args: argparse.Namespace, context: Context, to_mend: Collection[str]) -> str:
    """The line for an empty list, with what waits elsewhere. `to_mend`: notes that were named above it."""
    if args.inbox:
        return "the inbox is empty"
    nothing = "nothing else" if to_mend else "nothing"
    elsewhere = count_pending(context.store).other_places()
    return f"{nothing} waits for your decision" + (f"; elsewhere: {', '.join(elsewhere)}" if elsewhere else "")


def unreadable_as_json(unreadable: Mapping[str, str]) -> list[dict[str, str]]:
    """Waiting notes that cannot be read, as `--json` prints them."""
    return [
        {"slug": path.rsplit("/", 1)[-1][:-3], "path": path, "problem": problem} for path, problem in unreadable.items()
    ]


def _list(
    args: argparse.Namespace,
    context: Context,
    waiting: Sequence[Entry],
    copies: Sequence[ConflictCopy],
    unreadable: Mapping[str, str],
    torn: Collection[str],
) -> int:
    if args.json:
        print_json([*map(entry_as_json, waiting), *map(copy_as_json, copies), *unreadable_as_json(unreadable)])
    elif waiting or copies or unreadable:
        rows: list[Sequence[object]] = [
            (
                e.path.rsplit("/", 1)[-1][:-3],
                e.kind or "-",
                e.project or "-",
                e.occurrences,
                day_said(e) or e.created or "-",
                _statement_line(e),
            )
            for e in waiting
        ]
        for copy in map(copy_as_json, copies):
            rows.append((copy["slug"], copy["kind"], "-", "-", "-", f"another text of {copy['note']}"))
        rows += [(one["slug"], "-", "-", "-", "-", one["problem"]) for one in unreadable_as_json(unreadable)]
        print_table(("slug", "kind", "project", "seen", "said", "says"), rows)
        note(f"memory: {_counted(context, waiting, copies, unreadable)}")
    else:
        print(_nothing(args, context, torn))
    return 0


def may_guard(entry: Entry) -> bool:
    """Whether the entry can guard the agent's actions: it is a ban, or the miner marked it for actions."""
    return entry.kind not in REFUSED and (entry.channel == "action" or is_ban(entry.body))


def _statement_line(entry: Entry) -> str:
    """The entry in one line. An agent's idea is known by its title: its summary need not name it."""
    return entry.title if entry.kind == "idea" and entry.written_by_agent else statement_of(entry.body)


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


Wish: TypeAlias = "Callable[[str], Iterable[DecisionOutcome]]"
"""Carry a decision out under the name of a run; return the outcomes."""


def _decide_all(args: argparse.Namespace, reviewer: Reviewer, context: Context) -> int:
    """Carry out all decisions; return 1 if one failed. Raises UsageError before the first for one that is malformed."""
    wanted = [_parse_decide(reviewer, item) for item in args.decide]
    run_name = reviewer.journal.new_run("review")
    results: list[dict[str, Any]] = []
    told: list[str] = []
    for name, carry_out in wanted:
        try:
            for one in carry_out(run_name):
                results.append({"slug": name, **vars(one)})
                told.append(one.told)
        except MemoryVaultError as error:
            results.append({"slug": name, "error": str(error)})
            note(f"memory: {name}: {error}")
    if told:
        request_indexing(context.settings)
    if args.json:
        print_json(results)
    else:
        print("".join(f"{line}\n" for line in told), end="")
    return 0 if len(told) == len(results) else 1


def _parse_decide(reviewer: Reviewer, item: str) -> tuple[str, Wish]:
    """Parse `SLUG=DECISION` into the name and what carries it out. Raises UsageError, EntryNotFound."""
    name, separator, words = item.partition("=")
    name = name.strip()
    if not separator or not name:
        raise UsageError(f"--decide {item!r}: write SLUG=approve (or keep both, reject, skip, supersede PATH)")
    if chosen := choice_of(reviewer.store, name, words):
        copy, choice = chosen

        def settle(run: str) -> list[DecisionOutcome]:
            path = settle_copy(reviewer.journal, copy, choice, run=run)
            return [DecisionOutcome(copy.path, f"{choice} kept", path)]

        return name, settle
    entry = reviewer.store.read(reviewer.find(name))
    if entry.kind == GC_KIND:
        try:
            answers = parse_listed(entry, words)
        except EntryInvalid as error:
            raise UsageError(f"--decide {item!r}: {error}") from error
        return name, lambda run: reviewer.answer(reviewer.find(name), answers, run=run)
    decision = parse_decision(words, entry.supersedes)
    if decision is None:
        raise UsageError(f"--decide {item!r}: {why_none(words)}")
    return name, lambda run: [reviewer.decide(reviewer.find(name), decision, run=run)]


def _undo(args: argparse.Namespace, reviewer: Reviewer, context: Context) -> int:
    # An empty name, as from an unset variable, must not mean the last decision of all.
    path = None if args.undo is True else find_entry(reviewer.store, args.undo, living_first=False).path
    act = reviewer.undo_last(path=path)
    if act is not None:
        request_indexing(context.settings)
    elif path is not None:
        raise EntryNotFound(f"no decision on {path} is remembered: nothing was taken back")
    if args.json:
        print_json({"undone": act.what if act else None, "paths": [c.path for c in act.changes] if act else []})
    else:
        print(act.what if act else "there is no decision to take back")
    return 0


class _Dialogue:
    """Ask about one proposal after the other, one key each."""

    def __init__(self, reviewer: Reviewer, context: Context, waiting: Sequence[Entry], drafts: Drafts) -> None:
        self._reviewer = reviewer
        self._context = context
        self._drafts = drafts
        self._paths = [entry.path for entry in waiting]
        self.run_name = reviewer.journal.new_run("review")
        self._at = 0
        self._idea = 0
        """Index of the current idea, if the proposal is a list of ideas."""
        self._ideas: dict[str, list[str]] = {}
        """Path of a list of ideas -> its slugs at the start."""
        self._arrived = True
        self.steps: Steps[tuple[int, int]] = Steps(reviewer, self.run_name)
        self._changed = False
        self._decided: list[str] = []

    def run(self) -> bool:
        """Ask until all are decided; False if the user leaves before."""
        try:
            while self._at < len(self._paths):
                try:
                    entry = self._reviewer.store.read(self._paths[self._at])
                except EntryNotFound:
                    self._go_to(self._at + 1)
                    continue
                if entry.kind == GC_KIND:
                    if not self._ask_idea(entry):
                        return False
                    continue
                self._show(entry)
                if not self._ask(entry):
                    return False
        finally:
            if self._changed:
                request_indexing(self._context.settings)
        return True

    def _show(self, entry: Entry) -> None:
        print(f"\n[{self._at + 1}/{len(self._paths)}] {_in_words(entry)}, ", end="")
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

    def _ask(self, entry: Entry) -> bool:
        """Read one key and act on it; False to leave."""
        refused = REFUSED.get(entry.kind or "", "") + ("" if entry.supersedes else "k")
        refused += "" if any(source.session for source in entry.sources) else "w"
        refused += "" if may_guard(entry) else "m"
        keys = {key: label for key, label in KEYS.items() if key not in refused}
        while (key := read_key(_in_rows(keys.values()))) not in (*keys, *LEAVE, *_SKIP):
            if key == "?":
                print("\n".join(f"{key}  {MEANINGS[key]}" for key in keys))
            else:
                print(f"press one of: {' '.join(keys)}  (? explains them)")
        try:
            match key:
                case "a":
                    self._decide(entry, Approve())
                case "l":
                    self._decide(entry, Approve(always=True))
                case "m":
                    self._decide(entry, Approve(guard="remind"))
                case "k":
                    self._decide(entry, KeepBoth())
                case "e":
                    self._edit(entry)
                case "r":
                    self._decide(entry, Reject())
                case "s" | "\r" | "\n" | " ":
                    self._decide(entry, Skip())
                case "p":
                    self._supersede(entry)
                case "w":
                    self._print_excerpts(entry)
                    return self._ask(entry)  # Of a proposal that is read already.
                case "u":
                    self._undo()
                case _:
                    return False
        except EditConflict as error:
            print(f"{error}; this is its present text")
            self._drafts.report_kept(entry.path)
        except EntryNotFound as error:
            print(str(error))
        except MemoryVaultError as error:
            print(f"not done: {error}")
            if not self._drafts.report_kept(entry.path):
                self._skip()
        return True

    def _ask_idea(self, entry: Entry) -> bool:
        """Ask about one idea of a list; a skipped one is asked again next time. False to leave."""
        slugs = self._ideas.setdefault(entry.path, list(listed(entry.body)))
        left = listed(entry.body)
        while self._idea < len(slugs) and slugs[self._idea] not in left:
            self._idea += 1
        if self._idea == len(slugs):
            self._go_to(self._at + 1)
            return True
        if self._arrived:
            print(f"\n[{self._at + 1}/{len(self._paths)}] {counted(len(left), 'idea')} that nobody came back to")
            self._arrived = False
        slug = slugs[self._idea]
        print("\n".join(f"    {line}" for line in part_of(entry.body, slug)))
        while (key := read_key(IDEA_KEYS)) not in ANSWERS and key not in LEAVE and key not in _SKIP and key != "u":
            print("press one of: k a d s u q")
        if key in LEAVE:
            return False
        if key == "u":
            self._undo()
            return True
        place = (self._at, self._idea)
        self._idea += 1
        if key in _SKIP:
            self.steps.skipped(place)
            return True
        try:
            verdict = SKIPPED  # Stays if another process has decided on it.
            for decided in self._reviewer.answer(entry.path, {slug: ANSWERS[key]}, run=self.run_name):
                self._print_outcome(decided)
                verdict = decided.verdict
            self.steps.decided(place, verdict)
            self._changed = True
        except MemoryVaultError as error:
            print(f"not done: {error}")
            self.steps.skipped(place)
        return True

    def _go_to(self, at: int, idea: int = 0) -> None:
        self._at, self._idea, self._arrived = at, idea, True

    def _skip(self) -> None:
        self.steps.skipped((self._at, 0))
        self._go_to(self._at + 1)

    def _decide(self, entry: Entry, decision: Decision, body: Scrubbed | None = None) -> None:
        decided = self._reviewer.decide(
            entry.path, decision, run=self.run_name, body=body, expected_hash=entry.content_hash
        )
        self._print_outcome(decided)
        if decided.verdict == "skipped":
            self._skip()
            return
        self._changed = True
        self._decided.append(decided.path)
        self.steps.decided((self._at, 0), decided.verdict if body is None else "edited")
        self._go_to(self._at + 1)

    def speaks_of_actions(self) -> bool:
        """Whether a rule that was kept, and not taken back, speaks of what the agent does."""
        for path in self._decided:
            with suppress(MemoryVaultError):
                entry = self._reviewer.store.read(path)
                if entry.effective_status == ACTIVE and compile_rule(entry)[1]:
                    return True
        return False

    def _print_outcome(self, decided: DecisionOutcome) -> None:
        print(decided.told)
        if decided.archived:
            print(f"archived: {decided.archived}")

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
            print(f"  {number}  {one.statement}\n     {in_line(one.path)}")
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

    def _undo(self) -> None:
        place, changed = self.steps.go_back()
        self._changed = self._changed or changed
        if place is not None:
            self._go_to(*place)


_SKIP = frozenset({"s", "\r", "\n", " "})
