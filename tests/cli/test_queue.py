"""`memory jobs queue`, and what health and doctor tell of it: real processes over a real server."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoryvault.cli.context import Context
from memoryvault.cli.doctor import shared_queue
from memoryvault.cli.finding import Finding
from memoryvault.demo.sandbox import Sandbox
from memoryvault.runtime.settings_table import redacted
from memoryvault.tasks.postgres.schema import VERSION
from memoryvault.tests.sharing.machines import Machine, enrol, url_of
from memoryvault.tests.support.postgres import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

PASSWORD = "geheimnis-7"


@pytest.fixture
def owner(postgres: Cluster) -> str:
    """The address of a new database schema, logged in as its owner, with a password that is never asked for."""
    return url_of(postgres.conninfo()).replace("owner@", f"owner:{PASSWORD}@")


def machine(folder: Path, url: str, *, vault: bool = True) -> Machine:
    made = Machine(folder / "machine", {} if vault else {"MEMORY_VAULT_PATH": ""})
    configure(made, url=url)
    return made


def configure(desk: Machine, **queue: object) -> None:
    desk.configure(machine="desk", **queue)
    (desk.root / "config.toml").chmod(0o600)


def finding(desk: Machine) -> Finding:
    """The doctor's line."""
    return shared_queue(Context(desk.environment))


def with_role(owner: str, name: str) -> str:
    """The address for a role that is a member of the workers'."""
    enrol(owner, name)
    return owner.replace("//owner:", f"//{name}:")


def test_a_queue_is_set_up_and_looked_at(tmp_path: Path, owner: str) -> None:
    desk = machine(tmp_path, owner)
    before = desk.run("jobs", "queue")
    assert before.returncode == 1
    assert "`memory jobs queue migrate`" in before.stdout
    assert f"schema {VERSION}\n" in desk.memory("jobs", "queue", "migrate")
    worker = with_role(owner, "worker_of_desk")
    configure(desk, url=worker, share="shop", work=False)
    told = desk.memory("jobs", "queue")
    assert "role         worker_of_desk\n" in told
    assert "this machine desk; shares shop; does not work for others" in told
    found = desk.json("jobs", "queue")
    assert (found["jobs"], found["workers"], found["rights"]["owns"]) == ([], [], False)
    refused = desk.run("jobs", "queue", "migrate")
    assert refused.returncode == 1
    assert (
        refused.stderr
        == "memory: the role worker_of_desk may not make tables there: `memory jobs queue migrate --as OWNER`\n"
    )
    assert "nothing to do" in desk.memory("jobs", "queue", "migrate", "--as", "owner")


def test_no_command_shows_the_password(tmp_path: Path, owner: str) -> None:
    desk = machine(tmp_path, owner)
    desk.memory("jobs", "queue", "migrate")
    said = [desk.run(*command.split()) for command in ("config", "--json", "queue", "queue --json")]
    assert PASSWORD not in str(finding(desk))
    configure(desk, url=owner.replace("host=%2F", "host=%2Fnowhere"))
    said += [desk.run(*command.split()) for command in ("queue", "queue migrate", "health")]
    assert PASSWORD not in str(finding(desk))
    configure(desk, url=f"http://me:{PASSWORD}@db.example/queue")
    said += [desk.run("config", "show")]
    for done in said:
        assert PASSWORD not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert "owner:***@" in said[0].stdout
    files = [path for path in (desk.root / "state").rglob("*") if path.is_file()]
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me@db.example/queue", "postgresql://me@db.example/queue"),
        ("postgresql://me:a@b:c/d@db.example/queue", "postgresql://me:***@db.example/queue"),
        ("postgresql://db.example/q?user=me&password=x%40y&sslmode=require",
         "postgresql://db.example/q?user=me&password=***&sslmode=require"),
        ("", ""),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert redacted(address) == shown


def test_without_a_shared_queue_the_command_says_so_in_a_line(tmp_path: Path) -> None:
    desk = machine(tmp_path, "")
    done = desk.run("jobs", "queue")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("memory: no queue is shared: queue.url is not set")
    assert desk.run("jobs", "queue", "status", "--as", "me").returncode == 2


def test_a_database_that_is_away_is_no_fault_of_this_machine(tmp_path: Path, owner: str) -> None:
    desk = machine(tmp_path, owner.replace("host=%2F", "host=%2Fnowhere"))
    done = desk.run("jobs", "queue")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("memory: the shared queue cannot be reached: ")
    assert finding(desk).grade == "note"
    desk.memory("service", "worker", "--until-idle")
    shared = desk.json("health")["shared_queue"]
    assert shared["reached"] is False
    assert shared["why"].startswith("the shared queue cannot be used: ")


def test_a_password_in_a_file_that_others_may_read_is_a_fault(tmp_path: Path, owner: str) -> None:
    desk = machine(tmp_path, owner)
    desk.memory("jobs", "queue", "migrate")
    assert finding(desk).grade == "note", "the role may do everything"
    (desk.root / "config.toml").chmod(0o644)
    assert finding(desk).grade == "fault"


def test_a_machine_without_a_vault_works_for_others(tmp_path: Path, owner: str) -> None:
    machine(tmp_path / "owner", owner).memory("jobs", "queue", "migrate")
    helper = machine(tmp_path, with_role(owner, "worker_of_helper"), vault=False)
    process = subprocess.Popen(
        [sys.executable, "-m", "memoryvault", "service", "worker"], env=helper.environment, cwd="/"
    )
    try:
        until = time.monotonic() + 30
        while not helper.json("jobs", "queue")["workers"]:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert PASSWORD not in Path(f"/proc/{process.pid}/environ").read_text()
        assert helper.json("health")["shared_queue"]["reached"] is True
        assert helper.json("health")["warnings"] == []
        found = helper.run("doctor")
        assert found.returncode == 0, found.stdout
    finally:
        process.terminate()
        ended = process.wait(20)
    assert ended == 0
    assert helper.json("jobs", "queue")["workers"] == []
    assert [path.name for path in (helper.root / "state").iterdir() if (path / "harness").is_dir()] == [
        "works-for-others"
    ]


def test_without_the_client_library_all_else_goes_on(tmp_path: Path, owner: str) -> None:
    desk = machine(tmp_path, owner)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys; sys.modules['psycopg'] = None\n")
    env = {"PYTHONPATH": str(hidden)}
    done = Sandbox.run(desk, "jobs", "queue", env=env)  # From nothing: what is forked has the library.
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "memory: queue.url is set, but psycopg is not installed: "
        "install the wheel again with [shared] (docs/how-to/install.md)\n"
    )
    assert Sandbox.run(desk, "service", "worker", "--until-idle", env=env).returncode == 0
    assert "psycopg is not installed" in (desk.state / "log" / "memoryvault.log").read_text()
