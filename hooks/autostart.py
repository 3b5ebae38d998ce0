"""Start the worker and the recall service as daemons, detached from the session.

The child gets an allow-listed environment, `/` as its working directory, /dev/null for its three streams and no other
descriptor: a host that waits for the pipes of its hook to close must not wait for a daemon, and a repository's
PYTHONPATH, proxy or MEMORY_* settings must not reach a process that outlives the session.
"""

from __future__ import annotations

import os
import time

from ..runtime.interpreter import DEFAULT_SIGNALS
from ..runtime.layout import OFFLINE, UNINSTALLED, is_inherited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

THROTTLE_SECONDS = 15.0
"""How long after a start no session starts the same daemon again, whether it failed or not."""
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def is_agents_shell(env: Mapping[str, str]) -> bool:
    """Whether the agent itself runs this hook: hosts give commands of the agent what no hook has.

    Gemini CLI's own hooks have it too where it runs in such a shell, but then with the session. OpenCode gives it to
    all; its plugin takes it from the hook.
    """
    return (
        env.get("AI_AGENT", "").endswith("_agent")
        or not env.keys().isdisjoint(("CODEX_CI", "CODEX_THREAD_ID", "OPENCODE"))
        or ("GEMINI_CLI" in env and "GEMINI_SESSION_ID" not in env)
    )


def daemon_environment(env: Mapping[str, str], identity: Mapping[str, str], cwd: str) -> dict[str, str]:
    """Return the allow-listed part of `env` with `identity`: the variables for vault, state folder and settings file.

    PATH keeps its absolute folders outside `cwd`, so that a project's own `bin` cannot replace a program.
    """
    clean = {name: value for name, value in env.items() if is_inherited(name)}
    inside = cwd.rstrip("/") + "/" if cwd.rstrip("/") else "\0"
    folders = [
        folder
        for folder in env.get("PATH", DEFAULT_PATH).split(":")
        if folder.startswith("/") and not (folder + "/").startswith(inside)
    ]
    clean["PATH"] = ":".join(folders) or DEFAULT_PATH
    clean.update(OFFLINE)
    clean.update(identity)
    return clean


def start_daemons(commands: list[str], settings: Mapping[str, str], cwd: str) -> dict[str, str]:
    """Start the daemons of this vault that do not run; return fields for the hook's log line. Never raises.

    In an agent's shell none is started: its variables may name settings that the user never chose.
    """
    if is_agents_shell(os.environ):
        return {}
    identity = {
        "MEMORY_CONFIG": settings["config"],
        "MEMORY_STATE_DIR": settings["state_root"],
        "MEMORY_VAULT_PATH": settings["vault"],
    }
    environment = daemon_environment(os.environ, identity, cwd)
    fields = {}
    for command in commands:
        try:
            if start(command, settings["python"], f"{settings['state']}/run", environment):
                fields["started"] = " ".join(commands)
        except OSError as error:
            fields["start_failed"] = str(error)
    return fields


def start(command: str, python: str, run: str, env: dict[str, str]) -> bool:
    """Start `memory service <command>` detached; return whether a process was started.

    Starts nothing within THROTTLE_SECONDS of the last attempt or after `memory uninstall`. A second daemon exits by
    itself, since the first one holds the lock. Raises OSError.
    """
    if os.path.exists(f"{run}/{UNINSTALLED}"):  # A session that was open then still runs the hooks.
        return False
    stamp = f"{run}/starting-{command}"
    try:
        if 0 <= time.time() - os.stat(stamp).st_mtime < THROTTLE_SECONDS:  # A clock that was set back has no say.
            return False
    except FileNotFoundError:
        pass
    os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    os.utime(stamp)
    _close_descriptors_on_exec()
    os.chdir("/")  # posix_spawn cannot set the child's folder; the hook's own is not needed any more.
    argv = [python, "-I", "-m", "memoryvault", "service", command]
    null = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
    ]
    os.posix_spawn(python, argv, env, file_actions=null, setsid=True, setsigmask=[], setsigdef=DEFAULT_SIGNALS)
    return True


def _close_descriptors_on_exec() -> None:
    """Mark all descriptors above the three streams close-on-exec: some may be inherited from the host."""
    for name in os.listdir("/dev/fd"):
        if name.isdigit() and int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:
                continue  # The descriptor of the listing itself, closed by now.
