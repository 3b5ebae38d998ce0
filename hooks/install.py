"""Installing the hooks in Claude Code's settings.json, and uninstalling them.

Hooks of other tools and all other settings are kept. Before the first change a dated copy is made in the same folder;
an uninstall that finds nothing else changed restores its bytes. Copies of earlier installs, kept because something else
had changed, are not touched: only the newest one is used."""

from __future__ import annotations

import compileall
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.atomic_file import replace_file
from ..runtime.errors import SettingsError
from ..runtime.layout import FILE_MODE, make_private_folder
from ..runtime.settings import Settings

STUB = Path(__file__).with_name("stub.py")
LAUNCHER = "memoryvault-hook"
"""Name of the script that agents run for every event, in the state folder's `run/`. It is not in the package: the
package can go while hooks of it stand in a host's settings, removed, moved, or just being replaced by an update, and a
shell or Python that cannot open its script ends with 2. At that code hosts reject the prompt and do not let the agent
stop."""
_LAUNCHER_TEXT = """\
#!/bin/sh
# What an agent runs at its events: MemoryVault's hook, or nothing where that is gone. Written by `memory init`.
python={python}
stub={stub}
if [ ! -r "$stub" ]; then
    # An installer that makes the environment anew with another version of Python keeps its bin/python.
    rest=${{stub##*/lib/python}}
    for moved in "${{stub%/lib/python*}}"/lib/python3.*/"${{rest#*/}}"; do
        [ "$rest" = "$stub" ] || [ ! -r "$moved" ] || stub=$moved
    done
fi
# No exec: an interpreter that is there and cannot run must not fail the turn.
[ ! -x "$python" ] || [ ! -r "$stub" ] || "$python" -I -S "$stub" "$@"
exit 0
"""
TIMEOUT_SECONDS = {
    "SessionStart": 5,
    "UserPromptSubmit": 3,
    "Stop": 5,
    "SessionEnd": 1,
    "PreCompact": 5,
    "Notification": 5,
}
"""How long the host waits for a hook; the hooks themselves end long before."""
ACTION_TIMEOUT_SECONDS = {"PreToolUse": 5, "PostToolUseFailure": 5}
"""Events of tool calls: wired only by the user's word (`memory guard`), since each call then starts a process."""
MATCHERS = {
    "SessionStart": "startup|resume|clear|compact|fork",
    "Notification": "idle_prompt",
    "PreToolUse": "Bash|Edit|Write|NotebookEdit",
    "PostToolUseFailure": "Bash",
}
EVENTS = tuple(TIMEOUT_SECONDS)
ACTION_EVENTS = tuple(ACTION_TIMEOUT_SECONDS)
ACTIONS_ASKED = "actions-asked"
"""A file in the state folder: see `remember_asked`."""
MANAGED_FILES = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
"""Claude Code's settings by who manages the machine, on Linux and macOS; they win over the user's."""
BACKUP_MARK = ".memoryvault-backup-"
NO_FILE = ".none"
"""Suffix of an empty file made instead of the copy if there was no file to copy, but copies of earlier installs."""
IF_THERE = "[ ! -x {file} ] || "
"""Before a command of ours, for a host that refuses the prompt where the command's file is gone."""
PLUGIN_NAMES = ("memoryvault", "memory")
"""Names of our plugin, before the `@` and the marketplace's name."""
_LAUNCHER = b"/hooks/launch.sh"

Json = dict[str, Any]


@dataclass(frozen=True)
class InstallOutcome:
    """What `install` did. `warnings` are sentences for the user."""

    settings_file: Path
    changed: bool
    backup: Path | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class UninstallOutcome:
    """What `uninstall` did; `restored`: the file has the bytes it had before the install."""

    settings_file: Path
    changed: bool
    restored: bool


def stub_argv(event: str) -> list[str]:
    """What the launcher runs for an event.

    The interpreter is the running one (of the virtual environment, so that processes which hooks start find the
    packages), never a shim from PATH. `-I -S` ignore the user's PYTHONPATH, working directory and site-packages.
    """
    return [sys.executable, "-I", "-S", str(STUB), event]


def launcher_in(state_root: str | os.PathLike[str]) -> str:
    """Path of the launcher in a state folder."""
    return os.path.join(state_root, "run", LAUNCHER)


