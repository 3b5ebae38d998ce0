"""The client behind every hook: it records what happened, and prints what was learned before.

A hook must never fail, delay or confuse the agent's turn. So: exit code 0 in every case, nothing on standard output
that is not meant for the model, a hard end enforced by a second thread, and no import that costs more than it saves.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from ..vault import hooklog
from ..vault.marker import Marker, create_marker, forget_end, note_end, touch_marker
from ..vault.snapshot import config_stamp, is_switched_off, read_snapshot, renew_snapshot, write_snapshot
from . import claude
from .payload import HookCall, parse_object, read_stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import NoReturn

IMMEDIATE = ("SessionEnd", "PreCompact", "Notification")
"""Events after which the session is reflected at once; after Stop, which comes every turn, once it was quiet."""
BUDGET_SECONDS = {"SessionStart": 0.5, "UserPromptSubmit": 0.3}
BUDGET_OTHERS_SECONDS = 0.1
"""What any other event may take on a machine that is not overloaded; every wait in here is bounded accordingly."""
RECORDING_END_SECONDS = 0.5
"""Hard end of the events that only record. On an overloaded machine a late record is worth more than a punctual end:
what is cut off is found only by the sweep, an hour later. The two events that answer end at their budget."""
MARGIN_SECONDS = 0.025
"""What starting and ending a process costs the host in addition to what can be measured here."""
STARVED_SHARE = 0.5
"""Where the interpreter had to wait for a core the watchdog will have to, too: its end is earlier by this share of
it."""
STARVED_MARGIN_SECONDS = 0.08
"""The end is at most so much earlier."""
WATCH_INTERVAL_SECONDS = 0.05
"""How often the watchdog wakes, to measure how late this machine wakes it: it will be as late at the end, so it ends
the hook earlier by that delay. A delay counts half at each later measurement."""
SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter while another one waits. To finish at the deadline the watchdog waits for it
ten times, which at Python's default of 5 ms would be 50."""
OVERRUN_SECONDS = 0.02
"""How long after its deadline a hook may still answer and log."""
ENQUEUE_OVERRUN_SECONDS = 0.15
"""The same for an event that is being enqueued: else its reflection would only be found by the sweep, hours later."""
SLOW_START_SECONDS = 0.1
"""An interpreter that took longer to start had to wait for a core; the log then says so."""
LONGEST_START_SECONDS = 60.0
"""A process that seems older was measured wrongly: in a container the clock may have another origin."""
CLOCK_READINGS = 3
COMPILE_SECONDS = 0.4
"""Added to the deadline when the settings must be compiled, and nobody waits for an answer."""
START_DEADLINE_SECONDS = 0.19
"""A prompt hook that is later than this starts no process: the next one will."""
QUIET_LEVELS = ("warning", "error")


class Hook:
    """The state of one invocation, for the log line and for the watchdog."""

    __slots__ = (
        "adapter",
        "answering",
        "argv",
        "budget",
        "call",
        "deadline",
        "delay",
        "fields",
        "finished",
        "is_output_partial",
        "margin",
        "marker",
        "output",
        "paths",
        "settings",
        "started",
    )

    def __init__(self, argv: list[str]) -> None:
        self.started = _process_start_time()
        self.fields: dict[str, object] = {}
        """Fields of the log line."""
        waited = time.monotonic() - self.started
        if waited > SLOW_START_SECONDS:
            self.fields["start_ms"] = round(waited * 1000, 1)
        starved = max(waited - time.process_time(), 0.0)
        self.margin = min(starved * STARVED_SHARE, STARVED_MARGIN_SECONDS)
        """Seconds by which everything ends earlier, since the hook had to wait for a core."""
        self.argv = argv
        self.adapter: ModuleType = claude
        self.output = ""
        """Text for the model that has not been printed yet."""
        self.paths: list[str] = []
        """Paths of the entries in it, until they are recorded as injected into the session."""
        self.is_output_partial = False
        """Is more to be added to `output` before it may be printed?"""
        self.answering = allocate_lock()
        """Acquired by the thread that answers the host and never released: there is one answer."""
        self.budget = BUDGET_OTHERS_SECONDS
        self.deadline = self.started + RECORDING_END_SECONDS
        self.call: HookCall | None = None
        self.settings: Mapping[str, str] = {}
        self.delay: float | None = None
        """Seconds by which the reflection that is being enqueued is delayed, -1 for none; None: nothing is enqueued."""
        self.marker: Marker | None = None
        """What a session that has no marker gets: syncing it to a busy disk may take longer than there is time."""
        self.finished = False

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
            self.fields["session"] = self.call.session
            self.fields["ms"] = round((time.monotonic() - self.started) * 1000, 1)
            hooklog.append(log_file, level, "hook", result=result, **self.fields)


