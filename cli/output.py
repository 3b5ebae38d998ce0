"""Print results: JSON for programs, aligned text for people."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..vault.wording import CUT, one_line
from ..vault.wording import counted as counted
from ..vault.wording import cut as cut
from .terminal_safety import line_columns

JSON_HELP = "print JSON for programs"

COLUMN_CHARACTERS = 100
"""About how much of a text a table's column shows; `--json` has all of it."""

LEAST_COLUMNS = 40
"""Shown of a text on the narrowest terminal, although the line then wraps."""

HOW_TO = Path(__file__).resolve().parents[1] / "docs" / "how-to"
"""Folder of the how-to pages, which are installed with the package."""


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option `--json`."""
    parser.add_argument("--json", action="store_true", help=JSON_HELP)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout. What JSON has no form for, such as a path, becomes text."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, default=str)
    sys.stdout.write("\n")


def print_result(args: argparse.Namespace, value: Any, *lines: str) -> int:
    """Print `value` as JSON if `--json` is given, else the lines; return the exit code 0."""
    if args.json:
        print_json(value)
    elif lines:
        print(*lines, sep="\n")
    return 0


def print_rows(
    args: argparse.Namespace, value: Any, header: Sequence[str], rows: Sequence[Sequence[object]], none: str = ""
) -> int:
    """Print `value` as JSON if `--json` is given, else a table, or without rows the line `none`; return 0."""
    if args.json:
        print_json(value)
    elif rows:
        print_table(header, rows)
    else:
        print(none)
    return 0


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns padded to their widest cell; no cell is cut."""
    cells = [list(header), *([in_line(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())


def home_path(path: str | os.PathLike[str]) -> str:
    """Return the path with `~` in place of the home folder."""
    home, named = os.path.expanduser("~"), os.fspath(path)
    inside = home != "/" and (named + "/").startswith(home.rstrip("/") + "/")
    return "~" + named[len(home.rstrip("/")) :] if inside else named


def how_to(name: str) -> str:
    """Path of a how-to page in this installation."""
    return str(HOW_TO / f"{name}.md")


def result_path(path: str | os.PathLike[str]) -> str:
    """Return a path that a command prints as its result: as by `home_path` at a terminal, in full for a pipe."""
    return home_path(path) if sys.stdout.isatty() else os.fspath(path)


def with_home(text: str) -> str:
    """Return a sentence with `~` for the home folder in each path that begins a word.

    A path in quotes stays, as the shell does not expand `~` there.
    """
    home = os.path.expanduser("~").rstrip("/")
    return re.sub(rf"(?<!\S){re.escape(home)}(?=/)", "~", text) if home else text


def local_time(moment: datetime | float | None) -> str:
    """`Mon 2026-11-23 07:10:05` in the local zone; '-' for None. A number is Unix seconds."""
    if moment is None:
        return "-"
    aware = moment.astimezone() if isinstance(moment, datetime) else datetime.fromtimestamp(moment).astimezone()
    return f"{aware:%a %Y-%m-%d %H:%M:%S}"


def in_line(text: str) -> str:
    r"""Return `text`, such as a file's name, on one line: line ends and tabs are escaped (`\u000a`), as by `plain`."""
    return "".join(f"\\u{ord(c):04x}" if c in "\t\n" else c for c in text)


def fitted(text: str, taken: int) -> str:
    """Cut `text` to the terminal's width minus `taken` columns, or to COLUMN_CHARACTERS without a terminal."""
    if not sys.stdout.isatty():
        return cut(text, COLUMN_CHARACTERS)
    from unicodedata import east_asian_width  # only lists need it

    line = one_line(text)
    columns = sum(2 if east_asian_width(character) in "WF" else 1 for character in line)
    room = max(line_columns() - taken, LEAST_COLUMNS)
    return line if columns <= room else cut(line, room * len(line) // columns - len(CUT), leeway=0)


def note(line: str) -> None:
    """Print a remark for the user to stderr, so that stdout has only the result."""
    print(with_home(line), file=sys.stderr)
