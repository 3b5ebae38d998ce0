"""Agents' folders that `memory init` makes: noted, so that `memory uninstall` removes those that are empty then."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..runtime.atomic_file import replace_file
from ..runtime.layout import make_private_folder
from ..runtime.settings import Settings

NAME = "made-folders.json"
"""Name of the list, in the state folder's `run/`."""


def note_missing(settings: Settings, folders: Iterable[Path]) -> None:
    """Note those of the folders, and of the folders that they are in, that do not exist yet. Raises OSError."""
    missing = {each for folder in folders for each in (folder, *folder.parents) if not each.exists()}
    if missing:
        make_private_folder(str(_list_of(settings).parent))
        everything = sorted({str(folder) for folder in missing} | set(_noted(settings)))
        replace_file(_list_of(settings), json.dumps(everything, indent=1).encode())


def remove_empty(settings: Settings) -> None:
    """Remove the noted folders that are empty, and forget them all. Never raises."""
    for folder in sorted(_noted(settings), key=len, reverse=True):
        with suppress(OSError):
            Path(folder).rmdir()
    with suppress(OSError):
        _list_of(settings).unlink()


def _list_of(settings: Settings) -> Path:
    return Path(settings.state_root, "run", NAME)


def _noted(settings: Settings) -> list[str]:
    with suppress(OSError, ValueError):
        found = json.loads(_list_of(settings).read_bytes())
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    return []
