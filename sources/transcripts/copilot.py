"""Read Copilot CLI's transcripts: `~/.copilot/session-state/<session>/events.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ...vault.turn import Origin, Role, ToolEvent, Turn
from .lines import as_object, as_text, clean, holds_only
from .reader import TranscriptReader
from .whose_words import entered_text, has_machines_form

TYPED = frozenset({
    "content", "transformedContent", "attachments", "source", "interactionId", "delivery",
    "supportedNativeDocumentMimeTypes",
})  # fmt: skip
RECORD = frozenset({"type", "data", "id", "timestamp", "parentId"})
"""All fields that a typed message is known to have."""


class CopilotReader(TranscriptReader):
    host: ClassVar[str] = "copilot"
    record_start: ClassVar[bytes] = b'{"type":"user.message"'
    record_id: ClassVar[str] = "id"

    def __init__(self, path: Path, offset: int = 0, read_until: int = 0) -> None:
        super().__init__(path, offset, read_until)
        self.session = path.parent.name if path.stem == "events" else path.stem
        self._seen: set[str] = set()

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            if record.get("type") == "session.start":
                self._session_start(as_object(record.get("data")))
                return

    def _session_start(self, data: dict[str, Any]) -> None:
        self.session = as_text(data.get("sessionId")) or self.session
        self.cwd = as_text(as_object(data.get("context")).get("cwd")) or self.cwd

    def _turns_of(self, record: dict[str, Any]) -> Iterator[Turn]:
        data = as_object(record.get("data"))
        record_id = as_text(record.get("id"))
        if record_id in self._seen or data.get("parentToolCallId") or record.get("agentId"):
            return
        if record_id:
            self._seen.add(record_id)
        kind = record.get("type")
        if kind in ("session.start", "session.resume"):
            self._session_start(data)
        elif kind == "user.message":
            # `content` is what was typed, `transformedContent` what the host made of it. Texts of skills and other
            # messages of the host name another source. A program's prompt may lack a source, so it is not confirmed.
            content, source = as_text(data.get("content")), data.get("source")
            text = entered_text(content)
            if text and source in (None, "", "user"):
                is_known = holds_only(data, TYPED) and holds_only(record, RECORD)
                typed = source == "user" and is_known and not has_machines_form(content)
                yield self._turn(record, Role.USER, Origin.PROMPT, text, confirmed=typed)
        elif kind == "assistant.message":
            if text := clean(as_text(data.get("content"))).strip():
                yield self._turn(record, Role.ASSISTANT, Origin.ASSISTANT, text)
        elif kind == "tool.execution_start":
            call, name = as_text(data.get("toolCallId")), as_text(data.get("toolName"))
            yield self._tool_use(record, call, name, as_object(data.get("arguments")))
        elif kind == "tool.execution_complete":
            yield self._result(record, data)

    def _result(self, record: dict[str, Any], data: dict[str, Any]) -> Turn:
        use_id = as_text(data.get("toolCallId"))
        call = self._calls.pop(use_id, ToolEvent("", use_id or None))
        said, error = (as_object(data.get(name)) for name in ("result", "error"))
        text = as_text(said.get("content")) or as_text(error.get("message"))
        return self._tool_result(record, call, text, failed=data.get("success") is False)
