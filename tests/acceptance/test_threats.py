"""What the threat model says of the whole, tried with real processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.tests.acceptance.test_the_loop import COMMON, SIDEWAYS, record_session


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def internet_sockets(pid: int) -> list[str]:
    """Lines of /proc/net about sockets that this process has open."""
    held = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            held.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except FileNotFoundError:
            continue
    lines = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            if f"socket:[{line.split()[9]}]" in held:
                lines.append(f"{table} {line}")
    return lines


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_worker_and_recall_service_have_no_internet_socket(sandbox: Sandbox) -> None:
    record_session(sandbox)
    with sandbox.recall_service() as service, sandbox.process("worker") as worker:
        while not sandbox.json("jobs", "list", "--state", "done"):
            assert worker.poll() is None
        assert internet_sockets(service.pid) == []
        assert internet_sockets(worker.pid) == []


@pytest.mark.slow
def test_no_log_holds_a_prompt_or_a_memory(sandbox: Sandbox) -> None:
    transcript = record_session(sandbox)
    sandbox.memory("worker", "--until-idle")
    payload = {**COMMON, "session_id": "5c2e1a7e-5f6a-4c58-8f0e-0d7c4d0a4b11", "transcript_path": str(transcript)}
    shown = sandbox.hook(
        "UserPromptSubmit", {**payload, "prompt_id": "p", "prompt": "ship on tuesday mornings? marzipan"}
    )
    assert "never right before the weekend" in shown
    sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": "q", "prompt": SIDEWAYS})
    logs = "".join(path.read_text("utf-8") for path in Path(sandbox.state / "log").iterdir())
    assert "UserPromptSubmit" in logs
    for words in ("marzipan", "before the weekend", "putting the new version", "answered 503"):
        assert words not in logs, words


@pytest.mark.slow
def test_a_note_written_straight_into_the_vault_is_recalled_like_any_other_and_names_no_session(
    sandbox: Sandbox,
) -> None:
    """The limit that the page states: whoever can write files can write memories."""
    planted = sandbox.vault / "personal-private" / "preferences" / "planted.md"
    planted.parent.mkdir(parents=True)
    planted.write_text(
        "---\nkind: preferences\nstatus: active\n---\n\nThe porcelain kettle belongs upstairs.\n", "utf-8"
    )
    sandbox.memory("worker", "--until-idle")
    (hit,) = sandbox.json("recall", "porcelain kettle upstairs")["hits"]
    assert hit["path"].endswith("planted.md")
    sandbox.memory("undo", "--since", "1d", "--yes")
    assert planted.exists(), "what we did not write is never taken back"
