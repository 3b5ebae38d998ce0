"""`memory reflect corpus`: have the worker mine old sessions."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from ..console.times import size
from ..runtime.days import SECONDS_PER_DAY
from ..runtime.errors import QueueUnavailable, SettingsError
from ..runtime.process_lock import lock_holder
from ..runtime.settings import Settings
from ..services.completion import completer_of
from ..services.corpus.backfill import (
    KIND,
    BackfillRun,
    Plan,
    Progress,
    cursors_of,
    enqueue_corpus,
    plan_corpus,
    progress_of,
    queued_count,
)
from ..services.corpus.estimate import model_cost
from ..services.pausing import pause_notice, why_nothing_starts
from ..services.tombstones import forget_removals, removed_evidence
from ..sources.transcripts.corpus import Transcript, claude_cleanup_days
from ..tasks.queue.enqueue import open_ledger
from .arguments import past_time
from .context import Context
from .output import counted, note, print_json
from .path_arguments import named_folder
from .progress import BAR
from .terminal_safety import line_columns, redraw

WARN_DAYS = 7
"""Days before the host deletes a transcript from which it is warned of."""
OPTIONS = ("--root", "--since", "--project", "--execute", "--reset")
CAPS = ("session_token_cap", "daily_token_cap")
POLL_SECONDS = 0.2
NAMED = 3
"""How many unreadable files are named; the rest is counted."""
NO_WORKER = "no worker runs now: the sessions are mined once one runs (memory service up, or memory service worker)"


def configure(group: Any) -> None:
    """Add the arguments of `corpus` alone."""
    group.add_argument("--root", type=Path, metavar="DIR", help="transcripts in this folder, not the hosts' own")
    group.add_argument("--since", metavar="DATE", help="only those written to since 2026-01-31, or 90d, 2w")
    group.add_argument("--project", metavar="NAME", help="only sessions of this project")
    group.add_argument(
        "--execute", action="store_true", help="mine the sessions; without it, only print what that would take"
    )
    group.add_argument(
        "--reset",
        action="store_true",
        help="with --execute: forget what was mined and what you took back, so that all is mined again",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Print what there is to mine; with --execute queue it, and show the progress on a terminal."""
    settings = context.settings
    _ = context.store  # Raises if there is no vault.
    root = named_folder(args.root) if args.root is not None else None
    since = past_time(args.since).timestamp() if args.since else None
    plan = plan_corpus(settings, root=root, since=since, project=args.project, remine=args.reset)
    ending = ending_soon(plan, settings) if root is None else []
    report = _plan_as_json(args, context, plan, ending)
    run_queued = None
    if args.execute:
        if args.reset:
            _forget_mined(context)
        run_queued = enqueue_corpus(settings, plan, root=root)
        report["run"] = run_queued.name if run_queued is not None else ""
    elif settings.reflection.miner != "local":
        report["requests"], report["tokens"] = model_cost(plan, settings)
        report |= {name: getattr(settings.reflection, name) for name in ("miner", *CAPS)}
    if args.json:
        print_json(report)
        return 0
    _print_plan(plan, report, ending)
    if args.reset:
        print(_describe_reset(report, "forgotten" if args.execute else "--reset would forget"))
    if not args.execute and report["already_queued"] < len(plan.to_mine):
        print("nothing was done: add --execute")
    elif not plan.to_mine:
        return 0
    elif waits := pause_notice(settings) or (None if lock_holder(settings.state.worker_lock) else NO_WORKER):
        print(waits)
    elif run_queued is not None and sys.stderr.isatty():
        return _follow(settings, run_queued)
    elif run_queued is not None:
        print(f"the worker does it in the background (memory jobs list --kind {KIND})")
    return 0


