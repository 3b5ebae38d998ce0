"""How two statements are related, on 120 pairs: half chose the thresholds, half were held out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memoryvault.index.embedder import load_embedder
from memoryvault.pipelines.likeness import Relation, relation, wording_of

PAIRS = [line.split("\t") for line in (Path(__file__).parent / "data" / "statement_pairs.tsv").read_text().splitlines()]
"""Label, two statements, the cosine of their vectors. Every second of each label was kept back."""


def counted(held: bool, *, with_vectors: bool) -> Counter[tuple[str, str]]:
    """(label, answer) of one half."""
    found: Counter[tuple[str, str]] = Counter()
    for label in Relation:
        rows = [row for row in PAIRS if row[0] == label.name]
        for _, one, other, cosine in rows[held::2]:
            answer = relation(wording_of(one), wording_of(other), float(cosine) if with_vectors else None)
            found[label.name, answer.name] += 1
    return found


@pytest.mark.parametrize("held", [False, True])
def test_with_vectors_nothing_is_merged_wrongly_and_most_is_known(held: bool) -> None:
    found = counted(held, with_vectors=True)
    assert found["CONTRADICTS", "SAME"] == found["OTHER", "SAME"] == 0
    assert found["SAME", "SAME"] >= 12
    assert found["CONTRADICTS", "CONTRADICTS"] >= 18
    assert found["OTHER", "CONTRADICTS"] <= 1


@pytest.mark.parametrize("held", [False, True])
def test_without_vectors_contradictions_are_asked_about_and_little_is_merged(held: bool) -> None:
    found = counted(held, with_vectors=False)
    assert found["CONTRADICTS", "SAME"] == found["OTHER", "SAME"] == 0
    assert found["CONTRADICTS", "CONTRADICTS"] >= 17
    assert found["OTHER", "CONTRADICTS"] <= 2


@pytest.mark.parametrize(("_", "one", "other", "cosine"), PAIRS)
def test_the_order_of_the_two_does_not_matter(_: str, one: str, other: str, cosine: str) -> None:
    left, right = wording_of(one), wording_of(other)
    for given in (float(cosine), None):
        assert relation(left, right, given) is relation(right, left, given)


@pytest.mark.parametrize(("_", "one", "other", "cosine"), PAIRS)
def test_a_statement_is_the_same_as_itself(_: str, one: str, other: str, cosine: str) -> None:
    assert relation(wording_of(one), wording_of(one), None) is Relation.SAME
    assert relation(wording_of(other), wording_of(f"Please, {other.lower()}"), 1.0) is Relation.SAME


@pytest.mark.parametrize(
    ("one", "other", "cosine"),
    [
        ("Always use `bun` instead of `node`.", "Use bun, not node.", 0.93),
        ("staging is on port 8081", "the staging server listens on 8081", 0.87),
    ],
)
def test_marks_and_other_words_beside_an_equal_number_make_no_other_rule(one: str, other: str, cosine: float) -> None:
    assert relation(wording_of(one), wording_of(other), cosine) is Relation.SAME


@pytest.mark.parametrize(
    ("one", "other", "cosine"),
    [
        ("our deploy days are tuesday and thursday", "deploy days are monday and thursday from this month", 0.88),
        ("the staging db runs on port 5433", "staging db runs on port 5434 since the move", 0.9),
        ("we target python 3.9", "we target python 3.11 after the upgrade", 0.84),
    ],
)
def test_another_value_is_asked_about_though_words_were_added(one: str, other: str, cosine: float) -> None:
    assert relation(wording_of(one), wording_of(other), cosine) is Relation.CONTRADICTS
    assert relation(wording_of(other), wording_of(one), cosine) is Relation.CONTRADICTS


def test_what_only_refuses_one_word_is_not_replaced_by_all_that_speaks_of_it() -> None:
    one, other = "we don't need to commit", "keep each commit with working code please"
    assert relation(wording_of(one), wording_of(other), 0.5) is Relation.OTHER


@pytest.mark.slow
@pytest.mark.model
def test_the_cosines_in_the_file_are_those_of_the_packaged_model(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    embedder = load_embedder("all-MiniLM-L6-v2", models_folder=tmp_path)
    ones, others = (
        numpy.stack([numpy.frombuffer(vector, "<f4") for vector in embedder.encode([row[at] for row in PAIRS])])
        for at in (1, 2)
    )
    assert numpy.allclose((ones * others).sum(axis=1), [float(row[3]) for row in PAIRS], atol=0.01)
