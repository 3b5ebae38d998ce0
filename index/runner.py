"""Run the model of the recall service in one thread: questions first, passages in between."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from ..runtime.errors import ModelUnavailable
from ..vault.render import estimate_tokens
from .embedder import MICRO_BATCH_TOKENS, SMALL_STEP_TOKENS, Embedder, EncodedTexts, ModelLoading

T = TypeVar("T")
_Work = tuple[Callable[[], Any], Future[Any]]
"""Work for the model's thread, and its result."""

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
        self.failure: str | None = None
        self._retry_at = 0.0
        self._last_question_at = -math.inf
        self._last_step_at = -math.inf
        self._questions: deque[_Work] = deque()
        self._batches: deque[_Work] = deque()
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
        return self._embedder is None and self.failure is None

    @property
    def busy(self) -> bool:
        return bool(self._questions or self._batches or self._readings)

    @property
    def dimension(self) -> int:
        return self._require_model().dimension

    def wait_ready(self, seconds: float) -> bool:
        """Wait for the model; False when its loading failed or takes longer than `seconds`."""
        self._ready.wait(seconds)
        return self.ready

    def encode(self, texts: Sequence[str], *, query: bool = True) -> EncodedTexts:
        """Embed questions; passages are embedded by `batch`. Raises ModelUnavailable, at once without a model."""
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
        return self._submit(self._questions, lambda: embedder.encode(texts, query=True))

    def batch(self, texts: Sequence[str]) -> Future[EncodedTexts]:
        """Embed passages, at most `step_tokens`, while no question waits. Raises ModelUnavailable."""
        embedder = self._require_model()
        return self._submit(self._batches, lambda: embedder.encode(texts))

    @property
    def step_tokens(self) -> int:
        """Most tokens of a batch now. Larger ones are faster, but a question waits for the one that is embedded."""
        is_quiet = self._clock() - self._last_question_at > QUIET_SECONDS
        return MICRO_BATCH_TOKENS if is_quiet else SMALL_STEP_TOKENS

    def between_questions(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in the model's thread, while no question waits. Raises ModelUnavailable when it is ending."""
        return self._submit(self._readings, work)

    def _submit(self, queue: deque[_Work], work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._wanted:
            if self._stopped:  # No thread would take the work.
                raise ModelUnavailable(_ENDING)
            queue.append((work, future))
            self._wanted.notify()
        return future

    def hold_batches(self) -> None:
        """Pause the batches for PAUSE_SECONDS: a recall has begun and needs the processor."""
        self._last_question_at = self._clock()

    def stop(self) -> None:
        """Stop after the current step; whatever waits gets ModelUnavailable."""
        with self._wanted:
            self._stopped = True
            self._wanted.notify()

    def _pause_seconds(self) -> float:
        """How long batches still pause; 0 or less when they need not."""
        now = self._clock()
        return min(self._last_question_at + PAUSE_SECONDS, self._last_step_at + MAX_PAUSE_SECONDS) - now

    def _require_model(self) -> Embedder:
        if self._embedder is not None:
            return self._embedder
        if self.failure is not None and self._clock() >= self._retry_at:
            with self._wanted:
                self.failure = None
                self._ready.clear()
                self._wanted.notify()
        if self.failure is None:
            raise ModelLoading(f"the model {self.name} is still loading")
        raise ModelUnavailable(self.failure)

    def _run(self) -> None:
        while not self._stopped:
            if self._embedder is None and self.failure is None:
                self._load_now()
                continue
            with self._wanted:
                while not (self._stopped or self._questions or self._readings or self.loading):
                    pause = self._pause_seconds() if self._batches else None
                    if pause is not None and pause <= 0:
                        break
                    self._wanted.wait(pause)
                queue = self._questions or self._readings or self._batches
                work = queue.popleft() if queue and not self._stopped else None
            if work is None:
                continue
            _settle(*work)
            if queue is self._batches:
                release_memory()
                self._last_step_at = self._clock()
        gone = ModelUnavailable(_ENDING)
        for _, waiting in (*self._questions, *self._readings, *self._batches):
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(gone)

    def _load_now(self) -> None:
        try:
            embedder = self._load()
            embedder.encode(["warm up"], query=True)
            self._embedder = embedder
            self.judge_answer("warm up", "warm up")
        except ModelUnavailable as error:
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - a library's failure must not end the service
            self.failure = f"the model {self.name} cannot be loaded: {type(error).__name__}: {error}"
        self._retry_at = self._clock() + RELOAD_SECONDS
        self._ready.set()


def _settle(work: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except Exception as error:  # noqa: BLE001 - handed to the caller
        future.set_exception(error)


def release_memory() -> None:
    """Let glibc return freed memory to the system; does nothing elsewhere.

    Takes a millisecond after each tenth of a second of work: without it the heap grows by 150 MB over a drain.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # Another C library.
            ctypes.CDLL(None).malloc_trim(0)
