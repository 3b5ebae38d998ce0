"""Run child processes under a hard deadline.

A child leads its own process group and session. The group is killed with SIGKILL at the deadline, when the job is lost,
when the child has ended, and (by `watch_parent` or the guard) when this process dies: the child then reads end-of-file
from a pipe that only this process holds open.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ...runtime.priority import lower_priority

MAX_STDOUT_BYTES = 16 * 1024 * 1024
MAX_STDERR_BYTES = 64 * 1024
STOP_POLL_SECONDS = 0.05
PARENT_FD = "MEMORY_PARENT_FD"
"""Environment variable with the child's end of the pipe."""

_READ_BYTES = 64 * 1024
_GUARD = Path(__file__).with_name("guard.py")


@dataclass(frozen=True)
class ChildResult:
    """How a child ended."""

    ended: Literal["exited", "deadline", "stopped", "overflow"]
    """Whether it exited or was killed, and why."""
    returncode: int
    """Exit status; -n if killed by signal n."""
    stdout: bytes
    stderr: str
    """The last MAX_STDERR_BYTES."""
    seconds: float

    def last_words(self) -> str:
        """Return the last line on stderr: an uncaught exception, or a message of the program."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"exit status {self.returncode}"


def run_child(
    argv: Sequence[str],
    input: bytes,
    deadline_seconds: float,
    *,
    env: Mapping[str, str],
    stop: threading.Event | None = None,
    guard: bool = False,
    max_stdout_bytes: int = MAX_STDOUT_BYTES,
    cwd: str = "/",
) -> ChildResult:
    """Run `argv` with exactly the environment `env`, in `cwd`, with `input` on stdin; wait until its group is gone.

    Setting `stop` kills it. Our own programs call `watch_parent` first; use `guard` for others. Raises OSError if it
    can't be started.
    """
    started = time.monotonic()
    parent_read, parent_write = os.pipe()
    try:
        command = list(argv)
        if guard:
            command = [sys.executable, "-I", "-S", str(_GUARD), str(parent_read), *argv]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**env, PARENT_FD: str(parent_read)},
            start_new_session=True,
            pass_fds=(parent_read,),
            bufsize=0,
        )
    except BaseException:
        os.close(parent_write)
        raise
    finally:
        os.close(parent_read)
    exchange = _Exchange(process, input, max_stdout_bytes)
    try:
        ended = exchange.run(started + deadline_seconds, stop)
    finally:
        _kill_group(process)
        exchange.close()
        os.close(parent_write)
    return ChildResult(
        ended=ended,
        returncode=process.returncode,
        stdout=bytes(exchange.stdout),
        stderr=exchange.stderr.decode(errors="replace"),
        seconds=time.monotonic() - started,
    )


def watch_parent() -> None:
    """Kill the whole group as soon as the parent is gone. Must be called first in a child's program.

    The child's new session gets the priority of the worker that started it.
    """
    value = os.environ.pop(PARENT_FD, "")
    if not value:
        return  # Started by hand.
    fd = int(value)
    os.set_inheritable(fd, False)

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(fd, 1):
                pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()
    lower_priority(os.getpriority(os.PRIO_PROCESS, 0))


class _Exchange:
    """Feeds stdin and collects stdout and stderr within limits."""

    def __init__(self, process: subprocess.Popen[bytes], input: bytes, max_stdout_bytes: int) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._process = process
        self._input = memoryview(input)
        self._max_stdout = max_stdout_bytes
        self._selector = selectors.DefaultSelector()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdin: IO[bytes] = process.stdin
        os.set_blocking(process.stdin.fileno(), False)
        self._selector.register(process.stdin, selectors.EVENT_WRITE, self._feed)
        self._selector.register(process.stdout, selectors.EVENT_READ, self._read_stdout)
        self._selector.register(process.stderr, selectors.EVENT_READ, self._read_stderr)

    def run(self, until: float, stop: threading.Event | None) -> Literal["exited", "deadline", "stopped", "overflow"]:
        exited_at: float | None = None
        while True:
            if stop is not None and stop.is_set():
                return "stopped"
            left = until - time.monotonic()
            if exited_at is None and _has_exited(self._process):
                # Its own children must not keep our pipes open, or outlive it.
                _signal_group(self._process)
                exited_at = time.monotonic()
            if not self._selector.get_map():
                if exited_at is not None:
                    return "exited"
                time.sleep(min(0.005, max(left, 0)))
            else:
                pause = 0.0 if exited_at else min(STOP_POLL_SECONDS, max(left, 0))
                events = self._selector.select(pause)
                for key, _ in events:
                    key.data()
                if exited_at is not None and (not events or time.monotonic() > exited_at + 1.0):
                    return "exited"  # A process that left the group holds a pipe; what was written is read.
            if len(self.stdout) > self._max_stdout:
                return "overflow"
            if exited_at is None and left <= 0:
                return "deadline"

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)  # type: ignore[arg-type]
        self._selector.close()

    def _drop(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        with contextlib.suppress(OSError):
            pipe.close()

    def _feed(self) -> None:
        try:
            written = os.write(self._stdin.fileno(), self._input[:_READ_BYTES]) if self._input else 0
        except BlockingIOError:
            return
        except OSError:
            written = len(self._input)  # The child has closed stdin.
        self._input = self._input[written:]
        if not self._input:
            self._drop(self._stdin)

    def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        data = os.read(self._process.stdout.fileno(), _READ_BYTES)
        self.stdout += data
        if not data:
            self._drop(self._process.stdout)

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        data = os.read(self._process.stderr.fileno(), _READ_BYTES)
        self.stderr += data
        del self.stderr[:-MAX_STDERR_BYTES]
        if not data:
            self._drop(self._process.stderr)


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    if hasattr(os, "waitid"):
        # Not reaped yet, so that its pid still names the group to kill.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return process.poll() is not None


def _signal_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process)
    process.wait()
