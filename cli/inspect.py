"""`memory inspect`: the receipts of what was recalled, and why."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..index.receipts import read_receipts
from ..vault.errors import UsageError
from .context import Context
from .output import add_json, print_json

EPILOG = """example:
  memory inspect                 the last recall
  memory inspect 3f0c6a52        every recall of the session that begins so
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory inspect`."""
    parser.epilog = EPILOG
    parser.add_argument("session", nargs="?", default="last", help="a session id or its beginning, or `last`")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print receipts, oldest first."""
    receipts = read_receipts(Path(context.state.receipts))
    if args.session == "last":
        chosen = receipts[-1:]
    else:
        chosen = [one for one in receipts if str(one.get("session") or "").startswith(args.session)]
        if not chosen:
            raise UsageError(f"no recall of a session {args.session} is on record")
    if args.json:
        print_json(chosen)
        return 0
    if not chosen:
        print("nothing was recalled yet")
    for receipt in chosen:
        print(
            f"{receipt.get('at', '-')}  {receipt.get('caller', '-')}  session {receipt.get('session') or '-'}  "
            f"{float(receipt['ms'].get('total', 0)):.0f} ms"
            + (f"  degraded: {', '.join(receipt['degraded'])}" if receipt.get("degraded") else "")
        )
        for hit in receipt.get("hits", ()):
            print(
                f"  {float(hit.get('score') or 0):.2f}  meaning {_score(hit.get('dense'))}  "
                f"words {_score(hit.get('keyword'))}  {hit.get('path')}"
            )
        if not receipt.get("hits"):
            print("  nothing was above the floor")
    return 0


def _score(value: Any) -> str:
    return "   -" if value is None else f"{float(value):4.2f}"
