"""Programs of this package in processes of their own, without the imports that each start would cost.

They are forked from one process that has loaded them and opened nothing. What is forked has a pid, an environment, a
working folder and standard streams of its own, may be killed at any point and ends as every Python program does. It
does not show that the program starts from nothing: tests of that, and all that measure a start, use `Sandbox`.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, ClassVar, Literal, NoReturn

from memoryvault.demo.sandbox import STOP_SECONDS
from memoryvault.runtime import killpoint
from memoryvault.tasks.queue import supervisor
from memoryvault.tasks.queue.supervisor import ChildResult
from memoryvault.tests.support.sandbox import Sandbox

SERVER = "memoryvault.tests.support.forked"
COMMAND = "memoryvault.cli.main"
CHILDREN = ("services.mining", "tasks.jobs.research_child", "services.discovery.fetch_child")
"""Programs of workers that a test may run by itself."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy starts its threads when it is imported, and what has threads cannot be forked."""
_LENGTH_BYTES = 4
_MOST_BYTES = 1 << 16


@dataclass
class Forked:
    """A running program, as a `subprocess.Popen` is one."""

    pid: int
    _report: int
    """The end of a pipe in which its exit status will stand."""
    returncode: int | None = field(default=None)
    errors: IO[bytes] | None = None
    """Its standard error, if it was started with a file for that."""

    def complaint(self) -> str:
        """What it has written on standard error; to be asked for when it has ended."""
        assert self.errors is not None
        return _text(self.errors)

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same, waited for. Raises TimeoutExpired."""
        if self.returncode is None:
            if timeout is not None and not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self.returncode = int(_line(self._report))
            os.close(self._report)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Nothing happens if it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    program: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path = "/",
    streams: Sequence[int],
    session: bool = False,
    libraries: tuple[str, ...] = (),
) -> Forked:
    """Run a program: the name of a module that has a `main()`, or a text as for `python -c`.

    `streams` are the descriptors of its standard input, output and error; `session`: it leads one of its own.
    `libraries` are modules that it finds imported, too.
    """
    assert "PYTHONPATH" not in env, "what is forked has found its modules already: use Sandbox"
    request = {"program": program, "arguments": list(arguments), "env": dict(env), "cwd": str(cwd), "session": session}
    server = _server(libraries)
    report, its = os.pipe()
    try:
        data = json.dumps(request).encode()
        with server.asking:
            socket.send_fds(server.control, [len(data).to_bytes(_LENGTH_BYTES, "big") + data], [*streams, its])
            server.control.recv(1)  # It has been read: the next may follow.
    finally:
        os.close(its)
    return Forked(int(_line(report)), report)


def run(
    program: str,
    arguments: Sequence[str] = (),
    *,
    env: Mapping[str, str],
    cwd: str | Path = "/",
    stdin: str = "",
    libraries: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        given.write(stdin.encode())
        given.seek(0)
        streams = [each.fileno() for each in (given, out, errors)]
        process = start(program, arguments, env=env, cwd=cwd, streams=streams, libraries=libraries)
        try:
            status = process.wait()
        finally:
            process.kill()
        return subprocess.CompletedProcess([program, *arguments], status, _text(out), _text(errors))


class ForkedSandbox(Sandbox):
    """A sandbox whose commands are forked."""

    libraries: ClassVar[tuple[str, ...]] = ()
    """Modules that its commands find imported, besides our own."""

    def run(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **(env or {})}
        return run(COMMAND, arguments, env=environment, cwd=self.root, stdin=stdin, libraries=self.libraries)

    @contextlib.contextmanager
    def process(self, *arguments: str) -> Iterator[Forked]:  # type: ignore[override]  # it behaves as a Popen
        with open(os.devnull, "r+b") as null:
            streams = [null.fileno()] * 3
            process = start(
                COMMAND, arguments, env=self.environment, cwd=self.root, streams=streams, libraries=self.libraries
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def memory(env: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the `memory` command, whatever comes of it."""
    return run(COMMAND, arguments, env=env)


