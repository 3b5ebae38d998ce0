"""`memory always`: give an entry to every session at its start."""

from __future__ import annotations

import argparse
import shlex

from ..services.entry_names import find_entry
from ..services.marking import mark_always
from ..services.reviewing import Reviewer
from ..tasks.queue.enqueue import request_indexing
from .context import Context
from .output import add_json, note, print_json
from .show import NAME

EPILOG = """example:
  memory always short-answers
  memory always --off short-answers

What a session's start has no room for (`recall.core_words`) is named in `memory health`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory always`."""
    parser.add_argument("name", metavar="NAME", help=NAME)
    parser.add_argument("--off", action="store_true", help="do not give it to every session any more")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Set or remove the mark `always_load`."""
    reviewer = Reviewer(context.settings, context.store)
    _ = context.state
    entry = find_entry(context.store, args.name)
    done = mark_always(reviewer, entry.path, not args.off, entry.content_hash)
    if not done.was_so:
        request_indexing(context.settings)
    if args.json:
        print_json({"path": done.path, "always": not args.off, "changed": not done.was_so})
    else:
        print(done.said)
        if not done.was_so:
            note(f"memory: `memory review --undo {shlex.quote(done.path)}` takes it back")
    return 0
