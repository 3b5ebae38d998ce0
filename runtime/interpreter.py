"""The one place that imports private modules of the interpreter: hooks run in the user's turn.

A bare interpreter starts in 8 ms. To that `threading` would add 5 ms, `socket` 11, `json` 9, `sqlite3` 7, `signal` 6
and `hashlib` 3; the C modules behind them add less than one together. Where the scanner of JSON or SQLite's module is
different, the public one takes its place: slower, the same result. `_thread` is documented. Light module.
"""

from __future__ import annotations

import sys
from _signal import SIGCHLD, SIGHUP, SIGINT, SIGTERM  # type: ignore[import-not-found]
from _thread import RLock as RLock
from _thread import allocate_lock as allocate_lock
from _thread import get_ident as get_ident
from _thread import start_new_thread as start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEFAULT_SIGNALS = (SIGCHLD, SIGHUP, SIGINT, SIGTERM)
"""Signals that a daemon must not inherit as ignored."""


def quote(text: str) -> str:
    """Format `text` as a JSON string, ASCII only."""
    from _json import encode_basestring_ascii

    return encode_basestring_ascii(text)


def json_scanner() -> Callable[[str, int], tuple[Any, int]]:
    """Return a function that reads the JSON value at an index of a text: (value, index after it).

    What it raises for bad JSON has several names: StopIteration, RecursionError, ValueError.
    """
    try:
        from _json import make_scanner

        # A class will do: the scanner only reads attributes.
        return make_scanner(_ScannerContext)  # type: ignore[arg-type]
    except (ImportError, AttributeError):
        from json import JSONDecoder

        return JSONDecoder(strict=False).raw_decode


class _ScannerContext:
    """The attributes that `_json.make_scanner` reads; control characters in strings are allowed."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    array_hook = None  # Since Python 3.15.
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012  The C scanner has its own; it only requires the attribute.

    @staticmethod
    def parse_constant(name: str) -> None:
        """Read NaN and the infinities as None: they are no JSON, and no field in use is a number."""
        return


def short_hash(data: bytes) -> str:
    """Return 16 hexadecimal digits of BLAKE2b."""
    from _blake2 import blake2b

    return blake2b(data, digest_size=8).hexdigest()


def peer_uid(connection: Any) -> int:
    """Return the id of the user whose process is at the other end of a UNIX socket."""
    if sys.platform == "linux":
        sockets = socket_module()
        credentials = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12)  # struct ucred: pid, uid, gid
    else:
        # macOS: LOCAL_PEERCRED (1) of level SOL_LOCAL (0), struct xucred: version, uid, …
        credentials = connection.getsockopt(0, 1, 76)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def socket_module() -> Any:
    """Return the C module that has the constants and the class of `socket`."""
    import _socket

    return _socket


def sqlite_connect() -> Any:
    """Return `connect` of the C module behind `sqlite3`; None where that is missing or different.

    `_sqlite3` imports `functools` only for `lru_cache`, for prepared statements, and with it `collections` and four
    more modules: a fifth of a bare interpreter start. The C function behind `lru_cache` needs none of them, so during
    the import `functools` is replaced by a module with that one function.
    """
    if "functools" in sys.modules or "_sqlite3" in sys.modules:
        return None
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
        return None
