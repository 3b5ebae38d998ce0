import json
from pathlib import Path
from typing import Any

import pytest

from memoryvault.runtime.settings import load_settings
from memoryvault.sources.transcripts.hosts import HOSTS, host_of, open_transcript
from memoryvault.tests.support.shared_data import shared_data
from memoryvault.vault.turn import Origin

CODEX: list[dict[str, Any]] = [
    {
        "timestamp": "2026-06-17T10:00:00Z",
        "type": "session_meta",
        "payload": {"id": "c-1", "cwd": "/w/shop", "originator": "codex-tui", "source": "cli"},
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "# AGENTS.md always x"}],
        },
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "use private repos"}},
    {"type": "event_msg", "payload": {"type": "agent_message", "message": "I will."}},
    {
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "exec_command",
            "arguments": '{"cmd":"make test"}',
            "call_id": "k1",
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "function_call_output",
            "call_id": "k1",
            "output": "Process exited with code 2\nOutput:\nno",
        },
    },
    {
        "type": "response_item",
        "payload": {"type": "local_shell_call", "call_id": "k2", "action": {"command": ["bash", "-lc", "ls"]}},
    },
    {"type": "event_msg", "payload": {"type": "token_count", "info": {}}},
]

COPILOT: list[dict[str, Any]] = [
    {"type": "session.start", "id": "e0", "data": {"sessionId": "p-1", "context": {"cwd": "/w/shop"}}},
    {"type": "hook.start", "id": "e1", "data": {"input": {"prompt": "always hook"}}},
    {
        "type": "user.message",
        "id": "e2",
        "data": {"content": "use tabs", "transformedContent": "<system_reminder>never</system_reminder> use tabs"},
    },
    {"type": "user.message", "id": "e3", "data": {"content": "skill text: always", "source": "skill-x"}},
    {"type": "assistant.message", "id": "e4", "data": {"content": "ok", "toolRequests": []}},
    {"type": "assistant.message", "id": "e5", "data": {"content": "sub", "parentToolCallId": "t0"}},
    {
        "type": "tool.execution_start",
        "id": "e6",
        "data": {"toolCallId": "t1", "toolName": "bash", "arguments": {"command": "ls"}},
    },
    {
        "type": "tool.execution_complete",
        "id": "e7",
        "data": {"toolCallId": "t1", "success": False, "error": {"message": "no such file"}},
    },
]


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path


def test_codex_words_and_tools(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", CODEX)
    said, answer, ran, failed, shell = list(open_transcript(path))
    assert (said.origin, said.text, said.session, said.cwd, said.host) == (
        Origin.PROMPT,
        "use private repos",
        "c-1",
        "/w/shop",
        "codex",
    )
    assert said.record == f"line:{said.offset}"
    assert answer.text == "I will."
    assert ran.text == "make test"
    assert failed.tool is not None
    assert (failed.tool.name, failed.tool.command, failed.tool.is_error) == ("exec_command", "make test", True)
    assert shell.text == "ls"


@pytest.mark.parametrize("meta", [{"originator": "codex_exec"}, {"source": "exec"}, {"source": {"subagent": "review"}}])
def test_a_codex_run_without_a_person_is_skipped(tmp_path: Path, meta: dict[str, Any]) -> None:
    path = write(tmp_path / "rollout-1.jsonl", [{"type": "session_meta", "payload": {"id": "c", **meta}}, *CODEX[1:]])
    reader = open_transcript(path)
    assert list(reader) == []
    assert reader.headless


def test_codex_is_read_on_from_an_offset(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", CODEX[:3])
    first = open_transcript(path)
    assert len(list(first)) == 1
    write(path, CODEX)
    rest = list(open_transcript(path, first.end_offset))
    assert [turn.origin for turn in rest][:1] == [Origin.ASSISTANT]
    assert {turn.session for turn in rest} == {"c-1"}


def test_copilot_words_and_tools(tmp_path: Path) -> None:
    folder = tmp_path / "p-1"
    folder.mkdir()
    said, answer, ran, failed = list(open_transcript(write(folder / "events.jsonl", COPILOT)))
    assert (said.text, said.record, said.session, said.cwd, said.host) == (
        "use tabs",
        "e2",
        "p-1",
        "/w/shop",
        "copilot",
    )
    assert (answer.text, ran.text) == ("ok", "ls")
    assert failed.tool is not None
    assert (failed.tool.name, failed.tool.is_error, failed.text) == ("bash", True, "no such file")


def test_every_host_has_a_folder_and_finds_its_files(tmp_path: Path) -> None:
    roots = load_settings({"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "cc")}).session_folders
    assert roots["claude"] == tmp_path / "cc" / "projects"
    names = {
        "claude": "p/s.jsonl",
        "codex": "2026/01/02/rollout-1.jsonl",
        "copilot": "s/events.jsonl",
        "antigravity": "antigravity/brain/s/.system_generated/logs/transcript.jsonl",
        "gemini": "shop/chats/session-2026-01-02T10-00-0b54a9e2.jsonl",
    }
    # OpenCode's are rows: tests/hosts/test_opencode_transcript.py.
    assert {*names, "opencode"} == set(HOSTS) == set(roots)
    for name, relative in names.items():
        file = roots[name] / relative
        file.parent.mkdir(parents=True)
        file.touch()
        assert list(HOSTS[name].find(roots[name])) == [file]


@pytest.mark.parametrize(
    ("relative", "host", "said", "bad"),
    [
        ("codex/transcripts/rollout-a8.jsonl", "codex", 3, 0),
        ("copilot/transcripts/events-6a.jsonl", "copilot", 1, 1),  # A system message with a bad escape.
    ],
)
def test_real_transcripts_of_other_hosts(relative: str, host: str, said: int, bad: int) -> None:
    path = shared_data("").parent / "fixtures" / relative
    assert host_of(path) == host
    reader = open_transcript(path)
    turns = list(reader)
    assert sum(turn.is_users_words for turn in turns) == said
    assert reader.bad_lines == bad
    assert reader.end_offset == path.stat().st_size


@pytest.mark.parametrize("odd", [{"type": []}, {"type": {}}, {"": 1}, {"type": None}])
def test_a_record_of_no_known_shape_names_no_host(tmp_path: Path, odd: dict[str, object]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{json.dumps(odd)}\n{{"type":"event_msg","payload":{{}}}}\n')
    assert host_of(path) == "codex"
