"""The set-up of the chaos bench: a vault, real hooks, real workers and a recall service, in separate folders.

Workers and services are forked from this process, which has imported the program and opened nothing. This saves half a
second of imports at each of hundreds of starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...cli.main import main as memory_command
from ...demo.sandbox import Sandbox
from ...hooks.install import precompile
from ...runtime import killpoint
from ...runtime.layout import StatePaths
from ...runtime.settings import Settings, load_settings
from ...tasks.jobs.wiring import build_worker  # noqa: F401 - loaded before the fork
from ...tasks.queue.ledger import Ledger
from ...tasks.queue.wakeup import wake_worker
from ...tests.index.serve import main as serve_with_fake_model
from ..hooks import stub_argv

LEASE_SECONDS = 2
CWD = "/home/dev/shop"
PATIENCE_SECONDS = 20.0
VERBS = ("deploy", "format", "test", "compress", "review", "restart", "archive", "translate", "measure", "sign")
HOST_LINE = {"type": "permission-mode", "permissionMode": "default"}


@dataclass
class Session:
    """One agent session, and the rules its user stated, each of which must become one entry."""

    id: str
    transcript: Path
    rules: list[str] = field(default_factory=list)


@dataclass
class Tally:
    """Counts of kills and of what was seen."""

    kills: Counter[str] = field(default_factory=Counter)
    """By signal and process: `KILL worker`, `STOP worker`, `KILL child`, …"""
    points: Counter[str] = field(default_factory=Counter)
    """Named points at which a process died."""
    missed: Counter[str] = field(default_factory=Counter)
    """Named points that a process did not reach in time."""
    jobs: int = 0
    """Jobs in all queue.db files of the run."""
    orphans: int = 0
    """Children that lived seconds longer than their parent."""
    unexpected: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of all kills."""
        return sum(self.kills.values())


