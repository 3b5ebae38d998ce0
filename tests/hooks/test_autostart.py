"""Processes that hooks start: detached, clean, and not one per session."""

import json
import os
import socket
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryvault.hooks.autostart import DEFAULT_PATH, daemon_environment
from memoryvault.runtime.background import allow_starts, forbid_starts
from memoryvault.runtime.layout import OFFLINE
from memoryvault.runtime.settings import child_environment, compile_snapshot, load_settings
from memoryvault.runtime.snapshot import snapshot_path

from .support import Sandbox

pytestmark = pytest.mark.hurried

# Stands in for the interpreter of the package: notes how it was started, then goes.
RECORDER = """#!{python} -S
import json, os, sys
fds = []
for fd in range(3, 64):
    try:
        fds.append((fd, os.readlink(f"/proc/self/fd/{{fd}}") if os.path.isdir("/proc/self/fd") else ""))
        os.fstat(fd)
    except OSError:
        pass
record = dict(argv=sys.argv[1:], env=dict(os.environ), cwd=os.getcwd(), pid=os.getpid(), sid=os.getsid(0),
    null=[os.fstat(fd).st_rdev == os.stat("/dev/null").st_rdev for fd in (0, 1, 2)], inherited=[
        name for fd, name in fds if "leaked" in name])
name = "{folder}/" + sys.argv[-1] + f".{{os.getpid()}}"
open(name + ".tmp", "w").write(json.dumps(record))
os.rename(name + ".tmp", name + ".json")
"""


def arm(sandbox: Sandbox, env: dict[str, str]) -> None:
    """Compile the settings for `env` and put the recorder in the place of the interpreter."""
    compile_snapshot(env)
    file = Path(snapshot_path(env))
    text = file.read_text()
    file.write_text(text.replace(f"python={sys.executable}", f"python={sandbox.root / 'python'}"))


@pytest.fixture
def started(sandbox: Sandbox) -> Path:
    """The folder in which started processes leave a record; autostart is on."""
    folder = sandbox.root / "started"
    folder.mkdir()
    recorder = sandbox.root / "python"
    recorder.write_text(RECORDER.format(python=sys.executable, folder=folder))
    recorder.chmod(0o755)
    sandbox.extra_env["MEMORY_AUTOSTART"] = "true"
    arm(sandbox, sandbox.env)
    return folder


