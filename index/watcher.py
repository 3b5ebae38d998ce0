"""Watch the vault, so that edits made in Obsidian reach the index within seconds.

The watcher only reports which paths changed; reconcile then walks the vault. Where the platform cannot
watch (no inotify watches left, a network disk), and while the vault is not mounted, it requests a walk every few
seconds.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from ..runtime.errors import VaultUnavailable
from ..runtime.paths import require_folder

QUIET_SECONDS = 0.4
"""A save in an editor is several events: changes are reported after this long without one …"""
MAX_WAIT_SECONDS = 2.0
"""… but at the latest this long after the first."""
POLL_SECONDS = 3.0

_CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})

OnChange = Callable[[frozenset[str] | None], None]
"""Called on the watcher's thread with the vault-relative paths that changed; None if not all of them are known."""


class VaultWatcher:
    """Watches a vault until `stop`. `polling` is True while it requests walks instead."""

    def __init__(
        self,
        vault: Path,
        on_change: OnChange,
        *,
        quiet_seconds: float = QUIET_SECONDS,
        poll_seconds: float = POLL_SECONDS,
        observe: Callable[[], Any] = Observer,
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._vault = Path(os.path.realpath(vault))
        self._on_change = on_change
        self._quiet_seconds = quiet_seconds
        self._poll_seconds = poll_seconds
        self._observe = observe
        self._on_error = on_error
        self._observer: Any = None
        self._is_gone = False
        self._changed = _Changes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    @property
    def polling(self) -> bool:
        return self._observer is None

    def start(self) -> None:
        self._watch()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._changed.wake()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._unwatch()

    def _run(self) -> None:
        while not self._stop.is_set():
            paths = self._changed.wait(self._poll_seconds, self._quiet_seconds, self._stop)
            if self._stop.is_set():
                return
            if self._observer is not None and not (self._vault.is_dir() and self._observer.is_alive()):
                self._unwatch()  # unmounted, or renamed away
            self._tell_if_gone()
            if self._observer is None:
                self._watch()
                paths = None  # changes before this moment are only found by a walk
                if not self._vault.is_dir():
                    continue
            elif not paths and paths is not None:
                continue
            self._report(paths)

    def _tell_if_gone(self) -> None:
        try:
            require_folder(self._vault)
            self._is_gone = False
        except VaultUnavailable as error:
            if not self._is_gone:
                self._on_error(error)
            self._is_gone = True

    def _report(self, paths: frozenset[str] | None) -> None:
        start = time.monotonic()
        try:
            self._on_change(paths)
        except Exception as error:  # noqa: BLE001 - the next change must still be seen
            self._on_error(error)
        if self.polling:
            # Walks of a large vault must not take all of a slow disk's time.
            self._stop.wait(10 * (time.monotonic() - start))

    def _watch(self) -> None:
        if not self._vault.is_dir():
            return
        # On Linux watchdog (7.1) registers a folder twice that is moved in from outside, or that it finds both by its
        # own event and by a walk of its parent. It replaces a callback by the same one and warns.
        warnings.filterwarnings(
            "ignore", r"Callback with id '\d+' already exists", RuntimeWarning, r"watchdog\.observers\.inotify"
        )
        observer = self._observe()
        try:
            observer.schedule(_Handler(self._vault, self._changed), str(self._vault), recursive=True)
            observer.start()
        except OSError as error:
            self._on_error(error)
            return
        self._observer = observer

    def _unwatch(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join(5.0)


class _Changes:
    """Changed paths, collected until there has been no change for a moment."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._everything = False
        self._first = 0.0
        self._latest = 0.0
        self._condition = threading.Condition()

    def add(self, path: str | None) -> None:
        """Add a path, or None for a change whose extent is not known."""
        with self._condition:
            now = time.monotonic()
            if not self._paths and not self._everything:
                self._first = now
            self._latest = now
            if path is None:
                self._everything = True
            else:
                self._paths.add(path)
            self._condition.notify()

    def wake(self) -> None:
        with self._condition:
            self._condition.notify()

    def wait(self, patience: float, quiet: float, stop: threading.Event) -> frozenset[str] | None:
        """Wait for changes and `quiet` seconds without one; return their paths (None: not all are known).

        The set is empty when nothing changed for `patience` seconds.
        """
        with self._condition:
            give_up = time.monotonic() + patience
            while not stop.is_set():
                now = time.monotonic()
                if self._paths or self._everything:
                    due = min(self._latest + quiet, self._first + MAX_WAIT_SECONDS)
                    if now >= due:
                        paths = None if self._everything else frozenset(self._paths)
                        self._paths.clear()
                        self._everything = False
                        return paths
                    self._condition.wait(due - now)
                elif now >= give_up:
                    return frozenset()
                else:
                    self._condition.wait(give_up - now)
            return frozenset()


class _Handler(FileSystemEventHandler):
    """Turns watchdog's events into vault-relative paths, on watchdog's thread."""

    def __init__(self, vault: Path, changed: _Changes) -> None:
        self._vault = str(vault)
        self._changed = changed

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type not in _CHANGES:
            return
        for raw in (event.src_path, event.dest_path):
            if not raw:
                continue
            relative = os.path.relpath(os.fsdecode(raw), self._vault).replace(os.sep, "/")
            if any(part.startswith(".") for part in relative.split("/") if part != "."):
                continue
            if event.is_directory:
                # The files of a folder that was modified have events of their own.
                if event.event_type in ("moved", "deleted", "created"):
                    self._changed.add(None)
            elif relative.endswith(".md"):
                self._changed.add(relative)
