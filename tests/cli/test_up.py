"""`memory service up`: worker and recall service in one terminal, whatever runs already."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memoryvault.cli.up import PROGRAMS
from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.lock import hold_lock
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.runtime.settings import load_settings

from ..acceptance.test_the_loop import record_session
from ..support.sandbox import Sandbox
from ..tasks.support import wait_until

pytestmark = pytest.mark.slow
WAIT_SECONDS = 30.0
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    made = Sandbox(tmp_path)
    made.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    return made


def reflections(sandbox: Sandbox) -> list[str]:
    return [job["state"] for job in sandbox.json("jobs", "list", "--kind", "reflect.session")]


def test_it_takes_over_from_a_recall_service_and_a_second_one_disturbs_nothing(sandbox: Sandbox) -> None:
    state = load_settings(sandbox.environment).state
    with sandbox.process("service", "serve"):
        wait_until(lambda: lock_holder(state.recall_lock) is not None, "a session has started one")
        before = lock_holder(state.recall_lock)
        with sandbox.process("service", "up") as up:
            wait_until(lambda: lock_holder(state.worker_lock) is not None, "the worker runs")
            wait_until(lambda: lock_holder(state.recall_lock) not in (None, before), "a service of its own")
            running = lock_holder(state.worker_lock), lock_holder(state.recall_lock)
            assert f"(pid {running[0]}); `kill {running[0]}` ends it" in sandbox.refused("service", "up")
            assert (lock_holder(state.worker_lock), lock_holder(state.recall_lock)) == running
            assert up.poll() is None


def test_it_keeps_running_without_questions(tmp_path: Path) -> None:
    """The end of the recall service ends the worker with it, here and under foreman."""
    quiet = Sandbox(tmp_path, settings={"MEMORY_RECALL_IDLE_EXIT_SECONDS": "10"})  # Without a note to be embedded.
    state = load_settings(quiet.environment).state
    with quiet.process("service", "up") as up:
        wait_until(lambda: lock_holder(state.recall_lock) is not None, "the service runs")
        with pytest.raises(subprocess.TimeoutExpired):
            up.wait(25)
        assert lock_holder(state.worker_lock) is not None
        assert lock_holder(state.recall_lock) is not None


def test_a_running_job_is_ended_before_the_worker_is_killed(sandbox: Sandbox) -> None:
    state = load_settings(sandbox.environment).state
    with sandbox.process("service", "up") as up:
        wait_until(lambda: lock_holder(state.worker_lock) is not None, "the worker runs")
        with hold_lock(Path(state.vault_lock)):
            record_session(sandbox)
            wait_until(lambda: reflections(sandbox) == ["running"], "it will wait for the vault")
            up.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                up.wait(9)
        assert up.wait(WAIT_SECONDS) == 0
    assert reflections(sandbox) == ["done"]


@pytest.fixture
def up_alone(sandbox: Sandbox) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """`memory service up` in a session of its own, as a terminal's, writing where it is told; both programs run."""
    started: list[subprocess.Popen[bytes]] = []
    state = load_settings(sandbox.environment).state

    def start(output: int) -> subprocess.Popen[bytes]:
        started.append(
            subprocess.Popen(
                [sandbox.python, "-m", "memoryvault", "service", "up"],
                env=sandbox.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )  # fmt: skip
        wait_until(lambda: None not in (lock_holder(state.worker_lock), lock_holder(state.recall_lock)), "both run")
        return started[-1]

    yield start
    left = (lock_holder(state.worker_lock), lock_holder(state.recall_lock))
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pid in left:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    assert left == (None, None), "nothing is left running"


@pytest.mark.parametrize("output", ["its reader is gone", "its disk is full"])
def test_an_output_that_takes_nothing_more_stops_nothing(
    up_alone: Callable[[int], subprocess.Popen[bytes]], output: str
) -> None:
    if output == "its disk is full":
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, descriptor = os.pipe()
        os.close(reader)
    up = up_alone(descriptor)
    os.close(descriptor)
    with pytest.raises(subprocess.TimeoutExpired):
        up.wait(1)
    up.terminate()
    assert up.wait(WAIT_SECONDS) == (1 if output == "its disk is full" else 0)


def test_it_tells_which_program_ended_and_how(
    sandbox: Sandbox, up_alone: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    reader, descriptor = os.pipe()
    up = up_alone(descriptor)
    os.close(descriptor)
    worker = lock_holder(load_settings(sandbox.environment).state.worker_lock)
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    assert up.wait(WAIT_SECONDS) == 1
    with open(reader, encoding="utf-8") as output:
        said = [line for line in output if " memory | " in line]
    assert [line.partition(" | ")[2] for line in said] == ["worker ended with -9; what else runs is ended, too\n"]


def test_a_signal_is_told_before_the_worker_has_stopped_its_jobs(
    up_alone: Callable[[int], subprocess.Popen[bytes]],
) -> None:
    reader, descriptor = os.pipe()
    up = up_alone(descriptor)
    os.close(descriptor)
    up.terminate()
    assert up.wait(WAIT_SECONDS) == 0
    with open(reader, encoding="utf-8") as output:
        assert " memory | both are being ended; " in output.read()


def test_the_end_of_its_terminal_ends_both(up_alone: Callable[[int], subprocess.Popen[bytes]]) -> None:
    up = up_alone(subprocess.DEVNULL)
    os.killpg(up.pid, signal.SIGHUP)
    assert up.wait(WAIT_SECONDS) == 0


def test_the_procfile_has_the_same_programs() -> None:
    lines = (ROOT / "Procfile").read_text("utf-8").splitlines()
    assert dict(line.split(": memory ") for line in lines) == PROGRAMS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_it_starts_ends_all_of_it(sandbox: Sandbox, number: signal.Signals) -> None:
    state = load_settings(sandbox.environment).state
    with sandbox.process("service", "up") as up:
        children = Path(f"/proc/{up.pid}/task/{up.pid}/children")
        wait_until(lambda: children.read_text().strip() != "", "the first of them is being started")
        up.send_signal(number)
        assert up.wait(WAIT_SECONDS) == 0
    assert lock_holder(state.worker_lock) is None
    assert lock_holder(state.recall_lock) is None


# After `memory uninstall` no command starts a background process until `memory init`


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Sandbox]:
    """Set up with one note; worker and recall service start by themselves. They are ended with the test."""
    sandbox = Sandbox(tmp_path, {"MEMORY_AUTOSTART": "true"})
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault), "--history-days", "0")
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    yield sandbox
    sandbox.run("uninstall")