def records(folder: Path, expected: int, seconds: float = 30.0) -> list[dict[str, Any]]:
    until = time.monotonic() + seconds
    while len(list(folder.glob("*.json"))) < expected and time.monotonic() < until:
        time.sleep(0.01)
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_session_start_starts_worker_and_service_detached_and_clean(sandbox: Sandbox, started: Path) -> None:
    env = {**sandbox.env, "PYTHONPATH": "/evil", "HTTPS_PROXY": "http://evil", "LD_PRELOAD": ""}
    env |= {"MEMORY_REVIEW_MODE": "silent", "ANTHROPIC_API_KEY": "k", "LANG": "C.UTF-8"}
    env["PATH"] = f"{sandbox.project}/bin:relative:/usr/bin:/bin"
    leaked = os.open(sandbox.root / "leaked", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(leaked, True)
    arm(sandbox, env)
    sandbox.run("SessionStart", sandbox.payload(source="startup"), env=env)
    os.close(leaked)
    serve, worker = sorted(records(started, 2), key=lambda record: str(record["argv"][-1]))
    assert serve["argv"] == ["-I", "-m", "memoryvault", "service", "serve"]
    assert worker["argv"] == ["-I", "-m", "memoryvault", "service", "worker"]
    for record in (serve, worker):
        assert record["cwd"] == "/"
        assert record["null"] == [True, True, True]
        assert record["inherited"] == []
        assert record["sid"] == record["pid"], "a session of its own: closing the terminal does not end it"
        clean = record["env"]
        assert not {"PYTHONPATH", "HTTPS_PROXY", "LD_PRELOAD", "ANTHROPIC_API_KEY"} & set(clean)
        ours = {name for name in clean if name.startswith("MEMORY_")}
        assert ours == {"MEMORY_CONFIG", "MEMORY_STATE_DIR", "MEMORY_VAULT_PATH"}
        assert clean["MEMORY_VAULT_PATH"] == str(sandbox.vault)
        assert clean["MEMORY_STATE_DIR"] == str(sandbox.state_root)
        assert clean["PATH"] == "/usr/bin:/bin"


@pytest.mark.parametrize("runs", [True, False])
def test_what_runs_is_not_started_again_and_what_was_killed_is(sandbox: Sandbox, started: Path, runs: bool) -> None:
    sandbox.state.ensure()
    worker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    service = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with closing(worker), closing(service):
        worker.bind(sandbox.state.wake_socket)
        service.bind(sandbox.state.recall_socket)
        service.listen(4)
        if not runs:
            worker.close()
            service.close()
        sandbox.run("SessionStart", sandbox.payload(source="startup"))
        sandbox.run("SessionEnd", sandbox.payload())
        assert len(records(started, 1, seconds=0.3) if runs else records(started, 2)) == (0 if runs else 2)


def test_many_sessions_at_once_start_one_of_each(sandbox: Sandbox, started: Path) -> None:
    for number in range(5):
        sandbox.run("SessionStart", sandbox.payload(source="startup", session_id=f"s{number}"))
    time.sleep(0.3)
    assert len(records(started, 2)) == 2


def test_an_attempt_that_lies_in_the_future_holds_nothing_back(sandbox: Sandbox, started: Path) -> None:
    """The clock was ahead when it was made, and was set right since."""
    sandbox.state.ensure()
    for command in ("serve", "worker"):
        stamp = Path(sandbox.state.run) / f"starting-{command}"
        stamp.touch()
        os.utime(stamp, (time.time() + 86_400, time.time() + 86_400))
    sandbox.run("SessionStart", sandbox.payload(source="startup"))
    assert len(records(started, 2, seconds=5.0)) == 2


def test_autostart_can_be_switched_off(sandbox: Sandbox, started: Path) -> None:
    env = {**sandbox.env, "MEMORY_AUTOSTART": "false"}
    arm(sandbox, env)
    sandbox.run("SessionStart", sandbox.payload(source="startup"), env=env)
    assert not list(Path(sandbox.state.run).glob("starting-*"))


@pytest.mark.parametrize(
    ("variable", "value", "starts"),
    [
        ("AI_AGENT", "claude-code_2-1-197_agent", False),
        ("AI_AGENT", "claude-code_2-1-197_harness", True),
        ("CODEX_CI", "1", False),
        ("CODEX_MANAGED_BY_NPM", "1", True),
        ("GEMINI_CLI", "1", False),
        ("GEMINI_SESSION_ID", "f3c1", True),
        ("OPENCODE", "1", False),
        ("OPENCODE_PID", "4711", True),
    ],
)
def test_a_hook_that_an_agent_runs_in_its_shell_starts_nothing(
    sandbox: Sandbox, started: Path, variable: str, value: str, starts: bool
) -> None:
    """Its variables may name another settings file, by which a worker would save what nobody was asked about."""
    env = {**sandbox.env, variable: value}
    sandbox.run("SessionStart", sandbox.payload(source="startup"), env=env)
    assert len(records(started, 2, seconds=10 if starts else 0.5)) == (2 if starts else 0)


def test_after_uninstall_a_session_that_was_open_then_starts_nothing(sandbox: Sandbox, started: Path) -> None:
    sandbox.state.ensure()
    forbid_starts(sandbox.state)
    for event in ("SessionStart", "UserPromptSubmit", "SessionEnd"):
        sandbox.run(event, sandbox.payload(prompt="where is the cocoa?", source="startup"))
    assert not list(Path(sandbox.state.run).glob("starting-*"))
    allow_starts(sandbox.state)
    sandbox.run("UserPromptSubmit", sandbox.payload(prompt="and the tea?"))
    assert {record["argv"][-1] for record in records(started, 2)} == {"serve", "worker"}


def test_nothing_is_started_that_cannot_read_its_settings(sandbox: Sandbox, started: Path) -> None:
    sandbox.configure("")
    arm(sandbox, sandbox.env)
    sandbox.configure("[recall\n")
    sandbox.compiled = False
    assert "settings from before" in sandbox.run("SessionStart", sandbox.payload(source="startup")).stderr
    assert not list(Path(sandbox.state.run).glob("starting-*"))


def test_a_python_that_is_gone_is_logged_and_nothing_else(sandbox: Sandbox, started: Path) -> None:
    (sandbox.root / "python").unlink()
    sandbox.run("SessionStart", sandbox.payload(source="startup"))
    assert "start_failed" in sandbox.log_lines()[-1]


def test_the_command_and_the_hooks_start_processes_alike(sandbox: Sandbox) -> None:
    env = {**sandbox.env, "XDG_STATE_HOME": "/x", "LC_ALL": "C", "TZ": "UTC", "HTTPS_PROXY": "http://p"}
    settings = load_settings(env)
    identity = {"MEMORY_CONFIG": str(settings.config_file), "MEMORY_STATE_DIR": str(settings.state_root)}
    identity["MEMORY_VAULT_PATH"] = str(settings.vault_path)
    ours = daemon_environment(env, identity, "/nowhere")
    theirs = child_environment(settings)
    # The command passes on settings that were made in the user's own terminal; a session's are not trusted.
    assert {k: v for k, v in theirs.items() if k != "MEMORY_AUTOSTART"} == ours


def test_a_path_without_safe_folders_gets_a_default() -> None:
    env = daemon_environment({"PATH": "/proj/bin:./bin:"}, {}, "/proj")
    assert env == {"PATH": DEFAULT_PATH, **OFFLINE}
    assert daemon_environment({"PATH": "/usr/bin"}, {}, "/")["PATH"] == "/usr/bin"
