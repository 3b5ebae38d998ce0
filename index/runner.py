"""Run the model of the recall service in one thread: questions first, batches of passages in between.

A batch is embedded in micro-batches, and a question is embedded before the next one of these.
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
from typing import TYPE_CHECKING, Any, TypeVar

from ..runtime.errors import ModelUnavailable
from ..vault.render import estimate_tokens
from .embedder import SMALL_STEP_TOKENS, Embedder, EncodedTexts, ModelLoading, PackedTexts, micro_batches
from .late_interaction import pack_words

if TYPE_CHECKING:
    from .embedder import Vectors

T = TypeVar("T")
_Work = tuple[Callable[[], Any], Future[Any]]
"""Work for the model's thread, and its result."""

STEPS_AT_ONCE_WHEN_QUIET = 3
PAUSE_SECONDS = 0.15
"""How long batches pause after a question: questions come in bursts, and each needs the processor for itself."""
MAX_PAUSE_SECONDS = 1.5
"""Longest pause of a batch, however many questions come."""
QUIET_SECONDS = 120.0
"""Time after a question within which the next one is likely."""
RELOAD_SECONDS = 60.0
"""Time between a failed load and the next attempt: after an installation of the extra no restart is needed."""

_ENDING = "the recall service is ending"


class ModelRunner:
    """Loads the embedder in a separate thread and serves it. Use as `Embedder` of a RecallEngine."""

    def __init__(self, name: str, load: Callable[[], Embedder], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._load = load
        self._clock = clock
        self._embedder: Embedder | None = None
        self._failure: str | None = None
        self._retry_at = 0.0
        self._last_question_at = -math.inf
        self._last_step_at = -math.inf
        self._questions: deque[_Work] = deque()
        self._batches: deque[_Batch] = deque()
        self._readings: deque[_Work] = deque()
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
        return bool(self._questions or self._batches or self._readings)

    @property
    def dimension(self) -> int:
        if self._embedder is None:
            raise ModelLoading(f"the model {self.name} is still loading")
        return self._embedder.dimension

    def wait_ready(self, seconds: float) -> bool:
        """Wait for the model; False when its loading failed or takes longer than `seconds`."""
        self._ready.wait(seconds)
        return self.ready

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """float32[n, dimension]; raises ModelUnavailable at once while there is no model."""
        return self.encode_words(texts, query=True).vectors if query else self.batch(texts).result().vectors

    def encode_words(self, texts: Sequence[str], *, query: bool = True) -> EncodedTexts:
        """Embed questions; passages are embedded by `batch`, which packs their words. Raises ModelUnavailable."""
        return self.question(texts).result()

    def count_tokens(self, text: str) -> int:
        """Count tokens by the model's own tokenizer; by the text's length while there is none. Thread-safe."""
        count = getattr(self._embedder, "count_tokens", None)
        return estimate_tokens(text) if count is None else int(count(text))

    def judge_answer(self, prompt: str, passage: str) -> float | None:
        """See PackagedEmbedder.judge_answer; None from a model that cannot judge. Thread-safe."""
        judge = getattr(self._embedder, "judge_answer", None)
        try:
            logit: float | None = None if judge is None else judge(prompt, passage)
            return logit
        except Exception:  # noqa: BLE001 - a library's failure must not fail a recall
            return None

    def question(self, texts: Sequence[str]) -> Future[EncodedTexts]:
        """Embed questions, before all batches. Raises ModelUnavailable."""
        embedder = self._require_model()
        self._last_question_at = self._clock()
        return self._submit(self._questions, lambda: embedder.encode_words(texts, query=True))

    def batch(self, texts: Sequence[str]) -> Future[PackedTexts]:
        """Embed passages, while no question waits. Raises ModelUnavailable."""
        self._require_model()
        batch = _Batch(list(texts))
        with self._wanted:
            self._require_running()
            self._batches.append(batch)
            self._wanted.notify()
        return batch.future

    def between_questions(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in the model's thread, while no question waits. Raises ModelUnavailable when it is ending."""
        return self._submit(self._readings, work)

    def _submit(self, queue: deque[_Work], work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._wanted:
            self._require_running()
            queue.append((work, future))
            self._wanted.notify()
        return future

    def hold_batches(self) -> None:
        """Pause the batches for PAUSE_SECONDS: a recall has begun and needs the processor."""
        self._last_question_at = self._clock()

    def stop(self) -> None:
        """Stop after the current micro-batch; whatever waits gets ModelUnavailable."""
        with self._wanted:
            self._stopped = True
            self._wanted.notify()

    def _is_quiet(self) -> bool:
        return self._clock() - self._last_question_at > QUIET_SECONDS

    def _pause_seconds(self) -> float:
        """How long batches still pause; 0 or less when they need not."""
        now = self._clock()
        return min(self._last_question_at + PAUSE_SECONDS, self._last_step_at + MAX_PAUSE_SECONDS) - now

    def _require_model(self) -> Embedder:
        if self._embedder is not None:
            return self._embedder
        if self._failure is not None and self._clock() >= self._retry_at:
            with self._wanted:
                self._failure = None
                self._ready.clear()
                self._wanted.notify()
        if self._failure is None:
            raise ModelLoading(f"the model {self.name} is still loading")
        raise ModelUnavailable(self._failure)

    def _require_running(self) -> None:
        """Raise after `stop`, when no thread would take the work. To be called under the lock."""
        if self._stopped:
            raise ModelUnavailable(_ENDING)

    def _run(self) -> None:
        while not self._stopped:
            if self._embedder is None and self._failure is None:
                self._load_now()
                continue
            with self._wanted:
                while not (self._stopped or self._questions or self._readings or self.loading):
                    pause = self._pause_seconds() if self._batches else None
                    if pause is not None and pause <= 0:
                        break
                    self._wanted.wait(pause)
                urgent = self._questions or self._readings
                work = urgent.popleft() if urgent else None
                batch = self._batches[0] if self._batches and work is None else None
            if work is not None:
                _settle(*work)
            elif batch is not None:
                self._embed_step(batch)
        gone = ModelUnavailable(_ENDING)
        for _, waiting in (*self._questions, *self._readings):
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(gone)
        for batch in self._batches:
            batch.future.set_exception(gone)

    def _load_now(self) -> None:
        try:
            embedder = self._load()
            embedder.encode(["warm up"], query=True)
            self._embedder = embedder
            self.judge_answer("warm up", "warm up")
        except ModelUnavailable as error:
            self._failure = str(error)
        except Exception as error:  # noqa: BLE001 - a library's failure must not end the service
            self._failure = f"the model {self.name} cannot be loaded: {type(error).__name__}: {error}"
        self._retry_at = self._clock() + RELOAD_SECONDS
        self._ready.set()

    def _embed_step(self, batch: _Batch) -> None:
        """Embed the next micro-batch of the first batch in the queue."""
        assert self._embedder is not None
        try:
            if not batch.started:
                batch.started = batch.future.set_running_or_notify_cancel()
            if batch.started and batch.left:
                # Larger steps are a seventh faster, but a question waits for the step that runs: they are for the
                # time without questions.
                indexes = batch.next_step() if self._is_quiet() else batch.next_small_step()
                encoded = self._embedder.encode_words([batch.texts[i] for i in indexes])
                batch.add(indexes, encoded)
                release_memory()
                self._last_step_at = self._clock()
            if batch.started and batch.left:
                return
            if batch.started:
                batch.future.set_result(batch.packed(self._embedder.dimension))
        except Exception as error:  # noqa: BLE001 - handed to the caller
            batch.future.set_exception(error)
        with self._wanted:
            self._batches.popleft()


def _settle(work: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except Exception as error:  # noqa: BLE001 - handed to the caller
        future.set_exception(error)


class _Batch:
    """Passages that are being embedded."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.left = deque(micro_batches(texts))
        self.done: list[tuple[list[int], Vectors]] = []
        self.words = [b""] * len(texts)
        self.future: Future[PackedTexts] = Future()
        self.started = False

    def next_step(self) -> list[int]:
        """Indexes of the texts to embed next."""
        steps = [self.left.popleft() for _ in range(min(len(self.left), STEPS_AT_ONCE_WHEN_QUIET))]
        return [index for step in steps for index in step]

    def next_small_step(self) -> list[int]:
        """Indexes of the texts to embed next, about SMALL_STEP_TOKENS of them."""
        step = self.left.popleft()
        (small, *_) = micro_batches([self.texts[index] for index in step], SMALL_STEP_TOKENS)
        first = [step[position] for position in small]
        if len(first) < len(step):
            self.left.appendleft([index for index in step if index not in first])
        return first

    def add(self, indexes: list[int], encoded: EncodedTexts) -> None:
        self.done.append((indexes, encoded.vectors))
        for index, words in zip(indexes, encoded.words, strict=False):
            self.words[index] = pack_words(words)

    def packed(self, dimension: int) -> PackedTexts:
        import numpy

        result = numpy.zeros((len(self.texts), dimension), dtype=numpy.float32)
        for indexes, vectors in self.done:
            result[indexes] = vectors
        return PackedTexts(result, tuple(self.words))


def release_memory() -> None:
    """Let glibc return freed memory to the system; does nothing elsewhere.

    Takes a millisecond after each tenth of a second of work: without it the heap grows by 150 MB over a drain.
    """
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # pragma: no cover - another C library
        return
