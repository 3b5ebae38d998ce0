"""`memory vault inspect`: show receipts, which say what was recalled and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..index.receipts import (
    TRIAL_CALLER,
    WHY_NOT_SHOWN,
    count_given_before,
    describe_given_before,
    describe_nothing_shown,
    describe_told,
    read_receipts,
)
from ..runtime.errors import UsageError
from ..vault.wording import counted
from .context import Context
from .output import add_json, in_line, print_json

EPILOG = """example:
  memory vault inspect                          the last recall, and what was told at tool calls since
  memory vault inspect 3f0c6a52                 all that this session was given
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault inspect`."""
    parser.add_argument("session", nargs="?", default="last", help="a session id or its beginning, or `last`")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print receipts, oldest first."""
    receipts = read_receipts(Path(context.settings.state.receipts))
    if args.session == "last":
        own = [one for one in receipts if one.get("caller") != TRIAL_CALLER]
        # Receipts of tool calls follow that of their prompt.
        last = next((at for at in range(len(own) - 1, -1, -1) if not own[at].get("channel")), max(len(own) - 1, 0))
        chosen: Sequence[Mapping[str, Any]] = own[last:]
    else:
        chosen = [one for one in receipts if str(one.get("session") or "").startswith(args.session)]
        if not chosen:
            raise UsageError(f"no recall of a session {args.session} is on record")
    if args.json:
        print_json([{**one, "given_before": count_given_before(one)} for one in chosen])
        return 0
    if not chosen:
        print("nothing was recalled yet")
    for number, one in enumerate(chosen):
        if number:
            print()
        for line in lines_of(one, count_given_before(one)):
            print(in_line(line))
    return 0


def lines_of(one: Mapping[str, Any], given_before: int = 0) -> Iterator[str]:
    """The lines of one receipt: caller, hits with scores and reasons, milliseconds by stage.

    `given_before`: number of entries that were left out because the session had them.
    """
    injected = set(one.get("injected") or ())
    stages: Mapping[str, Any] = one.get("ms") or {}
    facts = [
        str(one.get("at", "-"))[:23].replace("T", " "),
        str(one.get("caller", "-")),
        f"session {one.get('session') or '-'}",
    ]
    if told := describe_told(one):
        yield "  ".join([*facts, f"{told}:"])
        for path in one.get("injected") or ():
            yield f"  {path}"
        yield f"  {_number(stages.get('total'), '.1f').strip()} ms"
        return
    facts += [
        f"project {one.get('project') or '-'}",
        f"a prompt of {counted(one.get('characters', 0), 'character')}",
    ]
    yield "  ".join(facts)
    if one.get("degraded"):
        yield f"  degraded: {', '.join(one['degraded'])}"
    hits: Sequence[Mapping[str, Any]] = one.get("hits") or ()
    if hits:
        yield "  score  meaning  words  answers"
    floor = one.get("floor")
    for hit in hits:
        is_given, answers = hit.get("path") in injected, hit.get("answers")
        is_below = answers is not None and floor is not None and answers < floor
        remarks = [
            *(["injected"] if is_given else []),
            *(["below the floor"] if is_below and not is_given else []),
            *(["passage " + str(hit["ordinal"] + 1)] if hit.get("ordinal") else []),
        ]
        yield f"  {_scores(hit)}  {hit.get('path')}" + (f"  ({', '.join(remarks)})" if remarks else "")
    if not hits:
        yield f"  {describe_nothing_shown(floor if isinstance(floor, int | float) else None, given_before)}"
    elif any(hit.get("answers") is not None for hit in hits):
        # Not "the best reached it": what is asked beside a session, as for research, is given what ranks below it, too.
        least = _number(floor, "+.1f")
        yield f"  floor: answers {least} (log-odds that it answers the question; a session is given what reaches it)"
    if given_before:
        yield f"  {describe_given_before(given_before)}"
    for other in one.get("refused") or ():
        yield f"  {_scores(other)}  {other.get('path')}  (not shown: {WHY_NOT_SHOWN.get(other['why'], other['why'])})"
    tokens = f"{one['tokens']} tokens, " if one.get("tokens") is not None else ""
    by_stage = ", ".join(f"{name} {_number(ms, '.1f').strip()}" for name, ms in stages.items() if name != "total")
    total = _number(stages.get("total"), ".1f").strip()
    yield f"  {tokens}{total} ms" + (f" ({by_stage})" if by_stage else "")


def _scores(hit: Mapping[str, Any]) -> str:
    return (
        f"{_number(hit.get('score'), '5.2f', 5)}  {_number(hit.get('dense'), '7.2f', 7)}  "
        f"{_number(hit.get('keyword'), '5.1f', 5)}  {_number(hit.get('answers'), '+7.1f', 7)}"
    )


def _number(value: Any, form: str, width: int = 1) -> str:
    return format(float(value), form) if isinstance(value, int | float) else "-".rjust(width)
