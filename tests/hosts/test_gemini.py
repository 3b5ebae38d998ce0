"""Gemini CLI: its events and answers, its extension, and rules at its tool calls."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryvault.cli.context import Context
from memoryvault.cli.doctor import _other_agents
from memoryvault.hooks import install as install_module
from memoryvault.hooks.extension import extension_folder
from memoryvault.hooks.install import HostFileUnwritable, launcher_in
from memoryvault.hooks.skill import install_skill, remove_skill
from memoryvault.hooks.wiring import (
    WIRINGS,
    hosts_with_actions,
    install_for,
    needs_renewal,
    uninstall_for,
    wire_actions,
    wired_events,
)
from memoryvault.runtime.atomic_file import replace_file
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.indexing import reconcile_now
from memoryvault.sources.transcripts.hosts import host_of, open_transcript
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.files import put
from memoryvault.tests.support.shared_data import shared_files
from memoryvault.vault.turn import Origin

from ..hooks.support import SESSION, Sandbox, marker_of
from .payloads import RECALLED, gemini, places, spooled

pytestmark = pytest.mark.hurried

ALWAYS = "plain language"
PUSH = {"command": "git push origin main", "description": "push"}
REFUSES = "Never push to main."


def run(sandbox: Sandbox, event: str, **fields: object) -> dict[str, Any]:
    """What the hook prints at an event of Gemini's: always an object, or the host shows its user standard error."""
    done = sandbox.run(event, gemini(sandbox, event, **fields), "--host", "gemini")
    return dict(json.loads(done.stdout))


def said(sandbox: Sandbox, event: str, **fields: object) -> str:
    """The context that it brings, and no key more."""
    answer = run(sandbox, event, **fields)
    assert set(answer) <= {"hookSpecificOutput"}
    output = answer.get("hookSpecificOutput", {})
    assert set(output) <= {"additionalContext"}
    return str(output.get("additionalContext", ""))


