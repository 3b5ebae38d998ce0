"""`memory service logs` and `memory service`, as a user calls them, and what runs in the background."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryvault.cli import processes
from memoryvault.runtime import hooklog
from memoryvault.runtime.settings import load_settings
from memoryvault.tests.sources.records import assistant, older, text_block, write
from memoryvault.tests.support.files import put, put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal
from memoryvault.tests.tasks.support import wait_until


@pytest.fixture
def log_file(sandbox: Sandbox) -> Path:
    assert sandbox.memory("service", "logs") == ""
    return sandbox.state / "log" / "memoryvault.log"


def test_the_newest_lines_come_last_whatever_file_they_are_in(sandbox: Sandbox, log_file: Path) -> None:
    hooklog.append(f"{log_file}.20260101", "info", "hook", name="Old")
    hooklog.append(str(log_file), "info", "hook", name="Stop", ms=3.5)
    hooklog.append(str(log_file), "warning", "tasks.worker", message="took over")
    lines = sandbox.memory("service", "logs").splitlines()
    assert "name=Old" in lines[0]
    assert "name=Stop ms=3.5" in lines[1]
    assert "took over" in lines[2]


def test_a_torn_line_is_left_out(sandbox: Sandbox, log_file: Path) -> None:
    log_file.write_text('{"time": "2026-\n')
    hooklog.append(str(log_file), "error", "tasks.worker", message="broken")
    only = sandbox.memory("service", "logs", "--json")
    assert [json.loads(line)["message"] for line in only.splitlines()] == ["broken"]


@pytest.mark.slow
def test_following_survives_a_rotation(sandbox: Sandbox, log_file: Path) -> None:
    hooklog.append(str(log_file), "info", "hook", name="Before")
    follower = Terminal(sandbox, ["service", "logs", "-f"], os.pipe)
    try:
        follower.expect("Before")
        time.sleep(0.5)
        hooklog.append(str(log_file), "info", "hook", name="Last")
        os.rename(log_file, f"{log_file}.20260101")
        hooklog.append(str(log_file), "info", "hook", name="First")
        follower.expect("Last")
        follower.expect("First")
    finally:
        follower.process.terminate()
        follower.close()


def test_the_service_is_installed_looked_at_and_removed(sandbox: Sandbox, tmp_path: Path) -> None:
    manager = tmp_path / "bin" / "systemctl"
    put(manager, '#!/bin/sh\ncase "$*" in *is-active*) exit 3;; esac\n').chmod(0o755)
    sandbox.settings = {"PATH": f"{manager.parent}:{os.environ.get('PATH', os.defpath)}"}
    assert sandbox.run("service", "status").returncode == 1
    installed = json.loads(sandbox.memory("service", "install", "--json"))
    assert installed["changed"]
    assert Path(installed["definition"]).is_file()
    removed = json.loads(sandbox.memory("uninstall", "--json"))
    assert removed["service_removed"]
    assert not Path(installed["definition"]).exists()


# Logs and the job ledger hold no text of sessions or notes


SAID = ("rule", "correction", "answer", "prompt", "saved", "agent", "decision", "broken", "idea")
CANARIES = {name: f"quokka{name}" for name in SAID}
"""Of each place where text comes from a word of its own. Words at the end of a long sentence: a note's name, which logs
may tell, is made of the first ones."""


def transcript(path: Path, session: str, first: int) -> None:
    """A session with a rule, a correction, an idea, an answer of the agent, and a line that does not parse."""
    said = (
        f"From now on, always run the linter before you commit anything to the main line, {CANARIES['rule']}.",
        f"Understood, I will use npm to install the packages {CANARIES['answer']}.",
        f"no, use pnpm instead of npm for installing the packages of this project, {CANARIES['correction']}",
        "Done.",
        f"idea: a page that lists each of the failed builds by day and by author and {CANARIES['idea']}",
    )
    records: list[dict[str, Any] | str] = [
        assistant(first + number, text_block(text), sessionId=session, cwd="/home/dev/shop")
        if number % 2
        else older(first + number, text, sessionId=session)
        for number, text in enumerate(said)
    ]
    write(path, *records[:2], '{"type": "user", "message": "' + CANARIES["broken"], *records[2:])


def told(state: Path) -> Iterator[tuple[str, str]]:
    """(place, text) of all that is a log or a ledger."""
    for folder in ("log", "spool"):
        for path in sorted((state / folder).rglob("*")):
            if path.is_file():
                yield f"{folder}/{path.name}", path.read_text("utf-8", "replace")
    with closing(sqlite3.connect(state / "queue.db")) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                values = (each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in row)
                yield f"queue.db {table}", " ".join(values)


@pytest.mark.slow
def test_neither_logs_nor_jobs_hold_what_was_said(sandbox: ForkedSandbox) -> None:
    session = str(uuid.uuid4())
    path = sandbox.transcript(session, "")
    transcript(path, session, 10)
    old = str(uuid.uuid4())
    transcript(sandbox.transcript(old, ""), old, 20)
    call = {"session_id": session, "transcript_path": str(path), "cwd": "/home/dev/shop"}
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
    sandbox.memory("save", "fix", "locks", "--body", f"Two workers wrote to one file {CANARIES['saved']}.")
    waits = {"kind": "fix", "status": "pending", "decision": CANARIES["decision"]}
    put_note(sandbox.vault, "personal-private/_review/f.md", "# F\n\nFix it.", **waits)
    sandbox.hook("SessionStart", {**call, "source": "startup"})
    sandbox.hook("UserPromptSubmit", {**call, "prompt": f"how do we run the linter {CANARIES['prompt']}?"})
    sandbox.hook("Stop", {**call, "last_assistant_message": CANARIES["agent"]})
    sandbox.hook("SessionEnd", {**call, "reason": "other"})
    sandbox.memory("service", "worker", "--until-idle")
    sandbox.memory("recall", f"which linter {CANARIES['prompt']}")
    sandbox.run("review", "--decide", "f=approve")
    sandbox.memory("vault", "reindex")
    sandbox.memory("vault", "inbox")
    in_vault = "".join(file.read_text("utf-8") for file in sandbox.vault.rglob("*.md"))
    for name in ("rule", "saved"):
        assert CANARIES[name] in in_vault, f"the flow did not write down the {name}: this test would prove nothing"

    places = list(told(sandbox.state))
    assert any(place == "log/memoryvault.log" and '"hook"' in text for place, text in places)
    worked = sandbox.memory("service", "logs", "-n", "500")
    assert sum(f"session mined  session={each} project=shop " in worked for each in (session, old)) == 2
    for field in ("candidates_mined=", "auto_saved=", "proposed=", "inboxed=", "duration_ms="):
        assert field in worked
    assert any(place == "log/receipts.jsonl" for place, _ in places)
    assert any("reflect.session" in text for _, text in places)
    leaks = [f"{name} in {place}: {text}" for place, text in places for name, word in CANARIES.items() if word in text]
    assert leaks == []


# The processes that commands start and stop in the background (cli/processes.py)


def test_what_a_dying_worker_says_is_in_its_own_file(sandbox: ForkedSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks for it would not look among the words of the recall service."""
    settings = load_settings(sandbox.environment)
    dies = [sys.executable, "-I", "-c", "import sys; sys.exit('no room for a worker')"]
    monkeypatch.setattr(processes, "worker_command", lambda: dies)
    monkeypatch.setattr(processes, "START_SECONDS", 0.0)
    assert not processes.ensure_worker(settings)
    file = Path(settings.state.log) / "worker.stderr"
    wait_until(lambda: file.exists() and file.read_text(), "it has said so")
    assert file.read_text() == "no room for a worker\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_who_waits_for_a_process_that_is_slow_to_end_is_told(
    sandbox: ForkedSandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = load_settings(sandbox.environment).state
    state.ensure()
    slow = (
        "import fcntl, os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), os._exit(0)))\n"
        "lock = open(sys.argv[1], 'w')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print(os.getpid(), file=lock, flush=True)\n"
        "print('ready', flush=True)\n"
        "while True:\n    time.sleep(0.01)\n"
    )
    monkeypatch.setattr(processes, "SILENT_SECONDS", 0.1)
    with subprocess.Popen([sys.executable, "-c", slow, str(state.worker_lock)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        waiter = threading.Thread(target=process.wait)  # As the worker's own parent would.
        waiter.start()
        assert processes.stop_background(state, "worker", "recall") == ["worker"]
        waiter.join()
    assert capsys.readouterr().err.count("the worker finishes what it does") == 1
