"""Places where a test may kill the process: `kill_point("after-claim")`.

Armed only if both variables are set: `MEMORY_TEST_MODE=1` and `MEMORY_TEST_KILL_POINT=name[@n][=SIGNAL]`,
comma-separated; the n-th pass (default the first) sends SIGNAL (default KILL) to this process.
Light: hooks may import it.
"""

from __future__ import annotations

import os

_VARIABLES = ("MEMORY_TEST_MODE", "MEMORY_TEST_KILL_POINT")
_armed: dict[str, list[tuple[int, str]]] = {}
_passes: dict[str, int] = {}

if os.environ.get(_VARIABLES[0]) == "1":
    for _item in os.environ.get(_VARIABLES[1], "").split(","):
        _name, _, _signal = _item.strip().partition("=")
        _name, _, _count = _name.partition("@")
        if _name:
            _armed.setdefault(_name, []).append((int(_count or "1"), _signal or "KILL"))


def kill_point(name: str) -> None:
    """Do nothing, unless a test armed this name."""
    if not _armed or name not in _armed:
        return
    import signal
    import time

    _passes[name] = _passes.get(name, 0) + 1
    for count, signame in _armed[name]:
        if _passes[name] == count:
            os.kill(os.getpid(), signal.Signals["SIG" + signame])
            time.sleep(0.2)  # Another thread may be the one that takes the signal.


def kill_point_environment() -> dict[str, str]:
    """The arming variables, for the allow-listed environment of a child."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}
