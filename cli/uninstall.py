"""`memory uninstall`: remove the hooks and stop background processes; the vault stays."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..hooks.extension import extension_folder
from ..hooks.install import PLUGIN, WiringOutcome, plugin_installed, settings_file_of
from ..hooks.skill import SKILL, remove_skill
from ..hooks.wiring import CLAUDE, HOSTS, uninstall_for
from ..runtime.background import forbid_starts
from ..runtime.errors import SettingsError
from ..runtime.layout import home_folder
from ..runtime.settings import PartialSettings, Settings
from ..services.ideas.ledger import list_there
from ..tasks.queue.units import ServiceManagerUnavailable, service_manager
from .context import Context
from .output import add_json, home_path, note, print_json
from .processes import stop_background

EPILOG = """example:
  memory uninstall
"""

HOST_PLACES = ("hosts.claude_config_dir", *(f"hosts.{host}_home" for host in HOSTS if host != CLAUDE))
PLACES = frozenset({"vault.path", *HOST_PLACES})


@dataclass(frozen=True)
class Uninstalled:
    """What was removed from the agents' files, and what was stopped."""

    hosts: Mapping[str, WiringOutcome]
    """By host, of those whose file could be read."""
    skills: Sequence[Path]
    """Folders from which our skill was removed."""
    unit_removed: bool
    stopped: Sequence[str]


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory uninstall`."""
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Remove hooks and service first, so that nothing starts again; then stop the worker, then the recall service.

    Return 1 if something of ours may be left because an agent's file or our settings cannot be read.
    """
    context, readable = context.despite_faults()
    _print_faults(readable)
    settings = context.settings
    hosts = {}
    for host in HOSTS:
        try:
            hosts[host] = uninstall_for(host, settings)
        except SettingsError as error:  # A damaged file of one agent does not stop the rest.
            note(f"memory: {error}")
    try:
        unit_removed = service_manager(context.env).remove()
    except ServiceManagerUnavailable as error:
        note(f"memory: {error}")
        unit_removed = False
    state = None if settings.vault_path is None else settings.state
    stopped: list[str] = []
    if state is not None:
        forbid_starts(state)
        stopped = stop_background(state, "worker", "recall")
    skills = [folder for host in HOSTS if (folder := remove_skill(host, settings)) is not None]
    home = Path(home_folder(context.env))
    places = [*(each.settings_file for each in hosts.values() if each.changed), *skills]
    extension = extension_folder(settings)
    if extension.is_dir():  # It is ours, wherever it is; what is in it may have been taken out by hand.
        places += [extension / "hooks" / "hooks.json", extension / "skills" / SKILL]
    for place in places:
        remove_empty_folders(place, home, extension)
    done = Uninstalled(hosts, skills, unit_removed, stopped)
    if args.json:
        print_json(_as_json(done, settings))
    else:
        _print_outcome(done, context)
    return 1 if len(hosts) < len(HOSTS) or readable.unread & PLACES else 0


def _as_json(done: Uninstalled, settings: Settings) -> dict[str, Any]:
    claude = done.hosts.get(CLAUDE) or WiringOutcome(settings_file_of(settings), False)
    return {
        "hooks": str(claude.settings_file),
        "changed": claude.changed,
        "restored": claude.restored,
        "hosts": {
            host: {"file": str(each.settings_file), "restored": each.restored}
            for host, each in done.hosts.items()
            if each.changed and host != CLAUDE
        },
        "skills": [str(folder) for folder in done.skills],
        "service_removed": done.unit_removed,
        "stopped": done.stopped,
    }


def remove_empty_folders(place: Path, home: Path, ours: Path) -> None:
    """Remove the folders that a file was in, up to the first that is not empty; those below the home, and `ours`."""
    with suppress(OSError):
        for folder in takewhile(lambda above: home in above.parents or above.is_relative_to(ours), place.parents):
            folder.rmdir()


def _print_outcome(done: Uninstalled, context: Context) -> None:
    """Print what was removed and what stays."""
    changed = [each for each in done.hosts.values() if each.changed]
    if not changed and CLAUDE in done.hosts:
        print(f"there were no hooks of ours in {home_path(done.hosts[CLAUDE].settings_file)}")
    for each in changed:
        how = "has no hooks of ours any more"
        if each.restored:
            how = "has the bytes it had before" if each.settings_file.exists() else "is gone: there was none before"
        print(f"{home_path(each.settings_file)} {how}")
    for folder in done.skills:
        print(f"{home_path(folder)} {'holds only what you put there' if folder.exists() else 'is gone'}")
    if CLAUDE in done.hosts and plugin_installed(context.settings):
        print(f"the Claude Code plugin stays: `claude plugin uninstall {PLUGIN}` removes it")
    if done.stopped:
        print("stopped: " + ", ".join(done.stopped))
    vault = context.settings.vault_path
    if vault is not None and not vault.is_dir():
        print(f"your vault is not touched; it is not there now: {home_path(vault)}")
    else:
        print("your vault stays where it is" + (f": {home_path(vault)}" if vault else ""))
    if (ideas := list_there(context.settings)) is not None:
        print(f"so does the list of your ideas: {home_path(ideas)}")
    root = context.settings.state_root
    states = sorted(folder for folder in _folders_in(root) if (folder / "markers").is_dir())
    kept = [place for place in (context.settings.config_file, *states, root) if place.exists()]
    if kept:
        print("settings and state stay too; delete them if you don't come back:")
        for place in kept:
            holds = " (the state of one vault)" if place in states else " (all of the state)" if place == root else ""
            print(f"  {home_path(place)}{holds}")
    print(
        "the program stays too; remove it as you installed it: uv tool uninstall memoryvault-agent, or with pipx or pip"
    )


def _folders_in(root: Path) -> list[Path]:
    try:
        return [folder for folder in root.iterdir() if folder.is_dir()]
    except OSError:
        return []


def _print_faults(readable: PartialSettings) -> None:
    """Print what could not be read, and what that means."""
    for fault in readable.faults:
        note(f"memory: {fault}")
    if known := sorted(readable.remembered):
        note(f"memory: used the last readable values of: {', '.join(known)}")
    if unread := sorted(readable.unread & set(HOST_PLACES)):
        note(f"memory: {', '.join(unread)} could not be read: hooks of ours are looked for in the usual places only")
    if "vault.path" in readable.unread:
        note("memory: vault.path could not be read: background processes go on; mend it, then run this again")
