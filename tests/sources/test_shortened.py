"""What a reader shortens is scrubbed afterwards: nothing of a secret may be left that the scrubber no longer knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoryvault.services.mining import MiningRequest, mine_transcript
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.tests.pipelines.test_model_answers import pack

PASSWORD = "Xk29vQpLm7Zt"
LOGIN = f"postgres://app:{PASSWORD}@db.acme-corp.io/shop"


def record(kind: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "sessionId": "s", "cwd": "/home/dev/shop", "message": {"role": kind, "content": list(blocks)}}


def ran(use: str, command: str, output: str, *, failed: bool = False) -> list[dict[str, Any]]:
    return [
        record("assistant", {"type": "tool_use", "id": use, "name": "Bash", "input": {"command": command}}),
        record("user", {"type": "tool_result", "tool_use_id": use, "is_error": failed, "content": output}),
    ]


def transcript(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "s.jsonl"
    asked = record("user", {"type": "text", "text": "please install it"})
    path.write_text("".join(json.dumps(each) + "\n" for each in (asked, *records)), "utf-8")
    return path


def findings(folder: Path, command: str, output: str) -> str:
    """What is sent to a model and what is kept of a failure with `output` that `command` cured."""
    path = transcript(
        folder,
        *ran("t1", "npm install", output, failed=True),
        *ran("t2", command, "ok"),
        *ran("t3", "npm install", "added 3 packages"),
        record("assistant", {"type": "text", "text": "It is installed now."}),
    )
    sent = "".join(window.text for window in pack(open_transcript(path), 2500))
    kept = mine_transcript(MiningRequest(str(path), "claude")).candidates
    assert "npm install" in sent
    assert any("npm install" in each.statement for each in kept)
    return sent + repr(kept)


@pytest.mark.parametrize("before", [*range(45, 70, 3), *range(246, 270, 3)])
def test_no_part_of_a_password_in_a_long_command_is_sent_or_kept(tmp_path: Path, before: int) -> None:
    command = f"npm config set {'a' * before} {LOGIN} and more of it {'b ' * 60}"
    assert PASSWORD[:4] not in findings(tmp_path, command, "npm ERR! EACCES: permission denied")


@pytest.mark.parametrize("before", range(123, 150, 3))
def test_no_part_of_a_password_in_a_long_output_is_sent_or_kept(tmp_path: Path, before: int) -> None:
    line = f"npm ERR! EACCES: permission denied {LOGIN} for user app"
    begun, more = "some lines before\n" * 34, "and some lines after it\n" * 60
    output = f"{'c' * before}\n{begun}{line}\n{more}"
    assert PASSWORD[:4] not in findings(tmp_path, "npm cache clean", output)
