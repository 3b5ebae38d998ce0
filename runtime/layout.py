"""Names and paths: the vault's special folders, and one device-local state folder per vault.

Light module: hooks import it, so nothing but `os` and `sys` is loaded.
"""

from __future__ import annotations

import os
import sys

from .interpreter import short_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_INHERITED = frozenset({"CLAUDE_CONFIG_DIR", "CODEX_HOME", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "TZ", "USER"})
OFFLINE = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "ORT_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1",
}
"""Variables for a process that loads a model: its libraries must not use the network."""
INBOX = "_inbox"
REVIEW = "_review"
ARCHIVE = "_archive"
ALWAYS_LOAD = "_always-load"
INCUBATOR = "_idea-incubator"
WATCHLIST = "_skill-watchlist"
META = "_meta"
TRASH = "_trash"
"""Holds what the user deleted: never indexed, and purged after a time."""
UNINSTALLED = "uninstalled"
"""A file in `run`, from `memory uninstall` on: hooks, commands and tools start nothing that stays."""
ACTIONS = "actions.json"
"""Name in the state folder of what is compiled for the hooks before and after a tool call."""
FAILURES = "failures.json"
"""The same for failures and what cured them."""
INDEX_WANTED = "index-wanted"
"""A file in run/, created by a hook that found no usable index; the worker builds one then."""
OWN_SKILL = ".written-by-memoryvault"
"""A file beside our own SKILL.md: the hashes of the pages as `memory init` wrote them."""
DEFAULT_GROUP = "personal-private"
PROJECTS = "personal-projects"
SKILLS = "personal-skills"

APPLICATION = "memoryvault"
FOLDER_MODE = 0o700
FILE_MODE = 0o600

_SHARED_SOCKETS = "/tmp/" + APPLICATION + "-"
SOCKET_PATH_LIMIT_BYTES = 100
"""sun_path holds 104 bytes on macOS and 108 on Linux, with the closing NUL."""


def home_folder(env: Mapping[str, str]) -> str:
    """Return the user's home folder: HOME, else the account's; never derived from the working directory."""
    home = env.get("HOME", "")
    if home.startswith("/"):
        return home.rstrip("/") or "/"
    return os.path.expanduser("~")


def expand_home(path: str, env: Mapping[str, str]) -> str:
    """Expand `~` and `~/x` by HOME of `env`; every other path is returned unchanged."""
    if path == "~":
        return home_folder(env)
    if path.startswith("~/"):
        return home_folder(env).rstrip("/") + path[1:]
    return path


def _base_folder(env: Mapping[str, str], variable: str, *default: str) -> str:
    base = env.get(variable, "")
    if base.startswith("/"):  # the XDG specification: a relative value is to be ignored
        return base
    return os.path.join(home_folder(env), *default)


def config_path(env: Mapping[str, str]) -> str:
    """Return the path of config.toml: MEMORY_CONFIG, else in the platform's configuration folder."""
    named = expand_home(env.get("MEMORY_CONFIG", ""), env)
    if named:
        return os.path.abspath(named)
    if sys.platform == "darwin" and not env.get("XDG_CONFIG_HOME"):
        base = os.path.join(home_folder(env), "Library", "Application Support")
    else:
        base = _base_folder(env, "XDG_CONFIG_HOME", ".config")
    return os.path.join(base, APPLICATION, "config.toml")


def state_root(env: Mapping[str, str]) -> str:
    """Return the folder of all state folders: MEMORY_STATE_DIR, else the platform's."""
    named = expand_home(env.get("MEMORY_STATE_DIR", ""), env)
    if named:
        return os.path.abspath(named)
    if sys.platform == "darwin" and not env.get("XDG_STATE_HOME"):
        return os.path.join(home_folder(env), "Library", "Application Support", APPLICATION, "state")
    return os.path.join(_base_folder(env, "XDG_STATE_HOME", ".local", "state"), APPLICATION)


_REPOSITORY_MARKS = (".git", ".hg", ".jj", ".svn")
_PLACES = (("MEMORY_CONFIG", False), ("XDG_CONFIG_HOME", False), ("MEMORY_STATE_DIR", True), ("XDG_STATE_HOME", True))