def hook_argv(event: str, launcher: str) -> list[str]:
    """The exact argv that Claude Code runs for `event`, whatever the vault. Raises SettingsError for an unknown one."""
    if event not in (*EVENTS, *ACTION_EVENTS):
        raise SettingsError(f"there is no hook for {event!r}; the events are {', '.join((*EVENTS, *ACTION_EVENTS))}")
    return [launcher, event]


def write_launcher(launcher: str) -> None:
    """Have the launcher start the running installation. Raises SettingsError when it cannot be written."""
    text = _LAUNCHER_TEXT.format(python=shlex.quote(sys.executable), stub=shlex.quote(str(STUB)))
    try:
        make_private_folder(os.path.dirname(launcher))
        replace_file(Path(launcher), os.fsencode(text), mode=0o700)
    except OSError as error:
        raise SettingsError(f"{launcher}, which agents run, cannot be written: {error.strerror}") from error


def started_by(argv: Sequence[object]) -> tuple[str, str] | None:
    """Paths of the Python and the stub that an argv of ours starts; None where it is not ours, or its launcher is gone.

    Of a stub that an installer moved with its version of Python, the present path.
    """
    if _is_launcher(argv):
        try:
            lines = Path(str(argv[0])).read_text("utf-8", "surrogateescape").splitlines()
            (python,), (stub,) = (
                shlex.split(next(line for line in lines if line.startswith(name)).removeprefix(name))
                for name in ("python=", "stub=")
            )
        except (OSError, ValueError, StopIteration):
            return None
    elif split := split_hook_argv(argv):
        python, stub = str(argv[0]), split[0]
    else:
        return None
    venv, lib, rest = stub.rpartition("/lib/python")
    moved = "{}{}{}.{}/{}".format(venv, lib, *sys.version_info[:2], rest.partition("/")[2])
    return python, moved if lib and not os.access(stub, os.R_OK) and os.access(moved, os.R_OK) else stub


def split_hook_argv(argv: Sequence[object]) -> tuple[str, list[object]] | None:
    """The file that an argv of ours starts, at whatever place, and the words after it; None where it is not ours.

    Earlier versions had Python open the stub itself, or run a line of code (`-c`) that did.
    """
    if _is_launcher(argv):
        return str(argv[0]), list(argv[1:])
    rest = list(argv[3:]) if list(argv[1:3]) == ["-I", "-S"] else []
    if rest[:1] == ["-c"]:
        del rest[:2]
    return (str(rest[0]), rest[1:]) if rest and str(rest[0]).endswith("/hooks/stub.py") else None


def _is_launcher(argv: Sequence[object]) -> bool:
    return bool(argv) and str(argv[0]).endswith(f"/run/{LAUNCHER}")


def settings_file_of(settings: Settings) -> Path:
    """Path of Claude Code's own settings; of a symbolic link (dotfiles), the real path."""
    return Path(os.path.realpath(settings.hosts.claude_config_dir / "settings.json"))


def install(settings: Settings, *, now: datetime | None = None) -> InstallOutcome:
    """Add our hooks to settings.json; a second call changes nothing.

    Raises SettingsError when the file is no JSON object or cannot be written; it is then as it was.
    """
    path = settings_file_of(settings)
    warnings = _warnings(_read(path)[1])
    launcher = launcher_in(settings.state_root)
    write_launcher(launcher)
    changed, backup = add_to_file(path, lambda document: with_hooks(document, launcher), without_hooks, now=now)
    return InstallOutcome(path, changed, backup, warnings)


def install_actions(settings: Settings) -> InstallOutcome:
    """Add the hooks of tool calls to settings.json, whether or not ours are there already. Raises as `install`."""
    path = settings_file_of(settings)
    warnings = _warnings(_read(path)[1])
    launcher = launcher_in(settings.state_root)
    write_launcher(launcher)
    changed, backup = add_to_file(path, lambda document: _with_actions(document, launcher), without_hooks)
    return InstallOutcome(path, changed, backup, warnings)


