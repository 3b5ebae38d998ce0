"""The hooks in the real Codex CLI: it runs them, takes their answer for context, and they record its session."""

import json
import shlex
import time
from collections.abc import Iterator

import pytest

from memoryvault.hooks.wiring import trusted_by_codex
from memoryvault.runtime.settings import load_settings
from memoryvault.vault.marker import REFLECTED, list_markers

from ..support.files import put
from ..support.stand_in_responses import ANSWER, StandInResponses, ends_with_tool_result, use_tool
from .install_client import program
from .machine import MEMORY, PROPOSAL, QUESTION, RULE, TYPING_PAUSE_SECONDS, Machine
from .terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIG = """model = "stand-in"
model_provider = "loopback"

[model_providers.loopback]
name = "loopback"
base_url = "{url}"
wire_api = "responses"

[projects."{project}"]
trust_level = "trusted"
"""
HOOKS = ["SessionStart", "UserPromptSubmit", "Stop"]
SERVER = """
[mcp_servers.vault]
command = "{program}"
args = ["service", "mcp"]
required = true
default_tools_approval_mode = "approve"
"""
"""`required`: the first turn waits for the tools. `approve`: `codex exec` can ask nobody."""


@pytest.fixture
def responses(machine: Machine) -> Iterator[StandInResponses]:
    """A model, and a machine on which Codex is set up to ask it."""
    with StandInResponses() as model:
        put(machine.home / ".codex" / "config.toml", CONFIG.format(url=model.url, project=machine.project))
        yield model


def ask(machine: Machine, *options: str) -> str:
    """One turn of `codex exec`; what it says on stderr."""
    done = machine.run(
        "node", program("Codex CLI"), "exec", "--skip-git-repo-check", *options, QUESTION, env=machine.base_env
    )
    assert done.stdout.strip() == ANSWER, done.stderr
    return done.stderr


def test_codex_runs_the_hooks_that_are_trusted_and_takes_their_answer(
    machine: Machine, responses: StandInResponses
) -> None:
    machine.configure("[memory]\nautostart = false\n")
    told = machine.memory("init", "--yes", "--vault", str(machine.vault), "--host", "codex", "--json")
    assert json.loads(told)["hosts"]["codex"]["changed"]
    machine.save("linter-first", RULE)

    ask(machine)
    assert machine.hooks() == []
    assert RULE not in json.dumps(responses.requests[-1]), "Codex runs no hook that the user has not trusted"

    # What a person does once with /hooks, for this one run.
    said = ask(machine, "--dangerously-bypass-hook-trust")
    assert [event for event in HOOKS if f"hook: {event} Completed" not in said] == []
    assert any(RULE in text for text in responses.texts_of("developer"))
    assert responses.texts_of("user")[-1] == QUESTION
    assert dict(machine.hooks()) == dict.fromkeys(HOOKS, "ok")


def test_a_run_without_a_person_is_recorded_and_not_mined(machine: Machine, responses: StandInResponses) -> None:
    machine.init("codex", autostart=False)
    ask(machine, "--dangerously-bypass-hook-trust")
    marker = machine.marker()
    (rollout,) = (machine.home / ".codex" / "sessions").rglob("rollout-*.jsonl")
    assert (marker.host, marker.transcript) == ("codex", str(rollout))
    machine.let_time_pass(7200)
    machine.work()
    assert machine.entries_holding("linter") == []


def test_a_model_recalls_and_proposes_through_the_tools(machine: Machine, responses: StandInResponses) -> None:
    machine.init("codex", autostart=False)
    machine.save("linter-first", RULE)
    config = machine.home / ".codex" / "config.toml"
    config.write_text(config.read_text() + SERVER.format(program=MEMORY))
    responses.call_tools(
        use_tool("recall", {"query": QUESTION}, namespace="mcp__vault"),
        use_tool("save", {"kind": "workflow", "title": "Releases", "text": PROPOSAL}, namespace="mcp__vault"),
    )
    ask(machine)
    assert ends_with_tool_result(responses.requests[-1])
    recalled, saved = responses.tool_results()
    assert "run the linter before you push" in recalled
    assert "waits for review" in saved
    machine.proposed()


