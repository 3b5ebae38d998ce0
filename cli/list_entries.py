"""`memory list`: list entries, read from the files."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from ..hooks.wiring import is_wired
from ..index.filters import Filter, all_of, equals, matches, require_known, since
from ..index.store import row_of
from ..pipelines.incubation import GC_KIND, SURFACE_KIND
from ..pipelines.likeness import statement_of
from ..runtime.days import effective_day
from ..runtime.errors import UsageError
from ..runtime.layout import INBOX, INCUBATOR, REVIEW, WATCHLIST
from ..services.pending_counts import PendingCounts
from ..services.waiting_sessions import waiting_sessions_notice
from ..vault.active import EXPLICIT_KINDS, PLACE_OF_KIND, has_content, is_entry, is_entry_place
from ..vault.automemory import COST_KIND
from ..vault.entry import ACTIVE, AWAITING_STATUSES, STATUSES, Entry
from ..vault.pending import group_by_place
from ..vault.project import project_slug
from .context import Context
from .output import add_json, fitted, in_line, note, print_json

EPILOG = """example:
  memory list --kind preferences --tag release
  memory list --status superseded --json
"""

WAITING_FOLDERS = frozenset({INBOX, REVIEW, INCUBATOR})
"""Folders where entries wait. Other folders with an underscore hold no entries or have their own command."""

SHOWN_FIELDS = ("path", "title", "kind", "status", "tags", "project", "group", "created", "updated", "surfaced_at")
"""Fields of an entry that `--json` prints as they are."""

ON_REQUEST = EXPLICIT_KINDS | {SURFACE_KIND, GC_KIND}
"""Kinds that are listed only when named, such as notes about ideas."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory list`."""
    parser.add_argument("--kind", help="only this kind")
    parser.add_argument("--tag", help="only with this tag")
    parser.add_argument("--project", help="only of this project")
    parser.add_argument("--group", help="only of this group and those below it")
    parser.add_argument("--status", default="active", help=f"one of {', '.join(STATUSES)}, or all (default: active)")
    parser.add_argument("--updated-since", metavar="DATE", help="updated since 2026-01-31, 2026-01, or an age: 30d, 2w")
    parser.add_argument("--include-inbox", action="store_true", help="what waits in inbox, review and incubator too")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the entries that match: those said last first, as JSON by path."""
    wished = _filter(args, context.store.today())
    store = context.store
    if args.status.lower() != "all":
        require_known({args.status.lower()}, store)
    notes = [*store.readable()]  # A list: what is hidden is counted, too.
    entries = [entry for entry in notes if _is_asked_for(entry, args) and matches(wished, row_of(entry))]
    if args.json:
        print_json([as_json(entry) for entry in entries])
    elif entries:
        for entry in sorted(entries, key=lambda entry: said_on(entry) or "", reverse=True):
            print_entry(entry)
    else:
        print("no entries match")
        unread: list[str] = []
        # Of a note that cannot be read, it is not known whether it has a wished tag, or is a pattern that still waits.
        if wished == all_of(()):
            unread += (path for path in store.passed_over if path.endswith(".md") and WATCHLIST not in path)
        _print_waiting(args, notes, unread, wished)
    if hidden := _hidden(args, notes, wished):
        told = ", ".join(f"{count:,} {status}" for status, count in sorted(hidden.items()))
        note(f"memory: not in use, and not shown: {told} (--status {min(hidden) if len(hidden) == 1 else 'all'})")
    if not args.json and (told := waiting_sessions_notice(context.settings, is_wired)):
        note(f"memory: {told}")
    return 0


def as_json(entry: Entry) -> dict[str, Any]:
    """An entry as `--json` prints it, but for its text."""
    told = {name: getattr(entry, name) for name in (*SHOWN_FIELDS, "occurrences", "confidence")}
    return {**told, "said": said_on(entry), "statement": statement_of(entry.body)}


def print_entry(entry: Entry) -> None:
    """Print two lines: the day and the statement, then the path."""
    day = said_on(entry) or "-"
    place = f"{entry.kind or '-'}, {entry.project or 'any project'}"
    if entry.effective_status != ACTIVE:
        place += f", {entry.status}"
    statement = statement_of(entry.body)
    # A skill's note begins with a quotation, an incident's with a program's output, and all notes of what a session
    # cost with the same sentence: the title says more.
    by_title = not statement or statement.startswith((">", "```")) or entry.kind == COST_KIND
    says = fitted(entry.title if by_title else statement, len(f"{day:10}    ({place})"))
    print(f"{day:10}  {says}  ({place})\n{'':10}  {in_line(entry.path)}")


def said_on(entry: Entry) -> str | None:
    """Return the ISO day on which the user last said it; None if the note has no date."""
    day = effective_day(entry.surfaced_at, entry.created, entry.updated)
    return None if day is None else day.isoformat()


def _print_waiting(args: argparse.Namespace, notes: Sequence[Entry], unread: Iterable[str], wished: Filter) -> None:
    """For an empty list, print what waits, with the paths `unread`."""
    if args.status != "active" or args.include_inbox:
        return
    more = argparse.Namespace(**{**vars(args), "include_inbox": True})
    waiting = (e for e in notes if e.special in WAITING_FOLDERS and _is_asked_for(e, more))
    places = group_by_place([*(entry.path for entry in waiting if matches(wished, row_of(entry))), *unread])
    counts = {place: len(paths) for place, paths in places.items() if place != "questions"}
    if any(counts.values()):
        pending = PendingCounts(**{"proposals": 0, "inbox": 0, "ideas": 0, **counts}, questions=0)
        note(f"memory: for you: {'; '.join(pending.with_commands())}; --include-inbox lists it, too")


def _hidden(args: argparse.Namespace, notes: Sequence[Entry], wished: Filter) -> Counter[str]:
    """Status -> number of matching entries that are not listed because no status was named."""
    if args.status.lower() != ACTIVE:
        return Counter()
    others = (entry for entry in notes if entry.effective_status != ACTIVE and is_entry(entry))
    return Counter(entry.effective_status for entry in others if matches(wished, row_of(entry)))


def _is_asked_for(entry: Entry, args: argparse.Namespace) -> bool:
    """Whether status, place and kind are requested; a note without text never is."""
    status = args.status.lower()
    if not has_content(entry):
        return False
    if status == "all":
        return True
    if entry.kind in ON_REQUEST and (args.kind or "").lower() != entry.kind:
        return False
    # The user's own notes there have no status.
    is_pending = entry.special in WAITING_FOLDERS and (entry.status is None or entry.status in AWAITING_STATUSES)
    if args.include_inbox and is_pending:
        return True
    if status == ACTIVE and entry.special and entry.special == PLACE_OF_KIND.get((args.kind or "").lower()):
        return True
    return entry.effective_status == status and (status != ACTIVE or is_entry_place(entry.path))


def _filter(args: argparse.Namespace, today: date) -> Filter:
    """The options as a filter, with the meaning of `memory recall --filter`. Raises UsageError."""
    clauses: list[Filter] = []
    for key in ("kind", "tag", "project", "group"):
        value = getattr(args, key)
        if value is None:
            continue
        if not value.strip():
            raise UsageError(f"--{key} needs a value")
        wanted = value.removeprefix("#") if key == "tag" else value.strip("/")
        clauses.append(equals(key, project_slug(wanted) if key == "project" else wanted))
    if args.updated_since is not None:
        try:
            clauses.append(since("updated", args.updated_since, today))
        except UsageError:
            raise UsageError(
                f"--updated-since: {args.updated_since!r} is not a date: write 2026-01-31, 2026-01 or an age (30d)"
            ) from None
    return all_of(clauses)
