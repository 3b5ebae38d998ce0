"""The limits of the hooks that answer, with the real recall service under load: 300 and 500 ms, whatever goes on.

How many of twenty are answered within that depends on the machine, which may be busy with other things: see
`bench scale`. That none takes longer does not.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from memoryvault.bench.dead_disk import unanswered
from memoryvault.hooks.install import STUB
from memoryvault.index.client import RecallClient
from memoryvault.index.drain import drain, embed_with
from memoryvault.index.reconcile import reconcile
from memoryvault.index.store import IndexStore
from memoryvault.runtime.errors import ModelUnavailable
from memoryvault.runtime.layout import PROJECTS
from memoryvault.runtime.settings import compile_snapshot
from memoryvault.tasks.queue.enqueue import Spool
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.index.bed import ServiceProcess
from memoryvault.tests.support.fake_embedder import FakeEmbedder
from memoryvault.tests.tasks.support import wait_until
from memoryvault.vault.automemory import FOLDER, INDEX_NAME
from memoryvault.vault.marker import list_markers
from memoryvault.vault.store import VaultStore

from .support import Outcome, Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.alone]

AT_ONCE = 20
NOTES = 200
PROMPT_LIMIT_MS, START_LIMIT_MS = 300, 500
"""Since the process was started, by the hook's own clock."""
STARTING_LATE_MS = 25
"""What a hook whose interpreter got its first core only after its time was over takes to end."""
STARVED_MS = 200
"""How long a process may wait for a core to end itself on a machine that is busy with other things, too."""


@pytest.fixture
def served(sandbox: Sandbox) -> Iterator[Sandbox]:
    """Notes, indexed, and a service whose model takes 5 ms for a text."""
    for number in range(NOTES):
        sandbox.entry(f"personal-private/fix/note-{number}.md", f"The widget{number} needs flange{number % 9} aligned.")
    state = sandbox.state
    state.ensure()
    files = VaultStore(sandbox.vault, Path(state.vault_lock), date.today)
    with IndexStore(Path(state.index_db)) as store:
        reconcile(store, sandbox.vault, files.walk)
        drain(store, embed_with(FakeEmbedder()), model="fake")
    service = ServiceProcess(sandbox.vault, state, "--text-seconds", "0.005")
    try:
        service.wait_until_listening()
        yield sandbox
    finally:
        service.end()


def at_once(sandbox: Sandbox, event: str) -> list[Outcome]:
    def one(number: int) -> Outcome:
        prompt = f"how is widget{number} aligned to its flange{number % 9}?"
        payload = sandbox.payload(session_id=f"session-{number}", prompt=prompt, source="startup")
        return sandbox.run(event, payload)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, range(AT_ONCE)))


def overdue(sandbox: Sandbox, event: str, limit_ms: float) -> float:
    """Milliseconds by which the latest hook was late."""
    lines = [line for line in sandbox.log_lines() if line.get("hook") == event]
    return max(
        float(line["duration_ms"] - max(limit_ms, line.get("start_ms", 0.0) + STARTING_LATE_MS)) for line in lines
    )


def test_twenty_prompts_at_once_during_a_drain_keep_the_limit_and_say_what_was_late(served: Sandbox) -> None:
    stop = threading.Event()

    def work() -> None:
        with RecallClient(served.state.recall_socket) as client:
            while not stop.is_set():
                try:
                    client.embed([f"text {number} " + "word " * 100 for number in range(128)])
                except ModelUnavailable:
                    return

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.5)
    try:
        done = at_once(served, "UserPromptSubmit")
    finally:
        stop.set()
        thread.join()
    assert overdue(served, "UserPromptSubmit", PROMPT_LIMIT_MS) <= STARVED_MS
    lines = [line for line in served.log_lines() if line.get("hook") == "UserPromptSubmit"]
    answered = any(f"widget{number} needs" in outcome.stdout for number, outcome in enumerate(done))
    began_in_time = sum("start_ms" not in line for line in lines)
    assert answered or began_in_time < AT_ONCE / 4, "the machine gave some of the interpreters a core at once"
    for line in lines:
        cut_off = line["result"] == "time budget exceeded"
        assert cut_off or line["service"] == "ok" or line["degraded"], "an answer that is not the service's says why"


