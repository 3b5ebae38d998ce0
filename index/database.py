"""Opens index.db, with its extension and pragmas, and replaces a damaged file."""

from __future__ import annotations

import fcntl
import functools
import importlib.util
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from ..runtime.errors import IndexUnavailable, SchemaTooNew
from ..runtime.paths import explain_file_system, file_identity
from ..vault.wording import one_line
from . import schema

BUSY_MILLISECONDS = 10_000
READER_BUSY_MILLISECONDS = 100
_CACHE_KIBIBYTES = 16_384
_DAMAGED = (
    apsw.CorruptError,
    apsw.NotADBError,
    # Our statements are constant: the file is not what they were written for.
    apsw.SQLError,
    apsw.ConstraintError,
    apsw.MismatchError,
    # A text, or a name in SQLite's own message, that is no UTF-8; a text that is no JSON.
    UnicodeDecodeError,
    json.JSONDecodeError,
)


def open_writer(path: Path) -> apsw.Connection:
    """Open a connection that may write; the file is made if it is absent.

    Raises IndexUnavailable when it is damaged, cannot be opened or stays locked, SchemaTooNew
    when a newer program wrote it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would create it with the umask's mode; state is the user's alone.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise IndexUnavailable(f"{path} cannot be written ({error.strerror}): check the state folder") from error
    with translate_errors(path):
        connection = apsw.Connection(str(path))
        try:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
            load_vectors(connection)
            if not _has_shape(connection, path):
                schema.create(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def open_reader(path: Path, *, vectors: bool = True) -> apsw.Connection:
    """Open a read-only connection. Raises IndexUnavailable, SchemaTooNew when there is no usable index."""
    if not path.exists():
        raise IndexUnavailable(f"there is no index at {path} yet: run `memory vault reindex`")
    with translate_errors(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(READER_BUSY_MILLISECONDS)
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
            if not _has_shape(connection, path):
                raise IndexUnavailable(f"the index at {path} is empty: run `memory vault reindex`")
            if vectors:
                load_vectors(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _has_shape(connection: apsw.Connection, path: Path) -> bool:
    """Whether the database has our tables; False for an empty one. Raises SchemaTooNew, and IndexDamaged for those of
    an older version: the index is made anew then."""
    found = schema.user_version(connection)
    if found > schema.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"index.db has schema {found}, this program knows {schema.SCHEMA_VERSION}: "
            "update memoryvault, or delete index.db (it is rebuilt from the vault)"
        )
    if 0 < found < schema.SCHEMA_VERSION:
        raise IndexDamaged(f"{path} is of an older version: run `memory vault reindex`")
    return found > 0


def load_vectors(connection: apsw.Connection) -> bool:
    """Load sqlite-vec; return False where it is not available: then there is no dense retriever."""
    try:
        extension = _vector_extension()
    except ImportError:
        return False
    try:
        connection.enable_load_extension(True)
        try:
            connection.load_extension(extension)
        finally:
            connection.enable_load_extension(False)
    except (apsw.Error, AttributeError, OSError):
        return False
    return True


@functools.cache
def _vector_extension() -> str:
    """Return what `sqlite_vec.loadable_path()` returns. That package is not imported: it would import numpy, which
    takes longer than most commands.

    Raises ImportError, which is not cached: a worker may outlive an installation.
    """
    spec = importlib.util.find_spec("sqlite_vec")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise ImportError("sqlite_vec")
    return os.path.join(folders[0], "vec0")


def has_vectors(connection: apsw.Connection) -> bool:
    try:
        connection.execute("SELECT vec_version()").get  # noqa: B018 - runs the statement
    except apsw.SQLError:
        return False
    return True


passed_check: dict[tuple[int, int] | None, bool] = {}
"""Whether a file passed the check of its pages, by identity: the check reads the whole file, so it is not repeated each
time a worker opens the index. False where damage was found since."""


def forget_sound(path: Path) -> None:
    """Forget that the file passed its check: the next `store.open_or_rebuild` checks all of it."""
    passed_check[file_identity(path)] = False


@contextmanager
def replacement_lock(path: Path) -> Iterator[None]:
    """Hold the lock under which one process at a time decides that index.db is damaged and sets it aside.

    Raises IndexUnavailable.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise IndexUnavailable(f"{lock} cannot be made ({error.strerror}): check the state folder") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise IndexUnavailable for SQLite's errors that a user can fix; others are bugs and pass."""
    try:
        yield
    except _DAMAGED as error:
        forget_sound(path)
        raise IndexDamaged(f"{path} is damaged ({one_line(str(error))}): run `memory vault reindex`") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise IndexUnavailable(f"{path} is locked by another process: try again in a moment") from error
    except (apsw.IOError, apsw.ProtocolError) as error:
        raise IndexUnavailable(explain_file_system(path, error)) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise IndexUnavailable(f"{path} cannot be used ({error}): check the state folder") from error
    except apsw.FullError as error:
        raise IndexUnavailable(f"no space left for {path}: free some and run `memory vault reindex`") from error


class IndexDamaged(IndexUnavailable):
    """The file is not a sound database; `store.open_or_rebuild` sets it aside."""
