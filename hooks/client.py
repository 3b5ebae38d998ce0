"""The client behind every hook: it records events, and prints what earlier sessions learned.

A hook must never fail, delay or confuse the agent's turn. So it ends with exit code 0 in every case, prints on standard
output only what is meant for the model, is ended by a second thread at its deadline, and imports little.
"""

from __future__ import annotations

import os
import sys
import time

from ..runtime import hooklog
from ..runtime.interpreter import RLock, allocate_lock, start_new_thread
from ..runtime.snapshot import (
    config_stamp,
    is_switched_off,
    read_snapshot,
    session_folders,
    snapshot_path,
    write_snapshot,
)
from ..vault.marker import Marker, create_marker, forget_end, note_end, touch_marker
from . import claude
from .payload import HookCall, parse_object, read_stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import NoReturn

RECORDED = ("Stop", "SessionEnd", "PreCompact", "Notification")
"""Events after which the session is reflected: at once, except for Stop. Stop comes every turn, so the session is
reflected when it has been quiet for a while."""
BUDGET_SECONDS = {"SessionStart": 0.5, "UserPromptSubmit": 0.3}
"""Hard end of the two events that answer, since the process was started."""
ACTIONS = ("PreToolUse", "PostToolUseFailure")
"""Events of a tool call; those of sub-agents count too."""
ACTION_END_SECONDS = 2.0
"""Hard end of these events: a guard that answers late is better than none."""
RECORDING_END_SECONDS = 4.5
"""Hard end of an event that only records, just within what hosts allow. On an overloaded machine a late record is
better than none: only a backfill finds a session of which nothing was recorded."""
MARGIN_SECONDS = 0.04
"""Time that starting and ending a process takes in addition to what can be measured here."""
SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter while another one waits. The watchdog waits for it up to ten times: at
Python's default of 5 ms that would be 50 ms."""
OVERRUN_SECONDS = 0.02
"""How long after its deadline a hook may still answer and log."""
SLOW_START_SECONDS = 0.1
"""An interpreter that took longer to start had to wait for a core; the log line has the time then."""
LONGEST_START_SECONDS = 60.0
"""A process that seems older was measured wrongly: in a container the clock may have another origin."""
START_DEADLINE_SECONDS = 0.19
"""After this a prompt hook starts no daemon; the next hook does."""
QUIET_LEVELS = ("warning", "error")
HOSTS = ("claude", "codex", "copilot", "antigravity", "opencode", "gemini")
"""Each has an adapter: a module of this package with its name."""
UNWATCHED = ("codex", "copilot", "antigravity")
"""Hosts whose answers to a tool call are not known."""
LATE_OPENED = ("antigravity", "gemini")
"""Hosts whose prompt hook also gives the opening of the session, if no hook has given it before."""


class Hook:
    """The state of one invocation, for the log line and for the watchdog."""

    def __init__(self, argv: list[str]) -> None:
        self.started = _process_start_time()
        self.fields: dict[str, object] = {}
        """Fields of the log line."""
        waited = time.monotonic() - self.started
        if waited > SLOW_START_SECONDS:
            self.fields["start_ms"] = round(waited * 1000, 1)
        self.argv = argv
        self.adapter: ModuleType = claude
        self.output = ""
        """Text for the model that has not been printed yet."""
        self.paths: list[str] = []
        """Paths of the entries in it, until they are recorded as injected into the session."""
        self.is_output_partial = False
        """Whether more is to be added to `output` before it may be printed."""
        self.is_opening_whole = False
        self.answering = allocate_lock()
        """Acquired by the thread that answers the host and never released, so that there is one answer."""
        self.deadline = self.started + RECORDING_END_SECONDS
        self.call: HookCall | None = None
        self.settings: Mapping[str, str] = {}
        self.ending = RLock()
        """Acquired by the thread that ends the process, and never released."""

    def set_output(self, text: str, paths: list[str]) -> None:
        """Set the text for the model, and the paths of the entries in it."""
        self.output, self.paths = text, [*paths]

    def log(self, level: str, result: str) -> None:
        """Write this invocation's line to the log, if its path is known."""
        log_file = self.settings.get("log_file")
        if level == "info" and self.settings.get("log_level") in QUIET_LEVELS:
            return
        if log_file and self.call is not None:
            self.fields["hook"] = self.call.event
            self.fields["host"] = self.call.host
            self.fields["session"] = self.call.session
            self.fields["duration_ms"] = round((time.monotonic() - self.started) * 1000, 1)
            hooklog.append(log_file, level, "hook", result=result, **self.fields)


