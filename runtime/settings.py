"""Load the settings: defaults, config.toml over them, environment variables over both.

Standard library only: hooks load this when their snapshot is out of date.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import SettingsError
from .layout import (
    OFFLINE,
    StatePaths,
    config_path,
    expand_home,
    explain_misplacement,
    home_folder,
    is_inherited,
    state_root,
    vault_id,
)
from .settings_table import (
    BY_NAME,
    SECTIONS,
    SETTINGS,
    DiscoverySection,
    EmbeddingSection,
    HostsSection,
    McpSection,
    MemorySection,
    QueueSection,
    RecallSection,
    ReflectionSection,
    ResearchSection,
    SessionSection,
    Setting,
    VaultSection,
)
from .snapshot import OFF_WORDS, config_stamp, read_snapshot, snapshot_path, write_installation, write_snapshot


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings in force, with the places they lead to."""

    vault: VaultSection = field(default_factory=VaultSection)
    memory: MemorySection = field(default_factory=MemorySection)
    recall: RecallSection = field(default_factory=RecallSection)
    session: SessionSection = field(default_factory=SessionSection)
    reflection: ReflectionSection = field(default_factory=ReflectionSection)
    research: ResearchSection = field(default_factory=ResearchSection)
    embedding: EmbeddingSection = field(default_factory=EmbeddingSection)
    queue: QueueSection = field(default_factory=QueueSection)
    discovery: DiscoverySection = field(default_factory=DiscoverySection)
    hosts: HostsSection = field(default_factory=HostsSection)
    mcp: McpSection = field(default_factory=McpSection)
    config_file: Path = Path("/nonexistent")
    """The file that was read, or would have been."""
    state_root: Path = Path("/nonexistent")
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """`section.key` to the origin of its value: the file's path or the variable's name; absent for a default."""
    environment: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The environment the settings were read from."""

    @property
    def vault_path(self) -> Path | None:
        """The folder MemoryVault/, None when the user has not set it."""
        return self.vault.path

    @property
    def required_vault_path(self) -> Path:
        """The folder MemoryVault/. Raises SettingsError when it is not set."""
        if self.vault.path is None:
            raise SettingsError("no vault is set: run `memory init`")
        return self.vault.path

    @property
    def ideas_path(self) -> Path:
        """The user's own list of ideas. Raises SettingsError when no vault is set, or the list would lie in it."""
        vault = self.required_vault_path
        path = self.vault.ideas_path or vault.parent / "Ideas.md"
        if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(vault)):
            raise SettingsError(
                f"{path} (IDEAS_SURFACE_PATH or vault.ideas_path) lies in {vault}, and your list of ideas is outside "
                "of it: name a note there"
            )
        return path

    @property
    def state(self) -> StatePaths:
        """The state folder of this vault. Raises SettingsError when none is set."""
        return StatePaths(self.state_root / vault_id(str(self.required_vault_path)))

    @property
    def session_folders(self) -> Mapping[str, Path]:
        """Folders by host of the transcripts of running sessions; a transcript elsewhere is refused."""
        hosts = self.hosts
        return {
            "claude": hosts.claude_config_dir / "projects",
            "codex": hosts.codex_home / "sessions",
            "copilot": hosts.copilot_home / "session-state",
            "antigravity": hosts.antigravity_home,
            "opencode": hosts.opencode_data,
            "gemini": hosts.gemini_home / "tmp",
        }

    @property
    def codex_archive(self) -> Path:
        """Where Codex moves sessions that the user archives."""
        return self.hosts.codex_home / "archived_sessions"

    @property
    def transcript_folders(self) -> tuple[Path, ...]:
        """Folders in which a worker reads transcripts: of running sessions, and of archived ones."""
        return (*self.session_folders.values(), self.codex_archive)


def load_settings(env: Mapping[str, str], config_file: Path | None = None) -> Settings:
    """Load the settings for an environment. Raises SettingsError with file, key and what is allowed."""

    def refuse(_: str, error: SettingsError) -> None:
        raise error

    return _load(env, config_file, refuse)


@dataclass(frozen=True)
class PartialSettings:
    """The settings that could be read, for commands that have to work while config.toml is broken."""

    settings: Settings
    faults: tuple[str, ...] = ()
    """Faults, one line each; empty when everything could be read."""
    unread: frozenset[str] = frozenset()
    """`section.key` of the settings that may be set in the broken file, and have their default here."""
    remembered: frozenset[str] = frozenset()
    """`section.key` of the settings with the value from when the file could last be read."""


def load_partial_settings(env: Mapping[str, str]) -> PartialSettings:
    """Load what can be read: wrong values are left out, and all of a file that is not valid TOML.

    Paths missing in config.toml come from the hooks' snapshot. Raises SettingsError for an environment that must not be
    trusted.
    """
    faults: list[str] = []
    wrong: set[str] = set()

    def remember(name: str, error: SettingsError) -> None:
        faults.append(str(error))
        # An unknown name may be any setting, misspelt.
        wrong.update([name] if name in BY_NAME else BY_NAME)

    settings = _load(env, None, remember)
    unread = {name for name in wrong if name in BY_NAME and name not in settings.origins}
    before = (read_snapshot(env, stale=True) or {}) if unread else {}
    known = {name: Path(value) for name, value in _places_of(before).items() if name in unread}
    for name, value in known.items():
        section, key = name.split(".")
        changed = dataclasses.replace(getattr(settings, section), **{key: value})
        settings = dataclasses.replace(settings, **{section: changed})
    return PartialSettings(settings, tuple(faults), frozenset(unread - known.keys()), frozenset(known))


