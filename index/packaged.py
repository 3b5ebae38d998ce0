"""The packaged MiniLM in onnxruntime (transformer.py), so that a service that was just started soon answers by meaning.

It takes only weights with the checksum of the packaged model: their shapes are known, so no configuration is read.
numpy is imported with this module; onnxruntime, tokenizers and safetensors when a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from .transformer import LAYERS_AT_ONCE, Array, Layers, Weights, layer_norm

LAYERS = 6
MAX_TOKENS = 256
_PAD = 0
_UNKNOWN = 100
_PARTS = {
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "last_norm",
}
"""Names of a layer's parts in the file, and here."""


@cache
def load_packaged(folder: Path) -> PackagedModel:
    """Return the model in this folder, one for all: its weights are 90 MB, and both recall and the reader need it."""
    return PackagedModel(folder)


class PackagedModel:
    """all-MiniLM-L6-v2 on the CPU, float32. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.no_padding()
        found = load_file(folder / "model.safetensors")
        self.embeddings = {name: value for name, value in found.items() if name.startswith("embeddings.")}
        weights = layers_in(found)
        self._layers = [Layers(weights, first) for first in range(0, LAYERS, LAYERS_AT_ONCE)]

    def encode(self, texts: Sequence[str]) -> tuple[Array, Array, list[list[tuple[int, int]]], tuple[float, ...]]:
        """Embed texts. Return float32[n, DIMENSION] of unit length, the word pieces as float32[n, longest, DIMENSION],
        their offsets, and the share of each text's pieces that are unknown."""
        encodings = self.tokenizer.encode_batch(list(texts))
        lengths = numpy.array([len(encoding.ids) for encoding in encodings])
        longest = int(lengths.max())
        ids = numpy.array([encoding.ids + [_PAD] * (longest - len(encoding.ids)) for encoding in encodings])
        mask = numpy.arange(longest)[None, :] < lengths[:, None]
        pieces = self.hidden(ids, None if mask.all() else mask)
        mean = (pieces * mask[:, :, None]).sum(1) / lengths[:, None].astype(numpy.float32)
        mean /= numpy.linalg.norm(mean, axis=1, keepdims=True)
        # Without the two special ones around them: of two unknown letters they would be half.
        unknown = tuple(encoding.ids.count(_UNKNOWN) / max(1, len(encoding.ids) - 2) for encoding in encodings)
        return mean, pieces, [encoding.offsets for encoding in encodings], unknown

    def hidden(
        self,
        ids: NDArray[numpy.int64],
        mask: NDArray[numpy.bool_] | None = None,
        types: NDArray[numpy.int64] | None = None,
        layers: int = LAYERS,
    ) -> Array:
        """Return float32[n, longest, DIMENSION]: the output of the first `layers` layers.

        `ids`, `types`: pieces and segments, int64[n, longest]; `mask`: False where a text is padded; `layers`: a
        multiple of LAYERS_AT_ONCE.
        """
        weights, longest = self.embeddings, ids.shape[1]
        segments = weights["embeddings.token_type_embeddings.weight"]
        x = weights["embeddings.word_embeddings.weight"][ids]
        x += weights["embeddings.position_embeddings.weight"][:longest]
        x += segments[0] if types is None else segments[types]
        x = layer_norm(x, weights, "embeddings.LayerNorm")
        bias = numpy.zeros((1, 1, longest, longest), numpy.float32)
        if mask is not None:
            bias = bias + numpy.where(mask, numpy.float32(0), numpy.float32(-1e9))[:, None, None, :]
        for part in self._layers[: layers // LAYERS_AT_ONCE]:
            x = part(x, bias)
        return x


def layers_in(found: Weights) -> dict[str, Array]:
    """Return the weights of the layers under our names. Query, key and value become one matrix."""
    weights: dict[str, Array] = {}
    for layer in range(LAYERS):
        there, here = f"encoder.layer.{layer}", f"layers.{layer}"
        for kind in ("weight", "bias"):
            parts = [found[f"{there}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            weights[f"{here}.qkv.{kind}"] = numpy.concatenate(parts)
            weights |= {f"{here}.{own}.{kind}": found[f"{there}.{name}.{kind}"] for name, own in _PARTS.items()}
    return weights
