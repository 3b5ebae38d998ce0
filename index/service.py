"""The recall service (`memory service serve`): the one process that holds the model.

Each connection has a thread, which reads requests and runs recalls over pooled index readers; the model has a thread of
its own (runner.py). A client that hangs, or sends too much or no valid requests, affects only its own connection.
"""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path
from typing import Any

from .. import __version__
from ..hooks.entryfile import read_entry_file
from ..hooks.injected import read_injected
from ..hooks.recall_client import shorten
from ..runtime.days import local_today
from ..runtime.errors import IndexUnavailable, MemoryVaultError, ModelUnavailable, UsageError
from ..runtime.interpreter import peer_uid
from ..runtime.killpoint import kill_point
from ..runtime.layout import INDEX_WANTED, StatePaths, leave_socket_folder
from ..runtime.paths import ensure_state
from ..runtime.priority import lower_priority
from ..runtime.settings import Settings
from ..vault.active import EXPLICIT_KINDS
from ..vault.project import project_of
from ..vault.render import around_words, introduced, render_block, select_hits, status_line
from .client import RecallClient, ServiceRefused, ServiceUnavailable
from .daemon import CannotServe, call_on_signals, hold_lock, listen
from .embedder import Embedder, load_embedder, micro_batches
from .engine import (
    FILES_LATE,
    NO_INDEX,
    VAULT_MISSING,
    VECTORS_DAMAGED,
    Hit,
    RecallEngine,
    RecallQuery,
    RecallResult,
)
from .filters import parse_filter
from .late_interaction import pack_words
from .message_reader import MessageReader
from .models import model_in_force, wanted_model
from .protocol import (
    MAX_BUDGET_MS,
    MAX_COMPARED,
    MAX_K,
    MAX_TEXT_CHARACTERS,
    SESSION_ID,
    VERSION,
    MessageTooLong,
    decode,
    encode,
    number_field,
    read_line,
    spans_field,
    strings_field,
    text_field,
)
from .query import analyse
from .receipts import append_receipt, receipt
from .runner import ModelRunner
from .scope import ON_DEMAND
from .unreviewed import recall_unreviewed, render_unreviewed

CONNECTION_SECONDS = 30.0
"""How long a connection may be idle, or take to accept an answer."""
IDLE_SECONDS = 1800.0
"""Time without a request after which the service exits."""
MAX_CONNECTIONS = 64
DRAIN_SECONDS = 2.0
"""How long requests in progress may take when the service ends; less than daemon.LEAVING_SECONDS."""
HANGS_SECONDS = 10.0
"""Time without an answer to a ping after which a service is replaced by a new one. A busy one answers: each connection
has its thread, and a ping needs no model."""
EMBED_WAIT_SECONDS = 60.0
"""How long a batch waits for the model to be loaded."""
SOUGHT_CHARACTERS = 2000
"""So much of a prompt's beginning and end decides which sentence of a long note is shown: an answer has little time."""
_TICK_SECONDS = 0.2


_Answer = tuple[dict[str, Any], Callable[[], None] | None]
"""The fields of an answer, and a function to be called once it has been sent."""


class Outcome(Enum):
    """How `serve` ended."""

    ALREADY_RUNNING = "already running"
    IDLE = "nobody used it"
    STOPPED = "stopped"
    ORPHANED = "its socket was removed"


def serve(
    settings: Settings,
    state: StatePaths,
    *,
    idle_seconds: float = IDLE_SECONDS,
    load: Callable[[], Embedder] | None = None,
    log: Callable[[str, Mapping[str, Any]], None] = lambda event, fields: None,
) -> Outcome:
    """Serve until SIGTERM, SIGINT, `stop`, or `idle_seconds` without a request. Main thread only.

    Settings come from the user, never from a client. `log(event, fields)` is called for start, end and faults. Raises
    SettingsError when no vault is set, and CannotServe.
    """
    ensure_state(state, CannotServe)
    lower_priority()
    lock, socket_path = Path(state.recall_lock), Path(state.recall_socket)
    with hold_lock(lock, socket_path, lambda: _does_hang(socket_path)) as is_held:
        if not is_held:
            return Outcome.ALREADY_RUNNING
        service = RecallService(settings, state, idle_seconds, load, log)
        try:
            return service.run()
        finally:
            service.close()


def _does_hang(socket_path: Path) -> bool:
    """Whether the service answers no ping for HANGS_SECONDS."""
    until = time.monotonic() + HANGS_SECONDS
    with RecallClient(socket_path) as client:
        while (left := until - time.monotonic()) > 0:
            try:
                client.ping(left)
                return False
            except ServiceUnavailable:
                time.sleep(min(_TICK_SECONDS, left))
            except ServiceRefused:  # An older one, which does not know the word.
                return False
    return True


