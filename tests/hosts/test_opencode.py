"""OpenCode: the plugin in its folder, and what its calls of the hook come to."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memoryvault.hooks.autostart import is_agents_shell
from memoryvault.hooks.install import launcher_in
from memoryvault.hooks.opencode import LOCK, plugin_text
from memoryvault.hooks.wiring import WIRINGS, hosts_with_actions, install_for, uninstall_for, wire_actions, wired_events
from memoryvault.runtime.errors import SettingsError
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.indexing import reconcile_now
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.files import put

from ..hooks.support import SESSION, Sandbox, marker_of
from .payloads import RECALLED, spooled

pytestmark = pytest.mark.hurried


def tree(sandbox: Sandbox) -> dict[str, bytes | None]:
    """Files and folders of the home, but for the launcher, which stays."""
    return {
        str(path.relative_to(sandbox.home)): path.read_bytes() if path.is_file() else None
        for path in sorted(sandbox.home.rglob("*"))
        if "memoryvault" not in str(path.relative_to(sandbox.home)) or path.suffix == ".js"
    }


BEFORE: dict[str, dict[str, str]] = {
    "nothing": {},
    "settings": {"opencode.json": '{ "model":  "a/b" }\n'},
    "its own package": {"package.json": '{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}', "node_modules/x/y": "1"},
    "another plugin": {"plugin/mine.js": "export default async () => ({})\n"},
    "a tool of the user's": {"tools/mine.ts": 'import { tool } from "@opencode-ai/plugin"\n'},
}


@pytest.mark.parametrize("before", BEFORE)
def test_uninstall_leaves_opencodes_folder_as_it_was(sandbox: Sandbox, settings: Settings, before: str) -> None:
    folder = settings.hosts.opencode_home
    for name, text in BEFORE[before].items():
        put(folder / name, text)
    untouched = tree(sandbox)
    installed = install_for("opencode", settings)
    assert installed.changed
    assert wired_events("opencode", settings) == tuple(WIRINGS["opencode"].events)
    plugin = folder / "plugin" / "memoryvault.js"
    assert f"const LAUNCHER = {json.dumps(launcher_in(settings.state_root))}" in plugin.read_text()
    # OpenCode waits at each start for a package that it fetches, unless it finds this; who uses the package needs it.
    waits = before not in ("nothing", "settings")
    assert (folder / "package-lock.json").exists() is not waits
    once = tree(sandbox)
    assert not install_for("opencode", settings).changed
    assert tree(sandbox) == once
    assert uninstall_for("opencode", settings).restored
    assert tree(sandbox) == untouched | ({".config": None} if before == "nothing" else {})
    assert wired_events("opencode", settings) == ()
    assert not uninstall_for("opencode", settings).changed


def test_what_spares_the_wait_goes_also_where_the_plugin_was_deleted_by_hand(settings: Settings) -> None:
    folder = settings.hosts.opencode_home
    install_for("opencode", settings)
    shutil.rmtree(folder / "plugin")
    assert uninstall_for("opencode", settings).changed
    assert not folder.exists()


@pytest.mark.parametrize("then", [install_for, uninstall_for])
def test_what_a_killed_init_left_is_completed_or_taken_away(settings: Settings, then: Any) -> None:
    folder = settings.hosts.opencode_home
    put(folder / "package-lock.json", LOCK)
    then("opencode", settings)
    left = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    assert left == (["node_modules", "package-lock.json", "plugin"] if then is install_for else [])


def test_what_opencode_or_the_user_made_of_the_folder_stays(sandbox: Sandbox, settings: Settings) -> None:
    folder = settings.hosts.opencode_home
    install_for("opencode", settings)
    assert (folder / "package-lock.json").read_bytes() == LOCK
    (folder / "package-lock.json").write_text('{"lockfileVersion":3}')
    (folder / "node_modules" / "left-pad").mkdir()
    uninstall_for("opencode", settings)
    assert sorted(path.name for path in folder.iterdir()) == ["node_modules", "package-lock.json"]


def test_a_file_of_that_name_which_is_anothers_is_refused(settings: Settings) -> None:
    plugin = put(settings.hosts.opencode_home / "plugin" / "memoryvault.js", "export default async () => ({})\n")
    with pytest.raises(SettingsError, match="another's"):
        install_for("opencode", settings)
    assert not uninstall_for("opencode", settings).changed
    assert plugin.read_text() == "export default async () => ({})\n"


def test_a_plugin_that_cannot_be_read_or_written_is_named(settings: Settings) -> None:
    plugin = settings.hosts.opencode_home / "plugin" / "memoryvault.js"
    plugin.mkdir(parents=True)
    for action in (install_for, uninstall_for, wired_events):
        with pytest.raises(SettingsError, match=re.escape(str(plugin))):
            action("opencode", settings)


def test_a_plugin_of_an_older_version_is_replaced_and_keeps_whether_tool_calls_run_the_hook(settings: Settings) -> None:
    plugin = settings.hosts.opencode_home / "plugin" / "memoryvault.js"
    install_for("opencode", settings)
    current = plugin.read_text()
    assert wire_actions("opencode", settings, on=True).changed
    assert plugin.read_text() == current.replace("const ACTIONS = false", "const ACTIONS = true")
    plugin.write_text(plugin.read_text() + "// of an older version\n")
    assert wired_events("opencode", settings) == ()
    assert install_for("opencode", settings).changed
    assert "const ACTIONS = true" in plugin.read_text()
    assert wire_actions("opencode", settings, on=False).changed
    assert plugin.read_text() == current
    uninstall_for("opencode", settings)
    assert hosts_with_actions(settings) == {}


def test_guard_wires_tool_calls_where_opencode_is(sandbox: Sandbox, settings: Settings, command: Command) -> None:
    plugin = settings.hosts.opencode_home / "plugin" / "memoryvault.js"
    install_for("opencode", settings)
    assert plugin.name in command("guard", "--on").out
    assert "const ACTIONS = true" in plugin.read_text()
    assert not (sandbox.home / ".claude" / "settings.json").exists()
    assert "agent does: on" in command("guard").out
    command("guard", "--off")
    assert "const ACTIONS = false" in plugin.read_text()


def payload(sandbox: Sandbox, **fields: object) -> dict[str, Any]:
    return {"session_id": SESSION, "cwd": str(sandbox.project), **fields}


def test_a_rule_about_a_file_stops_a_patch_to_several_files(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/preferences/schema.md", "Never edit `db/schema.sql` by hand.", guard="deny")
    reconcile_now(load_settings(sandbox.env))

    def refused(*lines: str) -> bool:
        patch = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
        call = payload(sandbox, tool_name="apply_patch", tool_input={"patchText": patch})
        return '"deny"' in sandbox.run("PreToolUse", call, "--host", "opencode").stdout

    assert refused("*** Update File: db/schema.sql", "+x")
    assert refused("*** Add File: a.txt", "+x", "*** Delete File: db/schema.sql")
    assert refused("*** Update File: a.txt", "*** Move to: db/schema.sql", "+x")
    assert not refused("*** Update File: a.txt", "+*** Update File: db/schema.sql")


def test_a_session_is_given_the_same_and_recorded_by_its_name(sandbox: Sandbox, recall_requests: list[Any]) -> None:
    host = ("--host", "opencode")
    start = sandbox.run("SessionStart", payload(sandbox, source="startup"), *host)
    assert "plain language" in start.stdout
    prompt = sandbox.run("UserPromptSubmit", payload(sandbox, prompt="when do we ship?", prompt_id="msg_1"), *host)
    assert RECALLED in prompt.stdout
    child = payload(sandbox, prompt="look around", agent_id="ses_child")
    assert sandbox.run("UserPromptSubmit", child, *host).stdout == "", "a sub-agent's prompt is nobody's words"
    assert sandbox.run("Stop", payload(sandbox), *host).stdout == ""
    marker = marker_of(sandbox)
    database = sandbox.home / ".local" / "share" / "opencode" / "opencode.db"
    assert (marker.host, marker.transcript) == ("opencode", f"{database}#{SESSION}")
    assert spooled(sandbox) == 1


def plugin_runs(
    folder: Path,
    script: str,
    *,
    launcher: str = "/nowhere",
    actions: bool = False,
    stdin: int = subprocess.DEVNULL,
    **env: str,
) -> str:
    """What a script prints that finds the plugin's `hooks`. Its command line is that in the file `cmdline`, if any."""
    text = plugin_text(launcher, actions=actions).replace(b"/proc/self/cmdline", bytes(folder / "cmdline"))
    (folder / "plugin.mjs").write_bytes(text)
    head = f"""import plugin from "{folder}/plugin.mjs"
        const hooks = await plugin({{ client: {{}}, directory: "{folder}" }})"""
    (folder / "opencode.mjs").write_text(f"{head}\n{script}")
    argv = ["node", str(folder / "opencode.mjs")]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **env}
    return subprocess.run(argv, stdin=stdin, env=env, capture_output=True, check=True, timeout=60, text=True).stdout


