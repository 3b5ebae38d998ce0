"""The plugin in the real client: installed from a local marketplace, its hooks, its tools and its skill."""

import json
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ..support.stand_in_model import Answer, ModelRequest, Say, StandInModel, UseTool
from .install_client import REPOSITORY, client_binary
from .machine import MEMORY, PROPOSAL, RULE, SETTINGS_BEFORE, Machine
from .test_claude_code import RULE_WORDS, turn_about

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PLUGIN = "memory@memoryvault"
TOOL = "mcp__plugin_memory_memory__"
TOOLS_TRIES = 12


def claude(machine: Machine, *arguments: str, cwd: Path | None = None) -> str:
    """Run a command of the client that needs no terminal; its stdout."""
    # Else it connects to MCP servers beside the turn, which may be over before a server has started.
    env = {**machine.client_env(), "MCP_CONNECTION_NONBLOCKING": "0"}
    return machine.run(client_binary(), *arguments, env=env, cwd=cwd).stdout


def marketplace(machine: Machine) -> Path:
    """What a release has in its folder of the marketplace and the plugin."""
    folder = machine.root / "market"
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if name.split("/")[0] in (".claude-plugin", "plugin"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / name, folder / name)
    return folder


def install_plugin(machine: Machine) -> None:
    folder = marketplace(machine)
    for part in (folder, folder / "plugin"):
        assert "warning" not in claude(machine, "plugin", "validate", str(part)), "as of a field that it does not know"
    claude(machine, "plugin", "marketplace", "add", str(folder))
    claude(machine, "plugin", "install", PLUGIN)


def offered_tools(model: StandInModel) -> set[str]:
    return {name.removeprefix(TOOL) for name in model.requests[-1].tool_names if name.startswith(TOOL)}


def outcomes(machine: Machine, event: str) -> list[str]:
    return [record["result"] for record in machine.log_records() if record.get("hook") == event]


def test_the_plugins_hooks_fire_and_its_tools_and_skill_are_offered(machine: Machine, model: StandInModel) -> None:
    machine.init()
    machine.memory("uninstall")
    assert machine.settings_file.read_text() == SETTINGS_BEFORE
    install_plugin(machine)
    with machine.open_client() as session:
        session.ask(RULE)
        # The client connects to the tools beside the conversation; the first turns may go without.
        tries = 1
        while not offered_tools(model) and tries < TOOLS_TRIES:
            time.sleep(1)
            tries += 1
            session.ask(f"This is greeting number {tries}.")
        session.exit()
    assert outcomes(machine, "SessionStart") == outcomes(machine, "SessionEnd") == ["ok"]
    assert outcomes(machine, "UserPromptSubmit") == outcomes(machine, "Stop") == ["ok"] * tries
    assert "memory:memory" in json.dumps(model.wait_for(turn_about(RULE_WORDS)).body), "the skill"
    assert {"recall", "save", "list", "read_topic", "write_topic"} <= offered_tools(model)
    machine.work()
    assert len(machine.entries_holding(RULE_WORDS)) == 1


def test_whoever_opens_the_repository_is_asked_about_no_server(machine: Machine) -> None:
    folder = marketplace(machine)
    assert "No MCP servers configured" in claude(machine, "mcp", "list", cwd=folder)
    (folder / ".mcp.json").write_bytes((folder / "plugin" / ".mcp.json").read_bytes())
    assert "CLAUDE_PLUGIN_ROOT" in claude(machine, "mcp", "list", cwd=folder), "what it would be at the root"


ASKED = "What belongs to a release?"
TOLD = "Keep in mind how releases are cut."
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
    return claude(machine, "-p", prompt, "--output-format", "json", *options)


def until_answered(machine: Machine, model: StandInModel, prompt: str, *options: str) -> None:
    """Until a tool gave something back: a server that is slow to start may have no tools yet at the first turn."""
    before = len(results(model))
    for _ in range(TRIES):
        headless(machine, prompt, *options)
        if len(results(model)) > before:
            return


def test_a_model_recalls_and_proposes_through_the_plugins_tools(machine: Machine, model: StandInModel) -> None:
    machine.init(autostart=False)
    machine.save("linter-first", RULE)
    machine.memory("uninstall")
    install_plugin(machine)
    model.rule = script(TOOL)
    allowed = ["--allowedTools", f"{TOOL}recall,{TOOL}save"]
    until_answered(machine, model, ASKED, *allowed)
    until_answered(machine, model, TOLD, *allowed)
    recalled, saved = results(model)
    assert RULE_WORDS in recalled
    assert "waits for review" in saved
    machine.proposed()


def test_what_a_model_saves_in_its_shell_waits_for_the_user(machine: Machine, model: StandInModel) -> None:
    machine.init(autostart=False)
    command = shlex.join([str(MEMORY), "save", "workflow", "cutting-releases", "--body", PROPOSAL])

    def rule(request: ModelRequest) -> Answer | None:
        if TOLD in request.newest_text and "Bash" in request.tool_names and not request.ends_with_tool_result:
            return UseTool("Bash", {"command": command, "description": "Save"})
        return None

    model.rule = rule
    headless(machine, TOLD, "--allowedTools", "Bash")
    (said,) = results(model)
    assert "run by Claude Code, so it is a proposal" in said
    machine.proposed()