def _process_start_time() -> float:
    """When this process started, in monotonic seconds: the host has been waiting since then.

    The processor time so far is what the start of the interpreter took. If it had to wait for a core it took longer:
    Linux has the start time in hundredths of a second since boot.
    """
    now = time.monotonic()
    started = now - time.process_time()
    try:
        with open("/proc/self/stat", "rb", buffering=0) as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])  # `starttime`, see proc(5)
        began = (ticks + 0.5) / os.sysconf("SC_CLK_TCK") - _suspended_seconds()
    except (OSError, ValueError, IndexError, AttributeError):
        return started
    return min(started, began) if 0 <= now - began < LONGEST_START_SECONDS else started


def _suspended_seconds() -> float:
    """Seconds by which the clock since boot is ahead of the monotonic one: how long the machine was suspended.

    Between two readings a busy machine may take the core away, for longer than what is measured: the least of several
    differences is the right one.
    """
    least = float("inf")
    for _ in range(CLOCK_READINGS):
        monotonic = time.monotonic()
        least = min(least, time.clock_gettime(time.CLOCK_BOOTTIME) - monotonic)
    return least


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
    hook.finished = True
    os._exit(0)


def run(hook: Hook) -> str:
    """Handle the event; the result for the log, '' when there was nothing to do."""
    env = os.environ
    if env.get("MEMORY_WORKER_CHILD"):
        return ""
    options = _options(hook.argv)
    adapter = hook.adapter = adapter_of(options.get("--host", claude.HOST))
    named = options.get("event", "")
    event = adapter.EVENTS.get(named, named)
    hook.budget = BUDGET_SECONDS.get(event, BUDGET_OTHERS_SECONDS)
    hook.deadline = hook.started + BUDGET_SECONDS.get(event, RECORDING_END_SECONDS)
    if event in BUDGET_SECONDS:
        hook.budget -= hook.margin
        hook.deadline -= hook.margin
    if "--budget-ms" in options:  # Shortens what the hook gives itself; the hard end stays where it is.
        hook.budget = min(hook.budget, int(options["--budget-ms"]) / 1000)
    sys.setswitchinterval(SWITCH_SECONDS)
    start_new_thread(_watch, (hook,))
    raw = read_stdin()  # Also when switched off: a host that finds its pipe closed may call that a failure.
    if is_switched_off(env):
        return ""
    payload = parse_object(raw)
    call = adapter.read_call(named, payload or {})
    hook.call = call
    if call.agent or (call.event == "Notification" and call.notification != "idle_prompt"):
        return ""
    settings = _settings(hook, env)
    if settings["enabled"] != "1":
        return ""
    if not settings["state"]:
        report("memoryvault: no vault is set: run `memory init`, or set MEMORY_VAULT_PATH")
        return ""
    if os.path.exists(f"{settings['harness']}/STOP"):
        return ""
    from ..vault.project import is_left_out

    if is_left_out(call.cwd):
        return ""
    hook.settings = settings
    if payload is None:
        report(f"memoryvault: no {'prompt' if call.event == 'UserPromptSubmit' else 'payload'} on stdin")
        return "no payload"
    if call.event == "SessionStart":
        token_budget = int(options.get("--token-budget", "-1"))
        if named == "SessionStart":
            return _session_start(hook, call, settings, raw, token_budget)
        hook.is_output_partial = True  # This host's first prompt is its start of the session, too.
        result = _session_start(hook, call, settings, raw, token_budget)
        hook.is_output_partial = False
        call.event = event
        return result if result == "duplicate" else _prompt(hook, call, settings, raw)
    if call.event == "UserPromptSubmit":
        return _prompt(hook, call, settings, raw)
    if call.event == "Stop":
        return _record(hook, call, settings, float(settings["quiet_seconds"]))
    if call.event in IMMEDIATE:
        return _record(hook, call, settings, None)
    return ""


