"""While the index is being filled, `memory recall` says how much of the vault it has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.index.store import IndexStore
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.index_backlog import Filling, filling_of
from memoryvault.services.stores import open_index
from memoryvault.tasks.queue.enqueue import enqueue

from ..support.files import put
from ..support.forked import ForkedSandbox
from .conftest import worker_seems_to_run

pytestmark = pytest.mark.slow

MODEL = "some-model"


@pytest.fixture
def sandbox(tmp_path: Path) -> ForkedSandbox:
    """Three notes in the index, none embedded; two more that are not there yet."""
    sandbox = ForkedSandbox(tmp_path)
    for number in range(3):
        sandbox.memory("save", "fix", f"kettle-{number}", "--body", f"The porcelain kettle {number} belongs upstairs.")
    sandbox.memory("service", "worker", "--until-idle")
    for number in range(2):
        put(sandbox.vault / f"personal-private/fix/teapot-{number}.md", f"It stays in the cellar, number {number}.\n")
    return sandbox


@pytest.fixture
def settings(sandbox: ForkedSandbox) -> Iterator[Settings]:
    """While a worker seems to run: without one recall brings the index in step by itself."""
    with worker_seems_to_run(sandbox):
        yield load_settings(sandbox.environment)


def embed(index: IndexStore, most: int) -> None:
    texts = index.pending_texts(MODEL, most)
    vectors = [b"\0\0\x80?" * 4] * len(texts)
    index.add_vectors(index.model_id(MODEL, 4), [text.text_hash for text in texts], vectors, [b""] * len(texts))


def test_recall_says_how_many_notes_are_indexed_while_it_is_walked(sandbox: ForkedSandbox, settings: Settings) -> None:
    enqueue(settings, "index.reconcile", unique_key="index.reconcile")
    done = sandbox.run("recall", "porcelain kettle")
    assert "kettle-0.md" in done.stdout
    assert "memory: the index is being filled: 3 of 5 notes" in done.stderr.splitlines()
    assert sandbox.json("recall", "porcelain kettle")["filling"] == {"done": 3, "total": 5, "of": "notes"}


@pytest.mark.model
def test_recall_says_how_many_passages_have_a_vector_until_all_do(sandbox: ForkedSandbox, settings: Settings) -> None:
    with open_index(settings) as index:
        embed(index, 1)
        assert filling_of(settings) == Filling(1, 3, "passages")
        told = "memory: the index is being filled: 1 of 3 passages can be found by meaning"
        assert told in sandbox.run("recall", "porcelain kettle").stderr.splitlines()
        embed(index, 2)
        index.put_in_force(MODEL)
    assert filling_of(settings) is None


def test_without_a_worker_the_index_is_brought_in_step_and_nothing_is_said(sandbox: ForkedSandbox) -> None:
    done = sandbox.run("recall", "teapot cellar")
    assert "teapot-0.md" in done.stdout
    assert "being filled" not in done.stderr
    assert sandbox.json("recall", "teapot cellar")["filling"] is None


def test_no_index_is_no_index_that_is_being_filled(sandbox: ForkedSandbox, settings: Settings) -> None:
    assert filling_of(settings) is None, "no walk is queued for the notes that are not there yet"
    Path(settings.state.index_db).unlink()
    assert filling_of(settings) is None
    assert sandbox.run("recall", "porcelain kettle").returncode == 0
