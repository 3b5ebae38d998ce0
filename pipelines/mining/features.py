"""What the classifier sees of a message: its cues, its shape, and its words as hashed n-grams.

N-grams are hashed (crc32), so that the weights hold no text of the messages they were trained on.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...vault.turn import Turn
from .prose import Sentence, looks_pasted, sentences
from .rules import cues, explicit, standing_rule

BUCKETS = 4096
"""Hash buckets for n-grams. At some 10,000 distinct n-grams in training, collisions cost less than size does."""

NGRAM_VALUE = 0.4
"""A cue counts 1, an n-gram less: there are many more of them, and each knows less."""

MAX_WORDS = 250
MAX_CUED_SENTENCES = 25

_WORD = re.compile(r"[a-z']+|[?!]|\d+|[😀-🙏🌀-🗿🤀-🧿]")
_LENGTHS = (2, 4, 7, 12, 20, 35, 60, 110, 200)

Features = Mapping[str, float]
"""Feature name -> value. A name "h:<bucket>" is a hashed n-gram, any other is spelled out."""


@dataclass(frozen=True)
class Message:
    """A message of the user or the agent, cut into sentences, with its features."""

    turn: Turn
    sentences: tuple[Sentence, ...]
    features: Features


def message(turn: Turn) -> Message:
    parts = sentences(turn)
    own = [part for part in parts if part.typed] if turn.is_users_words else list(parts)
    return Message(turn, parts, message_features(turn, own))


def message_features(turn: Turn, parts: Sequence[Sentence]) -> Features:
    """Features of a whole message, from the sentences that are the speaker's own."""
    found: dict[str, float] = {"bias": 1.0, f"origin:{turn.origin}": 1.0}
    text = " ".join(part.text for part in parts)
    words = _words(text)
    found[f"words:{sum(1 for limit in _LENGTHS if len(words) > limit)}"] = 1.0
    found[f"sentences:{min(len(parts), 6)}"] = 1.0
    if parts:
        if parts[-1].text.rstrip(" )\"'😅").endswith("?"):
            found["ends with a question"] = 1.0
        if parts[0].text[:1].islower():
            found["starts in lower case"] = 1.0
    if turn.pasted:
        found["holds a pasted passage"] = 1.0
    if looks_pasted(turn.text):
        found["looks pasted"] = 1.0
    for index, part in enumerate(parts[:MAX_CUED_SENTENCES]):
        for cue in cues(part.text):
            found[cue] = 1.0
            if index == 0:
                found[f"first {cue}"] = 1.0
        if part.spoken and standing_rule(part.text) is not None:
            found["states a rule"] = 1.0
        for form in explicit(part.text):
            found[f"explicit {form.category}"] = 1.0
    found.update(_ngrams(words))
    return found


def sentence_features(part: Sentence) -> Features:
    """Features of one sentence alone, to find which one of a message carries its meaning."""
    found: dict[str, float] = dict.fromkeys(cues(part.text), 1.0)
    if part.spoken and standing_rule(part.text) is not None:
        found["states a rule"] = 1.0
    for form in explicit(part.text):
        found[f"explicit {form.category}"] = 1.0
    found.update(_ngrams(_words(part.text)))
    return found


def _words(text: str) -> list[str]:
    words = ["^"]
    for word in _WORD.findall(text.lower()):
        words.append("#" if word.isdigit() else word)
        if len(words) > MAX_WORDS:
            break
    return words


def _ngrams(words: Sequence[str]) -> dict[str, float]:
    pairs: Iterable[str] = (f"{first} {second}" for first, second in pairwise(words))
    return {f"h:{zlib.crc32(gram.encode()) % BUCKETS}": NGRAM_VALUE for gram in (*words[1:], *pairs)}