def uninstall_actions(settings: Settings) -> UninstallOutcome:
    """Remove the hooks of tool calls and leave our others. Raises as `uninstall`."""
    path = settings_file_of(settings)
    before, document = _read(path)
    if _ours(document) <= {*ACTION_EVENTS}:  # The plugin brings the others: then the file is as it was before.
        launcher = launcher_in(settings.state_root)
        return remove_from_file(path, lambda document: _with_actions(document, launcher), without_hooks)
    updated = _without(document, ACTION_EVENTS)
    if updated == document:
        return UninstallOutcome(path, False, False)
    _replace(path, before, _dump(updated, before))
    return UninstallOutcome(path, True, False)


def actions_installed(settings: Settings) -> bool:
    """Are the hooks of tool calls in settings.json? Raises SettingsError."""
    return _ours(_read(settings_file_of(settings))[1]).issuperset(ACTION_EVENTS)


def may_offer_actions(settings: Settings) -> bool:
    """Does Claude Code have our other hooks and not those of tool calls, and was the user never asked for them?

    Raises SettingsError.
    """
    return (
        claude_is_wired(settings)
        and not actions_installed(settings)
        and not Path(settings.state.root, ACTIONS_ASKED).exists()
    )


def claude_is_wired(settings: Settings) -> bool:
    """Does Claude Code run hooks of ours, from its settings or the plugin? Raises SettingsError."""
    return bool(installed_events(settings)) or plugin_installed(settings)


def remember_asked(settings: Settings) -> None:
    """The user was asked whether the hooks of tool calls shall be wired: once is enough."""
    Path(settings.state.root, ACTIONS_ASKED).touch(mode=FILE_MODE)


def _ours(document: Json) -> set[str]:
    """The events that have an entry of ours."""
    return {
        event
        for event, groups in _hooks(document).items()
        if any(is_ours(one) for group in groups for one in _entries(group))
    }


def add_to_file(
    path: Path, add: Callable[[Json], Json], remove: Callable[[Json], Json], *, now: datetime | None = None
) -> tuple[bool, Path | None]:
    """Change a host's file by `add`; (was it changed?, path of the copy that was made). `remove` undoes `add`.

    Raises SettingsError when the file is no JSON object, HostFileUnwritable; it is then as it was.
    """
    before, document = _read(path)
    updated = add(document)
    precompile()
    if updated == document:
        return False, None
    backup = None
    by_hand = _dump(add({}), None).decode("utf-8")
    if remove(document) == document:
        try:
            backup = _copy(path, before, now or datetime.now(UTC))
        except OSError as error:
            raise HostFileUnwritable(
                f"no copy of {path} can be made beside it, and without one it is not changed: {error.strerror}", by_hand
            ) from error
    try:
        _replace(path, before, _dump(updated, before))
    except OSError as error:
        raise HostFileUnwritable(f"{path} cannot be written: {error.strerror}", by_hand) from error
    return True, backup


class HostFileUnwritable(SettingsError):
    """A host's file is read-only; `by_hand`: what to put into it, as JSON."""

    def __init__(self, problem: str, by_hand: str) -> None:
        super().__init__(f"{problem}; put the lines that are printed above into it by hand")
        self.by_hand = by_hand


def uninstall(settings: Settings) -> UninstallOutcome:
    """Remove our hooks. If the result has the settings of the copy, its bytes are restored and the copy is deleted.

    Raises SettingsError when the file is no JSON object or cannot be written; it is then as it was.
    """
    launcher = launcher_in(settings.state_root)
    return remove_from_file(settings_file_of(settings), lambda document: with_hooks(document, launcher), without_hooks)


def remove_from_file(path: Path, add: Callable[[Json], Json], remove: Callable[[Json], Json]) -> UninstallOutcome:
    """Change a host's file by `remove`, and restore the copy as `uninstall` does. `add`: what was done to the copy."""
    before, document = _read(path)
    if before is None or remove(document) == document:
        return UninstallOutcome(path, False, False)
    cleaned = remove(document)
    newest = next(reversed(_copies(path)), None)
    if newest is None or newest.name.endswith(NO_FILE):
        restored = not cleaned
        if restored:
            path.unlink()  # There was no such file before us, and nobody has put anything else into it.
        else:
            _replace_or_refuse(path, before, _dump(cleaned, before))
        if newest is not None:
            newest.unlink()
        return UninstallOutcome(path, True, restored)
    if _same_settings(original := newest.read_bytes(), cleaned, lambda document: remove(add(document))):
        _replace_or_refuse(path, before, original)
        newest.unlink()
        return UninstallOutcome(path, True, True)
    _replace_or_refuse(path, before, _dump(cleaned, before))
    return UninstallOutcome(path, True, False)


