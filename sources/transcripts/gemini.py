"""Read Gemini CLI's transcripts: `~/.gemini/tmp/<project>/chats/session-*.jsonl` (seen: 0.61).

A record of type `user` is a prompt, or the output of a hook, a tool or a shell line. `logs.json`, beside the folder
`chats`, lists every line that a person entered at the prompt, and nothing of a run with `-p`. So an entry there, by
words and time, confirms a prompt. Its `sessionId` does not help, since `/clear` keeps the old one.

When a turn is cancelled the host writes its whole history again, under new ids. The same list shows what is a
repetition: each entry stands for one prompt.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ...hooks.gemini import REFERENCED, TYPED_LIST, read_shell_output, without_context
from ...vault.turn import Origin, Role, Turn
from ...vault.wording import one_line
from .lines import as_list, as_object, as_text, clean, parse_object
from .reader import TranscriptReader
from .whose_words import entered_text

FOLDER_NAME = ".project_root"
"""A file beside the typed list; it holds the path of the project's folder."""
_HOOKS = re.compile(r"\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)
_SHELL_LINE = re.compile(r"I ran the following shell command:\n```sh\n(.*?)\n```", re.DOTALL)


class GeminiReader(TranscriptReader):
    host: ClassVar[str] = "gemini"
    record_start: ClassVar[bytes] = b'{"id":'
    record_id: ClassVar[str] = "id"
    look_back_bytes: ClassVar[int] = sys.maxsize

    def __init__(self, path: Path, offset: int = 0, read_until: int = 0) -> None:
        super().__init__(path, offset, read_until)
        self._typed: dict[str, list[str]] = {}
        """By words: the times of their entries in the typed list."""
        self._said: Counter[str] = Counter()
        """By words: how often the prompt was read."""
        self._done: set[str] = set()
        """Ids of tool calls that were read, and of the agent's messages."""

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        start = last = ""
        by_program = False
        said = set()
        for record in records:
            if "projectHash" in record:
                self.session = as_text(record.get("sessionId")) or self.session
                start = start or as_text(record.get("startTime"))
                self.headless = self.headless or record.get("kind", "main") != "main"
            elif record.get("type") == "user":
                by_program = by_program or _is_by_program(record)
                last = max(last, as_text(record.get("timestamp")))
                said.add(one_line(_shown(record)))
        project = self.path.parent.parent
        self.cwd = _read_text(project / FOLDER_NAME).strip() or None
        typed = _read_typed(project / TYPED_LIST)
        is_somebody_there = False
        for session, at, words in typed or ():
            if at >= start:
                self._typed.setdefault(words, []).append(at)
                # What is typed in another window meanwhile is in the same list.
                is_somebody_there |= at <= last and (session == self.session or words in said)
        # Without the list nobody knows whether a person was there, so nothing is confirmed.
        self.headless = self.headless or (not is_somebody_there and (by_program or (typed is not None and last > "")))

    def _turns_of(self, record: dict[str, Any]) -> Iterator[Turn]:
        if record.get("type") == "user" and not _is_by_program(record):
            yield from self._prompt(record)
        elif record.get("type") == "gemini":
            yield from self._answer(record)

    def _prompt(self, record: dict[str, Any]) -> Iterator[Turn]:
        sent, shown = _own_words(record.get("content")), _shown(record)
        if shell := _SHELL_LINE.match(shown):
            if not self._is_done(f"shell {shown}"):
                yield self._turn(record, Role.USER, Origin.BASH, clean(shell.group(1)), pasted=())
            return
        words = one_line(shown)
        time = as_text(record.get("timestamp"))
        entries = sum(at <= time for at in self._typed.get(words, ()))
        said = self._said[words]
        if not words or said >= max(entries, 1):
            return
        self._said[words] += 1
        if one_line(sent) != words:
            self._said[one_line(sent)] += 1  # A repetition has these words.
        if text := entered_text(shown):
            yield self._turn(record, Role.USER, Origin.PROMPT, text, confirmed=entries > 0)

    def _answer(self, record: dict[str, Any]) -> Iterator[Turn]:
        content = record.get("content")
        if isinstance(content, list) and record.get("tokens") is None:
            return  # A repetition.
        text = clean(_joined(content)).strip()
        if text and not self._is_done(f"said {record.get('id')}"):
            yield self._turn(record, Role.ASSISTANT, Origin.ASSISTANT, text)
        for call in map(as_object, as_list(record.get("toolCalls"))):
            if not self._is_done(f"call {call.get('id')}"):
                yield from self._call(record, call)

    def _call(self, record: dict[str, Any], call: dict[str, Any]) -> Iterator[Turn]:
        """Yield the call and its outcome, which are in one record."""
        arguments = as_object(call.get("args"))
        use_id = as_text(call.get("id"))
        yield self._tool_use(record, use_id, as_text(call.get("name")), arguments)
        event = self._calls.pop(use_id)
        results = map(as_object, as_list(call.get("result")))
        answers = [as_object(as_object(result.get("functionResponse")).get("response")) for result in results]
        output = without_context("\n".join(as_text(one.get("output")) or as_text(one.get("error")) for one in answers))
        failed = False
        if event.command:
            output, failed = read_shell_output(output)
        failed = failed or call.get("status") in ("cancelled", "error")
        yield self._tool_result(record, event, output, failed=failed)

    def _is_done(self, name: str) -> bool:
        known = len(self._done)
        self._done.add(name)
        return len(self._done) == known


def _parts(content: object) -> Iterator[str]:
    """Yield the texts of a content: a string, or parts."""
    for part in content if isinstance(content, list) else [content]:
        yield as_text(part.get("text")) if isinstance(part, dict) else as_text(part)


def _joined(content: object) -> str:
    return "".join(_parts(content))


def _own_words(content: object) -> str:
    """Return the text without what the host or a hook added."""
    kept = []
    for part in _parts(content):
        if not part.startswith("<session_context>") and not _HOOKS.fullmatch(part):
            kept.append(part)
    return "".join(kept).partition(REFERENCED)[0]


def _shown(record: dict[str, Any]) -> str:
    """What was entered, before a command or a named file was put in its place."""
    return _own_words(record.get("displayContent")) or _own_words(record.get("content"))


def _is_by_program(record: dict[str, Any]) -> bool:
    """Whether the prompt itself holds the context of the session's start: only with `-p`."""
    first = next(_parts(record.get("displayContent") or record.get("content")), "")
    begins = _HOOKS.match(first)
    return begins is not None and begins.end() < len(first)


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _read_typed(path: Path) -> list[tuple[str, str, str]] | None:
    """Return session, time and words of each entry of the typed list; None if it is missing or malformed."""
    try:
        entries = (parse_object(b'{"list":%s}' % path.read_bytes()) or {}).get("list")
    except OSError:
        return None
    if not isinstance(entries, list):
        return None
    return [
        (as_text(entry.get("sessionId")), as_text(entry.get("timestamp")), one_line(as_text(entry.get("message"))))
        for entry in map(as_object, entries)
        if entry.get("type") == "user"
    ]