def _process_start_time() -> float:
    """Return when this process started, in monotonic seconds: the host has been waiting since then.

    The processor time so far is what the start of the interpreter took. If it had to wait for a core it took longer:
    Linux has the start time in hundredths of a second since boot.
    """
    now = time.monotonic()
    started = now - time.process_time()
    try:
        with open("/proc/self/stat", "rb", buffering=0) as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])  # `starttime`, see proc(5)
        # How long the machine was suspended. A core that is taken away between the two readings makes it look shorter.
        suspended = max([time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic() for _ in range(3)])
        began = (ticks + 0.5) / os.sysconf("SC_CLK_TCK") - suspended
    except (OSError, ValueError, IndexError, AttributeError):
        return started
    return min(started, began) if 0 <= now - began < LONGEST_START_SECONDS else started


def main(argv: list[str]) -> NoReturn:
    """Run one hook and end the process, always with exit code 0."""
    hook = Hook(argv)
    _open_standard_streams()
    try:
        result = run(hook)
        if result:
            hook.log("info" if result in ("ok", "duplicate") else "warning", result)
    except BaseException as error:  # noqa: BLE001
        report(f"memoryvault: {type(error).__name__}: {error}")
        hook.fields["error"] = f"{type(error).__name__}: {error}"
        hook.log("error", "error")
    _answer_empty(hook)
    hook.ending.acquire()
    os._exit(0)


def run(hook: Hook) -> str:
    """Handle the event; return the result for the log, '' when there was nothing to do."""
    env = os.environ
    if env.get("MEMORY_WORKER_CHILD"):
        return ""
    named, *option = hook.argv or [""]
    adapter = hook.adapter = adapter_of(option[1] if option[:1] == ["--host"] else claude.HOST)
    event = adapter.EVENTS.get(named, named)
    usual_seconds = ACTION_END_SECONDS if event in ACTIONS else RECORDING_END_SECONDS
    hook.deadline = hook.started + BUDGET_SECONDS.get(event, usual_seconds)
    sys.setswitchinterval(SWITCH_SECONDS)
    start_new_thread(_watch, (hook,))
    raw = read_stdin()  # Also when switched off: a host that finds its pipe closed may call that a failure.
    if is_switched_off(env):
        return ""
    payload = parse_object(raw)
    call = hook.call = adapter.read_call(named, payload or {})
    if _is_nothing(call):
        return ""
    settings = _settings(hook, env)
    if settings["enabled"] != "1":
        return ""
    if not settings["state"]:
        report("memoryvault: no vault is set: run `memory init`, or set MEMORY_VAULT_PATH")
        return ""
    if os.path.exists(f"{settings['markers']}/STOP"):
        return ""
    from ..vault.project import is_left_out

    if is_left_out(call.cwd):
        return ""
    hook.settings = settings
    if payload is None:
        report(f"memoryvault: no {'prompt' if call.event == 'UserPromptSubmit' else 'payload'} on stdin")
        return "no payload"
    if call.event in ACTIONS:
        if call.host in UNWATCHED:
            report(f"memoryvault: tool calls of {call.host} are not watched")
            return ""
        return _act(hook, call, settings, payload)
    is_prompt = call.event != ""
    if event == "UserPromptSubmit" and not _is_opened(call, settings):
        call.event = "SessionStart"
    if call.event == "SessionStart":
        if named == "SessionStart":
            return _session_start(hook, call, settings, raw)
        hook.is_output_partial = is_prompt  # This host's first prompt is its start of the session, too.
        result = _session_start(hook, call, settings, raw)
        if not is_prompt:
            return result
        hook.is_output_partial = False
        call.event = event
        return result if result == "duplicate" else _prompt(hook, call, settings, raw)
    if call.event == "UserPromptSubmit":
        return _prompt(hook, call, settings, raw)
    if call.event in RECORDED:
        return _record(hook, call, settings)
    return ""


