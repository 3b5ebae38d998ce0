"""The plugin of Claude Code: manifests by the documented shapes, the launcher, a skill that names real commands."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import frontmatter
import pytest

from memoryvault import __version__
from memoryvault.cli.main import build_parser
from memoryvault.hooks.client import RECORDED, RECORDING_END_SECONDS
from memoryvault.hooks.install import EVENTS, MATCHERS, STUB, TIMEOUT_SECONDS
from memoryvault.runtime.settings import compile_snapshot
from memoryvault.runtime.snapshot import installation_path
from memoryvault.tests.support.files import put

from ..hooks.support import Sandbox

pytestmark = pytest.mark.hurried

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugin"
SKILL = PLUGIN / "skills" / "memory"
PARTS = sorted(SKILL.glob("*.md"))


def read(name: str) -> dict[str, Any]:
    document = json.loads((ROOT / name).read_text("utf-8"))
    assert isinstance(document, dict)
    return document


def commands_of(path: Path) -> list[str]:
    """What the file tells an agent to run: its shell blocks, and inline commands that are complete."""
    text = path.read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    inline = re.findall(r"`(memory [^`…]+)`", text)
    lines = [line.strip() for block in [*blocks, *inline] for line in block.strip().splitlines()]
    return [line for line in lines if line != "memory"]


COMMANDS = [(path.name, command) for path in PARTS for command in commands_of(path)]


def test_the_marketplace_lists_the_plugin_of_this_version_where_it_is() -> None:
    """What keys they may have, the client itself says in e2e/test_plugin.py."""
    manifest = read("plugin/.claude-plugin/plugin.json")
    assert manifest["version"] == __version__
    # Folders in their usual places are found by themselves; naming hooks.json again would load it twice.
    assert not {"hooks", "skills"} & set(manifest)
    (listed,) = read(".claude-plugin/marketplace.json")["plugins"]
    assert listed["name"] == manifest["name"]
    assert (ROOT / listed["source"] / ".claude-plugin" / "plugin.json").is_file()


def test_the_hooks_have_the_documented_shape_and_are_those_of_an_installation() -> None:
    document = read("plugin/hooks/hooks.json")
    assert set(document) == {"description", "hooks"}
    assert tuple(document["hooks"]) == EVENTS
    for event, (group,) in document["hooks"].items():
        assert set(group) <= {"matcher", "hooks"}
        assert group.get("matcher") == MATCHERS.get(event)
        (hook,) = group["hooks"]
        assert set(hook) == {"type", "command", "args", "timeout"}
        assert hook["type"] == "command"
        assert hook["timeout"] == TIMEOUT_SECONDS[event]
        assert hook["args"][-2:] == ["hook", event]


def test_the_host_waits_as_long_as_a_recording_hook_may_take() -> None:
    assert min(TIMEOUT_SECONDS[event] for event in RECORDED) > RECORDING_END_SECONDS


def test_the_plugin_is_a_small_folder_with_nothing_in_it_but_the_plugin() -> None:
    """The client copies the whole folder into its cache."""
    tracked = subprocess.run(["git", "ls-files", "plugin"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = tracked.splitlines()
    assert {Path(name).parts[1] for name in files} == {".claude-plugin", ".mcp.json", "hooks", "skills"}
    assert sum((ROOT / name).stat().st_size for name in files) < 100_000


@pytest.mark.parametrize("name", ["plugin/hooks/hooks.json", "plugin/.mcp.json", "plugin/skills/memory/SKILL.md"])
def test_only_documented_placeholders_are_used_and_what_they_name_is_there(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert set(re.findall(r"\$\{([A-Z_]+)\}", text)) <= {"CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"}
    for path in re.findall(r"\$\{CLAUDE_PLUGIN_ROOT\}/([\w./-]+)", text):
        assert (PLUGIN / path).is_file()


def test_the_skill_names_each_of_its_files_and_no_other() -> None:
    named = set(re.findall(r"\]\((\w+\.md)\)", (SKILL / "SKILL.md").read_text("utf-8")))
    assert named == {path.name for path in PARTS} - {"SKILL.md"}
    for path in PARTS:
        for link in re.findall(r"\]\((\w+\.md)\)", path.read_text("utf-8")):
            assert (SKILL / link).is_file()


@pytest.mark.parametrize(("file", "command"), COMMANDS)
def test_every_command_in_the_skill_is_one(file: str, command: str) -> None:
    arguments = shlex.split(command)[1:]
    assert build_parser(arguments).parse_args(arguments).command in (arguments[0], " ".join(arguments[:2]))


def test_what_runs_without_a_question_neither_decides_nor_deletes() -> None:
    """Everything that the skill pre-approves reads, but the topics, which are the agent's own."""
    allowed = str(frontmatter.loads((SKILL / "SKILL.md").read_text("utf-8")).metadata["allowed-tools"])
    rules = re.findall(r"Bash\(memory ([^)]+)\)", allowed)
    assert len(rules) == allowed.count("Bash(")
    named = ["doctor", "health", "idea", "list", "recall", "review", "show", "vault"]
    assert sorted({rule.split()[0] for rule in rules}) == named
    assert {"review --list", "idea list", "idea show *", "show *", "vault topics *"} <= set(rules)


