"""The snapshot: settings in the form that hooks read, valid for one environment and one version of config.toml.

Parsing TOML takes as long as three starts of a bare interpreter, so `settings.compile_snapshot` writes the result to
`<state root>/run/hooks-<crc32>.snapshot`, a flat file. Light module: hooks import it.
"""

from __future__ import annotations

import os

from .layout import config_path, explain_misplacement, home_folder, make_private_folder, state_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = "4"
"""Raise it when a key is added that hooks require."""

_OTHER_VARIABLES = ("AGENT_TOOLKIT_EMBEDDING_MODEL", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "IDEAS_SURFACE_PATH")
_IGNORED_VARIABLES = ("MEMORY_WORKER_CHILD",)

OFF_WORDS = ("0", "false", "no", "off")
"""Values, in any case of letters, with which a switch in the environment is off."""


def is_switched_off(env: Mapping[str, str]) -> bool:
    """Whether the environment turns memory.enabled off. It overrides config.toml, which then need not be read."""
    return env.get("MEMORY_ENABLED", "").strip().lower() in OFF_WORDS


def session_folders(values: Mapping[str, str]) -> dict[str, str]:
    """Return the folder of the sessions by host, from the snapshot's values."""
    return {name[9:]: value for name, value in values.items() if name.startswith("sessions_")}


def escape(value: str) -> str:
    """Escape line ends and backslashes, so that `value` is one line."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def unescape(line: str) -> str:
    """The inverse of `escape`; a backslash before any other character is kept."""
    if "\\" not in line:
        return line
    out = []
    characters = iter(line)
    for c in characters:
        if c == "\\":
            following = next(characters, "")
            out.append({"n": "\n", "r": "\r", "\\": "\\"}.get(following, "\\" + following))
        else:
            out.append(c)
    return "".join(out)


def environment_key(env: Mapping[str, str]) -> str:
    """Return everything that the settings depend on, except for the content of config.toml, as one line."""
    names = [n for n in env if n.startswith("MEMORY_") and n not in _IGNORED_VARIABLES]
    names += [n for n in _OTHER_VARIABLES if n in env]
    parts = [n + "=" + env[n] for n in sorted(names)]
    parts.append("config=" + config_path(env))
    parts.append("state=" + state_root(env))
    parts.append("home=" + home_folder(env))
    parts.append("package=" + os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return escape("\x1f".join(parts))


def snapshot_path(env: Mapping[str, str]) -> str:
    """Return the path of the snapshot for this environment."""
    from binascii import crc32

    key = environment_key(env).encode("utf-8", "surrogatepass")
    return state_root(env) + "/run/hooks-" + format(crc32(key), "08x") + ".snapshot"


def installation_path(env: Mapping[str, str]) -> str:
    """Return the path of the file with the installed package's Python and hook stub; `hooks/launch.sh` reads it."""
    return state_root(env) + "/run/installation"


def write_installation(env: Mapping[str, str], python: str) -> None:
    """Write two lines: the interpreter and the hook stub of the running package. Raises OSError."""
    path = installation_path(env)
    make_private_folder(os.path.dirname(path))
    stub = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/hooks/stub.py"
    _replace(path, (python + "\n" + stub + "\n").encode("utf-8", "surrogateescape"))


def _replace(path: str, data: bytes) -> None:
    from .atomic_file import replace_file  # Only a writer pays for its imports.

    replace_file(path, data, synced=False)


def config_stamp(env: Mapping[str, str]) -> str:
    """Return `<mtime_ns>-<size>` of config.toml; `absent` if there is none."""
    try:
        status = os.stat(config_path(env))
    except OSError:
        return "absent"
    return str(status.st_mtime_ns) + "-" + str(status.st_size)


def read_snapshot(env: Mapping[str, str], stale: bool = False) -> dict[str, str] | None:
    """Read the settings for this environment; None when they must be compiled (again).

    `stale`: accept those of a config.toml that has changed since, for a caller that cannot read the present one.
    """
    if explain_misplacement(env):
        return None  # Compiling reports why.
    try:
        with open(snapshot_path(env), "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            text = file.read().decode("utf-8", "surrogatepass")
    except (OSError, ValueError):
        return None
    values = {}
    for line in text.split("\n"):
        name, separator, value = line.partition("=")
        if separator:
            values[name] = unescape(value)
    if values.pop("end", "") != "1":
        return None
    if values.pop("format", "") != FORMAT:
        return None
    if values.pop("environment", "") != environment_key(env):
        return None
    if values.pop("config_stamp", "") != config_stamp(env) and not stale:
        return None
    return values


def write_snapshot(env: Mapping[str, str], values: Mapping[str, str], stamp: str) -> None:
    """Write the snapshot atomically. `stamp` is `config_stamp(env)` from before config.toml was read.

    Raises OSError.
    """
    path = snapshot_path(env)
    make_private_folder(os.path.dirname(path))
    lines = ["format=" + FORMAT, "environment=" + escape(environment_key(env)), "config_stamp=" + stamp]
    lines += [name + "=" + escape(value) for name, value in values.items()]
    lines.append("end=1\n")
    _replace(path, "\n".join(lines).encode("utf-8", "surrogatepass"))
