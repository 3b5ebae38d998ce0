"""Read Antigravity's transcripts: `~/.gemini/antigravity*/brain/<id>/.system_generated/logs/transcript.jsonl`.

Experimental: written from a sample of the format, without a real session. What the user typed is between
`<USER_REQUEST>` marks in records of type USER_INPUT whose source is USER_EXPLICIT; the rest is the host's metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ...runtime.json_text import parse_json
from ...vault.turn import Origin, Role, ToolEvent, Turn
from .lines import as_list, as_object, as_text, clean, holds_only
from .reader import TranscriptReader
from .whose_words import entered_text, has_machines_form

LOG = Path(".system_generated", "logs", "transcript.jsonl")
TYPED_RECORD = frozenset({"step_index", "source", "type", "status", "created_at", "content"})
_REQUEST = re.compile(r"\s*<USER_REQUEST>\n?(.*?)</USER_REQUEST>", re.DOTALL)
_NOT_TOOLS = frozenset({"PLANNER_RESPONSE", "CONVERSATION_HISTORY", "CHECKPOINT", "USER_INPUT"})
_NAMES: Mapping[str, str] = {
    "CommandLine": "command",
    "Cwd": "cwd",
    "AbsolutePath": "file_path",
    "TargetFile": "file_path",
}


class AntigravityReader(TranscriptReader):
    """Records are named by their number; a result belongs to the newest call, since calls have no ids."""

    host: ClassVar[str] = "antigravity"
    record_start: ClassVar[bytes] = b'{"step_index":'

    def __init__(self, path: Path, offset: int = 0, read_until: int = 0) -> None:
        super().__init__(path, offset, read_until)
        parts = path.parts[-len(LOG.parts) :]
        self.session = path.parents[len(LOG.parts) - 1].name if parts == LOG.parts else path.stem

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            for _, arguments in _calls(record):
                if self.cwd is None and isinstance(arguments.get("cwd"), str):
                    self.cwd = arguments["cwd"]
                    return

    def _turns_of(self, record: dict[str, Any]) -> Iterator[Turn]:
        self._timestamp = as_text(record.get("created_at")) or None
        kind, source = as_text(record.get("type")), record.get("source")
        content = as_text(record.get("content"))
        if kind == "USER_INPUT" and source == "USER_EXPLICIT":
            # Only a mark at the beginning, up to the first end mark: what follows is the host's, or was pasted.
            request = _REQUEST.match(content)
            entered = request.group(1) if request else content
            text = entered_text(entered)
            if text:
                confirmed = request is not None and not has_machines_form(entered) and holds_only(record, TYPED_RECORD)
                yield self._turn(record, Role.USER, Origin.PROMPT, text, confirmed=confirmed)
        elif kind == "PLANNER_RESPONSE":
            if text := clean(content).strip():
                yield self._turn(record, Role.ASSISTANT, Origin.ASSISTANT, text)
            for name, arguments in _calls(record):
                yield self._tool_use(record, "", name, arguments)
        elif source == "MODEL" and kind not in _NOT_TOOLS:
            error = as_text(record.get("error"))
            call = self._calls.get("", ToolEvent(kind.lower()))
            failed = bool(error) or record.get("status") == "ERROR"
            yield self._tool_result(record, call, content or error, failed=failed)

    def _name_of(self, record: dict[str, Any]) -> str:
        step = record.get("step_index")
        return f"step:{step}" if isinstance(step, int) else ""


def _calls(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and arguments of each call in a record; each argument is JSON in a string."""
    for call in map(as_object, as_list(record.get("tool_calls"))):
        arguments: dict[str, Any] = {}
        for key, value in as_object(call.get("args")).items():
            try:
                plain = parse_json(value) if isinstance(value, str) else value
            except ValueError:
                plain = value
            arguments[_NAMES.get(str(key), str(key))] = plain
        yield as_text(call.get("name")), arguments
