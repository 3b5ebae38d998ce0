"""`memory service logs`: show the log of hooks, worker and recall service."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ..runtime.errors import MemoryVaultError, UsageError
from ..runtime.json_text import parse_json
from .context import Context
from .output import note

EPILOG = """example:
  memory service logs --event hook -n 100  of the hooks only
"""

LEVELS = ("debug", "info", "warning", "error", "critical")
FOLLOW_SECONDS = 0.25
_SHOWN_ELSEWHERE = ("time", "level", "event", "message", "pid")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory service logs`."""
    parser.add_argument("-n", "--lines", type=int, default=20, metavar="N", help="how many lines (default 20)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until Ctrl-C")
    parser.add_argument("--event", default="", help="only events that begin with this")
    parser.add_argument("--level", choices=LEVELS, default="debug", help="only this level and above")
    parser.add_argument("--json", action="store_true", help="print the lines as they are in the file")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the newest lines, also of rotated files; with --follow wait for more."""
    if not 0 <= args.lines <= sys.maxsize:
        raise UsageError("-n is a number of lines, 0 for none")
    context, readable = context.despite_faults()
    if readable.fault:
        note(f"memory: {readable.fault}")
    path = Path(context.kept_state.log_file)
    newest: deque[str] = deque(maxlen=args.lines)
    try:
        for file in (*sorted(path.parent.glob(f"{path.name}.*")), path):
            newest.extend(line for line in _lines_of(file) if _wanted(line, args))
        for line in newest:
            _print(line, args.json)
        if args.follow:
            with suppress(KeyboardInterrupt):
                for line in _following(path):
                    if _wanted(line, args):
                        _print(line, args.json)
    except (PermissionError, IsADirectoryError) as error:
        raise MemoryVaultError(f"the log {error.filename} cannot be read: {error.strerror}; move it away") from error
    return 0


def _lines_of(path: Path) -> Iterator[str]:
    with suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def _following(path: Path) -> Iterator[str]:
    """Complete lines written from now on; a rotated file is read to its end before the new one."""
    file = path.open("rb") if path.exists() else None
    if file is not None:
        file.seek(0, os.SEEK_END)
    rest = b""
    while True:
        if file is not None:
            *lines, rest = (rest + file.read()).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
        with suppress(FileNotFoundError):
            if file is None or not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                if file is not None:
                    file.close()
                file, rest = path.open("rb"), b""
                continue
        time.sleep(FOLLOW_SECONDS)


def _parsed(line: str) -> Mapping[str, Any] | None:
    try:
        fields = parse_json(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def _wanted(line: str, args: argparse.Namespace) -> bool:
    fields = _parsed(line)
    if fields is None:
        return False  # A full disk may tear a line.
    level = str(fields.get("level", "info"))
    rank = LEVELS.index(level) if level in LEVELS else len(LEVELS)
    return rank >= LEVELS.index(args.level) and str(fields.get("event", "")).startswith(args.event)


def _print(line: str, as_json: bool) -> None:
    fields = _parsed(line) or {}
    if as_json:
        print(line.rstrip(), flush=True)
        return
    when = str(fields.get("time", ""))
    with suppress(ValueError):
        when = f"{datetime.fromisoformat(when).astimezone():%m-%d %H:%M:%S}"
    rest = " ".join(f"{name}={value}" for name, value in fields.items() if name not in _SHOWN_ELSEWHERE)
    words = (when, str(fields.get("level", ""))[:7].ljust(7), str(fields.get("event", "")), fields.get("message"), rest)
    print("  ".join(str(word) for word in words if word), flush=True)
