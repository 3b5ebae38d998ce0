"""What a person sees while a command works for seconds, and that nobody else sees it."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryvault.cli.doctor import CHECKS
from memoryvault.tests.support.forked import COMMAND, Forked, ForkedSandbox, start
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.vault.lock import hold_lock

AT_MOST_SECONDS = 20.0
"""Less than a command waits for the vault's lock, which tests take from it."""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return ForkedSandbox(tmp_path)


@dataclass
class Seen:
    """A running command and what it has written."""

    process: Forked
    _end: int
    text: str = ""

    def until(self, said: str) -> str:
        """All that it has written when it has written that."""
        deadline = time.monotonic() + AT_MOST_SECONDS
        while said not in self.text:
            assert select.select([self._end], [], [], max(0.0, deadline - time.monotonic()))[0], self.text
            assert self._read(), self.text
        return self.text

    def to_the_end(self) -> str:
        """All that it writes."""
        while self._read():
            pass
        return self.text

    def _read(self) -> bool:
        try:
            data = os.read(self._end, 65536)
        except OSError:  # so ends a terminal
            return False
        self.text += data.decode()
        return bool(data)


@contextmanager
def seen(sandbox: Sandbox, *arguments: str, at: Callable[[], tuple[int, int]] = pty.openpty) -> Iterator[Seen]:
    """The command with its output and errors at a terminal, or at `os.pipe`."""
    reading, writing = at()
    with open(os.devnull, "rb") as nothing:
        streams = [nothing.fileno(), writing, writing]
        process = start(COMMAND, arguments, env=sandbox.environment, streams=streams, session=True)
    os.close(writing)
    try:
        yield Seen(process, reading)
    finally:
        process.kill()
        process.wait()
        os.close(reading)


def rows(text: str) -> list[str]:
    """The lines as they stand when they are written: of a line that was written again its last state."""
    return [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize("at", [os.pipe, pty.openpty], ids=["pipe", "terminal"])
def test_doctor_tells_each_finding_when_it_has_it(sandbox: Sandbox, at: Callable[[], tuple[int, int]]) -> None:
    sandbox.memory("jobs")
    *before, last = [what for what, _ in CHECKS]
    assert last == "round trip"
    with hold_lock(sandbox.state / "run" / "vault.lock"), seen(sandbox, "doctor", at=at) as doctor:
        head, *told = rows(doctor.until("stay on this machine\r\n" if at is pty.openpty else "stay on this machine\n"))
        assert doctor.process.poll() is None
        assert head.split() == ["what", "found"]
        assert [line[6:22].strip() for line in told if not line.startswith("testing")][: len(before)] == before
        if at is pty.openpty:
            doctor.until("testing: round trip")
    assert ("testing" in doctor.text) == (at is pty.openpty)
