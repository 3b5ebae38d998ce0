"""Read messages with the fine-tuned model, in the recall service: texts in, logits out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.errors import ModelUnavailable
from .embedder import DEFAULT_MODEL, LIBRARY_ENVIRONMENT, locate_model, verify_model

if TYPE_CHECKING:
    from .packaged import PackagedModel
    from .reading_model import ApartHead, ReadingModel

MOST_WINDOWS = 12
"""Most windows of one message that are read; the rest of a longer text is ignored."""


class MessageReader:
    """The packaged model's lower layers and the fine-tuned upper ones. Loaded at the first message, in its thread."""

    def __init__(self, models_folder: Path, upper: ReadingModel | None = None) -> None:
        """`upper`: the ReadingModel that takes the place of the packaged one."""
        self._models_folder, self._upper = models_folder, upper
        self._lock = threading.Lock()
        self._loaded: tuple[PackagedModel, ReadingModel, ApartHead, Any] | None = None

    def read(self, text: str, before: str, sentences: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return a message's logits: `window` (worth, idea, fix) of its best window; and for each sentence a mapping
        from the names of SENTENCE_HEADS and `apart` (another's words) to lists. Raises ModelUnavailable."""
        with self._lock:
            self._loaded = self._loaded or self.load()
            return read(*self._loaded, text, before, sentences)

    def load(self, apart: ApartHead | None = None) -> tuple[PackagedModel, ReadingModel, ApartHead, Any]:
        """Return what `read` takes: the packaged model, the fine-tuned one, the head `apart` (loaded if not given), and
        the tokenizer. Raises ModelUnavailable."""
        import os

        location = locate_model(DEFAULT_MODEL, self._models_folder)
        verify_model(location)
        os.environ.update(LIBRARY_ENVIRONMENT)
        try:
            from .packaged import load_packaged
            from .reading_model import ApartHead, ReadingModel

            model = load_packaged(location.folder)
            tokenizer = type(model.tokenizer).from_str(model.tokenizer.to_str())
            tokenizer.no_truncation()
            return model, self._upper or ReadingModel.load(), apart or ApartHead.load(), tokenizer
        except (ImportError, OSError) as error:
            raise ModelUnavailable(f"the model that reads messages cannot be loaded: {error}") from error


def read(
    model: PackagedModel,
    reading: ReadingModel,
    apart: ApartHead,
    tokenizer: Any,
    text: str,
    before: str,
    parts: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """See MessageReader.read."""
    from .reading_model import BEFORE_CHARS, MESSAGE_TOKENS, SENTENCE_HEADS, window_of

    tail = tokenizer.encode(before[-BEFORE_CHARS:], add_special_tokens=False).ids if before else []

    def size(words: str) -> int:
        return len(tokenizer.encode(words, add_special_tokens=False).ids)

    found: list[dict[str, list[float]]] = []
    tops = [-9.0, -9.0, -9.0]
    for first, last in windows(text, parts, size, MESSAGE_TOKENS)[:MOST_WINDOWS]:
        start = parts[first][0]
        coded = tokenizer.encode(text[start : parts[last - 1][1]], add_special_tokens=False)
        spans = []
        for low, high in parts[first:last]:
            inside = [k for k, (a, b) in enumerate(coded.offsets) if a + start < high and b + start > low]
            spans.append((inside[0], inside[-1] + 1) if inside else (0, 0))
        window = window_of(coded.ids, tail, spans)
        out = reading.read(model, window)
        others = apart(out["states"], window).tolist()
        tops = [max(top, value) for top, value in zip(tops, out["window"].tolist(), strict=True)]
        for row in range(last - first):
            found.append({**{name: out[name][row].tolist() for name in SENTENCE_HEADS}, "apart": [others[row]]})
    return {"window": tops, "sentences": found}


def windows(
    text: str, parts: Sequence[tuple[int, int]], size: Callable[[str], int], limit: int
) -> list[tuple[int, int]]:
    """Return ranges [first, last) of sentences with at most `limit` units by `size`; a longer sentence is alone.

    `parts`: [start, end) of each sentence of the text.
    """
    ranges: list[tuple[int, int]] = []
    first = 0
    for index in range(1, len(parts) + 1):
        if index == len(parts) or size(text[parts[first][0] : parts[index][1]]) > limit:
            ranges.append((first, index))
            first = index
    return ranges
