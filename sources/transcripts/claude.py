"""Claude Code's transcripts, versions 2.0 to 2.1: `<projects>/<folder>/<session>.jsonl`.

The host writes many things under the user's name. Which of them the user said: docs/architecture.md, "Whose words".
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from ...vault.turn import Origin, Role, ToolEvent, Turn
from .calls import REMEMBERED_CALLS, TOOL_TEXT_CHARS, call_text, tool_call
from .claude_bytes import (
    CONTENT_START_BYTES,
    EDITING_TOOLS,
    FIRST_BLOCK,
    READING_TOOLS,
    SIDECHAIN,
    SILENT_TYPES,
    THINKING,
    TOOL_USE_RESULT,
    TYPE,
    holds_only_thoughts,
    match_reading_call,
    match_result,
    match_success,
)
from .compressed import ByteStream
from .lines import as_object, as_text, clean, holds_match, one_line, parse_object, shorten
from .reader import TranscriptReader
from .words import own_text, pasted_ranges

LOOK_BACK_BYTES = 64 << 10
"""How much is read before the offset to find the queued prompts that the last reading has yielded."""
REMEMBERED_PROMPTS = 500

_USER_SAID = re.compile(r"(?:To tell you how to proceed, )?the user said:\s*", re.IGNORECASE)
_REJECTED = re.compile(r"the user doesn't want to|user rejected|tool use was rejected", re.IGNORECASE)
# Later versions add a note to the agent behind the user's words.
_HOST_NOTE = re.compile(r"\n\s*\n?Note: The user's next message.*\Z", re.DOTALL)
_COMMAND_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_COMMAND_NAME = re.compile(r"<command-name>\s*(\S{1,100}?)\s*</command-name>")
_BASH_INPUT = re.compile(r"\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_PERSONS_RECORD = re.compile(rb'"entrypoint":"(?!sdk)[\w-]{1,40}"')
MATCH_BYTES = 64
"""Longest match of `_PERSONS_RECORD`."""
_SLASH = re.compile(r"/[a-zA-Z][\w:.-]*(?:\s+(.*))?\Z", re.DOTALL)

_SPEAKING_TYPES = ("assistant", "user", "attachment")
_SUCCESSFUL_EDIT = object()
"""Type of the record that `_parse` makes of an edit that did not fail."""
_NEVER_ASKING_TOOLS = READING_TOOLS | EDITING_TOOLS | {"Bash", "WebFetch", "WebSearch"}
"""Tools whose results hold no answer of the user."""
_RAW_RESULT_BYTES = 2000
"""A shorter raw result is parsed with the rest of the record."""
_ANSWERS_START_BYTES = 20_000
"""How far into a raw result the answers to the agent's questions may begin."""
# To ask an enumeration for a member by name takes longer than to make half a turn.
_TOOL, _ASSISTANT = Role.TOOL, Role.ASSISTANT
_TOOL_USE, _TOOL_RESULT, _ASSISTANT_TEXT = Origin.TOOL_USE, Origin.TOOL_RESULT, Origin.ASSISTANT


@dataclass
class _Pending:
    """A queued prompt whose own record may still come."""

    turn: Turn
    left_queue: bool = False
    withdrawn: bool = False