class RecallService:
    """The listening socket, the model and the engine. Use `serve`, which holds the lock."""

    def __init__(
        self,
        settings: Settings,
        state: StatePaths,
        idle_seconds: float,
        load: Callable[[], Embedder] | None,
        log: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        """As `serve`."""
        self._settings = settings
        self._vault = settings.required_vault_path
        self._state = state
        self._idle_seconds = idle_seconds
        self._log = log
        self._socket_path = state.recall_socket
        self._listener = listen(self._socket_path, MAX_CONNECTIONS)
        self._inode = os.stat(self._socket_path).st_ino
        self._listener.settimeout(_TICK_SECONDS)
        self._outcome: Outcome | None = None
        self._last_used = time.monotonic()
        self._connections: set[socket.socket] = set()
        self._answering = 0
        self._lock = threading.Lock()
        self._load_model = load
        self._messages = MessageReader(Path(state.models))
        self._runner = self._run_model(self._model_in_force())
        self._engine = self._engine_over(self._runner)
        self._operations: Mapping[str, Callable[[Mapping[str, Any]], _Answer]] = {
            "recall": self._recall,
            "embed": self._embed,
            "read": self._read,
            "compare": self._compare,
            "ping": self._ping,
            "reload": self._reload,
            "stop": self._stop,
        }

    def run(self) -> Outcome:
        """Accept until there is a reason to end; then let requests in progress finish."""
        self._log("start", {"model": self._runner.name})
        with call_on_signals(self._end):
            while self._outcome is None:
                self._accept()
                self._check_state()
        # No more connections while the last answers are being sent.
        self._unlink()
        self._listener.close()
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._answering and time.monotonic() < deadline:
            time.sleep(0.01)
        self._log("end", {"why": self._outcome.value})
        return self._outcome

    def close(self) -> None:
        self._unlink()
        self._listener.close()
        self._runner.stop()
        self._engine.close()

    def _accept(self) -> None:
        """Take the next connection, if one comes within _TICK_SECONDS."""
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return
        except OSError:  # No descriptor is free, say.
            time.sleep(_TICK_SECONDS)
            return
        uid = peer_uid(connection)
        if uid != os.getuid():
            self._log("refused", {"uid": uid})
            connection.close()
            return
        with self._lock:
            if len(self._connections) >= MAX_CONNECTIONS:
                connection.close()
                return
            self._connections.add(connection)
        connection.settimeout(CONNECTION_SECONDS)
        threading.Thread(target=self._converse, args=(connection,), name="client", daemon=True).start()

    def _check_state(self) -> None:
        """End when idle, or when the socket is no longer ours."""
        if self._outcome is not None:
            return
        self._messages.drop_unused()
        busy = self._answering or self._runner.busy
        if not busy and time.monotonic() - self._last_used > self._idle_seconds:
            self._outcome = Outcome.IDLE
        try:
            ours = os.stat(self._socket_path).st_ino == self._inode
        except OSError:
            ours = False
        if not ours:
            self._outcome = Outcome.ORPHANED

    def _unlink(self) -> None:
        with contextlib.suppress(OSError):
            if os.stat(self._socket_path).st_ino == self._inode:
                os.unlink(self._socket_path)
                leave_socket_folder(self._socket_path)

    # One connection

    def _converse(self, connection: socket.socket) -> None:
        requests = connection.makefile("rb")
        try:
            while (line := read_line(requests)) is not None:
                with self._lock:
                    self._answering += 1
                try:
                    answer, afterwards = self._answer(line)
                    connection.sendall(encode(answer))
                    if afterwards is not None:
                        afterwards()
                finally:
                    with self._lock:
                        self._answering -= 1
        except MessageTooLong:
            with contextlib.suppress(OSError):
                connection.sendall(encode(_refusal("the message is longer than 8 MB")))
        except OSError:
            pass  # the client hung up, was idle too long or does not read
        finally:
            with self._lock:
                self._connections.discard(connection)
            requests.close()
            connection.close()

    def _answer(self, line: bytes) -> _Answer:
        try:
            message = decode(line)
            version = message.get("v")
            if isinstance(version, int) and version > VERSION:
                # A newer client: end, so that it can start a service of its own version.
                return _refusal(f"this service speaks version {VERSION} and ends"), self._end
            if version != VERSION:
                raise UsageError(f"this service speaks version {VERSION}: update the client")
            operation = self._operations.get(str(message.get("op")))
            if operation is None:
                raise UsageError(f"unknown op {message.get('op')!r}")
            try:
                fields, afterwards = operation(message)
            finally:
                if operation != self._ping:
                    self._last_used = time.monotonic()
            return {"v": VERSION, "ok": True, **fields}, afterwards
        except MemoryVaultError as error:
            return _refusal(str(error)), None
        except Exception as error:  # noqa: BLE001 - a bug in one request must not end the service
            self._log("error", {"error": f"{type(error).__name__}: {error}"})
            return {**_refusal(f"internal error: {type(error).__name__}: {error}"), "failed": True}, None

    def _ping(self, message: Mapping[str, Any]) -> _Answer:
        return {
            "model": self._runner.name if self._runner.ready else None,
            "loading": self._runner.loading,
            "failure": self._runner.failure,
            "pid": os.getpid(),
            "version": __version__,
            "vault": str(self._vault),
        }, None

    def _stop(self, message: Mapping[str, Any]) -> _Answer:
        return {}, self._end

    # Another model

    def _model_in_force(self) -> str:
        # An index made anew has none: what then counts is the setting, which may be another than at the start.
        return model_in_force(Path(self._state.index_db), wanted_model(self._settings))

    def _run_model(self, name: str) -> ModelRunner:
        load = self._load_model or (lambda: load_embedder(name, models_folder=Path(self._state.models)))
        return ModelRunner(name, load)

    def _engine_over(self, runner: ModelRunner) -> RecallEngine:
        index_db = Path(self._state.index_db)
        return RecallEngine(index_db, self._vault, runner, self._settings.recall.eagerness, keep_vectors=True)

    def _reload(self, message: Mapping[str, Any]) -> _Answer:
        """Load the model that is in force, if it is another one. Until it is loaded, words alone answer."""
        name = self._model_in_force()
        with self._lock:
            if name != self._runner.name:
                self._runner.stop()
                # Recalls that run keep the old engine, which nobody needs to close.
                self._runner = self._run_model(name)
                self._engine = self._engine_over(self._runner)
                self._log("model", {"model": name})
        return {"model": name, "loading": self._runner.loading}, None

    def _end(self) -> None:
        self._outcome = self._outcome or Outcome.STOPPED

    def _embed(self, message: Mapping[str, Any]) -> _Answer:
        texts = strings_field(message, "texts")
        if texts is None:
            raise UsageError("texts is missing")
        runner = self._runner
        if not runner.wait_ready(EMBED_WAIT_SECONDS) and runner.loading:
            raise ModelUnavailable(f"the model {runner.name} is still loading: try again")
        kill_point("recall-drain")
        vectors, words = [b""] * len(texts), [b""] * len(texts)
        left = list(range(len(texts)))
        while left:
            (first, *_) = micro_batches([texts[number] for number in left], runner.step_tokens)
            group = [left[place] for place in first]
            left = [number for number in left if number not in group]
            encoded = runner.batch([texts[number] for number in group]).result()
            for number, vector in zip(group, encoded.vectors, strict=True):
                vectors[number] = vector.astype("<f4").tobytes()
            for number, each in zip(group, encoded.words, strict=False):
                words[number] = pack_words(each)
        return {
            "model": runner.name,
            "dim": runner.dimension,
            "vectors": base64.b64encode(b"".join(vectors)).decode("ascii"),
            "words": [base64.b64encode(packed).decode("ascii") for packed in words],
        }, None

    def _read(self, message: Mapping[str, Any]) -> _Answer:
        text, before = text_field(message, "text"), text_field(message, "before") or ""
        if text is None or len(text) > MAX_TEXT_CHARACTERS:
            raise UsageError("text is missing or too long")
        spans = spans_field(message, "sentences", len(text))
        if message.get("again") is True:
            # In this thread: a window takes too long for the model's own, in which questions are answered.
            answer = self._messages.read_again(text, before, spans)
        else:
            answer = self._runner.between_questions(lambda: self._messages.read(text, before, spans)).result()
        return answer, None

    def _compare(self, message: Mapping[str, Any]) -> _Answer:
        text, others = text_field(message, "text"), strings_field(message, "others")
        if text is None or not others or len(others) > MAX_COMPARED:
            raise UsageError("text or others are missing, or the others are too many")
        logits = self._messages.compare(text, others)
        return {"logits": logits}, None

    def _recall(self, message: Mapping[str, Any]) -> _Answer:
        query, session, project = self._query(message)
        deadline = _deadline(message)
        token_budget = int(number_field(message, "token_budget", 2000) or 0)
        answer: dict[str, Any] = {}
        self._runner.hold_batches()
        left_ms = None if deadline is None else (deadline - time.monotonic()) * 1000
        if left_ms is not None and left_ms <= 0:
            raise UsageError("the time for this question is over")
        result = self._engine.recall(query, budget_ms=left_ms)
        shown = list(result.hits)
        if not {NO_INDEX, VECTORS_DAMAGED}.isdisjoint(result.degraded):
            with contextlib.suppress(OSError):
                Path(self._state.run, INDEX_WANTED).touch(mode=0o600)
        if query.is_prompt and NO_INDEX in result.degraded:
            raise IndexUnavailable("there is no index that can be used")
        tokens = None
        waiting: Sequence[Hit] = ()
        if message.get("render"):
            count = self._runner.count_tokens
            asked = analyse(shorten(query.text, SOUGHT_CHARACTERS))
            words = [form for term in asked.terms for form in (term.word, term.stem)]
            near = [replace(hit, excerpt=around_words(text, words)) for hit, text in self._introduced(result)]
            shown = select_hits(near, token_budget, count)
            answer["block"] = render_block(shown)
            if self._settings.recall.unreviewed:
                given = [hit.path for hit in shown]
                waiting = recall_unreviewed(self._engine, self._vault, query, deadline, given)
                answer["block"] += ("\n" if shown and waiting else "") + render_unreviewed(waiting)
                shown += waiting
            answer["status"] = status_line(hit.slug for hit in shown)
            tokens = count(answer["block"]) if answer["block"] else 0
        paths = [hit.path for hit in shown]
        caller = text_field(message, "caller") or ("hook" if session else "service")

        def leave_receipt() -> None:
            line = receipt(
                query.text,
                replace(result, hits=(*result.hits, *waiting)),
                caller=caller,
                session=session,
                project=project,
                injected=paths if session else (),
                tokens=tokens,
                given_before=len(query.exclude_paths),
            )
            append_receipt(Path(self._state.receipts), line)

        return {
            **answer,
            "paths": paths,
            "hits": [asdict(hit) for hit in shown],
            "degraded": list(result.degraded),
            "ms": result.timings_ms.get("total", 0.0),
            "timings_ms": dict(result.timings_ms),
            "found": dict(result.found),
        }, leave_receipt

    def _introduced(self, result: RecallResult) -> Iterator[tuple[Hit, str]]:
        """Yield each hit with its passage and, where the disk answers, the line above that says what it is: the index
        has a list without the heading that forbids what is in it."""
        is_read = {FILES_LATE, VAULT_MISSING}.isdisjoint(result.degraded)
        for hit in result.hits:
            entry = read_entry_file(str(self._vault), hit.path) if is_read else None
            yield hit, (entry and introduced(hit.excerpt, entry.excerpt)) or hit.excerpt

    def _query(self, message: Mapping[str, Any]) -> tuple[RecallQuery, str | None, str | None]:
        text = text_field(message, "text")
        if text is None:
            raise UsageError("text is missing")
        session = text_field(message, "session") or None
        if session is not None and SESSION_ID.fullmatch(session) is None:
            raise UsageError("session is not a session id")
        project = text_field(message, "project")
        cwd = text_field(message, "cwd")
        if project is None and cwd:
            project = project_of(cwd)
        statuses = strings_field(message, "statuses")
        exclude = set(strings_field(message, "exclude_paths") or ())
        injected = set() if session is None else read_injected(self._state.markers, session)
        exclude |= injected or set()
        k = number_field(message, "k", 5)
        query = RecallQuery(
            text=text[:MAX_TEXT_CHARACTERS],
            k=int(max(0, min(MAX_K, k or 0))),
            project=project,
            all_projects=bool(message.get("all_projects")),
            filter=parse_filter(text_field(message, "filter"), local_today()),
            group=text_field(message, "group"),
            statuses=frozenset(statuses) if statuses else RecallQuery.statuses,
            include=frozenset(strings_field(message, "include") or ()),
            exclude_paths=frozenset(exclude),
            # A session of which nothing is known is assumed to hold the always-load entries.
            exclude_always_load=injected is None,
            exclude_kinds=ON_DEMAND if session is not None else EXPLICIT_KINDS,
            is_prompt=session is not None or bool(message.get("render")),
            apply_threshold=message.get("floor") is not False,
        )
        return query, session, project


def _deadline(message: Mapping[str, Any]) -> float | None:
    """Return when the answer must have been sent (monotonic seconds), None without a budget.

    `until` is on the client's monotonic clock, which is this machine's, so the time that the request waited in the
    socket counts. Where the clocks differ, `budget_ms` from now is the limit.
    """
    budget_ms = number_field(message, "budget_ms", None)
    if budget_ms is None:
        return None
    latest = time.monotonic() + min(budget_ms, MAX_BUDGET_MS) / 1000
    until = number_field(message, "until", None)
    return latest if until is None or until > latest else until


def _refusal(why: str) -> dict[str, Any]:
    return {"v": VERSION, "ok": False, "error": " ".join(why.split())}
