"""The client behind every hook: what happened is recorded, what was learned before is given back.

A hook must never fail, delay or confuse the agent's turn. So: exit code 0 in every case, nothing on
standard output that is not meant for the model, a hard end enforced by a second thread, and no import
that costs more than it does.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread

from ..vault import hooklog
from ..vault.marker import Marker, create_marker, forget_end, note_end, touch_marker
from ..vault.snapshot import config_stamp, read_snapshot, write_snapshot
from . import claude
from .payload import HookCall, parse_object, read_stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import NoReturn

IMMEDIATE = ("SessionEnd", "PreCompact", "Notification")
"""Events after which the session is reflected at once; Stop, which comes every turn, waits for quiet."""
BUDGET_SECONDS = {"SessionStart": 0.5, "UserPromptSubmit": 0.3}
BUDGET_OTHERS_SECONDS = 0.1
"""What an event may cost where the machine has time for it; every wait in here is bounded accordingly."""
RECORDING_END_SECONDS = 0.5
"""Hard end of the events that only record. On a starved machine a record that is late is worth more than a punctual
end: what is cut off is found by the sweep alone, an hour later. The two that answer end at their budget."""
MARGIN_SECONDS = 0.025
"""What starting and ending a process cost the host besides what we can measure."""
STARVED_SHARE = 0.5
"""Where the interpreter had to wait for a core the watchdog will have to as well: it is set earlier by this share."""
STARVED_MARGIN_SECONDS = 0.08
"""At most so much earlier."""
LOOK_SECONDS = 0.05
"""The watchdog wakes so often, to see how late this machine wakes it: it will be late at the end, too, so it ends the
hook so much earlier. Each time a delay counts half of what it did before."""
SWITCH_SECONDS = 0.0005
"""How long a thread lets another one wait for the interpreter. The watchdog waits for it ten times to say its last
words, which at Python's 5 ms would be 50."""
LAST_WORDS_SECONDS = 0.02
LAST_WORDS_OF_AN_ENQUEUE_SECONDS = 0.15
"""An event whose reflection would only be found by the sweep, hours later, may run over its budget."""
SLOW_START_SECONDS = 0.1
"""An interpreter that took longer to start had to wait for a core, which the log then says."""
LONGEST_START_SECONDS = 60.0
"""A process that seems older was not measured rightly: in a container the clock may count from elsewhere."""
CLOCK_LOOKS = 3
COMPILE_SECONDS = 0.4
"""Added once when settings must be compiled and nobody waits for the answer."""
START_BY_SECONDS = 0.19
"""A prompt that is later than this starts nothing: the next one will."""
QUIET_LEVELS = ("warning", "error")


class Hook:
    """One invocation: what is known so far, for the log line and for the watchdog."""

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
        "margin",
        "more_to_come",
        "paths",
        "said",
        "settings",
        "started",
    )

    def __init__(self, argv: list[str]) -> None:
        self.started = _process_started()
        self.fields: dict[str, object] = {}
        """Of the log line."""
        waited = time.monotonic() - self.started
        if waited > SLOW_START_SECONDS:
            self.fields["start_ms"] = round(waited * 1000, 1)
        starved = max(waited - time.process_time(), 0.0)
        self.margin = min(starved * STARVED_SHARE, STARVED_MARGIN_SECONDS)
        """Seconds by which everything ends earlier, since this machine gives no core at once."""
        self.argv = argv
        self.adapter: ModuleType = claude
        self.said = ""
        """What is meant for the model and has not been printed yet."""
        self.paths: list[str] = []
        """The entries in it, until they are noted as what the session holds."""
        self.more_to_come = False
        self.answering = allocate_lock()
        """Held from then on by the thread that answers the host: there is one answer."""
        self.budget = BUDGET_OTHERS_SECONDS
        self.deadline = self.started + RECORDING_END_SECONDS
        self.call: HookCall | None = None
        self.settings: Mapping[str, str] = {}
        self.delay: float | None = None
        """Quiet seconds of the reflection that is being enqueued."""
        self.finished = False

    def take(self, text: str, paths: list[str]) -> None:
        """Have `text`, and the entries at `paths` in it, ready to be said."""
        self.said, self.paths = text, [*paths]

    def log(self, level: str, result: str) -> None:
        """Write this invocation's line, if the log's place is known."""
        log_file = self.settings.get("log_file")
        if level == "info" and self.settings.get("log_level") in QUIET_LEVELS:
            return
        if log_file and self.call is not None:
            self.fields["hook"] = self.call.event
            self.fields["session"] = self.call.session
            self.fields["ms"] = round((time.monotonic() - self.started) * 1000, 1)
            hooklog.append(log_file, level, "hook", result=result, **self.fields)


