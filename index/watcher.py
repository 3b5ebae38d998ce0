"""Watch the vault, so that edits made in Obsidian reach the index within seconds.

The watcher only reports that something changed; reconcile then walks the vault. Where the platform cannot
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

DELAY_SECONDS = 0.5
"""A save in an editor is several events: a change is reported with all that follow within this time."""
POLL_SECONDS = 3.0

_CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})


class VaultWatcher:
    """Watches a vault until `stop`. `polling` is True while it requests walks instead."""

    def __init__(
        self,
        vault: Path,
        on_change: Callable[[], None],
        *,
        delay_seconds: float = DELAY_SECONDS,
        poll_seconds: float = POLL_SECONDS,
        observe: Callable[[], Any] = Observer,
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """`on_change` is called on the watcher's thread."""
        self._vault = Path(os.path.realpath(vault))
        self._on_change = on_change
        self._delay_seconds = delay_seconds
        self._poll_seconds = poll_seconds
        self._observe = observe
        self._on_error = on_error
        self._observer: Any = None
        self._is_gone = False
        self._changed = threading.Event()
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
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._unwatch()

    def _run(self) -> None:
        while not self._stop.is_set():
            is_changed = self._changed.wait(self._poll_seconds)
            if is_changed:
                self._stop.wait(self._delay_seconds)
                self._changed.clear()
            if self._stop.is_set():
                return
            if self._observer is not None and not (self._vault.is_dir() and self._observer.is_alive()):
                self._unwatch()  # unmounted, or renamed away
            self._tell_if_gone()
            if self._observer is None:
                self._watch()
                if not self._vault.is_dir():
                    continue
            elif not is_changed:
                continue
            self._report()

    def _tell_if_gone(self) -> None:
        try:
            require_folder(self._vault)
            self._is_gone = False
        except VaultUnavailable as error:
            if not self._is_gone:
                self._on_error(error)
            self._is_gone = True

    def _report(self) -> None:
        start = time.monotonic()
        try:
            self._on_change()
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


class _Handler(FileSystemEventHandler):
    """Sets `changed` for each change of a note or a folder, on watchdog's thread."""

    def __init__(self, vault: Path, changed: threading.Event) -> None:
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
            # The files of a folder that was modified have events of their own.
            if event.event_type != "modified" if event.is_directory else relative.endswith(".md"):
                self._changed.set()