class ClaudeReader(TranscriptReader):
    host: ClassVar[str] = "claude"
    record_start: ClassVar[bytes] = b'{"parentUuid":'
    record_id: ClassVar[str] = "uuid"

    def __init__(
        self, path: Path, offset: int = 0, look_back: bool = True, all_steps: bool = True, read_until: int = 0
    ) -> None:
        super().__init__(path, offset, look_back, all_steps, read_until)
        self._uuids: set[bytes] = set()
        self._calls: dict[str, ToolEvent | bytes] = {}
        """Calls without a result yet; as bytes, the unparsed record of a reading tool's call."""
        self._pending: deque[_Pending] = deque()
        # Queued prompts already yielded, by text: their second record is skipped.
        self._yielded_queued: Counter[str] = Counter()
        self._yielded_order: deque[str] = deque()
        self._yielded_at: dict[str, int] = {}
        self._successful_edit: dict[str, Any] | None = None
        """Record made of the current line, if it is the result of an edit that did not fail."""
        self._may_hold_result = False
        """Whether the current line is a record under the user's name, which results are."""
        self._skipped: bytes | None = None
        """The last line that was skipped, for the case that its session, folder and time are needed."""

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            if isinstance(record.get("sessionId"), str):
                self.session = record["sessionId"]
            if isinstance(record.get("cwd"), str):
                self._cwd = record["cwd"]
            if record.get("type") == "user" or "entrypoint" in record:
                # A person may have resumed it since: then only the records of a program are passed over.
                self._headless = _is_headless(record) and not holds_match(self.path, _PERSONS_RECORD, MATCH_BYTES)
                break

    @property
    def needed_from(self) -> int:
        recent = (offset for offset in self._yielded_at.values() if offset >= self._end - LOOK_BACK_BYTES)
        return min(recent, default=self._end)

    def _look_back(self, file: ByteStream) -> None:
        begin = max(0, self._start - LOOK_BACK_BYTES)
        file.seek(begin)
        tail = file.read(self._start - begin)
        if b'"queue-operation"' not in tail and b'"queued_command"' not in tail:
            return
        position = begin
        for data in tail.split(b"\n"):
            at, position = position, position + len(data) + 1
            if b'"queue-operation"' not in data and b'"queued_command"' not in data:
                continue
            record = parse_object(data)
            if record is None:
                continue
            if record.get("type") == "queue-operation" and record.get("operation") == "enqueue":
                self._remember_queued(own_text(as_text(record.get("content"))), at)
            elif record.get("type") == "attachment":
                attachment = record.get("attachment")
                if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
                    text = own_text(_prompt_text(attachment.get("prompt")))
                    # Its enqueue line comes before it, and was seen above; a later one would be its double.
                    if not self._forget_queued(text):
                        self._remember_queued(text, at)

    def _is_irrelevant(self, data: bytes) -> bool:
        # Not cut into functions: every line comes here, and most go no further.
        # All that precedes the second brace is at the top level. (A brace in a string only costs the parsing.)
        brace = data.find(b"{", 1)
        named = data.find(TYPE, 0, brace)
        if named < 0:
            kind = b""
        else:
            named += len(TYPE)
            kind = data[named : data.find(b'"', named, brace)]
            if kind in SILENT_TYPES:
                return True
        if data.find(SIDECHAIN, 0, brace) >= 0:
            return True
        self._may_hold_result = kind == b"user"
        if kind == b"user":
            skips = not self._all_steps and self._try_skip_result(data, brace)
        else:
            first = data.find(FIRST_BLOCK, brace, brace + CONTENT_START_BYTES)
            if first < 0 or self._pending:
                skips = False
            elif data.startswith(THINKING, first):
                skips = holds_only_thoughts(data, brace, first)
            else:
                skips = not self._all_steps and self._try_skip_call(data, brace, first)
        if skips:
            self._skipped = data
        return skips

    def _try_skip_result(self, data: bytes, brace: int) -> bool:
        """Whether the line is only the result of a reading tool's call that did not fail.

        Removes that call. The result of an edit is not skipped: a record of it is made here, without parsing.
        """
        begun = match_result(data, brace)
        event = self._calls.get(begun[0]) if begun is not None else None
        if begun is None or event is None:
            return False
        edited = None if isinstance(event, bytes) or event.name not in EDITING_TOOLS else event
        if not (edited or isinstance(event, bytes) or (event.name in READING_TOOLS and event.command is None)):
            return False
        success = match_success(data, brace, begun[1], is_short=edited is not None)
        if success is None or self._is_repeated(success[0]):
            return False
        del self._calls[begun[0]]
        if edited is None:
            return True
        self._successful_edit = {"type": _SUCCESSFUL_EDIT, "uuid": success[0], "timestamp": success[1], "call": edited}
        self._skipped = data
        return False

    def _try_skip_call(self, data: bytes, brace: int, first: int) -> bool:
        """Whether the line is only the call of a reading tool, which is then kept unparsed until its result."""
        call = match_reading_call(data, brace, first)
        if call is None or self._is_repeated(call[1]):
            return False
        self._remember_call(call[0], data)
        return True

    def _learn_from_skipped(self) -> None:
        """Take session, folder and time from the last skipped line, for records that do not name them."""
        if self._skipped is not None:
            record = parse_object(self._skipped) or {}
            self._skipped = None
            if record.get("type") in ("assistant", "user"):
                self._cwd = as_text(record.get("cwd")) or self._cwd
                self.session = as_text(record.get("sessionId")) or self.session
                self._timestamp = as_text(record.get("timestamp")) or None

    def _parse(self, data: bytes) -> dict[str, Any] | None:
        if self._successful_edit is not None:
            known, self._successful_edit = self._successful_edit, None
            return known
        # The result of a tool is in a record twice, the second time raw and much longer. What comes before it
        # is a record of its own once the brace is closed, and only then was the key at the top level.
        at = data.find(TOOL_USE_RESULT) if self._may_hold_result else -1
        if at > 0 and len(data) - at > _RAW_RESULT_BYTES:
            record = parse_object(data[:at] + b"}")
            if (
                record is not None
                and _holds_only_results(record)
                # Searching for answers takes as long as parsing all that precedes: most tools have none.
                and (self._has_no_answers(record) or data.find(b'"answers"', at, at + _ANSWERS_START_BYTES) < 0)
            ):
                return record
        return parse_object(data)

    def _has_no_answers(self, record: dict[str, Any]) -> bool:
        """Whether these are results of tools that are known never to ask the user."""
        for block in _content(record):
            event = self._calls.get(as_text(as_object(block).get("tool_use_id")))
            if event is None or not (isinstance(event, bytes) or event.name in _NEVER_ASKING_TOOLS):
                return False
        return True

    def _turns_of(self, record: dict[str, Any]) -> Iterable[Turn]:
        kind = record.get("type")
        if kind is _SUCCESSFUL_EDIT:
            return (self._turn(record, _TOOL, _TOOL_RESULT, "", record["call"]),)
        if kind == "queue-operation":
            self._learn_from_skipped()
            self._queue_operation(record)
            return ()
        if kind not in _SPEAKING_TYPES or record.get("isSidechain") or record.get("agentId"):
            return ()
        if _is_headless(record):
            if kind == "user" and self._pending:
                self._take_pending(own_text(_typed_text(record)))  # `claude -p` queues its prompt first.
            return ()
        if self._is_repeated(record.get("uuid")):
            return ()
        cwd, session = as_text(record.get("cwd")), as_text(record.get("sessionId"))
        if self._skipped is not None:
            if cwd and session:
                self._skipped = None
            else:
                self._learn_from_skipped()
        self._cwd = cwd or self._cwd
        self.session = session or self.session
        self._timestamp = as_text(record.get("timestamp")) or None
        if kind == "assistant":
            turns = self._assistant(record)
            return chain(self._yield_dequeued(), turns) if self._pending else turns
        return self._user(record) if kind == "user" else self._attachment(record)

    def _at_end(self) -> Iterator[Turn]:
        self._learn_from_skipped()
        while self._pending:
            yield from self._yield_queued(self._pending.popleft().turn)

    # --- the user ---

    def _user(self, record: dict[str, Any]) -> Iterator[Turn]:
        content = _content(record)
        if isinstance(content, list):
            for block in content:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    yield from self._tool_result(record, block)
        if not _is_from_user(record):
            return
        if isinstance(content, list):
            texts = [
                as_text(block.get("text"))
                for block in content
                if isinstance(block, dict) and block.get("type") == "text"
            ]
            # Each block on its own: a host's block must not decide about the user's.
            text = "\n\n".join(own for own in map(own_text, texts) if own)
            raw = "\n".join(texts)
        else:
            raw = content
            text = own_text(raw)
        if bash := _BASH_INPUT.match(raw):
            yield from self._user_turns(record, Origin.BASH, bash.group(1).strip(), pasted=())
        elif "<command-args>" in raw and (args := _COMMAND_ARGS.search(raw)):
            name = _COMMAND_NAME.search(raw)
            yield from self._user_turns(
                record, Origin.COMMAND_ARGS, own_text(args.group(1)), about=name.group(1) if name else ""
            )
        elif text:
            yield from self._prompt(record, text)

    def _prompt(self, record: dict[str, Any], text: str) -> Iterator[Turn]:
        if self._forget_queued(text):
            return
        queued = self._take_pending(text)
        enqueued_at = queued.turn.offset if queued else None
        # A prompt that was called back into the editor and is part of this one is not yielded again.
        kept = [item for item in self._pending if not (item.withdrawn and item.turn.text in text)]
        self._pending = deque(kept)
        yield from self._yield_dequeued()
        origin = Origin.QUEUED if queued or record.get("promptSource") == "queued" else Origin.PROMPT
        for turn in self._user_turns(record, origin, text):
            # It was said where it was queued: a reading that ended in between has yielded it already.
            yield turn if enqueued_at is None else turn._replace(offset=enqueued_at)

    def _user_turns(
        self,
        record: dict[str, Any],
        origin: Origin,
        text: str,
        about: str = "",
        pasted: tuple[tuple[int, int], ...] | None = None,
    ) -> Iterator[Turn]:
        if text:
            ranges = pasted_ranges(text) if pasted is None else pasted
            yield self._turn(record, Role.USER, origin, text, about=about, pasted=ranges)

    # --- prompts typed while the agent was at work ---

    def _queue_operation(self, record: dict[str, Any]) -> None:
        operation = record.get("operation")
        content = as_text(record.get("content"))
        if operation == "enqueue":
            turn = self._queued_turn(record, content)
            if turn is not None and not self._forget_queued(turn.text):
                self._pending.append(_Pending(turn))
        elif operation in ("remove", "dequeue"):
            # Lines of this kind name no prompt: the queue is first in, first out.
            for item in self._pending:
                if not item.left_queue:
                    item.left_queue = True
                    break
        elif operation == "popAll":
            for item in self._pending:
                if item.turn.text in content or not content:
                    item.withdrawn = True

    def _queued_turn(self, record: dict[str, Any], content: str) -> Turn | None:
        text = own_text(content)
        slash = _SLASH.match(text)
        if slash:
            text = (slash.group(1) or "").strip()
        if not text:
            return None
        origin = Origin.COMMAND_ARGS if slash else Origin.QUEUED
        return self._turn(record, Role.USER, origin, text, pasted=pasted_ranges(text))

    def _attachment(self, record: dict[str, Any]) -> Iterator[Turn]:
        attachment = record.get("attachment")
        if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
            return
        origin = attachment.get("origin")
        if isinstance(origin, dict) and origin.get("kind", "human") != "human":
            return
        if attachment.get("commandMode", "prompt") != "prompt" or attachment.get("isMeta"):
            return
        turn = self._queued_turn(record, _prompt_text(attachment.get("prompt")))
        if turn is None or self._forget_queued(turn.text):
            return
        if item := self._take_pending(turn.text):
            yield turn._replace(offset=item.turn.offset)
        else:
            yield from self._yield_queued(turn)

    def _yield_dequeued(self) -> Iterator[Turn]:
        """Yield the prompts that left the queue: once the agent goes on, no record of their own will follow."""
        for item in [item for item in self._pending if item.left_queue or item.withdrawn]:
            self._pending.remove(item)
            yield from self._yield_queued(item.turn)

    def _yield_queued(self, turn: Turn) -> Iterator[Turn]:
        self._remember_queued(turn.text, turn.offset)
        yield turn

    def _take_pending(self, text: str) -> _Pending | None:
        for item in self._pending:
            if item.turn.text == text:
                self._pending.remove(item)
                return item
        return None

    def _remember_queued(self, text: str, offset: int) -> None:
        if not text:
            return
        self._yielded_at.setdefault(text, offset)
        self._yielded_queued[text] += 1
        self._yielded_order.append(text)
        if len(self._yielded_order) > REMEMBERED_PROMPTS:
            self._forget_queued(self._yielded_order[0])

    def _forget_queued(self, text: str) -> bool:
        """Consume one yielded prompt of this text; False if there is none. Each has one second record."""
        if self._yielded_queued[text] <= 0:
            del self._yielded_queued[text]
            return False
        self._yielded_queued[text] -= 1
        if not self._yielded_queued[text]:
            self._yielded_at.pop(text, None)
        self._yielded_order.remove(text)
        return True

    # --- tools and the agent ---

    def _tool_result(self, record: dict[str, Any], block: dict[str, Any]) -> Iterator[Turn]:
        call = as_text(block.get("tool_use_id"))
        event = self._calls.pop(call, None) or ToolEvent("", call)
        if isinstance(event, bytes):
            event = _parse_call(event)
        is_error = block.get("is_error") is True
        text = clean(shorten(_result_text(block.get("content")), TOOL_TEXT_CHARS))
        rejected = is_error and _REJECTED.search(text[:400]) is not None
        if rejected and (said := _USER_SAID.search(text[:2000])):
            about = f"{event.name}: {event.target}" if event.name else ""
            yield from self._user_turns(
                record, Origin.REJECTION, own_text(_HOST_NOTE.sub("", text[said.end() :])), about=about
            )
        answers = record.get("toolUseResult")
        if isinstance(answers, dict) and isinstance(answers.get("answers"), dict):
            yield from self._answers(record, answers)
            return
        if is_error:
            event = event._replace(is_error=True, rejected=rejected)
        yield self._turn(record, _TOOL, _TOOL_RESULT, text, event)

    def _answers(self, record: dict[str, Any], result: dict[str, Any]) -> Iterator[Turn]:
        labels: dict[str, set[str]] = {}
        questions = result.get("questions")
        for question in questions if isinstance(questions, list) else ():
            if isinstance(question, dict):
                options = question.get("options")
                labels[as_text(question.get("question"))] = {
                    as_text(option.get("label"))
                    for option in (options if isinstance(options, list) else ())
                    if isinstance(option, dict)
                }
        for question_text, answer in result["answers"].items():
            text = own_text(as_text(answer))
            yield from self._user_turns(
                record,
                Origin.ANSWER,
                text,
                about=one_line(question_text, 500),
                pasted=_picked(text, labels.get(question_text, set())) or None,
            )

    def _assistant(self, record: dict[str, Any]) -> Iterator[Turn]:
        message = record.get("message")
        if record.get("isApiErrorMessage") or not isinstance(message, dict) or message.get("model") == "<synthetic>":
            return
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            kind = block.get("type")
            if kind == "text":
                if text := clean(as_text(block.get("text"))).strip():
                    yield self._turn(record, _ASSISTANT, _ASSISTANT_TEXT, text)
            elif kind == "tool_use":
                arguments = as_object(block.get("input"))
                event = tool_call(as_text(block.get("id")), as_text(block.get("name")), arguments)
                self._remember_call(event.use_id or "", event)
                text = call_text(event, arguments) if self._all_steps else ""
                yield self._turn(record, _TOOL, _TOOL_USE, text, event)

    def _remember_call(self, use_id: str, call: ToolEvent | bytes) -> None:
        if len(self._calls) >= REMEMBERED_CALLS:
            self._calls.pop(next(iter(self._calls)))
        self._calls[use_id] = call

    def _is_repeated(self, uuid: object) -> bool:
        """Whether the record was read before, as in resumed and forked files. Remembers it, in 16 bytes: 20 MB a GB."""
        if not isinstance(uuid, str) or not uuid:
            return False
        try:
            key = bytes.fromhex(uuid.replace("-", ""))
        except ValueError:
            key = uuid.encode("utf-8", "replace")
        known = len(self._uuids)
        self._uuids.add(key)
        return len(self._uuids) == known


