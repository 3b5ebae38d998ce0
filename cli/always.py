"""`memory always`: give an entry to every session at its start."""

from __future__ import annotations

import argparse
import shlex

from ..runtime.errors import UsageError
from ..services.entry_decisions import mark_always
from ..services.entry_names import find_entry
from ..services.reviewing import Reviewer
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import ACTIVE
from .context import Context
from .list_entries import as_json, print_entry
from .output import add_json, note, print_json, print_result
from .show import NAME

EPILOG = """example:
  memory always short-answers
  memory always --off short-answers
  memory always                    what is given now

What a session's start has no room for (`recall.core_words`) is named in `memory health`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory always`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"{NAME}; without it, those that are given are listed")
    parser.add_argument("--off", action="store_true", help="do not give it to every session any more")
    add_json(parser)


def _list(args: argparse.Namespace, context: Context) -> int:
    if args.off:
        raise UsageError("--off needs the entry's name: memory always --off NAME")
    given = [entry for entry in context.store.readable() if entry.always_load and entry.effective_status == ACTIVE]
    if args.json:
        print_json([as_json(entry) for entry in given])
    elif not given:
        print("no entry is given to every session: `memory always NAME` marks one")
    else:
        for entry in given:
            print_entry(entry)
    return 0


def run(args: argparse.Namespace, context: Context) -> int:
    """Set or remove the mark `always_load`; without a name, list the entries that have it."""
    if args.name is None:
        return _list(args, context)
    reviewer = Reviewer(context.settings, context.store)
    entry = find_entry(context.store, args.name)
    done = mark_always(reviewer, entry.path, not args.off, entry.content_hash)
    if not done.was_so:
        request_indexing(context.settings)
    print_result(args, {"path": done.path, "always": not args.off, "changed": not done.was_so}, done.said)
    if not done.was_so and not args.json:
        note(f"memory: `memory review --undo {shlex.quote(done.path)}` takes it back")
    return 0
