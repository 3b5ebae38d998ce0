"""The loop through the real Claude Code client: typed words in, remembered words in the model's request."""

import json
import threading
from typing import Any

import pytest

from ..support.stand_in_model import Answer, ModelRequest, Say, StandInModel, UseTool
from .hook_runs import HookListener
from .machine import QUESTION, RULE, ClientSession, Machine

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RULE_WORDS = "run the linter before you push"
SIDEWAYS = "My commits are ready to be merged upstream. Which checks should happen first?"
UNRELATED = "What is the capital of Portugal?"


def turn_about(words: str) -> Any:
    """Accepts the request of the main conversation whose newest user message holds `words`."""

    def accepts(request: ModelRequest) -> bool:
        return bool(request.tool_names) and words in request.newest_text

    return accepts


def typed_prompts(session: ClientSession) -> list[str]:
    return [
        record["message"]["content"]
        for record in session.records()
        if record.get("type") == "user" and record.get("promptSource") == "typed"
    ]


def ask_sideways(machine: Machine, session: ClientSession) -> None:
    """Ask; once more where the machine was too busy for an answer by meaning within the hook's budget."""
    for _ in range(3):
        session.ask(SIDEWAYS)
        last = [record for record in machine.log_records() if record.get("hook") == "UserPromptSubmit"][-1]
        if not last.get("degraded"):
            return


def test_what_was_typed_in_one_session_reaches_the_model_in_others(
    machine: Machine, model: StandInModel, hook_runs: HookListener
) -> None:
    machine.init()
    with machine.open_client() as open_before:
        open_before.ask("hello")
        with machine.open_client() as first:
            first.ask(RULE)
            first.exit()
        assert typed_prompts(first) == [RULE]
        machine.work()
        assert len(machine.entries_holding(RULE_WORDS)) == 1
        machine.wait_for_warm_recall()
        seen = len(model.requests)
        open_before.ask(UNRELATED)
        ask_sideways(machine, open_before)
        open_before.exit()
    unrelated = model.wait_for(turn_about(UNRELATED), after=seen)
    assert RULE_WORDS not in json.dumps(unrelated.body)
    sideways = [request for request in model.requests[seen:] if turn_about(SIDEWAYS)(request)][-1]
    assert RULE_WORDS in sideways.conversation_text
    # Not through the user's words: the client itself says which hook brought it.
    brought = [block for block in sideways.texts if RULE_WORDS in block]
    assert all("UserPromptSubmit hook" in block for block in brought)

    seen = len(model.requests)
    with machine.open_client() as later:
        later.ask(UNRELATED)
        later.exit()
    started = model.wait_for(turn_about(UNRELATED), after=seen)
    brought = [block for block in started.texts if RULE_WORDS in block]
    assert brought
    assert [block[:200] for block in brought if "SessionStart" not in block] == []
    assert {run.event for run in hook_runs.runs} >= {"SessionStart", "UserPromptSubmit", "Stop"}


def test_what_was_recalled_is_not_mined_again(machine: Machine, model: StandInModel) -> None:
    machine.init()
    machine.save("linter-first", RULE)
    with machine.open_client() as session:
        session.ask(QUESTION)
        session.exit()
    assert RULE_WORDS in model.wait_for(turn_about(QUESTION)).conversation_text
    before = machine.entries()
    machine.work()
    assert machine.entries() == before


def test_the_feedback_of_a_rejected_tool_call_is_remembered(machine: Machine, model: StandInModel) -> None:
    machine.init()
    feedback = "no, never force-push without asking me first"
    command = "git push --force origin main"

    def script(request: ModelRequest) -> Answer | None:
        if request.ends_with_tool_result:
            return Say("I stopped.")
        if turn_about("publish the release notes")(request):
            return UseTool("Bash", {"command": command, "description": "Publish"}, "I will publish them.")
        return None

    model.rule = script
    with machine.open_client() as session:
        session.submit("Please publish the release notes.")
        session.reject_tool(feedback)
        session.exit()
    rejected = model.wait_for(lambda request: request.ends_with_tool_result)
    assert feedback in rejected.newest_text
    machine.work()
    (entry,) = machine.entries_holding("force-push without asking")
    assert "_inbox" not in entry
    others = {*machine.entries_holding("publish the release notes")} - {entry}
    assert all("_inbox" in path for path in others), "an order of the day is put before nobody"


