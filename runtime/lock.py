"""The lock of a vault: one writer at a time, among processes and threads.

Processes with the same state folder share the lock file in it. Others (a container or another account with the same
vault) share only the vault, so its folder is locked as well, where its file system can do that.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from .errors import VaultUnavailable
from .layout import FILE_MODE, make_private_folder
from .process_lock import is_at

LOCK_TIMEOUT_SECONDS = 30.0
_FIRST_WAIT_SECONDS = 0.001
_LONGEST_WAIT_SECONDS = 0.05


@dataclass
class _FileLock:
    """The state of one lock file in this process."""

    thread_lock: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0
    descriptor: int = -1


_locks: dict[str, _FileLock] = {}
_registry_lock = threading.Lock()


def _forget_after_fork() -> None:
    """Drop the locks in a forked child, which holds none of its parent's."""
    global _registry_lock
    for lock in _locks.values():
        if lock.descriptor >= 0:
            os.close(lock.descriptor)  # the parent's own descriptor keeps its lock
    _locks.clear()
    _registry_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


@contextmanager
def hold_lock(lock_file: Path, timeout_seconds: float = LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold the lock; the same thread may take it again inside. It is released with the process, however that ends.

    Raises VaultUnavailable after `timeout_seconds`, or when the lock file cannot be made.
    """
    with _hold(os.path.abspath(lock_file), _open_lock_file, timeout_seconds):
        yield


@contextmanager
def hold_folder_lock(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder itself, which leaves no file in it. Nothing is locked where the folder is missing, or
    its file system has no locks (some network mounts). Raises VaultUnavailable after LOCK_TIMEOUT_SECONDS."""
    with _hold(os.path.abspath(folder), _open_folder, LOCK_TIMEOUT_SECONDS):
        yield


@contextmanager
def _hold(name: str, open_it: Callable[[str], int], timeout_seconds: float) -> Iterator[None]:
    with _registry_lock:
        lock = _locks.setdefault(name, _FileLock())
    if not lock.thread_lock.acquire(timeout=timeout_seconds):
        raise _timed_out(name, timeout_seconds)
    try:
        if lock.depth == 0:
            lock.descriptor = _lock(name, open_it, timeout_seconds)
        lock.depth += 1
        try:
            yield
        finally:
            lock.depth -= 1
            if lock.depth == 0 and lock.descriptor >= 0:
                os.close(lock.descriptor)
                lock.descriptor = -1
    finally:
        lock.thread_lock.release()


def _timed_out(name: str, seconds: float) -> VaultUnavailable:
    return VaultUnavailable(
        f"another process has held the vault's lock for {seconds:g} s: look for a hung `memory` process ({name})"
    )


def _open_lock_file(name: str) -> int:
    try:
        make_private_folder(os.path.dirname(name))
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise VaultUnavailable(f"the vault's lock cannot be made: {error.strerror}: {name}") from error


def _open_folder(name: str) -> int:
    with suppress(OSError):  # The caller's next step reports what is wrong with the folder.
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return -1


def _lock(name: str, open_it: Callable[[str], int], timeout_seconds: float) -> int:
    """Return the descriptor of the lock; -1 where nothing can be locked."""
    deadline = time.monotonic() + timeout_seconds
    wait = _FIRST_WAIT_SECONDS
    while (descriptor := open_it(name)) >= 0:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(name, os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            pass
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError) and open_it is _open_folder:
                return -1
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise _timed_out(name, timeout_seconds)
        time.sleep(wait)
        wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
    return -1
