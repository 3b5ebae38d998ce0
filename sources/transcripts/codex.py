"""Read Codex CLI's transcripts: `~/.codex/sessions/Y/M/D/rollout-*.jsonl`, or `.jsonl.zst` (`compressed`).

What the user typed is in `event_msg/user_message`, in newer versions (seen: 0.169) in `event_msg/item_completed`. The
messages of role `user` also hold instructions and context from the host, so they are not read. Records have no ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from ...runtime.json_text import parse_json
from ...vault.turn import Origin, Role, ToolEvent, Turn
from .compressed import SUFFIX, ByteStream
from .lines import as_list, as_object, as_text, clean, holds_only, lines_from, parse_object
from .reader import TranscriptReader
from .typed_list import NAME, NO_LIST, Fields, TypedList, read_typed_list
from .whose_words import entered_text, has_machines_form

_EXIT_CODE = re.compile(r"(?:Process exited with code|Exit code:)\s*(-?\d+)")
PERSONS_PROGRAMS = ("codex-tui", "codex_cli_rs", "codex_vscode", "codex_work_desktop", "Codex Desktop")
SUB_AGENTS_FIELDS = ("parent_thread_id", "agent_nickname", "agent_role")
EVENT = frozenset({"type", "message", "kind", "images", "local_images", "text_elements"})
COMPLETED = frozenset({"type", "thread_id", "turn_id", "item", "started_at_ms", "completed_at_ms"})
ITEM = frozenset({"type", "id", "client_id", "content"})
"""All fields that were seen where a person had typed: one that is not known may say that a program did."""
_TELLS_WHO = re.compile(rb'"(?:session_meta|(?:entered|exited)_review_mode|(?:Entered|Exited)ReviewMode)"')
HEAD_BYTES = 250
REVIEWS = {
    "entered_review_mode": True,
    "exited_review_mode": False,
    "EnteredReviewMode": True,
    "ExitedReviewMode": False,
}
"""Between the two a message is a reviewer's order."""
TYPED_FIELDS = Fields("text", "session_id", "ts", 1)
SESSIONS_FOLDERS = ("sessions", "archived_sessions")
MOST_FORKS = 50
"""Most sessions to remember in a chain of forks."""
PERSONS_SOURCES = ("cli", "vscode")
"""Values of `source` in the session's header for programs in which a person types."""


