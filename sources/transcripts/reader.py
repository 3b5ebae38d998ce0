"""The base of every host's transcript reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

from ...runtime.private import strip_private
from ...vault.turn import Origin, Role, ToolEvent, Turn
from .compressed import ByteStream, open_bytes
from .lines import as_text, begins_line, clean, lines_from, one_line, parse_object, records_within, shorten
from .typed_list import NO_LIST, TypedList
from .whose_words import apart_ranges, pasted_ranges

ENTERED = frozenset({Origin.PROMPT, Origin.QUEUED, Origin.COMMAND_ARGS})
"""Origins of what was entered at the prompt, and so is in the list of typed lines, where there is one."""
HEADER_BUFFER_BYTES = 4 << 10
HEADER_BYTES = 1 << 20
"""Most bytes of a file in which its header (session, folder, headless or not) is searched."""

TOOL_TEXT_CHARS = 1600
"""Longest text of a command, and of a tool's output."""

_COMMAND_KEYS = ("command", "cmd")
_FILE_KEYS = ("file_path", "path", "notebook_path")
_TARGET_KEYS = (*_COMMAND_KEYS, *_FILE_KEYS, "pattern", "query", "url", "skill", "description")


class TranscriptReader(ABC):
    """Iterate once for the turns from `offset` on. Raises OSError when the file can't be read.

    Memory stays flat for files of any size. A record that the file repeats is yielded once.
    """

    host: ClassVar[str]
    record_start: ClassVar[bytes]
    """The bytes that a record with the user's words begins with; inside a line they show that the line is damaged."""
    record_id: ClassVar[str] = ""
    """The field with a record's id; '' where records have none, and are named by their place in the file."""

    look_back_bytes: ClassVar[int] = 0
    """Bytes before the offset that must be known to read on."""

    def __init__(self, path: Path, offset: int = 0, read_until: int = 0) -> None:
        """Read from byte `offset` on, or from the beginning if no line begins there or at `read_until`.

        `read_until`: where the last reading ended; the file may have been rewritten between `offset` and there.
        """
        self.path = path
        self.session = path.stem
        self.cwd: str | None = None
        """Folder of the session, as the last record says; None when unknown."""
        self._timestamp: str | None = None
        """Timestamp for records without one."""
        self.restarted = False
        """Whether the file was rewritten and is read from its beginning. Valid once reading has begun."""
        self.forked_from: tuple[str, ...] = ()
        """Sessions that are copied at the beginning of the transcript, where no id marks the copied records, as Codex
        writes them anew with the time of the fork."""
        self._start = max(0, offset)
        self._read_until = read_until
        self.end_offset = self._start
        """Offset after the last line that was read; while iterating, after the line of the last turn."""
        self.bad_lines = 0
        """Complete lines so far that are no JSON object, or longer than 64 MB. Only the complete records in them are
        read."""
        self.headless = False
        """A program ran the session, not a person: nothing is mined from it. Valid once reading has begun."""
        self._offset_of_line = self._start
        self._is_damaged = False
        """Whether the record is a part of a line; then the text around it may have been made to look like a record."""

        self._calls: dict[str, ToolEvent] = {}
        """Tool calls without a result yet, by the id of the call."""

    def header(self) -> Self:
        """Read the header only; do not iterate this reader afterwards. Raises OSError."""
        with open_bytes(self.path) as file:
            self._begin(file)
        return self

    def __iter__(self) -> Iterator[Turn]:
        with open_bytes(self.path) as file:
            self._begin(file)
            yield from self._turns_from(file)

    def _begin(self, file: ByteStream) -> None:
        """Find out where to start, and read what has to be known there."""
        if not (begins_line(file, self._read_until) and begins_line(file, self._start, self.record_start)):
            self.restarted = True
            self._start = self.end_offset = self._offset_of_line = 0
        self._read_header(self._header_records(file))
        if self._start > 0 and self.look_back_bytes and not self.headless:
            self._look_back(file)

    def _turns_from(self, file: ByteStream) -> Iterator[Turn]:
        for offset, end, data, too_long in lines_from(file, self._start):
            self.end_offset = end
            if data.isspace():
                continue
            if self.headless:
                continue
            self._offset_of_line = offset
            record = None if too_long or data.find(self.record_start, 1) >= 0 else parse_object(data)
            for turn in self._turns_of(record) if record is not None else self._turns_of_damaged(data, offset):
                yield _without_private(turn)
        for turn in self._at_end():
            yield _without_private(turn)

    def _turns_of_damaged(self, data: bytes, offset: int) -> Iterator[Turn]:
        """Yield the turns of the records in a damaged line at `offset`."""
        pieces = records_within(data, self.record_start)
        whole = len(data.strip(b"\0 \t\r\n"))
        self.bad_lines += sum(len(piece) for _, piece in pieces) < whole or not pieces
        for at, piece in pieces:
            record = parse_object(piece)
            if record is not None:
                self._offset_of_line = offset + at
                self._is_damaged = len(piece) < whole
                yield from self._turns_of(record)
                self._is_damaged = False

    @staticmethod
    def _header_records(file: ByteStream) -> Iterator[dict[str, Any]]:
        """Yield the first records of the file, which a reading from the middle needs, too."""
        for line in lines_from(file, 0, HEADER_BYTES, HEADER_BUFFER_BYTES):
            if line.offset > HEADER_BYTES:
                return
            record = None if line.too_long else parse_object(line.data)
            if record is not None:
                yield record

    @abstractmethod
    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        """Set session, folder and `headless` by the first records of the file."""

    def _look_back(self, file: ByteStream) -> None:
        """Read what stands before the offset, without yielding it again."""
        for line in lines_from(file, max(0, self._start - self.look_back_bytes)):
            if line.offset >= self._start:
                break
            record = None if line.too_long else parse_object(line.data)
            deque(self._turns_of(record) if record is not None else (), maxlen=0)
        deque(self._at_end(), maxlen=0)

    @abstractmethod
    def _turns_of(self, record: dict[str, Any]) -> Iterable[Turn]:
        """Make the turns of one record; none for a record of unknown shape."""

    def _turn(
        self,
        record: dict[str, Any],
        role: Role,
        origin: Origin,
        text: str,
        tool: ToolEvent | None = None,
        about: str = "",
        pasted: tuple[tuple[int, int], ...] | None = None,
        confirmed: bool = False,
    ) -> Turn:
        """Make one turn. `pasted`: by default what looks pasted in a user's text."""
        offset = self._offset_of_line
        name = self._name_of(record) or f"line:{offset}"
        timestamp = as_text(record.get("timestamp")) or self._timestamp
        apart: tuple[tuple[int, int], ...] = ()
        is_users = role is Role.USER
        if pasted is None:
            pasted = pasted_ranges(text) if is_users else ()
        if is_users:
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
            self.cwd,
            tool,
            offset,
            self.host,
            pasted,
            about,
            apart,
            confirmed and not self._is_damaged,
        )

    def _typed_list(self, record: dict[str, Any]) -> TypedList:
        """Return the host's list of typed lines, for a record that comes from where it keeps one."""
        return NO_LIST

    def _tool_use(self, record: dict[str, Any], call: str, name: str, arguments: dict[str, Any]) -> Turn:
        """Make the turn of a tool call, and keep the call until its result comes."""
        event = tool_call(call, name, arguments)
        self._calls[call] = event
        return self._turn(record, Role.TOOL, Origin.TOOL_USE, call_text(event, arguments), event)

    def _tool_result(self, record: dict[str, Any], call: ToolEvent, output: str, *, failed: bool) -> Turn:
        """Make the turn of a tool's result."""
        event = call._replace(is_error=failed)
        return self._turn(record, Role.TOOL, Origin.TOOL_RESULT, clean(shorten(output, TOOL_TEXT_CHARS)), event)

    def _name_of(self, record: dict[str, Any]) -> str:
        """Return the host's id of the record; '' where there is none."""
        return as_text(record.get(self.record_id)) if self.record_id else ""

    def _at_end(self) -> Iterator[Turn]:
        """Yield turns that were held back until the end."""
        return iter(())