def explain_misplacement(env: Mapping[str, str]) -> str:
    """Return why the configuration or the state of this environment is not trusted, as one line; '' if it is.

    A repository can set the environment of processes that run in it (.envrc, a host's settings), and so replace the
    user's config.toml or state folder by one of its own. So neither may be in a work tree, except where it is without
    any variable. The user's home folder may be a work tree.
    """
    for variable, is_state in _PLACES:
        if not env.get(variable):
            continue
        if variable.startswith("XDG") and (
            not env[variable].startswith("/") or env.get("MEMORY_STATE_DIR" if is_state else "MEMORY_CONFIG")
        ):
            continue  # The variable has no effect.
        if not expand_home(env[variable], env).startswith("/"):
            return variable + " must be an absolute path, or one that begins with ~/, not " + repr(env[variable])
        path = state_root(env) if is_state else config_path(env)
        usual = {name: value for name, value in env.items() if name not in dict(_PLACES)}
        if path == (state_root(usual) if is_state else config_path(usual)):
            continue
        tree = _work_tree(path, env)
        if tree:
            return (
                variable + " leads into a repository (" + tree + "): a repository may not choose where memory is kept"
            )
        if not is_state and _is_foreign(path):
            return path + " can be changed by other accounts: make it your own, writable by you alone"
    return ""


