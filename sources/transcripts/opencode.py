"""Read OpenCode's sessions (seen: 1.18), rows of `~/.local/share/opencode/opencode.db`: most of them in its `-wal`.

A session is named `<database>#<id>` and read as if it were a file of JSON lines: its header, then a line for each part.
Offsets are those of this text. It only grows: an answer that is being written, and what follows it, are left out until
it is complete or broke off, and what OpenCode changes later is in no line. The database is opened to be read, and
nothing is copied. Its values may have any type.
"""

from __future__ import annotations

import errno
import io
import itertools
import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from ...vault.marker import is_session_id
from ...vault.turn import Origin, Role, Turn, blanked
from ...vault.typed_text import OWN_COMMANDS
from .compressed import IN_DATABASE, TranscriptStatus
from .lines import MAX_LINE_BYTES, as_list, as_object, as_text, clean, holds_only, one_line, parse_object, shorten
from .reader import TOOL_TEXT_CHARS, TranscriptReader, call_text, tool_call
from .whose_words import entered_text, has_machines_form, is_offered, offered_in, picked_ranges

DATABASE = "opencode.db"
HEADER = "opencode.session"
MARK = "memoryvault"
"""Our plugin's key in the metadata of a part, or of an answer: "typed", or the slash command with its arguments."""
TYPED_PART = frozenset({"type", "text", "metadata"})
ASKING_TOOL = "question"
LOCK_SECONDS = 2.0
READ_SECONDS = 60.0
"""Longest reading of a session. It must end: the worker reads in its own process, too, to learn a session's length."""
STEPS = 100_000
"""SQLite's steps, a few milliseconds, after which the time is looked at."""
COLUMNS = "id, directory, parent_id, permission, revert, time_created, time_updated"
SENDING_MS = 120_000
"""Longest time between a prompt, or a question, and its row: plugins may think, and attached files are read."""
WRITING_MS = 12 * 3_600_000
"""Time after the last change of an unfinished answer until it counts as broken off: a question waits overnight."""
LAST_MS = 4_102_444_800_000
"""The year 2100: an imported session may have times that are no dates."""
_NAMES = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string"}


class OpenCodeReader(TranscriptReader):
    host: ClassVar[str] = "opencode"
    record_start: ClassVar[bytes] = b'{"id":"prt_'
    record_id: ClassVar[str] = "id"

    def __init__(self, path: Path, offset: int = 0, read_until: int = 0) -> None:
        super().__init__(path, offset, read_until)
        self.session = path.name.partition("#")[2] or path.stem

    def _read_header(self, records: Iterator[dict[str, Any]]) -> None:
        for record in records:
            if record.get("type") == HEADER:
                self.session = as_text(record.get("session")) or self.session
                self.cwd = as_text(record.get("cwd")) or None
                self.headless = record.get("headless") is True
                return

    def _turns_of(self, record: dict[str, Any]) -> Iterator[Turn]:
        if record.get("type") == "tool":
            yield from self._tool(record)
        elif record.get("role") == "assistant":
            if text := clean(as_text(record.get("text"))).strip():
                yield self._turn(record, Role.ASSISTANT, Origin.ASSISTANT, text)
        elif record.get("role") == "user":
            yield from self._typed(record)

    def _typed(self, record: dict[str, Any]) -> Iterator[Turn]:
        """Yield what was typed. OpenCode does not tell a command's text, which any repository may bring, from typed
        words; our plugin does."""
        mark = record.get("mark")
        command = as_object(mark)
        entered = as_text(command.get("arguments") if command else record.get("text"))
        if text := entered_text(entered):
            origin = Origin.COMMAND_ARGS if command else Origin.PROMPT
            about = f"/{as_text(command.get('command'))}" if command else ""
            # What is given to another command than ours is for its purpose, as a text to translate.
            confirmed = mark == "typed" or about.partition(":")[0] in OWN_COMMANDS
            confirmed = confirmed and "imported" not in record and not has_machines_form(entered)
            yield self._turn(record, Role.USER, origin, text, about=about, confirmed=confirmed)

    def _tool(self, record: dict[str, Any]) -> Iterator[Turn]:
        arguments = {_NAMES.get(name, name): value for name, value in as_object(record.get("input")).items()}
        event = tool_call(as_text(record.get("call")), as_text(record.get("tool")), arguments)
        yield self._turn(record, Role.TOOL, Origin.TOOL_USE, call_text(event, arguments), tool=event)
        if record.get("status") not in ("completed", "error"):
            return
        if "answers" in record and record.get("status") == "completed":
            yield from self._answers(record, record.get("questions"), record["answers"])
            return
        result = event._replace(is_error=record.get("status") == "error" or record.get("exit") not in (None, 0))
        yield self._turn(record, Role.TOOL, Origin.TOOL_RESULT, clean(as_text(record.get("output"))), tool=result)

    def _answers(self, record: dict[str, Any], questions: object, answers: object) -> Iterator[Turn]:
        offered = offered_in({"questions": questions})
        for asked, chosen in zip(map(as_object, as_list(questions)), map(as_list, as_list(answers)), strict=False):
            labels = {as_text(as_object(option).get("label")) for option in as_list(asked.get("options"))}
            if text := entered_text(", ".join(map(as_text, chosen))):
                # An option that is picked is the agent's wording.
                picked = picked_ranges(text, labels)
                typed = bool(offered) and not is_offered(blanked(text, picked), offered)
                yield self._turn(
                    record,
                    Role.USER,
                    Origin.ANSWER,
                    text,
                    about=one_line(asked.get("question"), 500),
                    pasted=picked or None,
                    confirmed=typed and record.get("typed") is True and "imported" not in record,
                )


