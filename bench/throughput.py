"""Measure the processor time of reading sessions: `python -m memoryvault.bench.throughput`.

MEMORYVAULT_DATA names a folder with `sessions.tar.gz`. One process reads all sessions, with the models that are here
and with n-grams alone; nothing is written.
"""

from __future__ import annotations

import os
import resource
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..pipelines.reading.miner import Miner
from ..pipelines.reading.reading import Message, MessageReading, Reader
from ..pipelines.reading.sentences import sentences
from ..sources.transcripts.claude import ClaudeReader
from .reflection import folder_name, local_readers

WARM_UP = "From now on, always run the linter before you commit."
"""A message that both models read."""


class _Counting:
    """Counts the messages that are read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.messages = 0

    @property
    def name(self) -> str:
        """See Reader."""
        return self._reader.name

    def read(self, message: Message) -> MessageReading:
        """See Reader."""
        self.messages += 1
        return self._reader.read(message)


@contextmanager
def unpacked_sessions(data: Path) -> Iterator[list[Path]]:
    """Unpack `sessions.tar.gz` into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="memoryvault-sessions-") as folder:
        with tarfile.open(data / "sessions.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        yield sorted(Path(folder).rglob("*.jsonl"))


def read_all(sessions: list[Path], reader: Reader) -> tuple[float, int, int]:
    """Return processor seconds, messages read and candidates found."""
    counting, found = _Counting(reader), 0
    began = time.process_time()
    for path in sessions:
        miner = Miner(reader=counting, project_of=folder_name)
        found += sum(len(miner.feed(turn)) for turn in ClaudeReader(path))
    return time.process_time() - began, counting.messages, found


def main() -> int:
    """Print the table."""
    data = os.environ.get("MEMORYVAULT_DATA")
    if not data:
        print("MEMORYVAULT_DATA must name the folder with the development data", file=sys.stderr)
        return 2
    with unpacked_sessions(Path(data)) as sessions:
        print(f"{len(sessions)} sessions, {sum(path.stat().st_size for path in sessions) / 1e6:.0f} MB\n")
        print("| read by | processor seconds | messages read | for 100 messages | candidates |")
        print("|---|---|---|---|---|")
        for name, reader in local_readers():
            reader.read(Message(WARM_UP, "", sentences(WARM_UP)))
            seconds, messages, found = read_all(sessions, reader)
            print(f"| {name} | {seconds:.1f} | {messages} | {100 * seconds / messages:.2f} | {found} |")
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB, the model included")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