def launcher_that(folder: Path, script: str) -> str:
    launcher = folder / "hook"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o700)
    return str(launcher)


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the plugin's code")
def test_the_plugin_takes_from_the_hook_what_marks_the_agents_shell(tmp_path: Path) -> None:
    """OpenCode sets OPENCODE for itself, so that hook and agent's shell have it alike; a worker starts only without."""
    seen = tmp_path / "seen"
    launcher = launcher_that(tmp_path, f"env >>{seen}")
    script = """await hooks["chat.message"]({ sessionID: "s" },
        { parts: [{ id: "p", sessionID: "s", messageID: "m", type: "text", text: "where is the cocoa?" }] })"""
    plugin_runs(tmp_path, script, launcher=launcher, OPENCODE="1", OPENCODE_PID="4711")
    variables = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert "OPENCODE_PID" in variables
    assert not is_agents_shell(dict.fromkeys(variables, ""))


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the plugin's code")
@pytest.mark.parametrize(
    ("started", "at_terminal", "typed"),
    [
        ("", True, True),
        ("-s ses_1 --model=a/b", True, True),
        ("-c --continue --fork --auto", True, True),
        (".", True, True),
        ("--port 4096 --log-level=WARN", True, True),
        ("/shop -m a/b", True, True),
        ("", False, False),  # `cat plan.md | opencode`: the first prompt is what comes in.
        ("run", True, False),
        ("-m a/b run", True, False),
        ("./shop run", True, False),
        ("serve", True, False),
        ("--prompt written-by-a-script", True, False),
        ("./shop --prompt=./written-by-a-script", True, False),
        ("attach http://localhost:4096", True, False),
    ],
)
def test_what_is_typed_is_noted_in_the_terminal_client_alone(
    tmp_path: Path, started: str, at_terminal: bool, typed: bool
) -> None:
    (tmp_path / "cmdline").write_text("".join(f"{word}\0" for word in ("/usr/bin/opencode", *started.split())))
    script = """
        const parts = [{ id: "p", type: "text", text: "where is the cocoa?" }]
        const others = [{ id: "q", type: "text", text: "Always work until all is done." }]
        const prompt = { sessionID: "s", agent: "build", model: { providerID: "a", modelID: "b" } }
        await hooks["chat.message"](prompt, { message: { id: "m" }, parts })
        await hooks["chat.message"]({ sessionID: "s" }, { message: { id: "n" }, parts: others })
        const answer = { output: "", metadata: {} }, shell = { output: "", metadata: {} }
        await hooks["tool.execute.after"]({ tool: "question", sessionID: "s", callID: "1", args: {} }, answer)
        await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "2", args: {} }, shell)
        const noted = [parts[0].metadata ?? {}, answer.metadata, shell.metadata, others[0].metadata ?? {}]
        console.log(JSON.stringify(noted))"""
    keyboard, terminal = os.openpty()
    printed = plugin_runs(tmp_path, script, stdin=terminal if at_terminal else subprocess.DEVNULL)
    os.close(keyboard)
    os.close(terminal)
    noted = {"memoryvault": "typed"} if typed else {}
    assert json.loads(printed) == [noted, noted, {}, {}]


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the plugin's code")
def test_each_failure_brings_its_own_cure_where_a_model_gives_its_calls_the_same_id(tmp_path: Path) -> None:
    cures = """case "$(cat)" in *first*) cure=one ;; *) cure=two ;; esac
        echo "{\\"hookSpecificOutput\\":{\\"additionalContext\\":\\"cure $cure\\"}}" """
    script = """
        const failed = (id, error) => ({ id, type: "tool", tool: "read", callID: "call_0", sessionID: "s" + id,
          state: { status: "error", input: {}, error } })
        const parts = [failed("p1", "first"), failed("p2", "second"), failed("p3", "The user said no")]
        for (const part of parts) hooks.event({ event: { type: "message.part.updated", properties: { part } } })
        for (const _ of [1, 2]) await hooks["experimental.chat.messages.transform"]({}, { messages: [{ parts }] })
        console.log(JSON.stringify(parts.map((part) => part.state.error)))"""
    printed = plugin_runs(tmp_path, script, launcher=launcher_that(tmp_path, cures), actions=True)
    assert json.loads(printed) == ["first\n\ncure one", "second\n\ncure two", "The user said no"]