def transcript_files(root: Path) -> Iterator[Path]:
    """Yield the names of the sessions in the database in this folder, oldest first.

    For a database that cannot be read, yield one name without a session: reading that raises the error. An imported
    session chooses its id, which may be no name of a file: that one is left out.
    """
    path = root / DATABASE
    try:
        with closing(_open(path)) as database:
            rows = database.execute("SELECT id FROM session ORDER BY time_created, id").fetchall()
    except FileNotFoundError:
        return
    except (OSError, sqlite3.Error):
        yield path.with_name(f"{DATABASE}#")
        return
    for (session,) in rows:
        if is_session_id(session):
            yield path.with_name(f"{DATABASE}#{session}")


def session_written(path: Path) -> float:
    """Return the time of a session's last change in Unix seconds. Raises OSError, FileNotFoundError if it is gone."""
    with _session(path) as (_, row):
        return _milliseconds(row[-1]) / 1000


def status_of_session(path: Path) -> TranscriptStatus:
    """Return the size of a session's text in bytes, and the time of its last change. Raises OSError."""
    with _session(path) as (database, row):
        return TranscriptStatus(sum(map(len, _lines(database, row))), _milliseconds(row[-1]) / 1000)


def open_session(path: Path) -> io.BytesIO:
    """Return a session's text as a stream. Raises OSError, FileNotFoundError if the database or the session is gone."""
    text = io.BytesIO()
    with _session(path) as (database, row):
        text.writelines(_lines(database, row))
    text.seek(0)
    return text


def _open(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no such database", str(path))
    database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=LOCK_SECONDS, isolation_level=None)
    give_up_at = time.monotonic() + READ_SECONDS
    database.set_progress_handler(lambda: time.monotonic() > give_up_at, STEPS)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


@contextmanager
def _session(path: Path) -> Iterator[tuple[sqlite3.Connection, tuple[Any, ...]]]:
    """The database, and the session's row: see `COLUMNS`. Raises OSError."""
    name, _, session = path.name.partition(IN_DATABASE)
    try:
        with closing(_open(path.with_name(name + IN_DATABASE.rstrip("#")))) as database:
            database.execute("BEGIN")  # One state of the database for all that is read.
            found = database.execute(f"SELECT {COLUMNS} FROM session WHERE id = ?", (session,)).fetchone()
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "OpenCode has no such session", str(path))
            yield database, found
    except sqlite3.Error as error:
        raise OSError(errno.EIO, f"OpenCode's database cannot be read: {error}", str(path)) from error


