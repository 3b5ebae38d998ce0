"""`memory service logs`: show the log of hooks, worker and recall service."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ..runtime.errors import MemoryVaultError, SettingsError, UsageError
from ..runtime.json_text import parse_json
from .context import Context
from .output import note

EPILOG = """example:
  memory service logs -n 100
"""

FOLLOW_SECONDS = 0.25
_SHOWN_ELSEWHERE = ("time", "level", "event", "message", "pid")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory service logs`."""
    parser.add_argument("-n", "--lines", type=int, default=20, metavar="N", help="how many lines (default 20)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print the lines as they are in the file")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the newest lines, also of rotated files; with --follow wait for more."""
    if not 0 <= args.lines <= sys.maxsize:
        raise UsageError("-n is a number of lines, 0 for none")
    context, readable = context.despite_faults()
    if "vault.path" in readable.unread:
        raise SettingsError(f"whose logs can't be told: {readable.faults[0]}")
    for fault in readable.faults:
        note(f"memory: {fault}")
    path = Path(context.kept_state.log_file)
    newest: deque[str] = deque(maxlen=args.lines)
    try:
        for file in (*sorted(path.parent.glob(f"{path.name}.*")), path):
            newest.extend(_shown(_lines_of(file), args.json))
        for line in newest:
            print(line, flush=True)
        if args.follow:
            with suppress(KeyboardInterrupt):
                for line in _shown(_following(path), args.json):
                    print(line, flush=True)
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


def _shown(lines: Iterable[str], as_json: bool) -> Iterator[str]:
    """Yield the lines as they are printed. A full disk may tear a line: it is left out."""
    for line in lines:
        fields: Any = None
        with suppress(ValueError):
            fields = parse_json(line)
        if isinstance(fields, dict):
            yield line.rstrip() if as_json else _in_words(fields)


def _in_words(fields: Mapping[str, Any]) -> str:
    when = str(fields.get("time", ""))
    with suppress(ValueError):
        when = f"{datetime.fromisoformat(when).astimezone():%m-%d %H:%M:%S}"
    rest = " ".join(f"{name}={value}" for name, value in fields.items() if name not in _SHOWN_ELSEWHERE)
    words = (when, str(fields.get("level", ""))[:7].ljust(7), str(fields.get("event", "")), fields.get("message"), rest)
    return "  ".join(str(word) for word in words if word)
