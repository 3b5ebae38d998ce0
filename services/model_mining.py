"""Ask the user's model about the windows of a session, within the spending caps, and only once per window.

Failures never lose the local miner's candidates: they are only reported in the job's history. An answer is kept on disk
until its candidates are in the vault, so that a retry of the job does not pay for it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..pipelines.candidate import Candidate
from ..pipelines.scrub import Policy, scrub_json
from ..runtime.atomic_file import replace_file
from ..runtime.errors import MemoryVaultError
from ..runtime.json_text import parse_json
from ..runtime.layout import StatePaths
from ..runtime.settings import Settings
from ..sources.completion import Completion, CompletionFailed, CompletionRequest, unanswered
from ..tasks.queue.kinds import Json
from .completion import ask_within, completer_of
from .spending import BudgetRefused, Cap, SpendingBook

if TYPE_CHECKING:
    from ..pipelines.reading.model_windows import Window

log = logging.getLogger(__name__)

PURPOSE = "mining"
MODEL_SECONDS = 280.0
"""Time limit for all windows of one reading together."""
CALL_SECONDS = 120.0
"""Longest wait for one answer."""
LEAST_CALL_SECONDS = 1.0
MAX_OUTPUT_TOKENS = 1500
MAX_WAIT_SECONDS = 10.0
"""If a service asks for a longer pause, there is no second request: the session is read again later."""
AGAIN = "again_seconds"
"""Report field: the model is unavailable, and may be available after this many seconds."""
ANSWERS_FOLDER = "answers"


@dataclass(frozen=True)
class ModelMined:
    """A model's candidates, its report for the job's history, and the keys of the answers that are kept."""

    candidates: tuple[Candidate, ...]
    report: Mapping[str, Json]
    answers: tuple[str, ...]
    read: frozenset[str] = frozenset()
    """Record ids of the user's messages that the model read (`Reading.read`)."""