def _plan_as_json(
    args: argparse.Namespace, context: Context, plan: Plan, ending: list[tuple[Transcript, float]]
) -> dict[str, Any]:
    """What there is to mine, for `--json` and `_print_plan`.

    Raises SettingsError with --execute if the miner's settings are wrong.
    """
    settings = context.settings
    report: dict[str, Any] = {
        "dry_run": not args.execute,
        "to_process": len(plan.to_mine),
        "already_queued": queued_count(settings, plan),
        "bytes": plan.bytes,
        "skipped_already_processed": plan.known,
        "live": plan.live,
        "headless": plan.headless,
        "unreadable": len(plan.unread),
        "unreadable_files": [str(path) for path, _ in plan.unread],
        "left_out": plan.left_out,
        "deleted_soon": [str(each.path) for each, _ in ending],
    }
    if args.reset:
        report["forgets"] = len(cursors_of(settings).all())
        report["forgets_taken_back"] = len({session for session, _ in removed_evidence(context.store)})
    try:
        # A session that was mined without the model is not mined again, so a fault must be seen before.
        completer_of(settings)
    except SettingsError as error:
        if args.execute:
            raise
        report["miner_problem"] = str(error)
    return report


def _forget_mined(context: Context) -> None:
    with open_ledger(context.settings):
        pass  # If nothing can be queued, nothing is forgotten.
    # Tombstones first: in a vault that is away or read-only nothing is forgotten.
    forget_removals(context.store)
    cursors_of(context.settings).forget()


def _describe_reset(report: Mapping[str, Any], what: str) -> str:
    mined, taken_back = report["forgets"], report["forgets_taken_back"]
    forgets = [f"that {counted(mined, 'session was mined', 'sessions were mined')}"] if mined else []
    forgets += [f"what you took back of {counted(taken_back, 'session')}"] if taken_back else []
    if not forgets:
        return "--reset has nothing to forget: no session was mined"
    return f"{what} {' and '.join(forgets)}; what is in the vault stays"


def ending_soon(plan: Plan, settings: Settings) -> list[tuple[Transcript, float]]:
    """Transcripts that Claude Code deletes soon, with the days left, soonest first. Other hosts delete none."""
    keep = claude_cleanup_days(settings.hosts.claude_config_dir)
    now = time.time()
    left = [(each, keep - (now - each.modified) / SECONDS_PER_DAY) for each in plan.to_mine if each.host == "claude"]
    return sorted(((each, days) for each, days in left if days < WARN_DAYS), key=lambda pair: (pair[1], pair[0].path))


def _print_plan(plan: Plan, report: dict[str, Any], ending: list[tuple[Transcript, float]]) -> None:
    hosts = Counter(each.host for each in plan.to_mine)
    kinds = ", ".join(f"{count} {host}" for host, count in sorted(hosts.items()))
    sessions = counted(len(plan.to_mine), "session")
    print(f"{sessions} to mine, {size(plan.bytes)}" + (f" ({kinds})" if kinds else ""))
    if queued := report["already_queued"]:
        print(f"{queued if queued < len(plan.to_mine) else 'all'} of them wait for the worker already")
    reasons = (
        (plan.known, "mined already"),
        (plan.live, "left to their own reflection"),
        (plan.headless, "empty or run by a program"),
        (plan.left_out, "left out by --since, --project or a project's .memoryvault"),
        (len(plan.unread), "unreadable"),
    )
    if any(count for count, _ in reasons):
        print("not counted: " + ", ".join(f"{count} {why}" for count, why in reasons if count))
    if plan.unread:
        named = ", ".join(f"{path} ({why})" for path, why in plan.unread[:NAMED])
        rest = len(plan.unread) - NAMED
        note(f"memory: unreadable: {named}" + (f" and {rest} more" if rest > 0 else ""))
    if plan.known and not plan.to_mine:
        print("--reset --execute forgets what was mined, so that all is mined again")
    if "tokens" in report:
        requests = counted(report["requests"], "request")
        print(f"{report['miner']} is asked too: about {requests}")
        most = f"at most {report['session_token_cap']:,}" if report["session_token_cap"] else "no cap"
        print(f"at most {counted(report['tokens'], 'token')} ({most} for a session)")
        cap = report["daily_token_cap"]
        if cap and report["tokens"] > cap:
            share = cap / report["tokens"]
            print(f"the cap of {cap:,} a day pays for {share:.0%} of that: what is beyond it is mined by rules alone")
        else:
            print(f"within the cap of {cap:,} a day" if cap else "there is no daily cap")
    if problem := report.get("miner_problem"):
        note(f"memory: warning: {problem}; before that nothing is mined")
    if ending:
        first, days_left = ending[0]
        when = "at its next start" if days_left <= 0 else f"in {counted(max(1, round(days_left)), 'day')}"
        note(
            f"memory: warning: Claude Code deletes {len(ending)} of them within {WARN_DAYS} days, the first {when} "
            f"({first.path}): mine them before that, or raise cleanupPeriodDays in its settings.json"
        )


