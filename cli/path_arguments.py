"""Files and folders as arguments; errors are one line."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..runtime.errors import UsageError


def named_path(path: Path) -> Path:
    """The absolute path, `~` expanded; it need not exist.

    Raises UsageError for the home of an unknown user, and for a relative path in a deleted working directory.
    """
    try:
        return Path(os.path.abspath(path.expanduser()))
    except RuntimeError as error:
        raise UsageError(f"{path}: there is no home folder of {path.parts[0]}") from error
    except OSError as error:
        raise UsageError(f"the folder this was started in is gone: give the whole path of {path}") from error


def named_folder(path: Path) -> Path:
    """The absolute path of a folder, links resolved. Raises UsageError if there is none or it cannot be read."""
    folder = Path(os.path.realpath(named_path(path)))
    if not stat.S_ISDIR(_mode(folder, "folder")):
        raise UsageError(f"there is no folder {folder}")
    return folder


def named_file(path: Path, what: str) -> Path:
    """The absolute path of a file. Raises UsageError if it is missing ("there is no transcript …") or unreadable."""
    file = named_path(path)
    if not stat.S_ISREG(_mode(file, what)):
        raise UsageError(f"there is no {what} {file}")
    return file


def _mode(path: Path, what: str) -> int:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"there is no {what} {path}") from error
    except OSError as error:
        raise UsageError(f"can't look at {path}: {error.strerror}") from error
