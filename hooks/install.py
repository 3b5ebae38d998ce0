"""Install hooks in the settings of a host, first of all Claude Code's settings.json, and uninstall them.

Hooks of other tools and all other settings are kept. Before the first change a copy is made in the same folder; an
uninstall that finds nothing else changed restores its bytes.
"""

from __future__ import annotations

import compileall
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.atomic_file import replace_file
from ..runtime.errors import SettingsError
from ..runtime.json_text import parse_json
from ..runtime.layout import FILE_MODE, make_private_folder
from ..runtime.settings import Settings

STUB = Path(__file__).with_name("stub.py")
LAUNCHER = "memoryvault-hook"
"""Name of the script that agents run for every event, in the state folder's `run/`. It is not in the package, which may
be removed, moved or updated while a host's settings name its hooks: a shell or Python that cannot open its script ends
with 2, and at that code hosts reject the prompt and do not let the agent stop."""
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
    "SessionEnd": 5,
    "PreCompact": 5,
    "Notification": 5,
}
"""How long Claude Code waits for a hook; the hooks themselves end long before. At a session's end it gives all hooks
together 1.5 s, or as long as the longest of these in a settings file."""
ACTION_TIMEOUT_SECONDS = {"PreToolUse": 5, "PostToolUseFailure": 5}
"""Events of tool calls: wired only when the user says so (`memory guard`), since each call then starts a process."""
MATCHERS = {
    "SessionStart": "startup|resume|clear|compact|fork",
    "Notification": "idle_prompt",
    "PreToolUse": "Bash|Edit|Write|NotebookEdit",
    "PostToolUseFailure": "Bash",
}
EVENTS = tuple(TIMEOUT_SECONDS)
ACTION_EVENTS = tuple(ACTION_TIMEOUT_SECONDS)
ACTIONS_ASKED = "actions-asked"
"""Name of a file in the state folder: see `remember_asked`."""
MANAGED_FILES = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
"""Settings of Claude Code by the administrator of the machine, on Linux and macOS. They override the user's."""
NAME = "memoryvault"
"""Name of our own key, or our own file, for hosts that have such."""
BACKUP_SUFFIX = ".memoryvault-backup"
IF_THERE = "[ ! -x {file} ] || {command} || :"
"""Before a command of ours, for a host that refuses the prompt where the command's file is gone."""
PLUGIN = "memory@memoryvault"
"""Our plugin of Claude Code, and the marketplace that it comes from."""

Json = dict[str, Any]


@dataclass(frozen=True)
class HostWiring:
    """One host: its file, and the shape of our entries in it."""

    name: str
    title: str
    events: Mapping[str, int]
    """The host's names of events, mapped to the seconds that each may take."""
    home: Callable[[Settings], Path]
    file: Callable[[Settings], Path]
    shape: str
    """'groups': event, groups, hooks. 'flat': event, hooks. 'named': our name, event, hooks. 'plugin': no JSON."""
    experimental: bool = False
    actions: Mapping[str, int] = field(default_factory=dict)
    """Events of tool calls with their seconds; wired only when the user says so."""
    matchers: Mapping[str, str] = field(default_factory=dict)
    time_unit: int = 1
    """How many units of the host's timeouts make a second."""
    is_strict: bool = False
    """Whether the host refuses the prompt where the hook's file is gone or cannot run."""
    is_default: bool = False
    """Whether the hook takes a call without `--host` for one of this host."""

    def argv(self, event: str, launcher: str) -> list[str]:
        """Return the exact argv that the host runs for its `event`."""
        return [launcher, event] if self.is_default else [launcher, event, "--host", self.name]


CLAUDE_WIRING = HostWiring(
    "claude",
    "Claude Code",
    TIMEOUT_SECONDS,
    lambda settings: settings.hosts.claude_config_dir,
    lambda settings: settings.hosts.claude_config_dir / "settings.json",
    "groups",
    actions=ACTION_TIMEOUT_SECONDS,
    matchers=MATCHERS,
    is_default=True,
)


@dataclass(frozen=True)
class WiringOutcome:
    """What was done to a host's file. `warnings` are sentences for the user."""

    settings_file: Path
    changed: bool
    backup: Path | None = None
    """The copy that was made before the first change."""
    restored: bool = False
    """Whether the file has the bytes again that it had before its first change."""
    warnings: tuple[str, ...] = ()


