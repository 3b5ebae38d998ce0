"""Judging which messages of another machine's sessions are worth mining, in a child process.

`python -m memoryvault.tasks.sharing.judging` reads a content on stdin and prints JSON: for each of its readings the
offsets of the messages for which the local miner would propose something. It opens no file of this machine's user.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...runtime.errors import MemoryVaultError
from ...runtime.killpoint import kill_point
from ...runtime.priority import lower_priority
from ...vault.turn import Turn
from ..queue import supervisor
from .packing import NICENESS, ContentInvalid, unbundle, unpack

VERSION = 1
INVALID = 3
"""Exit status of the child for a content that cannot be read, with which no further attempt helps."""
MAX_OUTCOME_BYTES = 4 << 20


@functools.cache
def miner_version() -> str:
    """Version of the miner, not of the package: a hash over its code and weights.

    A machine with another version would silently drop what only this one proposes.
    """
    folder = Path(__file__).resolve().parents[2] / "pipelines" / "reading"
    files = sorted([*folder.glob("*.py"), *folder.glob("*.json"), *folder.glob("*.safetensors")])
    parts = (part for file in files for part in (file.name.encode(), file.read_bytes()))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


class OutcomeInvalid(MemoryVaultError):
    """What another machine sent is no valid answer to what it was asked."""


def judge(turns: Iterable[Turn]) -> list[int]:
    """List the offsets of the messages for which the miner proposes something, ascending."""
    from ...pipelines.reading.miner import Miner  # Not before: see services/mining.py.

    miner = Miner()
    return sorted({turn.offset for turn in turns if miner.feed(turn)})


def outcome_of(content: bytes) -> bytes:
    """Judge all readings of a content; returns JSON. Raises ContentInvalid."""
    picked = [judge(unpack(reading)) for reading in unbundle(content)]
    return json.dumps({"v": VERSION, "miner": miner_version(), "picked": picked}, separators=(",", ":")).encode()


def picked_from(outcome: bytes, asked: Sequence[tuple[int, int, int]]) -> list[tuple[int, ...]]:
    """Parse the offsets for each reading; `asked` has start, end and number of messages of each.

    Nothing else in an outcome is used, and none of it is text. Raises OutcomeInvalid.
    """
    if len(outcome) > MAX_OUTCOME_BYTES:
        raise OutcomeInvalid("it is too large")
    try:
        value = json.loads(outcome)
    except (ValueError, RecursionError) as error:
        raise OutcomeInvalid("it is no JSON") from error
    if not isinstance(value, dict) or value.keys() != {"v", "miner", "picked"} or value["v"] != VERSION:
        raise OutcomeInvalid("it was made by another version")
    if value["miner"] != miner_version():
        raise OutcomeInvalid("the miner there is of another version: install the same release on all machines")
    lists = value["picked"]
    if not isinstance(lists, list) or len(lists) != len(asked):
        raise OutcomeInvalid(f"it does not answer the {len(asked)} readings that were asked")
    return [_offsets(offsets, *one) for offsets, one in zip(lists, asked, strict=True)]


def _offsets(value: object, start: int, end: int, words: int) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > words:
        raise OutcomeInvalid("it names more messages than there are")
    previous = start - 1
    for offset in value:
        if not isinstance(offset, int) or isinstance(offset, bool) or not previous < offset < end:
            raise OutcomeInvalid("it names what was not asked")
        previous = offset
    return tuple(value)


def main() -> int:
    """Run the child."""
    supervisor.watch_parent()
    lower_priority(NICENESS)
    try:
        outcome = outcome_of(sys.stdin.buffer.read())
    except ContentInvalid as error:
        print(error, file=sys.stderr)
        return INVALID
    kill_point("share-mid-judging")
    sys.stdout.buffer.write(outcome)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
