"""Open transcripts, also compressed ones: Codex compresses those that were not continued for a week, and unpacks them
before it writes to them again.

Offsets count bytes of the unpacked text. Nothing is unpacked on disk, and memory stays flat.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import subprocess
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, cast

SUFFIX = ".zst"
IN_DATABASE = ".db#"
"""In the name of a session that is not a file, but rows of a database: OpenCode's, see `opencode`."""
NO_DECODER = "it is compressed: that takes the program zstd, or Python 3.14"
DAMAGED = "what was compressed in it is damaged"
_MODULES = ("compression.zstd", "backports.zstd")
_SKIPPED_BYTES = 1 << 20


ByteStream: TypeAlias = io.FileIO | io.BufferedIOBase
"""A file to read from an offset. `read` returns fewer bytes than requested only at the end."""


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


def open_bytes(path: Path) -> ByteStream:
    """Open a transcript, unpacked if it is compressed. Raises OSError, also while it is read."""
    if IN_DATABASE in path.name:
        from .opencode import open_session

        return open_session(path)
    if path.suffix == SUFFIX:
        return _Unpacked(open_regular(path))
    return open_regular(path)


class _Unpacked(io.BufferedIOBase):
    """The text of a compressed file, unpacked by a Python module if there is one, else by the program zstd."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._text: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: tuple[type[Exception], ...] = (EOFError,)
        self._position = 0

    def close(self) -> None:
        self._end()
        self._file.close()
        super().close()

    def read(self, size: int | None = -1, /) -> bytes:
        """Read on. Raises OSError."""
        if self._text is None:
            self._text = self._begin()
        try:
            data = self._text.read(-1 if size is None else size)
        except self._errors as error:
            raise OSError(errno.EIO, DAMAGED) from error
        if len(data) < (size or 0) and self._process is not None and self._process.wait() != 0:
            raise OSError(errno.EIO, DAMAGED)
        self._position += len(data)
        return data

    def seek(self, offset: int, _whence: int = 0, /) -> int:
        """Go to an offset of the text, or to its end if that comes first. Raises OSError.

        All bytes up to it are unpacked: from the beginning again for an offset before the current one.
        """
        if offset < self._position:
            self._end()
            self._file.seek(0)
            self._text, self._process, self._position = None, None, 0
        while self._position < offset and self.read(min(_SKIPPED_BYTES, offset - self._position)):
            pass
        return self._position

    def _end(self) -> None:
        if self._text is not None:
            self._text.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _begin(self) -> IO[bytes]:
        for name in _MODULES:
            with suppress(ImportError):
                module: Any = import_module(name)
                self._errors = (EOFError, module.ZstdError)
                return cast(IO[bytes], module.ZstdFile(self._file))
        program = _program()
        if program is None:
            raise OSError(errno.ENOTSUP, NO_DECODER)
        # The file is standard input, so that its name cannot be taken for an option.
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen([program, "-dcq"], stdin=self._file, stdout=pipe, stderr=null)
        return cast(IO[bytes], self._process.stdout)


def _program() -> str | None:
    """Full path of zstd. Relative folders on PATH are left out: they would lead into the repository."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which("zstd", path=os.pathsep.join(folder for folder in folders if os.path.isabs(folder)))
