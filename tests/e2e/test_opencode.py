"""The plugin in the real OpenCode: it is loaded, its answers reach the model, and its sessions are read and mined."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryvault.hooks.install import launcher_in
from memoryvault.runtime.layout import state_root
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.vault.marker import REFLECTED, list_markers
from memoryvault.vault.turn import Origin, Role, Turn

from ..support.files import put
from ..support.stand_in_chat import ANSWER, StandInChat, use_tool
from .install_client import program
from .machine import FAILING, MEMORY, MISSING, PROPOSAL, QUESTION, RULE, Conversation, Machine

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TAGS, CLEAN = "Never run git tag on a Friday.", "Never run git clean in a shared checkout."
MAKE = "Keep the Makefile free of tabs in recipes of comments."
QUIET = {
    **{f"OPENCODE_DISABLE_{what}": "1" for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE")},
    # Nothing may be fetched: what would be is refused at once.
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
START_SECONDS = 40
"""Without what `memory init` writes a start waits longer for the package registry."""


@pytest.fixture
def chat(machine: Machine) -> Iterator[StandInChat]:
    """A model, and a machine on which OpenCode is set up to ask it."""
    with StandInChat() as model:
        put(machine.home / ".config" / "opencode" / "opencode.json", json.dumps(config(model.url)))
        yield model


def config(url: str) -> dict[str, Any]:
    limits = {"name": "M1", "limit": {"context": 100_000, "output": 4_000}, "tool_call": True}
    options = {"baseURL": url, "apiKey": "x"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "S", "options": options, "models": {"m1": limits}}
    return {
        "autoupdate": False, "share": "disabled", "model": "standin/m1", "small_model": "standin/m1",
        "enabled_providers": ["standin"], "provider": {"standin": provider},
    }  # fmt: skip


def init(machine: Machine, settings: str = "") -> None:
    machine.configure(f"[memory]\nautostart = false\n{settings}")
    machine.init("opencode")


def run(machine: Machine, words: str, *options: str) -> str:
    """One turn of `opencode run`; what it prints."""
    env = {**machine.base_env, **QUIET}
    return machine.run(program("OpenCode"), "run", *options, env=env, stdin=words, seconds=START_SECONDS).stdout


def command(machine: Machine, name: str, text: str) -> None:
    put(machine.home / ".config" / "opencode" / "command" / f"{name}.md", text)


def hooks_of(machine: Machine) -> list[str]:
    return [hook for hook, _ in machine.hooks()]


def turns_of(machine: Machine) -> list[Turn]:
    return [*open_transcript(Path(machine.marker().transcript))]


class OpenCodeSession(Conversation):
    prompt = "ctrl+p"

    def __init__(self, machine: Machine, *options: str) -> None:
        env = {**machine.base_env, **QUIET, "TERM": "screen-256color"}
        super().__init__(machine, [str(program("OpenCode")), *options], env)

    def __enter__(self) -> OpenCodeSession:
        super().__enter__()
        self.pause(4)
        return self

    def ask(self, words: str) -> None:
        before = hooks_of(self._machine).count("Stop")
        self.submit(words)
        self._machine.wait_until(lambda: hooks_of(self._machine).count("Stop") > before, "the turn's end", seconds=40)

    def leave(self) -> None:
        self.submit("/exit")
        self.terminal.wait_for_end()


def bash(command: str) -> dict[str, Any]:
    return use_tool("bash", {"command": command, "description": "a command"})


def test_what_is_known_reaches_the_model_and_the_start_fetches_nothing(machine: Machine, chat: StandInChat) -> None:
    init(machine, "[recall]\ncore_words = 5\n")  # Has room for what is always given, and not for the rule.
    machine.save("linter-first", RULE)
    machine.save("plain", "Always answer in plain words.", "--always")
    assert ANSWER in run(machine, QUESTION)
    assert any("plain words" in text for text in chat.texts_of("system"))
    asked, *added = chat.texts_of("user")
    assert asked == QUESTION, "what comes with a prompt comes behind it"
    assert any(RULE in text for text in added)
    assert hooks_of(machine)[:2] == ["SessionStart", "UserPromptSubmit"]
    assert hooks_of(machine)[-1] == "SessionEnd"
    folder = machine.home / ".config" / "opencode"
    assert list((folder / "node_modules").iterdir()) == []


def test_what_was_typed_in_one_session_reaches_the_model_in_the_next(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    with OpenCodeSession(machine) as conversation:
        conversation.ask(RULE)
        conversation.leave()
    assert hooks_of(machine)[:2] == ["SessionStart", "UserPromptSubmit"]
    assert hooks_of(machine)[-1] == "SessionEnd", "the last capture"
    marker = machine.marker()
    database = machine.home / ".local" / "share" / "opencode" / "opencode.db"
    assert (marker.host, marker.transcript) == ("opencode", f"{database}#{marker.session_id}")
    machine.work()
    assert list_markers(machine.state.markers) == []
    assert list_markers(machine.state.markers, REFLECTED) == [marker.session_id], "mined to its end, and put away"
    machine.learned(RULE, "opencode")
    seen = len(chat.requests)
    assert ANSWER in run(machine, QUESTION)
    assert any("run the linter before you push" in text for text in chat.texts_of("system", seen))


def test_a_session_is_read_while_it_runs_and_a_commands_text_is_not_typed(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    command(machine, "greet", "Always greet $ARGUMENTS twice.\n")
    with OpenCodeSession(machine) as conversation:
        conversation.ask(RULE)
        conversation.ask("/greet Grace Hopper")
        chat.call_tools(bash("exit 3"))
        conversation.ask("Run the tests.")
        turns = turns_of(machine)
        conversation.terminal.kill()
    said = [(turn.origin, turn.text, turn.confirmed) for turn in turns if turn.role is Role.USER]
    assert said == [
        (Origin.PROMPT, RULE, True),
        (Origin.COMMAND_ARGS, "Grace Hopper", False),
        (Origin.PROMPT, "Run the tests.", True),
    ]
    assert any("Always greet Grace Hopper twice." in text for text in chat.texts_of("user"))
    assert [turn.text for turn in turns if turn.origin is Origin.TOOL_USE] == ["exit 3"]
    failed = next(turn.tool for turn in turns if turn.origin is Origin.TOOL_RESULT)
    assert failed is not None
    assert failed.is_error


def test_an_answer_that_was_typed_is_the_users(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    option = {"label": "SQLite", "description": "one file"}
    question = {"header": "Store", "question": "Where?", "options": [option]}
    chat.call_tools(use_tool("question", {"questions": [question]}))
    with OpenCodeSession(machine) as conversation:
        conversation.submit("Write the parser.")
        conversation.terminal.wait_until(lambda screen: "SQLite" in screen, "the question", seconds=40)
        for key in ("Down", "Enter"):
            conversation.pause(2)
            conversation.terminal.press(key)
        conversation.pause(2)
        conversation.submit("In Postgres, always.")
        machine.wait_until(lambda: "Stop" in hooks_of(machine), "the turn's end", seconds=40)
        turns = turns_of(machine)
        conversation.terminal.kill()
    said = [(turn.about, turn.text, turn.confirmed) for turn in turns if turn.origin is Origin.ANSWER]
    assert said == [("Where?", "In Postgres, always.", True)]


def test_a_run_without_a_person_is_recorded_and_not_mined(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    task = {"description": "look", "prompt": "Always look around twice.", "subagent_type": "general"}
    chat.call_tools(use_tool("task", task))
    assert ANSWER in run(machine, RULE)
    (session,) = list_markers(machine.state.markers)
    assert hooks_of(machine).count("UserPromptSubmit") == 1, "a sub-agent's prompt runs no hook that answers"
    machine.work()
    assert machine.entries_holding("linter") == []
    assert machine.entries_holding("look around") == []
    assert list_markers(machine.state.markers, REFLECTED) == [session]


def test_what_a_script_says_in_a_persons_session_is_not_typed(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    command(machine, "remember", "Remember $ARGUMENTS.\n")
    with OpenCodeSession(machine) as conversation:
        conversation.ask(RULE)
        conversation.leave()
    run(machine, "Never deploy on a Friday.", "--continue")
    run(machine, "that deploys are on Mondays", "--continue", "--command", "remember")
    said = [(turn.text, turn.confirmed) for turn in turns_of(machine) if turn.role is Role.USER]
    assert said[:2] == [(RULE, True), ("Never deploy on a Friday.", False)]
    assert [confirmed for _, confirmed in said[2:]] == [False]


@pytest.mark.parametrize(("options", "typed"), [(("--prompt", RULE), False), ((".",), True)])
def test_what_an_option_says_is_not_typed(
    machine: Machine, chat: StandInChat, options: tuple[str, ...], typed: bool
) -> None:
    init(machine)
    with OpenCodeSession(machine, *options) as conversation:
        if typed:
            conversation.ask(RULE)
        machine.wait_until(lambda: "Stop" in hooks_of(machine), "the turn's end", seconds=40)
        conversation.leave()
    said = [(turn.text, turn.confirmed) for turn in turns_of(machine) if turn.role is Role.USER]
    assert said == [(RULE, typed)]


def tool_results(chat: StandInChat) -> list[str]:
    """What the tools gave back to the model by the last request."""
    return [str(message["content"]) for message in chat.requests[-1]["messages"] if message["role"] == "tool"]


def test_a_guarded_call_is_refused_and_a_rule_without_a_mark_is_told(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    for name, rule in (("tags", TAGS), ("clean", CLEAN), ("make", MAKE)):
        machine.memory("save", "preferences", name, "--body", rule)
    machine.work()
    machine.memory("guard", "tags", "remind")
    machine.memory("guard", "clean", "deny")
    machine.work()
    chat.call_tools(bash("git tag v1"))
    run(machine, "Tag it.")
    assert "The user's rule" not in tool_results(chat)[0], "each call starts a process: only by the user's word"

    machine.memory("guard", "--on")
    assert not (machine.claude_folder / "settings.json").read_text().count("PreToolUse")
    chat.call_tools(*map(bash, ["git tag v1", "git tag v1", "git clean -f", "git clean -f", "touch Makefile"]))
    run(machine, "Tag it and clean up.")
    reminded, passed, denied, again, told = tool_results(chat)
    assert TAGS in reminded
    assert "run it again" in reminded
    assert TAGS not in passed
    assert CLEAN in denied
    assert denied == again
    assert MAKE in told

    machine.memory("guard", "clean", "ask")
    chat.call_tools(bash("git clean -f"), bash("git clean -f"))
    run(machine, "Clean up.")
    asked, passed = tool_results(chat)
    assert CLEAN in asked
    assert "Ask the user first" in asked
    assert CLEAN not in passed


def test_a_failure_that_was_cured_brings_the_cure(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    missing = machine.project / "settings.toml"
    machine.cured("echo", MISSING, "npm run link")
    machine.cured("read", f"File not found: {missing}", "make settings")
    machine.memory("guard", "--on")
    chat.call_tools(bash(FAILING), use_tool("read", {"filePath": str(missing)}))
    run(machine, "Build it.")
    of_the_command, of_the_tool = tool_results(chat)
    assert "What helped: `npm run link`" in of_the_command, "OpenCode calls a command that fails a success"
    assert "What helped: `make settings`" in of_the_tool, "what throws is told of by an event"


def test_after_a_compaction_the_core_is_given_anew(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    machine.save("plain", "Always answer in plain words.", "--always")
    with OpenCodeSession(machine) as conversation:
        conversation.ask("Hello there.")
        conversation.ask("/compact")
        seen = len(chat.requests)
        conversation.ask("Go on, please.")
        conversation.leave()
    assert hooks_of(machine).count("PreCompact") == 1
    assert hooks_of(machine).count("SessionStart") == 2
    assert any("plain words" in text for text in chat.texts_of("system", seen))
    summarized = json.dumps(chat.requests[seen - 1]["messages"])
    assert "context summarization agent" in summarized
    assert "Always answer in plain words" not in summarized, "else it would stand in the summary, too"


def test_what_a_model_saves_in_its_shell_waits_for_the_user(machine: Machine, chat: StandInChat) -> None:
    init(machine)
    chat.call_tools(bash(shlex.join([str(MEMORY), "save", "workflow", "releases", "--body", PROPOSAL])))
    run(machine, "Note how releases are cut.")
    (said,) = tool_results(chat)
    assert "run by OpenCode, so it is a proposal" in said
    machine.proposed()


@pytest.mark.parametrize("how", ["is gone", "hangs"])
def test_a_hook_that_fails_costs_no_prompt(machine: Machine, chat: StandInChat, how: str) -> None:
    init(machine)
    machine.memory("guard", "--on")
    launcher = Path(launcher_in(state_root(machine.base_env)))
    if how == "is gone":
        launcher.unlink()
        chat.call_tools(bash("git tag v1"), bash("exit 3"))
    else:
        launcher.write_text("#!/bin/sh\nsleep 60\n")
    assert ANSWER in run(machine, QUESTION)
    assert chat.texts_of("user")[0] == QUESTION
    assert hooks_of(machine) == []
