"""Commands at a pseudo-terminal."""

import os
import pty
import select
import time
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile

from .forked import COMMAND, start
from .sandbox import Sandbox


class Terminal:
    """A command at a terminal, or at another pair of ends, as of `os.pipe`."""

    def __init__(
        self, sandbox: Sandbox, arguments: Sequence[str], at: Callable[[], tuple[int, int]] = pty.openpty, **env: str
    ) -> None:
        self._ours, theirs = at()
        environment = {**sandbox.environment, **env}
        streams = [theirs] * 3
        self.process = start(COMMAND, arguments, env=environment, cwd=sandbox.root, streams=streams, session=True)
        os.close(theirs)
        self.text = ""
        """All that it has written, as far as it was read."""
        self._expected = 0

    @property
    def shown(self) -> str:
        """What came after the text that was expected last."""
        return self.text[self._expected :]

    def expect(self, text: str, seconds: float = 60.0) -> None:
        """Read until the text has been written once more."""
        until = time.monotonic() + seconds
        while text not in self.shown:
            assert self._read(until), f"{text!r} did not come: {self.shown}"
        self._expected = self.text.index(text, self._expected) + len(text)

    def rest(self, seconds: float = 60.0) -> str:
        """What came after the text that was expected last, until the command ended."""
        until = time.monotonic() + seconds
        while self._read(until):
            pass
        return self.shown

    def _read(self, until: float) -> bool:
        """Whether there was more before it ended. AssertionError when the time is over."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"it writes nothing and does not end: {self.shown}"
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # So ends a terminal.
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)

    def press(self, keys: str, *then: str) -> None:
        """Answer the question of a review, and expect these texts, one after the other."""
        self.expect("[q]uit")
        self.write(keys, *then)

    def write(self, text: str, *then: str) -> None:
        os.write(self._ours, text.encode())
        for each in then:
            self.expect(each)

    def close(self) -> int:
        """Its exit code."""
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            os.close(self._ours)


def answered(sandbox: Sandbox, arguments: Sequence[str], typed: str) -> tuple[int, str]:
    """The exit code of a command at a terminal where this is typed, and what it wrote."""
    ours, theirs = pty.openpty()
    with TemporaryFile() as written:
        try:
            os.write(ours, typed.encode())
            streams = [theirs, written.fileno(), written.fileno()]
            environment = sandbox.environment
            process = start(COMMAND, arguments, env=environment, cwd=sandbox.root, streams=streams, session=True)
            status = process.wait(60)
        finally:
            os.close(ours)
            os.close(theirs)
        written.seek(0)
        return status, written.read().decode()