def _copies(path: Path) -> list[Path]:
    """Paths of the copies of a host's file, oldest first."""
    return sorted(path.parent.glob(f"{path.name}{BACKUP_MARK}*"))


def _copy(path: Path, before: bytes | None, now: datetime) -> Path | None:
    """Copy the file before it is changed; None if there is none."""
    older = _copies(path)
    name = f"{path.name}{BACKUP_MARK}{now:%Y%m%d-%H%M%S}"
    number = sum(copy.name.startswith(name) for copy in older)
    copy = path.with_name(f"{name}-{number + 1}" if number else name)
    if before is None:
        if older:  # Else the newest of them would be taken for the copy of this install.
            replace_file(copy.with_name(copy.name + NO_FILE), b"")
        return None
    replace_file(copy, before)
    return copy


def read_settings(path: Path) -> Json:
    """Read a host's file; {} when there is none. Raises SettingsError."""
    return _read(path)[1]


def installed_events(settings: Settings) -> dict[str, list[str]]:
    """Our argv by event, as settings.json has them. Raises SettingsError."""
    _, document = _read(settings_file_of(settings))
    found: dict[str, list[str]] = {}
    for event, groups in _hooks(document).items():
        for group in groups:
            for hook in _entries(group):
                if is_ours(hook):
                    found[event] = argv_of(hook)
    return found


def plugin_installed(settings: Settings) -> bool:
    """Is our own Claude Code plugin, which contains the hooks, installed and enabled? Raises SettingsError.

    Another tool may call its plugin "memory", too. So a plugin whose folder is known is recognised by its
    `hooks/hooks.json`; one whose folder is not listed only if its name or marketplace has "memoryvault" in it.
    """
    _, document = _read(settings_file_of(settings))
    enabled = document.get("enabledPlugins")
    folders = _plugin_folders(settings.hosts.claude_config_dir / "plugins" / "installed_plugins.json")
    for name, switched_on in (enabled if isinstance(enabled, dict) else {}).items():
        if switched_on is not True or str(name).partition("@")[0] not in PLUGIN_NAMES:
            continue
        if name in folders:
            if any(_brings_our_hooks(folder) for folder in folders[name]):
                return True
        elif "memoryvault" in str(name):
            return True
    return False


