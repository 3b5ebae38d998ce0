"""Where transcripts may be: hooks and worker read no file outside of the agent hosts' folders. Light module.

The path of a transcript comes from outside (a hook's payload, a marker on disk), so a path that leads elsewhere, also
by a symbolic link or by `..`, must not be mined."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def resolve_within(path: str, roots: Iterable[str]) -> str | None:
    """The real path of `path` when it is inside one of `roots`, else None. The file need not exist.

    None, too, for a path that is relative or has unprintable characters (bytes that are no UTF-8 among them). A root
    that is not absolute, such as the '' of an empty setting, allows nothing: it would be the working directory.
    """
    if not path.startswith("/") or not path.isprintable():
        return None
    try:
        real = os.path.realpath(path)
        for root in roots:
            if root.startswith("/") and real.startswith(os.path.realpath(root).rstrip("/") + "/"):
                return real
    except (OSError, ValueError):
        pass
    return None
