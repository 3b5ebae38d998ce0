"""A project that its file `.memoryvault` excludes after a session in it had begun."""

import json
from pathlib import Path

import pytest

from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.vault.marker import REFLECTED, marker_path

SHIPPED_SESSION = Path(__file__).resolve().parents[2] / "demo" / "session.jsonl"
SESSION = "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11"

pytestmark = [pytest.mark.slow, pytest.mark.hurried]


@pytest.mark.parametrize("left_out", [False, True])
def test_session_of_an_excluded_project_is_not_mined(tmp_path: Path, left_out: bool) -> None:
    sandbox = Sandbox(tmp_path)
    project = tmp_path / "home" / "secret"
    (project / ".git").mkdir(parents=True)
    transcript = sandbox.transcript(SESSION, SHIPPED_SESSION.read_text("utf-8"))
    payload = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": str(project)}
    sandbox.hook("SessionStart", {**payload, "source": "startup"})
    sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    if left_out:
        (project / ".memoryvault").write_text("off\n")
    sandbox.memory("service", "worker", "--until-idle")
    assert bool(sandbox.json("list", "--status", "all")) is not left_out
    assert Path(marker_path(str(sandbox.state / "markers"), SESSION, REFLECTED)).is_file()
    assert json.loads(sandbox.memory("reflect", "corpus", "--json"))["to_process"] == 0