def _is_opened(call: HookCall, settings: Mapping[str, str]) -> bool:
    """Whether the session was given its opening, or its host has no late one. False where the hook that should have
    given it ran out of time, also in the midst of it."""
    from .injected import is_start_due, read_injected

    given = read_injected(settings["markers"], call.session) if call.session else set()
    return not is_start_due(given) and (given is not None or call.host not in LATE_OPENED)


def _act(hook: Hook, call: HookCall, settings: Mapping[str, str], payload: Mapping[str, object]) -> str:
    """Print the rules on a tool call; return '' where there are none. Only a file's time, for `memory doctor`, tells
    of the others: a line for each would crowd the log."""
    try:
        came = f"{settings['state']}/run/{call.event}-{call.host}"
        os.close(os.open(came, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
    except OSError as error:
        hook.fields["error"] = str(error)
    if hasattr(hook.adapter, "answer_action"):
        answer_call = hook.adapter.answer_action
    elif call.event == "PreToolUse":
        from .action import answer_call
    else:
        from .action import answer_failure as answer_call
    try:
        answer = answer_call(call, payload, settings)
    except OSError as error:
        return _report_unwritable(hook, error)
    if answer is None:
        return ""
    _add_output(hook, answer.text)
    hook.fields["entries_injected"] = len(answer.paths)
    if answer.decision:
        hook.fields["guard"] = answer.decision
    from .receipt import append_action

    append_action(settings["log_file"], call, answer.paths, answer.decision, (time.monotonic() - hook.started) * 1000)
    return "ok"


def _is_nothing(call: HookCall) -> bool:
    """Whether the call is ignored whatever the settings: one of a sub-agent, a notification of anything but
    idleness."""
    return (bool(call.agent) and call.event not in ACTIONS) or (
        call.event == "Notification" and call.notification != "idle_prompt"
    )


def adapter_of(host: str) -> ModuleType:
    """Return the adapter module of the host that `--host` names. Raises ValueError for an unknown one."""
    if host not in HOSTS:
        raise ValueError(f"there is no host {host!r}")
    adapter: ModuleType = __import__(f"{__package__}.{host}", fromlist=[host])
    return adapter


def report(line: str) -> None:
    """Print one line on standard error, which the user can see and the model cannot."""
    try:
        os.write(2, (line + "\n").encode("utf-8", "replace"))
    except OSError:
        return


def _settings(hook: Hook, env: Mapping[str, str]) -> Mapping[str, str]:
    settings = read_snapshot(env)
    if settings is not None:
        return settings
    # Slow, once after a change: importing the TOML parser costs more than everything else here.
    from ..runtime.errors import SettingsError
    from ..runtime.settings import load_settings, snapshot_from_before, snapshot_values

    stamp = config_stamp(env)
    try:
        values = snapshot_values(load_settings(env))
    except SettingsError as error:
        # As a running worker does: a session must not go unrecorded because of a slip in a file.
        before = snapshot_from_before(env)
        if before is None:
            raise
        report(f"memoryvault: {error}; until that is mended the settings from before hold")
        hook.fields["settings"] = str(error)
        return before
    try:
        # Switched off means that nothing is written; but what is there allows what is not allowed any more.
        if values["enabled"] == "1" or os.path.exists(snapshot_path(env)):
            write_snapshot(env, values, stamp)
    except OSError as error:
        hook.fields["snapshot"] = str(error)
    return values


def _session_start(hook: Hook, call: HookCall, settings: Mapping[str, str], raw: bytes) -> str:
    from ..vault.project import project_of
    from .once import claim_event, delete_old_claims
    from .session_start import build_opening

    markers, run_folder = settings["markers"], f"{settings['state']}/run"
    try:
        refused = _touch_session(hook, call, settings)
        if not claim_event(run_folder, call.event, call.session, call.prompt_id, raw):
            return "duplicate"
        if call.session:
            forget_end(markers, call.session)
        if call.session and call.source in ("compact", "clear"):
            from .injected import forget_given

            forget_given(markers, call.session)
    except OSError as error:
        refused = _report_unwritable(hook, error)
    if not hook.adapter.ANSWERS:
        _start_missing(hook, call, settings, service=False)
        delete_old_claims(run_folder)
        return refused or "ok"
    reading_until = hook.started + (hook.deadline - hook.started) * (0.35 if hook.is_output_partial else 0.7)
    opening = build_opening(
        settings,
        call.session,
        project_of(call.cwd),
        int(settings["core_words"]),
        reading_until,
        publish=hook.set_output,
        host_loads_notes=lambda folder: (
            hook.adapter is claude and claude.host_loads_notes(folder, call.transcript, settings["claude_config_dir"])
        ),
    )
    hook.set_output(opening.text + "\n" if opening.text else "", opening.paths)
    _add_output(hook, "")
    if opening.note:
        report(f"memoryvault: {opening.note}")
    report(opening.status)
    hook.fields["entries_injected"] = opening.entries
    hook.is_opening_whole = not opening.note
    refused = _note_injected(hook, call) or refused
    if opening.paths:
        from .receipt import append_action

        append_action(settings["log_file"], call, opening.paths, "", (time.monotonic() - hook.started) * 1000)
    _start_missing(hook, call, settings, service=True)
    delete_old_claims(run_folder)
    return refused or opening.note or "ok"


def _prompt(hook: Hook, call: HookCall, settings: Mapping[str, str], raw: bytes) -> str:
    from .once import claim_event

    if call.host == "antigravity":
        transcript = hook.adapter.resolve_transcript(call, session_folders(settings))
        call.prompt = hook.adapter.read_prompt(transcript) if transcript else ""
    if not call.prompt.strip():
        _add_output(hook, "")
        report("memoryvault: no prompt on stdin")
        return "no prompt"
    try:
        refused = _touch_session(hook, call, settings)
        if not claim_event(f"{settings['state']}/run", call.event, call.session, call.prompt_id, raw):
            return "duplicate"
    except OSError as error:
        refused = _report_unwritable(hook, error)
    question = hook.adapter.extract_question(call.prompt)
    if not question or not hook.adapter.ANSWERS:
        _add_output(hook, "")
        return refused or "ok"
    from .recall import answer_prompt

    answer = answer_prompt(question, call, settings, hook.started)
    _add_output(hook, f"{answer.block.rstrip()}\n" if answer.paths else "")
    hook.paths += answer.paths  # Only once they are printed: what the watchdog cuts off does not count as injected.
    if answer.note:
        report(f"memoryvault: {answer.note}")
    report(answer.status)
    hook.fields["entries_injected"] = len(answer.paths)
    hook.fields.update(answer.found)
    hook.fields["service"] = answer.service
    if answer.note:
        hook.fields["degraded"] = answer.note
    if answer.service != "ok":
        from .receipt import append_receipt

        append_receipt(settings["log_file"], question, call.session, answer, (time.monotonic() - hook.started) * 1000)
    refused = _note_injected(hook, call) or refused
    if time.monotonic() < hook.started + START_DEADLINE_SECONDS:
        _start_missing(hook, call, settings, service=answer.service == "absent")
    return refused or "ok"


def _record(hook: Hook, call: HookCall, settings: Mapping[str, str]) -> str:
    """Handle an event that only records: touch the marker, enqueue a reflection."""
    from .enqueue import spool_reflection, wake_worker

    if not call.session:
        report("memoryvault: no session_id on stdin")
        return "no session"
    delay = float(settings["quiet_seconds"]) if call.event == "Stop" else None
    try:
        refused = _touch_session(hook, call, settings)
    except OSError as error:
        refused = _report_unwritable(hook, error)
    if refused.startswith("transcript"):
        return refused
    if call.event == "SessionEnd" and not refused:
        note_end(settings["markers"], call.session)
    spool_reflection(settings["spool"], call.session, delay)
    hook.fields["enqueued"] = True
    if delay is None and not wake_worker(settings["wake_socket"]):
        _start_missing(hook, call, settings, service=False)
    return refused or "ok"


def _touch_session(hook: Hook, call: HookCall, settings: Mapping[str, str]) -> str:
    """Create or touch the session's marker; return '' or why that was refused. Raises OSError."""
    if not call.session:
        return "no session"
    transcript = hook.adapter.resolve_transcript(call, session_folders(settings))
    if transcript is None:
        hook.fields["transcript"] = call.transcript
        report(f"memoryvault: transcript refused, it is outside the agent's own folder: {call.transcript}")
        return "transcript refused"
    markers = settings["markers"]
    if touch_marker(markers, call.session):
        return ""
    if not transcript:  # The host has not named it yet; one of the next events does.
        return "transcript not named yet"
    marker = Marker(
        session_id=call.session,
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        source=call.source or "unknown",
        transcript=transcript,
        cwd=call.cwd,
        host=call.host,
    )
    try:
        create_marker(markers, marker)
    except FileNotFoundError:  # The first hook ever for this vault.
        from ..runtime.layout import StatePaths

        StatePaths(settings["state"]).ensure()
        create_marker(markers, marker)
    return ""


def _report_unwritable(hook: Hook, error: OSError) -> str:
    hook.fields["error"] = str(error)
    report(f"memoryvault: the state folder cannot be written: {error}")
    return "state not writable"


def _start_missing(hook: Hook, call: HookCall, settings: Mapping[str, str], *, service: bool) -> None:
    """Start the worker, and with `service` the recall service, if it does not run and the settings allow it. Never
    raises."""
    if settings["autostart"] != "1" or not settings["python"]:
        return
    from .enqueue import wake_worker
    from .recall_client import is_listening

    missing = []
    if not wake_worker(settings["wake_socket"]):
        missing.append("worker")
    if service and not is_listening(settings["recall_socket"]):
        missing.append("serve")
    if not missing:
        return
    from .autostart import start_daemons

    hook.fields.update(start_daemons(missing, settings, call.cwd))


def _add_output(hook: Hook, text: str) -> None:
    """Add text for the model, and print it unless more is to come."""
    hook.output += text
    if hook.is_output_partial or hook.call is None:
        return
    _write_answer(hook, hook.call)


def _write_answer(hook: Hook, call: HookCall) -> None:
    """Print the output in the format of the host, unless the other thread has answered."""
    answer = hook.adapter.format_answer(call.event, hook.output)
    if answer and hook.answering.acquire(blocking=False):
        _write_stdout(hook, answer)


def _answer_empty(hook: Hook) -> None:
    """Print the host's empty answer, if it expects one and nothing was printed."""
    if hook.adapter.EMPTY_ANSWER and hook.answering.acquire(blocking=False):
        _write_stdout(hook, hook.adapter.EMPTY_ANSWER)


def _note_injected(hook: Hook, call: HookCall) -> str:
    """Record the printed entries as injected into the session, so that they are not repeated; return '' or why that was
    refused."""
    from .injected import add_injected, add_start

    paths, hook.paths = hook.paths, []
    # At a start also that there were none: a prompt then gets the always-load entries that were not printed.
    # A hook that started too late has no settings, or they say that it shall do nothing.
    if call.session and hook.settings and (paths or call.event == "SessionStart"):
        try:
            if call.event == "SessionStart":
                add_start(hook.settings["markers"], call.session, paths, is_whole=hook.is_opening_whole)
            else:
                add_injected(hook.settings["markers"], call.session, paths)
        except OSError as error:
            return _report_unwritable(hook, error)
    return ""


def _write_stdout(hook: Hook, text: str) -> None:
    """Write to standard output. Does not fail where the reader is gone or does not read."""
    data = text.encode("utf-8", "replace")
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:
            if time.monotonic() > hook.deadline:
                return
            time.sleep(0.002)
        except OSError as error:
            hook.fields["stdout"] = str(error)
            return


def _open_standard_streams() -> None:
    """Open closed standard streams on /dev/null: otherwise the next file opened would take their number, and our
    text."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _watch(hook: Hook) -> None:
    """End the process at its deadline, wherever the main thread hangs. Runs in a separate thread."""
    time.sleep(max(hook.deadline - MARGIN_SECONDS - time.monotonic(), 0.0))
    if not hook.ending.acquire(blocking=False):
        return  # The main thread is just ending it.
    # The disk may be what hangs, so another thread ends the process. This thread answers itself, since on a busy
    # machine each change of threads waits for a core.
    start_new_thread(_exit_after, (OVERRUN_SECONDS,))
    _finish_at_deadline(hook)
    os._exit(0)


def _exit_after(seconds: float) -> NoReturn:
    time.sleep(seconds)
    os._exit(0)


def _finish_at_deadline(hook: Hook) -> None:
    """Print the output so far, then report and log that the time is over."""
    call = hook.call
    if call is not None:
        _write_answer(hook, call)
    _answer_empty(hook)
    if call is not None:
        _note_injected(hook, call)
    report(f"memoryvault: {hooklog.TIME_IS_UP}")
    hook.log("warning", hooklog.TIME_IS_UP)
