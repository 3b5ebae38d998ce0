"""`memory import migrate`: copy the notes of an older system into the vault."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from ..services.journal import Journal
from ..services.migrating import migrate
from ..tasks.queue.enqueue import request_indexing
from .context import Context
from .output import add_json, counted, note, print_json
from .path_arguments import named_folder
from .terminal_safety import redraw

EPILOG = """example:
  memory import migrate contextvault ~/ContextVault --dry-run
  memory undo --of migrate                        takes it back; what you edited since stays

The old files are only read. Run again, it takes what has come since.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory import migrate`."""
    parser.add_argument("system", choices=("contextvault",), help="what the folder is")
    parser.add_argument("path", type=Path, help="the folder, with domains/ and projects/ in it")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written; change nothing")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Copy the notes into the vault."""
    show = (lambda number: redraw(f"migrated {number}")) if sys.stderr.isatty() and not args.dry_run else None
    journal = Journal(context.state, context.store)
    done = migrate(named_folder(args.path), context.store, journal, dry_run=args.dry_run, on_progress=show)
    if not args.dry_run and any(one.result == "migrate" for one in done):
        request_indexing(context.settings)
    if args.json:
        print_json({"done": not args.dry_run, "files": [asdict(one) for one in done]})
        return 0
    for one in done:
        if one.result == "migrate":
            replaced = f"   ({counted(one.secrets, 'secret')} replaced)" if one.secrets else ""
            print(f"{one.source} -> {one.path}{replaced}")
        elif one.result == "left":
            note(f"memory: left: {one.source}: {one.why}")
    counts = Counter(one.result for one in done)
    verb = "would be migrated" if args.dry_run else "migrated"
    note(f"memory: {counted(counts['migrate'], 'note')} {verb}, {counts['known']} before, {counts['left']} left")
    if counts["migrate"] and not args.dry_run:
        note("memory: `memory undo --of migrate` takes it back; the old folder was only read")
    return 0
