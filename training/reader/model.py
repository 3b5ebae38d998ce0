"""The model that reads messages in torch, as it is trained; the product computes the same in onnxruntime
(index/reading_model.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from memoryvault.index.packaged import LAYERS, PackagedModel
from memoryvault.index.reading_model import LOWER_LAYERS, SENTENCE_HEADS, WINDOW_HEADS, Window
from memoryvault.index.transformer import DIMENSION, HEADS

EPSILON = 1e-12


@dataclass(frozen=True)
class Padded:
    """Windows as tensors: int64[n, longest] pieces and segments, bool[n, longest] masks of all and of own pieces."""

    ids: Tensor
    types: Tensor
    mask: Tensor
    own: Tensor


def padded(batch: Sequence[Window]) -> Padded:
    longest = max(len(window.ids) for window in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    types, mask, own = torch.zeros_like(ids), ids.bool(), ids.bool()
    for row, window in enumerate(batch):
        ids[row, : len(window.ids)] = torch.tensor(window.ids)
        types[row, window.own + 2 : len(window.ids)] = 1
        mask[row, : len(window.ids)] = True
        own[row, 1 : window.own + 1] = True
    return Padded(ids, types, mask, own)


class Layer(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIMENSION, 3 * DIMENSION)
        self.out = nn.Linear(DIMENSION, DIMENSION)
        self.norm = nn.LayerNorm(DIMENSION, eps=EPSILON)
        self.up = nn.Linear(DIMENSION, 4 * DIMENSION)
        self.down = nn.Linear(4 * DIMENSION, DIMENSION)
        self.last_norm = nn.LayerNorm(DIMENSION, eps=EPSILON)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        shape = (*x.shape[:2], 3, HEADS, DIMENSION // HEADS)
        query, key, value = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        x = self.norm(x + self.drop(self.out(context.transpose(1, 2).reshape(x.shape))))
        return self.last_norm(x + self.drop(self.down(functional.gelu(self.up(x)))))


class ReadingModel(nn.Module):
    """The upper layers and the heads."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(LAYERS - LOWER_LAYERS))
        self.drop = nn.Dropout(dropout)
        self.window = nn.Linear(2 * DIMENSION, len(WINDOW_HEADS))
        self.piece = nn.Linear(DIMENSION, 1)
        self.heads = nn.ModuleDict({name: nn.Linear(3 * DIMENSION, size) for name, size in SENTENCE_HEADS.items()})

    def forward(self, lower: Tensor, batch: Sequence[Window], at: Padded) -> dict[str, Tensor]:
        """Return the logits of a batch.

        `lower`: float32[n, longest, DIMENSION], from the lower layers. The result has `window` [n, 3]; `piece` [n,
        longest]; the SENTENCE_HEADS for all sentences of the batch in order; and `hidden`, float32[n, longest,
        DIMENSION], from which all are computed.
        """
        hidden = lower
        for layer in self.layers:
            hidden = layer(hidden, at.mask)
        hidden = self.drop(hidden)
        return {**judged(self, hidden, batch, at.own), "hidden": hidden}


def judged(model: Any, hidden: Tensor, batch: Sequence[Window], own: Tensor) -> dict[str, Tensor]:
    """Return the logits of the heads of `model` for the output of its last layer."""
    own = own[..., None]
    mean = (hidden * own).sum(1) / own.sum(1).clamp(min=1)
    top = hidden.masked_fill(~own, -1e4).max(1).values.clamp(min=-1e3)
    rows = []
    for row, window in enumerate(batch):
        for first, last in window.spans:
            part = hidden[row, first : max(last, first + 1)]
            rows.append(torch.cat([part.mean(0), part.max(0).values, mean[row]]))
    vectors = torch.stack(rows) if rows else hidden.new_zeros(0, 3 * hidden.shape[-1])
    return {
        "window": model.window(torch.cat([mean, top], 1)),
        "piece": model.piece(hidden)[..., 0],
        **{name: head(vectors) for name, head in model.heads.items()},
    }


def lower_hidden(model: PackagedModel, at: Padded) -> Tensor:
    """Return float32[n, longest, DIMENSION]: the output of the packaged model's lower layers."""
    return torch.from_numpy(model.hidden(at.ids.numpy(), at.mask.numpy(), at.types.numpy(), LOWER_LAYERS))
