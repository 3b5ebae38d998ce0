"""`memory vault scrub`: find secrets and personal data on disk, and replace them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import UsageError
from ..services.scrubbing import Found, scrub_everything
from ..tasks.queue.enqueue import request_indexing
from .context import Context
from .output import add_json, counted, note, print_json, print_table
from .terminal_safety import write_bytes

EPILOG = """example:
  memory vault scrub                    what is where, by kind
  memory vault scrub --apply
  git diff | memory vault scrub --stdin

In a note that you wrote, only secrets, cards and bank accounts are replaced; elsewhere personal data, too.
"""

MOST_NAMED = 10
"""How many files that could not be cleaned get a line each."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault scrub`."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--apply", action="store_true", help="replace what is found")
    how.add_argument("--stdin", action="store_true", help="scrub standard input to standard output; touch no file")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 1 if something could not be replaced."""
    if args.stdin:
        if args.json:
            raise UsageError("--stdin prints the text itself: leave --json out")
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        scrubbed = scrub(text, Policy.FULL)
        if sys.stdout.isatty():
            sys.stdout.write(scrubbed)
        else:  # Only what was replaced differs from the input bytes.
            write_bytes(scrubbed.encode("utf-8", "surrogateescape"))
        return 0
    found = scrub_everything(context.settings, context.store, apply=args.apply)
    if args.apply and found:
        request_indexing(context.settings)
    problems = [one for one in found if one.problem]
    if args.json:
        print_json({"applied": args.apply, "found": [one.__dict__ for one in found]})
    elif found:
        print_table(
            ("where", "name", "found"),
            [(one.where, one.name, ", ".join(f"{n} {kind}" for kind, n in one.kinds.items())) for one in found],
        )
        total = sum((Counter(one.kinds) for one in found), Counter[str]())
        places = counted(sum(1 for one in found if one.kinds), "place")
        outcome = ", replaced except in these places:" if problems else ", replaced"
        note(f"memory: {sum(total.values())} in {places}{outcome * args.apply}")
        if not args.apply:
            note("memory: nothing was changed; --apply replaces them")
    else:
        print("nothing was found")
    _print_problems(problems)
    return 1 if problems else 0


def _print_problems(problems: Sequence[Found]) -> None:
    """Print one line for each file; a note and its index entry count as one."""
    lines = {one.name: f"memory: {_line(one)}" for one in reversed(problems)}
    named = list(reversed(lines.values()))
    for line in named[:MOST_NAMED]:
        note(line)
    if (more := len(named) - MOST_NAMED) > 0:
        note(f"memory: and {more} more (--json names all)")


def _line(one: Found) -> str:
    problem = one.problem or ""
    return problem if problem.startswith(one.name) else f"{one.name}: {problem}"
