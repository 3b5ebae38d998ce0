"""The layers that onnxruntime runs: their graphs, and matrices of 8 bits."""

from pathlib import Path

import numpy
import pytest

from memoryvault.index import transformer
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