_ENABLED_LINE = re.compile(rb"^[ \t]*(?:memory[ \t]*\.[ \t]*)?[\"']?enable\w*[\"']?(.*)$", re.MULTILINE)


def seems_switched_off(config_file: Path) -> bool:
    """Whether an unreadable config.toml seems to set `memory.enabled`, perhaps misspelt, to anything but true.

    A user with `enabled = False`, which is no TOML, believes that nothing is recorded.
    """
    try:
        lines = _ENABLED_LINE.findall(config_file.read_bytes())
    except OSError:
        return False
    return any(not rest.lstrip(b" \t=:\"'").lower().startswith(b"true") for rest in lines)


def snapshot_from_before(env: Mapping[str, str]) -> dict[str, str] | None:
    """Return the snapshot of the last readable config.toml; None if it must not be used.

    The snapshot is then kept for another 30 days, because nothing can replace it until the file is mended.
    """
    if seems_switched_off(Path(config_path(env))):
        return None
    values = read_snapshot(env, stale=True)
    if values is not None:
        values["autostart"] = "0"  # What a hook would start cannot read the file either, and would end at once.
        with suppress(OSError):
            os.utime(snapshot_path(env))
    return values


def _places_of(snapshot: Mapping[str, str]) -> dict[str, str]:
    """Return the paths in `snapshot_values`, by setting."""
    places = {
        "vault.path": snapshot.get("vault", ""),
        "hosts.claude_config_dir": snapshot.get("claude_config_dir", ""),
        "hosts.codex_home": os.path.dirname(snapshot.get("sessions_codex", "")),
        "hosts.copilot_home": os.path.dirname(snapshot.get("sessions_copilot", "")),
        "hosts.antigravity_home": snapshot.get("sessions_antigravity", ""),
        "hosts.opencode_home": snapshot.get("opencode_home", ""),
        "hosts.opencode_data": snapshot.get("sessions_opencode", ""),
        "hosts.gemini_home": os.path.dirname(snapshot.get("sessions_gemini", "")),
    }
    return {name: place for name, place in places.items() if place}


def _load(env: Mapping[str, str], config_file: Path | None, fault: Callable[[str, SettingsError], None]) -> Settings:
    """Load the settings. Calls `fault`, which may raise, for each refused setting, with '' for a broken file."""
    if why := explain_misplacement(env):
        raise SettingsError(why)
    path = config_file if config_file is not None else Path(config_path(env))
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    found: Mapping[str, Any] = {}
    try:
        found = _read_file(path)
    except SettingsError as error:
        fault("", error)
    for name, raw in found.items():
        try:
            if name not in BY_NAME:
                raise SettingsError(f"{path}: there is no setting {name}; `memory config show --reference` lists them")
            values[name] = _from_toml(BY_NAME[name], raw, str(path), env)
            origins[name] = str(path)
        except SettingsError as error:
            fault(name, error)
    for row in SETTINGS:
        raw_text = env.get(row.variable, "") if row.variable else ""
        if row.variable and raw_text.strip():
            try:
                values[row.name] = _from_text(row, raw_text.strip(), env)
                origins[row.name] = row.variable
            except SettingsError as error:
                fault(row.name, error)
    sections: dict[str, Any] = {}
    for section, class_ in SECTIONS.items():
        chosen = {}
        for f in dataclasses.fields(class_):
            name = f"{section}.{f.name}"
            value = values.get(name, BY_NAME[name].default)
            chosen[f.name] = Path(os.path.normpath(expand_home(str(value), env))) if isinstance(value, Path) else value
        sections[section] = class_(**chosen)
    return Settings(
        **sections,
        config_file=path,
        state_root=Path(state_root(env)),
        origins=origins,
        environment=dict(env),
    )


def _read_file(path: Path) -> dict[str, Any]:
    """Read config.toml: `section.key` to its value. Raises SettingsError with the line of what is no TOML."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
        return _settings_of(tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: not valid TOML: brackets within brackets without end") from error
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"^(.*) \(at line (\d+), column (\d+)\)$", str(error), re.DOTALL)
        if match is None:
            line = text.count("\n") + 1
            raise SettingsError(f"{path}:{line}: not valid TOML: {error}") from error
        raise SettingsError(f"{path}:{match[2]}: not valid TOML: {match[1]}") from error


def _settings_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a TOML document by `section.key`."""
    found: dict[str, Any] = {}
    for section, content in document.items():
        if isinstance(content, dict):
            found |= {f"{section}.{key}": value for key, value in content.items()}
        else:
            found[section] = content
    return found


_CREDENTIALS = re.compile(r"://[^/]*@")
"""A password in an address. A refused setting is printed, and logged by a worker."""