def _process_started() -> float:
    """When this process began, in monotonic seconds: the host has been waiting since then.

    The processor time so far is what the interpreter's start took; where it had to wait for a core it took longer,
    which Linux tells in hundredths of a second since the machine was switched on.
    """
    now = time.monotonic()
    started = now - time.process_time()
    try:
        with open("/proc/self/stat", "rb", buffering=0) as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])  # `starttime`, see proc(5)
        began = (ticks + 0.5) / os.sysconf("SC_CLK_TCK") - _time_asleep()
    except (OSError, ValueError, IndexError, AttributeError):
        return started
    return min(started, began) if 0 <= now - began < LONGEST_START_SECONDS else started


def _time_asleep() -> float:
    """Seconds by which the clock since boot is ahead of the monotonic one.

    Between two looks at clocks a busy machine may take the core away, for longer than what is measured: the least
    difference is the right one.
    """
    least = float("inf")
    for _ in range(CLOCK_LOOKS):
        monotonic = time.monotonic()
        least = min(least, time.clock_gettime(time.CLOCK_BOOTTIME) - monotonic)
    return least


def main(argv: list[str]) -> NoReturn:
    """Run one hook and end the process, always with exit code 0."""
    hook = Hook(argv)
    _hold_standard_streams()
    try:
        result = run(hook)
        if result:
            hook.log("info" if result in ("ok", "duplicate") else "warning", result)
    except BaseException as error:  # noqa: BLE001
        say(f"memoryvault: {type(error).__name__}: {error}")
        hook.fields["error"] = f"{type(error).__name__}: {error}"
        hook.log("error", "error")
    _silence(hook)
    hook.finished = True
    os._exit(0)


def run(hook: Hook) -> str:
    """Do what the event asks for; the result for the log, '' when nothing at all was to be done."""
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
    raw = read_stdin()
    payload = parse_object(raw)
    call = adapter.read_call(named, payload or {})
    hook.call = call
    if call.agent or (call.event == "Notification" and call.notification != "idle_prompt"):
        return ""
    settings = _settings(hook, env)
    if settings["enabled"] != "1":
        return ""
    if not settings["state"]:
        say("memoryvault: no vault is set: run `memory init`, or set MEMORY_VAULT_PATH")
        return ""
    if os.path.exists(f"{settings['harness']}/STOP"):
        return ""
    hook.settings = settings
    if payload is None:
        say(f"memoryvault: no {'prompt' if call.event == 'UserPromptSubmit' else 'payload'} on stdin")
        return "no payload"
    if call.event == "SessionStart":
        token_budget = int(options.get("--token-budget", "-1"))
        if named == "SessionStart":
            return _session_start(hook, call, settings, raw, token_budget)
        hook.more_to_come = True  # This host's first prompt is its start of the session, too.
        result = _session_start(hook, call, settings, raw, token_budget)
        hook.more_to_come = False
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
    """The module that knows how `host` asks and wants to be answered; `--host` chooses. Raises ValueError."""
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


def say(line: str) -> None:
    """One line on standard error, where the user can find it and the model cannot."""
    try:
        os.write(2, (line + "\n").encode("utf-8", "replace"))
    except OSError:
        return


def _settings(hook: Hook, env: Mapping[str, str]) -> Mapping[str, str]:
    settings = read_snapshot(env)
    if settings is not None:
        return settings
    # The slow way, once after a change: the TOML parser and its company cost more than everything else here.
    if hook.call is not None and hook.call.event not in BUDGET_SECONDS:
        hook.deadline += COMPILE_SECONDS
    from ..vault.settings import load_settings, snapshot_values

    stamp = config_stamp(env)
    values = snapshot_values(load_settings(env))
    if values["enabled"] == "1":  # Switched off means that nothing is written, this included.
        try:
            write_snapshot(env, values, stamp)
        except OSError as error:
            hook.fields["snapshot"] = str(error)
    return values


def _session_start(hook: Hook, call: HookCall, settings: Mapping[str, str], raw: bytes, token_budget: int) -> str:
    from ..vault.project import project_of
    from .held import forget_injected, is_first, sweep
    from .session_start import opening

    harness, run_folder = settings["harness"], f"{settings['state']}/run"
    try:
        refused = _mark(hook, call, settings)
        if not is_first(run_folder, call.event, call.session, call.moment, raw):
            return "duplicate"
        if call.session:
            forget_end(harness, call.session)
        if call.session and call.source in ("compact", "clear"):
            forget_injected(harness, call.session)
    except OSError as error:
        refused = _unwritable(hook, error)
    if not hook.adapter.ANSWERS:
        _start_processes(hook, call, settings, worker=True, service=False)
        sweep(run_folder)
        return refused or "ok"
    if token_budget < 0:
        token_budget = int(settings["always_load_token_budget"])
    reading_until = hook.started + hook.budget * (0.35 if hook.more_to_come else 0.7)
    told = opening(
        settings["vault"],
        harness,
        call.session,
        project_of(call.cwd),
        token_budget,
        reading_until,
        hand_in=hook.take,
        auto_memory=settings.get("auto_memory") != "0",
        held=lambda folder: (
            hook.adapter is claude and claude.loads_itself(folder, call.transcript, settings["claude_config_dir"])
        ),
    )
    hook.take(told.text + "\n" if told.text else "", told.paths)
    _print(hook, "")
    if told.note:
        say(f"memoryvault: {told.note}")
    say(told.status)
    hook.fields["injected"] = told.entries
    try:
        _note_injected(hook, call)
    except OSError as error:
        refused = _unwritable(hook, error)
    _start_processes(hook, call, settings, worker=True, service=True)
    sweep(run_folder)
    return refused or told.note or "ok"


