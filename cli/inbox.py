"""`memory vault inbox`: list what was inferred once, or triage it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ..pipelines.likeness import statement_of
from ..pipelines.triage import TriageStep
from ..runtime.days import local_today, parse_local_day
from ..runtime.layout import INBOX
from ..services.paging import likeliest_first
from ..services.reviewing import Reviewer
from ..services.triaging import TriageOutcome, plan_triage, run_triage
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import Entry
from .arguments import refuse_options_of_others
from .context import Context
from .output import add_json, counted, cut, in_line, note, print_json
from .review import list_waiting

EPILOG = """example:
  memory vault inbox triage              shows the steps: promote, merge, expire
  memory vault inbox triage --yes        what the worker does once a day
"""

STEP_CHARACTERS = 160
_STEPS = {"promote": "promote: seen often enough", "merge": "merge: these say the same"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault inbox`."""
    parser.add_argument("action", nargs="?", default="list", choices=("list", "triage"))
    parser.add_argument("--dry-run", action="store_true", help="triage: show the steps; change nothing (the default)")
    parser.add_argument("--yes", action="store_true", help="triage: carry the steps out")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List or triage the inbox."""
    refuse_options_of_others(args, {"--dry-run": ("triage",), "--yes": ("triage",)})
    reviewer = Reviewer(context.settings, context.store)
    if args.action == "list":
        return _list(args, context, reviewer)
    for problem in reviewer.waiting_and_unreadable(INBOX)[1].values():
        note(f"memory: {problem}")
    steps, entries = plan_triage(context.settings, reviewer)
    if args.dry_run or not args.yes:
        return _show(args, steps, entries)
    results = run_triage(context.settings, reviewer)
    if results:
        request_indexing(context.settings)
    if args.json:
        print_json([{**_as_json(result.step), "result": result.result, "now": result.path} for result in results])
    elif results:
        for result in results:
            _print(result)
        note("memory: `memory undo --last` takes it back")
    else:
        print("the inbox is in order")
    return 0


def _list(args: argparse.Namespace, context: Context, reviewer: Reviewer) -> int:
    waiting, unreadable = reviewer.waiting_and_unreadable(INBOX)
    list_waiting(args, context, likeliest_first(waiting), unreadable, is_inbox=True)
    if waiting and not args.json:
        days = [day for entry in waiting if (day := parse_local_day(entry.surfaced_at or entry.created))]
        age = (local_today() - min(days)).days if days else 0
        oldest = f"the oldest is from {counted(age, 'day')} ago; " if age > 0 else ""
        note(
            f"memory: {oldest}one comes with a prompt only if it answers strongly, marked as not confirmed. "
            "Seen again, it becomes a proposal; to decide now: memory review --inbox"
        )
    return 0


def _show(args: argparse.Namespace, steps: list[TriageStep], entries: Mapping[str, Entry]) -> int:
    if args.json:
        print_json([_as_json(step) for step in steps])
    elif steps:
        for step in steps:
            print(_describe_step(step, entries))
        note("memory: nothing was changed; --yes does it, as the worker does once a day")
    else:
        print("the inbox is in order")
    return 0


def _describe_step(step: TriageStep, entries: Mapping[str, Entry]) -> str:
    what = f"expire: {step.why}" if step.why else _STEPS[step.name]
    notes = (f"    {in_line(p)}\n        {cut(statement_of(entries[p].body), STEP_CHARACTERS)}" for p in step.paths)
    return "\n".join([what, *notes])


def _as_json(step: TriageStep) -> dict[str, Any]:
    why = {"why": step.why} if step.why else {}
    return {"step": step.name, "paths": list(step.paths), **why}


def _print(result: TriageOutcome) -> None:
    where = f" -> {result.path}" if result.path else ""
    print(in_line(f"{result.result}: {', '.join(result.step.paths)}{where}"))
