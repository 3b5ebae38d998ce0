"""The fine-tuned half of the packaged MiniLM: reads a message and says which sentences are worth remembering.

Embeddings and the lower layers are those of the package, which the service holds anyway; the upper layers and the
heads are `reading_model.safetensors`, rebuilt by `training/reader`. torch is imported with this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from .packaged import DIMENSION, HEADS, LAYERS, PackagedModel

WEIGHTS = Path(__file__).with_name("reading_model.safetensors")
APART_WEIGHTS = Path(__file__).with_name("apart.safetensors")
LOWER_LAYERS = 3
"""Layers that are not fine-tuned."""
MESSAGE_TOKENS, BEFORE_TOKENS = 112, 48
"""Most pieces of a window of the message, and of the end of the agent's words."""
BEFORE_CHARS = 400
CLS, SEP = 101, 102
WINDOW_HEADS = ("worth", "idea", "fix")
SENTENCE_HEADS = {"sentence": 1, "category": 6, "tier": 3, "scope": 1, "channel": 3}
"""Name of a head, and how many logits it has: in the order of CATEGORIES, high/medium/low, project, CHANNELS."""
_EPSILON = 1e-12


@dataclass(frozen=True)
class Window:
    """One input of the model: the word pieces of some sentences, and those of the agent's words before."""

    ids: Sequence[int]
    own: int
    """Pieces of the message are ids[1 : own + 1]."""
    spans: Sequence[tuple[int, int]]
    """Range of pieces of each sentence, within ids."""


def window_of(own: Sequence[int], before: Sequence[int], spans: Sequence[tuple[int, int]]) -> Window:
    """Join the pieces of a message with those of the agent; `spans` count from the message's first piece."""
    tail = before[-BEFORE_TOKENS:]
    ids = [CLS, *own[:MESSAGE_TOKENS], SEP, *tail, SEP]
    kept = min(len(own), MESSAGE_TOKENS)
    return Window(ids, kept, [(min(a, kept) + 1, min(b, kept) + 1) for a, b in spans])


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


class _Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIMENSION, 3 * DIMENSION)
        self.out = nn.Linear(DIMENSION, DIMENSION)
        self.norm = nn.LayerNorm(DIMENSION, eps=_EPSILON)
        self.up = nn.Linear(DIMENSION, 4 * DIMENSION)
        self.down = nn.Linear(4 * DIMENSION, DIMENSION)
        self.last_norm = nn.LayerNorm(DIMENSION, eps=_EPSILON)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        shape = (*x.shape[:2], 3, HEADS, DIMENSION // HEADS)
        query, key, value = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        x = self.norm(x + self.drop(self.out(context.transpose(1, 2).reshape(x.shape))))
        return self.last_norm(x + self.drop(self.down(functional.gelu(self.up(x)))))


class ReadingModel(nn.Module):  # type: ignore[misc]
    """The upper layers and the heads."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(dropout) for _ in range(LAYERS - LOWER_LAYERS))
        self.drop = nn.Dropout(dropout)
        self.window = nn.Linear(2 * DIMENSION, len(WINDOW_HEADS))
        self.piece = nn.Linear(DIMENSION, 1)
        self.heads = nn.ModuleDict({name: nn.Linear(3 * DIMENSION, size) for name, size in SENTENCE_HEADS.items()})

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> ReadingModel:
        """Load the weights. Raises OSError, SafetensorError."""
        from safetensors.torch import load_file

        model = cls()
        model.load_state_dict({name: value.float() for name, value in load_file(path).items()})
        model.eval()
        return model

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
        own = at.own[..., None]
        mean = (hidden * own).sum(1) / own.sum(1).clamp(min=1)
        top = hidden.masked_fill(~own, -1e4).max(1).values.clamp(min=-1e3)
        rows = []
        for row, window in enumerate(batch):
            for first, last in window.spans:
                part = hidden[row, first : max(last, first + 1)]
                rows.append(torch.cat([part.mean(0), part.max(0).values, mean[row]]))
        vectors = torch.stack(rows) if rows else hidden.new_zeros(0, 3 * DIMENSION)
        return {
            "window": self.window(torch.cat([mean, top], 1)),
            "piece": self.piece(hidden)[..., 0],
            "hidden": hidden,
            **{name: head(vectors) for name, head in self.heads.items()},
        }


class ApartHead(nn.Module):  # type: ignore[misc]
    """Judges whether a sentence is another's words, from the sentence, the text before and after it, and the whole."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4 * DIMENSION, 1)

    @classmethod
    def load(cls, path: Path = APART_WEIGHTS) -> ApartHead:
        """Load the weights. Raises OSError, SafetensorError."""
        from safetensors.torch import load_file

        head = cls()
        head.linear.load_state_dict(load_file(path))
        head.eval()
        return head

    def forward(self, hidden: Tensor, window: Window) -> Tensor:
        """Return one logit for each sentence. `hidden`: float32[pieces, DIMENSION] of the window."""
        return self.linear(surroundings(hidden, window))[..., 0]


def surroundings(hidden: Tensor, window: Window) -> Tensor:
    """Return float32[sentences, 4 * DIMENSION]: means over the sentence, the text before it, the text after it, and
    all."""
    first, last = 1, window.own + 1
    rows = []
    for start, end in window.spans:
        end = max(end, start + 1)
        parts = (hidden[start:end], hidden[first:start], hidden[end:last], hidden[first:last])
        rows.append(torch.cat([part.mean(0) if len(part) else hidden.new_zeros(DIMENSION) for part in parts]))
    return torch.stack(rows) if rows else hidden.new_zeros(0, 4 * DIMENSION)


def lower_hidden(model: PackagedModel, at: Padded) -> Tensor:
    """Return float32[n, longest, DIMENSION]: the output of the packaged model's lower layers."""
    with torch.inference_mode():
        return model.hidden(at.ids, at.mask, at.types, LOWER_LAYERS)