def test_a_session_that_was_killed_is_recovered(machine: Machine, model: StandInModel) -> None:
    # No worker in the background: the one below is the first that ever sees the session.
    machine.init(autostart=False)
    over = threading.Event()

    def hang(request: ModelRequest) -> None:
        if turn_about(RULE_WORDS)(request):
            over.wait(60)

    model.rule = hang
    with machine.open_client() as killed:
        killed.submit(RULE)
        model.wait_for(turn_about(RULE_WORDS))
        machine.wait_until(lambda: typed_prompts(killed) == [RULE], "the words in the transcript", seconds=10)
        killed.kill()
    over.set()
    assert killed.ended_turns() == 0
    assert not machine.entries_holding(RULE_WORDS)

    machine.let_time_pass(7200)
    machine.work()
    assert len(machine.entries_holding(RULE_WORDS)) == 1

    machine.configure("[memory]\nautostart = true\n")
    machine.init()
    machine.work()
    seen = len(model.requests)
    with machine.open_client() as second:
        machine.wait_for_warm_recall()
        ask_sideways(machine, second)
        second.exit()
    sideways = [request for request in model.requests[seen:] if turn_about(SIDEWAYS)(request)][-1]
    assert RULE_WORDS in sideways.conversation_text


def test_the_words_of_a_sub_agent_are_not_mined(machine: Machine, model: StandInModel) -> None:
    machine.init()
    order = "Always run the survey twice before you answer. List the tests."
    answer = "You must always keep the tests in the folder checks. Never skip the survey."

    def script(request: ModelRequest) -> Answer | None:
        if request.ends_with_tool_result:
            return Say("There is nothing to report.")
        if turn_about("look at the tests")(request):
            call = {"description": "Survey tests", "prompt": order, "subagent_type": "general-purpose"}
            return UseTool("Agent", call, "I will ask another agent.")
        if turn_about("run the survey twice")(request):
            return Say(answer)
        return None

    model.rule = script
    with machine.open_client() as session:
        session.ask("Please look at the tests.")
        session.ask(RULE)
        session.exit()
    model.wait_for(turn_about("run the survey twice"))
    said = json.dumps(session.subagent_records())
    assert order in said
    assert answer in said
    machine.work()
    assert machine.entries_holding(RULE_WORDS), "the user's own words of the same session are the control"
    for words in ("survey", "folder checks"):
        assert machine.entries_holding(words) == []


def test_words_typed_while_the_agent_works_and_answers_to_questions_are_remembered(
    machine: Machine, model: StandInModel
) -> None:
    machine.init()
    (machine.project / "notes.txt").write_text("nothing\n")
    typed_meanwhile = "Never touch the generated files by hand."
    answered = "Always use two spaces in this repository."
    go_on = threading.Event()

    def script(request: ModelRequest) -> Answer | None:
        if request.ends_with_tool_result:
            return Say("Done.")
        if turn_about("read the notes")(request):
            go_on.wait(15)
            return UseTool("Read", {"file_path": str(machine.project / "notes.txt")}, "Reading them.")
        if turn_about("format the code")(request):
            options = [{"label": "Tabs", "description": "wide"}, {"label": "Eight", "description": "wider"}]
            question = {"question": "Which indent?", "header": "Indent", "multiSelect": False, "options": options}
            return UseTool("AskUserQuestion", {"questions": [question]})
        return None

    model.rule = script
    with machine.open_client() as session:
        before = session.ended_turns()
        session.submit("Please read the notes.")
        model.wait_for(turn_about("read the notes"))
        session.submit(typed_meanwhile)
        session.terminal.wait_until(lambda screen: "edit queued messages" in screen, "the queued words")
        go_on.set()
        session.wait_for_turn(before)
        before = session.ended_turns()
        session.submit("Please format the code.")
        session.terminal.wait_until(lambda screen: "Which indent?" in screen, "the agent's question")
        session.choose("❯ 3.")
        session.submit(answered)
        session.wait_for_turn(before)
        session.exit()
    assert typed_prompts(session) == ["Please read the notes.", "Please format the code."]
    machine.work()
    assert len(machine.entries_holding(typed_meanwhile.rstrip("."))) == 1
    assert len(machine.entries_holding(answered.rstrip("."))) == 1


def test_notes_that_the_client_loads_itself_are_not_told_the_model_twice(machine: Machine, model: StandInModel) -> None:
    machine.init(autostart=False)
    note = ("--type", "project", "--description", "How the orchard is watered", "--body", "With the long hose.")
    machine.memory("vault", "topics", "write", "watering", *note)
    folder = machine.vault / "personal-projects" / "orchard" / "memory"
    words = "How the orchard is watered"

    def told() -> int:
        seen = len(model.requests)
        with machine.open_client() as session:
            session.ask("Good morning.")
            session.exit()
        return model.wait_for(turn_about("Good morning."), after=seen).conversation_text.count(words)

    assert told() == 1, "by our block"
    settings = json.loads(machine.settings_file.read_text())
    machine.settings_file.write_text(json.dumps({**settings, "autoMemoryDirectory": str(folder)}))
    assert told() == 1, "by the client itself"
