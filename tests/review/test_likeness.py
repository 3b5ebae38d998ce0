"""How two statements are related. Figures: docs/benchmarks/likeness.md."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.bench.reflection import MODELS
from memoryvault.index.message_reader import load_second
from memoryvault.pipelines.likeness import Compared, Relation, relation, wording_of
from memoryvault.training.statements.data import labelled, read_lines

JUDGE = Path(__file__).parents[2] / "training" / "statements" / "examples" / "judge.jsonl"
TEXTS = st.text(max_size=80) | st.sampled_from([text for _, *pair in labelled(read_lines(JUDGE)[:20]) for text in pair])
COMPARED = st.none() | st.builds(
    Compared, st.floats(-1, 1), st.none() | st.lists(st.floats(-9, 9), min_size=3, max_size=3)
)


@given(TEXTS, TEXTS, COMPARED)
def test_the_order_of_the_two_does_not_matter(one: str, other: str, compared: Compared | None) -> None:
    left, right = wording_of(one), wording_of(other)
    assert relation(left, right, compared) is relation(right, left, compared)


@given(TEXTS, COMPARED)
def test_a_statement_is_the_same_as_itself(text: str, compared: Compared | None) -> None:
    assert relation(wording_of(text), wording_of(f"Please, {text.lower()}"), compared) is Relation.SAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("use sqlite for this", "do not use sqlite for this"),
        ("use pnpm, not npm", "use npm, not pnpm"),
        ("wrap lines at 80 characters", "wrap lines at 100 characters"),
        ("use MySQL for new databases and read replicas", "from now on, use PostgreSQL instead of MySQL"),
    ],
)
def test_a_negation_and_another_value_contradict_without_models(one: str, other: str) -> None:
    assert relation(wording_of(one), wording_of(other)) is Relation.CONTRADICTS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("run the tests before committing", "run the tests after committing"),
        ("run the tests before the linter", "run the linter before the tests"),
        ("see [[note-a]] for details", "see [[note-b]] for details"),
    ],
)
def test_words_alone_do_not_join_what_differs_in_substance(one: str, other: str) -> None:
    assert relation(wording_of(one), wording_of(other)) is not Relation.SAME


def test_words_alone_join_few_statements_wrongly() -> None:
    found = Counter(
        (name, relation(wording_of(one), wording_of(other))) for name, one, other in labelled(read_lines(JUDGE))
    )
    total = Counter(name for name, *_ in labelled(read_lines(JUDGE)))
    differ = ("contradicts", "other")
    assert sum(found[name, Relation.SAME] for name in differ) <= 0.03 * sum(total[name] for name in differ)
    assert found["near", Relation.SAME] >= 0.4 * total["near"]
    assert found["contradicts", Relation.CONTRADICTS] >= 0.25 * total["contradicts"]
    assert found["other", Relation.CONTRADICTS] <= 0.08 * total["other"]


@pytest.mark.slow
@pytest.mark.model
def test_the_second_model_knows_a_statement_in_other_words() -> None:
    second = load_second(MODELS)
    rows = labelled(read_lines(JUDGE)[:16])
    found = Counter((name, max(range(3), key=second.compare(one, [other])[0].__getitem__)) for name, one, other in rows)
    assert found["near", 0] + found["same", 0] >= 0.7 * 64
    assert found["contradicts", 1] >= 0.5 * 32
    assert second.compare("a", ["b", "c"]) == [second.compare(each, ["a"])[0] for each in "bc"]
