"""The packaged MiniLM without the libraries around it, so that a service that was just started soon answers by meaning.

sentence-transformers takes five seconds to its first vector, four of them to import itself and transformers: three and
a half thousand modules for one small BERT. Its forward pass is some forty lines of torch, its tokenizer the same
`tokenizers` object either way, and its weights a file that is mapped into memory. A test compares the results with the
library's, which loads every other model (embedder.py).

It takes only weights with the checksum of the packaged model: their shapes are known, so no configuration is read.
torch, tokenizers and safetensors are imported when it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

LAYERS, HEADS, DIMENSION = 6, 12, 384
MAX_TOKENS = 256
_EPSILON = 1e-12
_PAD = 0
_UNKNOWN = 100


class PackagedModel:
    """all-MiniLM-L6-v2 on the CPU, float32; for one thread at a time."""

    def __init__(self, folder: Path) -> None:
        import torch
        from safetensors import safe_open
        from tokenizers import Tokenizer

        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.no_padding()
        with safe_open(folder / "model.safetensors", framework="pt") as weights:
            names = weights.keys()  # the file object itself can't be iterated
            self._weights: dict[str, Tensor] = {name: weights.get_tensor(name) for name in names}
        for layer in range(LAYERS):
            # One product instead of three: a question of a dozen words is all overhead.
            prefix = f"encoder.layer.{layer}.attention"
            for kind in ("weight", "bias"):
                parts = [self._weights.pop(f"{prefix}.self.{part}.{kind}") for part in ("query", "key", "value")]
                self._weights[f"{prefix}.qkv.{kind}"] = torch.cat(parts)

    def encode(self, texts: Sequence[str]) -> tuple[Tensor, Tensor, list[list[tuple[int, int]]], tuple[float, ...]]:
        """Embed texts. Return float32[n, DIMENSION] of unit length, the word pieces as float32[n, longest, DIMENSION],
        their offsets, and the share of each text's pieces that are unknown."""
        import torch

        encodings = self.tokenizer.encode_batch(list(texts))
        longest = max(len(encoding.ids) for encoding in encodings)
        ids = torch.tensor([encoding.ids + [_PAD] * (longest - len(encoding.ids)) for encoding in encodings])
        lengths = torch.tensor([len(encoding.ids) for encoding in encodings])
        mask = torch.arange(longest)[None, :] < lengths[:, None]
        with torch.inference_mode():
            pieces = self._forward(ids, None if bool(mask.all()) else mask)
            weight = mask[:, :, None].float()
            mean = (pieces * weight).sum(1) / weight.sum(1)
            # Without the two special ones around them: of two unknown letters they would be half.
            unknown = tuple(encoding.ids.count(_UNKNOWN) / max(1, len(encoding.ids) - 2) for encoding in encodings)
            offsets = [encoding.offsets for encoding in encodings]
            return torch.nn.functional.normalize(mean, dim=1), pieces, offsets, unknown

    def hidden(self, ids: Tensor, mask: Tensor | None, types: Tensor, layers: int) -> Tensor:
        """Return float32[n, pieces, DIMENSION]: the output of the first `layers` layers for these pieces and segment
        ids."""
        return self._forward(ids, mask, types, layers)

    def _forward(self, ids: Tensor, mask: Tensor | None, types: Tensor | None = None, layers: int = LAYERS) -> Tensor:
        from torch.nn import functional

        weights = self._weights
        segments = weights["embeddings.token_type_embeddings.weight"]
        words = functional.embedding(ids, weights["embeddings.word_embeddings.weight"])
        positions = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        segment = segments[0] if types is None else functional.embedding(types, segments)
        x = self._norm(words + segment + positions, "embeddings.LayerNorm")
        shape = (*ids.shape, 3, HEADS, DIMENSION // HEADS)
        attention_mask = None if mask is None else mask[:, None, None, :]
        for layer in range(layers):
            name = f"encoder.layer.{layer}"
            query, key, value = self._linear(x, f"{name}.attention.qkv").view(shape).permute(2, 0, 3, 1, 4)
            context = functional.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask)
            context = context.transpose(1, 2).reshape(x.shape)
            x = self._norm(
                x + self._linear(context, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
            )
            inner = functional.gelu(self._linear(x, f"{name}.intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return x

    def _linear(self, x: Tensor, name: str) -> Tensor:
        from torch.nn import functional

        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        from torch.nn import functional

        weights = self._weights
        return functional.layer_norm(x, (DIMENSION,), weights[f"{name}.weight"], weights[f"{name}.bias"], _EPSILON)
