"""What a reader shortens is scrubbed afterwards: nothing of a secret may be left that the scrubber no longer knows."""

from pathlib import Path
from typing import Any

import pytest

from memoryvault.services.mining import MiningRequest, mine_transcript
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.tests.pipelines.test_model_answers import pack
from memoryvault.tests.sources.records import assistant, call, older, result, text_block, write

PASSWORD = "Xk29vQpLm7Zt"
LOGIN = f"postgres://app:{PASSWORD}@db.acme-corp.io/shop"


def ran(number: int, command: str, output: str, *, failed: bool = False) -> list[dict[str, Any]]:
    use = f"t{number}"
    return [assistant(number, call(use, "Bash", command=command)), result(number + 1, use, output, failed)]


def findings(folder: Path, command: str, output: str) -> str:
    """What is sent to a model and what is kept of a failure with `output` that `command` cured."""
    path = write(
        folder / "s.jsonl",
        older(1, "please install it"),
        *ran(2, "npm install", output, failed=True),
        *ran(4, command, "ok"),
        *ran(6, "npm install", "added 3 packages"),
        assistant(8, text_block("It is installed now.")),
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