def follow_mining(settings: Settings, run: BackfillRun, most_seconds: float, *, quiet: bool = False) -> Progress:
    """Wait until the run is mined or `most_seconds` are over, with a bar on a terminal; the worker goes on by itself.

    Ctrl-C ends the wait, not the work.
    """
    progress = Progress(len(run.jobs), waiting=len(run.jobs))
    shown = not quiet and sys.stderr.isatty()
    started = time.monotonic()
    try:
        while True:
            with suppress(QueueUnavailable), open_ledger(settings) as ledger:
                progress = progress_of(ledger, run)
            seconds = time.monotonic() - started
            if shown:
                draw_mining(progress, settings, seconds)
            if progress.is_done or seconds >= most_seconds:
                break
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        note(f"\nmemory: the worker goes on by itself (memory jobs list --kind {KIND}; memory jobs pause {KIND})")
    else:
        if shown:
            note("")
    return progress


def draw_mining(progress: Progress, settings: Settings, seconds: float) -> None:
    """Draw the mining bar on stderr's line, with the reason if it does not move. `seconds`: since the start."""
    share = progress.finished / max(progress.sessions, 1)
    said = f" {share:4.0%} {progress.finished}/{progress.sessions} sessions"
    if why_nothing_starts(settings) is not None:
        said += ", paused (memory resume)"
    elif progress.paused:
        said += f", paused (memory jobs resume {KIND})"
    elif lock_holder(settings.state.worker_lock) is None:
        said += ", no worker runs (memory service up)"
    said += f", {seconds:.0f} s"
    width = max(0, min(BAR, line_columns() - len(said) - len("mining []")))
    redraw((f"mining [{'#' * int(share * width):<{width}}]" if width else "mining") + said)


def _follow(settings: Settings, run: BackfillRun) -> int:
    """Show a bar until the run ends, then what was found; return the exit code."""
    progress = follow_mining(settings, run, inf)
    if not progress.is_done:
        return 0  # The user ended the bar.
    if progress.failed:
        note(f"memory: {progress.failed} could not be mined: memory jobs list --kind {KIND} --state dead")
    print(_describe_outcome(progress))
    return 1 if progress.failed else 0


def _describe_outcome(progress: Progress) -> str:
    told = {
        "saved": "saved",
        "for_review": "put to you (memory review)",
        "ideas": "among your ideas (memory idea list)",
        "inboxed": "in the inbox (memory review --inbox)",
        "strengthened": "said again",
        "no_room": "ideas left out (at most so many wait)",
    }
    counts = Counter(progress.found)
    counts.update(for_review=-counts["made_room"], inboxed=counts["made_room"])
    found = [f"{counts[name]} {what}" for name, what in told.items() if counts[name]]
    cancelled = f"; {progress.cancelled} cancelled" if progress.cancelled else ""
    return "mined: " + (", ".join(found) or "nothing new in it was worth keeping") + cancelled
