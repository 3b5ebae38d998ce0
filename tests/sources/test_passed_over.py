"""Lines that are told from their bytes to hold nothing are not parsed, and the turns are those of parsing all."""

from __future__ import annotations

import itertools
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from memoryvault.pipelines.mining import Miner
from memoryvault.sources.transcripts.claude import ClaudeReader, transcript_files
from memoryvault.sources.transcripts.lines import parse_object
from memoryvault.vault.turn import Origin, Turn

from .records import assistant, call, human, queue, queued_attachment, result, text_block, uuid, write

THOUGHT = {"type": "thinking", "thinking": 'Say "type":"text" and {"type":"tool_use"}.', "signature": "x"}


class ParsesAll(ClaudeReader):
    """The plain path."""

    def _is_irrelevant(self, data: bytes) -> bool:
        return False

    def _parse(self, data: bytes) -> dict[str, Any] | None:
        return parse_object(data)


def thought(number: int, *more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """As the host writes it: what the line says of itself comes before the message."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": f"/home/dev/{number}",
        "sessionId": f"s{number}",
        "type": "assistant",
        "message": {"role": "assistant", "content": [THOUGHT, *more]},
        "uuid": uuid(number),
        "timestamp": f"2026-03-01T11:{number % 60:02d}:00.000Z",
        **fields,
    }


KINDS: tuple[dict[str, Any], ...] = (
    thought(1),
    thought(2, entrypoint="sdk-py"),
    thought(3, text_block("The cause was a stale cache.")),
    {**thought(4), "agentId": "a"},
    assistant(5, text_block("Here is the plan.")),
    assistant(6, call("t1", "Bash", command="make test")),
    result(7, "t1", '{"type":"thinking"}'),
    queue("enqueue", "and the docs too"),
    queue("dequeue"),
    queued_attachment(8, "and the docs too"),
    human(9, "Never push without asking.", cwd=None, timestamp=None),
)


@pytest.mark.slow
def test_whatever_comes_before_and_behind_a_thought_the_turns_are_the_same(tmp_path: Path) -> None:
    number = 0
    for records in itertools.permutations(KINDS, 3):
        if not any(THOUGHT in list(record.get("message", {}).get("content", ())) for record in records):
            continue
        number += 1
        path = write(tmp_path / f"{number % 50}.jsonl", human(20, "Hello."), *records)
        reader, plain = ClaudeReader(path), ParsesAll(path)
        assert list(reader) == list(plain), [json.dumps(record) for record in records]
        assert (reader.report, reader.session) == (plain.report, plain.session)
    assert number > 400


def looked(number: int, use_id: str, content: object, *more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What a tool put out, as the host writes it."""
    error = {"is_error": fields.pop("is_error")} if "is_error" in fields else {}
    block = {"tool_use_id": use_id, "type": "tool_result", "content": content, **error}
    return {
        **thought(number),
        "type": "user",
        "message": {"role": "user", "content": [block, *more]},
        "toolUseResult": {"type": "text", "file": {"content": content}},
        **fields,
    }


READ, GREP, RUN = (
    call("r1", "Read", file_path="a.py"),
    call("g1", "Grep", pattern="x"),
    call("b1", "Bash", command="ls"),
)
EDIT = call("e1", "Edit", file_path="a.py", old_string="a", new_string="b")


def asks(number: int, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What the agent calls, as the host writes it: mostly one call in a record."""
    return {**thought(number), "message": {"role": "assistant", "content": [*blocks]}, **fields}


NESTED = {
    **{key: value for key, value in thought(41).items() if key not in ("type", "message", "uuid", "timestamp")},
    "data": {"message": asks(41, call("b1", "Read", file_path="of a sub-agent"))["message"]},
    "type": "progress",
}
CALLS: tuple[dict[str, Any], ...] = (
    asks(34, READ),
    asks(35, GREP),
    asks(36, RUN),
    asks(49, EDIT),
    asks(37, call("r1", "Read", file_path="b.py"), text_block("The cause was a stale cache.")),
    asks(38, call("b1", "LS", command="ls")),
    asks(39, READ, agentId="a"),
    asks(40, READ, cwd=None),
    NESTED,
    asks(42, READ, entrypoint="sdk-py"),
)
SAYS: tuple[dict[str, Any], ...] = (
    result(43, "r1", "The user doesn't want to read it. The user said: Use the index.", is_error=True),
    human(44, "Go on.", cwd=None, timestamp=None),
    queue("enqueue", "and the docs too"),
    queue("dequeue"),
)
LOOKS: tuple[dict[str, Any], ...] = (
    looked(21, "r1", 'line "type":"text" },{"tool_use_id":"b1"'),
    looked(22, "g1", "found", is_error=False),
    looked(23, "r1", "no such file", is_error=True),
    looked(24, "b1", "error: broken"),
    looked(25, "r1", "one", {"tool_use_id": "b1", "type": "tool_result", "content": "error: two"}),
    looked(26, "r1", "one", text_block("Never push to main.")),
    looked(27, "g1", [text_block("a list")]),
    looked(28, "r1", "of a sub-agent", agentId="a"),
    looked(29, "r1", "headless", entrypoint="sdk-py"),
    looked(30, "r1", "nowhere", cwd=None),
    looked(45, "e1", 'changed; "type":"text"'),
    looked(46, "e1", "not changed", is_error=True),
    looked(47, "e1", "changed", text_block("Never push to main.")),
    looked(48, "e1", "changed", cwd=None),
    human(31, "Go on.", cwd=None, timestamp=None),
    queue("enqueue", "and the docs too"),
)


def without_text(turn: Turn) -> Turn:
    """As it comes when not all steps are asked for: calls and edits that went well have no text."""
    if turn.origin is Origin.TOOL_USE:
        return turn._replace(text="")
    if turn.tool is not None and turn.tool.name == "Edit" and not turn.tool.is_error:
        # Nothing is proposed for it, so where it was said is not looked for.
        return turn._replace(text="", cwd=None, session="")
    return turn


def assert_nothing_is_missing_but_looks(path: Path, shown: list[str]) -> None:
    reader, plain = ClaudeReader(path, all_steps=False), ParsesAll(path)
    turns = list(reader)
    expected = list(plain)
    told, wanted = [*map(without_text, turns)], [*map(without_text, expected)]
    dropped = [turn for turn in wanted if turn not in told]
    assert told == [turn for turn in wanted if turn not in dropped], shown
    assert all(turn.tool and turn.tool.name in ("Read", "Grep") and not turn.tool.is_error for turn in dropped)
    assert list(Miner().run(turns)) == list(Miner().run(expected))
    assert (reader.session, reader.report.lines) == (plain.session, plain.report.lines)


@pytest.mark.slow
def test_only_what_tools_saw_is_left_out(tmp_path: Path) -> None:
    """Of any two records in a row: all turns but the outputs of Read and Grep that did not fail."""
    begin = human(20, "Hello."), assistant(33, READ, GREP, RUN, EDIT)
    for number, records in enumerate(itertools.product(LOOKS, LOOKS)):
        path = write(tmp_path / f"{number % 50}.jsonl", *begin, *records)
        assert_nothing_is_missing_but_looks(path, [json.dumps(record) for record in records])


ENDS = (LOOKS[0], LOOKS[2], LOOKS[3], LOOKS[10], *SAYS)


@pytest.mark.slow
def test_only_calls_to_look_are_left_out(tmp_path: Path) -> None:
    """Of any three records in a row with a call among them: all turns but the calls to Read and Grep, and what these
    put out if they did not fail. A refused one still says what was refused."""
    number = 0
    for records in itertools.product((*CALLS, *SAYS), (*CALLS, *LOOKS, *SAYS), ENDS):
        if not any(record in CALLS for record in records):
            continue
        number += 1
        path = write(tmp_path / f"{number % 50}.jsonl", human(20, "Hello."), *records)
        assert_nothing_is_missing_but_looks(path, [json.dumps(record) for record in records])
    assert number > 1500


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that are parsed from here on, each whole."""
    lines: list[bytes] = []

    def parse(_: ClaudeReader, data: bytes) -> dict[str, Any] | None:
        lines.append(data)
        return parse_object(data)

    monkeypatch.setattr(ClaudeReader, "_parse", parse)
    return lines


def test_a_call_to_look_is_not_parsed_until_it_is_refused(tmp_path: Path, parsed: list[bytes]) -> None:
    path = write(tmp_path / "s.jsonl", human(20, "Hello."), CALLS[0], CALLS[1], LOOKS[1], SAYS[0])
    turns = list(ClaudeReader(path, all_steps=False))
    assert [(turn.origin.value, turn.about) for turn in turns] == [
        ("prompt", ""),
        ("rejection", "Read: a.py"),
        ("tool_result", ""),
    ]
    assert len(parsed) == 2


def test_what_a_tool_saw_is_not_parsed_when_it_is_not_asked_for(tmp_path: Path, parsed: list[bytes]) -> None:
    path = write(tmp_path / "s.jsonl", human(20, "Hello."), assistant(33, READ, GREP), *LOOKS[:2])
    assert [turn.origin.value for turn in ClaudeReader(path)] == ["prompt", *2 * ["tool_use"], *2 * ["tool_result"]]
    parsed.clear()
    turns = list(ClaudeReader(path, all_steps=False))
    assert [turn.origin.value for turn in turns] == ["prompt", *2 * ["tool_use"]]
    assert len(parsed) == 2


def test_a_thought_alone_is_not_parsed_and_what_it_says_of_itself_still_counts(
    tmp_path: Path, parsed: list[bytes]
) -> None:
    path = write(tmp_path / "s.jsonl", human(1, "Hello."), thought(2), thought(3), human(4, "Go on.", cwd=None))
    assert [turn.cwd for turn in ClaudeReader(path)] == ["/home/dev/shop", "/home/dev/3"]
    assert len(parsed) == 2


def test_a_call_behind_an_unsigned_thought_is_read_whatever_it_holds(tmp_path: Path) -> None:
    unsigned = {"type": "thinking", "thinking": "Sign it."}
    signs = call("t1", "Sign", items=[{"by": "me", "signature": "s"}])
    record = {**thought(2), "message": {"role": "assistant", "content": [unsigned, signs]}}
    path = write(tmp_path / "s.jsonl", human(1, "Hello."), record)
    assert [turn.origin.value for turn in ClaudeReader(path)] == ["prompt", "tool_use"]


@pytest.fixture
def real_sessions(tmp_path: Path) -> list[Path]:
    if "MEMORYVAULT_DATA" not in os.environ:
        pytest.skip("MEMORYVAULT_DATA is not set: no real sessions to read")
    with tarfile.open(Path(os.environ["MEMORYVAULT_DATA"]) / "sessions.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    return list(transcript_files(tmp_path))


@pytest.mark.slow
def test_real_sessions_give_the_same_turns_and_candidates(real_sessions: list[Path]) -> None:
    assert real_sessions
    for path in real_sessions:
        quick, plain = list(ClaudeReader(path)), list(ParsesAll(path))
        assert quick == plain, path.name
        candidates = list(Miner().run(plain))
        assert list(Miner().run(quick)) == candidates
        assert list(Miner().run(ClaudeReader(path, all_steps=False))) == candidates
