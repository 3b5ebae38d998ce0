"""`memory review --digest`: the lines of what old sessions said, one key each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from ..pipelines.review import Approve, Reject, parse_decision
from ..runtime.errors import MemoryVaultError, UsageError
from ..runtime.layout import CORPUS_DIGEST
from ..services.corpus.digest_decisions import LEFT, decide_line, lines_to_decide
from ..services.reviewing import Reviewer
from ..tasks.queue.enqueue import request_indexing
from .context import Context
from .output import counted, print_json, print_table
from .review_steps import Steps, summarize
from .terminal import read_key

KEYS = "[a]pprove  [r]eject  [s]kip  [u]ndo  [q]uit "
DECISIONS: Mapping[str, Approve | Reject] = {"a": Approve(), "r": Reject()}
WHY_LEFT = " (`memory review` shows what it would replace)"
_LEAVE = frozenset({"q", "\x03", "\x04", ""})
_SKIP = frozenset({"s", "\r", "\n", " "})


def line_decision(item: str, words: str) -> Approve | Reject:
    """The decision on a line of the digest in `--decide ^KEY=WORDS`. Raises UsageError."""
    decision = parse_decision(words)
    if not isinstance(decision, Approve | Reject):
        raise UsageError(f"--decide {item!r}: a line of the digest is approved or rejected")
    return decision


def review_digest(args: argparse.Namespace, reviewer: Reviewer, context: Context) -> int:
    """List the lines, or ask for one after the other."""
    lines = lines_to_decide(reviewer.store)
    if args.json:
        print_json([{"key": f"^{key}", "says": says} for key, says in lines.items()])
    elif not lines:
        print(f"{CORPUS_DIGEST} lists nothing")
    elif args.list:
        print_table(("key", "says"), [(f"^{key}", says) for key, says in lines.items()])
    elif not sys.stdin.isatty():
        raise UsageError(
            f"{counted(len(lines), 'line')} of {CORPUS_DIGEST} can be decided on, but standard input is no terminal: "
            "use --list, and --decide ^KEY=approve (or reject)"
        )
    else:
        _ask(lines, reviewer, context)
    return 0


def _ask(lines: Mapping[str, str], reviewer: Reviewer, context: Context) -> None:
    run = reviewer.journal.new_run("review")
    steps: Steps[int] = Steps(reviewer, run)
    keys = list(lines)
    changed = False
    at = 0
    while at < len(keys):
        print(f"\n[{at + 1}/{len(keys)}] {lines[keys[at]]}")
        pressed = read_key(KEYS)
        if pressed in _LEAVE:
            break
        if pressed == "u":
            place, undone = steps.go_back()
            changed = changed or undone
            at = at if place is None else place
        elif pressed in _SKIP:
            steps.skipped(at)
            at += 1
        elif pressed not in DECISIONS:
            print("press one of: a r s u q")
        else:
            try:
                decided = decide_line(context.settings, reviewer, keys[at], DECISIONS[pressed], run=run)
                print(f"{decided.verdict}: {decided.path}{WHY_LEFT if decided.verdict == LEFT else ''}")
                steps.decided(at, decided.verdict)
                changed = True
            except MemoryVaultError as error:
                print(f"not done: {error}")
                steps.skipped(at)
            at += 1
    if changed:
        request_indexing(context.settings)
    print(summarize(steps.verdicts, counted(len(lines_to_decide(reviewer.store)), "line")))
