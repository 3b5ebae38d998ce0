"""`memory config show`: print the settings in force, or the reference."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..runtime.errors import UsageError
from ..runtime.settings import value_in_force
from ..runtime.settings_table import SETTINGS, as_toml, render_settings_reference
from .context import Context
from .output import add_json, home_path, print_rows, with_home

EPILOG = """example:
  memory config show                 every setting, its value, and where that is from
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory config show`."""
    parser.add_argument("--reference", action="store_true", help="print what each setting means")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the settings. Raises SettingsError with the name of a bad value."""
    if args.reference:
        if args.json:
            raise UsageError("--reference prints markdown: leave --json out")
        print(render_settings_reference())
        return 0
    settings = context.settings
    rows = [
        (row.name, value_in_force(settings, row.name), settings.origins.get(row.name, "default")) for row in SETTINGS
    ]
    values = {name: {"value": value, "from": origin} for name, value, origin in rows}
    shown = [(name, _shown(value), with_home(at)) for name, value, at in rows]
    return print_rows(args, values, ("setting", "value", "from"), shown)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return as_toml(home_path(value) if isinstance(value, Path) else value)
