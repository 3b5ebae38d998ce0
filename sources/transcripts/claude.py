"""Read Claude Code's transcripts, versions 2.0 to 2.1: `<projects>/<folder>/<session>.jsonl`.

The host writes many things under the user's name. docs/architecture.md, "Who speaks", says which the user said.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

from ...vault.turn import Origin, Role, ToolEvent, Turn, blanked
from ...vault.typed_text import OWN_COMMANDS
from .lines import as_list, as_object, as_text, clean, holds_match, holds_only, one_line
from .reader import TranscriptReader, call_text, tool_call
from .typed_list import NAME, NO_LIST, Fields, TypedList, read_typed_list
from .whose_words import entered_text, has_machines_form, is_offered, offered_in, own_text, picked_ranges, was_asked

PROMPT_FIELDS = ("permissionMode", "thinkingMetadata", "todos")
"""Fields of a typed prompt in versions without `origin` and `promptSource`. In 70 sessions all 600 typed prompts had
one; of the host's own messages only notices in tags did."""
TERMINAL = "cli"
PERSONS_ENTRYPOINTS = (TERMINAL, "claude-vscode", "claude-desktop")
"""Values of `entrypoint` where a person types; older versions have none."""
TYPED_RECORD = frozenset({
    "parentUuid", "isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "type", "message", "uuid",
    "timestamp", "thinkingMetadata", "todos", "slug", "permissionMode", "entrypoint", "origin", "promptSource",
    "promptId", "turnOrigin", "turnPosition", "imagePasteIds", "interruptedMessageId", "forkedFrom",
})  # fmt: skip
"""All fields that were seen in records of typed prompts. An unknown one may say that a program made the record."""
RESULT_RECORD = frozenset({
    "parentUuid", "isSidechain", "userType", "cwd", "sessionId", "session_id", "version", "gitBranch", "type",
    "message", "uuid", "timestamp", "slug", "entrypoint", "promptId", "forkedFrom", "sourceToolAssistantUUID",
    "toolUseResult", "sandboxed", "permissionDecision", "toolDenialKind", "toolDenialBeforeRun", "userFeedback",
    "holdsPersonsWords",
})  # fmt: skip
"""All fields that were seen in records of tools' results, and the one that a fork adds to each record."""
DECISION = frozenset({"decision", "source", "grantScope", "reasonType", "reasonCode", "ruleSource"})
"""All fields that were seen in a result's `permissionDecision`, which older versions lack."""
PERSONS_SOURCES = ("user_reject", "user_temporary")
"""All sources of a person's decisions that were seen."""
NOT_USERS = ("isMeta", "isCompactSummary", "isSidechain", "planContent", "sourceToolUseID", "isVisibleInTranscriptOnly")
"""Fields of records that are not the user's."""
MESSAGE = frozenset({"role", "content"})
TEXT = frozenset({"type", "text"})
ANSWERS = frozenset({"questions", "answers", "annotations"})
_IDE_BLOCK = "<ide_"
"""Beginning of the blocks that an editor puts beside what was typed."""
TYPED_FIELDS = Fields("display", "sessionId", "timestamp", 1000)
SESSIONS_FOLDER = "projects"
ASKING_TOOL = "AskUserQuestion"
USER_REJECTED = "user-rejected"

