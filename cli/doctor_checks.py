"""Checks of `memory doctor` on the machine: permissions, disk, sync clients, hooks."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..console.times import ago
from ..hooks.client import adapter_of
from ..hooks.install import (
    EVENTS,
    STUB,
    file_of,
    installed_events,
    launcher_in,
    plugin_installed,
    started_by,
    switched_off,
)
from ..hooks.wiring import CLAUDE, WIRINGS, is_wired, wired_events
from ..runtime.background import may_start
from ..runtime.days import SECONDS_PER_DAY
from ..runtime.errors import EntryNotFound, MemoryVaultError
from ..runtime.hooklog import utc_stamp
from ..runtime.settings import Settings
from ..services.conflicts import copy_paths
from ..services.corpus.backfill import plan_corpus
from ..services.device import SETTINGS_NOTE, acting_device, acts_here
from ..services.hook_log import HookRun, read_hook_runs
from ..sources.transcripts.hosts import open_transcript
from ..tasks.queue.units import SystemdUser
from ..vault.frontmatter import find_fault
from ..vault.header import TEMPLATE, in_templates, out_of_use, skim, split_header
from ..vault.listing import list_notes
from ..vault.marker import every_marker
from ..vault.statuses import meant_status
from ..vault.turn import Origin
from .context import Context
from .corpus import WARN_DAYS, ending_soon
from .output import home_path

LOW_DISK_BYTES = 200 * 1024 * 1024
SILENT_HOOK_DAYS = 7
SYNC_TRACES = (".stfolder", ".stversions", ".dropbox", ".dropbox.cache", ".nextcloudsync.log", ".sync")
"""Names that sync clients leave in a synced folder or above it."""
SYNC_FOLDERS = ("dropbox", "onedrive", "nextcloud", "google drive", "cloudstorage", "mobile documents", "syncthing")
EVERY_SESSION = ("SessionStart", "UserPromptSubmit", "Stop")
"""Events of every session with a prompt."""
TOOL_CALL = "PreToolUse"
LEAST_OF_OTHERS = 3
TRIAL_SECONDS = 10.0

Grade = Literal["ok", "note", "fault"]


@dataclass(frozen=True)
class Finding:
    """What one test found; `todo` is what the user should do, '' for nothing."""

    what: str
    grade: Grade
    detail: str
    todo: str = ""


def vault_and_disk(context: Context) -> Finding:
    """A file can be written into the vault, and both disks have room."""
    try:
        with tempfile.NamedTemporaryFile(dir=context.vault, prefix=".doctor-"):
            pass
    except OSError as error:
        error.filename = str(context.vault)  # Not the file that was tried.
        raise
    free = {str(place): shutil.disk_usage(place).free for place in (context.vault, context.state.root)}
    for place, bytes_free in free.items():
        if bytes_free < LOW_DISK_BYTES:
            return Finding("vault", "fault", f"{bytes_free // 2**20} MB left on the disk of {place}", "free some space")
    return Finding("vault", "ok", f"{home_path(context.vault)} can be written, {min(free.values()) // 2**20} MB free")


def permissions(context: Context) -> Finding:
    """Nothing in the state folder is open to others, except the empty stop file that the user made."""
    root, stop_file = context.kept_state.root, context.kept_state.stop_file
    for folder, _, files in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            try:
                status = os.stat(path, follow_symlinks=False)
                if path == stop_file and not status.st_size:
                    continue
                if status.st_mode & 0o077 and not os.path.islink(path):
                    return Finding("permissions", "fault", f"{path} is open to others", f"chmod -R go= '{root}'")
            except FileNotFoundError:
                continue  # A temporary file of another process.
    return Finding("permissions", "ok", f"{home_path(root)} is private")


def hooks_wired(context: Context) -> Finding:
    """All hooks are in Claude Code's settings, and the files that they start exist."""
    settings = context.settings
    found = installed_events(settings)
    if (found or plugin_installed(settings)) and (why := switched_off(settings)):
        what, _, todo = why.partition(": ")
        return Finding("hooks", "fault", what, todo)
    if plugin_installed(settings):
        if found:
            return Finding("hooks", "note", "by the plugin and in settings.json", "`memory init` takes the second out")
        return Finding("hooks", "ok", "by the Claude Code plugin")
    if not found and not is_wired(settings):
        return Finding("hooks", "note", "no agent is wired: no session is recorded or reminded", "run `memory init`")
    launcher = launcher_in(settings.state_root)
    if os.path.exists(launcher) and (failure := _failure_of(launcher, context)):
        return Finding("hooks", "fault", f"{home_path(launcher)} {failure[0]}", failure[1])
    if not found:
        return Finding("hooks", "note", "not in Claude Code's settings", "run `memory init` to wire them")
    for event, argv in sorted(found.items()):
        if lost := next((file for file in (argv[0], *(started_by(argv) or ())) if not os.path.exists(file)), None):
            return Finding("hooks", "fault", f"{event} starts {lost}, which is not there", "run `memory init`")
    if missing := [event for event in EVENTS if event not in found]:
        return Finding("hooks", "fault", f"{', '.join(missing)} not wired", "run `memory init`")
    for argv in found.values():
        if (started := started_by(argv)) != (sys.executable, str(STUB)):
            other = started[0] if started else argv[0]
            todo = "run `memory init` to use this one"
            return Finding("hooks", "note", f"they start another installation, {other}", todo)
    return Finding("hooks", "ok", ", ".join(sorted(found)))


