"""Every payload that Claude Code is known to send."""

import json

import pytest

from memoryvault.tests.support.shared_data import shared_files

from .support import Sandbox

pytestmark = pytest.mark.hurried

REGISTERED = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact", "Notification")


def test_every_known_payload_is_taken(sandbox: Sandbox) -> None:
    for file in shared_files("claude", "stdin/*.json"):
        payload = json.loads(file.read_text())
        payload["cwd"] = str(sandbox.project)
        payload["transcript_path"] = str(payload["transcript_path"]).replace("/home/dev", str(sandbox.home))
        event = payload["hook_event_name"]
        done = sandbox.run(event, payload)
        assert (done.returncode, done.stdout) == (0, ""), file.name
        assert "Traceback" not in done.stderr, file.name
        if event not in REGISTERED or payload.get("notification_type") == "permission_prompt":
            assert done.stderr == "", file.name
    assert {line["hook"] for line in sandbox.log_lines()} == set(REGISTERED)
    refused = [line for line in sandbox.log_lines() if line["result"] == "transcript refused"]
    assert [line["transcript"] for line in refused] == ["/nonexistent/x.jsonl"]