def launcher_in(state_root: str | os.PathLike[str]) -> str:
    """Path of the launcher in a state folder."""
    return os.path.join(state_root, "run", LAUNCHER)


def write_launcher(launcher: str) -> None:
    """Write the launcher, which starts the running installation. Raises SettingsError when it cannot be written.

    The interpreter is the running one (of the virtual environment, so that processes which hooks start find the
    packages), never a shim from PATH. `-I -S` ignore the user's PYTHONPATH, working directory and site-packages.
    """
    text = _LAUNCHER_TEXT.format(python=shlex.quote(sys.executable), stub=shlex.quote(str(STUB)))
    try:
        make_private_folder(os.path.dirname(launcher))
        replace_file(Path(launcher), os.fsencode(text), mode=0o700)
    except OSError as error:
        raise SettingsError(f"{launcher}, which agents run, cannot be written: {error.strerror}") from error


def started_by(argv: Sequence[object]) -> tuple[str, str] | None:
    """Return the Python and the hook stub that our argv starts; None if it is not ours or its launcher is missing.

    If an installer has moved the stub with its version of Python, its present path is returned.
    """
    if not is_launched(argv):
        return None
    try:
        lines = Path(str(argv[0])).read_text("utf-8", "surrogateescape").splitlines()
        (python,), (stub,) = (
            shlex.split(next(line for line in lines if line.startswith(name)).removeprefix(name))
            for name in ("python=", "stub=")
        )
    except (OSError, ValueError, StopIteration):
        return None
    venv, lib, rest = stub.rpartition("/lib/python")
    moved = "{}{}{}.{}/{}".format(venv, lib, *sys.version_info[:2], rest.partition("/")[2])
    return python, moved if lib and not os.access(stub, os.R_OK) and os.access(moved, os.R_OK) else stub


def is_launched(argv: Sequence[object]) -> bool:
    """Whether this argv runs a launcher of ours, in any state folder."""
    return bool(argv) and str(argv[0]).endswith(f"/run/{LAUNCHER}")


def settings_file_of(settings: Settings) -> Path:
    """Path of Claude Code's own settings; of a symbolic link (dotfiles), the real path."""
    return file_of(CLAUDE_WIRING, settings)


def install_entries(wiring: HostWiring, settings: Settings, **added: Any) -> WiringOutcome:
    """Add our entries to the host's file; a second call changes nothing. `added`: options for `add_entries`.

    Raises SettingsError when the file is no JSON object or cannot be written; it is then as it was.
    """
    path, launcher = file_of(wiring, settings), launcher_in(settings.state_root)
    write_launcher(launcher)
    add = partial(add_entries, wiring, launcher=launcher, **added)
    changed, backup = add_to_file(path, add, partial(remove_entries, wiring))
    return WiringOutcome(path, changed, backup)


def actions_installed(settings: Settings) -> bool:
    """Whether the hooks of tool calls are in settings.json. Raises SettingsError."""
    return events_with_ours(CLAUDE_WIRING, read_settings(settings_file_of(settings))).issuperset(ACTION_EVENTS)


def may_offer_actions(settings: Settings) -> bool:
    """Whether to offer the hooks of tool calls: our other hooks are installed, these are not, and the user was never
    asked. Raises SettingsError."""
    return (
        claude_is_wired(settings)
        and not actions_installed(settings)
        and not Path(settings.state.root, ACTIONS_ASKED).exists()
    )


def claude_is_wired(settings: Settings) -> bool:
    """Whether Claude Code runs our hooks, from its settings or from the plugin. Raises SettingsError."""
    return bool(installed_events(settings)) or plugin_installed(settings)


def remember_asked(settings: Settings) -> None:
    """Remember that the user was asked about the hooks of tool calls, so that nobody asks again."""
    Path(settings.state.root, ACTIONS_ASKED).touch(mode=FILE_MODE)


def add_to_file(path: Path, add: Callable[[Json], Json], remove: Callable[[Json], Json]) -> tuple[bool, Path | None]:
    """Change a host's file by `add`, which `remove` undoes; return whether it changed, and the path of the copy made.

    Raises SettingsError when the file is no JSON object, HostFileUnwritable; the file is then as it was.
    """
    before, document = _read(path)
    updated = add(document)
    precompile()
    if updated == document:
        return False, None
    backup = None
    by_hand = _dump(add({}), None).decode("utf-8")
    if before is not None and not os.access(path, os.W_OK):
        raise HostFileUnwritable(f"{path} is read-only", by_hand)
    was_copied = _copy_of(path).exists()
    try:
        if remove(document) == document:
            backup = _copy(path, before)
        _replace(path, before, _dump(updated, before))
    except (OSError, SettingsError) as error:
        if backup is not None and not was_copied:  # It is the copy of a change that was not made.
            backup.unlink()
        if isinstance(error, SettingsError):
            raise
        raise HostFileUnwritable(f"{path} cannot be written: {error.strerror}", by_hand) from error
    return True, backup


