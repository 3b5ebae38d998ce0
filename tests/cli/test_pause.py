"""`memory pause` and `memory resume` stop and restart hooks and jobs, and nothing else."""

import signal
import threading
import time
from pathlib import Path

import pytest

from memoryvault.cli.reflect import ended_by_pause
from memoryvault.hooks.wiring import install_for
from memoryvault.runtime.errors import QueueUnavailable, UsageError
from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.runtime.settings import load_settings
from memoryvault.services.pausing import pause, pause_notice, paused_since, resume
from memoryvault.tasks.queue.enqueue import enqueue

from ..acceptance.test_the_loop import COMMON, SESSION, SHIPPED, record_session
from ..support.forked import ForkedSandbox
from ..tasks.support import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("queue")]


def place(sandbox: ForkedSandbox) -> StatePaths:
    return load_settings(sandbox.environment).state


def test_while_it_is_paused_no_session_is_recorded_and_no_job_starts(sandbox: ForkedSandbox) -> None:
    told = "paused: hooks record nothing and add nothing to sessions, and no job starts, until `memory resume`\n"
    assert sandbox.memory("pause") == told
    record_session(sandbox)
    assert sandbox.json("jobs", "list", "--kind", "reflect.session") == []
    settings = load_settings(sandbox.environment)
    enqueue(settings, "markers.gc", unique_key="markers.gc")
    done = sandbox.run("service", "worker", "--until-idle")
    assert "MemoryVault is paused: nothing is recorded and no job starts; to go on, `memory resume`" in done.stderr
    assert done.stdout == "nothing was started\n"
    assert [job["state"] for job in sandbox.json("jobs", "list", "--kind", "markers.gc")] == ["queued"]
    assert sandbox.memory("resume").startswith("resumed: ")
    sandbox.memory("service", "worker", "--until-idle")
    assert [job["state"] for job in sandbox.json("jobs", "list", "--kind", "markers.gc")] == ["done"]


def test_a_running_worker_continues_after_resume(sandbox: ForkedSandbox) -> None:
    settings = load_settings(sandbox.environment)
    with sandbox.process("service", "worker"):
        wait_until(lambda: lock_holder(settings.state.worker_lock) is not None, "the worker runs")
        sandbox.memory("pause")
        enqueue(settings, "markers.gc", unique_key="markers.gc")
        assert lock_holder(settings.state.worker_lock) is not None, "it stays"
        assert sandbox.memory("service", "worker", "--until-idle") == "nothing was started\n", (
            "nor by the one that runs"
        )
        assert sandbox.memory("resume").count("\n") == 1, "of the worker nothing is to be told"
        wait_until(
            lambda: sandbox.json("jobs", "list", "--kind", "markers.gc")[0]["state"] == "done", "what waited is done"
        )


def test_a_session_that_continues_after_a_pause_is_read_whole(sandbox: ForkedSandbox) -> None:
    transcript = sandbox.projects / f"-p/{SESSION}.jsonl"
    payload = {**COMMON, "session_id": SESSION, "transcript_path": str(transcript)}
    transcript.parent.mkdir()
    sandbox.memory("pause")
    assert sandbox.hook("SessionStart", {**payload, "source": "startup"}) == ""
    transcript.write_text(SHIPPED.read_text("utf-8"), "utf-8")
    sandbox.hook("Stop", payload)
    sandbox.memory("resume")
    sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    sandbox.memory("service", "worker", "--until-idle")
    assert "always-ship-on-tuesday" in sandbox.memory("list", "--status", "all")


def test_a_second_pause_says_since_when_and_a_second_resume_that_nothing_was(sandbox: ForkedSandbox) -> None:
    assert sandbox.json("pause") == {"paused": True, "changed": True, "running": 0}
    since = paused_since(place(sandbox))
    again = sandbox.memory("pause")
    assert again.startswith("it was paused already, since ")
    assert again.endswith("; `memory resume` ends it\n")
    assert paused_since(place(sandbox)) == since
    assert sandbox.json("resume") == {"paused": False, "changed": True}
    assert sandbox.memory("resume") == "nothing was paused\n"


def test_resume_says_that_sessions_are_recorded_where_an_agent_is_wired(sandbox: ForkedSandbox) -> None:
    sandbox.memory("pause")
    assert sandbox.memory("resume").splitlines()[0] == (
        "resumed: jobs start; no session is recorded, as no agent is wired (`memory init`)"
    )
    install_for("claude", load_settings(sandbox.environment))
    sandbox.memory("pause")
    assert sandbox.memory("resume").splitlines()[0] == "resumed: sessions are recorded, and jobs start"


def test_what_was_asked_for_by_hand_still_works(sandbox: ForkedSandbox) -> None:
    sandbox.memory("pause")
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    assert "fix/kettle.md" in sandbox.memory("list")
    assert "fix/kettle.md" in sandbox.memory("recall", "porcelain kettle")


