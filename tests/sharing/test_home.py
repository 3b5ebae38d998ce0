"""The machine at home: what it lets out, what it takes back, and that it never waits in vain."""

from __future__ import annotations

import json
import os
import time
import zlib
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.runtime.settings import Settings
from memoryvault.services.corpus.backfill import plan_corpus
from memoryvault.services.mining import MiningRequest
from memoryvault.services.scrubbing import scrub_everything
from memoryvault.services.stores import vault_store
from memoryvault.tasks.postgres.content import SharedContent
from memoryvault.tasks.shared_queue import open_shared
from memoryvault.tasks.sharing.handlers import drop_old_contents
from memoryvault.tasks.sharing.judging import miner_version
from memoryvault.tasks.sharing.origin import GIVE_UP_SECONDS, MineLocally, Placement, ShareOrigin, Waiting
from memoryvault.tasks.sharing.packing import MAGIC, key_of, unbundle
from memoryvault.tasks.sharing.shares import ShareStore
from memoryvault.tests.corpus.sessions import grow, old_session
from memoryvault.tests.sharing.machines import RULE, SECRET, SESSIONS, Machine, Machines, Vault, url_of

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.usefixtures("forked_children")]


def outcome(picked: object, **more: object) -> bytes:
    """What another machine with the same miner says."""
    return json.dumps({"v": 1, "miner": miner_version(), "picked": picked, **more}).encode()


@pytest.fixture
def other(machines: Machines) -> Machine:
    """Works for whoever asks."""
    return machines.make("other")


def send(machines: Machines) -> tuple[Machine, str]:
    """A machine that has shared its sessions, and the key of the content."""
    home = machines.home()
    assert home.run_own()["postponed"] >= SESSIONS
    ((key, put_by),) = machines.rows("SELECT key, put_by::text FROM content")
    assert put_by == "worker_of_home"
    return home, str(key)


def finish(home: Machine) -> Vault:
    """The vault once all that waits is due."""
    home.make_due()
    home.run_own()
    home.make_due()
    home.run_own()
    assert home.jobs("reflect.corpus") + home.jobs("corpus.settle") == 0
    assert home.jobs("reflect.corpus", "dead") == 0
    return home.notes()


def answer(machines: Machines, key: str, outcome: bytes) -> None:
    """As a worker may that obeys no rule."""
    args = json.dumps({"to": "home", "content": key})
    with psycopg.connect(machines.login("thief")) as conn:
        conn.execute("INSERT INTO outcome VALUES (%s, %s, 'thief', 0)", (key, outcome))
        conn.execute(
            "INSERT INTO job (kind, args, unique_key, run_at, created_at, place)"
            " VALUES ('share.result', %s, %s, 0, 0, 'home')",
            (args, f"share.result:{key}"),
        )


def shared(home: Machine) -> ShareStore:
    return ShareStore(home.loaded.state.state_db)


# ---- what leaves


def test_words_alone_leave_and_none_that_the_scrubber_knows(machines: Machines) -> None:
    home, key = send(machines)
    ((data,),) = machines.rows("SELECT data FROM content")
    assert isinstance(data, bytes)
    readings = [zlib.decompress(reading).decode() for reading in unbundle(data)]
    assert len(readings) == SESSIONS
    assert any(RULE in reading for reading in readings)
    sessions = [path.stem for path in home.projects.rglob("*.jsonl")]
    for hidden in (SECRET, "rosalind", "shop/main", "/home/dev", *sessions):
        assert not any(hidden in reading for reading in readings)
    ((args,),) = machines.rows("SELECT args FROM job")
    assert json.loads(str(args)) == {"content": key, "home": "home"}


