"""Commands where the vault is away, or something else is in its place."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.cli.vault_choice import empty_vault_notice, require_known
from memoryvault.runtime.errors import VaultUnavailable
from memoryvault.runtime.paths import require_folder
from memoryvault.runtime.settings import load_settings
from memoryvault.services.indexing import reconcile_now
from memoryvault.tasks.queue.enqueue import enqueue
from memoryvault.tests.support.files import put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.terminal import answered


@pytest.fixture
def sandbox(tmp_path: Path) -> ForkedSandbox:
    """With a job in its queue."""
    sandbox = ForkedSandbox(tmp_path)
    enqueue(load_settings(sandbox.environment), "index.reconcile", unique_key="index.reconcile")
    return sandbox


def test_the_state_folder_can_be_read_while_the_vault_is_away(sandbox: ForkedSandbox) -> None:
    sandbox.vault.rename(sandbox.root / "elsewhere")
    for command in ("jobs list", "jobs show 1", "jobs kinds", "jobs schedule", "jobs pause index.reconcile"):
        done = sandbox.run(*command.split(), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)
        assert f"the vault {sandbox.vault} is not there: mount it" in done.stderr
    assert sandbox.run("service", "logs").returncode == 0


def test_a_vault_that_never_existed_has_no_jobs(sandbox: ForkedSandbox) -> None:
    """Where its name is misspelt, say: no state folder is made for that."""
    line = sandbox.refused("jobs", "list", env={"MEMORY_VAULT_PATH": str(sandbox.root / "Obsidain")})
    assert "is not there: mount it" in line
    assert len(os.listdir(sandbox.root / "state")) == 1


def test_doctor_tests_what_it_can_while_the_vault_is_away(sandbox: ForkedSandbox) -> None:
    sandbox.vault.rename(sandbox.root / "elsewhere")
    found = sandbox.diagnosis()
    assert [what for what, finding in found.items() if finding["grade"] == "fault"] == ["vault"]
    assert {"permissions", "hooks", "worker", "queue"} <= found.keys()


def test_a_vault_that_is_a_file_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "vault").touch()
    with pytest.raises(VaultUnavailable, match=r"is a file, not a folder: move that away; .* `memory init --vault"):
        require_folder(tmp_path / "vault")
    for away in ("gone", "vault/MemoryVault"):
        with pytest.raises(VaultUnavailable, match="is not there: mount it"):
            require_folder(tmp_path / away)
    with pytest.raises(VaultUnavailable, match="cannot be looked into"):
        require_folder(tmp_path / ("x" * 300))


@pytest.mark.parametrize("named", ["vault", "vault/MemoryVault", "dangling"])
def test_init_says_what_stands_in_the_way_of_the_vault_before_it_asks(tmp_path: Path, named: str) -> None:
    sandbox = ForkedSandbox(tmp_path, {"MEMORY_VAULT_PATH": ""})
    (tmp_path / "vault").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "unmounted")
    line = sandbox.refused("init", "--yes", "--vault", str(tmp_path / named))
    assert line.startswith(f"memory: can't make the vault {tmp_path / named}: ")
    assert "not a folder; move that away, or name another place with --vault" in line
    assert not (tmp_path / "config.toml").exists()


@pytest.fixture
def known(tmp_path: Path) -> ForkedSandbox:
    sandbox = ForkedSandbox(tmp_path)
    put_note(sandbox.vault, "personal-private/fix/x.md", kind="fix")
    reconcile_now(load_settings(sandbox.environment))
    return sandbox


@pytest.mark.slow
def test_init_makes_no_empty_vault_in_the_place_of_one_that_is_not_mounted(known: ForkedSandbox) -> None:
    mounted = known.vault.rename(known.root / "elsewhere")
    for named in ([], ["--vault", str(known.vault)]):
        line = known.refused("init", *named)
        assert f"the vault {known.vault} is not there, and this machine knows 1 entry of it: mount its" in line
        assert f"(mkdir -p {known.vault})" in line
        assert not known.vault.exists()

    other = known.root / "other"
    done = known.run("init", "--yes", "--history-days", "0", "--vault", str(other), env={"MEMORY_VAULT_PATH": ""})
    assert done.returncode == 0, done.stderr
    assert other.is_dir()
    mounted.rename(known.vault)
    assert known.run("init", "--yes", "--history-days", "0").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("held", ["", ".Trash-1000", "lost+found"])
def test_init_asks_before_it_takes_an_empty_folder_for_a_vault_that_was_not(known: ForkedSandbox, held: str) -> None:
    """The place where a disk is mounted is there without the disk."""
    shutil.rmtree(known.vault)
    (known.vault / held).mkdir(parents=True)
    told = f"memory: the vault {known.vault} is empty, and this machine knows 1 entry of it: mount its disk"
    assert known.refused("init") == f"{told}, or add --yes to start a new vault in it\n"
    status, said = answered(known, ("init",), "n\n")
    assert status == 1
    assert f"{told}; going ahead starts a new vault in it\nGo ahead? [y/N]" in said
    assert not (known.root / "config.toml").exists()
    assert [path.name for path in known.vault.iterdir()] == ([held] if held else [])
    done = known.run("init", "--yes", "--history-days", "0")
    assert done.returncode == 0
    assert told in done.stderr, "said where nobody is asked, too"
    assert told not in known.run("init", "--yes", "--history-days", "0").stderr


def test_an_index_that_cannot_be_read_may_know_a_vault_that_is_away(tmp_path: Path) -> None:
    index_db = tmp_path / "index.db"
    require_known(tmp_path / "vault", index_db)
    index_db.write_text("no database " * 500)
    with pytest.raises(VaultUnavailable, match="knows entries of it"):
        require_known(tmp_path / "vault", index_db)
    require_known(tmp_path, index_db)
    (tmp_path / "vault").mkdir()
    assert "knows entries of it" in empty_vault_notice(tmp_path / "vault", index_db)
    assert empty_vault_notice(tmp_path, index_db) == ""


@pytest.mark.parametrize(
    "command", ["jobs list", "list", "save fix a --body b", "recall kettle", "service worker --until-idle"]
)
def test_a_state_folder_that_cannot_be_made_ends_every_command_in_one_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "state").touch()
    line = ForkedSandbox(tmp_path).refused(*command.split())
    assert f"({tmp_path / 'state'}: there is a file where a folder is wanted)" in line


def test_without_a_state_folder_init_asks_nothing_and_health_works(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    sandbox = ForkedSandbox(tmp_path)
    line = sandbox.refused("init", "--yes", "--vault", str(sandbox.vault))
    assert line.startswith("memory: can't make the state folder")
    assert line.endswith("name another place with MEMORY_STATE_DIR\n")
    assert "! the state folder" in sandbox.memory("health")


NOBODYS = "~nobody-of-that-name/x"
INDEX = ("skills index --path", "skills index --forget")
READING = ("reflect corpus --root", "reflect --session", "import migrate contextvault", *INDEX)


@pytest.mark.parametrize(
    ("command", "place"),
    [
        *((command, place) for command in READING for place in (NOBODYS, "/" + "x" * 300, "none")),
        ("init --yes --vault", NOBODYS),  # Another folder that is not there it makes.
    ],
)
def test_an_impossible_path_is_an_error_of_one_line(sandbox: ForkedSandbox, command: str, place: str) -> None:
    assert place.split("/")[0] in sandbox.refused(*command.split(), place, code=2)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("jobs show 99999999999999999999", "is not a job's number"),
        ("jobs list 3", "unrecognized arguments: 3"),
        ("jobs list --limit 0", "'0' is not a whole number of 1 or more"),
        ("jobs show x", "'x' is not a job's number"),
        ("jobs pause", "required: KIND"),
        ("jobs pause nope", "'nope' is none of"),
        ("jobs list --kind nope", "'nope' is none of"),
        ("jobs schedule list nightly", "it shows all of them"),
        ("service logs -n -5", "-n is a number of lines"),
    ],
)
def test_numbers_and_names_that_make_no_sense_are_bad_usage(sandbox: ForkedSandbox, command: str, why: str) -> None:
    assert why in sandbox.refused(*command.split(), code=2)


def test_more_jobs_than_there_can_be_are_all_of_them(sandbox: ForkedSandbox) -> None:
    assert len(sandbox.json("jobs", "list", "--limit", "9" * 30)) == 1


def test_a_list_of_jobs_says_that_there_are_more(sandbox: ForkedSandbox) -> None:
    for idea in ("a", "b"):
        enqueue(load_settings(sandbox.environment), "research.idea", {"slug": idea}, unique_key=f"research.idea:{idea}")
    told = sandbox.run("jobs", "list", "--limit", "2").stderr
    assert told == "memory: these are the newest 2; --limit N shows more\n"
    assert sandbox.run("jobs", "list").stderr == ""


def test_a_log_that_is_a_folder_is_named(sandbox: ForkedSandbox) -> None:
    log = sandbox.state / "log" / "memoryvault.log"
    log.mkdir(parents=True)
    assert sandbox.refused("service", "logs") == f"memory: the log {log} cannot be read: Is a directory; move it away\n"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("recall anything", 0, "nothing in the vault answers that"),
        ("vault topics list", 2, "belongs to no project: name one with --project"),
        ("vault topics list --project shop", 0, "shop has no topics"),
        ("skills index", 0, ""),
        ("skills index --path skills", 2, "give the whole path of skills"),
        ("import seed --dry-run", 2, "give the whole path of ."),
        ("reflect corpus --root sessions", 2, "give the whole path of sessions"),
        ("config model use ./mine --yes", 2, "give the whole path of mine"),
        ("init --vault notes --yes", 2, "give the whole path of notes"),
        ("list", 0, "no entries match"),
    ],
)
def test_commands_work_or_say_why_in_a_deleted_folder(sandbox: ForkedSandbox, line: str, code: int, said: str) -> None:
    gone = sandbox.root / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", sys.executable, "-m", "memoryvault", *line.split()],
        cwd=gone,
        env=sandbox.environment,
        capture_output=True,
        text=True,
        timeout=60 * patience(),
    )
    assert "Traceback" not in done.stderr
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
