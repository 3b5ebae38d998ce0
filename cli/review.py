"""`memory review`: decide on what waits, by one key each, or by flags for programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..pipelines.incubation import GC_KIND, listed
from ..pipelines.likeness import statement_of
from ..pipelines.review import HOW_TO_DECIDE, link_target, parse_decision, why_none
from ..runtime.errors import EntryNotFound, MemoryVaultError, UsageError
from ..runtime.layout import INBOX, INCUBATOR, REVIEW
from ..services.conflicts import (
    CHOICES,
    Choice,
    ConflictCopy,
    find_copy,
    notes_in_conflict,
    settle_copy,
    waiting_copies,
)
from ..services.entry_names import find_entry
from ..services.paging import likeliest_first
from ..services.pending_counts import count_pending
from ..services.reviewing import ONE_BY_ONE, DecisionOutcome, Reviewer
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import Entry
from ..vault.pending import describe_pending, group_by_place, is_idea_path
from ..vault.store import VaultStore
from .context import Context
from .editor import Drafts
from .guard import offer_actions
from .init import CONSENT, CONSENT_QUESTION, agreed
from .output import add_json, in_line, note, print_json, print_result, print_rows
from .review_dialogue import Dialogue, day_said, summarize
from .settings_file import write_setting

EPILOG = """example:
  memory review                                      asks about one after the other, by key
  memory review --decide use-pnpm=approve --decide old-habit=reject --json
  memory review --decide use-npm='supersede personal-private/preferences/use-pnpm.md'
  memory review --decide 'tabs (conflicted copy)=theirs'     of a sync conflict: mine or theirs
  memory review --undo tabs