class AnswerCache:
    """Stores scrubbed answers in the state folder, by session and content of the request."""

    def __init__(self, state: StatePaths) -> None:
        self._folder = Path(state.cache) / ANSWERS_FOLDER

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Load an answer; None if it is missing or damaged."""
        try:
            return dict(parse_json((self._folder / f"{key}.json").read_text("utf-8"))["value"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Store an answer durably. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = json.dumps({"value": scrub_json(answer, Policy.FULL)[0]}).encode("ascii")
        replace_file(self._folder / f"{key}.json", stored)

    def forget(self, keys: Iterable[str]) -> None:
        """Delete answers whose candidates are in the vault or were rejected."""
        for key in keys:
            with contextlib.suppress(OSError):
                (self._folder / f"{key}.json").unlink()


def mine_windows(
    windows: Sequence[Window],
    settings: Settings,
    session: str,
    project_of: Callable[[str], str],
) -> ModelMined:
    """Ask the model that the settings name about each window.

    Errors of the model, the network or the budget are in the report, never raised.
    """
    from ..pipelines.reading.model_answers import read_answer  # Imported late: see services/mining.py.

    report: dict[str, Json] = {"miner": settings.reflection.miner}
    if not windows:
        return ModelMined((), {**report, "asked": 0}, ())
    asker = _WindowAsker(settings, session)
    candidates: list[Candidate] = []
    dropped: Counter[str] = Counter()
    read: set[str] = set()
    for window in windows:
        value = asker.answer(window)
        if value is not None:
            reading = read_answer(value, window, project_of)
            candidates += reading.candidates
            dropped.update(reading.dropped)
            read |= reading.read
    report |= asker.report()
    if dropped:
        report["dropped"] = dict(dropped)
    return ModelMined(tuple(candidates), report, tuple(asker.used_keys), frozenset(read))


class _WindowAsker:
    """Asks about the windows of one reading. After the first failure only kept answers are used."""

    def __init__(self, settings: Settings, session: str) -> None:
        from ..pipelines.reading.model_answers import answer_schema, system_prompt

        self.used_keys: list[str] = []
        self._system, self._schema = system_prompt(), answer_schema()
        self._settings = settings
        self._session = session
        self._deadline = time.monotonic() + MODEL_SECONDS
        self._cache = AnswerCache(settings.state)
        self._book = SpendingBook(settings.state.state_db, PURPOSE)
        self._counts: Counter[str] = Counter()
        self._failed = ""
        self._refused = ""
        self._again_seconds: float | None = None
        self._may_wait = True

    def report(self) -> dict[str, Json]:
        """Count the calls and name the last failure, for the job's history."""
        report: dict[str, Json] = {name: count for name, count in sorted(self._counts.items()) if count}
        if self._failed:
            report["failed"] = self._failed
        if self._again_seconds is not None:
            report[AGAIN] = self._again_seconds
        if self._refused:
            report["refused"] = self._refused
        return report

    def answer(self, window: Window) -> Mapping[str, Any] | None:
        """Return a kept answer or the model's; None if there is neither."""
        try:
            return self._load_or_ask(window)
        except BudgetRefused as refused:
            self._counts["windows_refused"] += 1
            self._refused = str(refused)
        except CompletionFailed as failed:
            self._fail(str(failed))
            if failed.retry_after is not None and failed.retry_after > MAX_WAIT_SECONDS:
                self._again_seconds = failed.retry_after
        except (MemoryVaultError, OSError) as error:
            self._fail(str(error))
        return None

    def _fail(self, why: str) -> None:
        self._failed = why
        self._counts["windows_failed"] += 1

    def _load_or_ask(self, window: Window) -> Mapping[str, Any] | None:
        key = self._key(window)
        kept = self._cache.get(key)
        if kept is not None:
            self._counts["from_earlier_attempt"] += 1
            self.used_keys.append(key)
            return kept
        if self._failed:
            self._counts["windows_not_asked"] += 1
            return None
        completion = self._ask(window)
        if not isinstance(completion.value.get("candidates"), list):
            raise unanswered("the model's answer is not as the schema says")
        try:
            self._cache.put(key, completion.value)
        except OSError as error:  # The answer is paid for and used; only a retry would have to pay again.
            log.warning("an answer of the model cannot be kept for a retry: %s", error)
        else:
            self.used_keys.append(key)
        self._counts["asked"] += 1
        if completion.tokens is not None:
            self._counts["tokens"] += completion.tokens
        return completion.value

    def _ask(self, window: Window) -> Completion:
        try:
            return self._ask_once(window)
        except CompletionFailed as failed:
            pause = failed.retry_after
            if pause is None or pause > MAX_WAIT_SECONDS or not self._may_wait or self._remaining_seconds() <= pause:
                raise
            self._may_wait = False
            time.sleep(pause)
            return self._ask_once(window)

    def _ask_once(self, window: Window) -> Completion:
        completer = completer_of(self._settings)
        if completer is None:
            raise CompletionFailed("no model is set", may_have_cost=False)
        seconds = min(CALL_SECONDS, self._remaining_seconds())
        if seconds < LEAST_CALL_SECONDS:
            raise CompletionFailed(f"the {MODEL_SECONDS:.0f} s for asking are over", may_have_cost=False)
        request = CompletionRequest(window.text, self._system, self._schema, MAX_OUTPUT_TOKENS, seconds)
        limits = self._settings.reflection  # A setting of 0 is no cap.
        caps = (Cap("tokens", limits.session_token_cap, "subject"), Cap("tokens", limits.daily_token_cap, "day"))
        return ask_within([cap for cap in caps if cap.limit], self._book, self._session, completer, request)

    def _remaining_seconds(self) -> float:
        return self._deadline - time.monotonic()

    def _key(self, window: Window) -> str:
        # With the session: a kept answer is deleted with its session, while a copy of the session may still need its
        # own.
        reflection = self._settings.reflection
        request = (self._system, json.dumps(self._schema), window.text)
        parts = (self._session, reflection.miner, reflection.endpoint, reflection.model, *request)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
