"""Install the hooks in the files of the hosts, each with its names of events and its shape of entries.

The files are merged, copied before and restored as in `install.py`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..runtime.errors import SettingsError
from ..runtime.settings import Settings
from . import opencode
from .extension import (
    extension_folder,
    has_manifest,
    install_manifest,
    is_current_manifest,
    uninstall_manifest,
    why_no_hook_runs,
)
from .install import (
    CLAUDE_WIRING,
    NAME,
    HostFileUnwritable,
    HostWiring,
    Json,
    WiringOutcome,
    argv_of,
    claude_is_wired,
    entries_of,
    events_of,
    events_with_ours,
    file_of,
    install_entries,
    is_ours,
    is_outdated,
    launcher_in,
    precompile,
    read_settings,
    switched_off,
    uninstall_entries,
    write_launcher,
)

CLAUDE = "claude"
WIRINGS: Mapping[str, HostWiring] = {
    wiring.name: wiring
    for wiring in (
        CLAUDE_WIRING,
        HostWiring(
            "codex",
            "Codex CLI",
            {"SessionStart": 5, "UserPromptSubmit": 3, "Stop": 5, "PreCompact": 5},
            lambda settings: settings.hosts.codex_home,
            lambda settings: settings.hosts.codex_home / "hooks.json",
            "groups",
            matchers={"SessionStart": "startup|resume|clear|compact"},
        ),
        HostWiring(
            "copilot",
            "Copilot CLI",
            {"SessionStart": 5, "UserPromptSubmit": 5, "Stop": 5, "SessionEnd": 5},
            lambda settings: settings.hosts.copilot_home,
            lambda settings: settings.hosts.copilot_home / "hooks" / f"{NAME}.json",
            "flat",
        ),
        HostWiring(
            "antigravity",
            "Antigravity",
            {"PreInvocation": 5, "Stop": 5},
            lambda settings: settings.hosts.antigravity_home,
            lambda settings: settings.hosts.antigravity_home / "config" / "hooks.json",
            "named",
            experimental=True,
        ),
        HostWiring(
            "opencode",
            "OpenCode",
            {"SessionStart": 5, "UserPromptSubmit": 5, "Stop": 5, "SessionEnd": 5, "PreCompact": 5},
            lambda settings: settings.hosts.opencode_home,
            lambda settings: settings.hosts.opencode_home / opencode.PLUGIN_FILE,
            "plugin",
            actions={"PreToolUse": 5, "PostToolUseFailure": 5},
        ),
        HostWiring(
            "gemini",
            "Gemini CLI",
            {"SessionStart": 5, "BeforeAgent": 3, "AfterAgent": 5, "SessionEnd": 5},
            lambda settings: settings.hosts.gemini_home,
            lambda settings: extension_folder(settings) / "hooks" / "hooks.json",
            "groups",
            actions={"BeforeTool": 5, "AfterTool": 5},
            matchers=dict.fromkeys(("BeforeTool", "AfterTool"), "run_shell_command|replace|write_file"),
            time_unit=1000,
            is_strict=True,
        ),
    )
}
HOSTS = tuple(WIRINGS)


def hook_argv(event: str, launcher: str, host: str = CLAUDE) -> list[str]:
    """Return the exact argv that `host` runs for `event`. Raises SettingsError if the host has no hook for it."""
    events = (*WIRINGS[host].events, *WIRINGS[host].actions)
    if event not in events:
        raise SettingsError(f"{host} has no hook for {event!r}; the events are {', '.join(events)}")
    return WIRINGS[host].argv(event, launcher)


def install_for(host: str, settings: Settings) -> WiringOutcome:
    """Add our hooks to the host's file; a second call changes nothing. Raises SettingsError."""
    wiring = WIRINGS[host]
    warnings = tuple(_warnings(wiring, settings))
    if wiring.shape == "plugin":
        write_launcher(launcher_in(settings.state_root))
        return WiringOutcome(file_of(wiring, settings), _install_plugin(wiring, settings), warnings=warnings)
    outcome = install_entries(wiring, settings)
    if host == "gemini":
        outcome = replace(outcome, changed=install_manifest(settings) or outcome.changed)
    return replace(outcome, warnings=warnings)


def wire_actions(host: str, settings: Settings, *, on: bool) -> WiringOutcome:
    """Add the hooks of tool calls to the host's file, or take them out; our others stay. Raises SettingsError."""
    wiring = WIRINGS[host]
    if wiring.shape == "plugin":
        changed = hosts_with_actions(settings).get(host) is not on and _install_plugin(wiring, settings, actions=on)
        return WiringOutcome(file_of(wiring, settings), changed)
    if on:
        return install_entries(wiring, settings, actions=True, others=False)
    return uninstall_entries(wiring, settings, only_actions=True)


def hosts_with_actions(settings: Settings) -> dict[str, bool]:
    """Return, for each wired host that has events of tool calls, whether those are wired. Raises SettingsError."""
    wired = {host: set(wired_events(host, settings)) for host, wiring in WIRINGS.items() if wiring.actions}
    is_ours = {host: bool(events) for host, events in wired.items()} | {CLAUDE: claude_is_wired(settings)}
    return {host: events.issuperset(WIRINGS[host].actions) for host, events in wired.items() if is_ours[host]}


