"""Files and folders that a command names: what is wrong with one is told in one line."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..runtime.errors import UsageError


def named_path(path: Path) -> Path:
    """Absolute, with the home folder for `~`; it need not be there. Raises UsageError for `~name` of nobody, and for a
    relative path where the current folder was deleted."""
    try:
        return Path(os.path.abspath(path.expanduser()))
    except RuntimeError as error:
        raise UsageError(f"{path}: there is no home folder of {path.parts[0]}") from error
    except OSError as error:
        raise UsageError(f"the folder this was started in is gone: give the whole path of {path}") from error


def named_folder(path: Path) -> Path:
    """Absolute, links resolved. Raises UsageError when there is none, or it cannot be looked at."""
    folder = Path(os.path.realpath(named_path(path)))
    if not stat.S_ISDIR(_mode(folder, "folder")):
        raise UsageError(f"there is no folder {folder}")
    return folder


def named_file(path: Path, what: str) -> Path:
    """Absolute. Raises UsageError when there is no such file ("there is no transcript …"), or none to look at."""
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
