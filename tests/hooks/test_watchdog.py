"""When a hook's watchdog ends the process, on machines that wake it in time and on others (hooks/client.py).

On a clock of the test's own: on a real one this would measure the machine. `test_under_load` runs real processes.
"""

from __future__ import annotations

from typing import NoReturn

import pytest

from memoryvault.hooks import client
from memoryvault.hooks.client import Hook
from memoryvault.hooks.payload import HookCall

LIMIT_SECONDS = 0.3


class Ended(Exception):
    """The process is gone."""


class Machine:
    """A clock that stands still while somebody works; who sleeps is woken `late` seconds too late."""

    def __init__(self, late: float) -> None:
        self.now = 1000.0
        self.late = late
        self.naps = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late
        self.naps += 1


def ended_after(late: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds after which a prompt whose main thread is caught in something is ended."""
    hook = Hook([])
    machine = Machine(late)
    hook.started = machine.now
    hook.deadline = machine.now + LIMIT_SECONDS

    def end(code: int) -> NoReturn:
        assert code == 0
        raise Ended

    monkeypatch.setattr(client, "time", machine)
    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(client, "start_new_thread", lambda function, arguments: None)
    monkeypatch.setattr(client, "_finish_at_deadline", lambda hook: None)
    with pytest.raises(Ended):
        client._watch(hook)
    return machine.now - hook.started


def test_a_machine_that_wakes_it_in_time_leaves_the_hook_all_but_the_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended_after(0.0, monkeypatch) == pytest.approx(LIMIT_SECONDS - client.MARGIN_SECONDS)


@pytest.mark.parametrize("late", [0.002, 0.01, 0.02, 0.03, 0.05, 0.08])
def test_one_that_wakes_it_late_is_given_the_signal_earlier(late: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended_after(late, monkeypatch) <= LIMIT_SECONDS


def test_a_hook_that_has_ended_by_itself_says_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = Hook([])
    hook.finished = True
    hook.deadline = hook.started
    monkeypatch.setattr(client, "_finish_at_deadline", lambda hook: pytest.fail("it has ended"))
    client._watch(hook)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_one_whose_time_is_up_before_it_has_read_its_settings_ends_without_a_traceback(
    event: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "_read_settings_for_log", lambda hook: None)
    hook = Hook([])
    hook.call = HookCall(event, "claude")
    hook.call.session = "3f0c6a52"
    client._finish_at_deadline(hook)
    assert capfd.readouterr().out == ""