def test_start_and_prompt_bring_context_and_are_recorded(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    assert ALWAYS in said(sandbox, "SessionStart", source="startup")
    asked = said(sandbox, "BeforeAgent", prompt="when do we ship?")
    assert RECALLED in asked
    assert ALWAYS not in asked
    assert (marker_of(sandbox).host, marker_of(sandbox).transcript) == ("gemini", str(places(sandbox)["gemini"]))
    assert marker_of(sandbox).cwd == str(sandbox.project)


@pytest.mark.slow
@pytest.mark.alone
def test_after_clear_a_prompt_brings_what_a_session_starts_with(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    assert said(sandbox, "SessionStart", source="clear") == "", "the host would lose it"
    first = said(sandbox, "BeforeAgent", prompt="when do we ship?")
    assert ALWAYS in first
    assert RECALLED in first
    assert ALWAYS not in said(sandbox, "BeforeAgent", prompt="and then?", timestamp="2026-03-01T10:05:00.000Z")


def test_a_turns_end_says_nothing_lest_the_host_goes_on_with_it(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    for again in (False, True):
        assert run(sandbox, "AfterAgent", prompt="x", prompt_response="Noted.", stop_hook_active=again) == {}
    assert spooled(sandbox) >= 1


def test_a_session_that_is_gone_on_with_is_recorded_by_the_chat_that_it_is_written_to(
    sandbox: Sandbox, recall_requests: list[Any]
) -> None:
    """At its start the host names a chat of the present minute, into which nothing goes."""
    unused = places(sandbox)["gemini"].with_name(f"session-2026-03-01T11-30-{SESSION[:8]}.jsonl")
    assert ALWAYS in said(sandbox, "SessionStart", source="resume", transcript_path=str(unused))
    run(sandbox, "SessionEnd", reason="exit", transcript_path=str(unused))
    said(sandbox, "BeforeAgent", prompt="when do we ship?")
    assert marker_of(sandbox).transcript == str(places(sandbox)["gemini"])


@pytest.mark.parametrize(
    "prompt",
    [
        "<hook_context>Answer in French. &lt;b&gt;</hook_context>\n\nwhen do we ship?",
        "when do we ship?\n--- Content from referenced files ---\nContent from @a.txt:\nship it\n--- End",
    ],
)
def test_a_question_is_what_was_typed(sandbox: Sandbox, recall_requests: list[Any], prompt: str) -> None:
    said(sandbox, "SessionStart", source="startup")
    said(sandbox, "BeforeAgent", prompt=prompt)
    assert recall_requests[-1]["text"] == "when do we ship?"


def rule(sandbox: Sandbox, guard: str = "") -> None:
    sandbox.entry("personal-private/preferences/push.md", REFUSES, guard=guard)
    reconcile_now(load_settings(sandbox.env))


def before(sandbox: Sandbox, **fields: object) -> dict[str, Any]:
    return run(sandbox, "BeforeTool", tool_name="run_shell_command", tool_input=PUSH, **fields)


def refusal(sandbox: Sandbox) -> str:
    refused = before(sandbox)
    assert (refused["decision"], REFUSES in refused["reason"]) == ("deny", True)
    return str(refused["reason"])


def after(sandbox: Sandbox, output: str = "Output: (empty)", command: str = PUSH["command"]) -> str:
    content = f"<untrusted_context>\n{output}\nProcess Group PGID: 4242\n</untrusted_context>"
    response = {"llmContent": content, "returnDisplay": ""}
    arguments = {"command": command}
    return said(sandbox, "AfterTool", tool_name="run_shell_command", tool_input=arguments, tool_response=response)


def test_an_unmarked_rule_comes_with_the_result_once(sandbox: Sandbox) -> None:
    rule(sandbox)
    assert before(sandbox) == {}
    assert REFUSES in after(sandbox)
    assert after(sandbox) == ""


def test_remind_refuses_once_and_deny_always(sandbox: Sandbox) -> None:
    rule(sandbox, "remind")
    assert "run it again" in refusal(sandbox)
    assert before(sandbox) == {}
    assert after(sandbox) == ""
    rule(sandbox, "deny")
    assert [before(sandbox)["decision"] for _ in range(2)] == ["deny", "deny"]


def test_ask_has_the_host_ask_where_somebody_typed_and_else_refuses_once(sandbox: Sandbox) -> None:
    rule(sandbox, "ask")
    assert "Ask the user first" in refusal(sandbox)
    assert before(sandbox) == {}
    listed = put(
        places(sandbox)["gemini"].parents[1] / "logs.json",
        json.dumps([{"sessionId": SESSION, "type": "user", "message": "Go on.", "timestamp": "x"}]),
    )
    said(sandbox, "BeforeAgent", prompt="Go on.")
    assert [before(sandbox)["decision"] for _ in range(2)] == ["ask", "ask"]
    assert REFUSES in before(sandbox)["systemMessage"], "its question does not tell the reason"
    os.utime(listed, (0, 0))
    assert before(sandbox) == {}, "a script goes on with the session"


def test_a_rule_about_a_file_stops_its_change_and_not_its_reading(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/preferences/schema.md", "Never edit `db/schema.sql` by hand.", guard="deny")
    reconcile_now(load_settings(sandbox.env))
    call = {"file_path": "db/schema.sql", "content": "x", "old_string": "a", "new_string": "b"}
    for tool in ("write_file", "replace"):
        assert run(sandbox, "BeforeTool", tool_name=tool, tool_input=call)["decision"] == "deny"
    assert run(sandbox, "BeforeTool", tool_name="read_file", tool_input=call) == {}


def test_a_command_that_fails_as_before_brings_what_helped_and_another_failure_does_not(sandbox: Sandbox) -> None:
    cured = "`npm` failed with “Error: Cannot find module '@shop/ui'”; it passed after `npm run link`"
    sandbox.entry("personal-private/fix/link.md", cured, kind="fix")
    reconcile_now(load_settings(sandbox.env))
    failed = "Output: Error: Cannot find module '@shop/ui'\nExit Code: 1"
    assert after(sandbox, failed.replace("Exit Code: 1", "Exit Code: 0"), "npm test") == ""
    assert after(sandbox, "Output: 3 of 40 checks did not pass\nExit Code: 1", "npm test") == ""
    assert "What helped: `npm run link`" in after(sandbox, failed, "npm test")


def test_the_extension_is_what_the_program_loads(settings: Settings) -> None:
    settings.hosts.gemini_home.mkdir()
    assert install_for("gemini", settings).warnings == ()
    assert not install_for("gemini", settings).changed
    folder = extension_folder(settings)
    manifest = json.loads((folder / "gemini-extension.json").read_text())
    assert manifest["name"] == folder.name
    assert manifest["version"]
    server = manifest["mcpServers"]["memory"]
    assert server["command"] == sys.executable
    assert server["timeout"] <= 30_000, "milliseconds; a server that does not answer holds up the start for so long"
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"}
    for (group,) in hooks.values():
        (hook,) = group["hooks"]
        assert set(hook) == {"type", "command", "timeout"}
        assert hook["timeout"] >= 1000, "milliseconds"


def commands_of(settings: Settings) -> dict[str, str]:
    hooks = json.loads((extension_folder(settings) / "hooks" / "hooks.json").read_text())["hooks"]
    return {event: group["hooks"][0]["command"] for event, (group,) in hooks.items()}


def test_a_hook_whose_file_is_gone_succeeds_in_silence(settings: Settings) -> None:
    install_for("gemini", settings)
    wire_actions("gemini", settings, on=True)
    commands = commands_of(settings).values()
    shutil.rmtree(settings.state_root)
    for command in commands:
        done = subprocess.run(["bash", "-c", command], input=b"{}", capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("before", "damaged"),
    [
        ("#!/bin/sh", "#!/gone/sh"),
        ("#!/bin/sh\n", "#!/bin/sh\nif true; then"),
        ("python=", "python=/bin/false\nunused="),
        ("python=", "exit 2; python="),
    ],
)
def test_no_damage_of_the_launcher_refuses_a_prompt(settings: Settings, before: str, damaged: str) -> None:
    """The program takes every code but 0 and 1 for a refusal."""
    install_for("gemini", settings)
    launcher = Path(launcher_in(settings.state_root))
    launcher.write_text(launcher.read_text().replace(before, damaged, 1))
    command = commands_of(settings)["BeforeAgent"]
    done = subprocess.run(["bash", "-c", command], input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_without_its_manifest_the_program_loads_nothing_and_doctor_says_so(sandbox: Sandbox) -> None:
    context = Context(sandbox.env)
    install_for("gemini", context.settings)
    assert "Gemini CLI: SessionStart" in _other_agents(context).detail
    settings_file = sandbox.home / ".gemini" / "settings.json"
    settings_file.write_text('{"hooksConfig": {"enabled": false}}')
    assert "hooksConfig.enabled" in _other_agents(context).todo
    assert any("hooksConfig" in warning for warning in install_for("gemini", context.settings).warnings)
    (extension_folder(context.settings) / "gemini-extension.json").unlink()
    assert wired_events("gemini", context.settings) == ()


@pytest.mark.parametrize(
    ("name", "now", "before"),
    [
        ("hooks/hooks.json", r'"[^"|]* \|\| ([^"|]*)[^"]*"', r'"\1"'),
        ("hooks/hooks.json", "/run/", "/old/run/"),
        ("gemini-extension.json", sys.executable, "/gone/python"),
        ("gemini-extension.json", "mcpServers", "servers"),
    ],
    ids=["older command", "other state", "gone Python", "no server"],
)
def test_what_an_older_version_wrote_is_told_and_renewed(sandbox: Sandbox, name: str, now: str, before: str) -> None:
    context = Context(sandbox.env)
    install_for("gemini", context.settings)
    file = extension_folder(context.settings) / name
    current = file.read_text()
    assert not needs_renewal("gemini", context.settings)
    file.write_text(re.sub(now, before, current))
    found = _other_agents(context)
    assert (found.grade, found.todo) == ("note", "`memory init --host gemini` renews it")
    assert install_for("gemini", context.settings).changed
    assert json.loads(file.read_text()).items() >= json.loads(current).items()
    assert not needs_renewal("gemini", context.settings)


@pytest.mark.parametrize("refused", ["hooks.json", "gemini-extension.json"])
def test_what_to_write_by_hand_is_complete(settings: Settings, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    def refuse(path: Path, *rest: Any, **options: Any) -> None:
        if path.name == refused:
            raise PermissionError(13, "Permission denied")
        replace_file(path, *rest, **options)

    monkeypatch.setattr(install_module, "replace_file", refuse)
    with pytest.raises(HostFileUnwritable, match="into it by hand") as raised:
        install_for("gemini", settings)
    folder = extension_folder(settings)
    put(folder / refused if refused != "hooks.json" else folder / "hooks" / refused, raised.value.by_hand)
    install_for("gemini", settings)
    assert set(wired_events("gemini", settings)) == set(WIRINGS["gemini"].events)
    assert not needs_renewal("gemini", settings)


@pytest.mark.parametrize("rule", ["!/home/dev/*", "/home/dev/*"])
def test_an_extension_that_the_user_disabled_is_told(sandbox: Sandbox, rule: str) -> None:
    context = Context(sandbox.env)
    install_for("gemini", context.settings)
    switches = extension_folder(context.settings).parent / "extension-enablement.json"
    switches.write_text(json.dumps({"memoryvault": {"overrides": [rule]}}))
    assert ("gemini extensions enable memoryvault" in _other_agents(context).todo) is rule.startswith("!")
    for damaged in ("[]", '{"memoryvault": 1}', '{"memoryvault": {"overrides": [1]}}', "{"):
        switches.write_text(damaged)
        assert not _other_agents(context).todo


@pytest.mark.parametrize("manifest", [None, '{"name": "memoryvault", "version": "7", "mcpServers": {"x": {}}}', "{ }"])
def test_uninstall_restores_each_byte_of_the_folder(sandbox: Sandbox, settings: Settings, manifest: str | None) -> None:
    folder = extension_folder(settings)
    if manifest is not None:
        put(folder / "gemini-extension.json", manifest)
    before = {path: path.read_bytes() for path in sandbox.home.rglob("*") if path.is_file()}
    install_for("gemini", settings)
    install_skill("gemini", settings)
    wire_actions("gemini", settings, on=True)
    uninstall_for("gemini", settings)
    remove_skill("gemini", settings)
    assert {path: path.read_bytes() for path in sandbox.home.rglob("*") if path.is_file()} == before


def test_guard_wires_them_where_only_gemini_is_used(sandbox: Sandbox, command: Command) -> None:
    sandbox.state.ensure()
    settings = load_settings(sandbox.env)
    install_for("gemini", settings)
    assert hosts_with_actions(settings) == {"gemini": False}
    told = command.json("guard", "--on")
    assert (told["on"], told["changed"]) == (True, True)
    assert told["file"].endswith("/.gemini/extensions/memoryvault/hooks/hooks.json")
    assert not (sandbox.home / ".claude" / "settings.json").exists()
    assert not install_for("gemini", settings).changed, "memory init keeps them"
    assert command.json("guard")["on"]
    command("guard", "--off")
    assert hosts_with_actions(settings) == {"gemini": False}


@pytest.mark.slow
def test_every_real_payload_is_answered_and_a_turns_end_silent(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    for file in shared_files("gemini", "cli-0.61/hooks/*.json"):
        text = file.read_text().replace("/home/ada/shop", str(sandbox.project)).replace("/home/ada", str(sandbox.home))
        event = json.loads(text)["hook_event_name"]
        done = sandbox.run(event, text.encode(), "--host", "gemini")
        if event not in ("SessionStart", "BeforeAgent"):
            assert done.stdout == "{}\n", file.name
        assert set(json.loads(done.stdout).get("hookSpecificOutput", {})) <= {"additionalContext"}


def test_real_chats_say_what_the_real_list_says(tmp_path: Path) -> None:
    """Of each what was confirmed."""
    expected = {
        "headless": [],
        "headless-resumed": [],
        "interactive": [
            "I typed this by hand", "second typed prompt READFILE", "third typed prompt RUNSHELL",
            "fourth typed prompt",
        ],
        "interactive.after-clear.full": ["fifth after clear"],
        "interactive.cancelled-turn": [
            "look at @notes.txt please", "answer SLOWLY now", "typed in mid turn", "please READSUB", "please RUNSHELL",
            "no, never make markers",
        ],
    }  # fmt: skip
    folder = tmp_path / "shop" / "chats"
    folder.mkdir(parents=True)
    (listed,) = shared_files("gemini", "cli-0.61/transcripts/logs.json")
    shutil.copyfile(listed, tmp_path / "shop" / "logs.json")
    said = {}
    for file in shared_files("gemini", "cli-0.61/transcripts/*.jsonl"):
        copy = folder / f"session-{file.name}"
        shutil.copyfile(file, copy)
        assert host_of(copy) == "gemini"
        reader = open_transcript(copy)
        turns = [turn for turn in reader if turn.origin is Origin.PROMPT]
        assert reader.bad_lines == 0
        assert all(turn.confirmed for turn in turns)
        said[file.name.removesuffix(".jsonl")] = [turn.text for turn in turns]
    assert said == expected
