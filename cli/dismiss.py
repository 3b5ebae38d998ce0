"""`memory dismiss`: mark a wrong entry, so that it is neither recalled nor proposed again."""

from __future__ import annotations

import argparse
import shlex

from ..services.entry_decisions import dismiss, is_dismissed, require_dismissible
from ..services.entry_names import find_entry
from ..services.reviewing import Reviewer
from ..tasks.queue.enqueue import request_indexing
from ..vault.frontmatter import require_sound
from .context import Context
from .list_entries import print_entry
from .output import add_json, note, print_result
from .show import NAME
from .terminal import is_agreed, require_word

EPILOG = """example:
  memory dismiss tabs
  memory review --undo tabs        takes it back

The note stays where it is, with `status: dismissed`; what waits for a decision is rejected.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory dismiss`."""
    parser.add_argument("name", metavar="NAME", help=NAME)
    parser.add_argument("--yes", action="store_true", help="do not ask; without a terminal nothing is done before this")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Show the entry, ask unless --yes is given, and dismiss it."""
    reviewer = Reviewer(context.settings, context.store)
    entry = find_entry(context.store, args.name)
    if is_dismissed(entry):
        value = {"path": entry.path, "status": entry.effective_status, "changed": False}
        return print_result(args, value, f"{entry.path} is {entry.effective_status} already")
    require_sound(context.store.read_bytes(entry.path).decode("utf-8", "replace"), entry.path)
    require_dismissible(entry)
    if not args.yes:
        require_word(args, f"dismisses {entry.path}")
        print_entry(entry)
        if not is_agreed("dismiss this? [y/N] "):
            note("memory: nothing was changed")
            return 1
    done = dismiss(reviewer, entry.path, entry.content_hash)
    request_indexing(context.settings)
    print_result(args, {"path": done.path, "status": done.verdict, "changed": not done.was_so}, done.said)
    if not args.json:
        note(f"memory: `memory review --undo {shlex.quote(done.path)}` takes it back")
    return 0
