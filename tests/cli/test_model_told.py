"""Commands name the model that answers, else the one that will, else why none can."""

import pytest

from memoryvault.cli.context import Context
from memoryvault.cli.doctor import CHECKS
from memoryvault.index.embedder import DEFAULT_MODEL
from memoryvault.runtime.settings import load_settings
from memoryvault.services.stores import open_index
from memoryvault.services.upgrading import ask_for
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.support.sandbox import Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("queue")]


def in_health(sandbox: Sandbox) -> str:
    (line,) = [line for line in sandbox.memory("health").splitlines() if line.startswith("index ")]
    return line.partition(", model ")[2]


@pytest.mark.model
def test_before_anything_is_embedded_the_model_that_will_be_used_is_named(sandbox: Sandbox) -> None:
    assert in_health(sandbox) == f"{DEFAULT_MODEL} (not used yet: nothing is embedded)"
    index = sandbox.json("health")["index"]
    assert (index["model"], index["model_to_use"], index["model_problem"]) == (None, DEFAULT_MODEL, None)
    assert f"{DEFAULT_MODEL}  answers once something is embedded  0" in sandbox.memory("config", "model")
    (row,) = sandbox.json("config", "model")["models"]
    assert (row["in_force"], row["installed"]) == (False, True)
    found = dict(CHECKS)["model"](Context(sandbox.environment))
    assert (found.grade, found.detail) == ("ok", f"{DEFAULT_MODEL}; sessions are read by the small model alone")


@pytest.mark.model
def test_the_model_that_answers_is_named_alone(sandbox: Sandbox) -> None:
    with open_index(load_settings(sandbox.environment)) as index:
        index.put_in_force(DEFAULT_MODEL)
    assert in_health(sandbox) == DEFAULT_MODEL
    assert sandbox.json("health")["index"]["model"] == DEFAULT_MODEL
    assert f"{DEFAULT_MODEL}  answers " in sandbox.memory("config", "model")


def test_where_no_model_can_be_loaded_it_is_said_why(sandbox: Sandbox) -> None:
    missing = sandbox.root / "no-such-model"
    (sandbox.root / "config.toml").write_text(f'[embedding]\nmodel = "{missing}"\n', "utf-8")
    why = f"embedding.model: there is no folder {missing}: put it back, or choose another (`memory config model use`)"
    assert in_health(sandbox) == f"none: {why}"
    index = sandbox.json("health")["index"]
    assert (index["model"], index["model_to_use"], index["model_problem"]) == (None, str(missing), why)
    assert f"{missing}  not on this machine" in sandbox.memory("config", "model")
    assert f"\n{why}\n" in sandbox.memory("init", "--yes", "--history-days", "0")


def test_a_model_that_is_wanted_and_gone_is_named_with_what_to_do(sandbox: Sandbox) -> None:
    gone = sandbox.root / "gone"
    (sandbox.root / "config.toml").write_text(f'[embedding]\nmodel = "{gone}"\n', "utf-8")
    with open_index(load_settings(sandbox.environment)) as index:
        index.put_in_force(DEFAULT_MODEL)
    assert f"{gone}  not on this machine" in sandbox.memory("config", "model")
    found = dict(CHECKS)["model"](Context(sandbox.environment))
    assert (found.grade, found.detail) == (
        "note",
        f"{DEFAULT_MODEL} still answers: embedding.model: there is no folder {gone}: put it back, or choose "
        "another (`memory config model use`)",
    )


def test_a_model_is_listed_from_the_moment_at_which_it_is_asked_for(sandbox: Sandbox) -> None:
    """While the worker loads it, it has no vector yet; the doctor points here."""
    folder = sandbox.root / "another"
    folder.mkdir()
    (folder / "config.json").write_text("{}", "utf-8")
    (sandbox.root / "config.toml").write_text(f'[embedding]\nmodel = "{folder}"\n', "utf-8")
    settings = load_settings(sandbox.environment)
    sandbox.memory("save", "fix", "pump", "--body", "The pump needs a new bearing.")
    sandbox.memory("vault", "reindex")
    with open_index(settings) as index:
        index.put_in_force(DEFAULT_MODEL)
    with open_ledger(settings) as ledger:
        ask_for(ledger, str(folder))
    (row,) = [line for line in sandbox.memory("config", "model").splitlines() if line.startswith(str(folder))]
    assert row.split()[1:] == ["is", "being", "prepared", "0", "of", "1", "-"]
