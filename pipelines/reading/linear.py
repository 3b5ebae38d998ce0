"""The reader without a language model: a linear model over hashed n-grams."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..candidate import CATEGORIES, Category
from . import ngrams
from .calibration import Calibration, calibration, sigmoid
from .forms import explicit_form
from .reading import CHANNELS, Channel, Message, MessageReading, SentenceReading

NAME = "words"
NO_SENTENCE = -6.0
"""Logit of a message without a sentence."""


def best(logits: Mapping[str, float], head: str, names: tuple[str, ...]) -> str:
    """Return which of the `names` has the highest logit of the head."""
    return max(names, key=lambda name: logits[f"{head}:{name}"])


def length(text: str) -> float:
    """Return the logarithm of the number of words, a feature: a long message is more often worth remembering."""
    return math.log1p(len(text.split()))


class NgramReader:
    """Reads a message in about a millisecond."""

    name = NAME

    def __init__(self, weights: ngrams.Weights | None = None, own: Calibration | None = None) -> None:
        self._weights = weights or ngrams.packaged()
        self._calibration = own or calibration(NAME)

    def logits(self, message: Message) -> tuple[dict[str, float], list[dict[str, float]]]:
        """Return the logits of the message, and of each of its sentences."""
        whole = self._weights.logits(ngrams.features(message.text, message.before))
        if len(message.sentences) == 1 and message.sentences[0].of(message.text) == message.text.strip():
            return whole, [whole]
        parts = [s.of(message.text) for s in message.sentences]
        return whole, [self._weights.logits(ngrams.features(part, message.before)) for part in parts]

    def read(self, message: Message) -> MessageReading:
        """See Reader."""
        whole, parts = self.logits(message)
        top = max((part["sentence"] for part in parts), default=NO_SENTENCE)
        form = float(any(explicit_form(s.of(message.text)) for s in message.sentences))
        own = self._calibration
        found = []
        for part in parts:
            category: Category = best(part, "category", CATEGORIES)  # type: ignore[assignment]
            channel: Channel = best(part, "channel", CHANNELS)  # type: ignore[assignment]
            worth = own.sentence({"sentence": part["sentence"]})
            found.append(SentenceReading(worth, category, sigmoid(part["personal"]), channel))
        worth = own.message({"message": whole["worth"], "sentence": top, "form": form, "length": length(message.text)})
        return MessageReading(worth, sigmoid(whole["idea"]), sigmoid(whole["fix"]), found)