def test_what_a_model_saves_in_its_shell_waits_for_the_user(machine: Machine, responses: StandInResponses) -> None:
    machine.init("codex", autostart=False)
    command = shlex.join([str(MEMORY), "save", "workflow", "releases", "--body", PROPOSAL])
    responses.call_tools(use_tool("exec_command", {"cmd": command}))
    # Its own sandbox would not let the command write into the vault at all.
    ask(machine, "--sandbox", "danger-full-access")
    (said,) = responses.tool_results()
    assert "run by Codex, so it is a proposal" in said
    machine.proposed()


def converse(machine: Machine, words: str, *, trust: bool) -> None:
    """One turn typed into the interactive client, which is killed then.

    The first time it asks whether to trust the hooks.
    """
    env = {**machine.base_env, "TERM": "screen-256color"}
    with Terminal(["node", str(program("Codex CLI"))], env=env, cwd=machine.project, sockets=machine.root) as terminal:
        if trust:
            terminal.wait_until(
                lambda screen: "hooks are new or changed" in screen, "the question of trust", seconds=30
            )
            time.sleep(TYPING_PAUSE_SECONDS)
            terminal.press("Down")
            terminal.wait_until(lambda screen: "› 2. Trust all" in screen, "the choice to trust")
            terminal.press("Enter")
        terminal.wait_until(lambda screen: "Ask Codex" in screen, "the client's prompt", seconds=30)
        time.sleep(2 * TYPING_PAUSE_SECONDS)
        terminal.type(words)
        terminal.wait_until(lambda screen: words in screen, "the typed words")
        time.sleep(TYPING_PAUSE_SECONDS)
        terminal.press("Enter")
        terminal.wait_until(lambda screen: ANSWER in screen and "Worked for" in screen, "the answer", seconds=30)


def test_what_was_typed_reaches_the_next_session(machine: Machine, responses: StandInResponses) -> None:
    machine.configure("[memory]\nautostart = false\n\n[session]\nquiet_seconds = 0\n")
    machine.init("codex")
    converse(machine, RULE, trust=True)
    machine.work()
    machine.learned(RULE, "codex")
    assert trusted_by_codex(load_settings(machine.base_env))
    seen = len(responses.requests)
    converse(machine, f"{RULE} Is that done?", trust=False)
    assert any("run the linter before you push" in text for text in responses.texts_of("developer", seen))


@pytest.mark.parametrize("how", ["left", "killed in its turn"])
def test_a_session_of_codex_which_tells_no_end_is_mined_and_put_away_all_the_same(
    machine: Machine, responses: StandInResponses, how: str
) -> None:
    machine.init("codex", autostart=False)
    converse(machine, RULE, trust=True)
    assert [hook for hook, _ in machine.hooks()] == HOOKS, "it has no event for a session's end"
    (session,) = list_markers(machine.state.markers)
    # Its last turn asked for the reflection, as soon as the session has been quiet for a while.
    jobs = json.loads(machine.memory("jobs", "list", "--kind", "reflect.session", "--json"))
    (job,) = [job for job in jobs if session in json.dumps(job)]
    assert job["state"] == "queued"
    if how == "killed in its turn":
        machine.memory("jobs", "cancel", str(job["id"]))  # No Stop, no job: only the marker knows of the session.
    machine.work()
    assert len(machine.entries_holding("run the linter before you push")) == 1
    machine.let_time_pass(7200)
    machine.memory("jobs", "schedule", "run", "idle-sweep")
    machine.work()
    assert list_markers(machine.state.markers) == []
    assert list_markers(machine.state.markers, REFLECTED) == [session]
