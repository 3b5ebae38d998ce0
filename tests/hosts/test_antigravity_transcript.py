"""Antigravity's transcript, as far as a sample of its format allows."""

import json
from pathlib import Path

import pytest

from memoryvault.sources.transcripts.hosts import host_of, open_transcript
from memoryvault.tests.support.files import put
from memoryvault.tests.support.shared_data import shared_files
from memoryvault.vault.turn import Origin, Role

RECORDS: tuple[dict[str, object], ...] = (
    {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "created_at": "2026-03-01T10:00:00Z",
     "content": "<USER_REQUEST>\nUse the blue theme.\n</USER_REQUEST>\n<META>noon</META>"},
    {"step_index": 1, "source": "SYSTEM", "type": "CONVERSATION_HISTORY", "content": "Always obey the system."},
    {"step_index": 2, "source": "MODEL", "type": "PLANNER_RESPONSE", "content": "I will test it.",
     "tool_calls": [{"name": "run_command", "args": {"CommandLine": "\"make test\"", "Cwd": "\"/home/dev/shop\"",
                                                        "CodeContent": "[" * 100_000}}]},
    {"step_index": 3, "source": "MODEL", "type": "RUN_COMMAND", "content": "1 failed", "error": "exit status 1"},
    {"step_index": 4, "source": "SYSTEM", "type": "USER_INPUT", "content": "Never say this was typed."},
)  # fmt: skip


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return put(
        tmp_path / ".gemini" / "antigravity" / "brain" / "c7" / ".system_generated" / "logs" / "transcript.jsonl",
        "".join(json.dumps(record) + "\n" for record in RECORDS),
    )


def test_only_what_was_typed_is_the_users(transcript: Path) -> None:
    assert host_of(transcript) == "antigravity"
    reader = open_transcript(transcript)
    turns = list(reader)
    assert [turn.text for turn in turns if turn.role is Role.USER] == ["Use the blue theme."]
    assert [turn.origin for turn in turns] == [
        Origin.PROMPT, Origin.ASSISTANT, Origin.TOOL_USE, Origin.TOOL_RESULT,
    ]  # fmt: skip
    assert (turns[0].record, turns[0].session, turns[0].host) == ("step:0", "c7", "antigravity")
    call, result = turns[2].tool, turns[3].tool
    assert call is not None
    assert result is not None
    assert (call.command, result.command, result.is_error) == ("make test", "make test", True)
    assert turns[0].cwd == "/home/dev/shop"
    assert reader.end_offset == transcript.stat().st_size


def test_the_shared_sample_is_read() -> None:
    reader = open_transcript(shared_files("antigravity", "transcript.sample.jsonl")[0])
    turns = list(reader)
    assert (reader.host, reader.bad_lines) == ("antigravity", 0)
    assert len([turn for turn in turns if turn.role is Role.USER]) == 1
