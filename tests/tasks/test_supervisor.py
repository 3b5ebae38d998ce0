"""Children end at their deadline, with their parent, and with their group."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.index.models import wanted_model
from memoryvault.runtime.settings import Settings
from memoryvault.services import upgrading
from memoryvault.tasks.queue.job import Dead, Retry, RunningJob, run_json_child
from memoryvault.tasks.queue.kinds import POLICIES
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.supervisor import ChildResult, run_child
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.tasks.support import is_alive, pid_in, wait_until

ENV = {"PATH": os.environ["PATH"]}
# A grandchild in the same group; both ignore what can be ignored.
FAMILY = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1] + ".tmp", "w").write(str(child.pid))
import os; os.rename(sys.argv[1] + ".tmp", sys.argv[1])
"""


def run(
    program: str,
    *arguments: str,
    data: bytes = b"",
    seconds: float = 20.0,
    stop: threading.Event | None = None,
    guard: bool = False,
    max_stdout_bytes: int = 1_000_000,
) -> ChildResult:
    """Run a Python program as a child."""
    argv = [sys.executable, "-c", program, *arguments]
    return run_child(argv, data, seconds, env=ENV, stop=stop, guard=guard, max_stdout_bytes=max_stdout_bytes)


def test_input_and_outputs_larger_than_any_pipe_are_exchanged() -> None:
    data = os.urandom(700_000)
    copy = "import sys; d = sys.stdin.buffer.read(); sys.stderr.write('e' * 200_000 + 'END')\n"
    result = run(copy + "sys.stdout.buffer.write(d)", data=data)
    assert (result.ended, result.returncode) == ("exited", 0)
    assert result.stdout == data
    assert len(result.stderr) == 64 * 1024
    assert result.stderr.endswith("END")


def test_a_child_gets_only_the_allowed_environment_and_a_neutral_folder() -> None:
    os.environ["MEMORY_NOT_FOR_CHILDREN"] = "1"
    try:
        result = run("import os; print(os.getcwd(), sorted(k for k in os.environ if 'LC_' not in k))")
    finally:
        del os.environ["MEMORY_NOT_FOR_CHILDREN"]
    assert result.stdout.decode().split(maxsplit=1) == ["/", "['MEMORY_PARENT_FD', 'PATH']\n"]


def test_the_exit_status_and_signal_are_reported() -> None:
    assert run("raise SystemExit(3)").returncode == 3
    assert run("import os; os.kill(os.getpid(), 9)").returncode == -9
    assert run("raise SystemExit(3)", guard=True).returncode == 3
    with pytest.raises(FileNotFoundError):
        run_child(["/no/such/program"], b"", 5, env=ENV)
    assert run_child(["/no/such/program"], b"", 5, env=ENV, guard=True).returncode == 127


def test_a_child_that_does_not_read_its_input_is_no_error() -> None:
    assert run("pass", data=b"x" * 500_000).returncode == 0


@pytest.mark.hurried
@pytest.mark.parametrize("guard", [False, True])
def test_at_the_deadline_the_whole_group_is_killed(tmp_path: Path, guard: bool) -> None:
    pid_file = tmp_path / "grandchild"
    started = time.monotonic()
    result = run(FAMILY + "time.sleep(60)", str(pid_file), seconds=0.6 * patience(), guard=guard)
    assert result.ended == "deadline"
    assert 0.6 * patience() <= time.monotonic() - started < 3 * patience()
    wait_until(lambda: not is_alive(pid_in(pid_file)), "the grandchild is gone")


def test_processes_left_by_a_child_are_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "grandchild"
    result = run(FAMILY, str(pid_file))
    assert (result.ended, result.returncode) == ("exited", 0)
    wait_until(lambda: not is_alive(pid_in(pid_file)), "the grandchild is gone")


def test_a_child_that_writes_without_end_is_killed() -> None:
    result = run("while True: print('x' * 1000)", max_stdout_bytes=100_000)
    assert result.ended == "overflow"


def test_nothing_is_left_open() -> None:
    def descriptors() -> int:
        return len(os.listdir("/dev/fd"))

    run("pass")
    before = descriptors()
    for _ in range(3):
        run("pass", data=b"x")
        run("import time; time.sleep(60)", seconds=0.05)
    assert descriptors() == before