def _prompt(hook: Hook, call: HookCall, settings: Mapping[str, str], raw: bytes) -> str:
    from .held import is_first

    if call.host == "antigravity":
        transcript = hook.adapter.transcript_of(call, settings["transcript_roots"].split(os.pathsep))
        call.prompt = hook.adapter.prompt_of(transcript) if transcript else ""
    if not call.prompt.strip():
        _print(hook, "")
        say("memoryvault: no prompt on stdin")
        return "no prompt"
    try:
        refused = _mark(hook, call, settings)
        if not is_first(f"{settings['state']}/run", call.event, call.session, call.moment, raw):
            return "duplicate"
    except OSError as error:
        refused = _unwritable(hook, error)
    question = hook.adapter.question(call.prompt)
    if not question or not hook.adapter.ANSWERS:
        _print(hook, "")
        return refused or "ok"
    from .recall import recall

    # A smaller budget on the command line shortens every wait by moving the start back.
    told = recall(question, call, settings, hook.started - max(BUDGET_SECONDS[call.event] - hook.budget, 0.0))
    _print(hook, f"{told.block.rstrip()}\n\n{told.status}\n" if told.paths else "")
    hook.paths += told.paths  # After it was said: what the watchdog cuts off is not taken for held.
    if told.note:
        say(f"memoryvault: {told.note}")
    say(told.status)
    hook.fields["injected"] = len(told.paths)
    hook.fields["service"] = told.service
    if told.note:
        hook.fields["degraded"] = told.note
    if told.service != "ok":
        from .receipt import leave_receipt

        leave_receipt(settings["log_file"], question, call.session, told, (time.monotonic() - hook.started) * 1000)
    try:
        _note_injected(hook, call)
    except OSError as error:
        refused = _unwritable(hook, error)
    if time.monotonic() < hook.started + START_BY_SECONDS:
        _start_processes(hook, call, settings, worker=True, service=told.service == "absent")
    return refused or "ok"


def _record(hook: Hook, call: HookCall, settings: Mapping[str, str], delay: float | None) -> str:
    """Stop and its kin: touch the marker, ask for the reflection `delay` seconds from now (None: at once)."""
    from .enqueue import enqueue_reflection, ring_worker

    if not call.session:
        say("memoryvault: no session_id on stdin")
        return "no session"
    try:
        refused = _mark(hook, call, settings)
    except OSError as error:
        refused = _unwritable(hook, error)
    if refused.startswith("transcript"):
        return refused
    if call.event == "SessionEnd" and not refused:
        note_end(settings["harness"], call.session)
    hook.delay = -1.0 if delay is None else delay
    outcome = enqueue_reflection(settings["queue_db"], settings["spool"], call.session, delay)
    hook.delay = None
    hook.fields["enqueued"] = outcome.where
    if outcome.why:
        hook.fields["why"] = outcome.why
        say(f"memoryvault: the queue cannot be reached, kept in the spool: {outcome.why}")
    if delay is None and not ring_worker(settings["wake_socket"]):
        _start_processes(hook, call, settings, worker=True, service=False)
    return refused or "ok"


def _mark(hook: Hook, call: HookCall, settings: Mapping[str, str]) -> str:
    """Write or touch the session's marker; '' or why it was refused. Raises OSError."""
    if not call.session:
        return "no session"
    transcript = hook.adapter.transcript_of(call, settings["transcript_roots"].split(os.pathsep))
    if transcript is None:
        hook.fields["transcript"] = call.transcript
        say(f"memoryvault: transcript refused, it is outside the agent's own folder: {call.transcript}")
        return "transcript refused"
    harness = settings["harness"]
    if touch_marker(harness, call.session):
        return ""
    if not transcript:  # The host has not said where it will be; one of the next events does.
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
        create_marker(harness, marker)
    except FileNotFoundError:  # The first hook ever for this vault.
        from ..vault.layout import StatePaths

        StatePaths(settings["state"]).ensure()
        create_marker(harness, marker)
    return ""