def _refuse(row: Setting, where: str, raw: object) -> SettingsError:
    if isinstance(raw, str) and _CREDENTIALS.search(raw):
        shown = "something else"
    elif row.type in ("whole number", "switch") or not isinstance(raw, str):
        shown = str(raw).lower() if isinstance(raw, bool) else str(raw)
    else:
        shown = repr(raw)
    return SettingsError(f"{where}: {row.name} is {shown[:120]}, but must be {row.allowed}")


def _from_toml(row: Setting, raw: object, where: str, env: Mapping[str, str]) -> Any:
    if row.type == "switch":
        if not isinstance(raw, bool):
            raise _refuse(row, where, raw)
        return raw
    if row.type == "whole number":
        too_high = row.maximum is not None and isinstance(raw, int) and raw > row.maximum
        if isinstance(raw, bool) or not isinstance(raw, int) or raw < row.minimum or too_high:
            raise _refuse(row, where, raw)
        return raw
    if not isinstance(raw, str):
        raise _refuse(row, where, raw)
    return _checked_text(row, raw, where, env)


_SWITCH_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_SWITCH_WORDS |= dict.fromkeys(OFF_WORDS, False)


def _from_text(row: Setting, raw: str, env: Mapping[str, str]) -> Any:
    """As `_from_toml`, of a variable's text."""
    value: object = raw
    if row.type == "switch":
        value = _SWITCH_WORDS.get(raw.lower(), raw)
    elif row.type == "whole number":
        with suppress(ValueError):
            value = int(raw)
    return _from_toml(row, value, f"environment variable {row.variable}", env)


def _checked_text(row: Setting, raw: str, where: str, env: Mapping[str, str]) -> Any:
    if row.type == "path":
        expanded = expand_home(raw, env)
        # A relative path would mean another folder in each repository a hook runs in.
        if not expanded.startswith("/") or "\0" in expanded:
            raise _refuse(row, where, raw)
        return Path(expanded)
    if row.choices and raw not in row.choices:
        raise _refuse(row, where, raw)
    if row.pattern is not None and re.fullmatch(row.pattern, raw) is None:
        raise _refuse(row, where, raw)
    return raw


def compile_snapshot(env: Mapping[str, str]) -> dict[str, str]:
    """Load the settings, write the snapshot for the hooks (snapshot.py) and return its values.

    A snapshot that cannot be written is no error: the next hook compiles again. Raises SettingsError.
    """
    stamp = config_stamp(env)
    settings = load_settings(env)
    values = snapshot_values(settings)
    try:
        write_snapshot(env, values, stamp)
        write_installation(env, values["python"])
    except OSError:
        return values
    return values


def snapshot_values(settings: Settings) -> dict[str, str]:
    """Return the values of the snapshot as text: a switch is 1 or 0, an unset path ''."""
    values = {
        "enabled": "1" if settings.memory.enabled else "0",
        "autostart": "1" if settings.memory.autostart else "0",
        "auto_memory": "0" if settings.memory.disable_auto_memory else "1",
        "log_level": settings.memory.log_level,
        "python": sys.executable,
        "config": str(settings.config_file),
        "state_root": str(settings.state_root),
        "vault": str(settings.vault_path or ""),
        "quiet_seconds": str(settings.session.quiet_seconds),
        "recall_k": str(settings.recall.k),
        "eagerness": settings.recall.eagerness,
        "token_budget": str(settings.recall.token_budget),
        "core_words": str(settings.recall.core_words),
        "claude_config_dir": str(settings.hosts.claude_config_dir),
        "opencode_home": str(settings.hosts.opencode_home),
        **{f"sessions_{host}": str(folder) for host, folder in settings.session_folders.items()},
    }
    state = settings.state if settings.vault_path is not None else None
    values["state"] = state.root if state is not None else ""
    for name in ("queue_db", "index_db", "markers", "spool", "log_file", "recall_socket", "wake_socket"):
        values[name] = getattr(state, name) if state is not None else ""
    return values


def child_environment(settings: Settings) -> dict[str, str]:
    """Return the allow-listed environment of the worker, the recall service and their children.

    PYTHONPATH, TMPDIR (a session's may lie in its project), proxies and unknown variables are left out. The program's
    three variables that set paths are passed on resolved, others only if they belong to a setting.
    """
    env = settings.environment
    known = {row.variable for row in SETTINGS if row.variable}
    child = {name: value for name, value in env.items() if is_inherited(name) or name in known}
    child.setdefault("HOME", home_folder(env))
    child.setdefault("PATH", os.defpath)
    child["MEMORY_CONFIG"] = str(settings.config_file)
    child["MEMORY_STATE_DIR"] = str(settings.state_root)
    if settings.vault_path is not None:
        child["MEMORY_VAULT_PATH"] = str(settings.vault_path)
    return {**child, **OFFLINE}


def value_in_force(settings: Settings, name: str) -> Any:
    """Return the value of the setting `section.key`. Raises KeyError for an unknown one."""
    row = BY_NAME[name]
    return getattr(getattr(settings, row.section), row.key)
