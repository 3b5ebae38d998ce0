"""`memory list`: what the vault holds, read from the files themselves."""

from __future__ import annotations

import argparse
from datetime import date

from ..index.filters import And, Equals, Filter, matches, since
from ..index.statuses import require_known
from ..index.store import row_of
from ..pipelines.incubation import GC_KIND, SURFACE_KIND
from ..vault.entry import RESEARCH_KIND, STATUSES, Entry
from ..vault.errors import UsageError
from ..vault.layout import ALWAYS_LOAD, INBOX, INCUBATOR, REVIEW
from ..vault.waiting import by_place, in_words
from .context import Context
from .kinds import tell_missing
from .output import add_json, note, print_json, print_table

EPILOG = """example:
  memory list --kind preferences --tag release
  memory list --updated-since 30d
  memory list --status superseded --json
"""

WAITING = frozenset({"inbox", "pending", "incubating"})
WAITING_FOLDERS = frozenset({INBOX, REVIEW, INCUBATOR})
"""Where entries wait; what else has an underscore (`_meta`, the watchlist) is no entry, or has a command of its own."""

BESIDE_IDEAS = frozenset({RESEARCH_KIND, SURFACE_KIND, GC_KIND})
"""Kinds of notes that are about ideas, which are listed themselves."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory list`."""
    parser.epilog = EPILOG
    parser.add_argument("--kind", help="only this kind")
    parser.add_argument("--tag", help="only with this tag")
    parser.add_argument("--project", help="only of this project")
    parser.add_argument("--group", help="only of this group and those below it")
    parser.add_argument("--status", default="active", help=f"one of {', '.join(STATUSES)}, or all (default: active)")
    parser.add_argument("--updated-since", metavar="DATE", help="updated since 2026-01-31, 2026-01, or an age: 30d, 2w")
    parser.add_argument("--include-inbox", action="store_true", help="what waits in inbox, review and incubator too")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the entries that match, by path."""
    wished = _filter(args, context.store.today())
    store = context.store
    if args.status.lower() != "all":
        require_known({args.status.lower()}, store)
    entries = [entry for entry in store.readable() if _is_asked_for(entry, args) and matches(wished, row_of(entry))]
    if args.json:
        print_json(
            [
                {
                    "path": entry.path,
                    "title": entry.title,
                    "kind": entry.kind,
                    "status": entry.status,
                    "tags": list(entry.tags),
                    "project": entry.project,
                    "group": entry.group,
                    "created": entry.created,
                    "updated": entry.updated,
                    "surfaced_at": entry.surfaced_at,
                    "occurrences": entry.occurrences,
                    "confidence": entry.confidence,
                }
                for entry in entries
            ]
        )
    elif entries:
        print_table(
            ("kind", "status", "updated", "path"),
            [(e.kind or "-", e.status or "-", e.updated or "-", e.path) for e in entries],
        )
    else:
        print("no entries match")
        tell_missing([args.kind] if args.kind is not None else [], store)
        places = by_place(store.walk_special(WAITING_FOLDERS))
        waiting = {place: len(paths) for place, paths in places.items() if place != "questions"}
        if any(waiting.values()) and args.status == "active" and not args.include_inbox:
            note(f"memory: what waits is shown by --include-inbox: {in_words(waiting)}")
    return 0


def _is_asked_for(entry: Entry, args: argparse.Namespace) -> bool:
    """By its status and place; what was looked up or is asked about an idea is shown when its kind is named."""
    status = args.status.lower()
    if status == "all":
        return True
    if entry.kind in BESIDE_IDEAS and (args.kind or "").lower() != entry.kind:
        return False
    if args.include_inbox and _waits(entry):
        return True
    return entry.effective_status == status and (status != "active" or entry.special in ("", ALWAYS_LOAD))


def _waits(entry: Entry) -> bool:
    """A note of the user's own, without a status, waits as well where they put it."""
    return entry.special in WAITING_FOLDERS and (entry.status is None or entry.status in WAITING)


def _filter(args: argparse.Namespace, today: date) -> Filter:
    """What the flags ask for, compared as `memory recall --filter` compares it."""
    clauses: list[Filter] = []
    for key in ("kind", "tag", "project", "group"):
        value = getattr(args, key)
        if value is None:
            continue
        if not value.strip():
            raise UsageError(f"--{key} needs a value")
        clauses.append(Equals(key, value.removeprefix("#") if key == "tag" else value.strip("/")))
    if args.updated_since is not None:
        try:
            clauses.append(since("updated", args.updated_since, today))
        except UsageError:
            raise UsageError(
                f"--updated-since: {args.updated_since!r} is no date: write 2026-01-31, 2026-01 or an age such as 30d"
            ) from None
    return And(tuple(clauses))
