"""`memory undo`: revert what MemoryVault wrote by itself."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace

from ..runtime.errors import UsageError
from ..runtime.large_change import forget_large_change
from ..services.journal import AUTOMATIC, BACKFILL, Journal
from ..services.tombstones import NOTE
from ..services.undoing import Selector, Undo, UndoPlan, Why
from ..tasks.queue.enqueue import request_indexing
from .arguments import past_time
from .context import Context
from .output import add_json, counted, in_line, note, print_json
from .terminal import is_agreed, require_word

EPILOG = """example:
  memory undo --last --dry-run
  memory undo --session 3f0c6a52
  memory undo --since 2h
  memory undo --of migrate --yes

A note that was changed since is named and stays. In an agent's shell it only shows the list (--dry-run).
"""

_DONE = {"remove": "removed", "restore": "put back", "leave": "left", "gone": "gone"}
_WILL = {**_DONE, "remove": "remove", "leave": "leave"}
AGENT = "agent"
"""Value of `--of` for what agents wrote."""
MOST_LISTED = 20
"""How many notes are shown before the question at a terminal."""
_RUNS = {
    BACKFILL: "a backfill of old sessions (memory reflect corpus)",
    "reflect": "a reflection",
    AGENT: "a proposal of an agent",
}
"""First part of a run's name -> its description; other runs are described by that part."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory undo`."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last",
        action="store_true",
        help="the last run of which anything can be taken back, a whole backfill too (the default)",
    )
    which.add_argument(
        "--session", metavar="ID", help="all that was mined from this session (the id, or how it begins)"
    )
    which.add_argument("--since", metavar="TIME", help="all since then: 90m, 2h, 3d, 2026-07-01, 2026-07-01T10:00")
    parser.add_argument("--of", choices=sorted(AUTOMATIC), help="only what this wrote")
    parser.add_argument("--dry-run", action="store_true", help="show what would be taken back; change nothing")
    parser.add_argument(
        "--yes", action="store_true", help="do not ask; without a terminal nothing is taken back before this"
    )
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Show what would be reverted, ask unless --yes is given, and revert it."""
    store = context.store
    undo = Undo(store, Journal(context.state, store))
    selector = _selector(args, undo)
    plan = undo.plan(selector)
    if args.dry_run or not plan.changes:
        return _print(plan, args, done=False)
    if not args.yes:
        _print(plan, args, done=False, most=MOST_LISTED if sys.stdin.isatty() else None)
        require_word(args, "takes this back")
        if not is_agreed("take this back? [y/N] "):
            note("memory: nothing was changed")
            return 1
    shown = plan
    if selector.last:  # The run that was shown, although the worker may have written since.
        selector = replace(selector, last=False, run=shown.run)
    plan = undo.carry_out(selector)
    plan.is_earlier = shown.is_earlier
    if args.of is not None:
        forget_large_change(context.state.markers, args.of)
    request_indexing(context.settings)
    status = _print(plan, args, done=True)
    if plan.lost_of and not args.json:
        note(f"memory: it is not written again when the same sessions are read again; {NOTE} says how to allow it")
    return status


def _print(plan: UndoPlan, args: argparse.Namespace, *, done: bool, most: int | None = None) -> int:
    if args.json:
        print_json(
            {
                "done": done,
                "steps": [asdict(step) for step in plan.steps],
                "left": plan.left,
                **({"run": plan.run, "at": plan.at} if plan.run else {}),
                **({"is_earlier": True} if plan.is_earlier else {}),
                "sessions": plan.sessions,
            }
        )
        return 0
    if not plan.steps:
        print("there is nothing to take back")
        note("memory: what you wrote or decided yourself is not touched; `memory review --undo` takes back a decision")
    elif plan.run:
        print(_what_ran(plan))
        if plan.is_earlier:
            note("memory: what later runs wrote is left: it was decided on, moved or changed since")
    for step in plan.steps[:most]:
        print(f"{(_DONE if done else _WILL)[step.step]}: {in_line(step.path)}")
        if step.why is not Why.WRITTEN:  # The usual reason is not printed.
            print(f"    {step.why}")
    if most is not None and len(plan.steps) > most:
        print(f"and {counted(len(plan.steps) - most, 'more note')}; --dry-run lists all")
    if plan.left:
        note(f"memory: {counted(plan.left, 'note stays', 'notes stay')}")
    is_last = args.session is None and args.since is None
    if is_last and plan.steps and (args.yes or not done):  # Otherwise it was printed before the question.
        which = "this run" if plan.is_earlier else "the last run"
        note(f"memory: this is {which} only; --since 1h or --session ID takes back more")
    return 0


def _what_ran(plan: UndoPlan) -> str:
    notes = counted(len(plan.steps), "note")
    of = f" of {counted(plan.sessions, 'session')}" if plan.sessions else ""
    name = plan.run.partition(":")[0]
    which = "an earlier run" if plan.is_earlier else "the last run"
    return f"written by {which}, {_RUNS.get(name, name)}, {plan.at.replace('T', ' ')}: {notes}{of}"


def _selector(args: argparse.Namespace, undo: Undo) -> Selector:
    if args.session is not None:
        if not args.session.strip():
            raise UsageError("which session? give its id")
        session = undo.session_called(args.session.strip(), args.of)
        if session != args.session.strip():
            note(f"memory: session {session}")
        return Selector(session=session, actor=args.of)
    if args.since is not None:
        return Selector(since=past_time(args.since), actor=args.of)
    return Selector(last=True, actor=args.of)