def _work_tree(path: str, env: Mapping[str, str]) -> str:
    """Return the path of the repository that contains `path`; '' for none."""
    home = os.path.realpath(home_folder(env))
    folder = os.path.realpath(path)
    while True:
        if folder != home and any(os.path.lexists(os.path.join(folder, mark)) for mark in _REPOSITORY_MARKS):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def _is_foreign(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_uid not in (0, os.getuid()) or bool(status.st_mode & 0o002)


def is_inherited(variable: str) -> bool:
    """Whether the worker, the recall service and their children get a variable of the environment."""
    return variable in _INHERITED or variable.startswith(("LC_", "XDG_"))


def vault_id(vault_path: str) -> str:
    """Return the name of a vault's state folder: readable words, then 16 hexadecimal digits, a hash of its real path.

    Two spellings of one folder (symbolic link, trailing slash) have the same id.
    """
    real = os.fsencode(os.path.realpath(vault_path))
    named = " ".join(real.decode("utf-8", "replace").split("/")[-2:])
    if not named.isascii():
        from unicodedata import normalize  # Hooks of other vaults do without it.

        named = normalize("NFKD", named).encode("ascii", "ignore").decode()
    words = "-".join("".join(c if c.isalnum() else " " for c in named.lower()).split())
    return (words[:40].strip("-") or "vault") + "-" + short_hash(real)


def make_private_folder(path: str) -> None:
    """Create `path` and its missing parents with mode 0700; tighten it if it is ours and open to others.

    Raises OSError, also when `path` belongs to another user.
    """
    missing = []
    current = path
    while not os.path.isdir(current):
        missing.append(current)
        parent = os.path.dirname(current)
        if parent == current:
            break
        current = parent
    for folder in reversed(missing):
        try:
            os.mkdir(folder, FOLDER_MODE)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
    status = os.stat(path)
    if status.st_uid != os.getuid():
        raise PermissionError(1, "folder belongs to another user", path)
    if status.st_mode & 0o077:
        os.chmod(path, FOLDER_MODE)


def make_socket_folder(socket_path: str) -> None:
    """Create the folder of a socket before it is bound. Raises OSError."""
    folder = os.path.dirname(socket_path)
    if os.path.dirname(folder).startswith(_SHARED_SOCKETS):
        make_private_folder(os.path.dirname(folder))
    make_private_folder(folder)


def leave_socket_folder(socket_path: str) -> None:
    """Remove the folder of a deleted socket if it is outside of the state folder and empty. Never raises."""
    folder = os.path.dirname(socket_path)
    if folder.startswith(_SHARED_SOCKETS):
        for empty in (folder, os.path.dirname(folder)):
            try:
                os.rmdir(empty)
            except OSError:
                return


class StatePaths:
    """Paths below the state folder of one vault. Building one touches nothing on disk."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = base = os.path.abspath(os.fspath(root))
        self.queue_db = base + "/queue.db"
        self.index_db = base + "/index.db"
        self.state_db = base + "/state.db"
        self.markers = base + "/markers"
        self.spool = base + "/spool"
        self.log = base + "/log"
        self.run = base + "/run"
        self.cache = base + "/cache"
        self.models = base + "/models"
        self.journal = base + "/journal"
        self.pending_change = self.journal + "/pending.json"
        self.log_file = self.log + "/memoryvault.log"
        self.receipts = self.log + "/receipts.jsonl"
        self.stop_file = self.markers + "/STOP"
        self.worker_lock = self.run + "/worker.lock"
        self.recall_lock = self.run + "/recall.lock"
        self.vault_lock = self.run + "/vault.lock"
        self.sockets = self.run
        if len(os.fsencode(self.run + "/recall.sock")) > SOCKET_PATH_LIMIT_BYTES:
            # A fixed place, not TMPDIR or XDG_RUNTIME_DIR: a hook, a service manager and a terminal
            # have different environments and must still meet at the same socket.
            self.sockets = _SHARED_SOCKETS + str(os.getuid()) + "/" + short_hash(os.fsencode(base))
        self.recall_socket = self.sockets + "/recall.sock"
        self.wake_socket = self.sockets + "/wake.sock"

    def folders(self) -> tuple[str, ...]:
        """Return the paths of all folders, parents first."""
        return (self.root, self.markers, self.spool, self.log, self.run, self.cache, self.models)

    def ensure(self) -> None:
        """Create every folder with mode 0700. Raises OSError."""
        for folder in self.folders():
            make_private_folder(folder)


def open_private(path: str, flags: int) -> int:
    """Open a file of the state folder, as an opener for `open`: mode 0600 whatever the umask."""
    return os.open(path, flags, FILE_MODE)


def resolve_within(path: str, roots: Iterable[str]) -> str | None:
    """Return the real path of a transcript inside one of `roots`, the folders of the agent hosts; else None.

    The path comes from outside (a hook's payload, a marker on disk), so one that leads elsewhere, also by a symbolic
    link or by `..`, must not be read. The file need not exist.

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


RESERVED_NAMES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{device}{number}" for device in ("com", "lpt") for number in range(1, 10))}
)
"""Names that Windows gives no file or folder, whatever the ending: a vault that is synced there could not hold them."""


def special_folder(relative_path: str) -> str:
    """Return the first folder of a vault-relative path whose name begins with an underscore, or ''."""
    for part in relative_path.split("/")[:-1]:
        if part.startswith("_"):
            return part
    return ""


def is_conflict_copy(name: str) -> bool:
    """Whether a sync client keeps the other side of a conflict under this file name."""
    # obsidian-git's list of files with git's marks in them is a copy of none.
    return original_name(name) is not None or name.lower() == "conflict-files-obsidian-git.md"


def original_name(name: str) -> str | None:
    """Return the file name of which `name` is a conflict copy; None if it is none."""
    low = name.lower()
    if "conflict" not in low:
        return None
    for mark in (".sync-conflict-", "_conflict-"):  # Syncthing, ownCloud: with the date and the time.
        start = low.rfind(mark)
        day, hyphen, rest = low[start + len(mark) :].partition("-")
        if start > 0 and hyphen and len(day) == 8 and day.isdecimal() and len(rest) >= 6 and rest[:6].isdecimal():
            return _without(name, start)
    for mark in ("conflicted copy", "(sfconflict", "(case conflict"):  # Dropbox, Nextcloud, Obsidian Sync; Seafile.
        start = low.rfind(mark)
        after = low[start + len(mark) :][:1]
        if start > 0 and (mark[0] == "(" or low[start - 1] in " (") and not (after.isalnum() or after == "_"):
            opening = low.rfind("(", 0, start + 1)
            return _without(name, opening if opening >= 0 and ")" not in low[opening:start] else start)
    return None


def _without(name: str, start: int) -> str | None:
    stem, dot = name[:start].rstrip(), name.rfind(".")
    return stem + (name[dot:] if dot > start else "") if stem else None
