"""The one owner of the model in the recall service: questions first, batches in between.

Questions that wait together are embedded together. A batch is worked off in micro-batches, and a
question overtakes it at the next seam.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..vault.errors import ModelUnavailable
from ..vault.render import estimate_tokens
from .embedder import Embedder, EncodedTexts, ModelLoading, PackedTexts, micro_batches
from .words import pack

if TYPE_CHECKING:
    from .embedder import Vectors

MAX_QUESTIONS_AT_ONCE = 16
STEPS_AT_ONCE_WHEN_QUIET = 3
QUIET_SECONDS = 120.0
"""After a question, the next one is likely to come this soon."""
RELOAD_SECONDS = 60.0
"""After a failed load the next try is made no sooner: installing the extra heals without a restart."""


class ModelRunner:
    """Loads the embedder in a thread of its own and serves it. Use as `Embedder` of a RecallEngine."""

    def __init__(self, name: str, load: Callable[[], Embedder], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._load = load
        self._clock = clock
        self._embedder: Embedder | None = None
        self._failure: str | None = None
        self._retry_at = 0.0
        self._asked_at = -math.inf
        self._questions: deque[tuple[str, Future[EncodedTexts]]] = deque()
        self._batches: deque[_Batch] = deque()
        self._wanted = threading.Condition()
        self._ready = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def ready(self) -> bool:
        return self._embedder is not None

    @property
    def loading(self) -> bool:
        return self._embedder is None and self._failure is None

    @property
    def failure(self) -> str | None:
        return self._failure

    @property
    def busy(self) -> bool:
        return bool(self._questions or self._batches)

    @property
    def dimension(self) -> int:
        if self._embedder is None:
            raise ModelLoading(f"the model {self.name} is still loading")
        return self._embedder.dimension

    def wait_ready(self, seconds: float) -> bool:
        """True once a load has ended well; False when it failed or takes longer."""
        self._ready.wait(seconds)
        return self.ready

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """float32[n, dimension]; raises ModelUnavailable at once while there is no model."""
        return self.encode_words(texts, query=True).vectors if query else self.batch(texts).result().vectors

    def encode_words(self, texts: Sequence[str], *, query: bool = True) -> EncodedTexts:
        """Questions only: passages come packed, from `batch`. Raises ModelUnavailable."""
        import numpy

        futures = [self.question(text) for text in texts]
        answers = [future.result() for future in futures]
        vectors = numpy.concatenate([answer.vectors for answer in answers])
        return EncodedTexts(vectors, tuple(word for answer in answers for word in answer.words))

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` by the model's own tokenizer; by its length while there is none. Any thread may ask."""
        count = getattr(self._embedder, "count_tokens", None)
        return estimate_tokens(text) if count is None else int(count(text))

    def question(self, text: str) -> Future[EncodedTexts]:
        """One question, before all batches."""
        self._require()
        future: Future[EncodedTexts] = Future()
        with self._wanted:
            self._asked_at = self._clock()
            self._questions.append((text, future))
            self._wanted.notify()
        return future

    def batch(self, texts: Sequence[str]) -> Future[PackedTexts]:
        """Passages, when no question waits."""
        self._require()
        batch = _Batch(list(texts))
        with self._wanted:
            self._batches.append(batch)
            self._wanted.notify()
        return batch.future

    def stop(self) -> None:
        """Stop after the micro-batch that runs; what waits is told that the service ends."""
        with self._wanted:
            self._stopped = True
            self._wanted.notify()

    def _is_quiet(self) -> bool:
        return self._clock() - self._asked_at > QUIET_SECONDS

    def _require(self) -> None:
        if self._embedder is not None:
            return
        if self._failure is not None and self._clock() >= self._retry_at:
            with self._wanted:
                self._failure = None
                self._ready.clear()
                self._wanted.notify()
        if self._failure is None:
            raise ModelLoading(f"the model {self.name} is still loading")
        raise ModelUnavailable(self._failure)

    def _run(self) -> None:
        while not self._stopped:
            if self._embedder is None and self._failure is None:
                self._load_now()
                continue
            with self._wanted:
                while not (self._stopped or self._questions or self._batches or self.loading):
                    self._wanted.wait()
                questions = [self._questions.popleft() for _ in range(min(len(self._questions), MAX_QUESTIONS_AT_ONCE))]
                batch = self._batches[0] if self._batches and not questions else None
            if questions:
                self._answer(questions)
            elif batch is not None:
                self._work_on(batch)
        gone = ModelUnavailable("the recall service is ending")
        for _, future in self._questions:
            future.set_exception(gone)
        for batch in self._batches:
            batch.future.set_exception(gone)

    def _load_now(self) -> None:
        try:
            embedder = self._load()
            embedder.encode(["warm up"], query=True)
            self._embedder = embedder
        except ModelUnavailable as error:
            self._failure = str(error)
        except Exception as error:  # noqa: BLE001 - a library's failure must not end the service
            self._failure = f"the model {self.name} cannot be loaded: {type(error).__name__}: {error}"
        self._retry_at = self._clock() + RELOAD_SECONDS
        self._ready.set()

    def _answer(self, questions: list[tuple[str, Future[EncodedTexts]]]) -> None:
        live = [(text, future) for text, future in questions if future.set_running_or_notify_cancel()]
        if not live or self._embedder is None:
            return
        try:
            encoded = self._embedder.encode_words([text for text, _ in live], query=True)
        except Exception as error:  # noqa: BLE001 - handed to whoever asked
            for _, future in live:
                future.set_exception(error)
            return
        for number, (_, future) in enumerate(live):
            one = slice(number, number + 1)
            future.set_result(EncodedTexts(encoded.vectors[one], encoded.words[one]))

    def _work_on(self, batch: _Batch) -> None:
        """One micro-batch of the batch at the head of the line."""
        assert self._embedder is not None
        try:
            if not batch.started:
                batch.started = batch.future.set_running_or_notify_cancel()
            if batch.started and batch.left:
                indexes = batch.left.popleft()
                # Larger steps are a seventh faster, and a question waits for the step that runs: they are for
                # the time when nobody asks.
                for _ in range(STEPS_AT_ONCE_WHEN_QUIET - 1 if self._is_quiet() else 0):
                    indexes = [*indexes, *(batch.left.popleft() if batch.left else ())]
                encoded = self._embedder.encode_words([batch.texts[i] for i in indexes])
                batch.take(indexes, encoded)
                _give_back_memory()
            if batch.started and batch.left:
                return
            if batch.started:
                batch.future.set_result(batch.packed(self._embedder.dimension))
        except Exception as error:  # noqa: BLE001 - handed to whoever asked
            batch.future.set_exception(error)
        with self._wanted:
            self._batches.popleft()


class _Batch:
    """Passages on their way through the model."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.left = deque(micro_batches(texts))
        self.done: list[tuple[list[int], Vectors]] = []
        self.words = [b""] * len(texts)
        self.future: Future[PackedTexts] = Future()
        self.started = False

    def take(self, indexes: list[int], encoded: EncodedTexts) -> None:
        self.done.append((indexes, encoded.vectors))
        for index, words in zip(indexes, encoded.words, strict=False):
            self.words[index] = pack(words)

    def packed(self, dimension: int) -> PackedTexts:
        import numpy

        result = numpy.zeros((len(self.texts), dimension), dtype=numpy.float32)
        for indexes, vectors in self.done:
            result[indexes] = vectors
        return PackedTexts(result, tuple(self.words))


def _give_back_memory() -> None:
    """Ask glibc to return what the activations took; elsewhere nothing.

    A millisecond after each tenth of a second of work: without it the heap grows by 150 MB over a drain.
    """
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # pragma: no cover - another C library
        return
