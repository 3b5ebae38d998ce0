"""`memory uninstall`: take the hooks out and stop what runs; the vault stays."""

from __future__ import annotations

import argparse

from ..hooks.install import uninstall
from ..hooks.wiring import WIRINGS, uninstall_for
from ..tasks.queue.units import ServiceManagerUnavailable, service_manager
from ..vault.errors import SettingsError
from .context import Context
from .output import add_json, note, print_json
from .processes import stop_background

EPILOG = """example:
  memory uninstall
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory uninstall`."""
    parser.epilog = EPILOG
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Hooks and service first, so that nothing is started again; then the worker drains, then the recall service."""
    done = uninstall(context.settings)
    others = {}
    for host in WIRINGS:
        try:
            others[host] = uninstall_for(host, context.settings)
        except SettingsError as error:  # Another agent's damaged file keeps nothing else from being taken out.
            note(f"memory: {error}")
    try:
        unit_removed = service_manager(context.env).remove()
    except ServiceManagerUnavailable as error:
        note(f"memory: {error}")
        unit_removed = False
    state = None if context.settings.vault_path is None else context.settings.state
    stopped = stop_background(state, "worker", "recall") if state is not None else []
    if args.json:
        print_json(
            {
                "hooks": str(done.settings_file),
                "changed": done.changed,
                "restored": done.restored,
                "hosts": {
                    host: {"file": str(each.settings_file), "restored": each.restored}
                    for host, each in others.items()
                    if each.changed
                },
                "service_removed": unit_removed,
                "stopped": stopped,
            }
        )
    else:
        changed = [each for each in (done, *others.values()) if each.changed]
        if not changed:
            print(f"there were no hooks of ours in {done.settings_file}")
        for each in changed:
            how = "has no hooks of ours any more"
            if each.restored:
                how = "has the bytes it had before" if each.settings_file.exists() else "is gone: there was none before"
            print(f"{each.settings_file} {how}")
        if stopped:
            print("stopped: " + ", ".join(stopped))
        print(
            "your vault stays where it is" + (f": {context.settings.vault_path}" if context.settings.vault_path else "")
        )
        if state is not None:
            print("settings and state stay too; delete them if you don't come back:")
            print(f"  {context.settings.config_file}\n  {state.root}")
    return 0