def actions_wired(settings: Settings) -> bool:
    """Whether the tool calls of any host are watched. Raises SettingsError."""
    return any(hosts_with_actions(settings).values())


def uninstall_for(host: str, settings: Settings) -> WiringOutcome:
    """Remove our hooks from the host's file. Raises SettingsError."""
    wiring = WIRINGS[host]
    if wiring.shape == "plugin":
        try:
            removed = opencode.remove_plugin(str(wiring.home(settings)))
        except OSError as error:
            raise SettingsError(f"{wiring.file(settings)} cannot be removed: {error.strerror}") from error
        return WiringOutcome(file_of(wiring, settings), removed, restored=removed)
    outcome = uninstall_entries(wiring, settings)
    if host == "gemini":
        uninstall_manifest(settings)
    return outcome


def wired_events(host: str, settings: Settings) -> tuple[str, ...]:
    """Return the events that have a current entry of ours. Raises SettingsError."""
    wiring = WIRINGS[host]
    launcher = launcher_in(settings.state_root)
    if host == "gemini" and not has_manifest(settings):
        return ()
    if wiring.shape == "plugin":
        try:
            home = str(wiring.home(settings))
            events = (*wiring.events, *(wiring.actions if opencode.has_actions(home) else ()))
            return events if opencode.is_current(home, launcher) else ()
        except OSError as error:
            raise SettingsError(f"{wiring.file(settings)} cannot be read: {error.strerror}") from error
    document = read_settings(file_of(wiring, settings))
    return tuple(
        event
        for event in (*wiring.events, *wiring.actions)
        if any(
            argv_of(entry) == wiring.argv(event, launcher)
            for entry in entries_of(events_of(wiring, document).get(event))
        )
    )


def needs_renewal(host: str, settings: Settings) -> bool:
    """Whether what we wrote into the host's files is an older version's, another state folder's, or a part of it.

    Raises SettingsError.
    """
    wiring = WIRINGS[host]
    if wiring.shape == "plugin":
        return os.path.lexists(wiring.file(settings)) and not wired_events(host, settings)
    document = read_settings(file_of(wiring, settings))
    if is_outdated(wiring, document, launcher_in(settings.state_root)):
        return True
    return host == "gemini" and bool(events_with_ours(wiring, document)) and not is_current_manifest(settings)


def _install_plugin(wiring: HostWiring, settings: Settings, *, actions: bool | None = None) -> bool:
    launcher = launcher_in(settings.state_root)
    try:
        precompile()
        return opencode.install_plugin(str(wiring.home(settings)), launcher, actions=actions)
    except FileExistsError as error:
        raise SettingsError(f"{wiring.file(settings)} cannot be written: {error}") from error
    except OSError as error:
        by_hand = opencode.plugin_text(launcher, actions=bool(actions)).decode("utf-8")
        raise HostFileUnwritable(f"{wiring.file(settings)} cannot be written: {error.strerror}", by_hand) from error


def is_wired(settings: Settings) -> bool:
    """Whether any agent runs our hooks; True also if an agent's file cannot be read."""
    try:
        return claude_is_wired(settings) or any(wired_events(host, settings) for host in WIRINGS)
    except SettingsError:
        return True


def trusted_by_codex(settings: Settings) -> bool:
    """Whether Codex trusts each of our hooks; it does not run the others. Raises SettingsError.

    Codex lists trusted hooks by file, event and position, such as `…/hooks.json:session_start:0:0`.
    """
    wiring = WIRINGS["codex"]
    hooks = _codex_config(settings).get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    ours = [*_places(events_of(wiring, read_settings(file_of(wiring, settings))))]
    trusted = state if isinstance(state, dict) else {}
    return bool(ours) and all(f"{wiring.file(settings)}:{place}" in trusted for place in ours)


def _places(events: Json) -> Iterator[str]:
    """Yield event, number of the group and number in the group of each entry of ours, as Codex spells them."""
    for event, groups in events.items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            for place, entry in enumerate(entries_of([group])):
                if is_ours(entry):
                    yield f"{name}:{number}:{place}"


def _warnings(wiring: HostWiring, settings: Settings) -> Iterator[str]:
    if wiring.name == CLAUDE and (why := switched_off(settings)):
        yield why
    if wiring.experimental:
        yield f"{wiring.title} is experimental: its hooks were never run against the program itself"
    if wiring.name == "gemini" and (why := why_no_hook_runs(settings)):
        yield why
    if wiring.name == "codex":
        features = _codex_config(settings).get("features", {})
        if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
            yield "Codex's setting features.hooks is off: no hook will run until you switch it on"
        if not trusted_by_codex(settings):
            yield "Codex runs hooks only once you trust them: it asks at its next start, or type /hooks in it"


def _codex_config(settings: Settings) -> Json:
    try:
        return tomllib.loads((settings.hosts.codex_home / "config.toml").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