"""

SHOWN_FIELDS = ("slug", "path", "title", "kind", "project", "occurrences", "supersedes", "created")
"""Fields of a waiting note that `--json` prints as they are."""
REVIEWED = ("proposals", "questions", "copies")
"""Places of `PendingCounts` that the review covers without `--inbox`."""

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
    if args.list or (args.json and not args.decide):
        return list_waiting(args, context, waiting, unreadable, is_inbox=args.inbox, copies=copies, torn=torn)
    for problem in unreadable.values():
        note(f"memory: {problem}")
    if not waiting and not copies:
        print(_nothing(context, torn or unreadable, is_inbox=args.inbox))
        return 0
    if not sys.stdin.isatty():
        waits = "waits" if len(waiting) + len(copies) == 1 else "wait"
        raise UsageError(
            f"{_counted(context, waiting, copies)} {waits}, but standard input is no terminal: "
            "use --list, and --decide SLUG=approve (or keep both, reject, skip, supersede PATH)"
        )
    with Drafts() as drafts:
        dialogue = Dialogue(reviewer, context, waiting, copies, drafts)
        dialogue.run()
    if dialogue.speaks_of_actions():
        offer_actions(context)
    left = asdict(count_pending(reviewer.store))
    asked = ("inbox",) if args.inbox else REVIEWED
    print(summarize(dialogue.verdicts, describe_pending({place: left[place] for place in asked})))
    return 0


def _entry_as_json(entry: Entry) -> dict[str, Any]:
    """A waiting note as `--json` prints it."""
    return {
        **{name: getattr(entry, name) for name in SHOWN_FIELDS},
        "statement": statement_of(entry.body),
        "sessions": sorted({source.session for source in entry.sources if source.session}),
        "agent": entry.written_by_agent,
        "said": day_said(entry),
        **({"ideas": list(listed(entry.body))} if entry.kind == GC_KIND else {}),
    }


def _counted(
    context: Context, waiting: Sequence[Entry], copies: Sequence[ConflictCopy], unreadable: Iterable[str] = ()
) -> str:
    """What is listed, counted in the same words as elsewhere."""
    places = group_by_place([*(entry.path for entry in waiting), *unreadable, *context.store.walk_special({INCUBATOR})])
    counts = {"copies": len(copies), **{place: len(places[place]) for place in ("proposals", "questions", "inbox")}}
    return describe_pending(counts)


def _nothing(context: Context, to_mend: Collection[str], *, is_inbox: bool) -> str:
    """The line for an empty list, with what waits elsewhere. `to_mend`: notes that were named above it."""
    if is_inbox:
        return "the inbox is empty"
    nothing = "nothing else" if to_mend else "nothing"
    elsewhere = count_pending(context.store).other_places()
    return f"{nothing} waits for your decision" + (f"; elsewhere: {', '.join(elsewhere)}" if elsewhere else "")


def _copy_as_json(copy: ConflictCopy) -> dict[str, Any]:
    """A copy as `--json` prints it."""
    return {
        "slug": copy.path.rsplit("/", 1)[-1].removesuffix(".md"),
        "path": copy.path,
        "kind": "sync-conflict",
        "note": copy.note,
        "difference": copy.difference,
    }


def list_waiting(
    args: argparse.Namespace,
    context: Context,
    waiting: Sequence[Entry],
    unreadable: Mapping[str, str],
    *,
    is_inbox: bool,
    copies: Sequence[ConflictCopy] = (),
    torn: Collection[str] = (),
) -> int:
    """Print what waits, as a table or as JSON; return the exit code."""
    others = [*map(_copy_as_json, copies)]
    unread = [{"slug": p.rsplit("/", 1)[-1][:-3], "path": p, "problem": why} for p, why in unreadable.items()]
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
    rows += [(one["slug"], one["kind"], "-", "-", "-", f"another text of {one['note']}") for one in others]
    rows += [(one["slug"], "-", "-", "-", "-", one["problem"]) for one in unread]
    none = "" if rows or args.json else _nothing(context, torn, is_inbox=is_inbox)
    value = [*map(_entry_as_json, waiting), *others, *unread]
    print_rows(args, value, ("slug", "kind", "project", "seen", "said", "says"), rows, none)
    if rows and not args.json:
        note(f"memory: {_counted(context, waiting, copies, unreadable)}")
    return 0


def _statement_line(entry: Entry) -> str:
    """The entry in one line, and what it would replace. An agent's idea is known by its title: its summary need not
    name it."""
    says = entry.title if entry.kind == "idea" and entry.written_by_agent else statement_of(entry.body)
    replaced = link_target(entry.supersedes or "").rpartition("/")[2].removesuffix(".md")
    return f"would replace {replaced}: {says}" if replaced else says


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


def _parse_decide(reviewer: Reviewer, item: str) -> tuple[str, Callable[[str], list[DecisionOutcome]]]:
    """Parse `SLUG=DECISION` into the name and what carries it out under a run's name. Raises UsageError,
    EntryNotFound."""
    name, separator, words = item.partition("=")
    name = name.strip()
    if not separator or not name:
        raise UsageError(f"--decide {item!r}: write SLUG=approve (or keep both, reject, skip, supersede PATH)")
    if chosen := _choice_of(reviewer.store, name, words):
        copy, choice = chosen

        def settle(run: str) -> list[DecisionOutcome]:
            path = settle_copy(reviewer.journal, copy, choice, run=run)
            return [DecisionOutcome(copy.path, f"{choice} kept", path)]

        return name, settle
    entry = reviewer.store.read(reviewer.find(name))
    if entry.kind == GC_KIND:
        raise UsageError(f"--decide {item!r}: {ONE_BY_ONE}")
    decision = parse_decision(words, entry.supersedes)
    if decision is None:
        raise UsageError(f"--decide {item!r}: {why_none(words)}")
    return name, lambda run: [reviewer.decide(reviewer.find(name), decision, run=run)]


def _choice_of(store: VaultStore, name: str, words: str) -> tuple[ConflictCopy, Choice] | None:
    """Return the copy and the choice of `--decide NAME=WORDS`; None if the words do not choose between two texts.

    Raises EntryNotFound, UsageError.
    """
    first = words.strip().casefold().removeprefix("keep ").removeprefix("take ")
    for choice in CHOICES:
        if first == choice:
            return find_copy(store, name), choice
    return None


def _undo(args: argparse.Namespace, reviewer: Reviewer, context: Context) -> int:
    # An empty name, as from an unset variable, must not mean the last decision of all.
    path = None if args.undo is True else find_entry(reviewer.store, args.undo, living_first=False).path
    act = reviewer.undo_last(path=path)
    if act is not None:
        request_indexing(context.settings)
    elif path is not None:
        raise EntryNotFound(f"no decision on {path} is remembered: nothing was taken back")
    value = {"undone": act.what if act else None, "paths": [c.path for c in act.changes] if act else []}
    return print_result(args, value, act.what if act else "there is no decision to take back")