def adapter_of(host: str) -> ModuleType:
    """The adapter module of the host that `--host` names. Raises ValueError for an unknown one."""
    if host == claude.HOST:
        return claude
    if host == "codex":
        from . import codex

        return codex
    if host == "copilot":
        from . import copilot

        return copilot
    if host == "antigravity":
        from . import antigravity

        return antigravity
    raise ValueError(f"there is no host {host!r}")


def report(line: str) -> None:
    """Print one line on standard error, where the user can find it and the model cannot."""
    try:
        os.write(2, (line + "\n").encode("utf-8", "replace"))
    except OSError:
        return


def _settings(hook: Hook, env: Mapping[str, str]) -> Mapping[str, str]:
    settings = read_snapshot(env)
    if settings is not None:
        return settings
    # Slow, once after a change: importing the TOML parser costs more than everything else here.
    if hook.call is not None and hook.call.event not in BUDGET_SECONDS:
        hook.deadline += COMPILE_SECONDS
    from ..vault.errors import SettingsError
    from ..vault.settings import load_settings, snapshot_from_before, snapshot_values

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
        if values["enabled"] == "1":
            write_snapshot(env, values, stamp)
        else:  # Switched off means that nothing is written; but what is there allows what is not allowed any more.
            renew_snapshot(env, values, stamp)
    except OSError as error:
        hook.fields["snapshot"] = str(error)
    return values


