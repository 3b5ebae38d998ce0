"""Word vectors (index/late_interaction.py) on vectors made by hand."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.index.late_interaction import WordVectors, match_texts, match_vectors, pack_words, pool_word_vectors
from memoryvault.index.query import analyse
from memoryvault.index.ranking import SAME_WORD_SIMILARITY

DIMENSION = 64
_MADE = numpy.random.default_rng(7)
AXES = {name: _MADE.standard_normal(DIMENSION).astype(numpy.float32) for name in ("install", "drink", "noise")}


def spoken(**meanings: str) -> WordVectors:
    rows = numpy.stack([AXES[meaning] / numpy.linalg.norm(AXES[meaning]) for meaning in meanings.values()])
    return WordVectors(tuple(meanings), rows)


def test_the_pieces_of_a_word_are_averaged_and_special_tokens_left_out() -> None:
    text = "the pnpm_lock"
    offsets = [(0, 0), (0, 3), (4, 6), (6, 8), (8, 9), (9, 13), (0, 0)]
    pieces = numpy.eye(7, 8, dtype=numpy.float32)

    found = pool_word_vectors(text, offsets, pieces)

    assert found.words == ("the", "pnpm", "lock")
    assert found.vectors[1] == pytest.approx(numpy.array([0, 0, 1, 1, 0, 0, 0, 0]) / 2**0.5)
    assert pool_word_vectors(text, offsets, pieces, skip=4).words == ("pnpm", "lock")


def test_words_that_the_model_did_not_read_are_left_out() -> None:
    found = pool_word_vectors("one two three", [(0, 0), (0, 3), (0, 0)], numpy.ones((3, 8), dtype=numpy.float32))

    assert found.words == ("one",)


def test_a_related_word_answers_without_being_shared() -> None:
    packed = {1: pack_words(spoken(pnpm="install")), 2: pack_words(spoken(coffee="drink"))}
    query = analyse("dependencies")

    found = match_vectors(query, spoken(dependencies="install"), packed)

    assert found[1].coverage == 0
    assert found[1].related > 0.7
    assert found[2].related < 0.35


def test_a_shared_word_that_is_meant_otherwise_says_less() -> None:
    packed = {1: pack_words(spoken(lock="install")), 2: pack_words(spoken(lock="drink"))}

    found = match_vectors(analyse("locks"), spoken(locks="install"), packed)

    assert found[1].coverage == found[2].coverage == 1
    assert found[1].same > 2 * found[2].same


def test_bytes_of_another_size_or_none_are_left_out() -> None:
    other = WordVectors(("pnpm",), numpy.ones((1, 32), dtype=numpy.float32))
    packed = {1: b"", 2: b"\x01\x02", 3: pack_words(other), 4: pack_words(spoken(pnpm="install"))[:-1]}

    assert match_vectors(analyse("pnpm"), spoken(pnpm="install"), packed) == {}


def test_stop_words_are_not_kept() -> None:
    assert len(pack_words(spoken(the="noise", pnpm="install"))) == len(pack_words(spoken(pnpm="install")))


def test_without_vectors_a_word_is_there_or_it_is_not() -> None:
    found = match_texts(analyse("deploying widgets"), {1: "We deploy each widget by hand", 2: "Nothing of it"})

    assert found[1].coverage == pytest.approx(1)
    assert found[1].same == pytest.approx(SAME_WORD_SIMILARITY)
    assert found[2].coverage == 0


@given(st.lists(st.sampled_from(sorted(AXES)), min_size=1, max_size=6))
def test_evidence_stays_within_its_bounds(meanings: list[str]) -> None:
    words = {f"word{number}": meaning for number, meaning in enumerate(meanings)}
    chunk = pack_words(spoken(word0="noise", other="drink"))

    (found,) = match_vectors(analyse(" ".join(words)), spoken(**words), {1: chunk}).values()

    assert -1e-6 <= found.related <= 1 + 1e-6
    assert -1 <= found.same <= 1 + 1e-6
    assert 0 <= found.coverage <= 1 + 1e-6