def launched(sandbox: Sandbox, *arguments: str, env: dict[str, str] | None = None, at: Path = PLUGIN) -> Any:
    return subprocess.run(
        ["/bin/sh", str(at / "hooks" / "launch.sh"), *arguments],
        input=json.dumps(sandbox.payload()),
        env=sandbox.env if env is None else env,
        capture_output=True,
        text=True,
        check=False,
    )


def copied(sandbox: Sandbox) -> Path:
    return Path(shutil.copytree(PLUGIN, sandbox.root / "cache" / "memory"))


@pytest.mark.slow
def test_each_hook_of_the_plugin_runs(sandbox: Sandbox) -> None:
    compile_snapshot(sandbox.env)
    for event, groups in read("plugin/hooks/hooks.json")["hooks"].items():
        for group in groups:
            (hook,) = group["hooks"]
            argv = [hook["command"], *(word.replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN)) for word in hook["args"])]
            for _ in range(10):  # On a busy machine a hook's time may be over before it has read what happened.
                payload = json.dumps(sandbox.payload()).encode()
                assert subprocess.run(argv, input=payload, env=sandbox.env, check=False).returncode == 0
                if event == "Notification" or event in {line["hook"] for line in sandbox.log_lines()}:
                    break
    logged = dict.fromkeys(line["hook"] for line in sandbox.log_lines())
    assert list(logged) == [event for event in EVENTS if event != "Notification"]


def test_a_plugin_whose_folder_went_under_a_session_fails_no_turn(sandbox: Sandbox) -> None:
    """A shell that cannot open its script ends with 2, which would make the host reject every prompt."""
    for groups in read("plugin/hooks/hooks.json")["hooks"].values():
        (hook,) = groups[0]["hooks"]
        argv = [hook["command"], *(word.replace("${CLAUDE_PLUGIN_ROOT}", "/nowhere") for word in hook["args"])]
        done = subprocess.run(argv, input=b"{}", env=sandbox.env, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.slow
def test_a_copied_plugin_runs_the_hooks_and_commands_of_the_installed_package(sandbox: Sandbox) -> None:
    compile_snapshot(sandbox.env)
    python, stub = Path(installation_path(sandbox.env)).read_text().splitlines()
    assert (python, stub) == (sys.executable, str(STUB))
    copy, env = copied(sandbox), {**sandbox.env, "PATH": "/nowhere"}
    assert launched(sandbox, "memory", "--version", env=env, at=copy).stdout.strip() == f"memory {__version__}"
    assert launched(sandbox, "hook", "Stop", env=env, at=copy).returncode == 0
    assert [line["hook"] for line in sandbox.log_lines()] == ["Stop"]
    # The copy's own code would have compiled settings of its own.
    assert len(list(Path(sandbox.state_root, "run").glob("*.snapshot"))) == 1


def noted(state: Path, python: str | Path, stub: str | Path = STUB) -> None:
    put(state / "run" / "installation", f"{python}\n{stub}\n")


def program(file: Path, content: bytes) -> Path:
    put(file, content)
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("is_noted", [True, False])
def test_without_the_package_a_hook_says_so_and_fails_no_turn(sandbox: Sandbox, is_noted: bool) -> None:
    if is_noted:
        noted(sandbox.state_root, "relative/python", "/nowhere/stub.py")
    env = {**sandbox.env, "PATH": "/nowhere" if is_noted else os.defpath}
    done = launched(sandbox, "hook", "Stop", env=env, at=copied(sandbox))
    assert (done.returncode, done.stdout) == (0, "")
    assert "not installed" in done.stderr


def test_a_repository_can_not_name_the_program_that_is_run(sandbox: Sandbox) -> None:
    state = sandbox.project / "state"
    noted(state, program(sandbox.project / "python", b"#!/bin/sh\necho evil\n"))
    env = {**sandbox.env, "PATH": "/nowhere", "MEMORY_STATE_DIR": str(state)}
    done = launched(sandbox, "hook", "Stop", env=env, at=copied(sandbox))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("content", [b"#!/nowhere/python\n", b"\x7fELF of another machine", b"#!/bin/sh\nexit 7\n"])
def test_an_interpreter_that_can_not_run_fails_no_turn(sandbox: Sandbox, content: bytes) -> None:
    noted(sandbox.state_root, program(sandbox.root / "bin" / "python3", content))
    done = launched(sandbox, "hook", "Stop", env={**sandbox.env, "PATH": "/nowhere"}, at=copied(sandbox))
    assert (done.returncode, done.stdout) == (0, "")


def test_without_the_package_the_tools_server_says_what_to_do(sandbox: Sandbox) -> None:
    env = {"PATH": "/nowhere", "HOME": str(sandbox.home)}
    done = launched(sandbox, "memory", "service", "mcp", env=env, at=copied(sandbox))
    assert done.returncode == 1
    assert "install its wheel" in done.stderr
    assert "pip install" not in done.stderr, "a name that pip would look up belongs to somebody else"
    assert os.listdir(sandbox.home) == [".claude"]
