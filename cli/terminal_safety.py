"""What commands print is text: nothing in a note, a transcript, a page or a file's name drives the user's terminal.

An escape sequence can move the cursor over what was printed before, set the window's title, fill the clipboard or have
the terminal type an answer; marks of writing direction show a text in another order than it has. `main` puts its two
streams behind `PlainText`, so that no command has to think of it.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

from ..runtime.errors import MemoryVaultError

_DRIVES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but line end and tab, overrides of direction, halves of characters (names that are no UTF-8)."""


def plain(text: str) -> str:
    r"""`text` with each character that is more than text written out as `\u001b`: in JSON that is the same string."""
    if not _DRIVES.search(text):
        return text
    return _DRIVES.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


class OutputRefused(MemoryVaultError):
    """What a stream leads to takes nothing more: its disk is full, say."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write the output: {error.strerror}")


class _Told:
    """A block whose error of the system is told as OutputRefused; each write passes it, so no generator does it."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise OutputRefused(error) from error


_TOLD = _Told()


class PlainText:
    """A text stream that writes `plain` text to another; everything else is that other's.

    Writing raises OutputRefused, and BrokenPipeError where the reader went away.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """The number of characters that were asked for, as callers expect."""
        with _TOLD:
            self.stream.write(plain(text))
        return len(text)

    def flush(self) -> None:
        """What was written leaves the process."""
        with _TOLD:
            self.stream.flush()

    def writelines(self, lines: list[str]) -> None:
        """Each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def write_bytes(data: bytes) -> None:
    """The user's own bytes to stdout as they are, for a program; raises as `PlainText` does."""
    sys.stdout.flush()
    with _TOLD:
        sys.stdout.buffer.write(data)


def disarm_streams() -> None:
    """From here on `sys.stdout` and `sys.stderr` take text only; what they cannot encode is written out, too."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, PlainText):
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, PlainText(stream))


def beneath(stream: TextIO) -> TextIO:
    """The stream itself, for what we draw on it; everything else that goes there has to be `plain`."""
    return stream.stream if isinstance(stream, PlainText) else stream


COLUMNS = 80
"""Of a terminal that does not say how many it has."""


def line_columns() -> int:
    """So many characters fit a line that is written again: one less than wrap."""
    import shutil  # it costs every command's start

    return shutil.get_terminal_size((COLUMNS, 24)).columns - 1


def redraw(text: str, *, end: str = "", frame: bool = False) -> None:
    """Our own progress on a terminal: `text` in place of stderr's line, or with `frame` of the screen on stdout."""
    below = beneath(sys.stdout if frame else sys.stderr)
    if frame:
        # Home, then each line cleared to its end, then the rest of the screen: no flicker.
        lines = plain(text).replace("\n", "\x1b[K\n")
        below.write(f"\x1b[H{lines}\x1b[K\n\x1b[J{end}")
    else:
        # Filled up: what was there may have been longer. And never wrapped: \r returns to the start of one line.
        columns = line_columns()
        below.write(f"\r{plain(text)[:columns].ljust(columns)}{end}")
    below.flush()
