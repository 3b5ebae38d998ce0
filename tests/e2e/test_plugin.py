"""The plugin in the real client: installed from a local marketplace, its hooks, its tools and its skill."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ..support.stand_in_model import StandInModel
from .install_client import REPOSITORY, client_binary
from .machine import RULE, SETTINGS_BEFORE, Machine
from .test_claude_code import RULE_WORDS, turn_about

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PLUGIN = "memory@memoryvault"
TOOL = "mcp__plugin_memory_memory__"
TOOLS_TRIES = 12


def claude(machine: Machine, *arguments: str, cwd: Path | None = None) -> str:
    """Run a command of the client that needs no terminal; its stdout."""
    done = subprocess.run(
        [str(client_binary()), *arguments],
        # Else it connects to MCP servers beside the turn, which may be over before a server has started.
        env={**machine.client_env(), "MCP_CONNECTION_NONBLOCKING": "0"},
        cwd=cwd or machine.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
    return done.stdout


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
    claude(machine, "plugin", "validate", str(folder))
    claude(machine, "plugin", "marketplace", "add", str(folder))
    claude(machine, "plugin", "install", PLUGIN)


def offered_tools(model: StandInModel) -> set[str]:
    """Our tools in the newest request."""
    return {name.removeprefix(TOOL) for name in model.requests[-1].tool_names if name.startswith(TOOL)}


def outcomes(machine: Machine, event: str) -> list[str]:
    return [record["result"] for record in machine.log_records() if record.get("hook") == event]


def test_the_hooks_fire_from_the_plugin_alone_and_its_tools_and_skill_are_offered(
    machine: Machine, model: StandInModel
) -> None:
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
    machine.memory("service", "worker", "--until-idle")
    assert len(machine.entries_holding(RULE_WORDS)) == 1


def test_installed_twice_each_event_is_acted_upon_once(machine: Machine, model: StandInModel) -> None:
    machine.init()
    machine.memory("save", "preferences", "linter-first", "--body", RULE)
    machine.memory("service", "worker", "--until-idle")
    install_plugin(machine)
    question = "Do I have to run the linter before I push to main?"
    with machine.open_client() as session:
        session.ask(question)
        session.exit()
    request = model.wait_for(turn_about(question))
    assert request.conversation_text.count(RULE_WORDS) == 1
    assert sorted(outcomes(machine, "UserPromptSubmit")) == ["duplicate", "ok"]
    assert sorted(outcomes(machine, "SessionStart")) == ["duplicate", "ok"]
    assert len(machine.entries_holding(RULE_WORDS)) == 1


def test_whoever_opens_the_repository_is_asked_about_no_server(machine: Machine) -> None:
    folder = marketplace(machine)
    assert "No MCP servers configured" in claude(machine, "mcp", "list", cwd=folder)
    (folder / ".mcp.json").write_bytes((folder / "plugin" / ".mcp.json").read_bytes())
    assert "CLAUDE_PLUGIN_ROOT" in claude(machine, "mcp", "list", cwd=folder), "what it would be at the root"
