"""The real client as the miner: what it is told on its command line is what it knows."""

import json
import os
import shlex

import pytest

from ...pipelines.reading.model_answers import answer_schema, system_prompt
from ...runtime.settings import load_settings
from ...services.completion import completer_of
from ...sources.completion import Completion, CompletionFailed, CompletionRequest
from ..support.stand_in_model import Say, StandInModel, UseTool
from .install_client import client_binary
from .machine import Machine, model_env

pytestmark = pytest.mark.e2e

FOUND: dict[str, list[str]] = {"candidates": []}
PROMPT = '{"turn": 1, "by": "user", "text": "hello"}'
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")


def ask(machine: Machine, model: StandInModel) -> Completion:
    """As the mining child does, with a wrapper for what stands in for the user's login."""
    wrapper, config = machine.root / "claude", machine.root / "config.toml"
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in model_env(model.url).items())
    wrapper.write_text(f'#!/bin/sh\nexport {exports}\nexec {shlex.quote(str(client_binary()))} "$@"\n')
    wrapper.chmod(0o755)
    config.write_text(f'[reflection]\nminer = "claude"\nagent_command = "{wrapper}"\n')
    machine.vault.mkdir()
    ours = {"CONFIG": config, "STATE_DIR": machine.root / "state", "VAULT_PATH": machine.vault}
    settings = load_settings({**machine.base_env, **{f"MEMORY_{name}": str(path) for name, path in ours.items()}})
    settings.state.ensure()
    completer = completer_of(settings)
    assert completer is not None
    return completer.complete(CompletionRequest(PROMPT, system_prompt(), answer_schema(), 1500, 120))


def test_the_real_client_answers_by_the_schema_without_hook_or_session(machine: Machine, model: StandInModel) -> None:
    fired = machine.root / "fired"
    fired.mkdir()
    hooks = {event: [{"hooks": [{"type": "command", "command": f"touch {fired}/{event}"}]}] for event in EVENTS}
    machine.settings_file.write_text(json.dumps({"hooks": hooks}))
    (machine.claude_folder / "CLAUDE.md").write_text("Always answer in rhymes.")
    model.rule = lambda request: Say("Done.") if request.ends_with_tool_result else UseTool("StructuredOutput", FOUND)
    assert ask(machine, model).value == FOUND
    request = model.requests[0]
    assert request.tool_names == {"StructuredOutput"}
    assert request.body["max_tokens"] == 1500
    assert request.body.get("thinking", {}).get("type") != "enabled"
    assert "name what is worth remembering" in request.system_text
    assert PROMPT in "".join(request.texts)
    assert "rhymes" not in json.dumps(request.body)
    assert os.listdir(fired) == []
    assert list(machine.claude_folder.glob("projects/**/*.jsonl")) == []


def test_a_client_whose_model_ignores_the_schema_is_a_failed_completion(machine: Machine, model: StandInModel) -> None:
    with pytest.raises(CompletionFailed):
        ask(machine, model)
