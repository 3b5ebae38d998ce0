"""Check paths of the vault: which are inside, which files are notes, which names new notes may have."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .errors import MemoryVaultError, PathRefused, QueueUnavailable, VaultUnavailable
from .layout import StatePaths, is_conflict_copy

LONGEST_NAME_BYTES = 255
LONGEST_PATH_BYTES = 3_000
"""Longest name and path that are looked up: beyond the limits of a disk the system raises errors of its own."""
MAX_NAME_BYTES = 200
"""A file name holds 255 bytes on most disks, and sync clients append to it."""
MAX_PATH_BYTES = 900
TEMPORARY_PREFIX = ".memoryvault-"
TEMPORARY_SUFFIX = ".tmp"

SF_DATALESS = 0x4000_0000
"""macOS, <sys/stat.h>: the content is in the cloud, and opening the file would fetch it."""
_HAS_FLAGS = hasattr(os.stat_result, "st_flags")

_UNSTORABLE = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


def file_identity(path: Path | str) -> tuple[int, int] | None:
    """Return device and inode, which differ once a database was replaced; None where there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def require_folder(vault: Path) -> None:
    """Raise VaultUnavailable, with what to do, if the vault is not a readable folder."""
    other = "correct MEMORY_VAULT_PATH if that is set, or choose another by `memory init --vault FOLDER`"
    try:
        is_folder = stat.S_ISDIR(os.stat(vault).st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise VaultUnavailable(f"the vault {vault} is not there: mount it; {other}") from error
    except OSError as error:
        raise VaultUnavailable(f"the vault {vault} cannot be looked into ({error.strerror}); {other}") from error
    if not is_folder:
        raise VaultUnavailable(f"the vault {vault} is a file, not a folder: move that away; {other}")


def ensure_state(state: StatePaths, unavailable: type[MemoryVaultError] = QueueUnavailable) -> None:
    """Create the state folder if it is missing. Raises `unavailable`, with what to do."""
    try:
        state.ensure()
    except OSError as error:
        place, why = error.filename or state.root, error.strerror
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            why = "there is a file where a folder is wanted"
        raise unavailable(
            f"the state folder {state.root} cannot be used ({place}: {why}); mend that, or name another place with "
            "MEMORY_STATE_DIR"
        ) from error


def is_note_name(name: str) -> bool:
    """Whether a file of this name is a note that may be indexed."""
    return name.endswith(".md") and not name.startswith(".") and not is_conflict_copy(name)


def is_downloaded(status: os.stat_result) -> bool:
    """Whether the content of the file is on this disk; a cloud client may not have downloaded it."""
    return not getattr(status, "st_flags", 0) & SF_DATALESS


def is_downloaded_child(child: os.DirEntry[str]) -> bool:
    """Do as `is_downloaded` does for an item of a listing; the status is read only on systems that have such flags.
    Raises OSError."""
    return not _HAS_FLAGS or is_downloaded(child.stat(follow_symlinks=False))


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def read_regular(file: Path, limit: int) -> tuple[bytes, os.stat_result]:
    """Read at most `limit` bytes of a file; return them and the file's status from before.

    Raises OSError for a symbolic link or a special file, at once: a named pipe called x.md must not hang the reader.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not is_regular(status):
            raise OSError(errno.EINVAL, "not a file", str(file))
        return stream.read(limit), status


def read_whole(file: Path, limit: int) -> tuple[str, os.stat_result] | str:
    """Read the text of a file, through a link, and its status; or return why it is left out, in a few words.

    `limit`: the size in bytes from which on it is too large.
    """
    try:
        # O_NONBLOCK: a named pipe called CLAUDE.md must not hang the reader.
        with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not is_regular(status):
                return "not a regular file"
            if not is_downloaded(status):
                return "not downloaded by its cloud client"
            if status.st_size > limit:
                return f"larger than {limit // 1_000_000} MB"
            return stream.read().decode("utf-8"), status
    except OSError as error:
        return error.strerror or "cannot be read"
    except UnicodeDecodeError:
        return "not UTF-8"


def is_text(path: str) -> bool:
    """Whether the path is UTF-8. Python keeps other bytes as lone surrogates, which neither a database nor JSON can
    hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_inside(relative: str) -> str:
    """Return `relative` if its spelling is a path below the vault. Raises PathRefused."""
    shown = repr(relative)[:120]
    if not relative or "\0" in relative:
        raise PathRefused(f"{shown} is not a path in the vault")
    if relative.startswith(("/", "~")):
        raise PathRefused(f"{shown} is not a path in the vault: give it relative to the vault's folder")
    parts = relative.split("/")
    if "" in parts or "." in parts or ".." in parts:
        raise PathRefused(f"{shown} is not a path in the vault: it may not hold '.', '..' or '//'")
    lengths = [len(part.encode("utf-8", "surrogatepass")) for part in parts]
    if max(lengths) > LONGEST_NAME_BYTES or sum(lengths) > LONGEST_PATH_BYTES:
        raise PathRefused(f"{shown} is not a path in the vault: no disk can store so long a name")
    return relative


def check_note_name(relative: str) -> None:
    """Raise PathRefused unless `relative` may name a note, as the user may name one in Obsidian.

    What holds it already, or the user's own disk, is the judge of the other characters: `What now?.md` has to be
    written, archived and restored under that name.
    """
    check_inside(relative)
    shown = repr(relative)[:120]
    if not relative.endswith(".md"):
        raise PathRefused(f"{shown} cannot be written: the name of an entry ends in .md")
    try:
        encoded = [part.encode("utf-8") for part in relative.split("/")]
    except UnicodeEncodeError as error:
        raise PathRefused(f"{shown} cannot be written: the name is not valid text") from error
    if sum(map(len, encoded)) > MAX_PATH_BYTES or any(len(part) > MAX_NAME_BYTES for part in encoded):
        raise PathRefused(f"{shown} cannot be written: use a name of at most {MAX_NAME_BYTES} bytes")
    if any(part.startswith(".") for part in relative.split("/")):
        raise PathRefused(f"{shown} cannot be written: no part of the path may begin with a dot")


def check_new_name(relative: str) -> None:
    """Raise PathRefused unless every disk and sync client can store `relative` as a note."""
    check_note_name(relative)
    shown = repr(relative)[:120]
    for part in relative.split("/"):
        if part != part.strip() or part.endswith("."):
            raise PathRefused(f"{shown} cannot be written: no part of the path may begin or end with a dot or space")
        if _UNSTORABLE.search(part):
            raise PathRefused(f'{shown} cannot be written: it holds a control character or one of < > : " | ? * \\')


def resolve_inside(vault: Path, relative: str) -> Path:
    """Resolve a vault-relative path to its real path. Raises PathRefused when symbolic links lead out of the vault."""
    check_inside(relative)
    root = os.path.realpath(vault)
    try:
        real = os.path.realpath(os.path.join(root, relative))
    except (OSError, ValueError) as error:
        raise PathRefused(f"{relative!r} is not a path in the vault") from error
    if not real.startswith(root.rstrip("/") + "/"):
        raise PathRefused(f"{relative!r} is a symbolic link that leaves the vault")
    return Path(real)


def make_folders(folder: Path, vault: Path) -> None:
    """Make `folder` (a real path) and its missing parents below the vault, but never the vault itself. Raises OSError.

    If the vault was renamed at this moment, it would appear again, empty, in its old place.
    """
    root = Path(os.path.realpath(vault))
    for each in (*reversed(folder.parents), folder):
        if root in each.parents:
            each.mkdir(exist_ok=True)


def remove_empty(folder: Path, vault: Path) -> None:
    """Remove `folder` (a real path) and its parents while they are empty, since editors show empty folders.

    Folders directly below the vault are kept, as are all with any file in them.
    """
    root = Path(os.path.realpath(vault))
    while root in folder.parent.parents:
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = folder.parent


def describe_file_system(path: Path | str) -> str:
    """Return the file system of `path`, as `9p, mounted at /mnt/share`; '' where it is not known."""
    real = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                _, place, found, *_ = line.split()
                place = place.replace("\\040", " ")
                if (real == place or real.startswith(place.rstrip("/") + "/")) and len(place) >= len(best):
                    best, kind = place, found
    except (OSError, ValueError):
        return ""
    return f"{kind}, mounted at {best}" if kind else ""


def explain_file_system(path: Path | str, error: object) -> str:
    """Return what a database's input or output error at `path` means, and what to do."""
    where = describe_file_system(path)
    named = f" ({where})" if where else ""
    return (
        f"{path} cannot be used ({error}): its file system{named} fails, or cannot share memory "
        "between processes as SQLite needs it; put the state folder on a local disk: set MEMORY_STATE_DIR"
    )


def delete_older(paths: Iterable[Path], before: float) -> int:
    """Delete the files that were last changed before this Unix time; return how many."""
    deleted = 0
    for path in paths:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
                deleted += 1
    return deleted
