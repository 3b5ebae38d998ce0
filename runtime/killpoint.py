"""Points at which a test may kill the process: `kill_point("after-claim")`.

Armed only if both variables are set: `MEMORY_TEST_MODE=1` and `MEMORY_TEST_KILL_POINT=name[@n][=SIGNAL]`,
comma-separated; the n-th pass (default the first) sends SIGNAL (default KILL) to this process.
Light module: hooks may import it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES = ("MEMORY_TEST_MODE", "MEMORY_TEST_KILL_POINT")
_armed: dict[str, list[tuple[int, str]]] = {}
_passes: dict[str, int] = {}


def arm(env: Mapping[str, str]) -> None:
    """Arm the points in `env`, and no others. Called at import for the process's own environment."""
    _armed.clear()
    _passes.clear()
    if env.get(_VARIABLES[0]) != "1":
        return
    for item in env.get(_VARIABLES[1], "").split(","):
        name, _, signame = item.strip().partition("=")
        name, _, count = name.partition("@")
        if name:
            _armed.setdefault(name, []).append((int(count or "1"), signame or "KILL"))


arm(os.environ)


def kill_point(name: str) -> None:
    """Send the signal if a test armed this point; else do nothing."""
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
    """Return the arming variables, for the allow-listed environment of a child."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}
