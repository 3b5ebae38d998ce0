"""Codex, Copilot and Antigravity: the same hooks, in each host's own shape."""

import json
from typing import Any

import pytest

from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.shared_data import shared_files
from memoryvault.vault.marker import marker_path, read_marker

from ..hooks.support import SESSION, Outcome, Sandbox, indexed, marker_of, stuck_in
from .payloads import RECALLED, antigravity, antigravity_typed, codex, copilot, gemini, places, spooled

pytestmark = pytest.mark.hurried


def context_of(done: Outcome, event: str) -> str:
    """Of Codex: the documented output, and no key more (the host rejects one)."""
    document = json.loads(done.stdout)
    assert set(document) == {"hookSpecificOutput"}
    assert set(document["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert document["hookSpecificOutput"]["hookEventName"] == event
    return str(document["hookSpecificOutput"]["additionalContext"])


def injected_of(done: Outcome) -> str:
    """Of Antigravity: a JSON object in every case."""
    document = json.loads(done.stdout)
    assert set(document) <= {"injectSteps"}
    steps = document.get("injectSteps", [])
    assert all(set(step) == {"ephemeralMessage"} for step in steps)
    return "\n".join(step["ephemeralMessage"] for step in steps)


def of_codex(sandbox: Sandbox, event: str, **fields: object) -> Outcome:
    return sandbox.run(event, codex(sandbox, event, **fields), "--host", "codex")


def called(sandbox: Sandbox, number: int, steps: int = 1) -> str:
    """What Antigravity is given before this call of its model in a turn."""
    call = antigravity(sandbox, invocationNum=number, initialNumSteps=steps)
    return injected_of(sandbox.run("PreInvocation", call, "--host", "antigravity"))


def test_codex_is_given_context_in_json(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    assert "plain language" in context_of(of_codex(sandbox, "SessionStart", source="startup"), "SessionStart")
    prompt = of_codex(sandbox, "UserPromptSubmit", prompt="when do we ship?", transcript_path=None)
    assert RECALLED in context_of(prompt, "UserPromptSubmit")
    again = of_codex(sandbox, "UserPromptSubmit", prompt="when do we ship?", transcript_path=None)
    assert again.stdout == "", "the same turn is answered once"
    assert of_codex(sandbox, "Stop", stop_hook_active=False).stdout == ""
    assert (marker_of(sandbox).host, marker_of(sandbox).transcript) == ("codex", str(places(sandbox)["codex"]))
    assert spooled(sandbox) == 1


def test_a_codex_session_without_a_transcript_waits_for_an_event_that_names_one(sandbox: Sandbox) -> None:
    for event in ("UserPromptSubmit", "Stop"):
        of_codex(sandbox, event, prompt="use pnpm", transcript_path=None)
    assert read_marker(marker_path(sandbox.state.markers, SESSION)) is None
    assert spooled(sandbox) == 0
    of_codex(sandbox, "Stop")
    assert marker_of(sandbox).host == "codex"


def test_copilot_is_only_recorded(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    start = copilot(sandbox, "SessionStart", source="new", initial_prompt="when do we ship?")
    prompt = copilot(sandbox, "UserPromptSubmit", prompt="when do we ship?")
    for event, payload in (("SessionStart", start), ("UserPromptSubmit", prompt), ("Stop", copilot(sandbox, "Stop"))):
        done = sandbox.run(event, payload, "--host", "copilot")
        assert done.stdout == ""
    assert recall_requests == [], "nobody reads an answer, so nothing is asked"
    marker = marker_of(sandbox)
    assert (marker.host, marker.source, marker.transcript) == ("copilot", "startup", str(places(sandbox)["copilot"]))
    assert spooled(sandbox) == 1


def test_the_other_spelling_of_copilot_is_read_as_well(sandbox: Sandbox) -> None:
    transcript = str(places(sandbox)["copilot"])
    payload = {"sessionId": SESSION, "timestamp": 1_772_359_200_000, "cwd": str(sandbox.project)}
    payload |= {"transcriptPath": transcript, "stopReason": "end_turn"}
    sandbox.run("agentStop", payload, "--host", "copilot")
    assert marker_of(sandbox).transcript == transcript
    assert spooled(sandbox) == 1


@pytest.mark.slow
@pytest.mark.alone
def test_antigravity_gets_opening_and_answer_with_its_first_call(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    antigravity_typed(sandbox, "When do we ship?")
    told = called(sandbox, 0)
    assert "plain language" in told
    assert recall_requests[-1]["text"] == "When do we ship?"
    assert (marker_of(sandbox).host, marker_of(sandbox).cwd) == ("antigravity", str(sandbox.project))


def test_antigravity_is_answered_once_a_turn_and_noted_when_idle(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    antigravity_typed(sandbox, "Hello.")
    called(sandbox, 0)
    antigravity_typed(sandbox, "Hello.", "When do we ship?")
    later = called(sandbox, 0, steps=12)
    assert RECALLED in later
    assert "plain language" not in later
    assert called(sandbox, 3, steps=12) == "", "in mid turn"
    busy = antigravity(sandbox, terminationReason="model_stop", fullyIdle=False)
    assert injected_of(sandbox.run("Stop", busy, "--host", "antigravity")) == ""
    assert spooled(sandbox) == 0
    idle = antigravity(sandbox, terminationReason="model_stop", fullyIdle=True)
    assert injected_of(sandbox.run("Stop", idle, "--host", "antigravity")) == ""
    assert spooled(sandbox) == 1


@pytest.mark.parametrize("why", ["no time", "too little time", "the vault is away"])
def test_antigravity_gets_the_opening_late_if_not_first(sandbox: Sandbox, recall_requests: list[Any], why: str) -> None:
    indexed(sandbox, "personal-private/fact/port.md", "The shop listens on port 8081.", kind="fact")
    if why != "the vault is away":
        antigravity_typed(sandbox, "When do we ship?")
        first = antigravity(sandbox, invocationNum=0, initialNumSteps=1)
        python = stuck_in("client._session_start" if why == "no time" else "session_start._read_rest")
        done = sandbox.run("PreInvocation", first, "--host", "antigravity", python=python)
        assert ("plain language" in injected_of(done), "8081" in injected_of(done)) == (why != "no time", False)
    else:
        away = sandbox.vault.rename(sandbox.vault.with_name("away"))
        assert called(sandbox, 0) == ""
        away.rename(sandbox.vault)
    second, third = called(sandbox, 1), called(sandbox, 2)
    assert "plain language" in second
    assert "port 8081" in second
    assert RECALLED not in second, "the prompt's own call is over"
    assert third == ""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("steps", [1, 12])
def test_antigravity_gets_its_object_when_time_is_up(sandbox: Sandbox, recall_requests: list[Any], steps: int) -> None:
    payload = antigravity(sandbox, invocationNum=0, initialNumSteps=steps)
    done = sandbox.run("PreInvocation", payload, "--host", "antigravity", python=stuck_in("client._prompt"))
    assert "time budget exceeded" in done.stderr
    assert sandbox.log_lines()[-1]["duration_ms"] < 300 * patience()
    assert "plain language" in injected_of(done), "what a session starts with, whichever call is the first that is seen"


@pytest.mark.parametrize("host", ["codex", "copilot", "antigravity", "gemini"])
def test_a_transcript_outside_of_the_hosts_own_folder_is_refused(sandbox: Sandbox, host: str) -> None:
    payload: dict[str, Any] = {
        "codex": codex(sandbox, "Stop", transcript_path="/etc/passwd"),
        "copilot": copilot(sandbox, "Stop", transcript_path=str(sandbox.transcript)),
        "antigravity": antigravity(sandbox, fullyIdle=True, transcriptPath=str(sandbox.transcript)),
        "gemini": gemini(sandbox, "AfterAgent", transcript_path=str(sandbox.home / ".gemini" / "settings.json")),
    }[host]
    done = sandbox.run(payload.get("hook_event_name", "Stop"), payload, "--host", host)
    assert "transcript refused" in done.stderr
    assert read_marker(marker_path(sandbox.state.markers, SESSION)) is None
    assert spooled(sandbox) == 0


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"session_id": 7, "tool_response": []}', b'{"conversationId": "../x"}']
)
@pytest.mark.parametrize("host", ["codex", "copilot", "antigravity", "gemini"])
def test_bad_input_fails_no_turn(sandbox: Sandbox, host: str, raw: bytes) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreInvocation", "Stop", "BeforeAgent", "BeforeTool", "AfterTool")
    for event in events:
        done = sandbox.run(event, raw, "--host", host)
        assert done.stdout == ("{}\n" if host in ("antigravity", "gemini") else "")


def test_an_unknown_host_fails_no_turn(sandbox: Sandbox) -> None:
    done = sandbox.run("Stop", sandbox.payload(), "--host", "teapot")
    assert done.stdout == ""
    assert "no host 'teapot'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("host", ["codex", "copilot", "antigravity"])
def test_known_payloads_are_answered_in_the_hosts_form(sandbox: Sandbox, recall_requests: list[Any], host: str) -> None:
    antigravity_typed(sandbox, "When do we ship?")
    for file in shared_files(host, "stdin/*.json"):
        text = file.read_text().replace("/home/dev/my_project.v2", str(sandbox.project))
        payload = json.loads(text.replace("/home/dev", str(sandbox.home)))
        if host == "antigravity":
            payload["transcriptPath"] = str(places(sandbox)["antigravity"])
        event = payload.get("hook_event_name") or file.name.split(".")[0]
        done = sandbox.run(event, payload, "--host", host)
        if host == "antigravity":
            injected_of(done)
        elif done.stdout:
            assert host == "codex"
            context_of(done, event)
    events = {line["hook"] for line in sandbox.log_lines()}
    assert events >= {"UserPromptSubmit", "Stop"}
