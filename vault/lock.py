"""One writer at a time: a lock per vault that holds between processes and between threads."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import VaultUnavailable
from .layout import FILE_MODE, make_private_folder

LOCK_TIMEOUT_SECONDS = 30.0
_FIRST_WAIT_SECONDS = 0.001
_LONGEST_WAIT_SECONDS = 0.05


class _Held:
    """The lock of one file, as this process sees it."""

    __slots__ = ("depth", "descriptor", "thread_lock")

    def __init__(self) -> None:
        self.thread_lock = threading.RLock()
        self.depth = 0
        self.descriptor = -1


_held: dict[str, _Held] = {}
_registry_lock = threading.Lock()


def _forget_after_fork() -> None:
    """A forked child does not hold what its parent holds."""
    global _registry_lock
    for held in _held.values():
        if held.descriptor >= 0:
            os.close(held.descriptor)  # the parent's own descriptor keeps its lock
    _held.clear()
    _registry_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


@contextmanager
def hold_lock(lock_file: Path, timeout_seconds: float = LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold the lock; one thread may take it again inside. It ends with the process, however that dies.

    Raises VaultUnavailable after `timeout_seconds`, or when the lock file cannot be made.
    """
    name = os.path.abspath(lock_file)
    with _registry_lock:
        held = _held.setdefault(name, _Held())
    if not held.thread_lock.acquire(timeout=timeout_seconds):
        raise _timed_out(name, timeout_seconds)
    try:
        if held.depth == 0:
            held.descriptor = _lock(name, timeout_seconds)
        held.depth += 1
        try:
            yield
        finally:
            held.depth -= 1
            if held.depth == 0:
                os.close(held.descriptor)
                held.descriptor = -1
    finally:
        held.thread_lock.release()


def lock_holder(path: Path | str) -> int | None:
    """Process id that a process wrote into the lock file it holds; None when nobody holds it. Takes nothing from it."""
    try:
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read(32))
    except (OSError, ValueError):
        return None
    return None


def _timed_out(name: str, seconds: float) -> VaultUnavailable:
    return VaultUnavailable(
        f"another process has held the vault's lock for {seconds:g} s: look for a hung `memory` process ({name})"
    )


def _lock(name: str, timeout_seconds: float) -> int:
    deadline = time.monotonic() + timeout_seconds
    wait = _FIRST_WAIT_SECONDS
    while True:
        try:
            make_private_folder(os.path.dirname(name))
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise VaultUnavailable(f"the vault's lock cannot be made: {error.strerror}: {name}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(name, descriptor):
                return descriptor
        except BlockingIOError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise _timed_out(name, timeout_seconds)
        time.sleep(wait)
        wait = min(wait * 2, _LONGEST_WAIT_SECONDS)


def _is_still(name: str, descriptor: int) -> bool:
    """False when the file was deleted meanwhile: whoever comes next would lock another file."""
    try:
        return os.path.samestat(os.stat(name), os.fstat(descriptor))
    except FileNotFoundError:
        return False