def test_twenty_sessions_that_start_at_once_keep_their_limit(served: Sandbox) -> None:
    for number in range(9):
        served.entry(f"personal-private/_always-load/rule-{number}.md", f"Align {number} as well. " * 3)
    served.entry("personal-private/_always-load/rule.md", "Always align the flange.")
    served.entry(f"{PROJECTS}/my-shop/{FOLDER}/{INDEX_NAME}", "- [Flanges](flanges.md): how they are aligned")
    done = at_once(served, "SessionStart")
    assert overdue(served, "SessionStart", START_LIMIT_MS) <= STARVED_MS
    assert any("how they are aligned" in outcome.stdout for outcome in done)
    assert any("Always align the flange." in outcome.stdout for outcome in done)


def test_on_a_disk_that_does_not_answer_a_prompt_gets_what_the_index_holds(served: Sandbox) -> None:
    file = served.vault / "personal-private/fix/note-7.md"
    with unanswered([file]):
        done = served.run("UserPromptSubmit", served.payload(prompt="how is widget7 aligned to its flange7?"))
    assert "The widget7 needs flange7 aligned." in done.stdout
    (line,) = [line for line in served.log_lines() if line.get("hook") == "UserPromptSubmit"]
    assert line["duration_ms"] <= PROMPT_LIMIT_MS + STARVED_MS
    assert line["degraded"] == "files-late"


def test_the_time_that_a_process_waited_for_its_first_line_counts(served: Sandbox) -> None:
    served.run("UserPromptSubmit", served.payload(prompt="what?"), prepare=lambda: time.sleep(0.2))
    (line,) = [line for line in served.log_lines() if line.get("hook") == "UserPromptSubmit"]
    assert line["duration_ms"] >= line["start_ms"] >= 190


def test_without_a_service_a_note_that_became_a_pipe_holds_up_nobody(served: Sandbox) -> None:
    with RecallClient(served.state.recall_socket) as client:
        client.stop()
    wait_until(lambda: not os.path.exists(served.state.recall_socket), "the service is gone")
    file = served.vault / "personal-private/fix/note-7.md"
    file.unlink()
    os.mkfifo(file)
    done = served.run("UserPromptSubmit", served.payload(prompt="how is widget7 aligned to its flange7?"))
    assert "note-7\n" not in done.stdout
    (line,) = [line for line in served.log_lines() if line.get("hook") == "UserPromptSubmit"]
    assert line["degraded"].startswith("recall service absent")
    assert line["duration_ms"] <= PROMPT_LIMIT_MS + STARVED_MS


SESSIONS_AT_ONCE, BUSY_PROCESSES = 200, 20
HOST_SECONDS = 5.0
"""How long a host waits for a hook before it kills it."""


def test_of_two_hundred_sessions_that_end_at_once_on_a_busy_machine_none_is_lost(sandbox: Sandbox) -> None:
    compile_snapshot(sandbox.env)
    sandbox.state.ensure()
    Ledger(sandbox.state.queue_db).close()
    payloads = []
    for number in range(SESSIONS_AT_ONCE):
        payloads.append(sandbox.root / f"payload-{number}.json")
        payloads[-1].write_text(json.dumps(sandbox.payload(session_id=f"session-{number}")))
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)]
    try:
        hooks = []
        for payload in payloads:
            with payload.open("rb") as stdin:
                argv = [sys.executable, "-I", "-S", str(STUB), "SessionEnd"]
                process = subprocess.Popen(argv, stdin=stdin, env=sandbox.env, stderr=subprocess.DEVNULL)
                hooks.append((process, time.monotonic()))
        for process, started in hooks:
            try:
                process.wait(max(0.0, started + HOST_SECONDS - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        for process in busy:
            process.kill()
            process.wait()
    with Ledger(sandbox.state.queue_db) as ledger:
        Spool(sandbox.state.spool, ledger).ingest()
        jobs = {job.unique_key for job in ledger.list_jobs(most=1000)}
    sessions = {f"session-{number}" for number in range(SESSIONS_AT_ONCE)}
    assert sessions - set(list_markers(sandbox.state.markers)) == set()
    assert {f"reflect.session:{session}" for session in sessions} - jobs == set()
