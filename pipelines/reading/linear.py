"""The reader without a language model: a linear model over hashed n-grams."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..candidate import CATEGORIES, Category
from . import ngrams
from .calibration import Calibration, calibration
from .forms import explicit_form
from .reading import CHANNELS, Channel, Message, MessageReading, SentenceReading

NAME = "words"
NO_SENTENCE = -6.0
"""Logit of a message without a sentence."""
_REFUSAL = re.compile(r"\s*(?:no|nope|nah)[.!,]+\s+(?=\w)", re.IGNORECASE)
"""A refusal before what to do instead: "Nope. Use spaces." says what "No, use spaces." does."""


def sigmoid(logit: float) -> float:
    """Return the probability of a logit."""
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, logit))))


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
        opening = _REFUSAL.match(message.text) if message.before else None
        after = opening.end() if opening is not None else -1
        said = f"No, {message.text[after:]}" if opening is not None else message.text
        whole = self._weights.logits(ngrams.features(said, message.before))
        if len(message.sentences) == 1 and message.sentences[0].of(message.text) == message.text.strip():
            return whole, [whole]
        parts = [
            f"No, {s.of(message.text)}" if opening is not None and s.start == after else s.of(message.text)
            for s in message.sentences
        ]
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
