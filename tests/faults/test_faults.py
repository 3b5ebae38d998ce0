"""What is broken is said in one line, hooks exit with 0, nothing is lost, and work resumes by itself.

Those that ask a hook, which has 300 ms, run alone: it is a process of its own also where the commands around it are
forked."""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.tests.acceptance.test_the_loop import COMMON, SESSION, approve_rule, record_session, vault_files
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.readonly import memory_with_readonly
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.tasks.support import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    yield ForkedSandbox(tmp_path)
    vault = tmp_path / "Obsidian" / "MemoryVault"
    if vault.is_dir():
        vault.chmod(0o755)  # A test may have made it read-only, and pytest deletes it later.


def _one_line(text: str) -> bool:
    return "Traceback" not in text and len(text.strip().splitlines()) == 1


def test_a_missing_vault_is_one_line_and_hooks_go_on(sandbox: Sandbox) -> None:
    record_session(sandbox)
    away = sandbox.vault.rename(sandbox.vault.with_name("Away"))
    done = sandbox.run("save", "fix", "x", "--body", "text")
    assert done.returncode == 1
    assert _one_line(done.stderr)
    commands = {"Stop": {}, "UserPromptSubmit": {"prompt": "which day do we ship?"}, "SessionStart": {}}
    away.rename(sandbox.vault)
    argv = {event: json.loads(sandbox.memory("config", "hook-command", event, "--json")) for event in commands}
    sandbox.vault.rename(away)
    for event, extra in commands.items():
        payload = {**COMMON, **extra, "session_id": SESSION, "prompt_id": event}
        sandbox.hook(event, payload, argv=argv[event])
    away.rename(sandbox.vault)
    sandbox.memory("service", "worker", "--until-idle")
    assert any("tuesday" in text.lower() for text in vault_files(sandbox).values())


def test_a_readonly_vault_loses_nothing(sandbox: Sandbox) -> None:
    record_session(sandbox)
    done = memory_with_readonly(sandbox.vault, sandbox.environment, "service", "worker", "--until-idle")
    assert "Traceback" not in done.stderr
    assert vault_files(sandbox) == {}
    assert not any(job["state"] == "dead" for job in sandbox.json("jobs", "list"))
    until = time.monotonic() + 60
    while not vault_files(sandbox) and time.monotonic() < until:
        sandbox.memory("service", "worker", "--until-idle")
        time.sleep(1)
    assert any("tuesday" in text.lower() for text in vault_files(sandbox).values())


@pytest.mark.parametrize(
    "command",
    ["service serve", "service worker --until-idle", "jobs retry 1", "vault reindex", "config model", "health"],
)
def test_a_readonly_state_folder_is_told_in_one_line(sandbox: Sandbox, command: str) -> None:
    record_session(sandbox)
    sandbox.memory("service", "worker", "--until-idle")
    for lock in (sandbox.state / "index.db.lock", sandbox.state / "run/recall.lock"):
        lock.unlink(missing_ok=True)  # For who is not root: in a folder without the right to write none is made.
    folders = [folder for folder in (sandbox.state, *sandbox.state.rglob("*")) if folder.is_dir()]
    for folder in folders:
        folder.chmod(0o500)
    try:
        done = memory_with_readonly(sandbox.state, sandbox.environment, *command.split())
    finally:
        for folder in folders:
            folder.chmod(0o700)
    said = [line for line in (done.stderr + done.stdout).splitlines() if str(sandbox.state) in line]
    assert "Traceback" not in done.stderr
    assert len(said) >= 1
    if command != "health":  # That tells what it knows nevertheless.
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


