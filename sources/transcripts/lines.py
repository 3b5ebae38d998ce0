"""Reading complete lines of a growing JSONL file, from a byte offset, in flat memory."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ...vault.wording import beginning_of, end_of
from .compressed import ByteStream, open_bytes

READ_BUFFER_BYTES = 128 << 10
SEARCH_BUFFER_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20
"""A longer line (a pasted film, a corrupt file) is counted as bad; it is never held in memory whole."""
MAX_QUICK_BYTES = 1 << 20
"""orjson takes some twelve times a line's size while it parses; longer ones go to the standard library's parser."""
MOST_TRIES = 200
"""How often the beginning of a record is looked for in a damaged line."""
_SCANNER = json.JSONDecoder(strict=False)
_BEHIND_RECORD = (b"", b"\n", b"\r", b"{", b"\0")
"""What may follow a record."""

_line = tuple.__new__
"""Makes a `Line` in half the time: a session has thousands."""


class Line(NamedTuple):
    """One line without its newline."""

    offset: int
    end: int
    """Offset of the byte behind it and its newline, where reading continues."""
    data: bytes
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
    begun: list[bytes] = []
    held = 0  # bytes of a line whose end was not read yet; they are in `begun` unless it is too long
    file.seek(offset)
    # Whole blocks are searched here: reading the file line by line takes longer.
    while block := file.read(buffer_bytes):
        begin, end = 0, block.find(b"\n") + 1
        if held and end:
            size = held + end
            begun.append(block[:end])
            start, position = position, position + size
            too_long = size > max_bytes
            yield Line(start, position, b"" if too_long else b"".join(begun), too_long)
            begun.clear()
            begin, held, end = end, 0, block.find(b"\n", end) + 1
        before = position - begin
        while end:
            start, position = position, before + end
            if end - begin <= max_bytes:
                yield _line(Line, (start, position, block[begin:end], False))
            else:
                yield Line(start, position, b"", too_long=True)
            begin, end = end, block.find(b"\n", end) + 1
        held += len(block) - begin
        if held > max_bytes:
            begun.clear()
        elif begin < len(block):
            begun.append(block[begin:])
    if 0 < held < max_bytes and _is_whole(data := b"".join(begun)):
        yield Line(position, position + held, data)


def begins_line(file: ByteStream, offset: int, begins: bytes = b"") -> bool:
    """Whether a reading of the file that ended at `offset` goes on there. Where it does not, it is another file than it
    was, or the host has rewritten its end: Claude Code takes back an answer that broke off. Raises OSError.

    A record whose newline is still to come counts as a line, so one that follows may begin right behind it. With
    `begins`, as the host's records begin, the place of such a record within a damaged line is good, too.
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


def _is_whole(data: bytes) -> bool:
    return data.rstrip().endswith(b"}") and parse_object(data) is not None


def records_within(data: bytes, begins: bytes) -> list[tuple[int, bytes]]:
    """Find the whole records in a line that is not one record: (offset in the line, bytes) of each, in their order.

    A program that is killed, or a machine that loses power, leaves a record without its newline, half a record or NUL
    bytes, and the next record is written right behind. `begins`: how the host's records begin.
    """
    found: list[tuple[int, bytes]] = []
    text = data.decode("latin-1")  # A character for each byte: only where objects end is looked for.
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
    """Parse the JSON object in a line; None if there is none. Bytes that are not UTF-8 become U+FFFD, whole
    numbers beyond 64 bits floats."""
    try:
        value = orjson.loads(data) if len(data) <= MAX_QUICK_BYTES else _parse_leniently(data)
    except orjson.JSONDecodeError:
        # orjson is strict where a host may not be: NaN, half a surrogate pair, bytes that are not UTF-8.
        value = _parse_leniently(data)
    return value if isinstance(value, dict) else None


def _parse_leniently(data: bytes) -> object:
    try:
        return json.loads(data)
    except UnicodeDecodeError:
        try:
            return json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
    except (ValueError, RecursionError):
        return None


def as_text(value: object) -> str:
    """The value of a field that should be a string; '' for anything else."""
    return value if isinstance(value, str) else ""


def as_object(value: object) -> dict[str, Any]:
    """The value of a field that should be an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def holds_only(record: dict[str, Any], known: Collection[str]) -> bool:
    """Whether each field of a record is known, or says nothing."""
    return not any(value and name not in known for name, value in record.items())


def clean(text: str) -> str:
    """Make text valid Unicode without NUL: JSON may escape half of a surrogate pair, and NUL ends strings elsewhere.

    The half becomes U+FFFD; a `?`, which UTF-8 would make of it, ends the sentence.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "") if "\0" in text else text


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a text longer than `limit`: requests are at its beginning, errors at its end.

    Whole words are cut out: what is left is scrubbed later, and half a secret would not be recognised.
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
