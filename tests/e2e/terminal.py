"""One program in one tmux window of a tmux server of its own: keys in, screen out."""

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

COLUMNS, ROWS = 160, 50
POLL_SECONDS = 0.1

_numbers = itertools.count(1)


class Terminal:
    """`with Terminal(argv, env=…, cwd=…, sockets=…) as terminal:` the program sees only `env`.

    The server's socket lies in `sockets`, so neither the user's tmux nor its settings are touched. At the
    end of the block the program is killed if it still runs, and the server with it.
    """

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, sockets: Path) -> None:
        self._argv = list(argv)
        self._env = dict(env)
        self._cwd = cwd
        # tmux makes its own folder below this one, and it must be short: a socket path has 104 bytes.
        self._tmux_env = {
            "PATH": os.environ["PATH"],
            "TMUX_TMPDIR": str(sockets),
            "LANG": "C.UTF-8",
            "HOME": str(sockets),
        }
        self._name = f"memoryvault-e2e-{os.getpid()}-{next(_numbers)}"
        self.pid = 0

    def __enter__(self) -> Self:
        program = ["env", "-i", *(f"{key}={value}" for key, value in self._env.items()), *self._argv]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        answer = self._tmux("new-session", "-d", *size, "-c", str(self._cwd), "-P", "-F", "#{pane_pid}", "--", *program)
        if answer.returncode != 0:
            raise RuntimeError(f"tmux did not start: {answer.stderr.strip()}")
        self.pid = int(answer.stdout)
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_running():
            self.kill()
        self._tmux("kill-server")

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """tmux's names: Enter, Escape, Tab, Down, C-c …"""
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        """What a person would see, without trailing blank lines; "" once the program has ended."""
        return self._tmux("capture-pane", "-p").stdout.rstrip()

    def wait_until(self, condition: Callable[[str], object], what: str, *, seconds: float = 15.0) -> str:
        """Poll the screen; raises TimeoutError with the screen as it was last."""
        deadline = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if condition(screen):
                return screen
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds:g} s for {what}; the screen was:\n{screen}")
            time.sleep(POLL_SECONDS)

    def is_running(self) -> bool:
        return self._tmux("has-session").returncode == 0

    def wait_for_end(self, *, seconds: float = 15.0) -> None:
        self.wait_until(lambda screen: not self.is_running(), "the end of the program", seconds=seconds)

    def kill(self) -> None:
        """SIGKILL, as from the kernel: the program gets no chance to tidy up."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait_for_end()

    def _tmux(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["tmux", "-L", self._name, "-f", os.devnull, *arguments]
        return subprocess.run(command, env=self._tmux_env, capture_output=True, text=True, timeout=10, check=False)
