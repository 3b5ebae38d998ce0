"""Which version of the package runs, which is installed, and which of two is newer.

A worker lives for weeks; the package under it is replaced in a moment.  It then finishes what it runs and
leaves, and the next hook or service manager starts the new one.
"""

from __future__ import annotations

import re
from pathlib import Path

from ... import __version__

_INIT = Path(__file__).resolve().parents[2] / "__init__.py"
_DECLARED = re.compile(rb'^__version__\s*=\s*"([^"]+)"', re.MULTILINE)


def installed_version(init: Path = _INIT) -> str:
    """The version that the files on disk declare now; the running one while they are being replaced."""
    try:
        found = _DECLARED.search(init.read_bytes())
    except OSError:
        found = None
    return found.group(1).decode("ascii", "replace") if found else __version__


def is_newer(version: str, than: str = __version__) -> bool:
    """Whether `version` comes after `than`; nonsense does not."""
    return _key(version) > _key(than)


def _key(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d{1,9}(\.\d{1,9}){0,5}", version)
    return tuple(int(number) for number in numbers.group().split(".")) if numbers else ()