class Bed:
    """The folders and processes of one run."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.chance = chance
        self.sandbox = Sandbox(
            root,
            {"AGENT_TOOLKIT_EMBEDDING_MODEL": "fake", "MEMORY_TEST_LEASE_SECONDS": str(LEASE_SECONDS),
             "MEMORY_TEST_DRAIN_SECONDS": "2", "MEMORY_TEST_POLL_SECONDS": "0.25"},
        )  # fmt: skip
        self.tally = Tally()
        self.sessions: list[Session] = []
        self.settings: Settings = load_settings(self.sandbox.environment)
        self.state = StatePaths(self.settings.state.root)
        self.state.ensure()
        precompile()
        self._hooks = {event: stub_argv(event) for event in ("SessionStart", "Stop", "SessionEnd")}
        self._children: set[int] = set()
        self._errors = root / "processes.stderr"

    # ---- what the user and the host do

    def new_session(self) -> Session:
        """Add a session that states one rule and ends."""
        number = len(self.sessions)
        session_id = f"{number:08x}-0000-4000-8000-{self.chance.getrandbits(48):012x}"
        path = self.sandbox.projects / "-home-dev-shop" / f"{session_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        session = Session(session_id, path)
        self.sessions.append(session)
        path.write_text(json.dumps({**HOST_LINE, "sessionId": session_id}) + "\n")
        self._hook("SessionStart", session, source="startup")
        self.state_a_rule(session)
        return session

    def state_a_rule(self, session: Session) -> None:
        """Let the user state one more rule: the host writes it down and runs its hooks."""
        word, *others = (_word(self.chance.randrange(85**3)) + _word(self.chance.randrange(85**3)) for _ in range(5))
        verb = self.chance.choice(VERBS)
        rule = "Always {} the {} {} with {}, never with {} or {}.".format(verb, word, *others)
        record = f"{session.id[:8]}-0000-4000-8000-{len(session.rules):012x}"
        line = {
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": CWD, "sessionId": session.id,
            "version": "2.1.231", "gitBranch": "main", "entrypoint": "cli", "type": "user",
            "message": {"role": "user", "content": rule}, "uuid": record,
            "timestamp": "2026-09-14T09:07:00.000Z", "origin": {"kind": "human"}, "promptSource": "typed",
            "permissionMode": "default",
        }  # fmt: skip
        with session.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")
        session.rules.append(word)
        self._hook("Stop", session, prompt_id=record)
        self._hook("SessionEnd", session, reason="other")

    def _hook(self, event: str, session: Session, **fields: str) -> None:
        payload = {"cwd": CWD, "session_id": session.id, "transcript_path": str(session.transcript), **fields}
        self.sandbox.hook(event, payload, argv=self._hooks[event])
        self.sandbox.hook_ms.clear()

    @contextlib.contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Open the ledger as a command does; it is closed before anything is forked."""
        with Ledger(self.state.queue_db, wakeup=lambda: wake_worker(self.state.wake_socket)) as ledger:
            yield ledger

    def count_jobs(self) -> Counter[str]:
        """Add the jobs of this queue.db to the tally; return their number by state."""
        with self.ledger() as ledger:
            counts = Counter(job.state for job in ledger.list_jobs(most=1_000_000))
        self.tally.jobs += sum(counts.values())
        return Counter({str(state): count for state, count in counts.items()})

    @contextlib.contextmanager
    def locked_queue(self) -> Iterator[None]:
        """Lock queue.db, so that hooks spool."""
        lock = sqlite3.connect(self.state.queue_db, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            lock.execute("ROLLBACK")
            lock.close()

    # ---- processes

    def worker(self, kill_point: str | None = None, *arguments: str) -> int:
        """Start `memory service worker` in another process; return its pid."""
        return self._fork(lambda: memory_command(["service", "worker", *arguments]), kill_point)

    def service(self, kill_point: str | None = None) -> int:
        """Start the recall service with a model that needs no weights; return its pid."""
        vault = str(self.sandbox.vault)
        arguments = [vault, self.state.root, "--model", "fake", "--text-seconds", "0.002"]
        return self._fork(lambda: serve_with_fake_model(arguments), kill_point)

    def _fork(self, program: Callable[[], int], kill_point: str | None) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            self._children.add(pid)
            return pid
        status = 70
        try:
            os.setsid()
            null, errors = os.open(os.devnull, os.O_RDWR), os.open(self._errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for target, source in ((0, null), (1, null), (2, errors)):
                os.dup2(source, target)
            environment = dict(self.sandbox.environment)
            if kill_point is not None:
                environment |= {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill_point}
            os.environ.clear()
            os.environ.update(environment)
            os.chdir("/")
            killpoint.arm(os.environ)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            status = program()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:  # noqa: BLE001 - the end of a process
            traceback.print_exc()
        finally:
            os._exit(status)

    def ended(self, pid: int) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        if pid not in self._children:
            return 0
        found, status = os.waitpid(pid, os.WNOHANG)
        if found == 0:
            return None
        self._children.discard(pid)
        return os.waitstatus_to_exitcode(status)

    def wait(self, pid: int, seconds: float) -> int | None:
        """Wait for the end of a process; see `ended`."""
        until = time.monotonic() + seconds
        while (status := self.ended(pid)) is None and time.monotonic() < until:
            time.sleep(0.01)
        return status

    def kill(self, pid: int, number: signal.Signals, what: str) -> None:
        """Send a signal and count it, if the process exists."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        self.tally.kills[f"{number.name[3:]} {what}"] += 1

    def stop(self, pid: int, seconds: float = PATIENCE_SECONDS) -> None:
        """End a process that a round has left running, first with SIGTERM."""
        for number in (signal.SIGCONT, signal.SIGTERM):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if self.wait(pid, seconds) is None:
            self.tally.unexpected.append(f"process {pid} did not leave within {seconds:.0f} s of SIGTERM")
            os.kill(pid, signal.SIGKILL)
            self.wait(pid, 5.0)

    def stop_all(self) -> None:
        """End everything."""
        for pid in list(self._children):
            self.stop(pid)

    def children_of(self, pid: int) -> list[int]:
        """Processes that a worker has started."""
        done = subprocess.run(["ps", "-Ao", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        return [int(row[0]) for row in rows if int(row[1]) == pid and not row[2].startswith("Z")]

    def strays(self) -> list[int]:
        """Processes of this bed that were not started by it and whose parent is gone."""
        done = subprocess.run(["ps", "axeww", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True)
        found = []
        for line in done.stdout.splitlines():
            if str(self.sandbox.root) in line:
                pid, parent = (int(word) for word in line.split(None, 2)[:2])
                if pid not in self._children and parent not in self._children and parent != os.getpid():
                    found.append(pid)
        return [pid for pid in found if pid != os.getpid()]

    def count_orphans(self, children: Sequence[int], seconds: float = 3.0) -> None:
        """Children of a parent that was killed must be gone in seconds."""
        until = time.monotonic() + seconds
        left = [pid for pid in children if _exists(pid)]
        while left and time.monotonic() < until:
            time.sleep(0.02)
            left = [pid for pid in left if _exists(pid)]
        self.tally.orphans += len(left)

    def errors(self) -> str:
        """What the processes wrote on stderr."""
        return self._errors.read_text("utf-8", "replace") if self._errors.exists() else ""


def _exists(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(found.stdout.strip()) and not found.stdout.strip().startswith("Z")


def _word(number: int) -> str:
    """Return an invented word, so that no rule looks like another wording of an earlier one."""
    word = ""
    for _ in range(3):
        number, consonant = divmod(number, 17)
        number, vowel = divmod(number, 5)
        word += "bcdfghjklmnprstvz"[consonant] + "aeiou"[vowel]
    return word
