"""Read a key or a line from the terminal."""

from __future__ import annotations

import argparse
import os
import sys
import termios
import tty

from ..runtime.errors import UsageError

YES = ("y", "yes")
LEAVE = frozenset({"q", "\x03", "\x04", ""})
"""Keys that leave a dialogue: q, Ctrl-C, Ctrl-D, the end of input."""


def read_key(question: str) -> str:
    """Read one key without Return, in lower case; '' at the end of input. Ctrl-C and Ctrl-D are characters."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        # In this order: a Ctrl-D typed before the mode changes would be another character.
        tty.setcbreak(descriptor, termios.TCSANOW)
        print(question, end="", flush=True)
        data = os.read(descriptor, 16)
    except KeyboardInterrupt:
        data = b"\x03"
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
    # An arrow key sends a sequence, which is no key of ours.
    key = data[:1].decode("ascii", "replace").lower() if len(data) == 1 or data[:1] != b"\x1b" else "\x1b"
    print(key if key.isprintable() else "")
    return key


class Interrupted(KeyboardInterrupt):
    """Ctrl-C at a question: it counts as no, and the command ends."""


def read_line(question: str) -> str:
    """The stripped answer; '' at the end of input (Ctrl-D). Raises Interrupted."""
    try:
        return input(question).strip()
    except EOFError:
        print()
        return ""
    except KeyboardInterrupt:
        print()
        raise Interrupted from None


def require_word(args: argparse.Namespace, what: str) -> None:
    """Raise UsageError if no question can be asked: with --json, or without a terminal. `what`: what --yes does."""
    if args.json or not sys.stdin.isatty():
        why = "--json asks nothing" if args.json else "standard input is no terminal"
        raise UsageError(f"nothing was changed: {why}; --yes {what}")


def read_choice(question: str, most: int) -> int:
    """Ask on stderr for a number from 1 to `most` and return it; an empty answer is 1. Raises Interrupted."""
    while True:
        answer = _read_beside(question).strip()
        if not answer:
            return 1
        if answer.isdecimal() and 1 <= int(answer) <= most:
            return int(answer)
        print(f"memory: a number from 1 to {most}, or Return for 1", file=sys.stderr)


def is_agreed(question: str) -> bool:
    """Ask on stderr; return whether the answer is yes. Raises Interrupted."""
    answer = _read_beside(question)
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in YES


def _read_beside(question: str) -> str:
    """Ask on stderr; the answer with its line end. Raises Interrupted."""
    try:
        print(question, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise Interrupted from None
