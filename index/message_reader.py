"""Read messages, and compare statements, with the fine-tuned models, in the recall service: texts in, logits out."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.errors import ModelUnavailable
from .embedder import DEFAULT_MODEL, LIBRARY_ENVIRONMENT, locate_model, verify_model
from .runner import release_memory

if TYPE_CHECKING:
    from .mpnet import Mpnet
    from .reading_model import ApartHead, ReadingModel, Window
    from .transformer import Array

MOST_WINDOWS = 12
"""Most windows of one message that are read; the rest of a longer text is ignored."""
STATEMENT_CHARACTERS = 600
"""Most characters of a statement that are compared."""
UNUSED_SECONDS = 300.0
"""How long the second model, of 0.3 GB, stays in memory after its last use."""


@dataclass(frozen=True)
class WindowReader:
    """A model with its tokenizer."""

    tokenizer: Any
    window_of: Callable[[Sequence[int], Sequence[int], Sequence[tuple[int, int]]], Window]
    judge: Callable[[Window], Mapping[str, Array]]
    """Returns `window`, and an array with a row for each sentence of the window for each other name."""

    def read(self, text: str, before: str, parts: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return a message's logits: `window` (worth, idea, fix) of its best window, and for each of its sentences
        [start, end), as far as they are read, a mapping from names to lists."""
        from .reading_model import BEFORE_CHARS, MESSAGE_TOKENS

        tokenizer = self.tokenizer
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
            out = {name: rows.tolist() for name, rows in self.judge(self.window_of(coded.ids, tail, spans)).items()}
            tops = [max(pair) for pair in zip(tops, out.pop("window"), strict=True)]
            found += [{name: rows[row] for name, rows in out.items()} for row in range(last - first)]
        return {"window": tops, "sentences": found}


@dataclass(frozen=True)
class SecondModel:
    """all-mpnet-base-v2 with what our two trainings made of it."""

    reader: WindowReader
    comparer: Mpnet

    def compare(self, text: str, others: Sequence[str]) -> list[list[float]]:
        """Return, for each of the other statements, the logits of mpnet.Mpnet.compare. The order of a pair does not
        matter."""
        tokenizer = self.reader.tokenizer
        ids = {
            each: tokenizer.encode(each[:STATEMENT_CHARACTERS], add_special_tokens=False).ids
            for each in (text, *others)
        }
        pairs = (sorted((text, other)) for other in others)
        return [self.comparer.compare(ids[first], ids[second]).tolist() for first, second in pairs]


class MessageReader:
    """Both models. Each is loaded at its first use, in that thread; other threads wait."""

    def __init__(self, models_folder: Path, upper: ReadingModel | None = None, changes: Path | None = None) -> None:
        """`upper`, `changes`: take the place of the packaged weights of the small and of the second model."""
        self._models_folder, self._upper, self._changes = models_folder, upper, changes
        self._lock, self._second_lock = threading.Lock(), threading.Lock()
        self._small: WindowReader | None = None
        self._second: SecondModel | None = None
        self._second_used = 0.0

    def read(self, text: str, before: str, sentences: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Read a message with the packaged model's lower layers and the fine-tuned upper ones.

        See WindowReader.read; each sentence has the names of SENTENCE_HEADS, and `apart` (another's words). Raises
        ModelUnavailable.
        """
        with self._lock:
            self._small = self._small or self.load()
            return self._small.read(text, before, sentences)

    def read_again(self, text: str, before: str, sentences: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Read a message with the second model, as `read`. Raises ModelUnavailable."""
        with self._loaded_second() as second:
            return second.reader.read(text, before, sentences)

    def compare(self, text: str, others: Sequence[str]) -> list[list[float]]:
        """See SecondModel.compare. Raises ModelUnavailable."""
        with self._loaded_second() as second:
            return second.compare(text, others)

    @contextmanager
    def _loaded_second(self) -> Iterator[SecondModel]:
        with self._second_lock:
            self._second = self._second or load_second(self._models_folder, self._changes)
            self._second_used = time.monotonic()
            yield self._second

    @property
    def holds_second(self) -> bool:
        """Whether the second model is in memory."""
        return self._second is not None

    def drop_unused(self) -> None:
        """Free the second model's memory if it was not used for UNUSED_SECONDS."""
        if self._second_lock.acquire(blocking=False):
            try:
                if self._second is not None and time.monotonic() - self._second_used > UNUSED_SECONDS:
                    self._second = None
                    release_memory()
            finally:
                self._second_lock.release()

    def load(self, apart: ApartHead | None = None) -> WindowReader:
        """Load the small model; `apart` takes the place of its own head. Raises ModelUnavailable."""
        location = locate_model(DEFAULT_MODEL, self._models_folder)
        verify_model(location)
        os.environ.update(LIBRARY_ENVIRONMENT)
        try:
            from . import reading_model
            from .packaged import load_packaged

            model = load_packaged(location.folder)
            upper = self._upper or reading_model.ReadingModel.load()
            head = apart or reading_model.ApartHead.load()
            tokenizer = type(model.tokenizer).from_str(model.tokenizer.to_str())
        except Exception as error:  # The libraries raise their own.
            raise ModelUnavailable(f"the model that reads messages cannot be loaded: {error}") from error
        tokenizer.no_truncation()

        def judge(window: Window) -> Mapping[str, Array]:
            logits, states = upper.read(model, window)
            return {**logits, "apart": head(states, window)}

        return WindowReader(tokenizer, reading_model.window_of, judge)


def load_second(models_folder: Path, changes: Path | None = None, apart: ApartHead | None = None) -> SecondModel:
    """Load the second model; `changes` and `apart` take the place of the packaged weights and head for reading. Raises
    ModelUnavailable."""
    from . import mpnet_files

    os.environ.update(LIBRARY_ENVIRONMENT)
    try:
        from tokenizers import Tokenizer

        from . import mpnet, reading_model

        folder = mpnet_files.prepare(models_folder)
        base = mpnet.load_base(folder / "model.safetensors")
        reader, comparer = mpnet.Mpnet(base, changes or mpnet.READING), mpnet.Mpnet(base, mpnet.COMPARING)
        del base
        release_memory()
        head = apart or reading_model.ApartHead.load(reading_model.SECOND_APART_WEIGHTS)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except ModelUnavailable:
        raise
    except Exception as error:  # The libraries raise their own, and plain ones.
        raise ModelUnavailable(f"the second model cannot be loaded: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def judge(window: Window) -> Mapping[str, Array]:
        logits, states = reader.read(window)
        return {**logits, "apart": head(states, window)}

    return SecondModel(WindowReader(tokenizer, mpnet.window_of, judge), comparer)


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
