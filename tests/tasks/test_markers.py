"""The sweep enqueues sessions that are not mined, but not again and again those that cannot be."""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.sessions import OUTSIDE
from memoryvault.tasks.jobs.markers import recover_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.tasks.queue.job import Dead, Handler
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.tasks.test_worker import raising
from memoryvault.vault.marker import Marker, create_marker, marker_path

AN_HOUR = 3600.0


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    with open_ledger(settings) as ledger:
        yield ledger


def silent_session(settings: Settings, folder: Path, hours: float) -> Path:
    """A session that was not mined and gave no sign for so long."""
    transcript = folder / "-p" / "poison.jsonl"
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.write_text("{}\n", "utf-8")
    create_marker(settings.state.markers, Marker("poison", transcript=str(transcript), host="claude"))
    then = time.time() - hours * AN_HOUR
    for path in (str(transcript), marker_path(settings.state.markers, "poison")):
        os.utime(path, (then, then))
    return transcript


def run_one(ledger: Ledger, kind: str, handler: Handler) -> None:
    taken = ledger.take(lambda: "test", 30.0)
    assert taken is not None
    Executor(ledger, {kind: handler}, 30.0).run(taken)


def swept(ledger: Ledger, sweep: Handler) -> int:
    """Return how many sessions wait to be mined after a sweep."""
    ledger.enqueue("recover.orphans")
    run_one(ledger, "recover.orphans", sweep)
    return len(ledger.list_jobs(["queued"], kind="reflect.session"))


def test_a_session_whose_job_has_died_is_asked_for_again_when_it_goes_on(
    sandbox: Sandbox, settings: Settings, ledger: Ledger
) -> None:
    transcript, sweep = silent_session(settings, sandbox.projects, hours=3), partial(recover_handler, settings)
    assert swept(ledger, sweep) == 1
    run_one(ledger, "reflect.session", raising(Dead("the child was killed")))
    assert swept(ledger, sweep) == 0
    with ledger.transaction() as conn:
        conn.execute("UPDATE job SET finished_at = ? WHERE state = 'dead'", (time.time() - 2 * AN_HOUR,))
    assert swept(ledger, sweep) == 0
    then = time.time() - AN_HOUR
    os.utime(transcript, (then, then))
    assert swept(ledger, sweep) == 1


def test_sessions_of_a_folder_that_the_worker_does_not_know_wait_for_one_that_does(
    sandbox: Sandbox, settings: Settings, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """Two profiles of Claude Code, and a worker that was started without the second one's CLAUDE_CONFIG_DIR."""
    profile = sandbox.root / "home" / ".claude-work"
    transcript, sweep = silent_session(settings, profile / "projects", hours=3), partial(recover_handler, settings)
    ledger.enqueue("reflect.session", {"session": "poison"})  # By its own hook.
    run_one(ledger, "reflect.session", raising(Dead(OUTSIDE)))
    assert [swept(ledger, sweep) for _ in range(3)] == [0, 0, 0]
    (told,) = [record.getMessage() for record in caplog.records if record.name.endswith(".markers")]
    assert str(transcript.parent) in told
    knowing = load_settings({**sandbox.environment, "CLAUDE_CONFIG_DIR": str(profile)})
    assert swept(ledger, partial(recover_handler, knowing)) == 1
