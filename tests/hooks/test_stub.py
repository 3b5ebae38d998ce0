"""What a hook loads, and that nobody else can make it load something."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.hooks.install import STUB, launcher_in, write_launcher
from memoryvault.hooks.wiring import HOSTS, WIRINGS, hook_argv
from memoryvault.runtime.settings import compile_snapshot
from memoryvault.tests.support.files import put

from .support import Sandbox, index

pytestmark = pytest.mark.hurried

LIGHT = """
    hooks hooks.autostart hooks.claude hooks.client hooks.enqueue hooks.entryfile hooks.injected hooks.once
    hooks.payload hooks.recall hooks.recall_client hooks.receipt hooks.search hooks.session_start hooks.sqlite
    runtime runtime.days runtime.function_words runtime.hooklog runtime.index_terms runtime.interpreter
    runtime.large_change runtime.layout runtime.normal_form runtime.safe_text runtime.snapshot vault
    vault.automemory vault.evidence vault.gate vault.gate_weights vault.header vault.marker vault.pending
    vault.project vault.render vault.statuses vault.typed_text vault.wording
"""
OURS = {f"memoryvault.{name}" for name in LIGHT.split()}
BUILT_IN = {
    "__future__", "_abc", "_blake2", "_collections_abc", "_functools", "_json", "_math_integer", "_signal", "_socket",
    "_sqlite3", "_stat", "abc", "binascii", "errno", "fcntl", "genericpath", "math", "os", "posixpath", "select",
    "stat",
}  # fmt: skip
"""Some versions of Python have a few of them loaded already, or load them only now."""
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact", "Notification")


def imported(sandbox: Sandbox, event: str, **fields: object) -> set[str]:
    """Modules loaded by a hook beyond a bare interpreter's."""
    python = (sys.executable, "-I", "-S")
    bare = subprocess.run(
        [*python, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    done = sandbox.run(event, sandbox.payload(**fields), python=(*python, "-X", "importtime"))
    lines = [line.rsplit("|", 1) for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {name.strip() for _, name in lines[1:]} - set(bare.stdout.split())


@pytest.mark.parametrize("event", EVENTS)
def test_a_hook_loads_nothing_beyond_the_light_modules(sandbox: Sandbox, event: str) -> None:
    sandbox.entry("personal-private/preferences/cocoa.md", "Cocoa goes into the blue teapot.")
    fields = {"prompt": "where does the cocoa go, teapot or mug?", "notification_type": "idle_prompt"}
    of_core = {"memoryvault.vault.core"} if event == "SessionStart" else set()
    assert imported(sandbox, event, **fields) <= OURS | BUILT_IN | of_core


def test_a_tool_call_loads_least_of_all(sandbox: Sandbox) -> None:
    sandbox.state.ensure()
    Path(sandbox.state.root, "actions.json").write_text('{"c":{},"n":{},"e":{},"g":[],"w":{},"r":[]}\n')
    sandbox.run("Stop", sandbox.payload())
    loaded = imported(sandbox, "PreToolUse", tool_name="Bash", tool_input={"command": "git push"})
    ours = {"memoryvault.hooks.action", "memoryvault.hooks.action_match"}
    assert loaded <= OURS | BUILT_IN | ours
    assert not loaded & {"_socket", "_sqlite3", "re", "json", "memoryvault.hooks.recall", "memoryvault.vault.render"}


def test_stop_loads_neither_sockets_nor_the_reading_half(sandbox: Sandbox) -> None:
    sandbox.run("Stop", sandbox.payload())
    loaded = imported(sandbox, "Stop")
    assert "_sqlite3" not in loaded or "functools" not in loaded
    reading = {"memoryvault.hooks.recall", "memoryvault.vault.render", "memoryvault.vault.typed_text"}
    assert not loaded & {"_socket", *reading}


@pytest.mark.parametrize(
    ("event", "word"), [*((event, "false") for event in EVENTS), ("Stop", "0"), ("Stop", " Off "), ("Stop", "NO")]
)
def test_switched_off_by_the_environment_a_hook_looks_for_no_settings(sandbox: Sandbox, event: str, word: str) -> None:
    sandbox.extra_env["MEMORY_ENABLED"] = word
    sandbox.compiled = False
    sandbox.configure("[recall\n")
    assert imported(sandbox, event, prompt="tea?", notification_type="idle_prompt") <= OURS | BUILT_IN
    assert not sandbox.state_root.exists()


def test_switched_off_in_the_file_only_the_first_hook_parses_it(sandbox: Sandbox) -> None:
    sandbox.change_settings("[recall]\nk = 3\n", "[memory]\nenabled = false\n")
    before = sandbox.files()
    assert "tomllib" in imported(sandbox, "UserPromptSubmit", prompt="tea?")
    for event in EVENTS:
        assert imported(sandbox, event, prompt="tea?", notification_type="idle_prompt") <= OURS | BUILT_IN
    assert sandbox.files() == before
    sandbox.configure("[memory]\nenabled = true\n")
    sandbox.run("Stop", sandbox.payload())
    assert sandbox.files() > before, "switched on again it records"


def test_a_folder_full_of_traps_changes_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    """Neither the working directory nor PYTHONPATH can shadow what a hook loads."""
    sandbox.entry("personal-private/preferences/cocoa.md", "Cocoa goes into the blue teapot.")
    index(sandbox, "personal-private/preferences/cocoa.md")
    traps = tmp_path / "traps"
    packages = ("hooks", "vault", "runtime", "tasks", "memoryvault")
    modules = ("json", "os", "re", "sqlite3", "_json", "_sqlite3", "posixpath", "sitecustomize", "client")
    for name in packages:
        put(traps / name / "__init__.py", "raise SystemExit('trapped')\n")
    for name in modules:
        (traps / f"{name}.py").write_text("raise SystemExit('trapped')\n")
    env = {**sandbox.env, "PYTHONPATH": str(traps), "PYTHONSTARTUP": str(traps / "json.py")}
    env |= {"PYTHONHOME": str(traps), "PYTHONINSPECT": "1"}
    printed = ""
    for event in EVENTS:
        payload = sandbox.payload(prompt="does cocoa go into the teapot?", notification_type="idle_prompt")
        done = sandbox.run(event, payload, env=env, cwd=traps)
        assert "trapped" not in done.stdout + done.stderr
        printed += done.stdout
    assert "blue teapot" in printed


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    ("what", "then"), [(str(STUB), "/gone/stub.py"), (sys.executable, "/gone/python"), (sys.executable, "/bin/false")]
)
def test_a_hook_with_a_gone_or_broken_package_fails_no_turn(sandbox: Sandbox, host: str, what: str, then: str) -> None:
    """Python and shells end with 2 for a script that they can't open, and hosts take that for "reject this prompt"."""
    launcher = launcher_in(sandbox.state_root)
    write_launcher(launcher)
    text = Path(launcher).read_text()
    assert what in text
    Path(launcher).write_text(text.replace(what, then))
    for event in WIRINGS[host].events:
        argv = hook_argv(event, launcher, host)
        payload = json.dumps(sandbox.payload(prompt="where does the cocoa go?"))
        done = subprocess.run(argv, input=payload, env=sandbox.env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def run_stub(sandbox: Sandbox, stub: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    compile_snapshot(sandbox.env)
    launcher = launcher_in(sandbox.state_root)
    write_launcher(launcher)
    Path(launcher).write_text(Path(launcher).read_text().replace(str(STUB), str(stub)))
    payload = json.dumps(sandbox.payload())
    argv = hook_argv("Stop", launcher)
    return subprocess.run(argv, input=payload, env=sandbox.env, cwd=cwd, capture_output=True, text=True, check=False)


def test_a_hook_finds_its_package_where_another_version_of_python_has_it(sandbox: Sandbox, tmp_path: Path) -> None:
    """An installer that makes the environment anew keeps `bin/python` and moves `lib/python3.X`."""
    running = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    package = tmp_path / "venv" / "lib" / running / "site-packages" / "memoryvault"
    package.parent.mkdir(parents=True)
    package.symlink_to(STUB.parents[1])
    done = run_stub(sandbox, Path(str(package / "hooks" / "stub.py").replace(running, "python3.9")), tmp_path)
    assert done.returncode == 0
    assert [line["hook"] for line in sandbox.log_lines()] == ["Stop"]


def test_a_hook_whose_package_is_gone_looks_for_it_nowhere_else(sandbox: Sandbox, tmp_path: Path) -> None:
    """Least of all in the working directory, which is somebody's repository."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for trap in (tmp_path / version, tmp_path / "lib" / f"python{version}", tmp_path):
        put(trap / "hooks" / "stub.py", "print('trapped')\n")
    for stub in ("/gone/hooks/stub.py", "/lib/python3.9/gone/hooks/stub.py", "hooks/gone/hooks/stub.py"):
        done = run_stub(sandbox, Path(stub), tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