def test_resume_says_which_setting_still_holds(sandbox: ForkedSandbox) -> None:
    config = load_settings(sandbox.environment).config_file
    config.write_text("[memory]\nenabled = false\n", "utf-8")
    sandbox.memory("pause")
    assert sandbox.refused("resume") == (
        "memory: the pause has ended, but memory.enabled is false: nothing is recorded and no job starts; to go on, "
        f"set memory.enabled = true in {config}\n"
    )
    assert paused_since(place(sandbox)) is None


def test_a_broken_settings_file_and_a_vault_that_is_away_do_not_prevent_a_pause(sandbox: ForkedSandbox) -> None:
    config = load_settings(sandbox.environment).config_file
    config.write_text("[recall\n", "utf-8")
    sandbox.vault.rename(sandbox.vault.with_name("Away"))
    done = sandbox.run("pause")
    assert done.returncode == 0
    assert "config.toml:1" in done.stderr
    assert Path(StatePaths(str(sandbox.state)).stop_file).exists()


@pytest.mark.parametrize(
    ("line", "told", "about", "detail"),
    [
        ("pause", "MemoryVault is paused: nothing is recorded and no job starts; to go on, `memory resume`", "worker",
         "MemoryVault is paused: nothing is recorded or said to sessions, and every job waits"),
        ("jobs pause reflect.session", "paused by hand: reflect.session; no such job starts until `memory jobs resume "
         "reflect.session`", "queue", "; paused: reflect.session"),
    ],
    ids=["all", "a kind of job"],
)  # fmt: skip
def test_health_and_doctor_tell_a_pause_with_the_command_that_ends_it(
    sandbox: ForkedSandbox, line: str, told: str, about: str, detail: str
) -> None:
    sandbox.memory(*line.split())
    assert f"! {told}" in sandbox.memory("health").splitlines()
    found = sandbox.diagnosis()[about]
    resume = line.replace("pause", "resume")
    assert (found["grade"], found["todo"]) == ("note", f"`memory {resume}`")
    assert found["detail"].endswith(detail)
    sandbox.memory(*resume.split())
    assert told not in sandbox.memory("health")


def test_a_switch_that_cannot_be_turned_is_an_error(tmp_path: Path) -> None:
    state = StatePaths(str(tmp_path))
    with pytest.raises(QueueUnavailable, match="nothing is paused"):
        pause(state)
    Path(state.stop_file).mkdir(parents=True)
    with pytest.raises(QueueUnavailable, match="it stays paused"):
        resume(state)


def test_a_link_that_leads_nowhere_is_no_pause_and_does_not_keep_one_from_beginning(sandbox: ForkedSandbox) -> None:
    stop_file = Path(place(sandbox).stop_file)
    nowhere = stop_file.with_name("nowhere")
    stop_file.symlink_to(nowhere)
    record_session(sandbox)
    assert [job["state"] for job in sandbox.json("jobs", "list", "--kind", "reflect.session")] == ["queued"]
    assert sandbox.json("pause")["changed"]
    assert stop_file.is_file()
    assert not nowhere.exists()
    assert pause_notice(load_settings(sandbox.environment)) is not None


def test_while_memory_is_switched_off_commands_leave_the_vault_as_it_is(sandbox: ForkedSandbox) -> None:
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sandbox.vault.rglob("*.md")}

    sandbox.memory("save", "convention", "deploys", "--body", "Deploys happen on Tuesdays.")
    before = files()
    fridays = ["save", "convention", "fridays", "--body", "Never on Fridays."]
    off = {**sandbox.environment, "MEMORY_ENABLED": "false"}
    for command in (fridays, ["idea", "add", "Dark mode", "A toggle."], ["dismiss", "deploys", "--yes"]):
        line = sandbox.refused(*command, env=off)
        assert "memory.enabled is false" in line
        assert "memory --force" in line
    assert files() == before
    assert sandbox.run("--force", *fridays, env={**off, "CLAUDECODE": "1"}).returncode == 2
    assert files() == before
    assert sandbox.run("--force", *fridays, env=off).returncode == 0
    assert len(files()) == len(before) + 1


def test_while_it_is_paused_no_session_is_reflected_by_hand_either(sandbox: ForkedSandbox) -> None:
    record_session(sandbox)
    transcript = next(path for path in sandbox.root.rglob("*.jsonl") if SESSION in path.name)
    sandbox.memory("pause")
    assert "paused" in sandbox.refused("reflect", "--session", str(transcript), code=2)
    assert sandbox.run("reflect", "--session", str(transcript), "--dry-run").returncode == 0


def test_a_pause_ends_a_reflection_by_hand_that_runs_also_in_the_background_of_a_script(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    Path(state.markers).mkdir()
    later = threading.Timer(0.2, Path(state.stop_file).touch)
    interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)  # As a shell does for `memory reflect &`.
    before, threads = signal.getsignal(signal.SIGUSR1), threading.active_count()
    try:
        later.start()
        with pytest.raises(UsageError, match="paused"), ended_by_pause(state):
            time.sleep(20)
    finally:
        signal.signal(signal.SIGINT, interrupts)
    later.join()
    Path(state.stop_file).unlink()
    with ended_by_pause(state):
        pass
    assert (signal.getsignal(signal.SIGUSR1), threading.active_count()) == (before, threads)