def _failure_of(launcher: str, context: Context) -> tuple[str, str] | None:
    """Run a hook as an agent does, at a notification that it ignores. Return its fault and the remedy, None if it
    runs."""
    try:
        done = subprocess.run(
            [launcher, "Notification"],
            input=b"{}",
            env=dict(context.env),
            capture_output=True,
            timeout=TRIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"takes longer than {TRIAL_SECONDS:.0f} s", "run `memory doctor` again when the machine is idle"
    except OSError as error:
        todo = "run `memory init`; on a disk mounted noexec, name another place by MEMORY_STATE_DIR"
        return f"cannot run: {error.strerror}", todo
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return (f"cannot run: {said[-1]}", "install the package again, then run `memory init`") if said else None


def hooks_start_worker(settings: Settings) -> bool:
    """Whether the next session will start a worker."""
    return may_start(settings) and is_wired(settings)


def login_service(context: Context) -> Finding:
    """The login service, if installed, runs."""
    state = SystemdUser(context.env).state()
    if not state.installed:
        by_hook = ": the first hook of a session starts the worker" if hooks_start_worker(context.settings) else ""
        return Finding("service", "ok", f"none{by_hook}")
    if not state.running:
        return Finding(
            "service", "fault", f"{state.definition} is installed and does not run", "memory service install"
        )
    return Finding("service", "ok", str(state.definition))


def other_devices(context: Context) -> Finding:
    """A synced vault names the one device that runs jobs on the whole vault."""
    here = socket.gethostname()
    named = acting_device(context.vault)
    if named is not None:
        where = "this device" if acts_here(context.vault) else f"{named}, not this device ({here})"
        return Finding("devices", "ok", f"{where} acts on the whole vault")
    if trace := _sync_trace(context.vault):
        todo = f"put `device: {here}` into the properties of {SETTINGS_NOTE}, on the device that is on most"
        return Finding("devices", "note", f"the vault seems to be synced ({trace}) and no device is named", todo)
    return Finding("devices", "ok", "no sign of another one")


def ending_transcripts(context: Context) -> Finding:
    """No session that was never mined will be deleted soon by Claude Code."""
    settings = context.settings
    ending = ending_soon(plan_corpus(settings), settings)
    if not ending:
        return Finding("old sessions", "ok", f"none is deleted unread within {WARN_DAYS} days")
    detail = f"Claude Code deletes {len(ending)} within {WARN_DAYS} days that were never mined"
    return Finding("old sessions", "note", detail, "`memory reflect corpus --execute`, or raise cleanupPeriodDays")


def _sync_trace(vault: Path) -> str | None:
    for folder in (vault, *vault.parents):
        for name in SYNC_TRACES:
            if (folder / name).exists():
                return str(folder / name)
        if folder.name.lower().startswith(SYNC_FOLDERS):
            return str(folder)
    return next((f"a conflict copy, {copy}" for copy in list_notes(vault).copies), None)


def last_hook(context: Context) -> Finding:
    """When a hook last ran, and whether it ended well."""
    now = time.time()
    runs = [*read_hook_runs(Path(context.state.log_file), now - SILENT_HOOK_DAYS * SECONDS_PER_DAY)]
    newest = max(runs, key=lambda run: run.at, default=None)
    if newest is None:
        todo = "open a session of your agent; if it stays so, `memory init` again"
        if not is_wired(context.settings):
            todo = ""  # Another check says that no agent is wired.
        return Finding("last hook", "note", f"none in {SILENT_HOOK_DAYS} days", todo)
    took = "?" if newest.ms is None else newest.ms
    detail = f"{newest.event} {ago(min(newest.at, now), now)}, {newest.result or 'unknown'}, {took} ms"
    if newest.result in ("error", "no payload"):  # Without input it recorded and recalled nothing.
        return Finding("last hook", "fault", detail, "see `memory service logs`")
    if said := "; ".join(filter(None, (_absent_of(host, context, runs) for host in WIRINGS))):
        todo = "`memory init` again; if it stays so, the agent does not run this hook: see its own log"
        return Finding("last hook", "fault", said, todo)
    return Finding("last hook", "ok", detail)


def _absent_of(host: str, context: Context, runs: Sequence[HookRun]) -> str:
    """Name the wired events of a host that never came, and what came LEAST_OF_OTHERS times; '' without both."""
    wiring, settings = WIRINGS[host], context.settings
    came = Counter(run.event for run in runs if run.host == host)
    wired = {adapter_of(host).EVENTS.get(event, event) for event in wired_events(host, settings)}
    if host == CLAUDE and plugin_installed(settings):
        wired |= {*EVENTS}
    others = [f"{count} {event}" for event, count in came.items() if count >= LEAST_OF_OTHERS]
    absent = [event for event in EVERY_SESSION if event in wired and not came[event]]
    if (not absent or not others) and TOOL_CALL in wired:
        calls = _sessions_with_calls(host, context)
        absent, others = [TOOL_CALL] * (calls >= LEAST_OF_OTHERS), [f"{calls} sessions ran commands"]
    if not absent or not others:
        return ""
    return f"no {' and no '.join(absent)} of {wiring.title} in {SILENT_HOOK_DAYS} days, but {' and '.join(others)}"


def _sessions_with_calls(host: str, context: Context) -> int:
    """Count sessions of SILENT_HOOK_DAYS that ran commands and began after the last tool call that a hook saw, or
    after these hooks were wired, or installed."""
    seen = Path(context.state.root, "run", f"{TOOL_CALL}-{host}")
    files = (file_of(WIRINGS[host], context.settings), STUB, seen)
    since = max(time.time() - SILENT_HOOK_DAYS * SECONDS_PER_DAY, *(os.stat(f).st_mtime for f in files if f.exists()))
    count = 0
    for _, marker in every_marker(context.state.markers):
        if marker is None or marker.host != host or marker.started_at <= utc_stamp(since):
            continue
        with suppress(OSError):
            turns = open_transcript(Path(marker.transcript), 0, host)
            count += any(turn.origin is Origin.TOOL_USE and turn.tool and turn.tool.command for turn in turns)
    return count


def sync_clients(context: Context) -> Finding:
    """No sync client left copies of notes, which are not indexed."""
    copies = copy_paths(context.store)
    if copies:
        todo = "`memory review` shows both texts and lets you choose"
        return Finding("sync conflicts", "note", ", ".join(copies), todo)
    return Finding("sync conflicts", "ok", "none")


def headers(context: Context) -> Finding:
    """No note has git's conflict marks or an invalid header; unreadable notes are named first.

    A note with conflict marks is not recalled, of an invalid header the valid lines count, and commands edit neither.
    A misspelt status is asked about. Notes that Obsidian fills in are named unless their folder says what they are.
    """
    faults, unreadable, templates = [], [], []
    for path in context.store.walk():
        try:
            text = context.store.read_bytes(path).decode("utf-8", "replace")
        except EntryNotFound:
            continue
        except MemoryVaultError as error:
            unreadable.append(str(error))
            continue
        status = skim(text)[0].get("status", "").lower()
        if out_of_use(path, text) == TEMPLATE:  # Obsidian's placeholders belong there.
            parts = split_header(text)
            if not in_templates(path, parts[1] if parts is not None else ""):
                templates.append(path)
        elif (fault := find_fault(text)) is not None:
            faults.append(f"{path}, line {fault[0]}: {fault[1].strip()[:60]}")
        elif (meant := meant_status(status)) != status:
            faults.append(f"status {status!r} in {path} is none of ours; did you mean {meant}?")
    todo = "what cannot be read is not recalled; of what is too large, the beginning at most"
    todo = "mend the line in an editor" if faults else todo
    faults = unreadable + faults
    told = f"not recalled, since Obsidian is to fill them in: {', '.join(templates)}" if templates else ""
    if not faults:
        return Finding("headers", "ok", "; ".join(filter(None, ("all can be read", told))))
    return Finding("headers", "note", "; ".join(filter(None, (*faults, told))), todo)
