"""What the user types at the terminal: one key without Return, or a line."""

from __future__ import annotations

import os
import sys
import termios
import tty


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


def read_choice(question: str, most: int) -> int:
    """Ask on stderr for a number from 1 to `most`; 1 for no answer. Raises Interrupted."""
    while True:
        try:
            print(question, end="", file=sys.stderr, flush=True)
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            print(file=sys.stderr)
            raise Interrupted from None
        if not answer.strip():
            return 1
        if answer.strip().isdecimal() and 1 <= int(answer) <= most:
            return int(answer)
        print(f"memory: a number from 1 to {most}, or Return for 1", file=sys.stderr)


def is_agreed(question: str) -> bool:
    """Ask on stderr; anything but yes is no. Raises Interrupted."""
    try:
        print(question, end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise Interrupted from None
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in ("y", "yes")
