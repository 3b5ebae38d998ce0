"""`memory console`: serve a local web page to look at the vault and to decide."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from html import escape
from pathlib import Path

from ..console.server import Serving, prepare
from ..runtime.errors import UsageError
from ..runtime.layout import FILE_MODE
from .context import Context
from .output import note

EPILOG = """example:
  memory console --no-browser      open it by hand within five minutes
"""
FIRST_PORT, LAST_PORT = 1024, 65535
DOOR = "console-{pid}.html"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory console`."""
    parser.add_argument("--port", type=int, default=0, help=f"{FIRST_PORT} to {LAST_PORT} (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser; print the link")


def run(args: argparse.Namespace, context: Context) -> int:
    """Serve until Ctrl-C."""
    if args.port and not FIRST_PORT <= args.port <= LAST_PORT:
        raise UsageError(f"--port {args.port}: give one from {FIRST_PORT} to {LAST_PORT}, or none for a free one")
    state = context.state
    serving = prepare(context.settings, port=args.port)
    # Ctrl-C is the normal end, also during the start.
    with contextlib.suppress(KeyboardInterrupt):
        # Flushed: stdout may be a program's pipe.
        print(serving.new_link(), flush=True)
        note("memory: the link works once, for five minutes; Ctrl-C ends the console")
        with _opened(serving, Path(state.run) / DOOR.format(pid=os.getpid()), wanted=not args.no_browser):
            if sys.stdin.isatty():
                note("memory: Enter prints a new link, for another window or browser")
                threading.Thread(target=_renew, args=(serving,), daemon=True).start()
            serving.run()
    return 0


def _renew(serving: Serving) -> None:
    for _ in sys.stdin:
        print(serving.new_link(), flush=True)


@contextlib.contextmanager
def _opened(serving: Serving, door: Path, *, wanted: bool) -> Iterator[None]:
    """Open a browser, if there is one, with its own link.

    The link is in a file that only this account can read, since every account sees a program's arguments.
    """
    if not wanted or not _has_browser():
        yield
        return
    link = escape(serving.new_link(), quote=True)
    with contextlib.suppress(FileNotFoundError):
        door.unlink()
    descriptor = os.open(door, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<title>MemoryVault</title><meta http-equiv="refresh" content="0; url={link}">'
            f'<p><a href="{link}">Open the console</a></p></html>'
        )
    threading.Thread(target=webbrowser.open, args=(door.as_uri(),), daemon=True).start()
    try:
        yield
    finally:
        door.unlink(missing_ok=True)


def _has_browser() -> bool:
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True