# The host's sentence, from the first character on, up to what the user typed: no room for anything of the call's.
_REFUSED = re.compile(
    r"The user doesn't want to proceed with this tool use\.(?: The tool use was rejected \([^\n()]{0,200}\)\.)?"
    r" To tell you how to proceed, the user said:\s*"
)
_REFUSES = "The user doesn't want to "
# Later versions add a note to the agent after the user's words.
_HOST_NOTE = re.compile(r"\n\s*\n?Note: The user's next message.*\Z", re.DOTALL)
# The record of a command that is a prompt. In one that the host runs itself (`/compact`) the name comes first.
_COMMAND = re.compile(
    r"\s*<command-message>[^<]*</command-message>\s*<command-name>\s*(\S{1,100}?)\s*</command-name>\s*"
    r"(?:<command-args>(.*?)</command-args>\s*)?",
    re.DOTALL,
)
_BASH_INPUT = re.compile(r"\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_PERSONS_RECORD = re.compile(rb'"entrypoint":"(?!sdk)[\w-]{1,40}"')
MATCH_BYTES = 64
"""Longest match of `_PERSONS_RECORD`."""
_SPEAKING_TYPES = ("assistant", "user", "attachment")


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
    look_back_bytes: ClassVar[int] = 64 << 10
    """Queued prompts that the last reading yielded, and questions that are not answered yet."""

    def __init__(self, path: Path, offset: int = 0, read_until: int = 0) -> None:
        super().__init__(path, offset, read_until)
        self._seen: set[bytes] = set()
        """Hashes of records (by kind and id) and of the user's words (by time and text)."""
        self._offered: dict[str, frozenset[str]] = {}
        """Of the calls that are questions: what the agent offered as answers, letters and digits only."""
        self._pending: deque[_Pending] = deque()
        # Queued prompts already yielded, by text, whose second record is to be skipped.
        self._yielded_queued: Counter[str] = Counter()
        self._began = ""
        """Time of the first record that has one."""

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            self._began = self._began or as_text(record.get("timestamp"))
            if isinstance(record.get("sessionId"), str):
                self.session = record["sessionId"]
            if isinstance(record.get("cwd"), str):
                self.cwd = record["cwd"]
            if record.get("type") == "user" or "entrypoint" in record:
                # If a person has resumed the session since, only the program's records are skipped.
                self.headless = _is_headless(record) and not holds_match(self.path, _PERSONS_RECORD, MATCH_BYTES)
                break

    def _typed_list(self, record: dict[str, Any]) -> TypedList:
        # Editors that run the client keep no list.
        return self._entered if record.get("entrypoint") in (None, TERMINAL) else NO_LIST

    @cached_property
    def _entered(self) -> TypedList:
        folder = self.path.absolute().parent.parent
        if folder.name != SESSIONS_FOLDER:
            return NO_LIST
        return read_typed_list(folder.parent / NAME, TYPED_FIELDS, self.session, self._began)

    def _turns_of(self, record: dict[str, Any]) -> Iterable[Turn]:
        kind = record.get("type")
        if kind == "queue-operation":
            self._queue_operation(record)
            return ()
        if kind not in _SPEAKING_TYPES or record.get("isSidechain") or record.get("agentId"):
            return ()
        if _is_headless(record):
            if kind == "user":
                self._drop_pending("\n".join(_texts(_content(record))))  # `claude -p` queues its prompt first.
            return ()
        # A note of the host may have the id of the message behind it.
        if self._is_repeated(f"{kind} {record.get('isMeta') is True}", as_text(record.get("uuid"))):
            return ()
        self.cwd = as_text(record.get("cwd")) or self.cwd
        self.session = as_text(record.get("sessionId")) or self.session
        self._timestamp = as_text(record.get("timestamp")) or None
        if kind == "assistant":
            return self._assistant(record)
        return self._user(record) if kind == "user" else self._attachment(record)

    def _at_end(self) -> Iterator[Turn]:
        while self._pending:
            yield from self._yield_queued(self._pending.popleft().turn)

    # --- the user ---

    def _user(self, record: dict[str, Any]) -> Iterator[Turn]:
        results = [each for each in map(as_object, as_list(_content(record))) if each.get("type") == "tool_result"]
        for block in results:
            yield from self._outcome(record, block, is_alone=len(results) == 1)
        if not _is_from_user(record) or as_object(record.get("message")).get("role", "user") != "user":
            self._drop_pending("\n".join(_texts(_content(record))))
            return
        texts = _texts(_content(record))
        # Blocks after a command's block are the text of the command.
        raw = texts[0] if texts and _COMMAND.fullmatch(texts[0]) else "\n".join(texts)
        if bash := _BASH_INPUT.match(raw):
            yield from self._user_turns(record, Origin.BASH, bash.group(1).strip(), confirmed=False, pasted=())
        elif command := _COMMAND.fullmatch(raw):
            yield from self._user_turns(
                record,
                Origin.COMMAND_ARGS,
                own_text(command.group(2) or ""),
                # Arguments of other commands serve their purpose: a text to translate, to commit, to send.
                confirmed=_says_typed(record) and command.group(1).partition(":")[0] in OWN_COMMANDS,
                about=command.group(1),
            )
        # Each block is judged alone, so that a host's block does not decide about the user's.
        elif own := list(filter(None, map(entered_text, texts))):
            message = as_object(record.get("message"))
            is_typed = _says_typed(record) and holds_only(message, MESSAGE) and _is_one_text(message.get("content"))
            yield from self._prompt(record, "\n\n".join(own), confirmed=is_typed)

    def _prompt(self, record: dict[str, Any], text: str, *, confirmed: bool) -> Iterator[Turn]:
        if self._forget_queued(text):
            return
        queued = self._take_pending(text)
        enqueued_at = queued.turn.offset if queued else None
        # A queued prompt that the user took back into the editor and that is part of this one is not yielded again.
        kept = [item for item in self._pending if not (item.withdrawn and item.turn.text in text)]
        self._pending = deque(kept)
        yield from self._yield_dequeued()
        origin = Origin.QUEUED if queued or record.get("promptSource") == "queued" else Origin.PROMPT
        for turn in self._user_turns(record, origin, text, confirmed=confirmed):
            # It counts where it was queued: a reading that ended in between has yielded it already.
            yield turn if enqueued_at is None else turn._replace(offset=enqueued_at)

    def _user_turns(
        self,
        record: dict[str, Any],
        origin: Origin,
        text: str,
        *,
        confirmed: bool,
        about: str = "",
        pasted: tuple[tuple[int, int], ...] | None = None,
    ) -> Iterator[Turn]:
        if text and not self._was_said(record, about + text):
            yield self._turn(record, Role.USER, origin, text, about=about, pasted=pasted, confirmed=confirmed)

    # --- prompts typed while the agent was working ---

    def _queue_operation(self, record: dict[str, Any]) -> None:
        operation = record.get("operation")
        content = as_text(record.get("content"))
        if operation == "enqueue":
            # This line does not say who entered the prompt; a later record may.
            turn = self._queued_turn(record, content, confirmed=False)
            if turn is not None and not self._forget_queued(turn.text):
                self._pending.append(_Pending(turn))
        elif operation in ("remove", "dequeue"):
            # These lines name no prompt, but the queue is first in, first out.
            for item in self._pending:
                if not item.left_queue:
                    item.left_queue = True
                    break
        elif operation == "popAll":
            for item in self._pending:
                if item.turn.text in content or not content:
                    item.withdrawn = True

    def _queued_turn(self, record: dict[str, Any], content: str, *, confirmed: bool) -> Turn | None:
        text = entered_text(content)
        return self._turn(record, Role.USER, Origin.QUEUED, text, confirmed=confirmed) if text else None

    def _attachment(self, record: dict[str, Any]) -> Iterator[Turn]:
        attachment = as_object(record.get("attachment"))
        if attachment.get("type") != "queued_command":
            return
        prompt = "\n".join(_texts(attachment.get("prompt")))
        is_users = attachment.get("commandMode", "prompt") == "prompt"
        if not (is_users and _is_from_user(attachment) and _is_from_user(record)):
            self._drop_pending(prompt)
            return
        named = {name: value for name, value in attachment.items() if name not in ("prompt", "commandMode")}
        named["entrypoint"] = record.get("entrypoint")
        is_typed = attachment.get("origin") is not None or "promptSource" in attachment
        is_typed = is_typed and _says_typed(named) and _is_one_text(attachment.get("prompt"))
        turn = self._queued_turn(record, prompt, confirmed=is_typed)
        if turn is None or self._forget_queued(turn.text) or self._was_said(record, turn.text):
            return
        if item := self._take_pending(turn.text):
            yield turn._replace(offset=item.turn.offset)
        else:
            yield from self._yield_queued(turn)

    def _yield_dequeued(self) -> Iterator[Turn]:
        """Yield the prompts that left the queue: once the agent goes on, no record of them will follow."""
        for item in [item for item in self._pending if item.left_queue or item.withdrawn]:
            self._pending.remove(item)
            yield from self._yield_queued(item.turn)

    def _yield_queued(self, turn: Turn) -> Iterator[Turn]:
        self._yielded_queued[turn.text] += 1
        yield turn

    def _take_pending(self, text: str) -> _Pending | None:
        for item in self._pending:
            if item.turn.text == text:
                self._pending.remove(item)
                return item
        return None

    def _drop_pending(self, text: str) -> None:
        """Forget a queued prompt whose record shows that it is not the user's."""
        self._take_pending(entered_text(text))

    def _forget_queued(self, text: str) -> bool:
        """Forget one yielded prompt of this text, since each has one second record; return whether there was one."""
        if self._yielded_queued[text] <= 0:
            del self._yielded_queued[text]
            return False
        self._yielded_queued[text] -= 1
        return True

    # --- tools and the agent ---

    def _outcome(self, record: dict[str, Any], block: dict[str, Any], *, is_alone: bool) -> Iterator[Turn]:
        call = as_text(block.get("tool_use_id"))
        event = self._calls.pop(call, None) or ToolEvent("", call)
        offered = self._offered.pop(call, frozenset())
        output = "\n".join(_texts(block.get("content")))
        is_error = block.get("is_error") is True
        denial = record.get("toolDenialKind")
        if is_error and (denial == USER_REJECTED or (denial is None and output.startswith(_REFUSES))):
            # Without the host's own field, a server may have written the same sentence.
            confirmed = denial == USER_REJECTED and is_alone and _is_persons_decision(record)
            said = _REFUSED.match(output)
            feedback = as_text(record.get("userFeedback")) if confirmed else ""
            feedback = feedback or (_HOST_NOTE.sub("", output[said.end() :]) if said else "")
            # Behind what was typed a hook may have its say.
            confirmed = confirmed and not any(map(has_machines_form, feedback.split("\n\n")))
            about = f"{event.name}: {event.target}" if event.name else ""
            yield from self._user_turns(record, Origin.REJECTION, own_text(feedback), confirmed=confirmed, about=about)
        answers = as_object(record.get("toolUseResult"))
        if isinstance(answers.get("answers"), dict) and event.name in (ASKING_TOOL, ""):
            confirmed = bool(offered) and is_alone and not is_error and _is_persons_decision(record)
            confirmed = confirmed and holds_only(answers, ANSWERS)
            yield from self._answers(record, answers, offered, confirmed=confirmed)
            return
        yield self._tool_result(record, event, output, failed=is_error)

    def _answers(
        self, record: dict[str, Any], result: dict[str, Any], offered: frozenset[str], *, confirmed: bool
    ) -> Iterator[Turn]:
        labels = {
            as_text(question.get("question")): {
                as_text(option.get("label")) for option in map(as_object, as_list(question.get("options")))
            }
            for question in map(as_object, as_list(result.get("questions")))
        }
        for question_text, answer in result["answers"].items():
            text = own_text(as_text(answer))
            picked = picked_ranges(text, labels.get(question_text, set()))
            is_typed = was_asked(question_text, offered) and not is_offered(
                blanked(as_text(answer) if not picked else text, picked), offered
            )
            yield from self._user_turns(
                record,
                Origin.ANSWER,
                text,
                confirmed=confirmed and is_typed,
                about=one_line(question_text, 500),
                pasted=picked or None,
            )

    def _assistant(self, record: dict[str, Any]) -> Iterator[Turn]:
        yield from self._yield_dequeued()
        message = record.get("message")
        if record.get("isApiErrorMessage") or not isinstance(message, dict) or message.get("model") == "<synthetic>":
            return
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in map(as_object, as_list(content)):
            kind = block.get("type")
            if kind == "text":
                if text := clean(as_text(block.get("text"))).strip():
                    yield self._turn(record, Role.ASSISTANT, Origin.ASSISTANT, text)
            elif kind == "tool_use":
                arguments = as_object(block.get("input"))
                event = tool_call(as_text(block.get("id")), as_text(block.get("name")), arguments)
                self._remember_call(event, arguments)
                yield self._turn(record, Role.TOOL, Origin.TOOL_USE, call_text(event, arguments), event)

    def _remember_call(self, event: ToolEvent, arguments: dict[str, Any]) -> None:
        if arguments.get("answers"):
            return  # The agent or a hook answered the question.
        self._calls[event.use_id or ""] = event
        if event.name == ASKING_TOOL and not self._is_damaged:
            self._offered[event.use_id or ""] = offered_in(arguments)

    def _was_said(self, record: dict[str, Any], text: str) -> bool:
        """Whether a record with the same time and text was read.

        When the host compacts or forks a session it copies lines, with new ids and the old times.
        """
        time = as_text(record.get("timestamp"))
        return self._is_repeated(f"said {time}", text if time else "")

    def _is_repeated(self, kind: str, name: str) -> bool:
        """Whether this was read before, as in resumed and forked files. Remembers it in 16 bytes: 20 MB for a GB.

        The kind counts, too, since an attachment may have the id of the line after it.
        """
        if not name:
            return False
        key = blake2b(f"{kind}\0{name}".encode("utf-8", "replace"), digest_size=16).digest()
        known = len(self._seen)
        self._seen.add(key)
        return len(self._seen) == known


def transcript_files(root: Path) -> Iterator[Path]:
    """Yield the sessions of persons under `<config>/projects`, by name; not sub-agents' and not journals."""
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
    """Whether no field shows that the record is not the user's."""
    kind = as_object(record.get("origin")).get("kind")
    return (
        not any(map(record.get, NOT_USERS))
        and kind in (None, "human")
        and record.get("promptSource") in (None, "typed", "queued")
        and record.get("turnOrigin") in (None, "human")
        and record.get("rowSource") != "harness"
    )


def _is_persons_place(record: dict[str, Any]) -> bool:
    """Whether the record comes from a program in which a person types; unknown ones do not count."""
    return record.get("entrypoint") in (None, *PERSONS_ENTRYPOINTS)


def _is_persons_decision(record: dict[str, Any]) -> bool:
    """Whether no field of a call's result shows that a hook, a setting or a program decided on the call.

    A field that is not known may do so.
    """
    if "permissionDecision" in record:
        decision = as_object(record["permissionDecision"])
        if decision.get("source") not in PERSONS_SOURCES or not holds_only(decision, DECISION):
            return False
    return holds_only(record, RESULT_RECORD) and _is_persons_place(record)


def _says_typed(record: dict[str, Any]) -> bool:
    """Whether the host says that a person entered this: by the record's origin or, in older versions, its fields."""
    if not _is_persons_place(record) or not holds_only(record, TYPED_RECORD):
        return False
    if record.get("userType") not in (None, "external"):
        return False
    if record.get("origin") is not None:
        return bool(record["origin"] == {"kind": "human"})
    if "promptSource" in record:
        return record["promptSource"] in ("typed", "queued")
    return record.get("userType") == "external" and any(field in record for field in PROMPT_FIELDS)


def _is_one_text(content: object) -> bool:
    """Whether a message is one text that begins as a person's does, beside images and what an editor shows."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    blocks = [block for block in map(as_object, blocks) if block.get("type") != "image"]
    texts = [text for block in blocks if not (text := as_text(block.get("text"))).startswith(_IDE_BLOCK)]
    is_plain = all(block.get("type") == "text" and holds_only(block, TEXT) for block in blocks)
    return is_plain and len(texts) == 1 and not has_machines_form(texts[0])


def _content(record: dict[str, Any]) -> object:
    return as_object(record.get("message")).get("content")


def _texts(content: object) -> list[str]:
    """Return the texts of a message, a result or a prompt, which is a string or blocks."""
    if isinstance(content, str):
        return [content]
    return [as_text(block.get("text")) for block in map(as_object, as_list(content)) if block.get("type") == "text"]
