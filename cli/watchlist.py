"""`memory skills watchlist`: list patterns to adopt, and decide on them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from ..pipelines.scrub import Policy, scrub
from ..pipelines.watchlist import DEFER_DAYS, DISMISS, PROMOTE, Decision, is_archived
from ..runtime.errors import EntryInvalid, UsageError
from ..services.discovery.watchlist import Watchlist, is_deferred
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import Entry
from .arguments import refuse_options_of_others
from .context import Context
from .output import add_json, note, print_json, print_result, print_rows
from .terminal import LEAVE, read_key

EPILOG = """example:
  memory skills watchlist                                        what waits
  memory skills watchlist review                                 one key for each: promote, dismiss, defer, skip
  memory skills watchlist dismiss SOURCE PATTERN --reason 'we have one'
  memory skills watchlist defer SOURCE PATTERN --until 2030-08-01
"""
BELONGS = {"--until": ("defer",), "--reason": ("promote", "dismiss", "defer"), "--all": ("list",)}
NOTHING = "nothing waits on the watchlist"
KEYS = "[p]romote  [d]ismiss  de[f]er  [s]kip  [q]uit "


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory skills watchlist`."""
    parser.add_argument("action", nargs="?", default="list", choices=("list", "review", "promote", "dismiss", "defer"))
    parser.add_argument("source", nargs="?", help="as `list` shows it")
    parser.add_argument("pattern", nargs="?", help="as `list` shows it")
    parser.add_argument("--until", metavar="YYYY-MM-DD", help=f"defer: the day (in {DEFER_DAYS} days)")
    parser.add_argument("--reason", help="why, for the note")
    parser.add_argument("--all", action="store_true", help="list: also what is decided, deferred and archived")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List, or decide."""
    refuse_options_of_others(args, BELONGS)
    watchlist = Watchlist(context.settings, context.store)
    today = context.store.today()
    if args.action in ("list", "review"):
        if args.source is not None:
            raise UsageError(f"`memory skills watchlist {args.action}` takes no name")
        if args.action == "review":
            return _review(args, context, watchlist, today)
        return _list(args, watchlist.all() if args.all else watchlist.waiting(today), today)
    source, pattern = _names(args)
    decision = _decision(args, today)
    path = watchlist.find(source, pattern)
    reason = scrub(args.reason, Policy.SECRETS).on_one_line() if args.reason else None
    decided = watchlist.decide(path, decision, reason=reason, run=watchlist.journal.new_run("watchlist"))
    request_indexing(context.settings)
    if decision.until is not None and decision.until <= today:
        note(f"memory: {decision.until} is not in the future: the pattern still waits")
    value = {"action": decided.verdict, "source": source, "slug": pattern, "path": decided.path}
    return print_result(args, value, decided.told)


def _names(args: argparse.Namespace) -> tuple[str, str]:
    if args.source is not None and args.pattern is None and args.source.count("/") == 1:
        source, _, pattern = args.source.partition("/")
        return source, pattern
    if args.source is None or args.pattern is None:
        raise UsageError(
            f"which one? memory skills watchlist {args.action} SOURCE PATTERN, as `memory skills watchlist` shows them"
        )
    return args.source, args.pattern


def _decision(args: argparse.Namespace, today: date) -> Decision:
    if args.action == "promote":
        return PROMOTE
    if args.action == "dismiss":
        return DISMISS
    if args.until is None:
        return Decision("deferred", today + timedelta(days=DEFER_DAYS))
    try:
        return Decision("deferred", date.fromisoformat(args.until))
    except ValueError as error:
        raise EntryInvalid(f"--until {args.until!r} is not a day: write YYYY-MM-DD") from error


def _list(args: argparse.Namespace, notes: Sequence[Entry], today: date) -> int:
    value = {"count": len(notes), "entries": [_as_json(entry, today) for entry in notes]}
    rows = [(entry.confidence or "-", *_parts(entry), _status(entry, today), entry.title) for entry in notes]
    return print_rows(args, value, ("confidence", "source", "pattern", "status", "about"), rows, NOTHING)


def _as_json(entry: Entry, today: date) -> dict[str, Any]:
    source, slug = _parts(entry)
    return {
        "source": source,
        "slug": slug,
        "title": entry.title,
        "confidence": entry.confidence,
        "status": _status(entry, today),
        "deferred_until": entry.extra.get("deferred_until"),
        "path": entry.path,
    }


def _parts(entry: Entry) -> tuple[str, str]:
    *_, source, name = entry.path.split("/")
    return source, name.removesuffix(".md")


def _status(entry: Entry, today: date) -> str:
    if is_archived(entry.path):
        return "dismissed"
    if entry.extra.get("promoted"):
        return "promoted"
    return "deferred" if is_deferred(entry, today) else entry.effective_status


def _review(args: argparse.Namespace, context: Context, watchlist: Watchlist, today: date) -> int:
    waiting = watchlist.waiting(today)
    if not waiting:
        return print_result(args, {"decided": 0, "skipped": 0}, NOTHING)
    if not sys.stdin.isatty():
        note(
            f"memory: standard input is not a TTY: {len(waiting)} skipped; "
            "use `memory skills watchlist promote` (or dismiss, defer) SOURCE PATTERN"
        )
        if args.json:
            print_json({"decided": 0, "skipped": len(waiting)})
        return 0
    decided = 0
    run_name = watchlist.journal.new_run("watchlist")
    try:
        for number, entry in enumerate(waiting):
            print(f"\n[{number + 1}/{len(waiting)}] {'/'.join(_parts(entry))}")
            print("\n".join(f"    {line}" for line in entry.body.splitlines()))
            answer = _ask(watchlist, entry, today, run_name)
            if answer == "quit":
                break
            decided += answer != "skip"
    finally:
        if decided:
            request_indexing(context.settings)
    return 0


def _ask(watchlist: Watchlist, entry: Entry, today: date, run_name: str) -> str:
    decisions: dict[str, Decision] = {
        "p": PROMOTE,
        "d": DISMISS,
        "f": Decision("deferred", today + timedelta(days=DEFER_DAYS)),
    }
    while True:
        key = read_key(KEYS)
        if key in LEAVE:
            return "quit"
        if key == "s":
            return "skip"
        if key in decisions:
            result = watchlist.decide(entry.path, decisions[key], run=run_name)
            print(result.told)
            return result.verdict
