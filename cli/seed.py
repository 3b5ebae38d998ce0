"""`memory import seed`: propose entries from the instruction files of repositories."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..services.seeding import DEFAULT_MOST, PlannedProposal, Seeding, SeedPlan
from ..tasks.queue.enqueue import request_indexing
from .arguments import at_least_one
from .context import Context
from .output import add_json, counted, cut, in_line, note, print_json
from .path_arguments import named_path
from .terminal import is_agreed

EPILOG = """example:
  memory import seed ~/src/shop ~/src/blog
  memory import seed --user --yes

All goes to the review (`memory review`), nothing is saved; `memory undo --of seed` takes a run back.
"""

STATEMENT_CHARACTERS = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory import seed`."""
    parser.add_argument("repository", nargs="*", type=Path, help="folders of repositories (default: this one)")
    parser.add_argument("--user", action="store_true", help="your own instructions to every agent as well")
    parser.add_argument(
        "--most", type=at_least_one, default=DEFAULT_MOST, help=f"most proposals (default {DEFAULT_MOST})"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be proposed; change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Show the proposals, and with consent put them into the review."""
    seeding = Seeding(context.settings, context.store)
    repositories = [named_path(path) for path in args.repository or ([] if args.user else [Path()])]
    plan = seeding.plan(repositories, user=args.user, most=args.most)
    agreed = not args.dry_run and (args.yes or (bool(plan.chosen) and _is_asked_and_agreed(plan, args)))
    written = seeding.carry_out(plan) if agreed else []
    if written:
        request_indexing(context.settings)
    if args.json:
        print_json(
            {
                "files": len(plan.files),
                "proposals": [_as_json(planned) for planned in plan.chosen],
                "held": len(plan.held),
                "known": plan.known,
                "unread": [{"path": str(one.path), "why": one.why} for one in plan.unread],
                "written": written,
            }
        )
        return 0
    if agreed:
        _print_written(plan, written)
    elif sys.stdin.isatty() and plan.chosen and not args.dry_run:
        return 1  # The answer was no.
    else:
        _show(plan)
        if plan.chosen:
            note("memory: nothing was written; --yes puts these into the review")
    return 0


def _is_asked_and_agreed(plan: SeedPlan, args: argparse.Namespace) -> bool:
    if args.json or not sys.stdin.isatty():
        return False
    _show(plan)
    these = counted(len(plan.chosen), "proposal")
    if is_agreed(f"put {these} into the review? [y/N] "):
        return True
    note("memory: nothing was written")
    return False


def _show(plan: SeedPlan) -> None:
    for planned in plan.chosen:
        proposal = planned.proposal
        where = f", in {planned.file.project}" if planned.file.project else ""
        line = f":{proposal.line}" if planned.file.kind != "index" else ""
        print(in_line(f"{proposal.score:4.1f}  {proposal.kind:<13}  {planned.file.name}{line}{where}"))
        print(f"      {cut(proposal.statement, STATEMENT_CHARACTERS)}")
    _print_rest(plan)


def _print_written(plan: SeedPlan, written: list[str]) -> None:
    for path in written:
        print(path)
    _print_rest(plan)
    if written:
        note("memory: decide with `memory review`; `memory undo --of seed` takes them back")


def _print_rest(plan: SeedPlan) -> None:
    if not plan.files:
        note("memory: no CLAUDE.md, AGENTS.md or decision record was found")
    elif not plan.chosen:
        note(f"memory: nothing new in {counted(len(plan.files), 'file')}")
    if plan.known:
        note(f"memory: {counted(plan.known, 'is', 'are')} in the vault already, or rejected")
    if plan.held:
        note(f"memory: {counted(len(plan.held), 'more ranks', 'more rank')} lower; the next run proposes them")
    for one in plan.unread:
        note(f"memory: left out: {one.path}: {one.why}")


def _as_json(planned: PlannedProposal) -> dict[str, object]:
    proposed = {name: getattr(planned.proposal, name) for name in ("kind", "statement", "line", "score", "why")}
    return {**proposed, "file": str(planned.file.path), "project": planned.file.project or None}
