"""Texts that the user edits in an editor of their own, kept until they have been used."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from .output import note

FALLBACK_EDITOR = "vi"
_KEPT = "what you wrote is kept: [e] opens it again"


class Drafts:
    """What came out of the editor, by the path of the note that it is for, each in a file of a private folder.

    A text that could not be used (the note has changed, the disk is full) is opened again by the next `edit`. What is
    left at the end of the block stays on disk, and the user is told where.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files: dict[str, Path] = {}
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path, file in self._files.items():
            note(f"memory: what you wrote for {path} was not used; it is in {file}")
        if self._folder is not None and not self._files:
            shutil.rmtree(self._folder, ignore_errors=True)

    def edit(self, path: str, text: str) -> str | None:
        """The text as the user's editor leaves it; None when the editor failed, is not there or left no UTF-8, which
        is said. Call `used` when it is needed no more."""
        is_new = path not in self._files
        try:
            if is_new:
                self._files[path] = self._new_file(text)
            file = self._files[path]
            given = file.read_bytes()
        except OSError as error:
            print(f"there is no file for the editor: {error.strerror}")
            return None
        named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
        try:
            editor = shlex.split(named) or [FALLBACK_EDITOR]
        except ValueError:  # A quotation mark that nothing closes.
            editor = [named]
        try:
            done = subprocess.run([*editor, str(file)], check=False)
            data = file.read_bytes()
        except FileNotFoundError as error:
            was_removed = error.filename == str(file)
            if is_new or was_removed:  # Else there is a text from before that waits to be used.
                self.used(path)
            if not was_removed:
                print(f"the editor {editor[0]} can't be started: set EDITOR")
            return None
        except OSError:
            print(f"the editor {editor[0]} can't be started: set EDITOR")
            return None
        if done.returncode != 0:
            if is_new and data == given:
                self.used(path)
            return None
        try:
            # A text that is no UTF-8 before it is edited, as of a conflict copy, comes back with the same bytes.
            return data.decode("utf-8", "strict" if _is_unicode(given) else "surrogateescape")
        except UnicodeDecodeError:
            print("the editor left a text that is no UTF-8: save it as UTF-8")
            return None

    def used(self, path: str) -> None:
        """The text is in the vault, or is wanted no more."""
        file = self._files.pop(path, None)
        if file is not None:
            with suppress(OSError):
                file.unlink()

    def report_kept(self, path: str) -> bool:
        """Whether there is such a text, which is said."""
        if path in self._files:
            print(_KEPT)
        return path in self._files

    def _new_file(self, text: str) -> Path:
        if self._folder is None:
            # mkdtemp: mode 0700, so that nobody else reads along.
            self._folder = Path(tempfile.mkdtemp(prefix="memoryvault-"))
        self._number += 1
        file = self._folder / f"proposal-{self._number}.md"
        file.write_bytes((text + "\n").encode("utf-8", "surrogateescape"))
        return file


def _is_unicode(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
