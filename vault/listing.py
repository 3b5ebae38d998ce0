"""List the notes of a vault, and the copies of notes that a sync client left: each folder is listed once.

No file is opened, and none is asked for its state.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ..runtime.json_text import parse_json
from ..runtime.layout import TRASH, is_conflict_copy
from ..runtime.paths import is_downloaded_child, read_whole

TEMPLATE_SETTINGS = (
    ("templates.json", "folder"),
    ("plugins/templater-obsidian/data.json", "templates_folder"),
    ("plugins/quickadd/data.json", "templateFolderPath"),
)
"""Files in Obsidian's folder of settings, and the field that names the folder of templates."""
MOST_SETTINGS_BYTES = 10_000_000


class NotePaths(NamedTuple):
    """Vault-relative paths. Links, special files, dot-files and files that are not downloaded are in neither."""

    notes: list[str]
    copies: list[str]
    """Conflict copies."""


def list_folders(
    vault: Path,
    *,
    special: Collection[str] | None = None,
    trash: bool = False,
    failed: dict[str, str] | None = None,
) -> Iterator[tuple[str, NotePaths]]:
    """Yield each folder ('', or its vault-relative path and a slash) and what it holds, sorted.

    A folder comes before those in it, and those in the order of their names. One that vanishes or cannot be read is
    empty; why it cannot be read is put into `failed`, by its path. Dot-folders and, without `trash`, the trash and
    Obsidian's folders of templates are left out; no link is followed. `special`: only the underscore folders of these
    names, with all below them, unless they lie in another underscore folder.
    """
    left_out = () if trash else template_folders(vault)
    waiting = [("", special is None)]
    while waiting:
        prefix, is_wanted = waiting.pop()
        notes: list[str] = []
        folders: list[str] = []
        with _telling(failed, prefix), os.scandir(f"{vault}/{prefix}") as children:
            if is_wanted:
                for child in children:
                    name = child.name
                    if name[0] == ".":
                        continue
                    # Most are notes: those are asked one question, not two.
                    if not (name.endswith(".md") and child.is_file(follow_symlinks=False)):
                        if child.is_dir(follow_symlinks=False):
                            folders.append(name)
                        continue
                    try:
                        if is_downloaded_child(child):
                            notes.append(name)
                    except OSError:  # gone meanwhile
                        continue
            else:  # Most notes lie in such a folder, and none of them is asked for.
                folders = [child.name for child in children if child.is_dir(follow_symlinks=False)]
        if is_wanted:
            notes.sort()
            copies = frozenset(filter(is_conflict_copy, notes))
            yield (
                prefix,
                NotePaths(
                    [prefix + name for name in notes if name not in copies], [prefix + name for name in sorted(copies)]
                ),
            )
        for name in sorted(folders, reverse=True):  # the last one is taken first
            if name[0] == "." or (name == TRASH and not trash) or f"{prefix}{name}/" in left_out:
                continue
            if is_wanted or name in (special or ()):
                waiting.append((f"{prefix}{name}/", True))
            elif name[0] != "_":
                waiting.append((f"{prefix}{name}/", False))


@contextmanager
def _telling(failed: dict[str, str] | None, prefix: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        if failed is not None and prefix:
            failed[prefix] = f"the folder {prefix} cannot be read: {error.strerror}"


class LeftOut(NamedTuple):
    """Vault-relative paths that are not read, although the user may think that they belong to the vault."""

    links: list[str]
    """Folders and notes that are links and lead out of the vault, or to nothing."""
    in_the_cloud: list[str]
    """Notes that are not downloaded."""
    unreadable: list[str]
    """Why folders cannot be read, with their path."""


def list_left_out(vault: Path) -> LeftOut:
    """Return the notes and folders that `list_notes` leaves out, except for copies, dot-folders, the trash and special
    files."""
    left_out = LeftOut([], [], [])
    failed: dict[str, str] = {}
    root = os.path.realpath(vault)
    for prefix, _ in list_folders(vault, failed=failed):
        with suppress(OSError), os.scandir(f"{vault}/{prefix}") as children:
            for child in children:
                path, is_note = prefix + child.name, child.name.endswith(".md")
                if child.name[0] == "." or child.name == TRASH:
                    continue
                if child.is_symlink():
                    is_inside = f"{os.path.realpath(child.path)}/".startswith(f"{root}/")
                    if (is_note or child.is_dir()) and not is_inside:
                        left_out.links.append(path)
                elif is_note and child.is_file() and not is_downloaded_child(child):
                    left_out.in_the_cloud.append(path)
    return LeftOut(sorted(left_out.links), sorted(left_out.in_the_cloud), sorted(failed.values()))


def list_notes(vault: Path) -> NotePaths:
    """Return all notes except templates and those in the trash, and all conflict copies, found in one walk."""
    found = NotePaths([], [])
    left_out = template_folders(vault)
    for prefix, (notes, copies) in list_folders(vault, trash=True):
        if TRASH not in prefix.split("/") and not prefix.startswith(left_out):
            found.notes.extend(notes)
        found.copies.extend(copies)
    return found


def template_folders(vault: Path) -> tuple[str, ...]:
    """Return the vault-relative folders, with a slash at the end, that Obsidian's settings name for templates."""
    top = next((folder for folder in (vault, *vault.parents) if (folder / ".obsidian").is_dir()), None)
    named = obsidian_templates(top) if top is not None else []
    inside = [os.path.relpath(f"{top}/{folder}", vault) for folder in named]
    return tuple(f"{folder}/" for folder in inside if folder.partition("/")[0] not in (".", ".."))


def obsidian_settings(root: Path, file: str) -> dict[str, object]:
    """Return the settings in a file of the Obsidian vault `root`; none if it cannot be read."""
    whole = read_whole(root / ".obsidian" / file, MOST_SETTINGS_BYTES)
    with suppress(ValueError):
        settings = {} if isinstance(whole, str) else parse_json(whole[0])
        return settings if isinstance(settings, dict) else {}
    return {}


def obsidian_templates(root: Path) -> list[str]:
    """Return the folders of templates that the settings of the Obsidian vault `root` name, relative to it."""
    named = (obsidian_settings(root, file).get(name) for file, name in TEMPLATE_SETTINGS)
    return [folder.strip("/") for folder in named if isinstance(folder, str) and folder.strip("/")]
