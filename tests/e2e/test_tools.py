"""The tools of `memory service mcp`, and `memory` itself, called by a model through the real Claude Code."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from ..support.stand_in_model import Answer, ModelRequest, Say, StandInModel, UseTool
from .machine import PROPOSAL, RULE, Machine
from .test_claude_code import RULE_WORDS
from .test_plugin import TOOL, claude, install_plugin

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ASKED = "What belongs to a release?"
TOLD = "Keep in mind how releases are cut."
SERVER = "vault"
TRIES = 6


def script(prefix: str) -> Any:
    """A model that recalls when it is asked, and saves when it is told to."""

    def rule(request: ModelRequest) -> Answer | None:
        if request.ends_with_tool_result:
            return Say("Done.")
        if f"{prefix}recall" not in request.tool_names:
            return None
        if ASKED in request.newest_text:
            return UseTool(f"{prefix}recall", {"query": "Do I run the linter before a push?"})
        if TOLD in request.newest_text:
            return UseTool(f"{prefix}save", {"kind": "workflow", "title": "Cutting releases", "text": PROPOSAL})
        return None

    return rule


def results(model: StandInModel) -> list[str]:
    """What tools gave back to the model, oldest first."""
    newest: dict[str, str] = {}
    for request in model.requests:
        for block in request.blocks:
            if block.get("type") == "tool_result":
                newest[str(block["tool_use_id"])] = json.dumps(block)
    return list(newest.values())


def headless(machine: Machine, prompt: str, *options: str) -> str:
    """One turn of `claude -p`; an exit code other than 0 fails the test."""
    return claude(machine, "-p", prompt, "--output-format", "json", *options)


def until_answered(machine: Machine, model: StandInModel, prompt: str, *options: str) -> None:
    """Until a tool gave something back: a server that is slow to start may have no tools yet at the first turn."""
    before = len(results(model))
    for _ in range(TRIES):
        headless(machine, prompt, *options)
        if len(results(model)) > before:
            return


def configured(machine: Machine) -> list[str]:
    """Options with which the client runs our server as anybody's, without the plugin."""
    program = {"command": str(Path(sys.executable).parent / "memory"), "args": ["service", "mcp"]}
    file = machine.root / "servers.json"
    file.write_text(json.dumps({"mcpServers": {SERVER: program}}))
    allowed = f"mcp__{SERVER}__recall,mcp__{SERVER}__save"
    return ["--mcp-config", str(file), "--strict-mcp-config", "--allowedTools", allowed]


def remembered(machine: Machine) -> None:
    machine.memory("save", "preferences", "linter-first", "--body", RULE)
    machine.memory("service", "worker", "--until-idle")


def check_what_came_back(machine: Machine, model: StandInModel) -> None:
    recalled, saved = results(model)
    assert RULE_WORDS in recalled
    assert "waits for review" in saved
    (path,) = machine.entries_holding(PROPOSAL)
    assert path.startswith("personal-private/_review/")
    note = machine.entries()[path]
    assert "source: agent" in note
    assert "status: pending" in note


def test_a_model_recalls_and_proposes_through_the_plugins_tools(machine: Machine, model: StandInModel) -> None:
    machine.configure("[memory]\nautostart = false\n")
    machine.init()
    remembered(machine)
    machine.memory("uninstall")
    install_plugin(machine)
    model.answer(script(TOOL))
    allowed = ["--allowedTools", f"{TOOL}recall,{TOOL}save"]
    until_answered(machine, model, ASKED, *allowed)
    until_answered(machine, model, TOLD, *allowed)
    check_what_came_back(machine, model)


def test_a_model_recalls_and_proposes_through_a_server_that_the_user_configured(
    machine: Machine, model: StandInModel
) -> None:
    machine.configure("[memory]\nautostart = false\n")
    machine.init()
    remembered(machine)
    machine.memory("uninstall")
    options = configured(machine)
    model.answer(script(f"mcp__{SERVER}__"))
    until_answered(machine, model, ASKED, *options)
    until_answered(machine, model, TOLD, *options)
    check_what_came_back(machine, model)


def test_what_a_model_saves_in_its_shell_waits_for_the_user(machine: Machine, model: StandInModel) -> None:
    machine.configure("[memory]\nautostart = false\n")
    machine.init()
    program = Path(sys.executable).parent / "memory"
    command = shlex.join([str(program), "save", "workflow", "cutting-releases", "--body", PROPOSAL])

    def rule(request: ModelRequest) -> Answer | None:
        if TOLD in request.newest_text and "Bash" in request.tool_names and not request.ends_with_tool_result:
            return UseTool("Bash", {"command": command, "description": "Save"})
        return None

    model.answer(rule)
    headless(machine, TOLD, "--allowedTools", "Bash")
    (said,) = results(model)
    assert "run by Claude Code, so it is a proposal" in said
    (path,) = machine.entries_holding(PROPOSAL)
    assert path == "personal-private/_review/cutting-releases.md"
    assert "source: agent" in machine.entries()[path]