def _plugin_folders(listing: Path) -> dict[str, list[Path]]:
    """Folders by `plugin@marketplace`; {} if the host's list is absent or has another shape."""
    try:
        listed = json.loads(listing.read_bytes())["plugins"]
        return {
            # Version 1 has one object for each plugin, version 2 a list of them.
            str(name): [Path(each["installPath"]) for each in (places if isinstance(places, list) else [places])]
            for name, places in listed.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _brings_our_hooks(folder: Path) -> bool:
    try:
        return _LAUNCHER in (folder / "hooks" / "hooks.json").read_bytes()
    except OSError:
        return False


def argv_of(entry: object) -> list[str]:
    """The words that an entry of any host runs; [] where that cannot be told."""
    command = (entry.get("command") or entry.get("bash")) if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(command, str):
        return []
    if isinstance(arguments := entry.get("args"), list):
        return [command, *map(str, arguments)]
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    return words[words.index("||") + 1 :] if words[:3] == ["[", "!", "-x"] and "||" in words else words


def is_ours(hook: object) -> bool:
    """Is this an entry of ours, whatever folder the package was installed in then?"""
    ours = split_hook_argv(argv_of(hook))
    return ours is not None and len(ours[1]) > 0 and ours[1][0] in (*EVENTS, *ACTION_EVENTS)


def with_hooks(document: Json, launcher: str) -> Json:
    """`document` with exactly one current entry of ours per event, those of tool calls if it had them; the order of all
    others is kept."""
    wanted = [*EVENTS, *(event for event in ACTION_EVENTS if event in _ours(document))]
    return document if _current(document, wanted, launcher) else _added(without_hooks(document), wanted, launcher)


def _with_actions(document: Json, launcher: str) -> Json:
    """`document` with exactly one current entry of ours per event of tool calls; our others stay as they are."""
    others = _without(document, [event for event in _ours(document) if event not in ACTION_EVENTS])
    if _current(others, ACTION_EVENTS, launcher):
        return document
    return _added(_without(document, ACTION_EVENTS), ACTION_EVENTS, launcher)


def _added(document: Json, events: Collection[str], launcher: str) -> Json:
    hooks = dict(_hooks(document))
    for event in events:
        seconds = (TIMEOUT_SECONDS | ACTION_TIMEOUT_SECONDS)[event]
        entry = {"type": "command", "command": shlex.join(hook_argv(event, launcher)), "timeout": seconds}
        group: Json = {"matcher": MATCHERS[event]} if event in MATCHERS else {}
        hooks[event] = [*hooks.get(event, []), {**group, "hooks": [entry]}]
    return {**document, "hooks": hooks}


def without_hooks(document: Json) -> Json:
    """`document` without our entries, and without the groups, events and key that become empty."""
    return _without(document, _hooks(document))


def _without(document: Json, events: Collection[str]) -> Json:
    """`without_hooks`, but only of these events."""
    kept: dict[str, Any] = {}
    for event, groups in _hooks(document).items():
        remaining = []
        for group in groups:
            entries = _entries(group)
            others = [hook for hook in entries if event not in events or not is_ours(hook)]
            if len(others) == len(entries):
                remaining.append(group)
            elif others:
                remaining.append({**group, "hooks": others})
        if remaining or not groups:
            kept[event] = remaining
    if kept or not _hooks(document):
        return {**document, "hooks": kept} if "hooks" in document else dict(document)
    return {key: value for key, value in document.items() if key != "hooks"}


def precompile() -> None:
    """Compile the modules that hooks load, which hooks in a read-only package could not do."""
    for name in ("hooks", "vault", "runtime"):
        compileall.compile_dir(STUB.parents[1] / name, maxlevels=0, quiet=2)


def _current(document: Json, wanted: Collection[str], launcher: str) -> bool:
    count = 0
    for event, groups in _hooks(document).items():
        for group in groups:
            for hook in _entries(group):
                if is_ours(hook):
                    if event not in wanted or argv_of(hook) != hook_argv(event, launcher):
                        return False
                    count += 1
    return count == len(wanted)


def _hooks(document: Json) -> Json:
    hooks = document.get("hooks", {})
    return hooks if isinstance(hooks, dict) else {}


def _entries(group: object) -> list[Any]:
    """The entries of a group; [] if it has an unknown shape, which the host reports."""
    entries = group.get("hooks") if isinstance(group, dict) else None
    return entries if isinstance(entries, list) else []


def switched_off(settings: Settings) -> str:
    """Why Claude Code runs no hook of ours, wherever it is wired; '' if no setting keeps it from that.

    Raises SettingsError when the user's settings are no JSON object or cannot be read.
    """
    return next(iter(_warnings(_read(settings_file_of(settings))[1])), "")


def _warnings(document: Json) -> tuple[str, ...]:
    if document.get("disableAllHooks") is True:
        return ("Claude Code's setting disableAllHooks is on: no hook will run until you switch it off",)
    for path in MANAGED_FILES:
        try:
            managed = _read(path)[1]
        except SettingsError:
            continue  # The host's own business: it says so itself.
        for name in ("disableAllHooks", "allowManagedHooksOnly"):
            if managed.get(name) is True:
                return (f"{path} has {name} on: no hook of yours will run until who manages this machine allows it",)
    return ()


def _read(path: Path) -> tuple[bytes | None, Json]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, {}
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    if not data.strip():
        return data, {}
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise SettingsError(f"{path} is not valid JSON ({error}): mend it, then run this again") from error
    except RecursionError as error:
        raise SettingsError(f"{path} is nested too deeply to be read: mend it, then run this again") from error
    if not isinstance(document, dict) or not isinstance(document.get("hooks", {}), dict):
        raise SettingsError(f"{path} has an unexpected shape (settings and `hooks` must be objects): mend it first")
    for event, groups in document.get("hooks", {}).items():
        if not isinstance(groups, list):
            raise SettingsError(f"{path}: hooks.{event} is not a list: mend it first")
    return data, document


def _same_settings(data: bytes, document: Json, there_and_back: Callable[[Json], Json]) -> bool:
    """Is `document` what the copy holds, or what is left of that once our hooks were added and removed?"""
    try:
        original = json.loads(data.decode("utf-8-sig")) if data.strip() else {}
        return _without_empty(document) in (_without_empty(original), _without_empty(there_and_back(original)))
    except (ValueError, AttributeError):
        return False


def _without_empty(document: Json) -> Json:
    """The settings without events that have no hooks, and without `hooks` if it has no events."""
    hooks = {event: groups for event, groups in _hooks(document).items() if groups}
    rest = {key: value for key, value in document.items() if key != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def _dump(document: Json, like: bytes | None) -> bytes:
    """The document in the file's own format: what is the same in the file `like` keeps its text."""
    text = (like or b"").decode("utf-8-sig", "replace")
    indent: int | str = 2
    for line in text.split("\n"):
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        if blank and line.strip():
            indent = "\t" if blank.startswith("\t") else len(blank)
            break
    mark = b"\xef\xbb\xbf" if (like or b"").startswith(b"\xef\xbb\xbf") else b""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = indent if isinstance(indent, str) else " " * indent
    try:
        start = len(text) - len(text.lstrip())
        end = len(text.rstrip())
        edited = text[:start] + _with_members(text[start:end], document, "", unit, newline) + text[end:]
        if json.loads(edited) == document:
            return mark + edited.encode()
    except (ValueError, IndexError):
        pass  # Nothing to keep, or a lone surrogate, which only an escape can write.
    end_of_file = "" if text.strip() and not text.endswith("\n") else "\n"
    data = json.dumps(document, indent=indent) + end_of_file
    return mark + data.replace("\n", newline).encode()  # Inside of strings a line end is an escape.


def _with_members(text: str, new: Json, blank: str, unit: str, newline: str) -> str:
    """The text of an object, changed to hold `new`; what does not differ is left as it is written."""
    old = json.loads(text)
    for key in old:
        if key not in new:
            text = _without_member(text, key)
    for key, value in new.items():
        members, end = _members(text)
        if key not in old:
            dumped = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + blank + unit)
            member = f"{newline}{blank}{unit}{json.dumps(key, ensure_ascii=False)}: {dumped}"
            last = members[-1].end if members else 1
            after = text[last:] if members and "\n" in text[last:end] else f"{newline}{blank}}}"
            text = text[:last] + ("," if members else "") + member + after
        elif old[key] != value:
            place = next(member for member in members if member.key == key)
            if isinstance(value, dict) and isinstance(old[key], dict):
                inner = _with_members(text[place.value : place.end], value, blank + unit, unit, newline)
            else:
                inner = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + blank + unit)
            text = text[: place.value] + inner + text[place.end :]
    return text