class HostFileUnwritable(SettingsError):
    """A host's file is read-only; `by_hand`: what to put into it."""

    def __init__(self, problem: str, by_hand: str) -> None:
        super().__init__(f"{problem}; put the lines that are printed above into it by hand")
        self.by_hand = by_hand


def uninstall_entries(wiring: HostWiring, settings: Settings, *, only_actions: bool = False) -> WiringOutcome:
    """Remove our entries from the host's file, or those for tool calls alone. Raises as `remove_from_file`."""
    launcher = launcher_in(settings.state_root)
    added: dict[str, Any] = {"actions": True, "others": False} if only_actions else {}
    return remove_from_file(
        file_of(wiring, settings),
        partial(add_entries, wiring, launcher=launcher, **added),
        partial(remove_entries, wiring, only=wiring.actions if only_actions else None),
    )


def remove_from_file(path: Path, add: Callable[[Json], Json], remove: Callable[[Json], Json]) -> WiringOutcome:
    """Change a host's file by `remove`. If that leaves the settings of the copy, restore the copy's bytes and delete
    the copy. `add`: what was done to the copy.

    Raises SettingsError if the file is no JSON object or cannot be written; it is then unchanged.
    """
    before, document = _read(path)
    cleaned = remove(document)
    if before is None or cleaned == document:
        return WiringOutcome(path, False)
    copy = _copy_of(path)
    original = copy.read_bytes() if copy.exists() else None
    if original is None:
        restored = not cleaned  # There was no such file before us, and nobody has put anything else into it.
    else:
        restored = _same_settings(original, cleaned, lambda document: remove(add(document)))
    if restored and original is None:
        path.unlink()
    else:
        try:
            _replace(path, before, original if restored and original is not None else _dump(cleaned, before))
        except OSError as error:
            raise SettingsError(f"{path} cannot be written: {error.strerror}") from error
    if restored:
        copy.unlink(missing_ok=True)
    return WiringOutcome(path, True, restored=restored)


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


def _copy(path: Path, before: bytes | None) -> Path | None:
    """Copy the file before it is changed; None if there is none. A copy of an earlier install gives way."""
    copy = _copy_of(path)
    if before is None:
        copy.unlink(missing_ok=True)
        return None
    replace_file(copy, before)
    return copy


def read_settings(path: Path) -> Json:
    """Read a host's file; {} when there is none. Raises SettingsError."""
    return _read(path)[1]


def installed_events(settings: Settings) -> dict[str, list[str]]:
    """Return our argv by event, as settings.json has them. Raises SettingsError."""
    events = events_of(CLAUDE_WIRING, read_settings(settings_file_of(settings)))
    return {event: argv_of(entry) for event, value in events.items() for entry in entries_of(value) if is_ours(entry)}


def plugin_installed(settings: Settings) -> bool:
    """Whether our own Claude Code plugin, which contains the hooks, is installed and enabled. Raises SettingsError."""
    enabled = read_settings(settings_file_of(settings)).get("enabledPlugins")
    return isinstance(enabled, dict) and enabled.get(PLUGIN) is True


def argv_of(entry: object) -> list[str]:
    """Return the words that an entry of any host runs; [] where they cannot be read."""
    try:
        words = shlex.split(_command_of(entry))
    except ValueError:
        return []
    if words[:3] == ["[", "!", "-x"] and "||" in words:
        words = words[words.index("||") + 1 :]
    return words[: words.index("||")] if "||" in words else words


def _command_of(entry: object) -> str:
    """Return the whole command of an entry of any host; '' where it cannot be read."""
    command = (entry.get("command") or entry.get("bash")) if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(command, str):
        return ""
    arguments = entry.get("args")
    return shlex.join([command, *map(str, arguments)]) if isinstance(arguments, list) else command


def _wanted_command(wiring: HostWiring, event: str, launcher: str) -> str:
    command = shlex.join(wiring.argv(event, launcher))
    return IF_THERE.format(file=shlex.quote(launcher), command=command) if wiring.is_strict else command


