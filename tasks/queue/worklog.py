"""The worker's log: the same JSON lines, in the same file, as the hooks write."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress

from ...runtime import hooklog
from ...runtime.errors import MemoryVaultError

FIELDS = "fields"
"""Name in `extra` of what a record has besides its message, each as a field of the line."""


class JsonLines(logging.Handler):
    """Each record as one JSON line appended to the file; warnings are also told, by default as a line on stderr."""

    def __init__(self, log_file: str, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._log_file = log_file
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: a log that cannot be written must not stop a job."""
        message = " ".join(record.getMessage().split())
        fields: dict[str, object] = {"message": message, **getattr(record, FIELDS, {})}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])
        hooklog.append(self._log_file, record.levelname.lower(), record.name.removeprefix("memoryvault."), **fields)
        if record.levelno >= logging.WARNING:
            with suppress(OSError, MemoryVaultError):  # Nobody listens any more, or its disk is full.
                self._tell(f"memory: {message}")


class Lasting:
    """A condition that lasts while jobs come and go: a warning when it begins or becomes another, not from each job."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told = ""

    def is_so(self, message: str) -> None:
        """Warn of it, unless that was the last thing told."""
        if message != self._told:
            self._log.warning("%s", message)
        self._told = message

    def is_over(self) -> None:
        """It is told again when it comes back."""
        self._told = ""


def _on_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def log_to(log_file: str, level: int, tell: Callable[[str], None] = _on_stderr) -> None:
    """Send this program's log to the file, and nothing else's but their warnings, which `tell` gets, too."""
    root = logging.getLogger()
    root.handlers[:] = [JsonLines(log_file, tell)]
    root.setLevel(logging.WARNING)
    logging.getLogger("memoryvault").setLevel(level)
