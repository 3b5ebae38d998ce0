"""What a machine's role may do in the shared database, and what it may not: a stolen one is nobody's owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.tasks.postgres import rights, schema
from memoryvault.tasks.postgres.connection import Address
from memoryvault.tasks.postgres.content import KEPT_SECONDS, SharedContent
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tasks.postgres.loop import Turns
from memoryvault.tasks.postgres.status import set_up, status_of
from memoryvault.tasks.queue.kinds import SHARED_POLICIES
from memoryvault.tasks.queue.reconciler import Reconciler, Repaired
from memoryvault.tasks.sharing.judging import MAX_OUTCOME_BYTES
from memoryvault.tasks.sharing.packing import MAX_CONTENT_BYTES
from memoryvault.tests.support.postgres import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

LEASE_SECONDS = 30.0


@dataclass(frozen=True)
class Shared:
    """A database that its owner has set up, and two machines with a role each."""

    owner: str

    def url(self, role: str) -> str:
        return self.owner.replace("user=owner", f"user={role}")

    def ledger(self, role: str) -> PostgresLedger:
        return PostgresLedger(self.url(role), policies=SHARED_POLICIES, machine=role)

    def may(self, role: str, statement: str, *parameters: object) -> bool:
        """Whether the server lets the role do it."""
        with psycopg.connect(self.url(role), autocommit=True) as conn:
            try:
                conn.execute(statement.encode(), parameters)
            except psycopg.errors.InsufficientPrivilege:
                return False
        return True


@pytest.fixture
def shared(postgres: Cluster) -> Iterator[Shared]:
    owner = postgres.conninfo()
    assert set_up(owner).has_worker_role
    with psycopg.connect(owner, autocommit=True) as conn:
        for name in ("desk", "sofa", "stranger"):
            conn.execute(f"DROP ROLE IF EXISTS {name}".encode())
            conn.execute(f"CREATE ROLE {name} LOGIN".encode())
        conn.execute(f"GRANT {rights.ROLE} TO desk, sofa".encode())
        here = conn.execute("SELECT current_schema()").fetchone()
        assert here is not None
        conn.execute(f"GRANT USAGE ON SCHEMA {here[0]} TO stranger".encode())
        yield Shared(owner)
        for name in ("desk", "sofa", "stranger"):
            conn.execute(f"DROP OWNED BY {name}".encode())
            conn.execute(f"DROP ROLE {name}".encode())


def test_a_workers_role_has_all_that_a_worker_does(shared: Shared) -> None:
    with shared.ledger("desk") as desk, shared.ledger("sofa") as sofa:
        content = SharedContent(desk)
        assert content.put("k", "desk", b"words")
        desk.beat("desk:1:a", 1, "1.0")
        taken = sofa.take_doorbell(lambda: "sofa:1:a-1", LEASE_SECONDS)
        assert taken is not None
        claim = taken[1]
        assert sofa.heartbeat([claim], LEASE_SECONDS) == []
        assert sofa.release(claim)
        again = sofa.claim(claim.job_id, "sofa:1:a-2", LEASE_SECONDS)
        assert not hasattr(again, "reason")
        assert sofa.requeue_expired(all_held_elsewhere=True) == [claim.job_id]
        assert Reconciler(sofa, list).run() == Repaired(0, 0, 0)
        taken = sofa.take_doorbell(lambda: "sofa:1:a-3", LEASE_SECONDS)
        assert taken is not None
        assert SharedContent(sofa).fetch("k", "desk") == b"words"
        assert SharedContent(sofa).answer("k", "desk", b"places", "sofa")
        assert sofa.complete(taken[1])
        result = desk.take_doorbell(lambda: "desk:1:a-1", LEASE_SECONDS)
        assert result is not None
        assert content.outcome("k", "desk") == b"places"
        content.withdraw("k", "desk")
        assert desk.complete(result[1])
        assert desk.counts() == {"share.mine": {"done": 1}, "share.result": {"done": 1}}
        assert content.drop_old("desk", 60.0) == 0
        desk.forget_silent_workers(60.0)
        desk.forget_worker("desk:1:a")
        desk.prune(-1.0)
        assert desk.list() == []


def test_a_worker_tidies_up_what_nobody_ever_took(shared: Shared) -> None:
    with shared.ledger("desk") as desk:
        for key, home in (("old", "desk"), ("died", "desk"), ("new", "desk")):
            desk.enqueue("share.mine", {"content": key, "home": home}, unique_key=key)
        desk.enqueue("share.result", {"content": "old", "to": "former"}, unique_key="renamed")
        desk.ring_due()
        with psycopg.connect(shared.owner, autocommit=True) as conn:
            conn.execute("UPDATE job SET state = 'dead', finished_at = created_at WHERE unique_key = 'died'")
            conn.execute("UPDATE job SET created_at = created_at - %s WHERE unique_key <> 'new'", (KEPT_SECONDS + 60,))
        Turns(desk, Reconciler(desk, list), lambda: False, lambda ledger: None).tidy()
        assert [job.unique_key for job in desk.list()] == ["new"]
        # Doorbells are left of what is left alone.
        assert desk.read("SELECT unique_key FROM huey_task LEFT JOIN job ON job.id = job_id") == [("new",)]
        assert desk.claim(desk.list()[0].id, "desk:1:a-1", LEASE_SECONDS)
        assert desk.drop_stale(-1.0, 100) == 0, "what runs stays"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE job",
        "CREATE TABLE mine (id integer)",
        "ALTER TABLE job ADD COLUMN mine integer",
        "TRUNCATE job",
        "UPDATE job SET args = '{}'",
        "UPDATE job SET place = 'sofa'",
        "UPDATE job SET kind = 'share.result'",
        "UPDATE outcome SET data = ''",
        "DELETE FROM outcome",
        "UPDATE content SET home = 'sofa'",
        "UPDATE content SET put_by = 'sofa'",
        "INSERT INTO migration VALUES (99, 0)",
        "INSERT INTO kind_state VALUES ('share.mine', 0)",
        "SELECT * FROM huey_kv",
        "CREATE ROLE mine",
        "ALTER TABLE content DISABLE ROW LEVEL SECURITY",
        "SET ROLE owner",
        "COPY job TO PROGRAM 'true'",
    ],
)
def test_it_has_nothing_else(shared: Shared, statement: str) -> None:
    assert not shared.may("sofa", statement)


def test_what_came_back_is_read_by_nobody_but_the_machine_it_is_for(shared: Shared) -> None:
    with shared.ledger("desk") as desk, shared.ledger("sofa") as sofa:
        SharedContent(desk).put("k", "desk", b"words")
        SharedContent(sofa).answer("k", "desk", b"places", "sofa")
        assert SharedContent(sofa).outcome("k", "desk") is None
        assert sofa.read("SELECT * FROM outcome") == []
        assert SharedContent(desk).outcome("k", "desk") == b"places"


def test_words_are_gone_from_the_database_once_they_are_answered(shared: Shared) -> None:
    with shared.ledger("desk") as desk, shared.ledger("sofa") as sofa:
        SharedContent(desk).put("k", "desk", b"words")
        assert SharedContent(sofa).fetch("k", "desk") == b"words"
        assert SharedContent(sofa).answer("k", "desk", b"places", "sofa")
        assert desk.read("SELECT data FROM content") == [(b"",)]
        assert SharedContent(sofa).fetch("k", "desk") is None


def test_nobody_takes_away_what_another_machine_has_put_there(shared: Shared) -> None:
    with shared.ledger("desk") as desk, shared.ledger("sofa") as sofa:
        SharedContent(desk).put("k", "desk", b"words")
        assert not SharedContent(sofa).withdraw("k", "desk"), "and it is told that nothing was taken away"
        assert SharedContent(desk).fetch("k", "desk") == b"words"
        assert shared.may("sofa", "DELETE FROM content")
        assert SharedContent(desk).fetch("k", "desk") == b"words"
        assert not shared.may("sofa", "UPDATE content SET data = 'other words'")
        assert not shared.may("sofa", "INSERT INTO content VALUES ('l', 'desk', 'words', 0, 'desk')"), (
            "nor puts anything there in its name"
        )


def test_nothing_is_put_there_that_another_machine_could_not_hold(shared: Shared) -> None:
    with shared.ledger("desk") as desk, shared.ledger("sofa") as sofa:
        here, there = SharedContent(desk), SharedContent(sofa)
        assert here.put("k", "desk", b"x" * MAX_CONTENT_BYTES)
        with pytest.raises(psycopg.errors.CheckViolation):
            here.put("l", "desk", b"x" * (MAX_CONTENT_BYTES + 1))
        with pytest.raises(psycopg.errors.CheckViolation):
            there.answer("k", "desk", b"x" * (MAX_OUTCOME_BYTES + 1), "sofa")
        assert there.answer("k", "desk", b"x" * MAX_OUTCOME_BYTES, "sofa")
        with pytest.raises(psycopg.errors.CheckViolation):
            desk.read("UPDATE job SET error = repeat('x', 100000) RETURNING id")


def test_a_role_that_is_no_member_is_told_what_it_lacks(shared: Shared) -> None:
    with pytest.raises(QueueUnavailable, match="must be a member of memoryvault_worker"):
        shared.ledger("stranger")


def test_a_workers_role_does_not_migrate(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(QueueUnavailable, match="its owner runs `memory jobs queue migrate`"):
        shared.ledger("desk")


def test_to_set_up_twice_changes_nothing(shared: Shared) -> None:
    again = set_up(shared.owner)
    assert (again.reached, again.version) == ((), schema.VERSION)


def test_the_status_tells_whose_role_it_is(shared: Shared) -> None:
    owner, desk = status_of(shared.owner, "desk").rights, status_of(shared.url("desk"), "desk").rights
    assert owner is not None
    assert owner.superuser
    assert desk == rights.Rights("desk", works=True, owns=False, superuser=False)


# ---- the address


@pytest.fixture
def lookup() -> Callable[[str], dict[str, object]]:
    return lambda url: Address(url)._named


def test_a_server_elsewhere_must_show_a_certificate_unless_the_address_says_otherwise(
    lookup: Callable[[str], dict[str, object]],
) -> None:
    assert lookup("postgresql://me@db.example/queue")["sslmode"] == "verify-full"
    assert lookup("postgresql://me@10.0.0.1/queue")["sslmode"] == "verify-full"
    assert lookup("postgresql://me@db.example/queue?sslmode=require")["sslmode"] == "require"
    for near in ("postgresql:///queue", "postgresql://me@localhost/queue", "postgresql://[::1]/queue", "host=/run"):
        assert "sslmode" not in lookup(near)
    assert lookup("postgresql://localhost,db.example/queue")["sslmode"] == "verify-full"


def test_the_environment_has_no_say_in_where_it_leads(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGHOST": "10.9.9.9",
        "PGHOSTADDR": "10.9.9.9",
        "PGPORT": "1",
        "PGUSER": "nobody",
        "PGDATABASE": "nothing",
        "PGSSLMODE": "verify-full",
        "PGOPTIONS": "-c search_path=nowhere",
        "PGSERVICE": "none",
    }.items():
        monkeypatch.setenv(name, value)
    with Address(f"host={postgres.folder} user=owner dbname=postgres").connect("test") as conn:
        assert conn.execute("SELECT current_user::text, current_database()::text").fetchone() == ("owner", "postgres")


def test_what_cannot_be_read_as_an_address_is_not_quoted() -> None:
    with pytest.raises(QueueUnavailable) as caught:
        Address("postgresql://me:geheim%zznis@db.example/queue")
    assert "geheim" not in str(caught.value)
