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

from .packaged import PackagedModel
from .reading_model import CLS, LOWER_LAYERS, SEP
from .transformer import Layers, Weights, linear

WEIGHTS = Path(__file__).with_name("answer_model.safetensors")
PROMPT_TOKENS, PASSAGE_TOKENS = 64, 90
"""Most pieces of a prompt and of a passage that are judged: the model was trained on short ones, and the time grows
with the length."""
MOST_CHARACTERS = 600
"""Longest prompt, and longest passage, that is cut into pieces."""


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

    def judge(self, model: PackagedModel, prompt: Sequence[int], passage: Sequence[int]) -> float:
        """Return the logit that the passage answers the prompt. Both are pieces, without special ones, at least one;
        `model` computes the lower layers."""
        ids = numpy.array([[CLS, *prompt, SEP, *passage, SEP]])
        size, first = ids.shape[1], len(prompt) + 2
        lower = model.hidden(ids, types=(numpy.arange(size)[None] >= first).astype(numpy.int64), layers=LOWER_LAYERS)
        hidden = self._layers(lower, numpy.zeros((1, 1, size, size), numpy.float32))[0]
        asked, said = hidden[1 : first - 1].mean(0), hidden[first : size - 1].mean(0)
        features = numpy.concatenate([hidden[0], said, abs(asked - said), asked * said])
        return float(linear(features[None], self._head, "head")[0, 0])