def _without_private(turn: Turn) -> Turn:
    """Remove private passages from all texts of a turn, before anything quotes, cuts or rewords them."""
    text, tool = strip_private(turn.text), turn.tool
    if text != turn.text:
        turn = turn._replace(text=text, pasted=(), apart=(), confirmed=False)  # The ranges were those of the old text.
    if tool is not None:
        tool = tool._replace(
            command=tool.command and strip_private(tool.command),
            file_path=tool.file_path and strip_private(tool.file_path),
            target=strip_private(tool.target),
        )
    return turn._replace(about=strip_private(turn.about), tool=tool)


def tool_call(use_id: str, name: str, arguments: dict[str, Any]) -> ToolEvent:
    """Describe a call by its id, the tool's name and its arguments."""
    command, file_path = _first_text(arguments, _COMMAND_KEYS), _first_text(arguments, _FILE_KEYS)
    target = next(filter(None, (one_line(arguments.get(key)) for key in _TARGET_KEYS)), "")
    ran = shorten(clean(command), TOOL_TEXT_CHARS) if command else None
    return ToolEvent(name, use_id or None, ran, clean(file_path) if file_path else None, target=target)


def _first_text(arguments: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((as_text(arguments[key]) for key in keys if isinstance(arguments.get(key), str)), "")


def call_text(event: ToolEvent, arguments: dict[str, Any]) -> str:
    """Render a call as short text: a command in full, an edit as the lines it removes and adds."""
    if event.command:
        return event.command
    old, new = arguments.get("old_string"), arguments.get("new_string", arguments.get("content"))
    if isinstance(new, str):
        removed = f"- {shorten(clean(old), 300)}\n" if isinstance(old, str) and old else ""
        return f"{event.target}\n{removed}+ {shorten(clean(new), 600)}"
    return event.target
