"""Run each hook once, as an agent host does, with a trial session that is removed afterwards."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..hooks.install import EVENTS, launcher_in, write_launcher
from ..hooks.wiring import hook_argv
from ..runtime.errors import MemoryVaultError
from ..runtime.settings import Settings
from ..services.hook_log import TRIAL_SESSION, budget_ms
from ..tasks.queue.enqueue import open_ledger

TRIAL_SECONDS = 10.0
FALLBACK_PROMPT = "what do you know about how we release?"


@dataclass(frozen=True)
class HookTime:
    """The time of one hook as a whole process, in milliseconds."""

    event: str
    ms: float
    budget_ms: float
    failure: str = ""
    """The hook's message if it failed or could not read its input, else ''."""


def try_hooks(settings: Settings, env: Mapping[str, str], prompt: str | None = None) -> list[HookTime]:
    """Run every hook once; [] if hooks are switched off. Raises OSError if one cannot be started."""
    markers = Path(settings.state.markers)
    if not settings.memory.enabled or (markers / "STOP").exists():
        return []
    launcher = launcher_in(settings.state_root)
    write_launcher(launcher)  # With the plugin nothing else writes it.
    session = f"{TRIAL_SESSION}{secrets.token_hex(6)}"
    payload = {
        "session_id": session,
        # The file does not exist, so nothing is mined.
        "transcript_path": str(settings.session_folders["claude"] / "memory-init" / f"{session}.jsonl"),
        "cwd": str(settings.required_vault_path),
        "prompt_id": session,
    }
    own: dict[str, dict[str, str]] = {
        "SessionStart": {"source": "startup"},
        "UserPromptSubmit": {"prompt": prompt or FALLBACK_PROMPT},
        "SessionEnd": {"reason": "other"},
        "PreCompact": {"trigger": "auto"},
        "Notification": {"notification_type": "idle_prompt"},
    }
    times = []
    try:
        for event in EVENTS:
            body = json.dumps({**payload, "hook_event_name": event, **own.get(event, {})})
            started = time.perf_counter()
            failure = ""
            with suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    hook_argv(event, launcher),
                    input=body.encode(),
                    env=dict(env),
                    capture_output=True,
                    timeout=TRIAL_SECONDS,
                    check=False,
                )
                failure = next(filter(_is_failure, done.stderr.decode(errors="replace").splitlines()), "")
            ms = round((time.perf_counter() - started) * 1000, 1)
            times.append(HookTime(event, ms, budget_ms(event), failure.removeprefix("memoryvault: ")))
    finally:
        _forget(settings, session)
    return times


def _is_failure(line: str) -> bool:
    """Whether a line reports a failure (a hook that was switched off or ran out of time is none)."""
    return line.startswith("memoryvault: hook failed") or line.endswith(" on stdin")


def _forget(settings: Settings, session: str) -> None:
    """Remove the trial's markers and cancel its job; a job that already ran found nothing to mine."""
    with suppress(MemoryVaultError), open_ledger(settings) as ledger:
        for job in ledger.list_jobs(["queued"], kind="reflect.session", most=1000):
            if isinstance(job.args, dict) and job.args.get("session") == session:
                ledger.cancel(job.id, "a trial of the hooks")
    with suppress(OSError):
        for name in os.listdir(settings.state.markers):
            if session in name:
                (Path(settings.state.markers) / name).unlink(missing_ok=True)
