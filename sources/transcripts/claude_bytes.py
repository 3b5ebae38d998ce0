"""Recognising lines of Claude Code's transcripts by their bytes, so that they need not be parsed.

A line that is wrongly taken to hold words only costs the parsing; one that is wrongly taken to hold none would lose
them. So each function accepts only the exact form in which the host writes such a line.
"""

from __future__ import annotations

import re

# Record types without a word of user or agent.
SILENT_TYPES = frozenset(
    [
        *(b"progress", b"file-history-snapshot", b"system", b"summary", b"pr-link"),
        *(b"ai-title", b"custom-title", b"permission-mode"),
    ]
)
TYPE = b'"type":"'
SIDECHAIN = b'"isSidechain":true'
_IS_MESSAGE = b'"message":'
FIRST_BLOCK = b'"content":[{"type":"t'
"""How a message begins whose first block is a thought, a text or a tool's call."""
THINKING = FIRST_BLOCK + b'hinking"'
CONTENT_START_BYTES = 1000
"""How far behind its brace the content of a message may begin; a line where it begins later is parsed."""
_SIGNATURE = b'","signature":"'
_TEXT_OR_CALL = b'"type":"t'
"""Type of a text, thought or tool block; not of a message or an assistant's record."""
_UUID = b',"uuid":"'
_AGENT_MARKS = (b'"agentId"', b'"sdk')
_TRAILING_FIELDS_BYTES = 600
"""Size of the fields that follow the raw result in a record."""
TOOL_USE_RESULT = b',"toolUseResult":'
READING_TOOLS = frozenset({"Read", "Grep", "Glob", "LS", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList"})
"""Tools that run nothing and change no file."""
EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
_READING_CALL = re.compile(
    rb'"content":\[\{"type":"tool_use","id":"([\w-]{1,80})","name":"(?:%b)","input":\{'
    % "|".join(sorted(READING_TOOLS)).encode()
)
_MAX_UNPARSED_BYTES = 4000
"""Longest record of a call that is kept unparsed until its result is known."""
_COMMAND_KEYS = (b'"command":', b'"cmd":')
_RAW_TYPE_START_BYTES = 40
_SHORT_OUTPUT_BYTES = 1000
# A record with one result that is a string and no error, from the message on: only that string is between the two.
_RESULT_START = re.compile(
    rb'\{"role":"user","content":\[\{"tool_use_id":"([\w-]{1,80})","type":"tool_result","content":"'
)
_RESULT_END = re.compile(rb'"(?:,"is_error":false)?\}\]\},"uuid":"([\w-]{1,80})","timestamp":"([^"\\]{1,40})"\Z')
_RESULT_END_MAX_BYTES = 220
"""Most bytes that `_RESULT_END` matches."""


def holds_only_thoughts(data: bytes, brace: int, first: int) -> bool:
    """Whether a record whose message begins with a thought holds nothing else, and names its session and folder."""
    if data.find(_TEXT_OR_CALL, first + len(THINKING)) >= 0:
        return False
    # A quote inside the thought is escaped: the first plain one ends it. The rest is searched for only outside of
    # the thought and its signature, which are most of the line.
    signed = data.find(_SIGNATURE, first)
    ends = data.find(b'"', signed + len(_SIGNATURE))
    if signed < 0 or not data.startswith(b'"}]', ends):
        return False
    for foreign in _AGENT_MARKS:
        if data.find(foreign, 0, first) >= 0 or data.find(foreign, ends) >= 0:
            return False
    return _names_session_and_folder(data, brace)


def match_reading_call(data: bytes, brace: int, first: int) -> tuple[str, str] | None:
    """The ids of the call of a reading tool and of its record, if the record holds nothing else."""
    call = _READING_CALL.match(data, first)
    if call is None or len(data) > _MAX_UNPARSED_BYTES or not data.endswith(_IS_MESSAGE, 0, brace):
        return None
    if data.find(_TEXT_OR_CALL, call.end()) >= 0 or not _names_session_and_folder(data, brace):
        return None
    for foreign in (*_AGENT_MARKS, *_COMMAND_KEYS):
        if data.find(foreign) >= 0:
            return None
    named = data.rfind(_UUID, call.end())
    begins = named + len(_UUID)
    return (call[1].decode(), data[begins : data.find(b'"', begins)].decode()) if named >= 0 else None


def match_result(data: bytes, brace: int) -> tuple[str, int] | None:
    """For a message at `brace` that begins with a tool's result: the id of its call, and the offset of the output."""
    begins = _RESULT_START.match(data, brace)
    return None if begins is None else (begins[1].decode(), begins.end())


def match_success(data: bytes, brace: int, begins: int, *, is_short: bool) -> tuple[str, str] | None:
    """The id and the time of a record that holds nothing but the result at offset `begins`, if it is no error.

    `is_short`: the output is a sentence, as for edits, whose raw results are many times as long.
    """
    if not _names_session_and_folder(data, brace):
        return None
    for foreign in _AGENT_MARKS:
        if data.find(foreign, 0, brace) >= 0 or data.find(foreign, -_TRAILING_FIELDS_BYTES) >= 0:
            return None
    at = data.find(TOOL_USE_RESULT, begins, begins + _SHORT_OUTPUT_BYTES) if is_short else -1
    if at >= 0:
        if data.find(TYPE, begins, at) >= 0:
            return None
    else:
        # Another part of the message would have a type, and most raw results begin with theirs: one search finds
        # both.
        typed = data.find(TYPE, begins)
        at = data.rfind(TOOL_USE_RESULT, max(begins, typed - _RAW_TYPE_START_BYTES), max(0, typed))
        if at < 0:
            at = data.find(TOOL_USE_RESULT, begins, typed if typed >= 0 else len(data))
    ends = _RESULT_END.search(data, max(begins, at - _RESULT_END_MAX_BYTES), at) if at > 0 else None
    return None if ends is None else (ends[1].decode(), ends[2].decode())


def _names_session_and_folder(data: bytes, brace: int) -> bool:
    """Whether session and folder are named before the first inner brace."""
    return data.find(b',"cwd":"', 0, brace) >= 0 and data.find(b',"sessionId":"', 0, brace) >= 0
