"""Sandboxes that share a queue: each a machine with a home, a vault, a state folder and a config.toml of its own."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.corpus.backfill import enqueue_corpus, plan_corpus
from memoryvault.tasks.jobs.corpus_mining import corpus_handler
from memoryvault.tasks.jobs.corpus_settling import settle_handler
from memoryvault.tasks.postgres.status import set_up
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.tasks.queue.job import Handler
from memoryvault.tasks.queue.ledger import LedgerRules
from memoryvault.tasks.shared_queue import open_shared
from memoryvault.tasks.sharing.handlers import shared_handlers
from memoryvault.tests.corpus.sessions import old_session
from memoryvault.tests.support.forked import ForkedSandbox

IDLE = ("service", "worker", "--until-idle", "--timeout", "240")
RULE = "Remember: always run the linter before you commit, never after."
SECRET = "ghp_" + "vR9sKq2LzXw7TnBf4HcYp8Jd3MgEa6Uo1SiW"
SAID = (
    (RULE, "Thanks, that looks right."),
    ("No, use pnpm instead of npm for the shop.",),
    ("I'd rather have the report as a short table.", "What does the second test do?"),
    ("What do the thumbnails cost us?",),
    (f"The token is {SECRET}, and from now on always use it, never another.",),
    ("From now on always look at /Users/rosalind/shop/main.py first, never at the tests.",),
)
SESSIONS = 8

Vault = Mapping[str, str]
"""Every note with its text, but for the dashboard, which has a time of day of its own."""


def url_of(conninfo: str) -> str:
    """The same as an address, for a setting."""
    fields = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    query = "&".join(f"{name}={quote(fields[name], safe='')}" for name in ("host", "options") if name in fields)
    return f"postgresql://{fields['user']}@/{fields['dbname']}?{query}"


def enrol(owner: str, role: str) -> None:
    """Make a role that is a member of the workers', unless it is there; the queue is set up."""
    with psycopg.connect(owner, autocommit=True) as conn:
        if conn.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            conn.execute(f"CREATE ROLE {role} LOGIN IN ROLE memoryvault_worker".encode())


@dataclass
class Machine(ForkedSandbox):
    """One of several."""

    def configure(self, **queue: object) -> None:
        """Write config.toml with these settings of the section `queue`."""
        lines = [f"{name} = {json.dumps(value)}" for name, value in queue.items()]
        (self.root / "config.toml").write_text("\n".join(["[queue]", *lines, ""]), "utf-8")

    @property
    def loaded(self) -> Settings:
        """What its processes see."""
        return load_settings(self.environment)

    def backfill(self) -> None:
        """`memory reflect corpus --execute`."""
        enqueue_corpus(self.loaded, plan_corpus(self.loaded))

    def work(self, kill: str = "") -> int:
        """Let the worker do all that is due; its exit status. `kill`: where it is to be killed."""
        env = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill} if kill else {}
        return self.run(*IDLE, env=env).returncode

    def notes(self) -> Vault:
        """What is in its vault."""
        return {
            str(path.relative_to(self.vault)): path.read_text("utf-8")
            for path in self.vault.rglob("*.md")
            if path.name != "dashboard.md"
        }

    def jobs(self, kind: str, *states: str) -> int:
        """How many jobs of its own queue are in one of these states; not ended yet, if none is given."""
        with closing(sqlite3.connect(self.state / "queue.db")) as conn:
            rows = conn.execute("SELECT state, count(*) FROM job WHERE kind = ? GROUP BY state", (kind,)).fetchall()
        return sum(count for state, count in rows if state in (states or ("queued", "running")))

    def run_own(self) -> Counter[str]:
        """Run what is due of its own backfill in this process; how the attempts ended."""
        settings = self.loaded
        with open_ledger(settings) as own:
            handlers = {"reflect.corpus": corpus_handler(settings), "corpus.settle": settle_handler(settings)}
            return _run(own, handlers)

    def run_shared(self) -> Counter[str]:
        """Run what it may of the shared queue, likewise."""
        settings = self.loaded
        with open_ledger(settings) as own, open_shared(settings) as shared:
            return _run(shared, shared_handlers(settings, own, shared))

    def make_due(self) -> None:
        """As if what waits had waited long enough."""
        with open_ledger(self.loaded) as ledger, ledger.transaction() as conn:
            conn.execute("UPDATE job SET run_at = 0, rung_at = NULL WHERE state = 'queued'")

    def age_shares(self, seconds: float) -> None:
        """As if they had been shared that much earlier."""
        with closing(sqlite3.connect(self.state / "state.db")) as conn, conn:
            conn.execute(
                "UPDATE cursor SET value = json_set(value, '$.since', json_extract(value, '$.since') - ?)"
                " WHERE scan = 'corpus.shared'",
                (seconds,),
            )


def _run(ledger: LedgerRules, handlers: Mapping[str, Handler]) -> Counter[str]:
    executor = Executor(ledger, handlers, 30.0)
    ledger.ring_due()
    while (taken := ledger.take_doorbell(lambda: secrets.token_hex(8), 30.0)) is not None:
        executor.run(taken[1])
        ledger.ring_due()
    return executor.tally.outcomes


@dataclass
class Machines:
    """All of one test, and the database between them."""

    root: Path
    conninfo: str
    """As the owner of the tables: no machine logs in so, and what is found out in a test is found out so."""

    def login(self, name: str) -> str:
        """For libpq: as the role of this machine, which is a worker's and no more. The owner has set the queue up."""
        assert set_up(self.conninfo).has_worker_role
        role = f"worker_of_{name}"
        enrol(self.conninfo, role)
        return make_conninfo(self.conninfo, user=role)

    def make(self, name: str, **queue: object) -> Machine:
        """A machine that logs in by a role of its own; `url=""` for one that knows no other."""
        machine = Machine(self.root / name, {"MEMORY_QUEUE_LEASE_SECONDS": "2"})
        url = queue["url"] if "url" in queue else url_of(self.login(name))
        machine.configure(**{"machine": name, **queue, "url": url})
        machine.loaded.state.ensure()
        return machine

    def home(self, name: str = "home", **queue: object) -> Machine:
        """One that shares its old sessions and works for nobody."""
        machine = self.make(name, **{"share": "*", "work": False, **queue})
        fill(machine)
        machine.backfill()
        return machine

    def rows(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        """Of the shared database."""
        with psycopg.connect(self.conninfo, autocommit=True) as conn:
            cursor = conn.execute(sql.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def make_due(self) -> None:
        """As if what waits in the shared queue had waited long enough."""
        if self.rows("SELECT to_regclass('job')") != [(None,)]:
            self.rows("UPDATE job SET run_at = 0, rung_at = NULL WHERE state = 'queued'")

    def alone(self) -> Vault:
        """The vault of a machine that mines the same sessions without any other."""
        machine = self.make("alone", url="")
        fill(machine)
        machine.backfill()
        machine.run_own()
        return machine.notes()


def fill(machine: Machine, sessions: int = SESSIONS) -> list[Path]:
    """Old sessions that their host keeps for long yet; the same on each machine of a test."""
    at = time.time() // 86_400 * 86_400 - 3 * 86_400
    folder = machine.projects / "-home-dev-shop"
    return [old_session(folder, number, *SAID[number % len(SAID)], at=at) for number in range(1, sessions + 1)]
