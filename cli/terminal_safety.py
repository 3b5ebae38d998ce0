"""Escape control characters in all output, so that no note, transcript, page or file name controls the terminal.

An escape sequence can overwrite what was printed, set the window's title, fill the clipboard or make the terminal type
an answer; direction marks show a text in another order. `main` wraps both streams in `PlainText` for every command.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ..runtime.errors import MemoryVaultError

_DRIVES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters other than line end and tab, direction overrides, lone surrogates (names that are no UTF-8)."""


def plain(text: str) -> str:
    r"""`text` with control characters escaped as `\u001b`, which in JSON is the same string."""
    if not _DRIVES.search(text):
        return text
    return _DRIVES.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


class OutputRefused(MemoryVaultError):
    """A stream cannot be written, for example because its disk is full."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write the output: {error.strerror}")


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise an OSError of the block, other than BrokenPipeError, as OutputRefused."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputRefused(error) from error


class PlainText:
    """A text stream that escapes what it passes on to `stream`; everything else is `stream`'s.

    Writing raises OutputRefused, or BrokenPipeError when the reader has gone.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write `text`; its length before escaping."""
        with _refusals():
            self.stream.write(plain(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        with _refusals():
            self.stream.flush()

    def writelines(self, lines: list[str]) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout unchanged, for a program. Raises as `PlainText` does."""
    sys.stdout.flush()
    with _refusals():
        sys.stdout.buffer.write(data)


def disarm_streams() -> None:
    """Wrap `sys.stdout` and `sys.stderr` in `PlainText`; characters they cannot encode are escaped, too."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, PlainText):
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, PlainText(stream))


COLUMNS = 80
"""Width of a terminal that does not report its own."""


def line_columns() -> int:
    """Return how many characters fit a line that is rewritten: one less than the terminal's width."""
    import shutil  # imported here: every command would pay for it

    return shutil.get_terminal_size((COLUMNS, 24)).columns - 1


def redraw(text: str, *, end: str = "") -> None:
    """Replace the line of progress on stderr, a terminal, by `text`."""
    below = sys.stderr.stream if isinstance(sys.stderr, PlainText) else sys.stderr
    # Padded to overwrite a longer text; never wrapped, since \r returns to the start of one line only.
    columns = line_columns()
    below.write(f"\r{plain(text)[:columns].ljust(columns)}{end}")
    below.flush()
