"""Exit code 0 whatever happens, and the cases in which nothing at all is done."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memoryvault.hooks import client, payload
from memoryvault.hooks.client import Hook
from memoryvault.hooks.payload import HookCall
from memoryvault.runtime import interpreter
from memoryvault.runtime.settings import compile_snapshot
from memoryvault.runtime.snapshot import read_snapshot, snapshot_path
from memoryvault.tasks.jobs.upkeep import delete_old
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.shared_data import shared_files
from memoryvault.vault.marker import list_markers

from .support import SESSION, Sandbox, stub

pytestmark = pytest.mark.hurried

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact", "Notification")
BAD_INPUT = {
    "empty": b"",
    "not json": b"{not json",
    "a list": b"[1, 2]",
    "trailing": b'{"session_id": "a"} x',
    "binary": bytes(range(256)),
    "deep": b'{"a":' + b"[" * 100_000,
    "wrong types": b'{"session_id": 7, "prompt": ["x"], "cwd": null, "transcript_path": {}}',
    "hostile id": b'{"session_id": "../../etc/passwd", "prompt": "hi", "cwd": "/"}',
    "lone surrogate": b'{"session_id": "a", "prompt": "\\ud800 cocoa", "cwd": "/\\ud800"}',
    "nul": b'{"session_id": "a", "prompt": "x", "cwd": "/a\\u0000b", "transcript_path": "/a\\u0000b"}',
    "newline": b'{"session_id": "a", "transcript_path": "/x\\noffset: 9", "cwd": "/x\\nhost: y"}',
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_ends_with_exit_code_0_and_an_empty_stdout(sandbox: Sandbox, name: str) -> None:
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        done = sandbox.run(event, BAD_INPUT[name])
        assert done.stdout == "", event
    if os.path.isdir(sandbox.state.markers):
        markers = [name for name in os.listdir(sandbox.state.markers) if name.endswith(".start")]
        assert markers == [] or markers == ["session-id-a.start"]


def test_a_prompt_without_a_payload_says_so(sandbox: Sandbox) -> None:
    for raw in (b"", b"{not json", b'{"foo": "bar"}'):
        assert "no prompt on stdin" in sandbox.run("UserPromptSubmit", raw).stderr


def test_an_unknown_event_is_nothing_to_us(sandbox: Sandbox) -> None:
    done = sandbox.run("TeaTime", sandbox.payload())
    assert done.stdout == ""
    assert not (Path(sandbox.state.markers) / f"session-id-{SESSION}.start").exists()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("gate", ["switched off", "worker child", "sub-agent", "STOP", "project left out"])
def test_switched_off_our_own_calls_sub_agents_and_stop_do_nothing(sandbox: Sandbox, event: str, gate: str) -> None:
    sandbox.entry("personal-private/_always-load/a.md", "Tea.")
    compile_snapshot(sandbox.env)
    payload = sandbox.payload(prompt="tea?", notification_type="idle_prompt")
    env = dict(sandbox.env)
    sandbox.state.ensure()
    if gate == "switched off":
        env["MEMORY_ENABLED"] = "false"
        sandbox.compiled = False
    elif gate == "worker child":
        env["MEMORY_WORKER_CHILD"] = "1"
    elif gate == "sub-agent":
        payload["agent_id"] = "agent-1"
    elif gate == "project left out":
        (sandbox.project / ".memoryvault").write_text("off\n")
    else:
        Path(sandbox.state.stop_file).write_text("")
    before, log = sandbox.files(), sandbox.log_lines()
    done = sandbox.run(event, payload, env=env)
    assert (done.stdout, done.stderr) == ("", "")
    assert (sandbox.files(), sandbox.log_lines()) == (before, log)


def test_a_notification_that_is_not_idle_does_nothing(sandbox: Sandbox) -> None:
    sandbox.compiled = False
    sandbox.run("Notification", sandbox.payload(notification_type="permission_prompt"))
    assert not sandbox.state_root.exists()


def test_without_a_vault_a_line_on_stderr_is_all(sandbox: Sandbox) -> None:
    env = {key: value for key, value in sandbox.env.items() if key != "MEMORY_VAULT_PATH"}
    sandbox.compiled = False
    for event in EVENTS:
        done = sandbox.run(event, sandbox.payload(prompt="x", notification_type="idle_prompt"), env=env)
        assert done.stdout == ""
        assert "no vault is set" in done.stderr


def test_a_bad_setting_is_named_and_the_exit_code_stays_0(sandbox: Sandbox) -> None:
    sandbox.compiled = False
    sandbox.configure("[recall]\nk = 'many'\n")
    done = sandbox.run("Stop", sandbox.payload())
    assert done.stdout == ""
    assert "config.toml: " in done.stderr
    assert "recall.k" in done.stderr


@pytest.mark.parametrize("broken", ["[recall\n", "[recall]\nk = 'many'\n"])
def test_a_session_is_recorded_by_the_settings_from_before_a_broken_file(sandbox: Sandbox, broken: str) -> None:
    sandbox.change_settings("[recall]\nk = 3\n", broken)
    month_old = time.time() - 31 * 86_400
    os.utime(snapshot_path(sandbox.env), (month_old, month_old))
    for event in ("SessionStart", "Stop", "SessionEnd"):
        done = sandbox.run(event, sandbox.payload(source="startup"))
        assert "config.toml:" in done.stderr
        assert "settings from before" in done.stderr
    payload = sandbox.payload()
    assert list_markers(sandbox.state.markers) == [payload["session_id"]]
    delete_old(sandbox.state, time.time())
    assert Path(snapshot_path(sandbox.env)).exists(), "in use, so not deleted with those that nobody needs any more"


@pytest.mark.parametrize(
    "broken",
    [
        "[memory]\nenabled = off\n",
        "[memory]\nenabled =\n",
        "[memory]\nenable = false\n",
        "memory.enabled = false\n[recall\n",
    ],
)
def test_nothing_is_recorded_while_a_broken_file_seems_to_switch_recording_off(sandbox: Sandbox, broken: str) -> None:
    sandbox.change_settings("[recall]\nk = 3\n", broken)
    done = sandbox.run("Stop", sandbox.payload())
    assert done.stdout == ""
    assert "config.toml:" in done.stderr
    assert list_markers(sandbox.state.markers) == []


def test_the_settings_from_before_are_those_that_switched_recording_off(sandbox: Sandbox) -> None:
    sandbox.change_settings("[recall]\nk = 3\n", "[memory]\nenabled = false\n")
    sandbox.run("Stop", sandbox.payload())
    sandbox.configure("[recall\n")
    done = sandbox.run("Stop", sandbox.payload())
    assert done.stdout == ""
    assert list_markers(sandbox.state.markers) == []


def test_a_corrupt_snapshot_is_compiled_anew(sandbox: Sandbox) -> None:
    sandbox.compiled = False
    sandbox.run("Stop", sandbox.payload())
    snapshot = Path(snapshot_path(sandbox.env))
    good = snapshot.read_bytes()
    for damage in (
        b"",
        b"\xff\xfe\x00",
        good[: len(good) // 2],
        good.replace(b"enabled=1", b"enabled"),
        b"format=999\nend=1\n",
    ):
        snapshot.write_bytes(damage)
        sandbox.run("Stop", sandbox.payload())
        assert read_snapshot(sandbox.env) is not None


def test_a_state_folder_that_cannot_be_written_costs_no_rule(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_always-load/a.md", "Tea at four.")
    (sandbox.root / "file").write_text("")
    sandbox.extra_env["MEMORY_STATE_DIR"] = str(sandbox.root / "file" / "state")
    start = sandbox.run("SessionStart", sandbox.payload(source="startup"))
    prompt = sandbox.run("UserPromptSubmit", sandbox.payload(prompt="which teapot is for cocoa?"))
    stop = sandbox.run("Stop", sandbox.payload())
    assert "Tea at four." in start.stdout
    assert prompt.stdout + stop.stdout == ""
    assert "cannot be written" in start.stderr


def test_a_closed_stdout_hurts_nobody(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_always-load/a.md", "Tea at four.")
    sandbox.run("SessionStart", sandbox.payload(source="startup"))
    for closed in ((1,), (0, 1), (0, 1, 2)):

        def close(closed: tuple[int, ...] = closed) -> None:
            for descriptor in closed:
                os.close(descriptor)

        payload = sandbox.payload(source="startup", session_id=f"s{len(closed)}")
        sandbox.run("SessionStart", payload, prepare=close)
    # What was meant for the model went nowhere, least of all into a file that got its number.
    for path in sandbox.state_root.rglob("*"):
        if path.is_file():
            assert b"Tea at four." not in path.read_bytes()


def test_a_reader_that_went_away_hurts_nobody(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_always-load/a.md", "Tea at four. " * 20_000)
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, "-I", "-S", *stub(), "SessionStart"]
    payload = b'{"session_id": "gone", "cwd": "/", "source": "startup"}'
    assert subprocess.run(argv, input=payload, stdout=write, env=sandbox.env, check=False).returncode == 0
    os.close(write)


@pytest.mark.parametrize(
    ("event", "printed"), [("UserPromptSubmit", b""), ("PreInvocation --host antigravity", b"{}\n")]
)
def test_a_stdin_that_never_ends_is_left_at_the_hard_end(sandbox: Sandbox, event: str, printed: bytes) -> None:
    compile_snapshot(sandbox.env)
    argv = [sys.executable, "-I", "-S", *stub(), *event.split()]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=sandbox.env) as process:
        assert process.wait(timeout=2 * patience()) == 0
        assert process.stdout is not None
        assert process.stdout.read() == printed


def test_every_invocation_leaves_one_line_in_the_log(sandbox: Sandbox) -> None:
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        sandbox.run(event, sandbox.payload(prompt="hello cocoa", source="startup"))
    lines = sandbox.log_lines()
    assert [line["hook"] for line in lines] == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    assert all(line["duration_ms"] > 0 and line["session"] == SESSION and line["result"] for line in lines)


@pytest.mark.parametrize("name", ["strict", "object_hook"])
def test_an_interpreter_that_asks_for_more_reads_json_slowly(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Python 3.15 asked for one attribute more, and no hook understood its agent."""
    monkeypatch.delattr(interpreter._ScannerContext, name)
    assert payload.parse_object(b'{"prompt": "a\nb", "n": [1, 2.5, null]}') == {"prompt": "a\nb", "n": [1, 2.5, None]}