def _session_start(hook: Hook, call: HookCall, settings: Mapping[str, str], raw: bytes, token_budget: int) -> str:
    from ..vault.project import project_of
    from .once import claim_event, delete_old_claims
    from .session_start import OpeningRequest, build_opening

    harness, run_folder = settings["harness"], f"{settings['state']}/run"
    try:
        refused = _touch_session(hook, call, settings)
        if not claim_event(run_folder, call.event, call.session, call.moment, raw):
            return "duplicate"
        if call.session:
            forget_end(harness, call.session)
        if call.session and call.source in ("compact", "clear"):
            from .injected import clear_injected

            clear_injected(harness, call.session)
    except OSError as error:
        refused = _report_unwritable(hook, error)
    if not hook.adapter.ANSWERS:
        _start_missing(hook, call, settings, worker=True, service=False)
        delete_old_claims(run_folder)
        return refused or "ok"
    if token_budget < 0:
        token_budget = int(settings["always_load_token_budget"])
    reading_until = hook.started + hook.budget * (0.35 if hook.is_output_partial else 0.7)
    request = OpeningRequest(settings, call.session, project_of(call.cwd), token_budget, reading_until)
    opening = build_opening(
        request,
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
    hook.fields["injected"] = opening.entries
    try:
        _note_injected(hook, call)
    except OSError as error:
        refused = _report_unwritable(hook, error)
    _start_missing(hook, call, settings, worker=True, service=True)
    delete_old_claims(run_folder)
    return refused or opening.note or "ok"


def _prompt(hook: Hook, call: HookCall, settings: Mapping[str, str], raw: bytes) -> str:
    from .once import claim_event

    if call.host == "antigravity":
        transcript = hook.adapter.resolve_transcript(call, settings["transcript_roots"].split(os.pathsep))
        call.prompt = hook.adapter.read_prompt(transcript) if transcript else ""
    if not call.prompt.strip():
        _add_output(hook, "")
        report("memoryvault: no prompt on stdin")
        return "no prompt"
    try:
        refused = _touch_session(hook, call, settings)
        if not claim_event(f"{settings['state']}/run", call.event, call.session, call.moment, raw):
            return "duplicate"
    except OSError as error:
        refused = _report_unwritable(hook, error)
    question = hook.adapter.extract_question(call.prompt)
    if not question or not hook.adapter.ANSWERS:
        _add_output(hook, "")
        return refused or "ok"
    from .recall import answer_prompt

    # A smaller budget on the command line shortens every wait by moving the start back.
    answer = answer_prompt(question, call, settings, hook.started - max(BUDGET_SECONDS[call.event] - hook.budget, 0.0))
    _add_output(hook, f"{answer.block.rstrip()}\n\n{answer.status}\n" if answer.paths else "")
    hook.paths += answer.paths  # Only once they are printed: what the watchdog cuts off does not count as injected.
    if answer.note:
        report(f"memoryvault: {answer.note}")
    report(answer.status)
    hook.fields["injected"] = len(answer.paths)
    hook.fields["service"] = answer.service
    if answer.note:
        hook.fields["degraded"] = answer.note
    if answer.service != "ok":
        from .receipt import append_receipt

        append_receipt(settings["log_file"], question, call.session, answer, (time.monotonic() - hook.started) * 1000)
    try:
        _note_injected(hook, call)
    except OSError as error:
        refused = _report_unwritable(hook, error)
    if time.monotonic() < hook.started + START_DEADLINE_SECONDS:
        _start_missing(hook, call, settings, worker=True, service=answer.service == "absent")
    return refused or "ok"


def _record(hook: Hook, call: HookCall, settings: Mapping[str, str], delay: float | None) -> str:
    """Handle an event that only records: touch the marker, enqueue a reflection in `delay` seconds (None: at once)."""
    from .enqueue import enqueue_reflection, ring_worker

    if not call.session:
        report("memoryvault: no session_id on stdin")
        return "no session"
    hook.delay = -1.0 if delay is None else delay
    try:
        refused = _touch_session(hook, call, settings)
    except OSError as error:
        refused = _report_unwritable(hook, error)
    if refused.startswith("transcript"):
        hook.delay = None
        return refused
    if call.event == "SessionEnd" and not refused:
        note_end(settings["harness"], call.session)
    outcome = enqueue_reflection(settings["queue_db"], settings["spool"], call.session, delay)
    hook.delay = None
    hook.fields["enqueued"] = outcome.where
    if outcome.why:
        hook.fields["why"] = outcome.why
        report(f"memoryvault: the queue cannot be reached, kept in the spool: {outcome.why}")
    if delay is None and not ring_worker(settings["wake_socket"]):
        _start_missing(hook, call, settings, worker=True, service=False)
    return refused or "ok"


def _touch_session(hook: Hook, call: HookCall, settings: Mapping[str, str]) -> str:
    """Create or touch the session's marker; '' or why that was refused. Raises OSError."""
    if not call.session:
        return "no session"
    transcript = hook.adapter.resolve_transcript(call, settings["transcript_roots"].split(os.pathsep))
    if transcript is None:
        hook.fields["transcript"] = call.transcript
        report(f"memoryvault: transcript refused, it is outside the agent's own folder: {call.transcript}")
        return "transcript refused"
    harness = settings["harness"]
    if touch_marker(harness, call.session):
        return ""
    if not transcript:  # The host has not named it yet; one of the next events does.
        return "transcript not named yet"
    hook.marker = marker = Marker(
        session_id=call.session,
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        source=call.source or "unknown",
        transcript=transcript,
        cwd=call.cwd,
        host=call.host,
    )
    try:
        create_marker(harness, marker)
    except FileNotFoundError:  # The first hook ever for this vault.
        from ..vault.layout import StatePaths

        StatePaths(settings["state"]).ensure()
        create_marker(harness, marker)
    return ""


def _report_unwritable(hook: Hook, error: OSError) -> str:
    hook.fields["error"] = str(error)
    report(f"memoryvault: the state folder cannot be written: {error}")
    return "state not writable"


def _start_missing(hook: Hook, call: HookCall, settings: Mapping[str, str], *, worker: bool, service: bool) -> None:
    """Start the worker or the recall service if it does not run and the settings allow it. Never raises."""
    if settings["autostart"] != "1" or not settings["python"]:
        return
    from .enqueue import ring_worker
    from .recall_client import is_listening

    missing = []
    if worker and not ring_worker(settings["wake_socket"]):
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


def _note_injected(hook: Hook, call: HookCall) -> None:
    """Record the printed entries as injected into the session, so that they are not repeated. Raises OSError."""
    from .injected import add_injected

    paths, hook.paths = hook.paths, []
    # At a start also that there were none: a prompt then gets the always-load entries that were not printed.
    # A hook that started too late has no settings, or they say that it shall do nothing.
    if call.session and hook.settings and (paths or call.event == "SessionStart"):
        add_injected(hook.settings["harness"], call.session, paths)


def _write_stdout(hook: Hook, text: str) -> None:
    """Write to standard output. A reader that went away or does not read is no error."""
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


def _options(argv: list[str]) -> dict[str, str]:
    """Parse `<event> [--host NAME] [--budget-ms N] [--token-budget N]`; the event is under `event`."""
    options: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        if word.startswith("--"):
            options[word] = next(words, "")
        else:
            options.setdefault("event", word)
    return options


def _open_standard_streams() -> None:
    """Open a closed standard stream on /dev/null: else the next file opened would take its number, and our text."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _watch(hook: Hook) -> None:
    """End the process at its deadline, whatever the main thread hangs in. Runs in a thread of its own."""
    late = 0.0
    while True:
        now = time.monotonic()
        left = hook.deadline - MARGIN_SECONDS - min(late, STARVED_MARGIN_SECONDS) - now
        if left <= 0:
            break
        nap = min(left, WATCH_INTERVAL_SECONDS)
        time.sleep(nap)
        late = max(late / 2, time.monotonic() - now - nap)
    if hook.finished:
        return
    # The log's disk may be what hangs, so another thread ends the process. This thread answers itself, since on a busy
    # machine each change of threads waits for a core.
    start_new_thread(_exit_after, (OVERRUN_SECONDS if hook.delay is None else ENQUEUE_OVERRUN_SECONDS,))
    _finish_at_deadline(hook)
    os._exit(0)


def _read_settings_for_log(hook: Hook) -> None:
    """Read the settings for a process that started so late that its time is over before it has read them."""
    settings = hook.settings or read_snapshot(os.environ)
    if hook.settings or settings is None or settings["enabled"] != "1" or not settings["state"]:
        return
    if os.path.exists(f"{settings['harness']}/STOP"):
        return
    hook.settings = settings
    if hook.call is None:
        hook.call = hook.adapter.read_call(_options(hook.argv).get("event", ""), {})


def _exit_after(seconds: float) -> NoReturn:
    time.sleep(seconds)
    os._exit(0)


def _finish_at_deadline(hook: Hook) -> None:
    """Spool what was about to be enqueued, print what there is already, then report and log that the time is up."""
    _read_settings_for_log(hook)
    call = hook.call
    if hook.delay is not None and call is not None:
        from .enqueue import spool_reflection

        try:
            if hook.marker is not None:  # First: the job finds the transcript by it.
                create_marker(hook.settings["harness"], hook.marker, synced=False)
            spool_reflection(hook.settings["spool"], call.session, None if hook.delay < 0 else hook.delay)
        except OSError as error:
            hook.fields["error"] = str(error)
    if call is not None:
        _write_answer(hook, call)
    _answer_empty(hook)
    if call is not None:
        try:
            _note_injected(hook, call)
        except OSError as error:
            hook.fields["error"] = str(error)
    report("memoryvault: time budget exceeded")
    hook.log("warning", "time budget exceeded")