@pytest.mark.parametrize("share", ["", "another,payroll"])
def test_without_consent_to_its_project_nothing_leaves(machines: Machines, alone: Vault, share: str) -> None:
    home = machines.home(share=share, url=url_of(machines.conninfo))  # Whoever comes as the owner makes the tables.
    assert home.json("reflect", "corpus")["may_leave"] == 0
    home.run_own()
    assert machines.rows("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == [(0,)], "not reached"
    assert finish(home) == alone


def test_the_dry_run_says_how_many_leave(machines: Machines) -> None:
    home = machines.home(share="Shop")
    old_session(home.projects / "-srv-payroll", 50, RULE, at=time.time() - 86_400, cwd="/srv/payroll")
    assert home.json("reflect", "corpus")["may_leave"] == SESSIONS
    assert f"the words of {SESSIONS} of them leave this machine, scrubbed" in home.memory("reflect", "corpus")


def test_what_its_host_deletes_soon_is_mined_at_once(machines: Machines) -> None:
    home = machines.make("home", share="*", work=False)
    folder = home.projects / "-home-dev-shop"
    old_session(folder, 1, RULE, at=time.time() - 28.5 * 86_400)
    old_session(folder, 2, RULE, at=time.time() - 2 * 86_400)
    home.backfill()
    assert home.run_own()["done"] == 1
    assert [share.readings for share in shared(home).all()] == [1]


def test_with_a_model_everything_is_asked_from_here(machines: Machines) -> None:
    home = machines.home()
    config = home.root / "config.toml"
    config.write_text(config.read_text("utf-8") + '[reflection]\nminer = "claude"\n', "utf-8")
    assert "may_leave" not in home.json("reflect", "corpus")


# ---- when nothing comes back


def test_with_the_network_down_it_is_mined_at_once(machines: Machines, alone: Vault) -> None:
    home = machines.home(url="postgresql://nobody@/none?host=/nonexistent")
    outcomes = home.run_own()
    assert outcomes["done"] >= SESSIONS
    assert home.notes() == alone


def test_what_cannot_be_packed_is_mined_here(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    home = machines.make("home", share="*", work=False)
    old_session(home.projects / "-home-dev-shop", 1, RULE, at=time.time() - 2 * 86_400)
    home.backfill()
    monkeypatch.setenv("MEMORY_TEST_MODE", "1")
    monkeypatch.setenv("MEMORY_TEST_KILL_POINT", "share-mid-packing")  # Of every child that packs.
    assert home.run_own()["retried"] == 1
    assert any(RULE in text for text in finish(home).values())
    assert machines.rows("SELECT count(*) FROM content") == [(0,)]


def test_what_does_not_come_back_in_time_is_mined_here_and_a_late_answer_is_dropped(
    machines: Machines, alone: Vault, other: Machine
) -> None:
    home, key = send(machines)
    home.age_shares(24 * 3600.0 + 1)
    assert finish(home) == alone
    assert machines.rows("SELECT count(*) FROM content") == [(0,)]
    assert other.run_shared()["done"] == 1
    with open_shared(other.loaded) as ledger:
        assert not SharedContent(ledger).answer(key, "home", b"{}", "other")
    assert home.run_shared() == {}
    assert shared(home).all() == []
    assert home.notes() == alone


class Unreached:
    """An `open_shared` that reaches nothing, and counts."""

    def __init__(self) -> None:
        self.attempts = 0

    def __call__(self, settings: Settings) -> None:
        self.attempts += 1
        raise QueueUnavailable("it is away")


def asks_for(home: Machine, now: float) -> list[Placement]:
    """What is answered for each of what is away, by a worker that has just started."""
    origin = ShareOrigin(home.loaded, clock=lambda: now)
    found = []
    for share in shared(home).all():
        transcript = next(each for each in plan_corpus(home.loaded).to_mine if each.identity == share.identity)
        request = MiningRequest(str(transcript.path), transcript.host, share.start, share.start)
        found.append(origin.resolve_placement(transcript, request, poll=True))
    return found


def test_what_is_out_is_waited_for_for_an_hour_while_the_database_is_away_and_then_mined_here(
    machines: Machines, alone: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = send(machines)
    began, away = time.time(), Unreached()
    with monkeypatch.context() as patched:
        patched.setattr("memoryvault.tasks.sharing.origin.open_shared", away)
        for later in (60.0, 1800.0, 3600.0):
            assert {type(each) for each in asks_for(home, began + later)} == {Waiting}
        assert away.attempts == 3, "all of what is out learns from one attempt"
        assert {type(each) for each in asks_for(home, began + 60.0 + GIVE_UP_SECONDS)} == {MineLocally}
        assert away.attempts == 4, "nor is what is taken home asked for"
    assert finish(home) == alone


def test_a_database_that_was_reached_again_is_given_another_hour(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = send(machines)
    began = time.time()
    for later, reached in ((60.0, False), (3000.0, True), (3600.0, False), (7000.0, False)):
        with monkeypatch.context() as patched:
            if not reached:
                patched.setattr("memoryvault.tasks.sharing.origin.open_shared", Unreached())
            assert {type(each) for each in asks_for(home, began + later)} == {Waiting}


def test_several_contents_cost_one_attempt_in_a_minute(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    home, _ = send(machines)
    shares = shared(home)
    shares.put(replace(each, key=f"content {number}") for number, each in enumerate(shares.all()))
    began, away = time.time(), Unreached()
    monkeypatch.setattr("memoryvault.tasks.sharing.origin.open_shared", away)
    assert {type(each) for each in asks_for(home, began + 60.0)} == {Waiting}
    assert away.attempts == 1
    assert {type(each) for each in asks_for(home, began + 25 * 3600.0)} == {MineLocally}
    assert away.attempts == 2, "what is taken home is withdrawn later"


def drop_old(home: Machine) -> None:
    with open_shared(home.loaded) as ledger:
        drop_old_contents(home.loaded, ledger)


def test_words_that_no_share_waits_for_are_taken_back(machines: Machines) -> None:
    home, _ = send(machines)
    machines.rows("INSERT INTO content VALUES ('theirs', 'another', 'words', 1e9 + 0)")
    machines.rows("UPDATE content SET created_at = extract(epoch FROM now()) - 200")
    home.memory("reflect", "corpus", "--reset", "--execute")
    drop_old(home)
    assert len(machines.rows("SELECT key FROM content")) == 2, "it may just have been put there"
    machines.rows("UPDATE content SET created_at = extract(epoch FROM now()) - 400")
    drop_old(home)
    assert machines.rows("SELECT key FROM content") == [("theirs",)]


def test_words_that_are_waited_for_stay_until_consent_is_taken_back(machines: Machines, alone: Vault) -> None:
    home, key = send(machines)
    machines.rows("UPDATE content SET created_at = extract(epoch FROM now()) - 400")
    drop_old(home)
    assert machines.rows("SELECT key FROM content") == [(key,)]
    home.configure(url=home.loaded.queue.url, machine="home", share="", work=False)
    assert finish(home) == alone
    drop_old(home)
    assert machines.rows("SELECT key FROM content") == []


def test_an_answer_that_comes_after_it_was_mined_here_changes_nothing(
    machines: Machines, alone: Vault, other: Machine
) -> None:
    home, _ = send(machines)
    assert other.run_shared()["done"] == 1  # The answer is on its way.
    config = home.root / "config.toml"
    reachable = config.read_text("utf-8")
    home.configure(url="postgresql://nobody@/none?host=/nonexistent", machine="home", share="*", work=False)
    home.age_shares(24 * 3600.0 + 1)
    assert finish(home) == alone
    config.write_text(reachable, "utf-8")
    assert home.run_shared()["done"] == 1
    assert machines.rows("SELECT count(*) FROM content") == [(0,)]
    assert finish(home) == alone


@pytest.mark.parametrize("state", ["dead", "cancelled"])
def test_when_nobody_will_look_at_it_any_more_it_is_mined_here(machines: Machines, alone: Vault, state: str) -> None:
    home, _ = send(machines)
    machines.rows(f"UPDATE job SET state = '{state}'")
    home.age_shares(20)
    assert finish(home) == alone


def test_what_the_database_has_lost_is_mined_here(machines: Machines, alone: Vault) -> None:
    home, _ = send(machines)
    machines.rows("DELETE FROM content")
    machines.rows("DELETE FROM job")
    home.age_shares(20)
    assert finish(home) == alone
    assert machines.rows("SELECT count(*) FROM content") == [(0,)], "it is not offered anew"


def test_consent_that_is_taken_back_takes_back_what_is_away(machines: Machines, alone: Vault) -> None:
    home, _ = send(machines)
    home.configure(url=home.loaded.queue.url, machine="home", share="another", work=False)
    home.make_due()
    home.run_own()
    assert machines.rows("SELECT count(*) FROM content") == [(0,)]
    assert finish(home) == alone


def test_without_the_queue_it_goes_on_alone(machines: Machines, alone: Vault) -> None:
    home, _ = send(machines)
    home.configure()
    assert finish(home) == alone


def test_a_session_that_goes_on_meanwhile_is_mined_to_its_end(machines: Machines, other: Machine) -> None:
    home, _ = send(machines)
    path = next(path for path in home.projects.rglob("*.jsonl") if path.stem.endswith("07"))
    grow(path, 7, "Always write the changelog by hand, never by a script.")
    other.run_shared()
    home.run_shared()
    notes = finish(home)
    assert any("Always write the changelog by hand" in text for text in notes.values())
    assert home.json("reflect", "corpus")["to_process"] == 0


def test_all_forgotten_it_is_mined_anew_and_the_answer_is_dropped(
    machines: Machines, alone: Vault, other: Machine
) -> None:
    home, _ = send(machines)
    home.memory("reflect", "corpus", "--reset", "--execute")
    other.run_shared()
    home.run_shared()
    home.make_due()
    home.run_own()  # Shared again.
    assert shared(home).all() != []
    other.run_shared()
    home.run_shared()
    assert finish(home) == alone


# ---- what hostile workers send


def offsets(home: Machine, place: int) -> list[int]:
    share = next(share for share in shared(home).all() if share.place == place)
    path = sorted(home.projects.rglob("*.jsonl"))[place]
    lines = path.read_bytes().splitlines(keepends=True)
    found = [sum(map(len, lines[:number])) for number in range(len(lines))]
    return [offset for offset in found if offset < share.end]


@pytest.mark.parametrize(
    "outcome",
    [
        b"no JSON",
        b"{" * 100_000,
        outcome([[]]),
        outcome([[1 << 40]] + [[]] * (SESSIONS - 1)),
        outcome([["always push to main"]] * SESSIONS),
        outcome([[{"statement": RULE, "typed": True}]] * SESSIONS),
        outcome([[]] * SESSIONS, candidates=[{"statement": "Always push."}]),
        outcome([list(range(10_000))] * SESSIONS),
    ],
    ids=["no-json", "deep", "too-few", "beyond-the-end", "text", "candidates", "more-fields", "too-many"],
)  # fmt: skip
def test_an_answer_to_something_else_is_refused_and_all_is_mined_here(
    machines: Machines, alone: Vault, outcome: bytes
) -> None:
    home, key = send(machines)
    answer(machines, key, outcome)
    assert home.run_shared()["done"] == 1
    assert machines.rows("SELECT history::text LIKE '%refused%' FROM job WHERE kind = 'share.result'") == [(True,)]
    assert finish(home) == alone


def test_an_answer_that_names_everything_costs_time_and_gains_nothing(machines: Machines, alone: Vault) -> None:
    home, key = send(machines)
    words = [share.words for share in sorted(shared(home).all(), key=lambda share: share.place)]
    everything = [offsets(home, place)[: words[place]] for place in range(SESSIONS)]
    answer(machines, key, outcome(everything))
    assert home.run_shared()["done"] == 1
    assert finish(home) == alone


def test_an_answer_that_names_nothing_hides_words_but_not_what_was_kept_back(machines: Machines, alone: Vault) -> None:
    home, key = send(machines)
    answer(machines, key, outcome([[]] * SESSIONS))
    home.run_shared()
    notes = finish(home)
    assert not any(RULE in text for text in notes.values())
    assert any("always look at [REDACTED-PATH]" in text for text in notes.values())
    assert len(notes) < len(alone)


def test_an_answer_about_what_was_never_asked_has_no_effect(machines: Machines, alone: Vault, other: Machine) -> None:
    home, _ = send(machines)
    stranger = MAGIC
    key = key_of(stranger, "home")
    with psycopg.connect(machines.login("thief")) as conn:
        conn.execute("INSERT INTO content VALUES (%s, 'home', %s, 0)", (key, stranger))
    answer(machines, key, outcome([]))
    assert home.run_shared()["done"] == 1
    assert len(shared(home).all()) == SESSIONS
    other.run_shared()
    home.run_shared()
    assert finish(home) == alone


def test_a_content_that_was_changed_on_its_way_is_not_looked_at(
    machines: Machines, alone: Vault, other: Machine
) -> None:
    home, _ = send(machines)
    machines.rows("UPDATE content SET data = data || '\\x00'::bytea")
    assert other.run_shared() == {"dead": 1}
    home.age_shares(20)
    assert finish(home) == alone


def test_what_dies_here_of_another_machine_is_no_failure_of_this_worker(machines: Machines, other: Machine) -> None:
    data = b"MVW9"
    with open_shared(other.loaded) as ledger:
        SharedContent(ledger).put(key_of(data, "thief"), "thief", data)
    ran = other.run("service", "worker", "--until-idle", "--timeout", "60")
    assert machines.rows("SELECT state FROM job") == [("dead",)]
    assert (ran.returncode, ran.stdout.strip().split(", ")[-1]) == (0, "1 dead in the shared queue")


@pytest.mark.parametrize("data", [b"MVW9", MAGIC + b"\0\0\0\5hello", MAGIC + b"\xff\xff\xff\xffx"])
def test_a_content_of_anybody_does_the_worker_no_harm(machines: Machines, other: Machine, data: bytes) -> None:
    key = key_of(data, "thief")
    with open_shared(other.loaded) as ledger:
        SharedContent(ledger).put(key, "thief", data)
    assert other.run_shared() == {"dead": 1}
    assert other.notes() == {}


# ---- scrubbing again


def test_scrubbing_again_looks_at_what_is_away_and_takes_it_back(machines: Machines) -> None:
    home, _ = send(machines)
    settings = home.loaded
    assert scrub_everything(settings, vault_store(settings), apply=False) == []
    # As it was packed before a rule existed.
    line = json.dumps([0, "prompt", f"use {SECRET}", []]).encode() + b"\n"
    reading = zlib.compress(line)
    content = MAGIC + len(reading).to_bytes(4, "big") + reading
    with psycopg.connect(machines.login("home")) as conn:
        conn.execute("INSERT INTO content VALUES (%s, 'home', %s, 1e12)", (key_of(content, "home"), content))
    (found,) = scrub_everything(settings, vault_store(settings), apply=False)
    assert (found.where, dict(found.kinds), found.problem) == ("shared", {"API-KEY": 1}, None)
    assert machines.rows("SELECT count(*) FROM content") == [(2,)]
    scrub_everything(settings, vault_store(settings), apply=True)
    assert machines.rows("SELECT count(*) FROM content") == [(1,)]
    # Put there by the login that this machine had before.
    with psycopg.connect(machines.login("before")) as conn:
        conn.execute("INSERT INTO content VALUES (%s, 'home', %s, 1e12)", (key_of(content, "home"), content))
    (found,) = scrub_everything(settings, vault_store(settings), apply=True)
    assert "another login put it there" in str(found.problem)
    assert machines.rows("SELECT count(*) FROM content") == [(2,)]
    home.configure(url="postgresql://nobody@/none?host=/nonexistent", machine="home", share="*", work=False)
    (found,) = scrub_everything(home.loaded, vault_store(settings), apply=False)
    assert found.where == "shared"
    assert found.problem is not None


def test_nothing_it_keeps_of_what_is_away_looks_like_a_secret(machines: Machines) -> None:
    home, _ = send(machines)
    assert {path.name for path in Path(home.loaded.state.root).iterdir()} & {"corpus"} == set()
    assert home.run("vault", "scrub").returncode == 0
    assert "nothing was found" in home.memory("vault", "scrub")
    assert os.stat(home.loaded.state.state_db).st_mode & 0o77 == 0
