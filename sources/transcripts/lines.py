"""Reading complete lines of a growing JSONL file, from a byte offset, in flat memory."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...runtime.json_text import parse_json
from ...vault.wording import beginning_of, end_of
from ..web.decoding import whole_characters
from .compressed import ByteStream, open_bytes

READ_BUFFER_BYTES = 128 << 10
SEARCH_BUFFER_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20
"""A longer line (a pasted film, a corrupt file) counts as bad and is never held in memory."""
MOST_TRIES = 200
"""Most attempts to find the beginning of a record in a damaged line."""
_SCANNER = json.JSONDecoder(strict=False)
_BEHIND_RECORD = (b"", b"\n", b"\r", b"{", b"\0")
"""What may follow a complete record."""


class Line(NamedTuple):
    """One line of a file."""

    offset: int
    end: int
    """Offset of the byte after the line, where reading continues."""
    data: bytes
    """With the newline; empty where the line is too long."""
    too_long: bool = False


def complete_lines(
    path: Path, offset: int = 0, max_bytes: int = MAX_LINE_BYTES, buffer_bytes: int = READ_BUFFER_BYTES
) -> Iterator[Line]:
    """Yield the lines of a file from `offset` on. Raises OSError. See `lines_from`."""
    with open_bytes(path) as file:
        yield from lines_from(file, offset, max_bytes, buffer_bytes)


def lines_from(
    file: ByteStream, offset: int = 0, max_bytes: int = MAX_LINE_BYTES, buffer_bytes: int = READ_BUFFER_BYTES
) -> Iterator[Line]:
    """Yield the lines from `offset` on, but not a half-written last one.

    A last line without a newline counts as complete when it is a whole JSON object: one that was cut short
    never is. Raises OSError.
    """
    position = offset
    held = 0
    """Bytes of the line that is being read; `pieces` holds them unless they are more than `max_bytes`."""
    pieces: list[bytes] = []
    file.seek(offset)
    while block := file.read(buffer_bytes):
        for piece in io.BytesIO(block):
            held += len(piece)
            too_long = held > max_bytes
            if too_long:
                pieces.clear()
            else:
                pieces.append(piece)
            if piece.endswith(b"\n"):
                yield Line(position, position + held, b"".join(pieces), too_long)
                position, held = position + held, 0
                pieces.clear()
    if pieces and parse_object(data := b"".join(pieces)) is not None:
        yield Line(position, position + held, data)


def begins_line(file: ByteStream, offset: int, begins: bytes = b"") -> bool:
    """Whether a line begins at `offset`, where an earlier reading ended. Raises OSError.

    If not, the file is another one, or the host has rewritten its end: Claude Code removes an answer that broke off.
    A complete record counts as a line before its newline is written, so the next one may begin right after it. With
    `begins`, the bytes that a record of the host begins with, a record inside a damaged line counts, too.
    """
    if offset <= 0:
        return True
    file.seek(offset - 1)
    around = file.read(2 + len(begins))
    before, behind = around[:1], around[1:]
    if before in (b"\n", b"\0") or (begins and behind.startswith(begins)):
        return True
    return before == b"}" and behind[:1] in _BEHIND_RECORD


def holds_match(path: Path, pattern: re.Pattern[bytes], most_bytes: int) -> bool:
    """Whether the file has a match of the pattern, which is at most `most_bytes` long. Raises OSError."""
    before = b""
    with open_bytes(path) as file:
        while block := file.read(SEARCH_BUFFER_BYTES):
            if pattern.search(before + block):
                return True
            before = block[-most_bytes:]
    return False


def records_within(data: bytes, begins: bytes) -> list[tuple[int, bytes]]:
    """Find the whole records in a damaged line: (offset in the line, bytes) of each, in their order.

    A program that is killed, or a machine that loses power, leaves a record without its newline, half a record or NUL
    bytes, and the next record is written right behind. `begins`: the bytes that a record of the host begins with.
    """
    found: list[tuple[int, bytes]] = []
    text = data.decode("latin-1")  # One character for each byte, so that positions are offsets.
    at = text.find("{")
    for _ in range(MOST_TRIES):
        if at < 0:
            break
        try:
            _, end = _SCANNER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = data.find(begins, at + 1)
            continue
        found.append((at, data[at:end]))
        at = end if text[end : end + 1] == "{" else data.find(begins, end)
    return found


def parse_object(data: bytes) -> dict[str, Any] | None:
    """Parse the JSON object in a line; None if there is none. Bytes that are not UTF-8 become U+FFFD."""
    try:
        value = parse_json(data.decode("utf-8-sig", "replace"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def as_text(value: object) -> str:
    """The value of a field that should be a string; '' for anything else."""
    return value if isinstance(value, str) else ""


def as_object(value: object) -> dict[str, Any]:
    """The value of a field that should be an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value of a field that should be a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def holds_only(record: dict[str, Any], known: Collection[str]) -> bool:
    """Whether all fields of a record are in `known`, except for fields that say no: null and false."""
    return not any(name not in known and value is not None and value is not False for name, value in record.items())


def clean(text: str) -> str:
    """Make text valid Unicode without NUL: JSON may escape half of a surrogate pair, and NUL ends strings elsewhere.

    Half a pair becomes U+FFFD, not `?`, which would end a sentence.
    """
    return (text if text.isascii() else whole_characters(text)).replace("\0", "")


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a text longer than `limit` characters: requests stand first, errors last.

    The cuts are between words: the rest is scrubbed later, and half a secret would not be recognised.
    """
    if len(text) <= limit:
        return text
    half = (limit - 3) // 2
    return beginning_of(text, half) + "\n…\n" + end_of(text, half)


def one_line(value: object, limit: int = 300) -> str:
    """Render a string as one line of at most `limit` characters, cut between words; "" for any other value."""
    if not isinstance(value, str):
        return ""
    return beginning_of(" ".join(clean(beginning_of(value, limit * 4)).split()), limit).rstrip()
