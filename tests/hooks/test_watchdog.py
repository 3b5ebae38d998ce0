"""When a hook's watchdog leaves the process alone, and what it does early (hooks/client.py).

That it ends the process in time is in `test_under_load` and `hosts/test_adapters`.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryvault.hooks import client
from memoryvault.hooks.client import Hook
from memoryvault.hooks.payload import HookCall


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
