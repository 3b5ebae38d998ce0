"""A prompt's notes and skills are looked for apart: a new vault has a few notes beside dozens of skills."""

import math
from collections.abc import Mapping
from contextlib import closing

import pytest

from memoryvault.hooks import search as subject
from memoryvault.index.matrix import Matrix
from memoryvault.index.scope import Scope
from memoryvault.index.search_reader import DENSE_LIMIT, SearchReader
from memoryvault.tests.index.bed import Bed, slugs

PROMPT = "install the dependencies of the frontend"


@pytest.fixture
def vault(bed: Bed) -> Bed:
    """Three notes, one of which answers, and more skills than are looked at that are about as near."""
    bed.write("personal-private/preferences/pnpm.md", "Use pnpm for the frontend.", kind="preferences")
    bed.write("personal-private/fix/tides.md", "Tides come in universal time.", kind="fix")
    bed.write("personal-private/fix/maps.md", "The map is grey over quota.", kind="fix")
    for number in range(DENSE_LIMIT + 10):
        own = " ".join(f"word{number}of{place}" for place in range(4))
        text = f"Set up and install the dependencies of {own} by yarn and npm."
        bed.write(f"personal-skills/toolbox--setup-{number}.md", text, kind="skill")
    bed.refresh()
    return bed


def test_a_note_has_its_place_however_many_skills_are_nearer(vault: Bed) -> None:
    shown = slugs(vault.recall(PROMPT, is_prompt=True))

    assert "pnpm" in shown
    assert len([slug for slug in shown if slug.startswith("toolbox--")]) <= 1
    assert not {"tides", "maps"} & set(shown)


def test_without_vectors_skills_do_not_come_along_with_a_note_either(bed: Bed) -> None:
    bed.write("personal-private/preferences/pnpm.md", "Use pnpm for the frontend.", kind="preferences")
    for number in range(4):
        bed.write(f"personal-skills/toolbox--setup-{number}.md", f"Build a frontend of kind{number}.", kind="skill")
    for number in range(10):
        bed.write(f"personal-private/fix/tides-{number}.md", f"Tides of harbour{number} are in local time.", kind="fix")
    bed.index()

    assert slugs(bed.recall("is it pnpm for the frontend?", dense=False, is_prompt=True)) == ["pnpm"]


def test_who_asks_is_given_skills_among_the_notes(vault: Bed) -> None:
    assert len([slug for slug in slugs(vault.recall(PROMPT)) if slug.startswith("toolbox--")]) > 1
    assert len(slugs(vault.recall(PROMPT, is_prompt=True, filter="kind=skill"))) > 1


@pytest.mark.parametrize("held", [False, True], ids=["in the file", "in memory"])
def test_the_nearest_of_a_kind_come_behind_the_others_with_a_limit_of_their_own(vault: Bed, held: bool) -> None:
    with closing(SearchReader(vault.index_db)) as reader:
        model = reader.find_model(vault.embedder.name)
        assert model is not None
        vector = vault.embedder.encode([PROMPT]).vectors[0].astype("<f4").tobytes()
        matrix = Matrix(reader.identity, model, 0)
        for passage, each in reader.iterate_vectors(model.model_id):
            matrix.add(passage, each)
        neighbours = matrix if held else None
        apart = reader.search_vectors(
            model.model_id, vector, Scope(all_projects=True), matrix=neighbours, separate_kind="skill"
        )
        among = reader.search_vectors(model.model_id, vector, Scope(all_projects=True), limit=1000, matrix=neighbours)
        kinds = {row.rowid: row.kind for row in reader.entries_by_rowid([hit.entry_rowid for hit in apart]).values()}
    assert [kinds[hit.entry_rowid] == "skill" for hit in apart] == [False] * 3 + [True] * DENSE_LIMIT
    skills = [hit.entry_rowid for hit in among if hit.entry_rowid in kinds and kinds[hit.entry_rowid] == "skill"]
    assert [hit.entry_rowid for hit in apart[3:]] == skills


def test_the_hook_weighs_a_note_by_what_is_beside_it_and_in_it(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.write("personal-private/preferences/pnpm.md", "Use pnpm for it.", kind="preferences", confidence="HIGH")
    bed.write("theirs/fact/pnpm.md", "They use pnpm.", kind="fact", project="theirs")
    for number in range(30):
        bed.write(f"personal-skills/toolbox--setup-{number}.md", f"Set up tool{number}.", kind="skill")
    bed.index()
    seen: list[Mapping[str, float]] = []

    def judged(gate: str, pair: Mapping[str, float]) -> float:
        seen.append(pair)
        return 0.0

    monkeypatch.setattr(subject, "log_odds", judged)

    subject.search(subject.FallbackQuery("pnpm", str(bed.vault), "mine", 3, set(), 1e12), bed.state.index_db)

    (pair,) = seen
    assert pair["vault"] == pytest.approx(math.log1p(1))
    assert pair["rule"] == pair["said_high"] == 1.0
    assert "fact" not in pair
