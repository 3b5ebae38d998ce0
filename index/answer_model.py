"""The fine-tuned half of the packaged MiniLM that judges whether a passage answers a prompt.

A passage that shares a prompt's words may say nothing of what is asked: "Staging is refreshed on Sundays" for "who owns
the staging database?". Embeddings and the lower layers are those of the package, which the service holds anyway; the
upper layers and the head are `answer_model.safetensors`, rebuilt by `training/answers/train.py`. numpy is imported with
this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy
from numpy.typing import NDArray

from .packaged import PackagedModel
from .reading_model import CLS, LOWER_LAYERS, SEP
from .transformer import Array, Layers, Weights, linear

WEIGHTS = Path(__file__).with_name("answer_model.safetensors")
PROMPT_TOKENS = 64
"""Most pieces of a prompt: the model was trained on short ones."""
PASSAGE_TOKENS = 90
"""Most pieces of a passage that are judged together; a longer one is judged by its best part."""
MOST_PARTS = 3


class AnswerModel:
    """The upper layers and the head. Threads may share it."""

    def __init__(self, weights: Weights) -> None:
        self._head = {name: weights[name] for name in ("head.weight", "head.bias")}
        self._layers = Layers(weights, 0)

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> AnswerModel:
        """Load the weights. Raises OSError, SafetensorError."""
        from safetensors.numpy import load_file

        return cls({name: value.astype(numpy.float32) for name, value in load_file(path).items()})

    def judge(self, model: PackagedModel, prompt: Sequence[int], passages: Sequence[Sequence[int]]) -> list[float]:
        """Return for each passage the logit that it answers the prompt. Both are pieces, without special ones; `model`
        computes the lower layers."""
        owners, windows = [], []
        for number, passage in enumerate(passages):
            for start in range(0, max(len(passage), 1), PASSAGE_TOKENS)[:MOST_PARTS]:
                owners.append(number)
                windows.append([CLS, *prompt, SEP, *passage[start : start + PASSAGE_TOKENS], SEP])
        lengths = numpy.array([len(window) for window in windows])
        longest = int(lengths.max())
        ids = numpy.array([window + [0] * (longest - len(window)) for window in windows])
        places = numpy.arange(longest)[None]
        mask = places < lengths[:, None]
        is_passage = (places >= len(prompt) + 2) & mask
        lower = model.hidden(ids, mask, is_passage.astype(numpy.int64), LOWER_LAYERS)
        bias = numpy.where(mask, numpy.float32(0), numpy.float32(-1e9))[:, None, None, :]
        bias = numpy.ascontiguousarray(numpy.broadcast_to(bias, (len(windows), 1, longest, longest)))
        hidden = self._layers(lower, bias)
        asked = _mean(hidden, (places > 0) & (places <= len(prompt)))
        said = _mean(hidden, is_passage & (places < lengths[:, None] - 1))
        features = numpy.concatenate([hidden[:, 0], said, abs(asked - said), asked * said], axis=1)
        logits = linear(features, self._head, "head")[:, 0].tolist()
        return [
            max(logit for owner, logit in zip(owners, logits, strict=True) if owner == number)
            for number in range(len(passages))
        ]


def _mean(hidden: Array, chosen: NDArray[numpy.bool_]) -> Array:
    """Return float32[texts, dimension], the mean of the chosen pieces of each text."""
    weights = numpy.broadcast_to(chosen, hidden.shape[:2]).astype(numpy.float32)
    mean: Array = (hidden * weights[:, :, None]).sum(1) / numpy.maximum(weights.sum(1, keepdims=True), 1)
    return mean
