"""The layers of a BERT encoder in numpy, for the packaged MiniLM and the models that read messages.

They are forty lines, so that recall by meaning needs neither torch nor transformers: 1.1 GB less to install, and a
service that is just started answers seconds earlier. A test compares the results with those of sentence-transformers.
All arrays are float32. numpy is imported with this module.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy
from numpy.typing import NDArray

Array = NDArray[numpy.float32]
Weights = Mapping[str, Array]
"""By name, as in the file: `layers.0.qkv.weight`."""

DIMENSION, HEADS = 384, 12
"""Of MiniLM; MPNet has as many heads, of another size."""
_EPSILON = numpy.float32(1e-12)
_GELU_ROWS = 64
"""Rows that are computed at once: they stay in the processor's cache."""


def linear(x: Array, weights: Weights, name: str) -> Array:
    """Return float32[rows, outputs] of float32[rows, inputs].

    `….left` and `….right`, if the weights have them, are a change of the matrix: the product of two narrow ones.
    """
    result: Array = x @ weights[f"{name}.weight"].T
    if f"{name}.left" in weights:
        result += (x @ weights[f"{name}.right"].T) @ weights[f"{name}.left"].T
    result += weights[f"{name}.bias"]
    return result


def layer_norm(x: Array, weights: Weights, name: str) -> Array:
    """Normalise each row to mean 0 and variance 1, then scale and shift it."""
    x = x - x.mean(-1, keepdims=True)
    x /= numpy.sqrt((x * x).mean(-1, keepdims=True) + _EPSILON)
    x *= weights[f"{name}.weight"]
    x += weights[f"{name}.bias"]
    return x


def encoder_layer(
    x: Array, weights: Weights, name: str, texts: int, mask: NDArray[numpy.bool_] | None, bias: Array | None = None
) -> Array:
    """Apply the layer `name`.

    `x`: float32[texts * longest, dimension], all texts padded to the longest; `mask`: bool[texts, longest], False where
    a text is padded; None if none is; `bias`: float32[HEADS, longest, longest], added to the attention of each piece to
    each.
    """
    size = x.shape[1] // HEADS
    split = linear(x, weights, f"{name}.qkv").reshape(texts, -1, 3, HEADS, size)
    query, key, value = split.transpose(2, 0, 3, 1, 4)
    attention = query @ key.swapaxes(-1, -2)
    attention *= numpy.float32(size**-0.5)
    if bias is not None:
        attention += bias
    if mask is not None:
        attention += numpy.where(mask, numpy.float32(0), numpy.float32(-1e9))[:, None, None, :]
    attention -= attention.max(-1, keepdims=True)
    numpy.exp(attention, out=attention)
    attention /= attention.sum(-1, keepdims=True)
    context = (attention @ value).transpose(0, 2, 1, 3).reshape(x.shape)
    x = layer_norm(x + linear(context, weights, f"{name}.out"), weights, f"{name}.norm")
    inner = _gelu(linear(x, weights, f"{name}.up"))
    return layer_norm(x + linear(inner, weights, f"{name}.down"), weights, f"{name}.last_norm")


def _gelu(x: Array) -> Array:
    """Return `x` with x * (1 + erf(x / sqrt(2))) / 2 in place of each value."""
    for start in range(0, len(x), _GELU_ROWS):
        block = x[start : start + _GELU_ROWS]
        block *= 0.5 * (1 + _erf(block * numpy.float32(0.5**0.5)))
    return x


def _erf(x: Array) -> Array:
    """Return the error function, within 2e-7 (Abramowitz and Stegun, 7.1.26)."""
    size = numpy.abs(x)
    t = 1 / (1 + numpy.float32(0.3275911) * size)
    series = t * numpy.float32(1.061405429)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += numpy.float32(term)
        series *= t
    size *= -size
    series *= numpy.exp(size, out=size)
    found: Array = numpy.copysign(1 - series, x)
    return found
