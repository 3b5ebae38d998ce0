"""Packing messages of sessions for another machine to judge, and unpacking them there.

A *reading* is the part of one transcript that is still to be mined; a *content* is the readings that are sent together.
Only the messages of the user and the agent are packed, each with its offset in the file, its origin and its pasted
ranges: the judgement on a message depends on nothing else. A message in which the scrubber finds anything does not
leave, nor one of a project that may not: its offset is *kept back*, and it is judged on its own machine.

`python -m memoryvault.tasks.sharing.packing` is the child that packs. It reads requests as JSON on stdin and prints for
each a line of JSON, followed by the number of bytes that the line names. It writes nothing to disk.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...pipelines.scrub import findings
from ...runtime.errors import MemoryVaultError
from ...runtime.killpoint import kill_point
from ...runtime.priority import lower_priority
from ...sources.transcripts.hosts import open_transcript
from ...vault.project import project_of
from ...vault.turn import USER_WORDS, Origin, Role, Turn
from ..queue import supervisor

MAGIC = b"MVW1"
"""First bytes of a content; the number is the version of all that follows."""
MAX_TEXT_CHARS = 100_000
"""A longer message is kept back: it is no conversation."""
MAX_CONTENT_BYTES = 2 << 20
"""Largest packed content: what a slow line can carry within a statement's time limit. 116 MB of transcripts were
packed into less than 1 MB."""
MAX_READINGS = 64
MAX_UNPACKED_BYTES = 128 << 20
"""Largest unpacked reading."""
MAX_LINE_BYTES = 6 * MAX_TEXT_CHARS + (256 << 10)
MAX_PASSAGES = 10_000
"""Most pasted ranges in a message."""
NICENESS = 15
_LENGTH_BYTES = 4
_CHUNK_BYTES = 64 << 10
_ORIGINS = {origin.value: origin for origin in (*USER_WORDS, Origin.ASSISTANT)}


class ContentInvalid(MemoryVaultError):
    """The bytes are no content that this version can read."""


class TooLarge(MemoryVaultError):
    """A reading does not fit into a content."""


@dataclass(frozen=True)
class Packed:
    """One reading, packed."""

    data: bytes
    words: int
    """Number of messages in `data`."""
    kept_back: tuple[int, ...]
    """Offsets of the messages that are not in `data`."""
    end: int = 0
    """Byte offset in the transcript behind the last byte that was read."""


def is_word(turn: Turn) -> bool:
    """Whether a turn is a message, not a tool's call or result."""
    return turn.is_users_words or turn.origin is Origin.ASSISTANT


def pack(
    turns: Iterable[Turn],
    *,
    start: int = 0,
    may_leave: Callable[[Turn], bool] = lambda _: True,
    most_bytes: int = MAX_CONTENT_BYTES,
) -> Packed:
    """Pack the messages from byte `start` on, in no more memory than the output. Raises TooLarge."""
    deflate = zlib.compressobj(6)
    out = bytearray()
    kept_back: list[int] = []
    words = unpacked = 0
    for turn in turns:
        if turn.offset < start or not is_word(turn):
            continue
        if (
            len(turn.text) > MAX_TEXT_CHARS
            or len(turn.pasted) > MAX_PASSAGES
            or not may_leave(turn)
            or findings(turn.text)
        ):
            kept_back.append(turn.offset)
            continue
        line = json.dumps([turn.offset, turn.origin.value, turn.text, turn.pasted], separators=(",", ":"))
        out += deflate.compress(line.encode() + b"\n")
        words += 1
        unpacked += len(line) + 1
        if len(out) > most_bytes or unpacked > MAX_UNPACKED_BYTES:
            break
    else:
        out += deflate.flush()
    if len(out) > most_bytes or unpacked > MAX_UNPACKED_BYTES:
        raise TooLarge("there is more of it than travels at once")
    return Packed(bytes(out), words, tuple(dict.fromkeys(kept_back)))


def unpack(data: bytes) -> Iterator[Turn]:
    """Yield the messages of a reading. Trusts nothing in it; raises ContentInvalid."""
    for line in _lines(data):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ContentInvalid("a line of it is no JSON") from error
        turn = _turn(value)
        if turn is None:
            raise ContentInvalid("a line of it is no message")
        yield turn


def _lines(data: bytes) -> Iterator[bytes]:
    inflate = zlib.decompressobj()
    rest = b""
    total = 0
    waiting = data
    while not inflate.eof:
        try:
            piece = inflate.decompress(waiting, _CHUNK_BYTES)
        except zlib.error as error:
            raise ContentInvalid("it is not compressed as it should be") from error
        waiting = inflate.unconsumed_tail
        if not piece and not waiting and not inflate.eof:
            raise ContentInvalid("it is cut off")
        total += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        if total > MAX_UNPACKED_BYTES or len(rest) > MAX_LINE_BYTES:
            raise ContentInvalid("unpacked it is larger than anything that is packed")
        yield from whole
    if rest or inflate.unused_data:
        raise ContentInvalid("something stands behind its end")


