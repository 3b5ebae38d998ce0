"""The worker's log: JSON lines in the format and file of the hooks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress

from ...runtime import hooklog
from ...runtime.errors import MemoryVaultError

FIELDS = "fields"
"""Name in `extra` of a record's further fields, each of which becomes a field of the line."""


class JsonLines(logging.Handler):
    """Appends each record to the file as a JSON line; warnings also go to `tell`, by default stderr."""

    def __init__(self, log_file: str, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._log_file = log_file
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record. Never raises: a log that cannot be written must not stop a job."""
        message = " ".join(record.getMessage().split())
        fields: dict[str, object] = {"message": message, **getattr(record, FIELDS, {})}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])
        hooklog.append(self._log_file, record.levelname.lower(), record.name.removeprefix("memoryvault."), **fields)
        if record.levelno >= logging.WARNING:
            with suppress(OSError, MemoryVaultError):  # The reader is gone, or its disk is full.
                self._tell(f"memory: {message}")


class Lasting:
    """A condition that outlasts a job: it is logged once when it begins or changes, and not by each job."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told = ""

    def is_so(self, message: str) -> None:
        """Log the message as a warning, unless it was the last one logged."""
        if message != self._told:
            self._log.warning("%s", message)
        self._told = message

    def is_over(self) -> None:
        """Forget the last warning, so that it is logged again when the condition comes back."""
        self._told = ""


def log_to(log_file: str, level: str, tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr)) -> None:
    """Send this program's log, and other loggers' warnings, to the file; `tell` gets the warnings, too."""
    root = logging.getLogger()
    root.handlers[:] = [JsonLines(log_file, tell)]
    root.setLevel(logging.WARNING)
    logging.getLogger("memoryvault").setLevel(level.upper())
