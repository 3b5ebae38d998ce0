"""Make vaults of any size for the scale bench: notes of real sentences, with mostly invented vectors.

A small model embeds about forty texts a second, so that 100,000 would take most of an hour. So it embeds only the first
`REAL_PASSAGES`. Each further passage gets the mean of two of their vectors with noise, and its words get the vectors of
the same words there. All are stored through the index's own interface. The duration of a search does not depend on the
values; the quality of its hits is measured by `bench recall`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..index.embedder import Embedder
from ..index.late_interaction import WordVectors, pack_words
from ..index.query import word_spans
from ..index.store import IndexStore, PendingText
from ..sources.transcripts.claude import ClaudeReader
from ..vault.turn import Origin
from .index import KINDS, made_up_words
from .throughput import unpacked_sessions

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Floats = numpy.typing.NDArray[numpy.float32]

REAL_PASSAGES = 500
NOISE = 0.6
"""Length of the noise added to the mean of two unit vectors, so that neighbours are as far as in real text."""
SHARE_OF_PROJECTS, PROJECTS = 0.3, 20
"""Share of notes that belong to a project, and the number of projects."""
BATCH = 1000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def sentences(data: Path | None) -> list[str]:
    """Return distinct sentences of 4 to 40 words from the sessions; without data, invented ones."""
    if data is None:
        return [" ".join(made_up_words(random.Random(number), 12)) for number in range(20_000)]
    found: dict[str, None] = {}
    with unpacked_sessions(data) as sessions:
        for session in sessions:
            for turn in ClaudeReader(session):
                if not (turn.is_users_words or turn.origin is Origin.ASSISTANT):
                    continue
                for sentence in _SENTENCE_END.split(turn.text):
                    text = sentence.strip(" -*#>|`")
                    if 4 <= len(text.split()) <= 40:
                        found[text] = None
    return list(found)


def write_notes(vault: Path, said: Sequence[str], entries: int, seed: int = 7) -> list[str]:
    """Write notes of two to nine of the sentences, with unique names; return about 200 questions.

    A question is most of a sentence of a note; each tenth has a typing error, each fifth is about nothing in the vault.
    """
    choose = random.Random(seed)
    questions: list[str] = []
    for number in range(entries):
        kind = KINDS[number % len(KINDS)]
        name = "".join(choose.choices("bacodefiguhajokilumenopaquirosuta", k=7))
        body = choose.choices(said, k=choose.choice((2, 2, 3, 3, 4, 5, 7, 9)))
        head = {"kind": kind, "status": "active", "created": f"2026-{1 + number % 6:02d}-01", "tags": f"[{name}]"}
        if choose.random() < SHARE_OF_PROJECTS:
            head["project"] = f"project-{choose.randrange(PROJECTS)}"
        lines = "".join(f"{key}: {value}\n" for key, value in head.items())
        path = vault / "personal-private" / kind / f"{number // 1000:03d}" / f"note-{number:06d}.md"
        if number % 1000 < len(KINDS):
            path.parent.mkdir(parents=True, exist_ok=True)
        title = " ".join(choose.choice(body).split()[:6]).strip("#")
        text = f"{title} {name}\n\n" + "\n\n".join(body)
        path.write_text(f"---\n{lines}---\n\n# {text}\n", encoding="utf-8", errors="replace")
        if number % max(entries // 200, 1) == 0:
            questions.append(_question(choose, choose.choice(body), len(questions)))
    return questions


def _question(choose: random.Random, sentence: str, number: int) -> str:
    if number % 5 == 4:
        return "what did we say about " + " ".join(made_up_words(choose, 5))
    words = sentence.split()
    kept = [word for word in words if choose.random() < 0.7] or words
    if number % 10 == 3:
        longest = max(range(len(kept)), key=lambda index: len(kept[index]))
        kept[longest] = kept[longest][:2] + kept[longest][3:]
    return " ".join(kept)


@dataclass(frozen=True)
class Sample:
    """Vectors of passages that a real model embedded: float32[n, dimension], and one for each of their words."""

    model: str
    vectors: Floats
    words: dict[str, Floats]


def embed_some(store: IndexStore, embedder: Embedder, limit: int = REAL_PASSAGES) -> Sample:
    """Embed up to `limit` pending passages with the model, as the drain would."""
    import numpy

    model_id = store.model_id(embedder.name, embedder.dimension)
    rows: list[Floats] = []
    words: dict[str, Floats] = {}
    pending = store.pending_texts(embedder.name, limit)
    for start in range(0, len(pending), 64):
        batch = pending[start : start + 64]
        encoded = embedder.encode([text.text for text in batch])
        packed = [pack_words(each) for each in encoded.words]
        store.add_vectors(model_id, [t.text_hash for t in batch], [_bytes(v) for v in encoded.vectors], packed)
        rows += list(encoded.vectors)
        for each in encoded.words:
            words.update(zip(each.words, each.vectors, strict=True))
    return Sample(embedder.name, numpy.stack(rows), words)


def make_up_rest(store: IndexStore, sample: Sample, seed: int = 7) -> int:
    """Give all pending passages vectors made of the sample's; return their number."""
    import numpy

    chance = numpy.random.default_rng(seed)
    dimension = sample.vectors.shape[1]
    model_id = store.model_id(sample.model, dimension)
    done = 0
    for batch in _batches(store, sample.model):
        pairs = chance.integers(0, len(sample.vectors), size=(2, len(batch)))
        noise = chance.standard_normal((len(batch), dimension), dtype=numpy.float32)
        noise *= NOISE / numpy.sqrt(dimension)
        mixed = (sample.vectors[pairs[0]] + sample.vectors[pairs[1]]) / 2 + noise
        mixed /= numpy.linalg.norm(mixed, axis=1, keepdims=True)
        words = [pack_words(_words(text.text, sample, chance)) for text in batch]
        store.add_vectors(model_id, [t.text_hash for t in batch], [_bytes(v) for v in mixed], words)
        done += len(batch)
    return done


def _batches(store: IndexStore, model: str) -> Iterator[list[PendingText]]:
    pending = store.pending_texts(model, 10_000_000)
    for start in range(0, len(pending), BATCH):
        yield pending[start : start + BATCH]


def _words(text: str, sample: Sample, chance: numpy.random.Generator) -> WordVectors:
    import numpy

    words = tuple(word for _, _, word in word_spans(text))
    new = [word for word in dict.fromkeys(words) if word not in sample.words]
    made = chance.standard_normal((len(new), sample.vectors.shape[1]), dtype=numpy.float32)
    made /= numpy.linalg.norm(made, axis=1, keepdims=True)
    sample.words.update(zip(new, made, strict=True))
    return WordVectors(words, numpy.stack([sample.words[word] for word in words]))


def _bytes(vector: Floats) -> bytes:
    return vector.astype("<f4").tobytes()
