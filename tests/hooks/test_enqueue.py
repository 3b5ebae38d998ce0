"""Stop, SessionEnd, PreCompact and idle: markers and the queue."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryvault.hooks import enqueue
from memoryvault.hooks.install import STUB
from memoryvault.tasks.queue import schema
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.records import huey_message
from memoryvault.tasks.queue.spool import Spool
from memoryvault.tests.support.hurry import patience
from memoryvault.vault.marker import (
    REFLECTED,
    Marker,
    create_marker,
    mark_reflected,
    marker_path,
    read_marker,
    rewrite_marker,
)

from .support import SESSION, Sandbox

pytestmark = pytest.mark.hurried


@pytest.fixture
def queue(sandbox: Sandbox) -> Iterator[sqlite3.Connection]:
    """A real queue.db as the worker makes it."""
    sandbox.state.ensure()
    connection = schema.connect(Path(sandbox.state.queue_db), busy_seconds=2, create=True)
    yield connection
    connection.close()


def jobs(queue: sqlite3.Connection) -> list[dict[str, Any]]:
    cursor = queue.execute(
        f"SELECT kind, args, unique_key, priority, state, run_at - {schema.NOW} AS wait, sent_at FROM job"
    )
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def messages(queue: sqlite3.Connection) -> list[dict[str, Any]]:
    return [json.loads(row[0]) for row in queue.execute("SELECT data FROM task WHERE queue = 'memoryvault'")]


def spooled(sandbox: Sandbox) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(Path(sandbox.state.spool).iterdir())]


def test_stop_enqueues_one_job_per_session_after_a_quiet_period(sandbox: Sandbox, queue: sqlite3.Connection) -> None:
    for _ in range(3):
        assert sandbox.run("Stop", sandbox.payload()).returncode == 0
    (job,) = jobs(queue)
    assert job["kind"] == "reflect.session"
    assert json.loads(job["args"]) == {"session": SESSION}
    assert job["unique_key"] == f"reflect.session:{SESSION}"
    assert job["state"] == "queued"
    assert 80 < job["wait"] <= 90
    assert job["sent_at"] is None
    assert messages(queue) == []


def test_every_turn_puts_the_reflection_off(sandbox: Sandbox, queue: sqlite3.Connection) -> None:
    sandbox.run("Stop", sandbox.payload())
    queue.execute("UPDATE job SET run_at = run_at - 60")
    sandbox.run("Stop", sandbox.payload())
    assert 80 < jobs(queue)[0]["wait"] <= 90


@pytest.mark.parametrize("event", ["SessionEnd", "PreCompact", "Notification"])
def test_the_end_of_a_session_is_reflected_at_once(sandbox: Sandbox, queue: sqlite3.Connection, event: str) -> None:
    sandbox.run("Stop", sandbox.payload())
    for _ in range(2):
        sandbox.run(event, sandbox.payload(notification_type="idle_prompt", reason="other"))
    (job,) = jobs(queue)
    assert job["wait"] <= 0
    assert job["sent_at"] is not None
    (bell,) = messages(queue)
    job_id = queue.execute("SELECT id FROM job").fetchone()[0]
    assert bell["name"] == schema.TASK_NAME
    assert bell["args"] == [job_id]
    assert len(bell["id"]) == 32


def test_a_running_job_does_not_swallow_the_next_one(sandbox: Sandbox, queue: sqlite3.Connection) -> None:
    """A Stop while the session is being mined must be mined, too."""
    sandbox.run("Stop", sandbox.payload())
    queue.execute("UPDATE job SET state = 'running'")
    sandbox.run("Stop", sandbox.payload())
    assert sorted(job["state"] for job in jobs(queue)) == ["queued", "running"]


def test_the_worker_is_woken_by_one_datagram(sandbox: Sandbox, queue: sqlite3.Connection) -> None:
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with contextlib.closing(bell):
        bell.bind(sandbox.state.wake_socket)
        bell.setblocking(False)
        sandbox.run("Stop", sandbox.payload())
        with pytest.raises(BlockingIOError):
            bell.recv(10)
        sandbox.run("SessionEnd", sandbox.payload())
        assert bell.recv(10) == b"1"
    assert len(messages(queue)) == 1


def test_without_a_queue_the_request_is_spooled(sandbox: Sandbox) -> None:
    before = time.time()
    sandbox.run("Stop", sandbox.payload())
    sandbox.run("SessionEnd", sandbox.payload())
    assert not Path(sandbox.state.queue_db).exists()
    later, sooner = spooled(sandbox)
    assert later["kind"] == sooner["kind"] == "reflect.session"
    assert later["args"] == {"session": SESSION}
    assert later["unique_key"] == f"reflect.session:{SESSION}"
    assert (later["policy"], sooner["policy"]) == ("later", "sooner")
    assert before + 89 <= later["run_at"] <= time.time() + 90
    assert before <= sooner["run_at"] <= time.time()


def test_a_locked_queue_costs_the_budget_at_most_and_loses_nothing(sandbox: Sandbox, queue: sqlite3.Connection) -> None:
    queue.execute("BEGIN EXCLUSIVE")
    done = sandbox.run("SessionEnd", sandbox.payload())
    queue.execute("ROLLBACK")
    assert done.returncode == 0
    assert done.seconds < 0.5 * patience()
    # On a busy machine the watchdog may spool it, too; the unique key makes one job of the two.
    assert {request["unique_key"] for request in spooled(sandbox)} == {f"reflect.session:{SESSION}"}
    assert jobs(queue) == []


def changed_hooks(sandbox: Sandbox, module: str, old: str, new: str) -> str:
    """A copy of the hooks with other words in one module; the stub's path."""
    copy = sandbox.root / "memoryvault"
    for folder in ("hooks", "runtime", "vault"):
        shutil.copytree(STUB.parent.parent / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / module).read_text()
    assert old in text
    (copy / module).write_text(text.replace(old, new))
    return str(copy / "hooks" / "stub.py")