def _without_member(text: str, key: str) -> str:
    members, end = _members(text)
    at = next(index for index, member in enumerate(members) if member.key == key)
    if len(members) == 1:
        return "{" + text[end:]
    if at:
        return text[: members[at - 1].end] + text[members[at].end :]
    return text[: members[0].start] + text[members[1].start :]


class _Member(NamedTuple):
    """One member of an object in a JSON text: where it, and its value, begin, and where both end."""

    key: str
    start: int
    value: int
    end: int


def _members(text: str) -> tuple[list[_Member], int]:
    """The members of the object that begins the text, and where its closing brace is."""
    decode = json.JSONDecoder().raw_decode
    found: list[_Member] = []
    at = _past_blank(text, 1)
    while text[at] != "}":
        key, colon = decode(text, at)
        value = _past_blank(text, _past_blank(text, colon) + 1)
        _, end = decode(text, value)
        found.append(_Member(key, at, value, end))
        at = _past_blank(text, end)
        if text[at] == ",":
            at = _past_blank(text, at + 1)
    return found, at


def _past_blank(text: str, at: int) -> int:
    blank = re.compile(r"[ \t\r\n]*").match(text, at)
    return blank.end() if blank else at


def _replace(path: Path, before: bytes | None, after: bytes) -> None:
    """Write `after` unless the file was changed since it was read, as by the host. Raises SettingsError, OSError."""
    now = path.read_bytes() if path.exists() else None
    if now != before:
        raise SettingsError(f"{path} was changed meanwhile: run this again")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, after, mode=path.stat().st_mode & 0o777 if before is not None else FILE_MODE)


def _replace_or_refuse(path: Path, before: bytes | None, after: bytes) -> None:
    try:
        _replace(path, before, after)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}") from error
