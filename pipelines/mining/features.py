"""What the classifier sees of a message: its cues, its shape, and its words as hashed n-grams.

N-grams are hashed (crc32), so that the weights hold no text of the messages they were trained on.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from ...vault.turn import Turn
from .prose import Sentence, looks_pasted, sentences
from .rules import Searched, cues, explicit, possible_cues, standing_rule

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

NO_FEATURES: Features = {}

SURE = 1e-6
"""Logits; more than what is lost by adding up in another order."""

_BUCKET_NAMES = tuple(f"h:{bucket}" for bucket in range(BUCKETS))


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


class Weighing(Protocol):
    """What `message_worth_a_look` needs of a head of the classifier; all in logits."""

    @property
    def limit(self) -> float:
        """From here on the answer is yes."""
        ...

    @property
    def gains(self) -> Mapping[str, float]:
        """Cues that count for something -> the most they may add; what settles most comes first."""
        ...

    @property
    def most_by_form(self) -> float:
        """The most that explicit forms and stated rules may add."""
        ...

    def logit(self, features: Features) -> float:
        """The sum over these features."""
        ...


def message_worth_a_look(turn: Turn, head: Weighing) -> Message:
    """The message, with `NO_FEATURES` where `head` is sure to say no, else with all that this head knows a weight for.

    To look for cues is most of the work of mining, and most messages of an agent are told by their words alone. So cues
    are looked for one after the other, and only for as long as those that are left could still make up a yes.
    """
    parts = sentences(turn)
    found = _outline(turn, parts)
    missing = head.limit - head.logit(found) - SURE
    looked_at = parts[:MAX_CUED_SENTENCES]
    gains = head.gains
    text = " ".join(part.text for part in looked_at)
    possible = possible_cues(text, [cue for cue, gain in gains.items() if gain > 0])
    left = head.most_by_form + sum(gains[cue] for cue in possible)
    if left < missing:
        return Message(turn, parts, NO_FEATURES)
    possible += possible_cues(text, [cue for cue, gain in gains.items() if gain <= 0])
    texts = [Searched(part.text) for part in looked_at]
    for cue in possible:
        left -= max(0.0, gains[cue])
        shown = {}
        first = texts[0].shows(cue)
        if first or any(text.shows(cue) for text in texts[1:]):
            shown[cue] = 1.0
        if first:
            shown[f"first {cue}"] = 1.0
        if shown:
            found.update(shown)
            missing -= head.logit(shown)
        if left < missing:
            return Message(turn, parts, NO_FEATURES)
    _add_forms(found, looked_at)
    return Message(turn, parts, found)


def message_features(turn: Turn, parts: Sequence[Sentence]) -> Features:
    """Features of a whole message, from the sentences that are the speaker's own."""
    found = _outline(turn, parts)
    looked_at = parts[:MAX_CUED_SENTENCES]
    possible = possible_cues(" ".join(part.text for part in looked_at))
    for index, part in enumerate(looked_at):
        for cue in cues(part.text, possible):
            found[cue] = 1.0
            if index == 0:
                found[f"first {cue}"] = 1.0
    _add_forms(found, looked_at)
    return found


def _outline(turn: Turn, parts: Sequence[Sentence]) -> dict[str, float]:
    """Shape and words: all features but the cues."""
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
    found.update(_ngrams(words))
    return found


def _add_forms(found: dict[str, float], parts: Sequence[Sentence]) -> None:
    for part in parts:
        if part.spoken and standing_rule(part.text) is not None:
            found["states a rule"] = 1.0
        for form in explicit(part.text):
            found[f"explicit {form.category}"] = 1.0


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
    return {_BUCKET_NAMES[zlib.crc32(gram.encode()) % BUCKETS]: NGRAM_VALUE for gram in (*words[1:], *pairs)}