def run_until_cut_off(sandbox: Sandbox, stub: str, *sessions: str) -> tuple[str, float]:
    """Run SessionEnd for one session after the other until the watchdog ends one; which, and its seconds.

    The first compiles settings and code; on a busy machine one may end without a word.
    """
    for number, session in enumerate(sessions):
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-I", "-S", stub, "SessionEnd"],
            input=json.dumps(sandbox.payload(session_id=session)).encode(),
            env=sandbox.env,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0
        if number and done.stderr == b"memoryvault: time budget exceeded\n":
            return session, time.monotonic() - begun
    pytest.fail("none was cut off")


def test_what_the_watchdog_interrupts_is_spooled(sandbox: Sandbox, queue: sqlite3.Connection) -> None:
    """With a patience beyond the budget the hard end comes in the middle of waiting for the lock."""
    brief, long = "LOCK_PATIENCE_SECONDS = 0.04", "LOCK_PATIENCE_SECONDS = 5.0"
    stub = changed_hooks(sandbox, "hooks/enqueue.py", brief, long)
    queue.execute("BEGIN EXCLUSIVE")
    _, seconds = run_until_cut_off(sandbox, stub, *[SESSION] * 10)
    assert seconds < 1.0 * patience()
    queue.execute("ROLLBACK")
    assert {request["policy"] for request in spooled(sandbox)} == {"sooner"}


def test_a_session_whose_only_hook_is_cut_off_while_its_marker_is_synced_is_mined(sandbox: Sandbox) -> None:
    """As when many sessions end at once on a busy machine: each waits for the disk, and none has a marker."""
    sandbox.state.ensure()
    stub = changed_hooks(sandbox, "vault/marker.py", "os.fsync(file.fileno())", "__import__('time').sleep(5)")
    for number in range(5):  # One that got its first core late is cut off before it knows its session.
        session, _ = run_until_cut_off(sandbox, stub, *[f"only-{number}-{attempt}" for attempt in range(5)])
        marker = read_marker(marker_path(sandbox.state.markers, session))
        if marker is not None:
            break
    assert marker is not None
    assert (marker.transcript, marker.offset) == (str(sandbox.transcript), 0)
    assert session in {request["args"]["session"] for request in spooled(sandbox)}


@pytest.mark.parametrize("damage", ["version", "garbage", "folder"])
def test_a_queue_that_is_not_ours_is_left_alone(sandbox: Sandbox, damage: str) -> None:
    sandbox.state.ensure()
    file = Path(sandbox.state.queue_db)
    if damage == "version":
        schema.connect(file, busy_seconds=2, create=True).close()
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA user_version = 99")
    elif damage == "garbage":
        file.write_bytes(b"not a database" * 1000)
    else:
        file.mkdir()
    done = sandbox.run("Stop", sandbox.payload())
    assert done.returncode == 0
    assert len(spooled(sandbox)) == 1
    assert sandbox.log_lines()[-1]["enqueued"] == "spool"


