"""Read Codex CLI's transcripts: `~/.codex/sessions/Y/M/D/rollout-*.jsonl`, or `.jsonl.zst` (`compressed`).

What the user typed is in `event_msg/user_message`, in newer versions (seen: 0.169) in `event_msg/item_completed`. The
messages of role `user` also hold instructions and context from the host, so they are not read. Records have no ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ...vault.turn import Origin, Role, ToolEvent, Turn
from .compressed import SUFFIX
from .lines import as_text, clean
from .reader import TranscriptReader
from .whose_words import entered_text

_EXIT_CODE = re.compile(r"(?:Process exited with code|Exit code:)\s*(-?\d+)")
MOST_FORKS = 50
"""Most sessions to remember in a chain of forks."""
PERSONS_SOURCES = ("cli", "vscode")
"""Values of `source` in the session's header for programs in which a person types."""


class CodexReader(TranscriptReader):
    host: ClassVar[str] = "codex"
    record_start: ClassVar[bytes] = b'{"timestamp":'

    def __init__(self, path: Path, offset: int = 0, look_back: bool = True, read_until: int = 0) -> None:
        super().__init__(path, offset, look_back, read_until)
        self._is_typed = False
        """Whether a person types in this session, by its header."""
        self._messages: dict[Role, tuple[str, str]] = {}
        """The newest message of each role: the form of its record ("event" or "item"), and its text."""
        self._forked_from: dict[str, None] = {}

    @property
    def forked_from(self) -> tuple[str, ...]:
        """See TranscriptReader. Codex writes the copied records anew, with the time of the fork."""
        return tuple(self._forked_from)

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            if record.get("type") == "session_meta" and isinstance(record.get("payload"), dict):
                self._session_meta(record["payload"])
                return

    def _session_meta(self, meta: dict[str, Any]) -> None:
        if isinstance(meta.get("id"), str):
            self.session = meta["id"]
        if isinstance(meta.get("cwd"), str):
            self._cwd = meta["cwd"]
        self._note_fork(meta)
        # `codex exec`, an SDK's or an MCP client's run, and sub-agents ({"subagent": ...}): no person types there.
        source = meta.get("source")
        self._is_typed = source in PERSONS_SOURCES
        self._headless = (
            source in ("exec", "mcp", "subagent")
            or isinstance(source, dict)
            or meta.get("originator") in ("codex_exec", "codex_sdk_ts")
            or meta.get("thread_source") == "subagent"
        )

    def _note_fork(self, meta: dict[str, Any]) -> None:
        """Remember the session that was copied: its header is among the copied records, and ours names it."""
        for session in (as_text(meta.get("id")), as_text(meta.get("forked_from_id"))):
            if session and session != self.session and len(self._forked_from) < MOST_FORKS:
                self._forked_from[session] = None

    def _turns_of(self, record: dict[str, Any]) -> Iterator[Turn]:
        payload = record.get("payload")
        if not isinstance(payload, dict):
            return
        kind = (record.get("type"), payload.get("type"))
        if record.get("type") == "turn_context":
            self._cwd = as_text(payload.get("cwd")) or self._cwd
        elif record.get("type") == "session_meta":
            self._note_fork(payload)
            self._is_typed = self._is_typed and payload.get("source") in PERSONS_SOURCES
        elif kind == ("event_msg", "user_message"):
            if text := entered_text(as_text(payload.get("message"))):
                yield from self._message(record, Role.USER, text, "event")
        elif kind == ("event_msg", "agent_message"):
            if text := clean(as_text(payload.get("message"))).strip():
                yield from self._message(record, Role.ASSISTANT, text, "event")
        elif kind == ("event_msg", "item_completed"):
            yield from self._item(record, payload.get("item"))
        elif kind[1] in ("function_call", "custom_tool_call", "local_shell_call"):
            yield self._call(record, payload)
        elif kind[1] in ("function_call_output", "custom_tool_call_output"):
            yield self._result(record, payload)

    def _item(self, record: dict[str, Any], item: object) -> Iterator[Turn]:
        """Yield the message of an item. Some versions write both forms; `_message` drops the second."""
        if not isinstance(item, dict) or item.get("type") not in ("UserMessage", "AgentMessage"):
            return
        parts = item.get("content")
        said = "\n".join(
            as_text(part.get("text"))
            for part in (parts if isinstance(parts, list) else ())
            if isinstance(part, dict) and as_text(part.get("type")).lower() == "text"
        )
        if item["type"] == "AgentMessage":
            if text := clean(said).strip():
                yield from self._message(record, Role.ASSISTANT, text, "item")
        elif text := entered_text(said):
            yield from self._message(record, Role.USER, text, "item")

    def _message(self, record: dict[str, Any], role: Role, text: str, form: str) -> Iterator[Turn]:
        before = self._messages.get(role)
        self._messages[role] = (form, text)
        if before is not None and before[0] != form and before[1] == text:
            return
        if role is Role.USER:
            # Messages of another kind, such as instructions, are the host's.
            is_typed = self._is_typed and record["payload"].get("kind") in (None, "plain")
            yield self._turn(record, role, Origin.PROMPT, text, confirmed=is_typed)
        else:
            yield self._turn(record, role, Origin.ASSISTANT, text)

    def _call(self, record: dict[str, Any], payload: dict[str, Any]) -> Turn:
        name = as_text(payload.get("name")) or "shell"
        return self._tool_use(record, as_text(payload.get("call_id")), name, _arguments(payload))

    def _result(self, record: dict[str, Any], payload: dict[str, Any]) -> Turn:
        use_id = as_text(payload.get("call_id"))
        call = self._calls.pop(use_id, ToolEvent("", use_id or None))
        output = payload.get("output")
        if isinstance(output, dict):
            failed = output.get("success") is False
            output = output.get("content")
        else:
            code = _EXIT_CODE.search(as_text(output)[:500])
            failed = code is not None and code.group(1) != "0"
        rejected = "rejected by user" in as_text(output)[:300]
        return self._tool_result(record, call, as_text(output), failed=failed or rejected, rejected=rejected)


def transcript_files(root: Path) -> Iterator[Path]:
    """Yield the rollouts under `~/.codex/sessions`, oldest first; of a compressed and an unpacked one the unpacked."""
    for path in sorted([*root.rglob("rollout-*.jsonl"), *root.rglob(f"rollout-*.jsonl{SUFFIX}")]):
        if path.is_file() and not (path.suffix == SUFFIX and path.with_suffix("").exists()):
            yield path


def _arguments(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, from JSON in a string, free text (a patch), or an action with an argv."""
    raw = payload.get("arguments", payload.get("input"))
    if isinstance(raw, str):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return {"new_string": raw}
        arguments = value if isinstance(value, dict) else {}
    else:
        action = payload.get("action")
        arguments = dict(action) if isinstance(action, dict) else {}
    command = arguments.get("command")
    if isinstance(command, list):
        words = [part for part in command if isinstance(part, str)]
        # Of ["bash", "-lc", "make test"] only the last one is the command.
        arguments["command"] = words[-1] if len(words) == 3 and words[1] in ("-lc", "-c") else " ".join(words)
    return arguments
