"""Replace files other than notes as a whole: a reader, or a process after a kill, finds the old content or the new.

Notes have rules of their own (`store`), and so do session markers (`marker`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import get_ident

from .killpoint import kill_point
from .layout import FILE_MODE

SIDE_FILES = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""


def replace_file(path: Path | str, data: bytes, *, mode: int = FILE_MODE, synced: bool = True) -> None:
    """Write the file with this content, and with `mode` whatever the umask; its folder must exist.

    If `synced`, the content is on the disk when the call returns; else a loss of power may take the file. A killed
    writer leaves `.<name>-….tmp` beside it. Raises OSError; the file is then as it was.
    """
    file = Path(path)
    # Each thread's own: two jobs of the worker may write the same file.
    temporary = file.with_name(f".{file.name}-{os.getpid()}-{get_ident()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        with open(descriptor, "wb") as out:
            os.fchmod(descriptor, mode)
            out.write(data)
            out.flush()
            if synced:
                os.fsync(descriptor)
                kill_point("before-replace")
        os.replace(temporary, file)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    if synced:
        sync_folder(file.parent)


def append_synced(path: Path, data: bytes) -> None:
    """Append to the file, made if missing, and sync it to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, FILE_MODE)
    with open(descriptor, "ab") as out:
        out.write(data)
        out.flush()
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where the file system can sync a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_aside(path: Path) -> Path:
    """Rename a damaged database and its log files to `<name>.damaged-<date>`; return the new name."""
    kept_as = name_aside(path)
    # The log last: SQLite deletes a log without a database, but would read one beside a new database.
    for ending in ("", *SIDE_FILES):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{kept_as}{ending}")
    return kept_as


def name_aside(base: Path) -> Path:
    """Return the new name that `set_aside` gives to a database now."""
    return base.with_name(f"{base.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
