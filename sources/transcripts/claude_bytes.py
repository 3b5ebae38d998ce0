"""What a line of Claude Code's transcripts tells by its bytes, so that it need not be parsed.

A guess that it holds something costs the parsing; a guess that it holds nothing would lose words. So each of these
asks for the very form in which the host writes such a line, and says no to any other.
"""

from __future__ import annotations

import re

# A line without a word of user or agent: of such a type, or a sub-agent's.
SILENT = frozenset(
    [
        *(b"progress", b"file-history-snapshot", b"system", b"summary", b"pr-link"),
        *(b"ai-title", b"custom-title", b"permission-mode"),
    ]
)
TYPE = b'"type":"'
SIDECHAIN = b'"isSidechain":true'
_IS_MESSAGE = b'"message":'
FIRST_BLOCK = b'"content":[{"type":"t'
"""A message begins with a thought, a text, a tool's call."""
THINKING = FIRST_BLOCK + b'hinking"'
CONTENT_BEGINS_BYTES = 1000
"""Where the content of a message begins, at the latest, behind its brace; one that begins later is parsed."""
_THOUGHT_SIGNED = b'","signature":"'
_SPEAKS = b'"type":"t'
"""A text or a tool's call; neither a message nor an assistant."""
_UUID = b',"uuid":"'
_NOT_A_PERSONS = (b'"agentId"', b'"sdk')
_FIELDS_BEHIND_BYTES = 600
"""What a record says of itself behind the raw result."""
TOOL_USE_RESULT = b',"toolUseResult":'
LOOKING_TOOLS = frozenset({"Read", "Grep", "Glob", "LS", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList"})
"""They run nothing and change no file."""
EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
_LOOKING_CALL = re.compile(
    rb'"content":\[\{"type":"tool_use","id":"([\w-]{1,80})","name":"(?:%b)","input":\{'
    % "|".join(sorted(LOOKING_TOOLS)).encode()
)
_LONGEST_UNREAD_BYTES = 4000
"""Of the record of a call, which is kept until its outcome is known."""
_RUNS = (b'"command":', b'"cmd":')
_RAW_TYPE_BEGINS_BYTES = 40
_SHORT_OUTPUT_BYTES = 1000
# A record with one result that is a string and no error, from the message on: between the two stands only that string.
_RESULT_BEGINS = re.compile(
    rb'\{"role":"user","content":\[\{"tool_use_id":"([\w-]{1,80})","type":"tool_result","content":"'
)
_RESULT_ENDS = re.compile(rb'"(?:,"is_error":false)?\}\]\},"uuid":"([\w-]{1,80})","timestamp":"([^"\\]{1,40})"\Z')
_RESULT_END_BYTES = 220
"""As much as its end takes."""


def only_thinks(data: bytes, brace: int, first: int) -> bool:
    """Does a record whose message begins with a thought hold nothing else, and name its session and folder?"""
    if data.find(_SPEAKS, first + len(THINKING)) >= 0:
        return False
    # A quote inside the thought is escaped: the first plain one ends it. Only what stands around the thought
    # and its signature, most of the line, is searched for the rest.
    signed = data.find(_THOUGHT_SIGNED, first)
    ends = data.find(b'"', signed + len(_THOUGHT_SIGNED))
    if signed < 0 or not data.startswith(b'"}]', ends):
        return False
    for foreign in _NOT_A_PERSONS:
        if data.find(foreign, 0, first) >= 0 or data.find(foreign, ends) >= 0:
            return False
    return _names_its_place(data, brace)


def call_to_look(data: bytes, brace: int, first: int) -> tuple[str, str] | None:
    """The ids of a call of a tool that only looks and of its record, if the record holds nothing else."""
    call = _LOOKING_CALL.match(data, first)
    if call is None or len(data) > _LONGEST_UNREAD_BYTES or not data.endswith(_IS_MESSAGE, 0, brace):
        return None
    if data.find(_SPEAKS, call.end()) >= 0 or not _names_its_place(data, brace):
        return None
    for foreign in (*_NOT_A_PERSONS, *_RUNS):
        if data.find(foreign) >= 0:
            return None
    named = data.rfind(_UUID, call.end())
    begins = named + len(_UUID)
    return (call[1].decode(), data[begins : data.find(b'"', begins)].decode()) if named >= 0 else None


def outcome(data: bytes, brace: int) -> tuple[str, int] | None:
    """Of a message at `brace` that begins with what a tool put out: the id of its call, and where the output begins."""
    begins = _RESULT_BEGINS.match(data, brace)
    return None if begins is None else (begins[1].decode(), begins.end())


def only_went_well(data: bytes, brace: int, begins: int, *, is_short: bool) -> tuple[str, str] | None:
    """The id and the time of a record that holds nothing but the outcome that begins there, and no error.

    `is_short`: what is put out is a sentence, as for edits; their raw results are many times as long.
    """
    if not _names_its_place(data, brace):
        return None
    for foreign in _NOT_A_PERSONS:
        if data.find(foreign, 0, brace) >= 0 or data.find(foreign, -_FIELDS_BEHIND_BYTES) >= 0:
            return None
    at = data.find(TOOL_USE_RESULT, begins, begins + _SHORT_OUTPUT_BYTES) if is_short else -1
    if at >= 0:
        if data.find(TYPE, begins, at) >= 0:
            return None
    else:
        # Another part of the message would have a type, and most raw results begin with theirs: so to look for one
        # finds both.
        typed = data.find(TYPE, begins)
        at = data.rfind(TOOL_USE_RESULT, max(begins, typed - _RAW_TYPE_BEGINS_BYTES), max(0, typed))
        if at < 0:
            at = data.find(TOOL_USE_RESULT, begins, typed if typed >= 0 else len(data))
    ends = _RESULT_ENDS.search(data, max(begins, at - _RESULT_END_BYTES), at) if at > 0 else None
    return None if ends is None else (ends[1].decode(), ends[2].decode())


def _names_its_place(data: bytes, brace: int) -> bool:
    """Are session and folder named before the first inner brace?"""
    return data.find(b',"cwd":"', 0, brace) >= 0 and data.find(b',"sessionId":"', 0, brace) >= 0
