"""The fine-tuned half of the packaged MiniLM: reads a message and says which sentences are worth remembering.

Embeddings and the lower layers are those of the package, which the service holds anyway; the upper layers and the
heads are `reading_model.safetensors`, rebuilt by `training/reader`. numpy is imported with this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from .packaged import PackagedModel
from .transformer import LAYERS_AT_ONCE, Array, Layers, Weights, linear

WEIGHTS = Path(__file__).with_name("reading_model.safetensors")
APART_WEIGHTS = Path(__file__).with_name("apart.safetensors")
SECOND_APART_WEIGHTS = Path(__file__).with_name("mpnet_apart.safetensors")
"""As APART_WEIGHTS, for the states of the second model (mpnet.py)."""
LOWER_LAYERS = LAYERS_AT_ONCE
"""Layers that are not fine-tuned; as many are."""
END_PIECES = 5
"""Pieces at each end of a sentence that are also read by themselves."""
MESSAGE_TOKENS, BEFORE_TOKENS = 112, 48
"""Most pieces of a window of the message, and of the end of the agent's words."""
BEFORE_CHARS = 400
CLS, SEP = 101, 102
WINDOW_HEADS = ("worth", "idea", "fix")
SENTENCE_HEADS: Mapping[str, int] = {"sentence": 1, "category": 6, "tier": 3, "scope": 1, "channel": 3}
"""Name of a head, and how many logits it has: in the order of CATEGORIES, high/medium/low, project, CHANNELS."""


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


class ReadingModel:
    """The upper layers and the heads."""

    def __init__(self, weights: Weights) -> None:
        self._heads = {name: value for name, value in weights.items() if not name.startswith("layers.")}
        self._layers = Layers(weights, 0)

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> ReadingModel:
        """Load the weights. Raises OSError, SafetensorError."""
        from safetensors.numpy import load_file

        return cls({name: value.astype(numpy.float32) for name, value in load_file(path).items()})

    def read(self, model: PackagedModel, window: Window) -> tuple[dict[str, Array], Array]:
        """Return the logits of a window (see `judged`), of which `model` computes the lower layers; and the states of
        each piece, the output of the last layer and of the lower ones: by these another's words are known, since the
        fine-tuned layers keep only what is worth remembering."""
        types = numpy.zeros((1, len(window.ids)), numpy.int64)
        types[0, window.own + 2 :] = 1
        lower = model.hidden(numpy.array([window.ids]), types=types, layers=LOWER_LAYERS)
        hidden = self._layers(lower, numpy.zeros((1, 1, *2 * (len(window.ids),)), numpy.float32))
        return judged(hidden[0], window, self._heads), numpy.concatenate([hidden[0], lower[0]], axis=1)


def judged(hidden: Array, window: Window, weights: Weights) -> dict[str, Array]:
    """Return the logits `window` [3], and [sentences, logits] for each of SENTENCE_HEADS.

    `hidden`: float32[pieces, dimension], the output of the last layer; `weights`: those of the heads.
    """
    own = hidden[1 : window.own + 1] if window.own else numpy.zeros((1, hidden.shape[1]), numpy.float32)
    mean = own.mean(0)
    parts = [hidden[first : max(last, first + 1)] for first, last in window.spans]
    vectors = numpy.array([numpy.concatenate([part.mean(0), part.max(0), mean]) for part in parts], numpy.float32)
    vectors = vectors.reshape(-1, 3 * hidden.shape[1])
    return {
        "window": linear(numpy.concatenate([mean, own.max(0)]), weights, "window"),
        **{name: linear(vectors, weights, f"heads.{name}") for name in SENTENCE_HEADS},
    }


class ApartHead:
    """Judges whether a sentence is another's words, by `surroundings`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    @classmethod
    def load(cls, path: Path = APART_WEIGHTS) -> ApartHead:
        """Load the weights. Raises OSError, SafetensorError."""
        from safetensors.numpy import load_file

        return cls({f"apart.{name}": value for name, value in load_file(path).items()})

    def __call__(self, states: Array, window: Window) -> Array:
        """Return one logit for each sentence, float32[sentences, 1]. `states`: float32[pieces, …] of the window."""
        return linear(surroundings(states, window), self._weights, "apart")


def surroundings(states: Array, window: Window) -> Array:
    """Return for each sentence the means over it, the text before it, the text after it, all, and its first and last
    pieces: float32[sentences, 6 * states]."""
    first, last = 1, window.own + 1
    rows = []
    nothing = numpy.zeros(states.shape[1], numpy.float32)
    for start, end in window.spans:
        end = max(end, start + 1)
        parts = (
            states[start:end],
            states[first:start],
            states[end:last],
            states[first:last],
            states[start : min(start + END_PIECES, end)],
            states[max(start, end - END_PIECES) : end],
        )
        rows.append(numpy.concatenate([part.mean(0) if len(part) else nothing for part in parts]))
    return numpy.array(rows, numpy.float32).reshape(-1, 6 * states.shape[1])
