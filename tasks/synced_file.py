"""Files of the state folder that survive a crash: what was written lies on the disk when the call returns."""

from __future__ import annotations

import os
from pathlib import Path

from ..vault.killpoint import kill_point
from ..vault.layout import FILE_MODE


def write_synced(file: Path, data: bytes, flags: int) -> None:
    """Write to the file, made if there is none; `flags` of `os.open`: over it or behind it. Raises OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, FILE_MODE)
    with open(descriptor, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(descriptor)


def replace_synced(file: Path, data: bytes) -> None:
    """The file's new content: all of it, or the old one if the process is killed. Raises OSError."""
    temporary = file.with_name(f".{file.name}-{os.getpid()}.tmp")
    try:
        write_synced(temporary, data, os.O_TRUNC)
        kill_point("before-replace")
        os.replace(temporary, file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
