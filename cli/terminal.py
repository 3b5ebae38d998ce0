"""What the user types at the terminal: one key without Return, or a line."""

from __future__ import annotations

import os
import sys
import termios
import tty


def read_key() -> str:
    """The key in lower case; '' at the end of input. Ctrl-C and Ctrl-D come as their characters."""
    sys.stdout.flush()
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        data = os.read(descriptor, 16)
    except KeyboardInterrupt:
        return "\x03"
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
    # An arrow key is a sequence: no key of ours.
    return data[:1].decode("ascii", "replace").lower() if len(data) == 1 or data[:1] != b"\x1b" else "\x1b"


def read_line(question: str) -> str:
    """The answer without spaces around it; '' at the end of input (Ctrl-D): no answer is no."""
    try:
        return input(question).strip()
    except EOFError:
        print()
        return ""