AUTOGROUP = Path("/proc/self/autogroup")
groups_by_session = pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel does not group by session")


@groups_by_session
@pytest.mark.slow
def test_the_session_of_a_child_begins_with_the_priority_of_its_parent() -> None:
    """Linux shares the processor among sessions first: a child's niceness alone says nothing beside a hook."""
    niceness = max(12, os.getpriority(os.PRIO_PROCESS, 0))
    child = f"""
import os, time
from memoryvault.tasks.queue.supervisor import watch_parent
watch_parent()
until = time.monotonic() + 10
while (session := open("{AUTOGROUP}").read().split()[-1]) == "0" and time.monotonic() < until:
    time.sleep(0.01)
print(os.getpriority(os.PRIO_PROCESS, 0), session)
"""
    parent = f"""
import os, sys
from memoryvault.tasks.queue.supervisor import run_child
os.setpriority(os.PRIO_PROCESS, 0, {niceness})
print(run_child([sys.executable, "-c", {child!r}], b"", 60, env={{"PATH": os.environ["PATH"]}}).stdout.decode())
"""
    done = subprocess.run([sys.executable, "-c", parent], cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(niceness)] * 2


@groups_by_session
@pytest.mark.slow
def test_a_program_with_time_steps_back_further_with_its_session() -> None:
    program, niceness = upgrading.__name__, upgrading.NICENESS
    child = subprocess.Popen([sys.executable, "-m", program], stdin=subprocess.PIPE, cwd="/", start_new_session=True)
    try:
        autogroup = Path(f"/proc/{child.pid}/autogroup")
        wait_until(lambda: autogroup.read_text().split()[-1] == str(niceness), "its session steps back")
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == max(niceness, os.getpriority(os.PRIO_PROCESS, 0))
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("guard", [False, True])
def test_when_the_parent_is_killed_the_group_dies(tmp_path: Path, guard: bool) -> None:
    pid_file = tmp_path / "grandchild"
    watch = "" if guard else "from memoryvault.tasks.queue.supervisor import watch_parent; watch_parent()\n"
    program = watch + FAMILY + "time.sleep(60)"
    parent = f"""
import os, sys
from memoryvault.tasks.queue.supervisor import run_child
run_child([sys.executable, "-c", {program!r}, {str(pid_file)!r}], b"", 60,
          env={{"PATH": os.environ["PATH"]}}, guard={guard})
"""
    process = subprocess.Popen([sys.executable, "-c", parent], cwd="/")
    try:
        grandchild = pid_in(pid_file)
        assert is_alive(grandchild)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not is_alive(grandchild), "the grandchild is gone")


# A job's child answers in JSON; on any failure of the child the job is retried, without a traceback


ANSWERING = "memoryvault.tests.tasks.answering_program"
CANNOT = 3


@pytest.fixture
def job(settings: Settings) -> Iterator[RunningJob]:
    """A claimed job of kind model.upgrade."""
    args = {"model": wanted_model(settings)}
    with Ledger(settings.state.queue_db) as ledger:
        ledger.enqueue("model.upgrade", args)
        claim = ledger.take(lambda: "test", 60.0)
        assert claim is not None
        yield RunningJob(ledger, claim, args, POLICIES["model.upgrade"])


def count(job: RunningJob, settings: Settings, **request: object) -> int:
    """A number that the child is asked to print."""
    return run_json_child(
        job,
        settings,
        ANSWERING,
        request,
        parse=lambda value: int(value["count"]),
        deadline_seconds=60.0,
        verb="counting",
        dead_status=CANNOT,
    )


@pytest.mark.usefixtures("forked_children")
def test_the_parsed_answer_is_returned(job: RunningJob, settings: Settings) -> None:
    assert count(job, settings, print='{"count": 7}') == 7


@pytest.mark.usefixtures("forked_children")
@pytest.mark.parametrize(
    ("status", "error", "told"), [(1, Retry, "^counting failed: out of fingers"), (CANNOT, Dead, "^out of fingers$")]
)
def test_a_child_that_fails_is_tried_again_unless_it_says_that_no_attempt_can_help(
    job: RunningJob, settings: Settings, status: int, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        count(job, settings, complain="out of fingers", status=status)
