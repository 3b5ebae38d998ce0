"""`memory vault incident`: record a failure and what helped, and find it again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ..index.recall import recall_as_it_is
from ..services.agent_proposals import AgentProposals
from ..services.incidents import add, find, propose
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import INCIDENT
from ..vault.project import project_of
from .arguments import refuse_options_of_others
from .context import Context, current_folder
from .output import add_json, counted, in_line, note, print_json, print_result, result_path
from .save import read_body, report_proposed

EPILOG = """example:
  memory vault incident add --body-file failure.log --resolution 'Redis was not running: make services'
  make test 2>&1 | tail -50 | memory vault incident find

A report is known again by error, message and stack without times, addresses, line numbers, ids and folders; if there is
none, recall looks for something like it. `find` exits with 1 if there is nothing.
"""
MOST = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault incident`."""
    parser.add_argument("action", choices=("add", "find"))
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", help="the message and the stack")
    body.add_argument("--body-file", type=Path, help="a file with them (default: standard input)")
    parser.add_argument("--resolution", default="", help="add: what helped")
    parser.add_argument("--project", help="add: whose failure it is (default: the current folder's)")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Record a failure, or look for it."""
    refuse_options_of_others(args, {"--resolution": ("add",), "--project": ("add",)})
    if args.action == "find":
        return _find(args, context)
    project = project_of(current_folder()) if args.project is None else args.project
    if context.agent:
        proposals = AgentProposals(context.settings, context.store)
        proposed = propose(context.store, proposals, read_body(args), resolution=args.resolution, project=project)
        return report_proposed(proposed, context, args, known="it was counted once more")
    noted = add(context.store, read_body(args), resolution=args.resolution, project=project)
    request_indexing(context.settings)
    print_result(args, asdict(noted), result_path(context.vault / noted.path))
    if not noted.is_new and not args.json:
        note(f"memory: known: seen {noted.occurrences} times now")
    return 0


def _find(args: argparse.Namespace, context: Context) -> int:
    found = find(context.store, read_body(args), lambda question: _recalled(question, context), MOST)
    if args.json:
        print_json([asdict(one) for one in found])
    elif not found:
        note("memory: no incident like this is known")
    for one in [] if args.json else found:
        seen = counted(one.occurrences, "time")
        print(f"{'the same' if one.exact else 'like it'}: {one.title}  (seen {seen})\n    {in_line(one.path)}")
        if one.resolution:
            print("    what helped: " + " ".join(one.resolution.split()))
    return 0 if found else 1


def _recalled(question: str, context: Context) -> Sequence[str]:
    wanted = f"kind={INCIDENT} AND (status=active OR status=resolved)"
    answer = recall_as_it_is(
        context.state, context.vault, question, caller="command", k=MOST, filter=wanted, all_projects=True
    )
    return [str(hit["path"]) for hit in answer.hits if hit["score"] > 0]
