"""Antigravity's transcripts, experimental: `~/.gemini/antigravity*/brain/<id>/.system_generated/logs/transcript.jsonl`.

Written from a sample of the format; no real session was at hand. What the user typed is between `<USER_REQUEST>` marks
in records of type USER_INPUT whose source is USER_EXPLICIT; the rest of the record is the host's metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from ...vault.turn import Origin, Role, ToolEvent, Turn
from .calls import TOOL_TEXT_CHARS, call_text, tool_call
from .lines import as_text, clean, holds_only, shorten
from .reader import JSON_COLONS, TranscriptReader
from .words import entered_text, has_machines_form, pasted_ranges

LOG = Path(".system_generated", "logs", "transcript.jsonl")
TYPED_RECORD = frozenset({"step_index", "source", "type", "status", "created_at", "content"})
_STEP = "step:"
_REQUEST = re.compile(r"\s*<USER_REQUEST>\n?(.*?)</USER_REQUEST>", re.DOTALL)
_NOT_TOOLS = frozenset({"PLANNER_RESPONSE", "CONVERSATION_HISTORY", "CHECKPOINT", "USER_INPUT"})
_NAMES: Mapping[str, str] = {
    "CommandLine": "command",
    "Cwd": "cwd",
    "AbsolutePath": "file_path",
    "TargetFile": "file_path",
}


class AntigravityReader(TranscriptReader):
    """Names records by their number, and takes a result to belong to the newest call."""

    host: ClassVar[str] = "antigravity"
    record_start: ClassVar[bytes] = b'{"step_index":'

    def __init__(self, path: Path, offset: int = 0, look_back: bool = True, read_until: int = 0) -> None:
        super().__init__(path, offset, look_back, read_until)
        parts = path.parts[-len(LOG.parts) :]
        self.session = path.parents[len(LOG.parts) - 1].name if parts == LOG.parts else path.stem
        self._call = ToolEvent("")

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            for _, arguments in _calls(record):
                if self._cwd is None and isinstance(arguments.get("cwd"), str):
                    self._cwd = arguments["cwd"]
                    return

    def _is_irrelevant(self, data: bytes) -> bool:
        return b'"source"' not in data

    def _turns_of(self, record: dict[str, Any]) -> Iterator[Turn]:
        self._timestamp = as_text(record.get("created_at")) or None
        kind, source = as_text(record.get("type")), record.get("source")
        content = as_text(record.get("content"))
        if kind == "USER_INPUT" and source == "USER_EXPLICIT":
            # Only at the beginning, and up to the first end: what follows is the host's, or was pasted.
            request = _REQUEST.match(content)
            entered = request.group(1) if request else content
            text = entered_text(entered)
            if text:
                pasted = pasted_ranges(text)
                confirmed = request is not None and not has_machines_form(entered) and holds_only(record, TYPED_RECORD)
                yield self._turn(record, Role.USER, Origin.PROMPT, text, pasted=pasted, confirmed=confirmed)
        elif kind == "PLANNER_RESPONSE":
            if text := clean(content).strip():
                yield self._turn(record, Role.ASSISTANT, Origin.ASSISTANT, text)
            for name, arguments in _calls(record):
                self._call = tool_call("", name, arguments)
                text = call_text(self._call, arguments)
                yield self._turn(record, Role.TOOL, Origin.TOOL_USE, text, tool=self._call)
        elif source == "MODEL" and kind not in _NOT_TOOLS:
            failed = bool(as_text(record.get("error"))) or record.get("status") == "ERROR"
            call = self._call
            event = ToolEvent(call.name or kind.lower(), None, call.command, call.file_path, failed, False, call.target)
            text = clean(shorten(content or as_text(record.get("error")), TOOL_TEXT_CHARS))
            yield self._turn(record, Role.TOOL, Origin.TOOL_RESULT, text, tool=event)

    def _name_of(self, record: dict[str, Any]) -> str:
        step = record.get("step_index")
        return f"{_STEP}{step}" if isinstance(step, int) else ""

    @classmethod
    def written_names(cls, record: str) -> Iterator[bytes]:
        for colon, end in product(JSON_COLONS, ",}"):
            yield f'"step_index"{colon}{record.removeprefix(_STEP)}{end}'.encode()


def transcript_files(root: Path) -> Iterator[Path]:
    """Yield the sessions under `~/.gemini`, in order of name."""
    for path in sorted(root.glob(f"antigravity*/brain/*/{LOG}")):
        if path.is_file():
            yield path


def _calls(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and arguments of each call in a record; each argument is JSON in a string."""
    calls = record.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        raw = call.get("args") if isinstance(call, dict) else None
        if not isinstance(raw, dict):
            continue
        arguments: dict[str, Any] = {}
        for key, value in raw.items():
            try:
                plain = json.loads(value) if isinstance(value, str) else value
            except ValueError:
                plain = value
            arguments[_NAMES.get(str(key), str(key))] = plain
        yield as_text(call.get("name")), arguments