def _lines(database: sqlite3.Connection, row: tuple[Any, ...]) -> Iterator[bytes]:
    """Yield the lines of a session's text, each as soon as its row is read."""
    session, cwd, parent, permission, revert, created_ms, _ = row
    undone = as_text(_object(revert).get("messageID"))
    parts: Iterable[dict[str, Any]] = _parts(database, session, _milliseconds(created_ms), undone)
    headless = parent is not None
    if not headless and _was_begun_by_a_program(permission):
        parts = [part for part in parts if part["role"] != "user" or _is_persons(part)]
        headless = not any(map(_is_persons, parts))
    header = {"type": HEADER, "session": session, "cwd": as_text(cwd), "headless": headless}
    for record in itertools.chain([header], parts):
        yield json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _data(database: sqlite3.Connection, table: str, row: object) -> dict[str, Any]:
    """Read what a row says; nothing of one that would be too long as a line of a file."""
    asked = f"SELECT CAST(data AS BLOB) FROM {table} WHERE id = ? AND length(CAST(data AS BLOB)) <= ?"
    found = database.execute(asked, (row, MAX_LINE_BYTES)).fetchone()
    return _object(found[0] if found else None)


def _object(value: object) -> dict[str, Any]:
    data = value.encode() if isinstance(value, str) else value
    return (parse_object(data) if isinstance(data, bytes) else None) or {}


def _milliseconds(value: object) -> int:
    return int(max(0, min(value, LAST_MS))) if isinstance(value, int | float) else 0


def _was_begun_by_a_program(permission: object) -> bool:
    """Whether it was `opencode run`, whose agent must not ask. A person may go on with it in the terminal client."""
    rules = _object(f'{{"rules":{as_text(permission) or "[]"}}}').get("rules")
    return any(
        (rule.get("permission"), rule.get("action")) == ("question", "deny") for rule in map(as_object, as_list(rules))
    )


def _is_persons(part: dict[str, Any]) -> bool:
    """Whether our plugin noted that a person entered it, though another may have changed it."""
    mark = part.get("mark")
    return "imported" not in part and bool(mark["command"] if isinstance(mark, dict) else mark)


