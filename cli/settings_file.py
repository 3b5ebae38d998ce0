"""Write one setting into config.toml and keep the rest, comments included."""

from __future__ import annotations

import os
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from ..runtime.atomic_file import replace_file
from ..runtime.errors import SettingsError


def write_setting(config_file: Path, section: str, key: str, value: str | bool) -> None:
    """Set `section.key`. Raises SettingsError when the file cannot be read or written."""
    try:
        text = config_file.read_text("utf-8") if config_file.exists() else ""
        document = tomlkit.parse(text)
        table = document.setdefault(section, tomlkit.table())
        if table.get(key) == value:
            return
        table[key] = value
        config_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = Path(os.path.realpath(config_file))  # A link into the user's dotfiles stays a link.
        replace_file(target, tomlkit.dumps(document).encode("utf-8"))
    except OSError as error:
        line = f"{key} = {tomlkit.item(value).as_string()}"
        by_hand = f"put `{line}` below `[{section}]` there by hand, then run this again"
        raise SettingsError(f"can't write {config_file}: {error.strerror}; {by_hand}") from error
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise SettingsError(f"can't write {config_file}: {error}") from error
