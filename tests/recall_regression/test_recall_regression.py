"""A vault of coding memories with fixed questions, on the real model.

Each question of `queries.json` names what must come back; what is only a goal (sideways, typos, prompts
about nothing) is held to the figures that were reached.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryvault.index.drain import drain, embed_with
from memoryvault.index.embedder import DEFAULT_MODEL, load_embedder
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.reconcile import reconcile
from memoryvault.index.store import IndexStore

HERE = Path(__file__).parent
VAULT = HERE / "vault"
QUERIES: list[dict[str, Any]] = json.loads((HERE / "queries.json").read_text(encoding="utf-8"))["queries"]
ALWAYS = ("exact", "identifier", "deep", "duplicate", "project", "hidden")

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecallEngine]:
    folder = tmp_path_factory.mktemp("regression")
    embedder = load_embedder(DEFAULT_MODEL, models_folder=folder)
    paths = sorted(file.relative_to(VAULT).as_posix() for file in VAULT.rglob("*.md"))
    with IndexStore(folder / "index.db") as store:
        reconcile(store, VAULT, lambda: iter(paths))
        drain(store, embed_with(embedder), model=embedder.name)
    made = RecallEngine(folder / "index.db", VAULT, embedder)
    yield made
    made.close()


def fault(engine: RecallEngine, asked: dict[str, Any], *, floor: bool = True) -> str | None:
    """What is wrong with the answer, asked as a prompt hook asks; None when it is right."""
    project = asked.get("project")
    found = engine.recall(RecallQuery(asked["text"], k=5, project=project, apply_threshold=floor, is_prompt=True))
    assert not found.degraded
    slugs, paths = [hit.slug for hit in found.hits], [hit.path for hit in found.hits]
    if asked.get("nothing"):
        return f"injected {slugs}" if slugs else None
    if "expect" in asked and asked["expect"] not in slugs[: asked.get("within", 5)]:
        return f"{asked['expect']} is not among {slugs}"
    if "path" in asked and asked["path"] not in paths:
        return f"{asked['path']} is not among {paths}"
    if "excerpt" in asked and asked["excerpt"] not in found.hits[0].excerpt:
        return f"the excerpt does not say {asked['excerpt']!r}"
    shown = set(asked.get("never", ())) & set(paths)
    return f"{shown} must never appear" if shown else None


@pytest.mark.parametrize(
    "asked", [row for row in QUERIES if row["kind"] in ALWAYS], ids=lambda row: f"{row['kind']}: {row['text']}"
)
def test_it_comes_back(engine: RecallEngine, asked: dict[str, Any]) -> None:
    assert fault(engine, asked) is None


def faults(engine: RecallEngine, kind: str, *, floor: bool = True) -> list[str]:
    rows = [row for row in QUERIES if row["kind"] == kind]
    return [f"{row['text']}: {wrong}" for row in rows if (wrong := fault(engine, row, floor=floor))]


def test_a_question_without_a_shared_word_finds_its_memory(engine: RecallEngine) -> None:
    assert len(faults(engine, "sideways", floor=False)) <= 4
    # A prompt gets fewer of them unasked: what shares no word with it must be near to it.
    assert len(faults(engine, "sideways")) <= 12


def test_a_misspelt_question_finds_its_memory(engine: RecallEngine) -> None:
    assert len(faults(engine, "typo")) <= 1


def test_a_prompt_about_nothing_in_the_vault_injects_nothing(engine: RecallEngine) -> None:
    wrong = faults(engine, "unanswerable")
    assert len(wrong) <= 1, wrong