def _parts(database: sqlite3.Connection, session: str, began_ms: int, undone: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session's parts in their order, up to what the user took back with `/undo`.

    What is older than the session is a copy of what was said in the one that it was forked from. `opencode import`
    brings prompts and answers of a file or a page with their times, and with what looks like our marks; the rows of
    their parts have the time of the import.
    """
    rows = database.execute(
        "SELECT id, time_created FROM message WHERE session_id = ? AND time_created >= ? ORDER BY time_created, id",
        (session, began_ms),
    )
    messages = [(message, _milliseconds(at), _message(_data(database, "message", message))) for message, at in rows]
    sent = {message: at for message, at, data in messages if data["role"] == "user"}
    parts: defaultdict[str, list[str]] = defaultdict(list)
    written: dict[str, int] = {}
    changed = {message: at for message, at, _ in messages}
    imported = -1
    rows = database.execute(
        "SELECT id, time_created, time_updated, message_id, instr(data, ?) FROM part WHERE session_id = ? ORDER BY id",
        (f'"{ASKING_TOOL}"', session),
    )
    for part, created, updated, message, asks in rows:
        at = written[part] = _milliseconds(created)
        changed[message] = max(_milliseconds(updated), changed.get(message, 0))
        if isinstance(part, str):
            parts[message].append(part)
            if (message in sent or asks) and (line := _line(_data(database, "part", part))):
                came = sent.get(message, line.get("asked"))
                if came is not None and abs(at - came) > SENDING_MS:
                    imported = max(imported, at)
    newest = next((message for message, _, data in reversed(messages) if data.get("role") == "assistant"), "")
    for message, _, data in messages:
        times = as_object(data.get("time"))
        if message == undone:
            return
        is_ended = message != newest or times.get("completed") or data.get("error")
        if not is_ended and time.time() * 1000 - changed[message] < WRITING_MS:
            return  # One that broke off is complete as soon as another one is begun.
        if data["summary"]:
            continue  # Of a compaction: the agent's words about what was said before.
        common = {"role": as_text(data.get("role")), "timestamp": _as_time(times.get("created"))}
        read = ((part, _line(_data(database, "part", part))) for part in parts[message])
        for line in _clear_parts([{"id": part, **line} for part, line in read if line]):
            yield {**line, **common, **({"imported": True} if written[line["id"]] <= imported else {})}


def _message(data: dict[str, Any]) -> dict[str, Any]:
    """What is read of a message. The summary of a prompt holds each file that was changed for it."""
    return {**{name: data.get(name) for name in ("role", "time", "error")}, "summary": data.get("summary") is True}


def _clear_parts(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of one message, without what other plugins put beside the text of a prompt or a command, all of which
    ours marks. A prompt is one text: of several it is unknown which was typed; beside a command's text nothing was."""
    marked = [part for part in parts if "mark" in part]
    commands = [part for part in marked if isinstance(part["mark"], dict)]
    if len(marked) > 1 and not commands:
        return [{**part, "mark": None} for part in marked]
    return commands or marked or parts


def _as_time(milliseconds: object) -> str:
    try:
        return datetime.fromtimestamp(float(str(milliseconds)) / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _line(part: dict[str, Any]) -> dict[str, Any]:
    """What is read of a part, and does not change any more; nothing of one that says nothing, or that no person or
    agent wrote.

    Only fields of known kinds: tools and their servers choose what else is in a call, and how deeply it is nested.
    """
    if part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored"):
        noted = as_object(part.get("metadata"))
        mark = _mark(noted.get(MARK))
        if mark == "typed" and not (holds_only(part, TYPED_PART) and holds_only(noted, {MARK})):
            mark = "changed"
        return {"type": "text", "text": as_text(part.get("text")), **({"mark": mark} if mark else {})}
    if part.get("type") != "tool":
        return {}
    tool, state = as_text(part.get("tool")), as_object(part.get("state"))
    given, metadata = as_object(state.get("input")), as_object(state.get("metadata"))
    output = as_text(state.get("output")) or as_text(state.get("error"))
    exit_code = metadata.get("exit")
    line: dict[str, Any] = {
        "type": "tool",
        "tool": tool,
        "call": as_text(part.get("callID")),
        "status": as_text(state.get("status")),
        "input": {name: shorten(value, TOOL_TEXT_CHARS) for name, value in given.items() if isinstance(value, str)},
        "output": shorten(output, TOOL_TEXT_CHARS),
        **({"exit": exit_code} if isinstance(exit_code, int) else {}),
    }
    # A server's tool may return such a field, too.
    if tool == ASKING_TOOL and isinstance(answers := metadata.get("answers"), list):
        line["questions"] = [_question(as_object(each)) for each in as_list(given.get("questions"))]
        line["answers"] = [[each for each in as_list(chosen) if isinstance(each, str)] for chosen in answers]
        line["typed"] = metadata.get(MARK) == "typed"
        line["asked"] = _milliseconds(as_object(state.get("time")).get("start"))
    return line


def _mark(mark: object) -> str | dict[str, str]:
    """What our plugin noted; '' for anything else."""
    if isinstance(mark, dict):
        return {name: as_text(mark.get(name)) for name in ("command", "arguments")}
    return as_text(mark)


def _question(question: dict[str, Any]) -> dict[str, Any]:
    options = [
        {name: as_text(as_object(option).get(name)) for name in ("label", "description")}
        for option in as_list(question.get("options"))
    ]
    return {"question": as_text(question.get("question")), "options": options}
