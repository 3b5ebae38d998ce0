"""When a hook's watchdog ends the process (hooks/client.py), on a clock of the test's own: a real one would measure the
machine. `test_under_load` runs real processes."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import NoReturn

import pytest

from memoryvault.hooks import client
from memoryvault.hooks.client import Hook
from memoryvault.hooks.payload import HookCall

LIMIT_SECONDS = 0.3


class Ended(Exception):
    """The process is gone."""


def test_a_hook_that_answers_is_ended_within_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def end(code: int) -> NoReturn:
        assert code == 0
        raise Ended

    hook = Hook([])
    hook.deadline = 1000.0 + LIMIT_SECONDS
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: 1000.0, sleep=slept.append))
    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(client, "start_new_thread", lambda function, arguments: None)
    monkeypatch.setattr(client, "_finish_at_deadline", lambda hook: None)
    with pytest.raises(Ended):
        client._watch(hook)
    assert slept == [pytest.approx(LIMIT_SECONDS - client.MARGIN_SECONDS)]


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