class CodexReader(TranscriptReader):
    host: ClassVar[str] = "codex"
    record_start: ClassVar[bytes] = b'{"timestamp":'

    def __init__(self, path: Path, offset: int = 0, read_until: int = 0) -> None:
        super().__init__(path, offset, read_until)
        self._is_typed = False
        """Whether every header in the file says that a person types there; a fork or a run that goes on with the
        session adds its own."""
        self._is_review = False
        self._began = ""
        """Time of the header."""
        self._messages: dict[Role, tuple[str, str]] = {}
        """The newest message of each role: the form of its record ("event" or "item"), and its text."""

    def _begin(self, file: ByteStream) -> None:
        super()._begin(file)
        for line in lines_from(file, 0) if self._is_typed else ():
            record = parse_object(line.data) if _TELLS_WHO.search(line.data, 0, HEAD_BYTES) else None
            payload = as_object(record.get("payload")) if record else {}
            if record and record.get("type") == "session_meta":
                self._is_typed = self._is_typed and _names_person(payload)
            elif line.offset < self._start:
                kind = as_object(payload.get("item")).get("type", payload.get("type"))
                self._is_review = REVIEWS.get(as_text(kind), self._is_review)

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            if record.get("type") == "session_meta" and isinstance(record.get("payload"), dict):
                self._began = as_text(record.get("timestamp"))
                self._session_meta(record["payload"])
                return

    def _typed_list(self, record: dict[str, Any]) -> TypedList:
        return self._entered

    @cached_property
    def _entered(self) -> TypedList:
        folder = next((each for each in self.path.absolute().parents if each.name in SESSIONS_FOLDERS), None)
        return read_typed_list(folder.parent / NAME, TYPED_FIELDS, self.session, self._began) if folder else NO_LIST

    def _session_meta(self, meta: dict[str, Any]) -> None:
        if isinstance(meta.get("id"), str):
            self.session = meta["id"]
        if isinstance(meta.get("cwd"), str):
            self.cwd = meta["cwd"]
        self._note_fork(meta)
        # `codex exec`, an SDK's or an MCP client's run, and sub-agents ({"subagent": ...}): no person types there.
        source = meta.get("source")
        self._is_typed = _names_person(meta)
        self.headless = (
            source in ("exec", "mcp", "subagent")
            or isinstance(source, dict)
            or meta.get("originator") in ("codex_exec", "codex_sdk_ts")
            or meta.get("thread_source") == "subagent"
        )

    def _note_fork(self, meta: dict[str, Any]) -> None:
        """Remember the session that was copied: its header is among the copied records, and ours names it."""
        for session in (as_text(meta.get("id")), as_text(meta.get("forked_from_id"))):
            if session and session not in (self.session, *self.forked_from) and len(self.forked_from) < MOST_FORKS:
                self.forked_from += (session,)

    def _turns_of(self, record: dict[str, Any]) -> Iterator[Turn]:
        payload = record.get("payload")
        if not isinstance(payload, dict):
            return
        kind = (as_text(record.get("type")), as_text(payload.get("type")))
        if record.get("type") == "turn_context":
            self.cwd = as_text(payload.get("cwd")) or self.cwd
        elif record.get("type") == "session_meta":
            self._note_fork(payload)
        elif kind[1] in REVIEWS:
            self._is_review = REVIEWS[kind[1]]
        elif kind == ("event_msg", "user_message"):
            yield from self._message(record, Role.USER, as_text(payload.get("message")), "event")
        elif kind == ("event_msg", "agent_message"):
            yield from self._message(record, Role.ASSISTANT, as_text(payload.get("message")), "event")
        elif kind == ("event_msg", "item_completed"):
            # A reviewer's thread writes here, too.
            if payload.get("thread_id") in (None, self.session, *self.forked_from):
                yield from self._item(record, payload.get("item"))
        elif kind[1] in ("function_call", "custom_tool_call", "local_shell_call"):
            yield self._call(record, payload)
        elif kind[1] in ("function_call_output", "custom_tool_call_output"):
            yield self._result(record, payload)

    def _item(self, record: dict[str, Any], item: object) -> Iterator[Turn]:
        """Yield the message of an item. Some versions write both forms; `_message` drops the second."""
        if not isinstance(item, dict):
            return
        self._is_review = REVIEWS.get(as_text(item.get("type")), self._is_review)
        if item.get("type") not in ("UserMessage", "AgentMessage"):
            return
        parts = map(as_object, as_list(item.get("content")))
        said = "\n".join(as_text(part.get("text")) for part in parts if as_text(part.get("type")).lower() == "text")
        role = Role.ASSISTANT if item["type"] == "AgentMessage" else Role.USER
        yield from self._message(record, role, said, "item")

    def _message(self, record: dict[str, Any], role: Role, raw: str, form: str) -> Iterator[Turn]:
        text = entered_text(raw) if role is Role.USER else clean(raw).strip()
        before = self._messages.get(role)
        if text:
            self._messages[role] = (form, text)
        if not text or (before is not None and before[0] != form and before[1] == text):
            return
        if role is Role.USER:
            is_typed = self._is_typed and not self._is_review and not has_machines_form(raw) and _is_clients(record)
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
        failed = failed or "rejected by user" in as_text(output)[:300]
        return self._tool_result(record, call, as_text(output), failed=failed)


def _names_person(meta: dict[str, Any]) -> bool:
    """Whether a header says that a person types: a program may talk to the server of an editor's plugin."""
    return (
        meta.get("source") in PERSONS_SOURCES
        and meta.get("originator") in (None, *PERSONS_PROGRAMS)
        and meta.get("thread_source") in (None, "user")
        and not any(meta.get(name) for name in SUB_AGENTS_FIELDS)
    )


def _is_clients(record: dict[str, Any]) -> bool:
    """Whether a record has the form of a message that a client sent: instructions have another kind, and what the host
    puts in itself has no client's id."""
    payload = record["payload"]
    if "item" not in payload:
        return payload.get("kind") in (None, "plain") and holds_only(payload, EVENT)
    item = payload["item"]
    texts = [part for part in item["content"] if "text" in as_object(part)]
    return bool(item.get("client_id")) and len(texts) == 1 and holds_only(payload, COMPLETED) and holds_only(item, ITEM)


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
            value = parse_json(raw)
        except ValueError:
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
