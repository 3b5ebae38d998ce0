"""Choose the folder that `memory init` uses as the vault, and check it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ..runtime.errors import VaultUnavailable
from ..runtime.json_text import parse_json
from ..runtime.layout import ALWAYS_LOAD, DEFAULT_GROUP, INCUBATOR, PROJECTS, SKILLS, WATCHLIST
from ..services.active_counts import count_indexed_entries
from ..services.discovery.adapting import SOURCES_NOTE
from .context import Context
from .output import counted, home_path
from .terminal import read_choice

VAULT_NAME = "MemoryVault"
OBSIDIAN_FOLDER = ".obsidian"
OBSIDIAN_LIST = "obsidian/obsidian.json"
"""Obsidian's own list of its vaults, in the folder of settings."""
OTHER_CONFIGS = (
    ".var/app/md.obsidian.Obsidian/config",
    "snap/obsidian/current/.config",
    "Library/Application Support",
)
"""Where Flatpak, Snap and macOS have the folder of settings, in the home folder."""
LOST_AND_FOUND = "lost+found"
"""In the root of an otherwise empty disk."""
OF_A_VAULT = (ALWAYS_LOAD, DEFAULT_GROUP, INCUBATOR, PROJECTS, SKILLS, WATCHLIST, SOURCES_NOTE)
"""A folder with one of these is a vault already. (`_inbox` is missing: many users have such a folder.)"""


def require_place(what: str, folder: Path, or_else: str) -> None:
    """Raise VaultUnavailable if a file or a broken link is in the way of the folder."""
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not os.path.isdir(there):
        found = "a file" if os.path.exists(there) else "a link that leads nowhere"
        raise VaultUnavailable(
            f"can't make {what} {folder}: {there} is {found}, not a folder; move that away, or {or_else}"
        )


def require_known(vault: Path, index_db: Path) -> None:
    """Raise VaultUnavailable if an indexed vault is missing.

    Its disk may be unmounted: with an empty folder in its place all entries would count as deleted.
    """
    if os.path.isdir(vault):
        return
    if entries := _known_entries(index_db):
        raise VaultUnavailable(
            f"the vault {vault} is not there, and this machine knows {entries} of it: mount its disk; to begin anew, "
            f"make the folder yourself (mkdir -p {shlex.quote(str(vault))}), or name another by --vault FOLDER"
        )


def empty_vault_notice(vault: Path, index_db: Path) -> str:
    """Return a warning if an indexed vault is now an empty folder, as when its disk is not mounted; else ''."""
    try:
        is_empty = all(name.startswith(".") or name == LOST_AND_FOUND for name in os.listdir(vault))
    except OSError:
        return ""
    if not is_empty or not (entries := _known_entries(index_db)):
        return ""
    return f"the vault {vault} is empty, and this machine knows {entries} of it: mount its disk"


def _known_entries(index_db: Path) -> str:
    known = count_indexed_entries(index_db)
    if known is None:  # The index cannot be read.
        return "entries"
    return counted(known, "entry", "entries") if known else ""


def vault_in(folder: Path) -> tuple[Path, str | None]:
    """Return the named folder, or MemoryVault/ in it if it holds the user's own notes, which must not be recalled.

    The second value is a notice in the second case, else None.
    """
    try:
        held = set(os.listdir(folder))
    except OSError:
        return folder, None
    others = {name for name in held if not name.startswith(".") or name == OBSIDIAN_FOLDER}
    if _is_vault(folder) or not others:
        return folder, None
    return (
        folder / VAULT_NAME,
        f"{folder} holds other things, which are yours alone: the memory goes into {VAULT_NAME}/ in it",
    )


def _is_vault(folder: Path) -> bool:
    return folder.name == VAULT_NAME or any(os.path.exists(folder / name) for name in OF_A_VAULT)


def choose_vault(context: Context, *, ask: bool = False) -> tuple[Path, str | None]:
    """Choose MemoryVault/ in the only Obsidian vault of this machine, or in the only one that has such a folder. An
    Obsidian vault that is a memory vault already is taken itself.

    Otherwise choose ~/Obsidian/MemoryVault. Return the folder, and a notice if there were several Obsidian vaults.
    `ask`: let the user choose among several. Raises Interrupted.
    """
    home = Path(context.env.get("HOME") or Path.home())
    default = home / "Obsidian" / VAULT_NAME
    found = sorted(set(_obsidian_vaults(home, context.env)))
    places = [*dict.fromkeys(folder if _is_vault(folder) else folder / VAULT_NAME for folder in found)]
    if len(places) < 2:
        return (places[0] if places else default), None
    used = [place for place in places if os.path.isdir(place)]
    if ask and len(used) != 1:
        offered = [*dict.fromkeys((*places, default))]
        listed = "".join(f"  {number}  {home_path(place)}\n" for number, place in enumerate(offered, 1))
        question = f"memory: there are {len(found)} Obsidian vaults. Where is the memory to go?\n{listed}Which? [1] "
        return offered[read_choice(question, len(offered)) - 1], None
    taken = used[0] if len(used) == 1 else default
    named = ", ".join(map(home_path, found))
    another = next(place for place in places if place != taken)
    return taken, (
        f"there are {len(found)} Obsidian vaults ({named}): the memory goes into {home_path(taken)}; "
        f"to choose another: memory init --vault {shlex.quote(str(another))}"
    )


def _obsidian_vaults(home: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """The vaults that Obsidian itself lists, wherever they are, and those of the usual places."""
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    for settings in (config, *(home / other for other in OTHER_CONFIGS)):
        # Missing, or not as Obsidian writes it.
        with suppress(OSError, ValueError, AttributeError, TypeError, KeyError):
            known = parse_json((settings / OBSIDIAN_LIST).read_bytes())["vaults"]
            named = [Path(one["path"]) for one in known.values()]
            yield from (folder for folder in named if os.path.isdir(folder / OBSIDIAN_FOLDER))
    for place in (home, home / "Documents"):
        with suppress(OSError):  # Missing, or not ours to read.
            # Not Path.is_dir, which raises PermissionError on Python 3.11.
            yield from (folder for folder in place.iterdir() if os.path.isdir(folder / OBSIDIAN_FOLDER))
