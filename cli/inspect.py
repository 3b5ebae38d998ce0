"""`memory vault inspect`: show receipts, which say what was recalled and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..index.receipts import (
    TRIAL_CALLER,
    WHY_NOT_SHOWN,
    append_receipt,
    count_given_before,
    describe_given_before,
    describe_nothing_shown,
    describe_told,
    marks_of,
    new_mark,
    read_marks,
    read_receipts,
)
from ..runtime.errors import UsageError
from ..services.hook_log import TRIAL_SESSION
from ..services.session_list import prompt_words
from ..vault.wording import counted
from .context import Context
from .output import add_json, in_line, note, print_json

EPILOG = """example:
  memory vault inspect                          the last recall, and what was told at tool calls since
  memory vault inspect 3f0c6a52                 all that this session was given
  memory vault inspect --useful wal-checkpoint
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault inspect`."""
    parser.add_argument("session", nargs="?", default="last", help="a session id or its beginning, or `last`")
    mark = parser.add_mutually_exclusive_group()
    mark.add_argument("--useful", metavar="SLUG", help="mark a hit as useful, in the newest recall that has it")
    mark.add_argument("--useless", metavar="SLUG", help="mark it as noise")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print receipts, oldest first; or mark a hit."""
    state = context.settings.state
    receipts = read_receipts(Path(state.receipts))
    slug = args.useful or args.useless
    if args.session == "last":
        own = [
            one
            for one in receipts
            if one.get("caller") != TRIAL_CALLER and not str(one.get("session") or "").startswith(TRIAL_SESSION)
        ]
        # A hit to mark may be of an earlier prompt. Receipts of tool calls follow that of their prompt.
        last = next((at for at in range(len(own) - 1, -1, -1) if not own[at].get("channel")), max(len(own) - 1, 0))
        chosen: Sequence[Mapping[str, Any]] = own if slug else own[last:]
    else:
        chosen = [one for one in receipts if str(one.get("session") or "").startswith(args.session)]
        if not chosen:
            raise UsageError(f"no recall of a session {args.session} is on record")
    marks_file = Path(state.log) / "marks.jsonl"
    if slug:
        return _mark(chosen, slug, marks_file, useful=bool(args.useful), as_json=args.json)
    marks = marks_of(read_marks(marks_file))
    if args.json:
        print_json([{**one, "given_before": count_given_before(one), "marks": _marks(one, marks)} for one in chosen])
        return 0
    if not chosen:
        print("nothing was recalled yet")
    prompts = prompt_words(context.settings, chosen)
    for number, one in enumerate(chosen):
        if number:
            print()
        words = prompts.get(str(one.get("query")), "")
        for line in lines_of(one, _marks(one, marks), count_given_before(one), words):
            print(in_line(line))
    return 0


def _mark(chosen: Sequence[Mapping[str, Any]], slug: str, file: Path, *, useful: bool, as_json: bool) -> int:
    for one in reversed(chosen):
        for hit in one.get("hits", ()):
            path = str(hit.get("path", ""))
            if slug in (path, path.rsplit("/", 1)[-1].removesuffix(".md")):
                mark = new_mark(one, path, useful=useful)
                append_receipt(file, mark)
                if as_json:
                    print_json(mark)
                else:
                    mark_name = "useful" if useful else "noise"
                    note(f"memory: {path} is marked as {mark_name}, in the recall of {_time_of(one)}")
                return 0
    raise UsageError(
        f"no recall that is on record there has a hit {slug} (`memory vault inspect [SESSION]` shows them)"
    )


def _time_of(one: Mapping[str, Any]) -> str:
    return str(one.get("at", "-"))[:23].replace("T", " ")


def _marks(one: Mapping[str, Any], marks: Mapping[tuple[str, str], bool]) -> dict[str, bool]:
    at = str(one.get("at"))
    found = ((str(hit.get("path")), marks.get((at, str(hit.get("path"))))) for hit in one.get("hits", ()))
    return {path: mark for path, mark in found if mark is not None}


def lines_of(
    one: Mapping[str, Any], marks: Mapping[str, bool], given_before: int = 0, words: str = ""
) -> Iterator[str]:
    """The lines of one receipt: caller, hits with scores and reasons, milliseconds by stage.

    `given_before`: number of entries that were left out because the session had them; `words`: what was asked.
    """
    injected = set(one.get("injected") or ())
    stages: Mapping[str, Any] = one.get("ms") or {}
    facts = [
        _time_of(one),
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
        f"“{words}”" if words else f"a prompt of {counted(one.get('characters', 0), 'character')}",
    ]
    yield "  ".join(facts)
    if one.get("degraded"):
        yield f"  degraded: {', '.join(one['degraded'])}"
    hits: Sequence[Mapping[str, Any]] = one.get("hits") or ()
    if hits:
        yield "  score  meaning  words  answers"
    for hit in hits:
        remarks = [
            *(["injected"] if hit.get("path") in injected else []),
            *(["passage " + str(hit["ordinal"] + 1)] if hit.get("ordinal") else []),
            *(["marked " + ("useful" if marks[hit["path"]] else "as noise")] if hit.get("path") in marks else []),
        ]
        yield f"  {_scores(hit)}  {hit.get('path')}" + (f"  ({', '.join(remarks)})" if remarks else "")
    floor = one.get("floor")
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