def run_child(
    argv: Sequence[str],
    input: bytes,
    deadline_seconds: float,
    *,
    env: Mapping[str, str],
    stop: threading.Event | None = None,
    guard: bool = False,
    max_stdout_bytes: int = supervisor.MAX_STDOUT_BYTES,
    cwd: str = "/",
) -> ChildResult:
    """In the place of `supervisor.run_child`, in tests of what comes of a child and not of how it is watched.

    It is killed at its deadline, but neither stopped nor cut short.
    """
    assert list(argv[:2]) == [sys.executable, "-m"], "a program of this package"
    assert not guard, "it needs none"
    started = time.monotonic()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        given.write(input)
        given.seek(0)
        streams = [each.fileno() for each in (given, out, errors)]
        process = start(argv[2], argv[3:], env=env, cwd=cwd, streams=streams, session=True)
        try:
            process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            ended: Literal["deadline", "exited"] = "deadline"
            process.kill()
        else:
            ended = "exited"
        status = process.wait()
        out.seek(0)
        return ChildResult(ended, status, out.read(), _text(errors), time.monotonic() - started)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


def _line(pipe: int) -> str:
    found = b""
    while not found.endswith(b"\n"):
        data = os.read(pipe, 1)
        assert data, "what forks has died"
        found += data
    return found.decode()


@dataclass
class _Server:
    """The process that forks, as its user sees it."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    asking: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        self.control.close()
        self.process.wait()


@cache
def _server(libraries: tuple[str, ...] = ()) -> _Server:
    """One for all tests of this process that want these modules imported, and gone with it."""
    ours, its = socket.socketpair()
    with its:
        argv = [sys.executable, "-m", SERVER, str(its.fileno()), *libraries]
        process = subprocess.Popen(
            argv,
            # What Python itself has read of its environment stays with all that is forked.
            env={**{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}, **ONE_THREAD},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
        )
    server = _Server(process, ours)
    atexit.register(server.end)
    return server


# ---- the process that forks


def _load(libraries: Sequence[str]) -> None:
    """All that a command may import, but for what has threads or weights; and these modules."""
    from memoryvault.cli.main import COMMANDS

    names = [f"cli.{module}" for module, *_ in COMMANDS.values()]
    for name in (*names, "tasks.jobs.wiring", *CHILDREN):
        importlib.import_module(f"memoryvault.{name}")
    for name in libraries:
        importlib.import_module(name)


def _reap(number: int, frame: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(control: socket.socket) -> str | None:
    """Fork for each request. Returns in the forked process, with its program; None at the end."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, _MOST_BYTES, 4)
        if not data:
            return None
        length = int.from_bytes(data[:_LENGTH_BYTES], "big") + _LENGTH_BYTES
        while len(data) < length:
            data += control.recv(_MOST_BYTES)
        control.send(b".")
        if os.fork() == 0:
            control.close()
            return _fork(json.loads(data[_LENGTH_BYTES:]), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork(request: Mapping[str, object], descriptors: Sequence[int]) -> str:
    """Fork again, and tell how that ends: it has one parent who waits for it, and nobody has two children."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, report = descriptors
    pid = os.fork()
    if pid == 0:
        os.close(report)
        return _become(streams, **request)  # type: ignore[arg-type]  # as `start` wrote it
    for descriptor in streams:
        os.close(descriptor)
    os.write(report, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(
    streams: Sequence[int], program: str, arguments: Sequence[str], env: Mapping[str, str], cwd: str, session: bool
) -> str:
    if session:
        os.setsid()
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    # What Python has made of them at its start is for other files: those cannot be sought in, say.
    sys.stdin = os.fdopen(0, encoding=sys.stdin.encoding, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding=sys.stderr.encoding, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Whoever started us may have been in the background.
    killpoint.arm(os.environ)
    os.chdir(cwd)
    sys.argv[1:] = arguments
    return program


def main() -> None:
    """The process that forks, and what was forked."""
    _load(sys.argv[2:])
    gc.collect()
    gc.freeze()  # What a collection looks at is copied.
    signal.signal(signal.SIGCHLD, _reap)
    assert threading.active_count() == 1 == _threads(), "what has threads cannot be forked"
    program = _serve(socket.socket(fileno=int(sys.argv[1])))
    if program is not None:
        _end(_run(program))


def _threads() -> int:
    """Those of libraries, too, where the system tells them (Linux)."""
    with contextlib.suppress(FileNotFoundError):
        return len(os.listdir("/proc/self/task"))
    return threading.active_count()


def _run(program: str) -> int:
    try:
        if all(part.isidentifier() for part in program.split(".")):
            return int(importlib.import_module(program).main() or 0)
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001  the end of a process
        traceback.print_exc()
        return 1


def _end(status: int) -> NoReturn:
    """As Python ends a program; only its memory is not taken down, which costs more than all that was done in it."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
