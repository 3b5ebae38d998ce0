"""Read a file's lines from its end, for journals and logs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

BLOCK_BYTES = 65_536


def lines_from_end(file: Path) -> Iterator[bytes]:
    """Yield the lines, last one first, without line ends; none if there is no file. Raises OSError."""
    with suppress(FileNotFoundError), file.open("rb") as data:
        at = data.seek(0, os.SEEK_END)
        rest: list[bytes] = []
        while at > 0:
            size = min(BLOCK_BYTES, at)
            at -= size
            data.seek(at)
            block = data.read(size)
            first, *lines = block.split(b"\n")
            if not lines:  # A line of many blocks is joined once, at its beginning.
                rest.append(block)
                continue
            lines[-1] += b"".join(reversed(rest))
            yield from reversed(lines)
            rest = [first]
        yield b"".join(reversed(rest))
