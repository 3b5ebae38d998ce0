"""What the user types at the terminal: one key without Return, or a line."""

from __future__ import annotations

import argparse
import os
import sys
import termios
import tty

from ..runtime.errors import UsageError

YES = ("y", "yes")


def read_key(question: str) -> str:
    """The key in lower case; '' at the end of input. Ctrl-C and Ctrl-D come as their characters."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        # In this order: a Ctrl-D that comes before is another character to the terminal.
        tty.setcbreak(descriptor, termios.TCSANOW)
        print(question, end="", flush=True)
        data = os.read(descriptor, 16)
    except KeyboardInterrupt:
        data = b"\x03"
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
    # An arrow key is a sequence: no key of ours.
    key = data[:1].decode("ascii", "replace").lower() if len(data) == 1 or data[:1] != b"\x1b" else "\x1b"
    print(key if key.isprintable() else "")
    return key


class Interrupted(KeyboardInterrupt):
    """Ctrl-C at a question: as a no, nothing was changed, and the command ends."""


def read_line(question: str) -> str:
    """The answer without spaces around it; '' at the end of input (Ctrl-D): no answer is no. Raises Interrupted."""
    try:
        return input(question).strip()
    except EOFError:
        print()
        return ""
    except KeyboardInterrupt:
        print()
        raise Interrupted from None


def says_yes(question: str) -> bool:
    """Ask as `read_line` does; anything but yes is no. Raises Interrupted."""
    return read_line(question).lower() in YES


def require_word(args: argparse.Namespace, what: str) -> None:
    """Refuse to ask where nobody could answer: `what` says what --yes does. Raises UsageError."""
    if args.json or not sys.stdin.isatty():
        why = "--json asks nothing" if args.json else "standard input is no terminal"
        raise UsageError(f"nothing was changed: {why}; --yes {what}")


def read_choice(question: str, most: int) -> int:
    """Ask on stderr for a number from 1 to `most`; 1 for no answer. Raises Interrupted."""
    while True:
        answer = _read_beside(question).strip()
        if not answer:
            return 1
        if answer.isdecimal() and 1 <= int(answer) <= most:
            return int(answer)
        print(f"memory: a number from 1 to {most}, or Return for 1", file=sys.stderr)


def is_agreed(question: str) -> bool:
    """Ask on stderr; anything but yes is no. Raises Interrupted."""
    answer = _read_beside(question)
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in YES


def _read_beside(question: str) -> str:
    """The answer to a question on stderr, with its end of line. Raises Interrupted."""
    try:
        print(question, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise Interrupted from None
