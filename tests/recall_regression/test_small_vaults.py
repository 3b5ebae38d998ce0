"""The first days: a few notes beside the skills of a machine, on the real model (docs/benchmarks.md, small vaults)."""

from collections.abc import Mapping

import pytest

from memoryvault.bench.recall import Remembering
from memoryvault.bench.small import Tally, content, measure
from memoryvault.index.embedder import DEFAULT_MODEL, load_embedder

CONTENT = content()
VAULTS = {vault["name"]: vault for vault in CONTENT["vaults"]}


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Mapping[str, Tally]]:
    embedder = Remembering(load_embedder(DEFAULT_MODEL, models_folder=tmp_path_factory.mktemp("models")))
    return {size: measure(VAULTS["held out"], size, CONTENT["skills"], embedder) for size in (0, 8, 20)}


@pytest.mark.model
@pytest.mark.slow
def test_skills_are_no_noise_in_a_new_vault(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    for size, tallies in held_out.items():
        assert sum(tally.wrong_skills for tally in tallies.values()) <= 2, size


@pytest.mark.model
@pytest.mark.slow
def test_what_a_skill_is_for_still_brings_it(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    for tallies in held_out.values():
        assert tallies["skill"].right >= 15


@pytest.mark.model
@pytest.mark.slow
def test_the_few_notes_come_back_with_little_beside_them(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    assert held_out[8]["note"].right >= 3
    assert held_out[20]["note"].right >= 7
    assert sum(tally.wrong_notes for tally in held_out[8].values()) <= 4, "one in twenty prompts"
    assert sum(tally.wrong_notes for tally in held_out[20].values()) <= 8, "one in ten"


@pytest.mark.model
@pytest.mark.slow
def test_most_prompts_about_nothing_in_a_new_vault_get_nothing(held_out: Mapping[int, Mapping[str, Tally]]) -> None:
    assert held_out[0]["nothing"].noisy <= 2
    assert held_out[8]["nothing"].noisy <= 5