def running(sandbox: Sandbox) -> list[str]:
    """The background processes, found by what they run, so that one without a lock counts as well."""
    of_vault = f"MEMORY_VAULT_PATH={sandbox.vault}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and of_vault in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().split(b"\0")[-2].decode())
        except (OSError, IndexError):
            continue
    return sorted(found)


def state_of(sandbox: Sandbox) -> StatePaths:
    return load_settings(sandbox.environment).state


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="asks Linux what runs")
def test_no_command_starts_what_uninstall_has_stopped(live: Sandbox) -> None:
    live.memory("recall", "porcelain kettle")  # Until then the service may only be coming.
    assert running(live) == ["serve", "worker"]
    assert "stopped: worker, recall" in live.memory("uninstall")
    done = live.run("recall", "porcelain kettle")
    assert "fix/kettle.md" in done.stdout
    assert "memory: no recall service is started since `memory uninstall`; `memory init` sets all up again" in (
        done.stderr.splitlines()
    )
    assert running(live) == []
    live.memory("save", "fix", "teapot", "--body", "The teapot stays in the cellar.")
    live.memory("vault", "reindex")
    live.memory("list")
    live.memory("service", "worker", "--until-idle")
    assert running(live) == []
    assert live.diagnosis()["round trip"]["grade"] in ("ok", "note"), "what it starts for that it ends"
    assert running(live) == []
    live.memory("init", "--yes", "--vault", str(live.vault), "--history-days", "0")
    assert "uninstall" not in live.run("recall", "porcelain kettle").stderr
    state = state_of(live)
    assert None not in (lock_holder(state.worker_lock), lock_holder(state.recall_lock)), "init allows it again"


def test_where_nothing_was_installed_recall_starts_the_service_as_ever(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, {"MEMORY_AUTOSTART": "true"})
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    try:
        assert "fix/kettle.md" in sandbox.memory("recall", "porcelain kettle")
        assert lock_holder(state_of(sandbox).recall_lock) is not None
    finally:
        sandbox.run("uninstall")