def is_outdated(wiring: HostWiring, document: Json, launcher: str) -> bool:
    """Whether an entry of ours runs another command than `add_entries` writes: that of an older version, or of another
    state folder."""
    return any(
        is_ours(entry) and _command_of(entry) != _wanted_command(wiring, event, launcher)
        for event, value in events_of(wiring, document).items()
        for entry in entries_of(value)
    )


def file_of(wiring: HostWiring, settings: Settings) -> Path:
    """Path of the host's file; of a symbolic link (dotfiles), the real path."""
    return Path(os.path.realpath(wiring.file(settings)))


def add_entries(
    wiring: HostWiring, document: Json, launcher: str, *, actions: bool | None = None, others: bool = True
) -> Json:
    """Return `document` with exactly one current entry of ours for each event; all other entries keep their order.

    `actions`: whether to have entries for tool calls; None keeps what the document has. `others` False: our entries for
    all other events stay as they are.
    """
    if actions is None:
        actions = not events_with_ours(wiring, document).isdisjoint(wiring.actions)
    wanted = {**(wiring.events if others else {}), **(wiring.actions if actions else {})}
    events = events_of(wiring, document)
    ours = [
        _command_of(entry)
        for event, value in events.items()
        if others or event in wiring.actions
        for entry in entries_of(value)
        if is_ours(entry)
    ]
    if sorted(ours) == sorted(_wanted_command(wiring, event, launcher) for event in wanted):
        return document
    cleaned = remove_entries(wiring, document, None if others else wiring.actions)
    events = dict(events_of(wiring, cleaned))
    for event, seconds in wanted.items():
        events[event] = [*events.get(event, []), _entry(wiring, event, seconds, launcher)]
    if wiring.shape == "named":
        return {**cleaned, NAME: {"enabled": True, **events}}
    head = {"version": 1} if wiring.shape == "flat" else {}
    return {**head, **cleaned, "hooks": events}


def remove_entries(wiring: HostWiring, document: Json, only: Collection[str] | None = None) -> Json:
    """Return `document` without our entries and without the containers that this empties. `only`: the events to remove;
    None for all."""
    kept: Json = {}
    events = events_of(wiring, document)
    for event, value in events.items():
        remaining = _without_ours(value) if only is None or event in only else value
        if remaining or not value:
            kept[event] = remaining
    if kept == events:
        return document
    rest = dict(document)
    if wiring.shape == "named":
        del rest[NAME]
        return {**rest, NAME: kept} if set(kept) - {"enabled"} else rest
    if kept:
        return {**document, "hooks": kept}
    del rest["hooks"]
    return {} if wiring.shape == "flat" and set(rest) <= {"version"} else rest


def is_ours(entry: object) -> bool:
    """Whether this is an entry of ours, whatever folder the launcher was in then."""
    argv = argv_of(entry)
    return len(argv) > 1 and is_launched(argv)


def events_with_ours(wiring: HostWiring, document: Json) -> set[str]:
    """Events that have an entry of ours."""
    events = events_of(wiring, document)
    return {event for event, value in events.items() if any(map(is_ours, entries_of(value)))}


def _entry(wiring: HostWiring, event: str, seconds: int, launcher: str) -> Json:
    command = _wanted_command(wiring, event, launcher)
    if wiring.shape == "flat":
        return {"type": "command", "bash": command, "timeoutSec": seconds}
    hook: Json = {"type": "command", "command": command, "timeout": seconds * wiring.time_unit}
    if wiring.shape == "named":
        return hook
    return {**({"matcher": wiring.matchers[event]} if event in wiring.matchers else {}), "hooks": [hook]}


def events_of(wiring: HostWiring, document: Json) -> Json:
    events = document.get(NAME if wiring.shape == "named" else "hooks", {})
    return events if isinstance(events, dict) else {}


