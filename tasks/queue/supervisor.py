"""Run child processes under a hard deadline.

A child leads its own process group and session. The group is killed with SIGKILL at the deadline, when the job is lost,
when the child has ended, and (by `watch_parent` or the guard) when this process dies: the child then reads end-of-file
from a pipe that only this process holds open.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ...runtime.priority import lower_priority

MAX_STDOUT_BYTES = 16 * 1024 * 1024
MAX_STDERR_BYTES = 64 * 1024
FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.002, 0.05
"""Pauses between looks at a running child: each twice the last."""
PARENT_FD = "MEMORY_PARENT_FD"
"""Environment variable with the child's end of the pipe."""

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

    Setting `stop` kills it, and so does too much output. Our own programs call `watch_parent` first; use `guard` for
    others. Raises OSError if it can't be started, or the disk has no room for the input.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        # Files instead of pipes: nobody has to feed and empty them while the child runs.
        given, out, errors = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(input)
        given.seek(0)
        parent_read, parent_write = os.pipe()
        stack.callback(os.close, parent_write)
        command = list(argv)
        if guard:
            command = [sys.executable, "-I", "-S", str(_GUARD), str(parent_read), *argv]
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=out,
                stderr=errors,
                cwd=cwd,
                env={**env, PARENT_FD: str(parent_read)},
                start_new_session=True,
                pass_fds=(parent_read,),
            )
        finally:
            os.close(parent_read)

        def is_too_much() -> bool:
            return _size(out) > max_stdout_bytes or _size(errors) > MAX_STDOUT_BYTES

        try:
            ended = _wait(process, started + deadline_seconds, stop, is_too_much)
        finally:
            _kill_group(process)
        return ChildResult(
            ended=ended,
            returncode=process.returncode,
            stdout=_read_end(out, max_stdout_bytes),
            stderr=_read_end(errors, MAX_STDERR_BYTES).decode(errors="replace"),
            seconds=time.monotonic() - started,
        )


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _read_end(file: IO[bytes], most_bytes: int) -> bytes:
    file.seek(max(0, _size(file) - most_bytes))
    return file.read(most_bytes)


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


def _wait(
    process: subprocess.Popen[bytes], until: float, stop: threading.Event | None, is_too_much: Callable[[], bool]
) -> Literal["exited", "deadline", "stopped", "overflow"]:
    """Wait until the child has exited, or is to be killed; return why."""
    pause = FIRST_LOOK_SECONDS
    while not _has_exited(process):
        if stop is not None and stop.is_set():
            return "stopped"
        if is_too_much():
            return "overflow"
        if (left := until - time.monotonic()) <= 0:
            return "deadline"
        time.sleep(min(pause, left))
        pause = min(2 * pause, LOOK_SECONDS)
    return "overflow" if is_too_much() else "exited"


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    if hasattr(os, "waitid"):
        # Not reaped yet, so that its pid still names the group to kill.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return process.poll() is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
