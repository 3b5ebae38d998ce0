"""Claims of the threat model about the whole program, with real processes."""

import json
import os
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from memoryvault.bench.hooks import stub_argv
from memoryvault.hooks.install import EVENTS
from memoryvault.tests.acceptance.test_the_loop import COMMON, SIDEWAYS, approve_rule, record_session
from memoryvault.tests.support.files import put
from memoryvault.tests.support.sandbox import Sandbox

pytestmark = pytest.mark.slow


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def internet_sockets(pid: int) -> list[str]:
    """Lines of /proc/net about sockets that this process has open."""
    held = set()
    with suppress(OSError):  # A child may have ended.
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                held.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    lines = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            if f"socket:[{line.split()[9]}]" in held:
                lines.append(f"{table} {line}")
    return lines


def children_of(pid: int) -> set[int]:
    """Processes below this one, at this moment."""
    found: set[int] = set()
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split()):
                found |= {child} | children_of(child)
    return found


AUDITED = """
import sys
def seen(event, args):
    if event == "socket.__new__" and args[1] != 1 or event in ("socket.getaddrinfo", "socket.gethostbyname"):
        with open({log!r}, "a") as file:
            file.write(f"{{sys.argv}} {{event}} {{args[1:]}}\\n")
sys.addaudithook(seen)
"""
"""Python itself tells of every socket that is made; family 1 is AF_UNIX."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_of_ours_makes_an_internet_socket(sandbox: Sandbox) -> None:
    """Hooks, commands, the agent's tools, worker and service by Python's own account; their children by /proc."""
    log = sandbox.root / "sockets"
    audited = AUDITED.format(log=str(log))
    package = f"{audited}import runpy; runpy.run_module('memoryvault', run_name='__main__', alter_sys=True)"

    def run(*arguments: str, stdin: bytes = b"") -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sandbox.python, "-c", package, *arguments], env=sandbox.environment, cwd=sandbox.root,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        return process

    transcript = record_session(sandbox)
    payload = {**COMMON, "session_id": transcript.stem, "transcript_path": str(transcript), "prompt": SIDEWAYS}
    payload |= {"notification_type": "idle_prompt", "source": "startup", "reason": "other"}
    for event in EVENTS:
        argv = stub_argv(event)
        stub = f"{audited}import runpy; sys.argv = {argv[3:]!r}; runpy.run_path({argv[3]!r}, run_name='__main__')"
        body = json.dumps({**payload, "hook_event_name": event, "prompt_id": event})
        done = subprocess.run(
            [*argv[:3], "-c", stub], input=body, env=sandbox.environment, text=True, capture_output=True, check=False
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    lines = map(json.loads, (sandbox.state / "log" / "memoryvault.log").read_text("utf-8").splitlines())
    ran = {line["hook"] for line in lines if line["event"] == "hook" and line["result"] == "ok"}
    assert ran == set(EVENTS), "each of them did its work in this form"
    service, worker = run("service", "serve"), run("service", "worker")
    children: set[int] = set()
    try:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        tools = run("service", "mcp", stdin=json.dumps(hello).encode() + b"\n")
        until = time.monotonic() + 60
        while not sandbox.json("jobs", "list", "--state", "done"):
            assert worker.poll() is None
            assert time.monotonic() < until
            children |= children_of(worker.pid)
            for pid in (service.pid, worker.pid, *children):
                assert internet_sockets(pid) == []
        for arguments in (("health",), ("recall", "ship"), ("list",), ("reindex",)):
            assert run(*arguments).wait(60) == 0
        tools.wait(30)
    finally:
        for process in (service, worker):
            process.terminate()
            process.wait(30)
    assert not log.exists(), log.read_text()

    # The same account tells of one that is made, or this would prove nothing.
    subprocess.run([sandbox.python, "-c", f"{audited}import socket; socket.socket()"], check=True)
    assert "socket.__new__" in log.read_text()


def test_all_of_the_state_is_the_users_alone_even_under_an_open_umask(sandbox: Sandbox) -> None:
    """Every file that a whole loop leaves: queue, index, log, receipts, sockets, snapshot."""
    before = os.umask(0)
    try:
        transcript = record_session(sandbox)
        sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
        with sandbox.recall_service():
            sandbox.memory("service", "worker", "--until-idle")
            payload = {**COMMON, "session_id": transcript.stem, "transcript_path": str(transcript)}
            sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": "p", "prompt": SIDEWAYS})
            sandbox.memory("recall", "ship")
            sandbox.memory("undo", "--since", "90m", "--yes")
            left = [sandbox.state, *sandbox.state.rglob("*")]
            modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in left}
            wrong = {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)}
    finally:
        os.umask(before)
    assert {"queue.db", "index.db", "memoryvault.log", "receipts.jsonl"} <= {path.name for path in left}
    assert wrong == {}


def test_no_log_holds_a_prompt_or_a_memory(sandbox: Sandbox) -> None:
    transcript = record_session(sandbox)
    sandbox.memory("service", "worker", "--until-idle")
    approve_rule(sandbox)
    payload = {**COMMON, "session_id": "5c2e1a7e-5f6a-4c58-8f0e-0d7c4d0a4b11", "transcript_path": str(transcript)}
    prompt = "ship on tuesday mornings? marzipan"
    shown = sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": "p", "prompt": prompt})
    assert "never right before the weekend" in shown
    sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": "q", "prompt": SIDEWAYS})
    logs = "".join(path.read_text("utf-8") for path in Path(sandbox.state / "log").iterdir())
    assert "UserPromptSubmit" in logs
    for words in ("marzipan", "before the weekend", "putting the new version", "answered 503"):
        assert words not in logs, words


def test_a_note_written_straight_into_the_vault_is_recalled_like_any_other_and_names_no_session(
    sandbox: Sandbox,
) -> None:
    """The limit that the page states: whoever can write files can write memories."""
    planted = sandbox.vault / "personal-private" / "preferences" / "planted.md"
    planted.parent.mkdir(parents=True)
    head = "---\nkind: preferences\nstatus: active\n---\n\n"
    planted.write_text(f"{head}The porcelain kettle belongs upstairs.\n", "utf-8")
    sandbox.memory("service", "worker", "--until-idle")
    (hit,) = sandbox.json("recall", "porcelain kettle upstairs")["hits"]
    assert hit["path"].endswith("planted.md")
    sandbox.memory("undo", "--since", "1d", "--yes")
    assert planted.exists(), "what we did not write is never taken back"
    always = put(
        sandbox.vault / "personal-private" / "_always-load" / "planted.md", f"{head}The teapot is to be warmed first.\n"
    )
    payload = {**COMMON, "session_id": "5c2e1a7e-5f6a-4c58-8f0e-0d7c4d0a4b11"}
    transcript = sandbox.transcript(payload["session_id"], "")
    started = sandbox.hook("SessionStart", {**payload, "transcript_path": str(transcript), "source": "startup"})
    assert "warmed first" in started
    for note in (planted, always):
        assert "source:" not in note.read_text("utf-8")