def entries_of(value: object) -> Iterator[object]:
    """Yield the entries of one event, whether they are in groups or not."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and isinstance(item.get("hooks"), list):
            yield from item["hooks"]
        else:
            yield item


def _without_ours(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    remaining = []
    for item in value:
        if isinstance(item, dict) and isinstance(item.get("hooks"), list):
            others = [hook for hook in item["hooks"] if not is_ours(hook)]
            if len(others) == len(item["hooks"]):
                remaining.append(item)
            elif others:
                remaining.append({**item, "hooks": others})
        elif not is_ours(item):
            remaining.append(item)
    return remaining


def precompile() -> None:
    """Compile the modules that hooks load, which hooks in a read-only package could not do."""
    for name in ("hooks", "vault", "runtime"):
        compileall.compile_dir(STUB.parents[1] / name, maxlevels=0, quiet=2)


def switched_off(settings: Settings) -> str:
    """Return why Claude Code runs none of our hooks, '' if no setting prevents it. Raises SettingsError for bad
    settings."""
    if read_settings(settings_file_of(settings)).get("disableAllHooks") is True:
        return "Claude Code's setting disableAllHooks is on: no hook will run until you switch it off"
    for path in MANAGED_FILES:
        try:
            managed = read_settings(path)
        except SettingsError:
            continue  # The host's own business: it says so itself.
        for name in ("disableAllHooks", "allowManagedHooksOnly"):
            if managed.get(name) is True:
                return f"{path} has {name} on: no hook of yours will run until its administrator allows it"
    return ""


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
        document = parse_json(data.decode("utf-8-sig"))
    except ValueError as error:
        raise SettingsError(f"{path} is not valid JSON ({error}): mend it, then run this again") from error
    if not isinstance(document, dict) or not isinstance(document.get("hooks", {}), dict):
        raise SettingsError(f"{path} has an unexpected shape (settings and `hooks` must be objects): mend it first")
    for event, groups in document.get("hooks", {}).items():
        if not isinstance(groups, list):
            raise SettingsError(f"{path}: hooks.{event} is not a list: mend it first")
    return data, document


def _same_settings(data: bytes, document: Json, there_and_back: Callable[[Json], Json]) -> bool:
    """Whether `document` has the settings of the copy, or what is left of them once our hooks were added and
    removed."""
    try:
        original = parse_json(data.decode("utf-8-sig")) if data.strip() else {}
        return _without_empty(document) in (_without_empty(original), _without_empty(there_and_back(original)))
    except (ValueError, AttributeError):
        return False


def _without_empty(document: Json) -> Json:
    """Return the settings without events that have no hooks, and without `hooks` if it has no events."""
    hooks = {event: groups for event, groups in events_of(CLAUDE_WIRING, document).items() if groups}
    rest = {key: value for key, value in document.items() if key != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def _dump(document: Json, like: bytes | None) -> bytes:
    """Format the document like the file `like`: what is the same in it keeps its text."""
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
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        edited = text[:start] + _with_members(text[start:end], document, "", unit, newline) + text[end:]
        if parse_json(edited) == document:
            return mark + edited.encode()
    except (ValueError, IndexError):
        pass  # Nothing to keep, or a lone surrogate, which only an escape can write.
    end_of_file = "" if text.strip() and not text.endswith("\n") else "\n"
    data = json.dumps(document, indent=indent) + end_of_file
    return mark + data.replace("\n", newline).encode()  # Inside of strings a line end is an escape.


def _with_members(text: str, new: Json, blank: str, unit: str, newline: str) -> str:
    """Change the text of an object to hold `new`; what does not differ keeps its text."""
    old = parse_json(text)
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
            written = text[place.value : place.end]
            if isinstance(value, dict) and isinstance(old[key], dict):
                inner = _with_members(written, value, blank + unit, unit, newline)
            elif isinstance(value, list) and (kept := _same_items(old[key], value)):
                inner = _with_items(written, value, kept, newline + blank + unit + unit, unit)
            else:
                inner = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + blank + unit)
            text = text[: place.value] + inner + text[place.end :]
    return text


def _same_items(old: object, new: list[Any]) -> int:
    """How many items are kept if items were only added or only taken away at the end; 0 if more was changed."""
    kept = min(len(old), len(new)) if isinstance(old, list) else 0
    return kept if isinstance(old, list) and old[:kept] == new[:kept] else 0


def _with_items(text: str, new: list[Any], kept: int, line: str, unit: str) -> str:
    """Change the text of a list to hold `new`, whose first `kept` items keep their text."""
    decode = json.JSONDecoder().raw_decode
    end = 0
    for _ in range(kept):
        _, end = decode(text, _past_blank(text, _past_blank(text, end) + 1))
    added = (json.dumps(item, indent=unit, ensure_ascii=False) for item in new[kept:])
    after = text[len(text[:-1].rstrip()) :]
    return text[:end] + "".join(f",{line}" + item.replace("\n", line) for item in added) + after


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
    """Return the members of the object that begins the text, and where its closing brace is."""
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
