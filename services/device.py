"""Which of the devices that share a vault runs vault-wide jobs: the one named in the vault's settings note."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from ..runtime.layout import META
from ..vault.header import skim

SETTINGS_NOTE = f"{META}/settings.md"


def acting_device(vault: Path) -> str | None:
    """Return `device` from the vault's settings note; None if none is named, so that every device acts."""
    with suppress(OSError):
        return skim((vault / SETTINGS_NOTE).read_text("utf-8", "replace"))[0].get("device") or None
    return None


def acts_here(vault: Path, hostname: str | None = None) -> bool:
    """Whether this device acts. Names are compared without case and domain: "desk" is "Desk.local"."""
    named = acting_device(vault)
    return named is None or _bare(named) == _bare(hostname or socket.gethostname())


def this_device() -> str:
    """Return this device's name among those that share a vault."""
    return _bare(socket.gethostname())


def _bare(name: str) -> str:
    return name.strip().partition(".")[0].casefold()
