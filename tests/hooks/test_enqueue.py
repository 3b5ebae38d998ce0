"""Stop, SessionEnd, PreCompact and idle: markers and the spool."""

import contextlib
import json
import os
import resource
import socket
import time
from pathlib import Path

import pytest

from memoryvault.hooks.enqueue import spool_reflection
from memoryvault.tasks.queue.enqueue import Spool
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.vault.marker import REFLECTED, Marker, create_marker, mark_reflected, marker_path, rewrite_marker

from .support import SESSION, Sandbox, marker_of

pytestmark = pytest.mark.hurried


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError):
            spool_reflection(str(tmp_path), SESSION, None)
        with pytest.raises(OSError):
            create_marker(str(tmp_path), Marker(SESSION))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_turn_is_reflected_after_a_quiet_period_and_an_end_at_once(sandbox: Sandbox) -> None:
    before = time.time()
    events = ("Stop", "SessionEnd", "PreCompact", "Notification")
    for event in events:
        done = sandbox.run(event, sandbox.payload(notification_type="idle_prompt", reason="other"))
        assert done.stdout == ""
    requests = [json.loads(path.read_text()) for path in sorted(Path(sandbox.state.spool).iterdir())]
    assert {(request["kind"], request["unique_key"]) for request in requests} == {
        ("reflect.session", f"reflect.session:{SESSION}")
    }
    assert {request["args"]["session"] for request in requests} == {SESSION}
    assert [request["policy"] for request in requests] == ["later", "sooner", "sooner", "sooner"]
    assert before + 89 <= requests[0]["run_at"] <= time.time() + 90
    assert all(before <= request["run_at"] <= time.time() for request in requests[1:])
    assert [line["enqueued"] for line in sandbox.log_lines()] == [True] * len(events)
    assert not Path(sandbox.state.queue_db).exists()


def test_of_several_turns_and_an_end_the_worker_makes_one_job(sandbox: Sandbox) -> None:
    for event in ("Stop", "Stop", "SessionEnd"):
        sandbox.run(event, sandbox.payload())
    with Ledger(Path(sandbox.state.queue_db)) as ledger:
        assert Spool(sandbox.state.spool, ledger).ingest() == 3
        (job,) = ledger.list_jobs()
        assert (job.kind, job.args) == ("reflect.session", {"session": SESSION})
        assert job.run_at <= ledger.now()
        claim = ledger.take(lambda: "a", 30.0)
        assert claim is not None
        sandbox.run("Stop", sandbox.payload())  # While the session is being mined.
        Spool(sandbox.state.spool, ledger).ingest()
        assert sorted(job.state for job in ledger.list_jobs()) == ["queued", "running"]
    assert os.listdir(sandbox.state.spool) == []


def test_the_worker_is_woken_by_one_datagram(sandbox: Sandbox) -> None:
    sandbox.state.ensure()
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with contextlib.closing(bell):
        bell.bind(sandbox.state.wake_socket)
        bell.setblocking(False)
        sandbox.run("Stop", sandbox.payload())
        with pytest.raises(BlockingIOError):
            bell.recv(10)
        sandbox.run("SessionEnd", sandbox.payload())
        assert bell.recv(10) == b"1"


def test_the_first_hook_writes_the_marker_and_later_ones_touch_it(sandbox: Sandbox) -> None:
    sandbox.run("SessionStart", sandbox.payload(source="compact"))
    path = marker_path(sandbox.state.markers, SESSION)
    marker = marker_of(sandbox)
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
    assert marker_of(sandbox).offset == 77
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
    assert "transcript refused" in done.stderr
    sandbox.state.ensure()
    assert os.listdir(sandbox.state.markers) == []
    assert os.listdir(sandbox.state.spool) == []


def test_a_payload_without_a_transcript_gets_the_hosts_own_naming(sandbox: Sandbox) -> None:
    payload = {"session_id": SESSION, "cwd": "/home/dev/my_project.v2"}
    sandbox.run("Stop", payload)
    assert marker_of(sandbox).transcript.endswith(f"/.claude/projects/-home-dev-my-project-v2/{SESSION}.jsonl")
