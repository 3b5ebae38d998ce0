"""Rules at tool calls, through the real Claude Code: told with a call's result, refused once, refused always."""

import pytest

from ..support.stand_in_model import Answer, ModelRequest, Say, StandInModel, UseTool
from .machine import FAILING, MISSING, Machine
from .test_plugin import claude

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RULE = "Never push to main."
ASKED = "Please publish the branch."
RAN = "ran.txt"
PUSH = f"git push origin main; echo ran >> {RAN}"


def results(request: ModelRequest) -> list[str]:
    """What the tool calls of the conversation gave back."""
    return [
        text for block, text in zip(request.blocks, request.texts, strict=True) if block.get("type") == "tool_result"
    ]


def push_twice(model: StandInModel) -> None:
    """A model that pushes, pushes again whatever came of it, and ends."""

    def script(request: ModelRequest) -> Answer | None:
        if "Bash" not in request.tool_names or ASKED not in request.conversation_text:
            return None
        return UseTool("Bash", {"command": PUSH, "description": "Push"}) if len(results(request)) < 2 else Say("Done.")

    model.rule = script


def run(machine: Machine, model: StandInModel) -> tuple[list[ModelRequest], int]:
    """One turn; the requests after each tool call, and how often the command ran."""
    (machine.project / RAN).unlink(missing_ok=True)
    seen = len(model.requests)
    claude(machine, "-p", ASKED, "--output-format", "json", "--allowedTools", "Bash")
    told = [request for request in model.requests[seen:] if results(request)]
    ran = machine.project / RAN
    return told, ran.read_text().count("ran") if ran.exists() else 0


@pytest.fixture
def ready(machine: Machine, model: StandInModel) -> Machine:
    """The rule is in the vault, and the hooks of tool calls are wired."""
    # The start has no room for the rule.
    machine.configure("[memory]\nautostart = false\n[recall]\ncore_words = 1\n")
    machine.init()
    machine.memory("save", "preferences", "no-push", "--body", RULE)
    machine.memory("vault", "reindex")
    machine.memory("guard", "--on")
    push_twice(model)
    return machine


def test_a_rule_is_told_with_the_result_reminds_once_or_refuses_always(ready: Machine, model: StandInModel) -> None:
    told, ran = run(ready, model)
    assert ran == 2
    assert RULE in told[0].conversation_text, "an unmarked rule is in the model's next request"
    assert told[-1].conversation_text.count(RULE) == 1, "once a session"

    ready.memory("guard", "no-push", "remind")
    told, ran = run(ready, model)
    assert ran == 1, "the second call passes"
    first, second = results(told[-1])
    assert RULE in first
    assert "run it again" in first
    assert RULE not in second

    ready.memory("guard", "no-push", "deny")
    told, ran = run(ready, model)
    assert ran == 0
    assert [RULE in one for one in results(told[-1])] == [True, True]

    ready.memory("guard", "--off")
    _, ran = run(ready, model)
    assert ran == 2


def test_a_failure_that_was_cured_brings_the_cure_in_the_next_session(ready: Machine, model: StandInModel) -> None:
    ready.cured("echo", MISSING, "npm run link")

    def script(request: ModelRequest) -> Answer | None:
        if "Bash" not in request.tool_names or ASKED not in request.conversation_text:
            return None
        return Say("Done.") if results(request) else UseTool("Bash", {"command": FAILING, "description": "Build"})

    model.rule = script
    told, _ = run(ready, model)
    assert "What helped: `npm run link`" in told[0].conversation_text
