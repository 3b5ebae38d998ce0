"""What every host's transcript reader has in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...vault.private import may_have_private_tag
from ...vault.turn import Origin, Role, ToolEvent, Turn
from .lines import Line, as_text, complete_lines, parse_object
from .words import strip_private

HEADER_BUFFER_BYTES = 4 << 10
HEADER_BYTES = 1 << 20
"""How far into a file to look for what it says of itself (session, folder, headless or not)."""


@dataclass(frozen=True)
class ReadReport:
    """What a reading did. Valid at any time; `end_offset` is where the next one starts."""

    end_offset: int
    lines: int
    bad_lines: int
    """Complete lines that are no JSON object (or longer than 64 MB): skipped."""
    turns: int
    headless: bool
    """The session was run by a program, not by a person: none of it is mined."""
    restarted: bool
    """The file is shorter than the offset: it was replaced, and was read from its beginning."""


@dataclass(frozen=True)
class SessionHeader:
    """What a transcript says of itself in its first records."""

    session: str
    cwd: str
    """'' when it does not say."""
    headless: bool


_turn = tuple.__new__
"""Makes a `Turn` in half the time: a session has thousands."""


class TranscriptReader(ABC):
    """Iterate once for the turns from `offset` on, then see `report`. Raises OSError when the file can't be read.

    Memory stays flat whatever the size of the file. Each record is yielded once, however often the file repeats it.
    """

    host: ClassVar[str]
    record_id: ClassVar[str] = ""
    """The field that names a record; where there is none, its place in the file does."""

    def __init__(self, path: Path, offset: int = 0, look_back: bool = True, all_steps: bool = True) -> None:
        """Without `look_back` nothing before `offset` is read but the file's header: `offset` is then one that
        `needed_from` of the reading before allows. Without `all_steps` a reader may leave out the calls of tools that
        only look (read, search), what they put out if they did not fail, and the text of calls and of edits that went
        well: most of a transcript's bytes, and nothing to learn from."""
        self.path = path
        self._may_look_back = look_back
        self._all_steps = all_steps
        self.session = path.stem
        self._cwd: str | None = None
        self._timestamp: str | None = None
        """For records without one of their own."""
        self._restarted = offset > os.stat(path).st_size
        self._start = 0 if self._restarted else max(0, offset)
        self._end = self._start
        self._lines = 0
        self._bad = 0
        self._turns = 0
        self._headless = False
        self._offset_of_line = self._start

    @property
    def end_offset(self) -> int:
        """Just behind the last line that was read; while iterating, of the line the last turn came from."""
        return self._end

    @property
    def needed_from(self) -> int:
        """After a reading: from here on the next one has to read to know, without looking back, what this one knows."""
        return self._end

    @property
    def report(self) -> ReadReport:
        return ReadReport(self._end, self._lines, self._bad, self._turns, self._headless, self._restarted)

    def header(self) -> SessionHeader:
        """Only what the beginning says; do not iterate this reader afterwards. Raises OSError."""
        self._read_header()
        return SessionHeader(self.session, self._cwd or "", self._headless)

    def __iter__(self) -> Iterator[Turn]:
        self._read_header()
        is_irrelevant, turns_of = self._is_irrelevant, self._turns_of
        for offset, end, data, too_long in complete_lines(self.path, self._start):
            self._end = end
            if data.isspace():
                continue
            self._lines += 1
            if self._headless or (not too_long and is_irrelevant(data)):
                continue
            record = None if too_long else self._parse(data)
            if record is None:
                self._bad += 1
                continue
            self._offset_of_line = offset
            for turn in turns_of(record):
                self._turns += 1
                yield _without_private(turn)
        for turn in self._at_end():
            self._turns += 1
            yield _without_private(turn)

    def _header_lines(self) -> Iterator[dict[str, Any]]:
        """The first records of the file, so that a reading from the middle knows what the beginning said."""
        line: Line
        for line in complete_lines(self.path, 0, HEADER_BYTES, HEADER_BUFFER_BYTES):
            if line.offset > HEADER_BYTES:
                return
            record = None if line.too_long else parse_object(line.data)
            if record is not None:
                yield record

    def _parse(self, data: bytes) -> dict[str, Any] | None:
        return parse_object(data)

    @abstractmethod
    def _read_header(self) -> None:
        """Learn what only the beginning of the file says."""

    @abstractmethod
    def _is_irrelevant(self, data: bytes) -> bool:
        """Can this line be told from its bytes to hold nothing? Parsing is what a reading costs most."""

    @abstractmethod
    def _turns_of(self, record: dict[str, Any]) -> Iterable[Turn]:
        """The turns of one record; a record of unknown shape has none."""

    def _turn(
        self,
        record: dict[str, Any],
        role: Role,
        origin: Origin,
        text: str,
        tool: ToolEvent | None = None,
        about: str = "",
        pasted: tuple[tuple[int, int], ...] = (),
    ) -> Turn:
        offset = self._offset_of_line
        name = self._name_of(record) or f"line:{offset}"
        timestamp = as_text(record.get("timestamp")) or self._timestamp
        said = (role, origin, text, name, self.session, timestamp, self._cwd, tool, offset, self.host, pasted, about)
        return _turn(Turn, said)

    def _name_of(self, record: dict[str, Any]) -> str:
        """The id that the host gave the record; '' where it gives none."""
        return as_text(record.get(self.record_id)) if self.record_id else ""

    def _at_end(self) -> Iterator[Turn]:
        """Turns that were held back until it was clear that nothing more comes."""
        return iter(())


def _may_be_marked(tool: ToolEvent) -> bool:
    return (
        may_have_private_tag(tool.target)
        or may_have_private_tag(tool.command or "")
        or may_have_private_tag(tool.file_path or "")
    )


def _without_private(turn: Turn) -> Turn:
    """Whoever repeats a private passage, it is gone before anything quotes, cuts or rewords it."""
    tool = turn.tool
    if not (
        may_have_private_tag(turn.text)
        or may_have_private_tag(turn.about)
        or (tool is not None and _may_be_marked(tool))
    ):
        return turn
    if tool is not None:
        command = None if tool.command is None else strip_private(tool.command)
        file_path = None if tool.file_path is None else strip_private(tool.file_path)
        target = strip_private(tool.target)
        if (command, file_path, target) != (tool.command, tool.file_path, tool.target):
            tool = tool._replace(command=command, file_path=file_path, target=target)
    text, about = strip_private(turn.text), strip_private(turn.about)
    if text == turn.text and about == turn.about and tool is turn.tool:
        return turn
    return turn._replace(text=text, about=about, tool=tool, pasted=turn.pasted if text == turn.text else ())