def test_what_the_standard_librarys_reader_of_json_has_is_there_for_the_fast_one() -> None:
    """Those without are read slowly, and a hook has no time for that."""
    asked = vars(json.JSONDecoder()).keys() - {"parse_object", "parse_array", "parse_string", "scan_once"}
    assert asked <= {name for name in dir(interpreter._ScannerContext) if not name.startswith("_")}


def test_every_known_payload_is_taken(sandbox: Sandbox) -> None:
    for file in shared_files("claude", "stdin/*.json"):
        payload = json.loads(file.read_text())
        payload["cwd"] = str(sandbox.project)
        payload["transcript_path"] = str(payload["transcript_path"]).replace("/home/dev", str(sandbox.home))
        event = payload["hook_event_name"]
        done = sandbox.run(event, payload)
        assert done.stdout == "", file.name
        if event not in EVENTS or payload.get("notification_type") == "permission_prompt":
            assert done.stderr == "", file.name
    assert {line["hook"] for line in sandbox.log_lines()} == set(EVENTS)
    refused = [line for line in sandbox.log_lines() if line["result"] == "transcript refused"]
    assert [line["transcript"] for line in refused] == ["/nonexistent/x.jsonl"]


# When the watchdog leaves a hook alone; that it ends one in time is in test_under_load and hosts/test_adapters


def test_a_hook_that_is_just_ending_by_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_finish_at_deadline", lambda hook: pytest.fail("it was ending"))
    hook = Hook([])
    hook.deadline = hook.started
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(hook.ending.acquire).result()
        client._watch(hook)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_one_whose_time_is_up_before_it_has_read_its_settings_ends_without_a_traceback(
    event: str, capfd: pytest.CaptureFixture[str]
) -> None:
    hook = Hook([])
    hook.call = HookCall(event, "claude")
    hook.call.session = "3f0c6a52"
    client._finish_at_deadline(hook)
    assert capfd.readouterr().out == ""