def _turn(value: object) -> Turn | None:
    if not isinstance(value, list) or len(value) != 4:
        return None
    offset, origin, text, pasted = value
    if (
        not _is_count(offset)
        or not isinstance(origin, str)
        or origin not in _ORIGINS
        or not isinstance(text, str)
        or len(text) > MAX_TEXT_CHARS
        or not isinstance(pasted, list)
        or len(pasted) > MAX_PASSAGES
    ):
        return None
    passages = []
    position = 0
    for passage in pasted:
        if not isinstance(passage, list) or len(passage) != 2 or not all(map(_is_count, passage)):
            return None
        start, end = passage
        if not position <= start <= end <= len(text):
            return None
        passages.append((start, end))
        position = end
    return Turn(
        role=Role.ASSISTANT if _ORIGINS[origin] is Origin.ASSISTANT else Role.USER,
        origin=_ORIGINS[origin],
        text=text,
        record=str(offset),
        session="",
        offset=offset,
        pasted=tuple(passages),
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


# ---- contents


def bundle(readings: Sequence[Packed]) -> bytes:
    """Make a content of these readings."""
    parts = [MAGIC]
    for reading in readings:
        parts += [len(reading.data).to_bytes(_LENGTH_BYTES, "big"), reading.data]
    return b"".join(parts)


def unbundle(content: bytes) -> list[bytes]:
    """Split a content into its packed readings. Raises ContentInvalid."""
    if not content.startswith(MAGIC):
        raise ContentInvalid("it was packed by another version")
    readings: list[bytes] = []
    position = len(MAGIC)
    while position < len(content):
        begin = position + _LENGTH_BYTES
        end = begin + int.from_bytes(content[position:begin], "big")
        if begin > len(content) or end > len(content) or len(readings) == MAX_READINGS:
            raise ContentInvalid("it is cut off")
        readings.append(content[begin:end])
        position = end
    return readings


def key_of(content: bytes, home: str) -> str:
    """Key of a content: the same for the same bytes of the same machine."""
    return hashlib.sha256(home.encode() + b"\0" + content).hexdigest()


# ---- the child


@dataclass(frozen=True)
class PackingRequest:
    """Which part of which transcript to pack, and the projects whose words may leave (None: all)."""

    transcript: str
    host: str
    start: int
    context_offset: int
    """Where reading begins, as when it is mined, so that both see the same messages."""
    projects: Sequence[str] | None


def pack_transcript(request: PackingRequest, most_bytes: int = MAX_CONTENT_BYTES) -> Packed:
    """Pack the reading of one transcript. Raises OSError, TooLarge."""
    begin = min(request.context_offset, request.start)
    reader = open_transcript(Path(request.transcript), begin, request.host or None)
    packed = pack(reader, start=request.start, may_leave=_consented(request.projects), most_bytes=most_bytes)
    report = reader.report
    if reader.restarted or report.headless:
        return Packed(b"", 0, (), request.start)  # Mining it decides what to do with it.
    return replace(packed, end=max(report.end_offset, request.start))


def _consented(projects: Collection[str] | None) -> Callable[[Turn], bool]:
    if projects is None:
        return lambda _: True
    project = lru_cache(maxsize=256)(project_of)
    return lambda turn: bool(turn.cwd) and project(turn.cwd or "") in projects


def main() -> int:
    """Run the child."""
    supervisor.watch_parent()
    lower_priority(NICENESS)
    left = MAX_CONTENT_BYTES - len(MAGIC)
    for fields in json.load(sys.stdin):
        answer: dict[str, Any]
        data = b""
        try:
            packed = pack_transcript(PackingRequest(**fields), left - _LENGTH_BYTES)
        except TooLarge as error:
            answer = {"left_out": str(error)}
        except OSError as error:
            answer = {"left_out": f"cannot be read: {error.strerror}"}
        else:
            data = packed.data
            left -= _LENGTH_BYTES + len(data)
            answer = {"bytes": len(data), "end": packed.end, "words": packed.words, "kept_back": packed.kept_back}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + data)
        sys.stdout.buffer.flush()
        kill_point("share-mid-packing")
    return 0


def packed_from(output: bytes) -> list[Packed | None]:
    """Parse what the child printed; None for a reading that it left out. Raises ValueError, KeyError."""
    found: list[Packed | None] = []
    position = 0
    while position < len(output):
        end = output.index(b"\n", position)
        answer = json.loads(output[position:end])
        position = end + 1
        if "left_out" in answer:
            found.append(None)
            continue
        data = output[position : position + int(answer["bytes"])]
        position += len(data)
        found.append(Packed(data, int(answer["words"]), tuple(answer["kept_back"]), int(answer["end"])))
    return found


if __name__ == "__main__":
    raise SystemExit(main())
