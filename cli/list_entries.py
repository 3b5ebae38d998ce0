"""`memory list`: what the vault holds, read from the files themselves."""

from __future__ import annotations

import argparse

from ..vault.entry import Entry
from ..vault.layout import ALWAYS_LOAD
from .context import Context
from .output import add_json, counted, note, print_json, print_table

EPILOG = """example:
  memory list --kind preferences --tag release
  memory list --status superseded --json
"""

WAITING = frozenset({"inbox", "pending", "incubating"})


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory list`."""
    parser.epilog = EPILOG
    parser.add_argument("--kind", help="only this kind")
    parser.add_argument("--tag", help="only with this tag")
    parser.add_argument("--project", help="only of this project")
    parser.add_argument("--group", help="only of this group")
    parser.add_argument("--status", default="active", help="active (default), pending, inbox, …, or all")
    parser.add_argument("--updated-since", metavar="DATE", help="updated on or after YYYY-MM-DD")
    parser.add_argument("--include-inbox", action="store_true", help="inbox and review items too")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the entries that match, by path."""
    statuses = {args.status} | (WAITING if args.include_inbox else set())

    def wanted(entry: Entry) -> bool:
        return (
            (args.status == "all" or entry.effective_status in statuses)
            and (args.status != "active" or args.include_inbox or entry.special in ("", ALWAYS_LOAD))
            and args.kind in (None, entry.kind)
            and args.project in (None, entry.project)
            and args.group in (None, entry.group)
            and (args.tag is None or args.tag in entry.tags)
            and (args.updated_since is None or (entry.updated or entry.created or "") >= args.updated_since)
        )

    store = context.store
    entries = [entry for entry in store.readable() if wanted(entry)]
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
        waiting = sum(entry.effective_status in WAITING for entry in store.readable())
        if waiting and args.status == "active" and not args.include_inbox:
            held = counted(waiting, "entry waits", "entries wait")
            note(f"memory: {held} in review, inbox or incubator: --include-inbox shows them, `memory review` decides")
    return 0