def _unwritable(hook: Hook, error: OSError) -> str:
    hook.fields["error"] = str(error)
    say(f"memoryvault: the state folder cannot be written: {error}")
    return "state not writable"


def _start_processes(hook: Hook, call: HookCall, settings: Mapping[str, str], *, worker: bool, service: bool) -> None:
    """Start what does not run, unless the settings forbid it. Never raises."""
    if settings["autostart"] != "1" or not settings["python"]:
        return
    from .ask import is_listening
    from .enqueue import ring_worker

    missing = []
    if worker and not ring_worker(settings["wake_socket"]):
        missing.append("worker")
    if service and not is_listening(settings["recall_socket"]):
        missing.append("serve")
    if not missing:
        return
    from .autostart import daemon_environment, start

    identity = {
        "MEMORY_CONFIG": settings["config"],
        "MEMORY_STATE_DIR": settings["state_root"],
        "MEMORY_VAULT_PATH": settings["vault"],
    }
    environment = daemon_environment(os.environ, identity, call.cwd)
    for command in missing:
        try:
            if start(command, settings["python"], f"{settings['state']}/run", environment):
                hook.fields["started"] = " ".join(missing)
        except OSError as error:
            hook.fields["start_failed"] = str(error)


def _print(hook: Hook, text: str) -> None:
    """Put `text` before the model as the host wants it, now or with what follows."""
    hook.said += text
    if hook.more_to_come or hook.call is None:
        return
    _answer(hook, hook.call)


def _answer(hook: Hook, call: HookCall) -> None:
    """Write what is to be said, unless the other thread is at it."""
    answer = hook.adapter.present(call.event, hook.said)
    if answer and hook.answering.acquire(blocking=False):
        _write(hook, answer)


def _silence(hook: Hook) -> None:
    """What the host wants of a hook that has said nothing, if it wants something."""
    if hook.adapter.SILENCE and hook.answering.acquire(blocking=False):
        _write(hook, hook.adapter.SILENCE)


def _note_injected(hook: Hook, call: HookCall) -> None:
    """Note what was said as what the session holds, so that it is not said again. Raises OSError."""
    from .held import add_injected

    paths, hook.paths = hook.paths, []
    if call.session and paths:
        add_injected(hook.settings["harness"], call.session, paths)


def _write(hook: Hook, text: str) -> None:
    """To standard output. A reader that went away or does not read is no error."""
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
    """`<event> [--host NAME] [--budget-ms N] [--token-budget N]`."""
    options: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        if word.startswith("--"):
            options[word] = next(words, "")
        else:
            options.setdefault("event", word)
    return options


def _hold_standard_streams() -> None:
    """A host may have closed a standard stream: the next file opened would take its number, and our text."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _watch(hook: Hook) -> None:
    """The net: end the process at its deadline, whatever the main thread is caught in."""
    late = 0.0
    while True:
        now = time.monotonic()
        left = hook.deadline - MARGIN_SECONDS - min(late, STARVED_MARGIN_SECONDS) - now
        if left <= 0:
            break
        nap = min(left, LOOK_SECONDS)
        time.sleep(nap)
        late = max(late / 2, time.monotonic() - now - nap)
    if hook.finished:
        return
    # The log's disk may be what we are waiting for, so another thread sees to the end. This one is awake: on a busy
    # machine each change of threads waits for a core.
    start_new_thread(_end_in, (LAST_WORDS_SECONDS if hook.delay is None else LAST_WORDS_OF_AN_ENQUEUE_SECONDS,))
    _last_words(hook)
    os._exit(0)


def _read_settings_at_last(hook: Hook) -> None:
    """A process that began so late that its time was over before it knew anything belongs into the log, too."""
    settings = hook.settings or read_snapshot(os.environ)
    if hook.settings or settings is None or settings["enabled"] != "1" or not settings["state"]:
        return
    if os.path.exists(f"{settings['harness']}/STOP"):
        return
    hook.settings = settings
    if hook.call is None:
        hook.call = hook.adapter.read_call(_options(hook.argv).get("event", ""), {})


def _end_in(seconds: float) -> NoReturn:
    time.sleep(seconds)
    os._exit(0)


def _last_words(hook: Hook) -> None:
    """Spool what was about to be enqueued, say what is there already and note it, then say and log that time is up."""
    _read_settings_at_last(hook)
    call = hook.call
    if hook.delay is not None and call is not None:
        from .enqueue import spool_reflection

        spool_reflection(hook.settings["spool"], call.session, None if hook.delay < 0 else hook.delay)
    if call is not None:
        _answer(hook, call)
    _silence(hook)
    if call is not None:
        try:
            _note_injected(hook, call)
        except OSError as error:
            hook.fields["error"] = str(error)
    say("memoryvault: time budget exceeded")
    hook.log("warning", "time budget exceeded")
