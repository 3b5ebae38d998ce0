"""`memory promote`: an idea becomes a project."""

from __future__ import annotations

import argparse

from ..services.ideas.ledger import promote
from ..services.journal import Journal
from ..tasks.queue.enqueue import request_indexing
from .context import Context
from .output import add_json, print_json

EPILOG = """example:
  memory promote idea retry-dashboard
  memory promote idea retry-dashboard --as payments-dashboard

The idea's folder moves to personal-projects/<name>/ with all that lies in it; its section in Ideas.md says so.
"""

_ANNOTATION = {
    "written": "Ideas.md says so",
    "no_ideas_file": "there is no Ideas.md",
    "no_section": "Ideas.md has no section of it",
    "not_writable": "Ideas.md could not be written and does not say so",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory promote`."""
    parser.epilog = EPILOG
    parser.add_argument("what", choices=("idea",))
    parser.add_argument("slug", help="the idea, as `memory idea list` names it")
    parser.add_argument("--as", dest="name", metavar="NAME", default=None, help="name of the project (default: slug)")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Promote it; where it is now is printed."""
    store = context.store
    done = promote(context.settings, Journal(context.state, store), args.slug, name=args.name)
    request_indexing(context.settings)
    if args.json:
        print_json({"promoted": True, "slug": done.slug, "path": done.path, "ideas_annotation": done.annotation})
    else:
        print(f"{context.vault / done.path}\n{_ANNOTATION[done.annotation]}")
    return 0
