"""The drain: embeds every text that has no vector yet. Running it again changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..runtime.errors import IndexUnavailable, ModelUnavailable
from .embedder import Embedder
from .late_interaction import pack_words
from .store import IndexStore, PendingText

BATCH_TEXTS = 128
"""Texts per call of the embedder: a few seconds of work, so that a kill costs little."""
WINDOW_TEXTS = 4096
"""How many pending texts are sorted by length at a time."""


@dataclass(frozen=True)
class EmbeddedBatch:
    """One batch in the order of its texts: float32 little-endian rows of `dimension`, words packed."""

    model: str
    dimension: int
    vectors: tuple[bytes, ...]
    words: tuple[bytes, ...]


NO_EXTENSION = "sqlite-vec cannot be loaded here: recall works on keywords only"

Embed = Callable[[Sequence[str]], EmbeddedBatch]
"""Raises ModelUnavailable when nothing can be embedded now; any other error is the batch's own."""


def embed_with(embedder: Embedder) -> Embed:
    """Return a function that embeds with `embedder` in this process, for callers without a recall service."""

    def embed(texts: Sequence[str]) -> EmbeddedBatch:
        encoded = embedder.encode(texts)
        rows = tuple(row.astype("<f4").tobytes() for row in encoded.vectors)
        words = tuple(pack_words(words) for words in encoded.words) or (b"",) * len(rows)
        return EmbeddedBatch(embedder.name, embedder.dimension, rows, words)

    return embed


@dataclass(frozen=True)
class DrainReport:
    """Numbers of texts. `errors`: could not be embedded; `reason`: why the rest was not tried."""

    processed: int
    errors: int
    remaining: int
    reason: str | None = None
    failed: tuple[tuple[str, str], ...] = ()
    """What failed: (the note's path, why) of each text."""


def drain(
    store: IndexStore,
    embed: Embed,
    *,
    model: str,
    batch_texts: int = BATCH_TEXTS,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[int, int], None] | None = None,
) -> DrainReport:
    """Embed the pending texts for `model` in batches of similar length; store each batch as it arrives.

    A batch that fails is tried text by text, so that one bad text does not hold up the rest; what is not tried any more
    because the model is gone stays pending. `on_progress(done, total)` is called after each batch.
    """
    total = store.pending_count(model)
    if not store.has_vectors:
        return DrainReport(0, 0, total, NO_EXTENSION)
    done, failed, reason = 0, dict[str, tuple[str, str]](), None
    while not should_stop() and reason is None:
        window = store.pending_texts(model, WINDOW_TEXTS, skip=failed)
        if not window:
            break
        waiting = [window[start : start + batch_texts] for start in range(0, len(window), batch_texts)][::-1]
        while waiting and reason is None and not should_stop():
            batch = waiting.pop()
            outcome = _embed_batch(embed, batch)
            if isinstance(outcome, ModelUnavailable):
                reason = str(outcome)
                continue
            if isinstance(outcome, EmbeddedBatch):
                _store(store, model, batch, outcome)
                done += len(batch)
            elif len(batch) == 1:
                failed[batch[0].text_hash] = (store.path_of_text(batch[0].text_hash), str(outcome))
                if not done and len(failed) == BATCH_TEXTS:
                    # Not what the error says: it may quote a text, and the job that keeps this outlasts the note.
                    reason = f"the model fails at every text ({type(outcome).__name__})"
            else:
                waiting += [[text] for text in reversed(batch)]
                continue
            if on_progress is not None:
                on_progress(done, total)
    return DrainReport(done, len(failed), store.pending_count(model), reason, tuple(failed.values()))


def _embed_batch(embed: Embed, batch: Sequence[PendingText]) -> EmbeddedBatch | Exception:
    """Embed a batch; return an error instead of raising it, since the caller decides what it means."""
    try:
        return embed([text.text for text in batch])
    except Exception as error:  # noqa: BLE001 - any failure of a batch leads to text by text
        return error


def _store(store: IndexStore, model: str, batch: Sequence[PendingText], embedded: EmbeddedBatch) -> None:
    if embedded.model != model:
        raise ModelUnavailable(
            f"the recall service embeds with {embedded.model}, but {model} is wanted: end it (`memory health` has the "
            "number of its process: kill NUMBER), and the next command starts it with that model"
        )
    if any(len(vector) != 4 * embedded.dimension for vector in embedded.vectors):
        raise IndexUnavailable(f"{embedded.model} gave vectors of another size than {embedded.dimension}")
    model_id = store.model_id(embedded.model, embedded.dimension)
    store.add_vectors(model_id, [text.text_hash for text in batch], embedded.vectors, embedded.words)
