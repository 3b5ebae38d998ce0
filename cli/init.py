"""`memory init`: choose the vault, wire the hooks, start the worker."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..hooks.install import Installed, install, settings_file_of
from ..hooks.wiring import CLAUDE, HOSTS, WIRINGS, file_of, install_for
from ..index.client import ensure_service
from ..tasks.enqueue import enqueue, open_ledger, request_indexing
from ..vault.errors import QueueUnavailable, UsageError, VaultUnavailable
from ..vault.settings import Settings, compile_snapshot, load_settings
from .context import Context
from .output import add_json, note, print_json
from .settings_file import write_setting

EPILOG = """example:
  memory init                                       asks
  memory init --yes --vault ~/Obsidian/MemoryVault  does not ask
  memory init --host claude --host codex            the hooks of two agents
"""

CONSENT = "research.network"
CONSENT_QUESTION = (
    "memory: when you have an idea, a few words of it can be looked up on Wikipedia, GitHub, Hacker News and arXiv, "
    "and links that you typed into it be read. Each request is listed in the idea's note; without this, nothing leaves "
    "this machine. Allow it? [y/N] "
)
VAULT_NAME = "MemoryVault"
OBSIDIAN_FOLDER = ".obsidian"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory init`."""
    parser.epilog = EPILOG
    parser.add_argument("--vault", type=Path, help="the folder MemoryVault/ itself (made if it is not there)")
    parser.add_argument(
        "--host",
        action="append",
        choices=HOSTS,
        help="the agent whose hooks are wired; may be repeated (default claude)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the settings file and the hooks; a second run changes nothing."""
    settings = context.settings
    vault = _absolute(args.vault) if args.vault else (settings.vault_path or _found(context) or _default(context))
    note(f"memory: the vault is {vault}" + ("" if vault.is_dir() else " (it will be made)"))
    hosts = args.host or [CLAUDE]
    for file in hook_files(settings, hosts):
        note(f"memory: hooks go into {file}, with a copy of it made first")
    if not args.yes and not _agreed():
        note("memory: nothing was changed")
        return 1
    try:
        vault.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VaultUnavailable(
            f"can't make the vault {vault}: {error.strerror}; choose another with --vault"
        ) from error
    write_setting(settings.config_file, "vault", "path", str(vault))
    if not args.yes and CONSENT not in settings.origins:
        write_setting(settings.config_file, "research", "network", _agreed(CONSENT_QUESTION))
    settings = load_settings(context.env)
    if settings.vault_path != vault:
        note(f"memory: MEMORY_VAULT_PATH is set and wins over the settings file: {settings.vault_path}")
    settings.state.ensure()
    with open_ledger(settings):
        pass  # Makes queue.db: hooks enqueue into it but never create it.
    compile_snapshot(context.env)
    installed = install(settings) if CLAUDE in hosts else Installed(settings_file_of(settings), False, None, ())
    others = {host: install_for(host, settings) for host in WIRINGS if host in hosts}
    for each in (installed, *others.values()):
        for warning in each.warnings:
            note(f"memory: {warning}")
    request_indexing(settings)
    with suppress(QueueUnavailable):  # the weekly schedule does it in any case
        enqueue(settings, "skills.index", unique_key="skills.index")
    if settings.memory.autostart:
        ensure_service(settings)
    result = {
        "vault": str(vault),
        "settings": str(settings.config_file),
        "hooks": str(installed.settings_file),
        "changed": installed.changed,
        "backup": str(installed.backup) if installed.backup else None,
        "hosts": {host: {"file": str(each.settings_file), "changed": each.changed} for host, each in others.items()},
    }
    if args.json:
        print_json(result)
    else:
        changed = installed.changed or any(each.changed for each in others.values())
        print("done: the next session is recorded" if changed else "the hooks are in place already")
        print("try: memory doctor")
    return 0


def hook_files(settings: Settings, hosts: Sequence[str]) -> list[Path]:
    """The files that the hooks of `hosts` go into."""
    return [settings_file_of(settings) if host == CLAUDE else file_of(WIRINGS[host], settings) for host in hosts]


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))


def _found(context: Context) -> Path | None:
    """MemoryVault/ in the one Obsidian vault that lies in the usual places; None when there are more, or none."""
    home = Path(context.env.get("HOME") or Path.home())
    places = [home, home / "Documents"]
    found = {
        folder
        for place in places
        if place.is_dir()
        for folder in place.iterdir()
        if (folder / OBSIDIAN_FOLDER).is_dir()
    }
    return found.pop() / VAULT_NAME if len(found) == 1 else None


def _default(context: Context) -> Path:
    return Path(context.env.get("HOME") or Path.home()) / "Obsidian" / VAULT_NAME


def _agreed(question: str = "Go ahead? [y/N] ") -> bool:
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at; add --yes (and --vault FOLDER) to go ahead")
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
