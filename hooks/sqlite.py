"""Open a SQLite file from a hook: the C module alone, without the packages around it."""

from __future__ import annotations

from ..runtime.interpreter import sqlite_connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def open_database(path: str, patience: float) -> Any:
    """Open a connection that only reads. `patience`: seconds to wait for a lock. Raises the errors of the C module."""
    connect = sqlite_connect()
    if connect is None:
        from sqlite3 import connect
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return connect(f"file:{name}?mode=ro", timeout=patience, isolation_level=None, uri=True)
