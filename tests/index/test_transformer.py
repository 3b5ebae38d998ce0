"""The layers that onnxruntime runs: their graphs, and matrices of 8 bits."""

from itertools import pairwise
from pathlib import Path

import numpy
import pytest

from memoryvault.index import transformer
from memoryvault.index.reading_model import (
    APART_WEIGHTS,
    END_PIECES,
    SECOND_APART_WEIGHTS,
    ApartHead,
    Window,
    surroundings,
)
from memoryvault.index.transformer import LAYERS_AT_ONCE, Array, Layers, packed_matrix

RANDOM = numpy.random.default_rng(1)


def weights(size: int) -> dict[str, Array]:
    """Random weights of some layers whose states have this size."""
    shapes: dict[str, tuple[int, ...]] = {
        "qkv": (3 * size, size),
        "out": (size, size),
        "up": (4 * size, size),
        "down": (size, 4 * size),
        "norm": (size,),
        "last_norm": (size,),
    }
    return {
        f"layers.{layer}.{part}.{kind}": RANDOM.normal(0, 0.1, shape if kind == "weight" else shape[0]).astype("f4")
        for layer in range(LAYERS_AT_ONCE)
        for part, shape in shapes.items()
        for kind in ("weight", "bias")
    }


def test_a_packed_matrix_differs_by_half_a_step_of_each_row() -> None:
    matrix = RANDOM.normal(0, 1, (4, 256)).astype("f4")
    matrix[1] = 0
    packed, scales = packed_matrix(matrix)
    assert (abs(packed.T * scales[:, None] - matrix) <= scales[:, None] / 2 + 1e-6).all()


@pytest.mark.model
@pytest.mark.parametrize(("size", "packed"), [(384, False), (768, True)])
def test_the_graphs_are_those_that_the_script_writes(
    size: int, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoryvault.training import encoder_graph

    encoder_graph.main(str(tmp_path))
    made = weights(size)
    x, bias = (RANDOM.normal(0, 1, shape).astype("f4") for shape in ((2, 7, size), (1, 1, 7, 7)))
    expected = Layers(made, 0, packed=packed)(x, bias)
    for name in ("GRAPH", "PACKED_GRAPH"):
        monkeypatch.setattr(transformer, name, tmp_path / getattr(transformer, name).name)
    assert (Layers(made, 0, packed=packed)(x, bias) == expected).all()


# By which states of the packaged model another's words are known


def window(*lengths: int) -> Window:
    """A message whose sentences have so many pieces."""
    ends = numpy.cumsum([1, *lengths]).tolist()
    return Window([0] * (ends[-1] + 2), ends[-1] - 1, list(pairwise(ends)))


def seen(lengths: tuple[int, ...], sentence: int) -> list[float]:
    """The mean place of the pieces in each part that is read of a sentence."""
    its = window(*lengths)
    states = numpy.repeat(numpy.arange(len(its.ids), dtype=numpy.float32)[:, None], 8, axis=1)
    return [float(part) for part in surroundings(states, its)[sentence].reshape(6, 8)[:, 0]]


def test_a_sentence_is_read_with_what_stands_before_and_after_it_and_by_its_ends() -> None:
    assert END_PIECES == 5
    # Pieces 1 to 4, 5 to 14 and 15 to 20: the sentence, before, after, all, its first and last five.
    assert seen((4, 10, 6), 1) == [9.5, 2.5, 17.5, 10.5, 7.0, 12.0]


def test_a_short_sentence_alone_has_nothing_around_it() -> None:
    assert seen((3,), 0) == [2.0, 0.0, 0.0, 2.0, 2.0, 2.0]


def test_the_packaged_weights_judge_each_sentence_by_the_lower_layers_too() -> None:
    its = window(4, 3)
    for weights, size in ((APART_WEIGHTS, 384), (SECOND_APART_WEIGHTS, 768)):
        assert ApartHead.load(weights)(numpy.ones((len(its.ids), 2 * size), numpy.float32), its).shape == (2, 1)
