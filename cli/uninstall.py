"""`memory uninstall`: remove the hooks and stop background processes; the vault stays."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from ..tasks.queue.units import ServiceManagerUnavailable, SystemdUser
from .context import Context
from .output import home_path, note, print_json
from .processes import stop_background

EPILOG = """example:
  memory uninstall
"""

HOST_PLACES = ("hosts.claude_config_dir", *(f"hosts.{host}_home" for host in HOSTS if host != CLAUDE))
PLACES = frozenset({"vault.path", *HOST_PLACES})


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
        unit_removed = SystemdUser(context.env).remove()
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
    if args.json:
        told = {"skills": [*map(str, skills)], "service_removed": unit_removed, "stopped": stopped}
        print_json({**_hosts_as_json(hosts, settings), **told})
    else:
        _print_outcome(hosts, skills, stopped, context)
    return 1 if len(hosts) < len(HOSTS) or readable.unread & PLACES else 0


def _hosts_as_json(hosts: Mapping[str, WiringOutcome], settings: Settings) -> dict[str, Any]:
    """`hosts` are those whose file could be read."""
    claude = hosts.get(CLAUDE) or WiringOutcome(settings_file_of(settings), False)
    return {
        "hooks": str(claude.settings_file),
        "changed": claude.changed,
        "restored": claude.restored,
        "hosts": {
            host: {"file": str(each.settings_file), "restored": each.restored}
            for host, each in hosts.items()
            if each.changed and host != CLAUDE
        },
    }


def remove_empty_folders(place: Path, home: Path, ours: Path) -> None:
    """Remove the folders that a file was in, up to the first that is not empty; those below the home, and `ours`."""
    with suppress(OSError):
        for folder in takewhile(lambda above: home in above.parents or above.is_relative_to(ours), place.parents):
            folder.rmdir()


def _print_outcome(
    hosts: Mapping[str, WiringOutcome], skills: Sequence[Path], stopped: Sequence[str], context: Context
) -> None:
    """Print what was removed and what stays. `skills`: folders from which our skill was removed."""
    changed = [each for each in hosts.values() if each.changed]
    if not changed and CLAUDE in hosts:
        print(f"there were no hooks of ours in {home_path(hosts[CLAUDE].settings_file)}")
    for each in changed:
        how = "has no hooks of ours any more"
        if each.restored:
            how = "has the bytes it had before" if each.settings_file.exists() else "is gone: there was none before"
        print(f"{home_path(each.settings_file)} {how}")
    for folder in skills:
        print(f"{home_path(folder)} {'holds only what you put there' if folder.exists() else 'is gone'}")
    if CLAUDE in hosts and plugin_installed(context.settings):
        print(f"the Claude Code plugin stays: `claude plugin uninstall {PLUGIN}` removes it")
    if stopped:
        print("stopped: " + ", ".join(stopped))
    vault = context.settings.vault_path
    if vault is not None and not vault.is_dir():
        print(f"your vault is not touched; it is not there now: {home_path(vault)}")
    else:
        print("your vault stays where it is" + (f": {home_path(vault)}" if vault else ""))
    if (ideas := list_there(context.settings)) is not None:
        print(f"so does the list of your ideas: {home_path(ideas)}")
    root = context.settings.state_root
    states = sorted(markers.parent for markers in root.glob("*/markers") if markers.is_dir())
    kept = [place for place in (context.settings.config_file, *states, root) if place.exists()]
    if kept:
        print("settings and state stay too; delete them if you don't come back:")
        for place in kept:
            holds = " (the state of one vault)" if place in states else " (all of the state)" if place == root else ""
            print(f"  {home_path(place)}{holds}")
    print(
        "the program stays too; remove it as you installed it: uv tool uninstall memoryvault-agent, or with pipx or pip"
    )


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
