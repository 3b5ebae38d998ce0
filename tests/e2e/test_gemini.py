"""The extension in the real Gemini CLI: it runs our hooks and tools, and takes their answers for context."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryvault.hooks.install import launcher_in
from memoryvault.runtime.layout import state_root
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.vault.marker import list_markers
from memoryvault.vault.turn import Origin

from ..support.stand_in_gemini import ANSWER, StandInGemini, texts, tool_results, use_tool
from .install_client import program
from .machine import FAILING, MISSING, PROPOSAL, QUESTION, RULE, Conversation, Machine

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TYPED_QUESTION = QUESTION.rstrip("?")
"""The interactive client keeps a question mark for itself."""
ALWAYS = "Answer in plain language."
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}
RAN = "ran.txt"
PUSH = f"git push origin main; echo ran >> {RAN}"


@pytest.fixture
def gemini(machine: Machine) -> Iterator[StandInGemini]:
    """A model, and a machine on which Gemini CLI is set up to ask it."""
    with StandInGemini() as model:
        folder = machine.home / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps(SETTINGS))
        (folder / "trustedFolders.json").write_text(json.dumps({str(machine.project): "TRUST_FOLDER"}))
        yield model


@pytest.fixture
def ready(machine: Machine, gemini: StandInGemini) -> Machine:
    """Gemini CLI is wired, and the vault has a rule and an always-load entry."""
    machine.configure("[memory]\nautostart = false\n\n[session]\nquiet_seconds = 0\n")
    told = machine.memory("init", "--yes", "--vault", str(machine.vault), "--host", "gemini", "--json")
    assert json.loads(told)["hosts"]["gemini"]["changed"]
    machine.save("plain", ALWAYS, "--always")
    return machine


def environment(machine: Machine, model: StandInGemini) -> dict[str, str]:
    own = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_CLI_NO_RELAUNCH": "true"}
    return {**machine.base_env, **own, "TERM": "screen-256color"}


def command(*options: str) -> list[str]:
    return ["node", str(program("Gemini CLI")), *options]


def ask(machine: Machine, model: StandInGemini, words: str = QUESTION, *options: str) -> None:
    argv = command("-p", words, "--output-format", "json", *options)
    done = machine.run(*argv, env=environment(machine, model))
    assert "Hook system message" not in done.stderr, "what hooks write to standard error is not for the user"
    assert json.loads(done.stdout)["response"] == ANSWER


class GeminiSession(Conversation):
    prompt = "Type your message"

    def __init__(self, machine: Machine, model: StandInGemini, *options: str) -> None:
        super().__init__(machine, command(*options), environment(machine, model))

    def say(self, words: str) -> None:
        """Submit, and wait until the turn has ended, its hooks included."""
        before = self._ended_turns()
        self.submit(words)
        self._machine.wait_until(lambda: self._ended_turns() > before, "the end of the turn", seconds=30)
        self.pause(2)
        assert "memoryvault:" not in self.terminal.screen(), "what hooks write to standard error is not for the user"
        assert "relevant entries" not in self.terminal.screen()

    def quit(self) -> None:
        self.submit("/quit")
        for _ in range(10):
            self.pause(2)
            if not self.terminal.is_running():
                return
            self.terminal.press("Enter")  # The first one may have chosen it from the list of commands.
        self.terminal.wait_for_end()

    def _ended_turns(self) -> int:
        return self._machine.hooks().count(("Stop", "ok"))


def chats(machine: Machine) -> list[Path]:
    return sorted((machine.home / ".gemini" / "tmp").glob("*/chats/session-*.jsonl"), key=os.path.getmtime)


def test_hooks_bring_context_and_record_a_run_which_is_not_mined(ready: Machine, gemini: StandInGemini) -> None:
    ready.save("learned", RULE)
    ask(ready, gemini)
    said = "\n".join(texts(gemini.requests[-1]))
    assert ALWAYS in said
    assert RULE in said
    assert ready.hooks() == [("SessionStart", "ok"), ("UserPromptSubmit", "ok"), ("Stop", "ok"), ("SessionEnd", "ok")]
    marker = ready.marker()
    assert (marker.host, marker.transcript) == ("gemini", str(chats(ready)[0]))
    ready.let_time_pass(7200)
    ready.work()
    assert len(ready.entries_holding("run the linter")) == 1, "nobody typed there"


def test_they_run_in_a_folder_that_is_not_trusted_too(ready: Machine, gemini: StandInGemini) -> None:
    (ready.home / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(ready.project): "DO_NOT_TRUST"}))
    with GeminiSession(ready, gemini) as client:
        client.say(TYPED_QUESTION)
    assert any(ALWAYS in text for text in texts(gemini.requests[-1]))


def test_what_was_typed_in_one_session_reaches_the_model_in_the_next(ready: Machine, gemini: StandInGemini) -> None:
    with GeminiSession(ready, gemini) as client:
        client.say(RULE)
        client.quit()
    ends = [result for hook, result in ready.hooks() if hook == "SessionEnd"]
    assert ends == ["ok"] * len(ends) != [], "it may be told twice"
    ready.work()
    (typed,) = (turn for turn in open_transcript(chats(ready)[0]) if turn.origin is Origin.PROMPT)
    assert (typed.text, typed.confirmed, typed.cwd) == (RULE, True, str(ready.project))
    ready.learned(RULE, "gemini")
    with GeminiSession(ready, gemini) as client:
        client.say(TYPED_QUESTION)
    assert any("run the linter before you push" in text for text in texts(gemini.requests[-1])[1:])


def test_after_clear_a_prompt_brings_the_opening_and_its_chat_is_read(ready: Machine, gemini: StandInGemini) -> None:
    with GeminiSession(ready, gemini) as client:
        client.say("Good morning.")
        assert any(ALWAYS in text for text in texts(gemini.requests[-1]))
        client.submit("/clear")
        client.terminal.wait_until(lambda screen: ANSWER not in screen, "the screen to be cleared")
        client.pause(4)
        client.say(RULE)
        request = "\n".join(texts(gemini.requests[-1]))
        assert "Good morning" not in request
        assert ALWAYS in request
        client.quit()
    assert len(list_markers(ready.state.markers)) == len(chats(ready)) == 2
    last = max(chats(ready), key=lambda chat: RULE in chat.read_text())
    assert [turn.confirmed for turn in open_transcript(last) if turn.origin is Origin.PROMPT] == [True]


def test_a_session_that_is_gone_on_with_is_read_once(ready: Machine, gemini: StandInGemini) -> None:
    for words, options in ((RULE, ()), ("Never on Fridays.", ("--resume", "latest"))):
        with GeminiSession(ready, gemini, *options) as client:
            if options:
                client.terminal.wait_until(lambda screen: RULE in screen, "the session from before", seconds=30)
                client.pause(4)
            client.say(words)
            client.quit()
    # In another minute than the first start the program leaves a second file, without a prompt, of the same session.
    (chat,) = (each for each in chats(ready) if RULE in each.read_text())
    said = [(turn.text, turn.confirmed) for turn in open_transcript(chat) if turn.origin is Origin.PROMPT]
    assert said == [(RULE, True), ("Never on Fridays.", True)]
    assert list_markers(ready.state.markers) == [open_transcript(chat).header().session]


def test_a_cancelled_turn_says_nothing_twice(ready: Machine, gemini: StandInGemini) -> None:
    def rule(request: dict[str, Any]) -> dict[str, Any] | None:
        ask_for = "Please list the files." in texts(request)[-1] or "Please list the files." in texts(request)[-2]
        return use_tool("run_shell_command", {"command": "touch it", "description": "x"}) if ask_for else None

    gemini.rule = rule
    with GeminiSession(ready, gemini) as client:
        client.say(RULE)
        client.submit("Please list the files.")
        client.terminal.wait_until(lambda screen: "Allow" in screen, "the question of permission", seconds=30)
        client.pause(1)
        client.terminal.press("Escape")
        client.terminal.wait_until(lambda screen: "cancelled" in screen.lower(), "the cancelled turn")
        client.pause(2)
        client.say("Never mind.")
        client.quit()
    (chat,) = chats(ready)
    assert chat.read_text().count(json.dumps(RULE)) > 1, "the program has written it again"
    said = [turn.text for turn in open_transcript(chat) if turn.origin is Origin.PROMPT]
    assert said == [RULE, "Please list the files.", "Never mind."]


def push_twice(model: StandInGemini) -> None:
    """A model that pushes, pushes again whatever came of it, and ends."""
    push = use_tool("run_shell_command", {"command": PUSH, "description": "Push"})
    model.rule = lambda request: push if len(tool_results(request)) < 2 else None


def pushed(machine: Machine, model: StandInGemini) -> tuple[list[str], int]:
    """What the calls of one turn gave back, and how often the command ran."""
    (machine.project / RAN).unlink(missing_ok=True)
    ask(machine, model, "Please publish the branch.", "--approval-mode", "yolo")
    ran = machine.project / RAN
    return tool_results(model.requests[-1]), ran.read_text().count("ran") if ran.exists() else 0


def test_a_rule_is_told_with_the_result_reminds_once_or_refuses_always(ready: Machine, gemini: StandInGemini) -> None:
    ready.memory("save", "preferences", "no-push", "--body", "Never push to main.")
    ready.memory("vault", "reindex")
    ready.memory("guard", "--on")
    push_twice(gemini)
    (first, second), ran = pushed(ready, gemini)
    assert ran == 2
    assert "Never push to main." in first
    assert "Never push to main." not in second, "once a session"
    ready.memory("guard", "no-push", "remind")
    (first, second), ran = pushed(ready, gemini)
    assert ran == 1, "the second call passes"
    assert "Never push to main." in first
    assert "run it again" in first
    assert "Never push to main." not in second
    ready.memory("guard", "no-push", "deny")
    results, ran = pushed(ready, gemini)
    assert ran == 0
    assert ["Never push to main." in each for each in results] == [True, True]
    ready.memory("guard", "no-push", "ask")
    (first, second), ran = pushed(ready, gemini)
    assert ran == 1, "with -p the program would wait for ever for somebody's answer"
    assert "Ask the user first" in first
    assert "Never push to main." not in second
    ready.memory("guard", "--off")
    _, ran = pushed(ready, gemini)
    assert ran == 2


def test_a_person_is_asked_and_told_why(ready: Machine, gemini: StandInGemini) -> None:
    ready.memory("save", "preferences", "no-push", "--body", "Never push to main.")
    ready.memory("vault", "reindex")
    ready.memory("guard", "--on")
    ready.memory("guard", "no-push", "ask")
    push_twice(gemini)
    with GeminiSession(ready, gemini, "--approval-mode", "yolo") as client:
        client.submit("Please publish the branch.")
        screen = client.terminal.wait_until(lambda screen: "Allow execution" in screen, "the question", seconds=30)
    assert "Never push to main." in screen
    assert not (ready.project / RAN).exists()


def test_a_command_that_fails_as_before_brings_what_helped(ready: Machine, gemini: StandInGemini) -> None:
    ready.cured("echo", MISSING, "npm run link")
    ready.memory("guard", "--on")
    fail = use_tool("run_shell_command", {"command": FAILING, "description": "Build"})
    gemini.rule = lambda request: None if tool_results(request) else fail
    ask(ready, gemini, "Please build.", "--approval-mode", "yolo")
    (result,) = tool_results(gemini.requests[-1])
    assert "What helped: `npm run link`" in result


def test_a_model_recalls_and_proposes_through_the_extensions_tools(ready: Machine, gemini: StandInGemini) -> None:
    ready.save("learned", RULE)
    gemini.call_tools(
        use_tool("mcp_memory_recall", {"query": QUESTION}),
        use_tool("mcp_memory_save", {"kind": "workflow", "title": "Releases", "text": PROPOSAL}),
    )
    ask(ready, gemini, "Please look.", "--approval-mode", "yolo")
    recalled, saved = tool_results(gemini.requests[-1])
    assert "run the linter before you push" in recalled
    assert "waits for review" in saved
    ready.proposed()


def test_a_hook_that_is_gone_costs_no_prompt_and_no_call(ready: Machine, gemini: StandInGemini) -> None:
    ready.memory("guard", "--on")
    launcher = Path(launcher_in(state_root(ready.base_env)))
    launcher.parent.rename(launcher.parent.with_name("away"))
    push_twice(gemini)
    _, ran = pushed(ready, gemini)
    assert ran == 2
    assert ready.hooks() == []
