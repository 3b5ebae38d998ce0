"""Open transcripts, also compressed ones: Codex compresses those that were not continued for a week, and unpacks them
before it writes to them again.

Offsets count bytes of the unpacked text, which is in a temporary file without a name, so that memory stays flat.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

SUFFIX = ".zst"
IN_DATABASE = ".db#"
"""In the name of a session that is not a file, but rows of a database: OpenCode's, see `opencode`."""
NO_DECODER = "it is compressed: that takes the program zstd, or Python 3.14"
DAMAGED = "what was compressed in it is damaged"
_MODULES = ("compression.zstd", "backports.zstd")


def open_regular(path: Path) -> io.FileIO:
    """Open a file for unbuffered reading. Raises OSError, also for a pipe or a device, where reading might wait."""
    file = io.FileIO(path, opener=lambda name, _: os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


class TranscriptStatus(NamedTuple):
    """Size in bytes, and the time of the last change in Unix seconds."""

    size: int
    modified: float


def transcript_status(path: str | os.PathLike[str]) -> TranscriptStatus:
    """Return size and time of a transcript, also of one in a database. Raises OSError."""
    if IN_DATABASE in os.path.basename(path):
        from .opencode import status_of_session

        return status_of_session(Path(path))
    status = os.stat(path)
    return TranscriptStatus(status.st_size, status.st_mtime)


def last_written(path: str | os.PathLike[str]) -> float:
    """Return the time of a transcript's last change in Unix seconds, without reading it. Raises OSError."""
    if IN_DATABASE in os.path.basename(path):
        from .opencode import session_written

        return session_written(Path(path))
    return os.stat(path).st_mtime


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file, or such a session in a database; True also if it is there but cannot be read."""
    if IN_DATABASE not in os.path.basename(path):
        return os.path.isfile(path)
    try:
        last_written(path)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    return True


def open_bytes(path: Path) -> BinaryIO:
    """Open a transcript, unpacked if it is compressed. Raises OSError."""
    if IN_DATABASE in path.name:
        from .opencode import open_session

        return open_session(path)
    file = open_regular(path)
    if path.suffix != SUFFIX:
        return file
    with file, ExitStack() as opened:
        text = opened.enter_context(tempfile.TemporaryFile())
        _unpack(file, text)
        text.seek(0)
        opened.pop_all()
        return text


def _unpack(file: io.FileIO, text: BinaryIO) -> None:
    """Unpack by a Python module if there is one, else by the program zstd. Raises OSError."""
    for name in _MODULES:
        with suppress(ImportError):
            module: Any = import_module(name)
            try:
                shutil.copyfileobj(module.ZstdFile(file), text)
            except (EOFError, module.ZstdError) as error:
                raise OSError(errno.EIO, DAMAGED) from error
            return
    program = _program()
    if program is None:
        raise OSError(errno.ENOTSUP, NO_DECODER)
    # The file is standard input, so that its name cannot be taken for an option.
    if subprocess.run([program, "-dcq"], stdin=file, stdout=text, stderr=subprocess.DEVNULL).returncode != 0:
        raise OSError(errno.EIO, DAMAGED)


def _program() -> str | None:
    """Full path of zstd. Relative folders on PATH are left out: they would lead into the repository."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which("zstd", path=os.pathsep.join(folder for folder in folders if os.path.isabs(folder)))