def test_hooks_and_worker_agree_on_the_schema() -> None:
    assert enqueue.SCHEMA_VERSION == schema.VERSION


def test_the_first_hook_writes_the_marker_and_later_ones_touch_it(sandbox: Sandbox) -> None:
    sandbox.run("SessionStart", sandbox.payload(source="compact"))
    path = marker_path(sandbox.state.markers, SESSION)
    marker = read_marker(path)
    assert marker is not None
    assert (marker.source, marker.host, marker.offset) == ("compact", "claude", 0)
    assert (marker.transcript, marker.cwd) == (str(sandbox.transcript), str(sandbox.project))
    content = Path(path).read_bytes()
    os.utime(path, (1, 1))
    sandbox.run("Stop", sandbox.payload())
    assert Path(path).read_bytes() == content
    assert os.stat(path).st_mtime > time.time() - 60


def test_a_reflected_session_that_goes_on_is_taken_back_with_its_offset(sandbox: Sandbox) -> None:
    sandbox.state.ensure()
    markers = sandbox.state.markers
    create_marker(markers, Marker(SESSION, transcript=str(sandbox.transcript)))
    rewrite_marker(markers, Marker(SESSION, transcript=str(sandbox.transcript), offset=77))
    mark_reflected(markers, SESSION)
    sandbox.run("UserPromptSubmit", sandbox.payload(prompt="go on"))
    marker = read_marker(marker_path(markers, SESSION))
    assert marker is not None
    assert marker.offset == 77
    assert not os.path.exists(marker_path(markers, SESSION, REFLECTED))


@pytest.mark.parametrize("place", ["elsewhere", "dots", "link", "relative", "root itself"])
def test_a_transcript_outside_the_agents_folder_is_refused_and_logged(sandbox: Sandbox, place: str) -> None:
    root = sandbox.home / ".claude" / "projects"
    (sandbox.root / "secret.jsonl").write_text("{}\n")
    if place == "link":
        (root / "x").symlink_to(sandbox.root)
    path = {
        "elsewhere": "/etc/passwd",
        "dots": f"{root}/../../../secret.jsonl",
        "link": f"{root}/x/secret.jsonl",
        "relative": "x/secret.jsonl",
        "root itself": str(root),
    }[place]
    done = sandbox.run("Stop", sandbox.payload(transcript_path=path))
    assert done.returncode == 0
    assert "transcript refused" in done.stderr
    sandbox.state.ensure()
    assert os.listdir(sandbox.state.markers) == []
    assert os.listdir(sandbox.state.spool) == []


def test_a_payload_without_a_transcript_gets_the_hosts_own_naming(sandbox: Sandbox) -> None:
    payload = {"session_id": SESSION, "cwd": "/home/dev/my_project.v2"}
    sandbox.run("Stop", payload)
    marker = read_marker(marker_path(sandbox.state.markers, SESSION))
    assert marker is not None
    assert marker.transcript.endswith(f"/.claude/projects/-home-dev-my-project-v2/{SESSION}.jsonl")


def test_the_worker_takes_in_what_a_hook_spooled(sandbox: Sandbox) -> None:
    sandbox.run("SessionEnd", sandbox.payload())
    ledger = Ledger(Path(sandbox.state.queue_db))
    try:
        assert Spool(sandbox.state.spool, ledger).ingest().enqueued == 1
        (job,) = ledger.list_jobs()
        assert (job.kind, job.args) == ("reflect.session", {"session": SESSION})
        assert job.unique_key == f"reflect.session:{SESSION}"
    finally:
        ledger.close()
    assert os.listdir(sandbox.state.spool) == []


def test_a_hooks_message_is_the_workers_own(sandbox: Sandbox, queue: sqlite3.Connection) -> None:
    sandbox.run("SessionEnd", sandbox.payload())
    job_id = queue.execute("SELECT id FROM job").fetchone()[0]
    (ours,) = messages(queue)
    theirs = json.loads(huey_message(job_id))
    assert {**ours, "id": ""} == {**theirs, "id": ""}
