"""Vaults with fixed questions, on the real model: of coding memories, of replaced rules, of the first days.

Each question of `queries.json` names what must come back; what is only a goal (sideways, typos, prompts
about nothing) is held to the figures that were reached.
"""

import json
import time
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memoryvault.bench.recall import Remembering
from memoryvault.bench.small import Tally, content, measure
from memoryvault.hooks.search import FallbackQuery, search
from memoryvault.index.drain import drain, embed_with
from memoryvault.index.embedder import DEFAULT_MODEL, load_embedder
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.reconcile import reconcile
from memoryvault.index.store import IndexStore
from memoryvault.runtime.layout import StatePaths
from memoryvault.services.evolving import evolve
from memoryvault.services.journal import Journal
from memoryvault.tests.support.files import put_note
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import VaultStore

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


# Thirty rules and facts that their owner replaced, asked for in the words of the old one


REPLACED: list[tuple[str, str, str]] = json.loads((HERE / "replaced.json").read_text("utf-8"))


def test_a_replaced_rule_never_comes_instead_of_or_beside_the_one_in_force(tmp_path: Path) -> None:
    vault, state = tmp_path / "vault", StatePaths(str(tmp_path / "state"))
    state.ensure()
    store = VaultStore(vault, Path(state.vault_lock), date.today)
    journal = Journal(state, store)
    for number, (old, new, _) in enumerate(REPLACED):
        path = f"personal-private/convention/rule-{number}.md"
        put_note(vault, path, old, kind="convention", status="active")
        evolve(store, journal, path, Scrubbed(new), Scrubbed("changed"))
    embedder = load_embedder(DEFAULT_MODEL, models_folder=tmp_path)
    with IndexStore(Path(state.index_db)) as index:
        reconcile(index, vault, store.walk)
        drain(index, embed_with(embedder), model=embedder.name)
    engine = RecallEngine(Path(state.index_db), vault, embedder)
    by_meaning = by_words = 0
    for old, new, prompt in REPLACED:
        given = [hit.excerpt.strip() for hit in engine.recall(RecallQuery(prompt, is_prompt=True)).hits]
        asked = FallbackQuery(prompt, str(vault), "", 5, set(), time.monotonic() + 10)
        found = [hit.excerpt.strip() for hit in search(asked, str(state.index_db)).hits]
        assert old not in (*given, *found)
        by_meaning += new in given
        by_words += new in found
    engine.close()
    assert by_meaning >= 28
    assert by_words >= 25


# The first days: a few notes beside the skills of a machine (docs/benchmarks.md, small vaults)


CONTENT = content()
VAULTS = {vault["name"]: vault for vault in CONTENT["vaults"]}


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Mapping[str, Tally]]:
    embedder = Remembering(load_embedder(DEFAULT_MODEL, models_folder=tmp_path_factory.mktemp("models")))
    return {size: measure(VAULTS["held out"], size, CONTENT["skills"], embedder) for size in (0, 8, 20)}


@pytest.mark.slow
def test_skills_are_no_noise_in_a_new_vault(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    for size, tallies in held_out.items():
        assert sum(tally.wrong_skills for tally in tallies.values()) <= 2, size


@pytest.mark.slow
def test_what_a_skill_is_for_still_brings_it(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    for tallies in held_out.values():
        assert tallies["skill"].right >= 15


@pytest.mark.slow
def test_the_few_notes_come_back_with_little_beside_them(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    assert held_out[8]["note"].right >= 3
    assert held_out[20]["note"].right >= 7
    assert sum(tally.wrong_notes for tally in held_out[8].values()) <= 4, "one in twenty prompts"
    assert sum(tally.wrong_notes for tally in held_out[20].values()) <= 8, "one in ten"


@pytest.mark.slow
def test_most_prompts_about_nothing_in_a_new_vault_get_nothing(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    assert held_out[0]["nothing"].noisy <= 2
    assert held_out[8]["nothing"].noisy <= 5
