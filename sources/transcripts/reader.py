"""The base of every host's transcript reader."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...runtime.private import may_have_private_tag
from ...vault.turn import Origin, Role, ToolEvent, Turn
from .apart import apart_ranges
from .compressed import ByteStream, open_bytes
from .lines import as_text, begins_line, lines_from, parse_object, records_within
from .typed_list import NO_LIST, TypedList
from .words import strip_private

JSON_COLONS = (":", ": ")
"""Between a field and its value: hosts write the first."""
ENTERED = frozenset({Origin.PROMPT, Origin.QUEUED, Origin.COMMAND_ARGS})
"""Origins of what was entered at the prompt, and so stands in the list of typed lines, where there is one."""
HEADER_BUFFER_BYTES = 4 << 10
HEADER_BYTES = 1 << 20
"""How far into a file its header (session, folder, headless or not) is searched."""


@dataclass(frozen=True)
class ReadReport:
    """Counts of a reading, valid at any time. `end_offset`, in bytes, is where the next one starts."""

    end_offset: int
    lines: int
    bad_lines: int
    """Complete lines that are no JSON object (or longer than 64 MB): skipped, but for the whole records in them."""
    turns: int
    headless: bool
    """A program ran the session, not a person: none of it is mined."""


@dataclass(frozen=True)
class SessionHeader:
    """Session and folder, as the first records name them."""

    session: str
    cwd: str
    """'' when unknown."""
    headless: bool


class TranscriptReader(ABC):
    """Iterate once for the turns from `offset` on, then see `report`. Raises OSError when the file can't be read.

    Memory stays flat whatever the size of the file. Each record is yielded once, however often the file repeats it.
    """

    host: ClassVar[str]
    record_start: ClassVar[bytes]
    """How records with the user's words begin: where it stands inside of a line, the line is not one record."""
    record_id: ClassVar[str] = ""
    """The field that names a record; where there is none, its place in the file does."""

    def __init__(self, path: Path, offset: int = 0, look_back: bool = True, read_until: int = 0) -> None:
        """Read from byte `offset` on, or from the beginning if no line begins there or at `read_until`.

        `read_until`: where the last reading ended; that `offset` still begins a line says nothing of what follows.
        Without `look_back` nothing before `offset` is read but the header: it must not be behind the `needed_from` of
        the last reading.
        """
        self.path = path
        self._may_look_back = look_back
        self.session = path.stem
        self._cwd: str | None = None
        self._timestamp: str | None = None
        """Timestamp of records that have none of their own."""
        self._restarted = False
        self._start = max(0, offset)
        self._read_until = read_until
        self._end = self._start
        self._lines = 0
        self._bad = 0
        self._turns = 0
        self._headless = False
        self._offset_of_line = self._start
        self._is_damaged = False
        """The record that is read is a part of a line: whoever wrote the line may have written it, too."""

    @property
    def end_offset(self) -> int:
        """Offset behind the last line that was read; while iterating, behind the line of the last turn."""
        return self._end

    @property
    def needed_from(self) -> int:
        """Offset from which the next reading has to begin if it does not look back. Valid once this one has ended."""
        return self._end

    @property
    def forked_from(self) -> tuple[str, ...]:
        """Sessions a copy of which the transcript begins with, where the copies' records can't be told by an id."""
        return ()

    @property
    def restarted(self) -> bool:
        """Whether the file was rewritten, and is read from its beginning. Valid once reading has begun."""
        return self._restarted

    @property
    def report(self) -> ReadReport:
        return ReadReport(self._end, self._lines, self._bad, self._turns, self._headless)

    def header(self) -> SessionHeader:
        """Read the header only; do not iterate this reader afterwards. Raises OSError."""
        with open_bytes(self.path) as file:
            self._begin(file)
        return SessionHeader(self.session, self._cwd or "", self._headless)

    def __iter__(self) -> Iterator[Turn]:
        # Opened once for all that is read: a session is read anew after each answer, and mostly only a little of it.
        with open_bytes(self.path) as file:
            self._begin(file)
            yield from self._turns_from(file)

    def _begin(self, file: ByteStream) -> None:
        """Learn where to start, and what has to be known there."""
        if not (begins_line(file, self._read_until) and begins_line(file, self._start, self.record_start)):
            self._restarted = True
            self._start = self._end = self._offset_of_line = 0
        self._read_header(self._header_records(file))
        if self._start > 0 and not self._headless and self._may_look_back:
            self._look_back(file)

    def _turns_from(self, file: ByteStream) -> Iterator[Turn]:
        is_irrelevant, turns_of, begins = self._is_irrelevant, self._turns_of, self.record_start
        for offset, end, data, too_long in lines_from(file, self._start):
            self._end = end
            if data.isspace():
                continue
            self._lines += 1
            if self._headless:
                continue
            record = None
            if not too_long and data.find(begins, 1) < 0:
                if is_irrelevant(data):
                    continue
                record = parse_object(data)
            self._offset_of_line = offset
            for turn in turns_of(record) if record is not None else self._turns_of_damaged(data, offset):
                self._turns += 1
                yield _without_private(turn)
        for turn in self._at_end():
            self._turns += 1
            yield _without_private(turn)

    def _turns_of_damaged(self, data: bytes, offset: int) -> Iterator[Turn]:
        """Yield the turns of the records in a line at `offset` that is not one record."""
        pieces = records_within(data, self.record_start)
        whole = len(data.strip(b"\0 \t\r\n"))
        self._bad += sum(len(piece) for _, piece in pieces) < whole or not pieces
        for at, piece in pieces:
            record = None if self._is_irrelevant(piece) else parse_object(piece)
            if record is not None:
                self._offset_of_line = offset + at
                self._is_damaged = len(piece) < whole
                yield from self._turns_of(record)
                self._is_damaged = False

    @staticmethod
    def _header_records(file: ByteStream) -> Iterator[dict[str, Any]]:
        """Yield the first records of the file: a reading from the middle needs them, too."""
        for line in lines_from(file, 0, HEADER_BYTES, HEADER_BUFFER_BYTES):
            if line.offset > HEADER_BYTES:
                return
            record = None if line.too_long else parse_object(line.data)
            if record is not None:
                yield record

    @abstractmethod
    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        """Learn session, folder and `headless` from the first records of the file."""

    def _look_back(self, file: ByteStream) -> None:  # noqa: B027 - most hosts need nothing of what precedes
        """Learn what has to be known of what precedes the offset."""

    @abstractmethod
    def _is_irrelevant(self, data: bytes) -> bool:
        """Whether the bytes of the line show that it holds no turn: parsing is most of the cost of a reading."""

    @abstractmethod
    def _turns_of(self, record: dict[str, Any]) -> Iterable[Turn]:
        """Make the turns of one record; a record of unknown shape has none."""

    def _turn(
        self,
        record: dict[str, Any],
        role: Role,
        origin: Origin,
        text: str,
        tool: ToolEvent | None = None,
        about: str = "",
        pasted: tuple[tuple[int, int], ...] = (),
        confirmed: bool = False,
    ) -> Turn:
        offset = self._offset_of_line
        name = self._name_of(record) or f"line:{offset}"
        timestamp = as_text(record.get("timestamp")) or self._timestamp
        apart: tuple[tuple[int, int], ...] = ()
        if role is Role.USER:
            typed = self._typed_list(record)
            gaps: tuple[tuple[int, int], ...] | None = ()
            if typed.knows_session and origin in ENTERED:
                gaps = typed.pasted_in(text)
                confirmed = gaps is not None
            apart = apart_ranges(text, gaps or ())
        return Turn(
            role,
            origin,
            text,
            name,
            self.session,
            timestamp,
            self._cwd,
            tool,
            offset,
            self.host,
            pasted,
            about,
            apart,
            confirmed and not self._is_damaged,
        )

    def _typed_list(self, record: dict[str, Any]) -> TypedList:
        """The host's list of typed lines, for a record that comes from where it keeps one."""
        return NO_LIST

    def _name_of(self, record: dict[str, Any]) -> str:
        """The id that the host gave the record; '' where it gives none."""
        return as_text(record.get(self.record_id)) if self.record_id else ""

    @classmethod
    def written_names(cls, record: str) -> Iterator[bytes]:
        """Yield what stands in the file where a record of this name names itself: others may mention it before."""
        if cls.record_id:
            for colon in JSON_COLONS:
                yield f"{json.dumps(cls.record_id)}{colon}{json.dumps(record)}".encode()

    def _at_end(self) -> Iterator[Turn]:
        """Yield turns that were held back until the end."""
        return iter(())


def _may_be_marked(tool: ToolEvent) -> bool:
    return (
        may_have_private_tag(tool.target)
        or may_have_private_tag(tool.command or "")
        or may_have_private_tag(tool.file_path or "")
    )


def _without_private(turn: Turn) -> Turn:
    """Remove private passages, by whomever repeated, before anything quotes, cuts or rewords them."""
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
    if text != turn.text:
        turn = turn._replace(text=text, pasted=(), apart=(), confirmed=False)  # The ranges are of the other text.
    return turn._replace(about=about, tool=tool)
