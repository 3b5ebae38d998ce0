"""When a hook's watchdog ends the process (hooks/client.py), on a clock of the test's own: a real one would measure the
machine. `test_under_load` runs real processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest

from memoryvault.hooks import client
from memoryvault.hooks.client import Hook
from memoryvault.hooks.payload import HookCall
from memoryvault.runtime.settings import compile_snapshot
from memoryvault.vault.marker import list_markers

from .support import SESSION, Sandbox

LIMIT_SECONDS = 0.3


class Ended(Exception):
    """The process is gone."""


class Machine:
    """A clock that stands still while somebody works; `at` says what happens when it shows a time."""

    def __init__(self, at: dict[float, Callable[[], None]] | None = None) -> None:
        self.now = 1000.0
        self._at = dict(at or {})

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for moment in [moment for moment in self._at if 1000.0 + moment <= self.now]:
            self._at.pop(moment)()

    def __getattr__(self, name: str) -> Any:
        import time

        return getattr(time, name)


def ended_after(hook: Hook, machine: Machine, monkeypatch: pytest.MonkeyPatch, *, records: bool = False) -> float:
    """Seconds after which a hook whose main thread is caught in something is ended."""
    hook.started = machine.now
    hook.deadline = machine.now + (client.RECORDING_SECONDS if records else LIMIT_SECONDS)

    def end(code: int) -> NoReturn:
        assert code == 0
        raise Ended

    monkeypatch.setattr(client, "time", machine)
    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(client, "start_new_thread", lambda function, arguments: None)
    with pytest.raises(Ended):
        client._watch(hook, records)
    return machine.now - hook.started


def test_a_hook_that_answers_is_ended_within_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_finish_at_deadline", lambda hook: None)
    seconds = ended_after(Hook([]), Machine(), monkeypatch)
    assert seconds == pytest.approx(LIMIT_SECONDS - client.MARGIN_SECONDS)


def test_a_hook_that_is_just_ending_by_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_finish_at_deadline", lambda hook: pytest.fail("it was ending"))
    hook = Hook([])
    hook.deadline = hook.started
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(hook.ending.acquire).result()
        client._watch(hook, False)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_one_whose_time_is_up_before_it_has_read_its_settings_ends_without_a_traceback(
    event: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "_read_settings_at_deadline", lambda hook: None)
    hook = Hook([])
    hook.call = HookCall(event, "claude")
    hook.call.session = "3f0c6a52"
    client._finish_at_deadline(hook)
    assert capfd.readouterr().out == ""


@pytest.fixture
def as_process(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """This process has the environment of a hook."""
    for name in os.environ:
        if name.startswith("MEMORY_"):
            monkeypatch.delenv(name)
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    compile_snapshot(sandbox.env)
    sandbox.state.ensure()
    return sandbox


@pytest.mark.parametrize("event", ["Stop", "SessionEnd", "PreCompact"])
def test_what_was_read_but_not_yet_parsed_when_the_time_is_up_is_recorded(
    as_process: Sandbox, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = Hook([event])
    hook.raw = json.dumps(as_process.payload()).encode()
    seconds = ended_after(hook, Machine(), monkeypatch, records=True)
    assert seconds < client.RECORDING_SECONDS
    assert list_markers(as_process.state.markers) == [SESSION]
    assert [name.endswith(".json") for name in os.listdir(as_process.state.spool)] == [True]


def test_a_payload_that_comes_late_is_waited_for_as_long_as_the_host_waits(
    as_process: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = Hook(["SessionEnd"])
    machine = Machine({3.0: lambda: setattr(hook, "raw", json.dumps(as_process.payload()).encode())})
    assert 3.0 <= ended_after(hook, machine, monkeypatch, records=True) < 3.1
    assert list_markers(as_process.state.markers) == [SESSION]


def test_one_whose_payload_never_comes_is_ended_just_before_the_host_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = ended_after(Hook(["SessionEnd"]), Machine(), monkeypatch, records=True)
    assert seconds == pytest.approx(client.RECORDING_END_SECONDS, abs=0.1)


@pytest.mark.parametrize("reason", ["switched off", "paused", "sub-agent"])
def test_what_shall_not_be_recorded_is_not_recorded_late_either(
    as_process: Sandbox, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = as_process.payload(agent_id="a1") if reason == "sub-agent" else as_process.payload()
    if reason == "switched off":
        monkeypatch.setenv("MEMORY_ENABLED", "false")
    if reason == "paused":
        open(as_process.state.stop_file, "w").close()
    hook = Hook(["Stop"])
    hook.raw = json.dumps(payload).encode()
    ended_after(hook, Machine(), monkeypatch, records=True)
    assert list_markers(as_process.state.markers) == []
    assert os.listdir(as_process.state.spool) == []
