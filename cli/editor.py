"""Texts that the user edits in their own editor, kept until they are used."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from .output import note

FALLBACK_EDITOR = "vi"
_KEPT = "what you wrote is kept: [e] opens it again"


class Drafts:
    """Edited texts by the path of their note, each in a file of a private folder.

    The next `edit` opens a text again that could not be used (the note has changed, the disk is full). Texts that are
    unused at the end of the block stay on disk, and their paths are printed.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files: dict[str, Path] = {}
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path, file in self._files.items():
            note(f"memory: what you wrote for {path} was not used; it is in {file}")
        if self._folder is not None and not self._files:
            shutil.rmtree(self._folder, ignore_errors=True)

    def edit(self, path: str, text: str) -> str | None:
        """Let the user edit `text`. Return the edited text; None, with a line printed, if the editor failed.

        Call `used` when the text is no longer needed.
        """
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
        except ValueError:  # An unclosed quotation mark.
            editor = [named]
        try:
            done = subprocess.run([*editor, str(file)], check=False)
            data = file.read_bytes()
        except FileNotFoundError as error:
            was_removed = error.filename == str(file)
            if is_new or was_removed:  # Otherwise an earlier edit still waits to be used.
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
            # A text that was not UTF-8 before, such as a conflict copy's, keeps its bytes.
            return data.decode("utf-8", "strict" if _is_unicode(given) else "surrogateescape")
        except UnicodeDecodeError:
            print("the editor left a text that is no UTF-8: save it as UTF-8")
            return None

    def used(self, path: str) -> None:
        """Delete the edited text of `path`, which was saved or discarded."""
        file = self._files.pop(path, None)
        if file is not None:
            with suppress(OSError):
                file.unlink()

    def report_kept(self, path: str) -> bool:
        """If an edited text of `path` is kept, print that. Return whether there is one."""
        if path in self._files:
            print(_KEPT)
        return path in self._files

    def _new_file(self, text: str) -> Path:
        if self._folder is None:
            # mkdtemp makes it with mode 0700.
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