def _blocking(folder: Path, *names: str) -> dict[str, str]:
    """A variable with a folder in front of site-packages in which these modules cannot be imported."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')\n")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.alone
def test_without_sqlite_vec_everything_works_on_keywords_and_says_so(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, _blocking(tmp_path / "blocked", "sqlite_vec"))
    record_session(sandbox)
    with sandbox.recall_service():
        sandbox.memory("service", "worker", "--until-idle")
        approve_rule(sandbox)
        assert "Tuesday" in _until_answered(sandbox, "do we ship on tuesday mornings?")
        done = sandbox.run("recall", "ship on tuesday mornings", "--all-projects", "--json")
    reindexed = sandbox.run("vault", "reindex")
    answer = json.loads(done.stdout)
    assert (len(answer["hits"]), answer["degraded"]) == (1, ["no-extension"])
    assert "sqlite-vec cannot be loaded" in done.stderr
    assert "sqlite-vec cannot be loaded" in reindexed.stderr
    assert not any(job["state"] == "dead" for job in sandbox.json("jobs", "list"))
    changed = sandbox.run("config", "model", "use", "all-MiniLM-L6-v2")
    assert changed.returncode != 0
    assert "Traceback" not in changed.stderr


def test_an_index_that_breaks_while_everything_runs_is_rebuilt_in_the_background(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path, {"AGENT_TOOLKIT_EMBEDDING_MODEL": "no-such-model"})
    record_session(sandbox)
    sandbox.memory("service", "worker", "--until-idle")
    approve_rule(sandbox)
    index = sandbox.state / "index.db"
    with sandbox.recall_service(), sandbox.process("service", "worker"):
        # Without a worker `memory recall` would bring the index in step itself, before it answers.
        wait_until(lambda: lock_holder(StatePaths(sandbox.state).worker_lock) is not None, "the worker runs")
        assert sandbox.json("recall", "ship on tuesday mornings", "--all-projects")["degraded"] == ["no-model"]
        for file in sandbox.state.glob("index.db*"):
            if file.suffix != ".lock":
                file.write_bytes(b"this is no database at all\n" * 400)
        broken = sandbox.json("recall", "ship on tuesday mornings", "--all-projects")
        # On a busy machine the index is being filled again before the command has begun.
        if broken["degraded"] != ["no-model"]:
            assert "no-index" in broken["degraded"]
            assert len(broken["hits"]) == 1, "the files themselves are read"

        def answers() -> bool:
            found = sandbox.json("recall", "ship on tuesday mornings", "--all-projects")
            return (len(found["hits"]), found["degraded"]) == (1, ["no-model"])

        wait_until(answers, "it answers as before")
    assert list(sandbox.state.glob("index.db.damaged-*"))
    assert index.read_bytes().startswith(b"SQLite format 3")


def test_with_the_vault_unmounted_the_index_answers_and_says_so(sandbox: Sandbox) -> None:
    record_session(sandbox)
    sandbox.memory("service", "worker", "--until-idle")
    approve_rule(sandbox)
    argv = json.loads(sandbox.memory("config", "hook-command", "UserPromptSubmit", "--json"))
    away = sandbox.vault.rename(sandbox.vault.with_name("Away"))
    try:
        alone = sandbox.run("recall", "ship on tuesday mornings", "--all-projects", "--json")
        with sandbox.recall_service():
            served = sandbox.run("recall", "ship on tuesday mornings", "--all-projects", "--json")
            payload = {**COMMON, "session_id": SESSION, "prompt_id": "p", "prompt": "do we ship on tuesday mornings?"}
            sandbox.hook("UserPromptSubmit", payload, argv=argv)
        listed = sandbox.run("list")
        health = sandbox.json("health")
    finally:
        away.rename(sandbox.vault)
    for done in (alone, served):
        answer = json.loads(done.stdout)
        assert len(answer["hits"]) == 1
        assert "vault-missing" in answer["degraded"]
        assert "the vault is not there" in done.stderr
    assert (listed.returncode, _one_line(listed.stderr)) == (1, True)
    assert any("mount it" in warning for warning in health["warnings"])
    sandbox.memory("service", "worker", "--until-idle")
    found = sandbox.json("recall", "ship on tuesday mornings", "--all-projects")["hits"]
    assert len(found) == 1, "nothing was forgotten meanwhile"


def _until_answered(sandbox: Sandbox, prompt: str) -> str:
    """On a busy machine a hook may run out of its time."""
    for _ in range(20):
        session = str(uuid.uuid4())
        payload = {**COMMON, "session_id": session, "transcript_path": str(sandbox.projects / f"-p/{session}.jsonl")}
        if answer := sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": session, "prompt": prompt}):
            return answer
    return ""
