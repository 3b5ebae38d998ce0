"""`memory skills index`: write one entry for each skill on this machine."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from ..runtime.errors import UsageError
from ..runtime.layout import home_folder
from ..services.skills import GIVEN, all_roots, index_skills, known_roots, scan
from ..tasks.queue.enqueue import request_indexing
from .context import Context, current_folder
from .output import add_json, counted, note, print_result
from .path_arguments import named_folder, named_path

EPILOG = """example:
  memory skills index                        plugins, your own skills, the projects you worked in
  memory skills index --path ~/src/skills    that folder too, from now on
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory skills index`."""
    parser.add_argument(
        "--path", type=Path, action="append", default=[], metavar="DIR", help="also index this folder; may be repeated"
    )
    parser.add_argument(
        "--forget", type=Path, action="append", default=[], metavar="DIR", help="no longer index this folder"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would change; change nothing")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Read the skills and update their entries; warnings do not change the exit code."""
    settings = context.settings
    _ = context.state
    named = [named_folder(path) for path in args.path]
    forgotten = [named_path(path) for path in args.forget]
    if both := next((folder for folder in forgotten if folder in named), None):
        raise UsageError(f"{both} is named by --path and by --forget: give one of the two")
    known = known_roots(settings)
    if unknown := next((folder for folder in forgotten if known.get(str(folder)) is None), None):
        raise UsageError(f"{unknown} is none of the folders that were named by --path")
    if not args.dry_run:
        for folder in forgotten:
            known.forget(str(folder))
        for folder in named:
            known.set(str(folder), GIVEN)
    roots = all_roots(settings, current_folder(), also=named, without=forgotten, remember=not args.dry_run)
    found = scan(roots, home_folder(context.env))
    store = context.store
    with store.lock():
        result = index_skills(found, store, dry_run=args.dry_run)
    if result.changed and not args.dry_run:
        request_indexing(settings)
    for warning in result.warnings:
        note(f"memory: warning: {warning}")
    counts = asdict(result)
    names = ("written", "updated", "restored", "archived", "unchanged")
    told = ", ".join(f"{counts[name]} {name}" for name in names if counts[name]) or "nothing to do"
    told = f"{counted(len(found.skills), 'skill')}: {told}" + (" (dry run)" if args.dry_run else "")
    return print_result(args, {"skills": len(found.skills), "dry_run": args.dry_run, **counts}, told)
