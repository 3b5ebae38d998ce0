"""Opening a SQLite file from a hook: the C module alone, without the packages around it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def open_database(path: str, mode: str, patience: float) -> Any:
    """Open a connection in autocommit mode; `mode` is 'rw' or 'ro', never one that creates the file, or 'memory'.

    `patience`: seconds to wait for a lock. Raises the errors of the C module.
    """
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return _connect_function()(f"file:{name}?mode={mode}", timeout=patience, isolation_level=None, uri=True)


def _connect_function() -> Any:
    """`connect` of the C module, or of `sqlite3` if the C module is missing or different.

    `_sqlite3` imports `functools` only for `lru_cache`, for prepared statements, and with it `collections` and four
    more modules: a fifth of a bare interpreter start. The C function behind `lru_cache` needs none of them, so during
    the import `functools` is replaced by a module with that one function."""
    if "functools" not in sys.modules and "_sqlite3" not in sys.modules:
        try:
            from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]

            stand_in: Any = type(sys)("functools")
            stand_in.lru_cache = lambda size: lambda function: _lru_cache_wrapper(function, size, False, tuple)
            sys.modules["functools"] = stand_in
            try:
                from _sqlite3 import connect
            finally:
                del sys.modules["functools"]
            return connect
        except (AttributeError, ImportError):
            sys.modules.pop("_sqlite3", None)
    import sqlite3

    return sqlite3.connect
