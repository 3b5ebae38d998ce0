"""The layers of a BERT encoder, run by onnxruntime: for the packaged MiniLM, and the models that read messages.

onnxruntime takes 0.1 GB and starts in a fraction of a second; torch and transformers take 1.1 GB and seconds. A test
compares the results with those of sentence-transformers. numpy is imported with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

Array = NDArray[numpy.float32]
Weights = Mapping[str, Array]
"""By name: `layers.0.qkv.weight`."""

DIMENSION, HEADS = 384, 12
"""Of MiniLM; MPNet has as many heads, of another size."""
LAYERS_AT_ONCE = 3
GRAPH = Path(__file__).with_name("layers.onnx")
PACKED_GRAPH = Path(__file__).with_name("layers_8bit.onnx")
"""Of MPNet. Both graphs are written by training/encoder_graph.py."""
ONLY_ERRORS = 3
_EPSILON = numpy.float32(1e-12)


class Layers:
    """LAYERS_AT_ONCE layers of an encoder. Threads may share them."""

    def __init__(self, weights: Weights, first: int, *, packed: bool = False) -> None:
        """`first`: number of the first layer in the weights; `packed`: round the matrices to 8 bits, which takes a
        quarter of the memory and 0.4 of the time."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = ONLY_ERRORS
        options.enable_cpu_mem_arena = False  # It keeps memory and gains no time.
        # The session refers to these arrays, so they have to live as long.
        self._values = dict(_initializers(weights, first, packed))
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in self._values.values()]
        options.add_external_initializers(list(self._values), values)
        graph = PACKED_GRAPH if packed else GRAPH
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def __call__(self, x: Array, bias: Array) -> Array:
        """Return the output of the last of these layers, float32[texts, pieces, dimension], as `x`.

        `bias`: float32[1 or texts, 1 or HEADS, pieces, pieces], added to the attention of each piece to each.
        """
        found: Array = self._session.run(None, {"x": x, "bias": bias})[0]
        return found


def _initializers(weights: Weights, first: int, packed: bool) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield names and values of the graph's weights, as copies: `weights` may be a file that is to be closed."""
    for number in range(LAYERS_AT_ONCE):
        layer = f"layers.{first + number}"
        for part in ("qkv", "out", "up", "down"):
            matrix = weights[f"{layer}.{part}.weight"]
            if packed:
                yield from zip(
                    (f"{number}.{part}.packed", f"{number}.{part}.scales"), packed_matrix(matrix), strict=True
                )
            else:
                yield f"{number}.{part}.weight", numpy.ascontiguousarray(matrix.T)
            yield f"{number}.{part}.bias", numpy.array(weights[f"{layer}.{part}.bias"])
        for part in ("norm", "last_norm"):
            for kind in ("weight", "bias"):
                yield f"{number}.{part}.{kind}", numpy.array(weights[f"{layer}.{part}.{kind}"])


def packed_matrix(matrix: Array) -> tuple[NDArray[numpy.int8], Array]:
    """Round float32[outputs, inputs] to 8 bits. Return int8[inputs, outputs] and float32[outputs], the scales."""
    scales = numpy.abs(matrix).max(1) / numpy.float32(127)
    rounded = numpy.rint(matrix / numpy.maximum(scales, _EPSILON)[:, None]).astype(numpy.int8)
    return numpy.ascontiguousarray(rounded.T), scales


def linear(x: Array, weights: Weights, name: str) -> Array:
    """Return float32[rows, outputs] of float32[rows, inputs]."""
    result: Array = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return result


def layer_norm(x: Array, weights: Weights, name: str) -> Array:
    """Normalise each row to mean 0 and variance 1, then scale and shift it."""
    x = x - x.mean(-1, keepdims=True)
    x /= numpy.sqrt((x * x).mean(-1, keepdims=True) + _EPSILON)
    x *= weights[f"{name}.weight"]
    x += weights[f"{name}.bias"]
    return x