def transcript_files(root: Path) -> Iterator[Path]:
    """Yield the sessions of persons under `<config>/projects`, by name, without those of sub-agents and journals."""
    for path in sorted(root.rglob("*.jsonl")):
        folders = path.relative_to(root).parts[:-1]
        if any(part == "subagents" or part.startswith("wf_") for part in folders):
            continue
        if path.name == "journal.jsonl" or path.name.startswith("agent-") or not path.is_file():
            continue
        yield path


def _is_headless(record: dict[str, Any]) -> bool:
    entrypoint = record.get("entrypoint")
    return (isinstance(entrypoint, str) and entrypoint.startswith("sdk")) or record.get("promptSource") == "sdk"


def _is_from_user(record: dict[str, Any]) -> bool:
    for flag in (
        "isMeta",
        "isCompactSummary",
        "isSidechain",
        "planContent",
        "sourceToolUseID",
        "isVisibleInTranscriptOnly",
    ):
        if record.get(flag):
            return False
    origin = record.get("origin")
    if isinstance(origin, dict) and "kind" in origin:
        return bool(origin["kind"] == "human")
    source = record.get("promptSource")
    return source is None or source in ("typed", "queued")


def _picked(text: str, labels: set[str]) -> tuple[tuple[int, int], ...]:
    """Where an answer holds options that were only picked: they are the agent's wording. A label may hold commas, as
    the list of several picked ones does."""
    spans: list[tuple[int, int]] = []
    for label in sorted(filter(None, labels), key=len, reverse=True):
        for match in re.finditer(rf"(?:\A|(?<=,)|(?<=, )){re.escape(label)}(?=\s*(?:,|\Z))", text):
            if not any(low < match.end() and match.start() < high for low, high in spans):
                spans.append(match.span())
    rest = text
    for low, high in sorted(spans, reverse=True):
        rest = rest[:low] + rest[high:]
    if spans and not rest.strip(", "):
        return ((0, len(text)),)
    return tuple(sorted({*pasted_ranges(text), *spans})) if spans else ()


def _parse_call(data: bytes) -> ToolEvent:
    """Parse the call in a record that was kept unparsed."""
    content = _content(parse_object(data) or {})
    block = as_object(content[0]) if content else {}
    return tool_call(as_text(block.get("id")), as_text(block.get("name")), as_object(block.get("input")))


def _holds_only_results(record: dict[str, Any]) -> bool:
    content = _content(record)
    return isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _typed_text(record: dict[str, Any]) -> str:
    content = _content(record)
    return content if isinstance(content, str) else _result_text(content)


def _content(record: dict[str, Any]) -> str | list[Any]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str | list) else ""


def _result_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(as_text(block.get("text")) for block in content if isinstance(block, dict))


def _prompt_text(prompt: object) -> str:
    return prompt if isinstance(prompt, str) else _result_text(prompt)
