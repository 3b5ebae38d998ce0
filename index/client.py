"""The client of the recall service, and the code that starts a service."""

from __future__ import annotations

import base64
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from .. import __version__
from ..runtime.background import CannotStart, start_in_background
from ..runtime.closing import Closing
from ..runtime.errors import MemoryVaultError, ModelUnavailable
from ..runtime.settings import Settings
from .drain import EmbeddedBatch
from .protocol import MAX_MESSAGE_BYTES, VERSION, MessageTooLong, decode, encode, read_line

CONNECT_SECONDS = 0.5
PING_SECONDS = 1.0
EMBED_SECONDS = 180.0
RECALL_SECONDS = 10.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
_POLL_SECONDS = 0.02


class ServiceUnavailable(MemoryVaultError):
    """No service answers at the socket, or it does not answer in time."""


class ServiceRefused(MemoryVaultError):
    """The service answered with an error."""


class RequestFailed(ServiceRefused):
    """The service failed at this request; it may answer another one."""


class RecallClient(Closing):
    """One connection to the service, opened at the first request and again after a failure."""

    def __init__(self, socket_path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(socket_path)
        self._socket: socket.socket | None = None
        self._answers: BinaryIO | None = None

    def close(self) -> None:
        for each in (self._answers, self._socket):
            if each is not None:
                each.close()
        self._socket = self._answers = None

    def request(self, message: Mapping[str, Any], timeout_seconds: float) -> dict[str, Any]:
        """Send one request and return its answer. Raises ServiceUnavailable, ServiceRefused."""
        data = encode({"v": VERSION, **message})
        if len(data) > MAX_MESSAGE_BYTES:
            raise RequestFailed(f"a request of {len(data) // 1_000_000} MB is too long for the recall service")
        try:
            try:
                reused = self._socket is not None
                answer = self._exchange(data, timeout_seconds)
            except ConnectionError:
                # The service drops a connection that was silent for long; every request may be repeated.
                if not reused:
                    raise
                self.close()
                answer = self._exchange(data, timeout_seconds)
        except (OSError, MessageTooLong) as error:
            self.close()
            hangs = isinstance(error, TimeoutError | BlockingIOError)
            raise ServiceUnavailable(
                f"the recall service does not answer at {self._path} ({error or type(error).__name__}): "
                + ("`memory doctor` looks at it" if hangs else "start it with `memory service serve`")
            ) from error
        if answer.get("ok") is not True:
            refused = RequestFailed if answer.get("failed") is True else ServiceRefused
            raise refused(str(answer.get("error") or "the recall service refused"))
        return answer

    def ping(self, timeout_seconds: float = PING_SECONDS) -> dict[str, Any]:
        return self.request({"op": "ping"}, timeout_seconds)

    def stop(self) -> None:
        self.request({"op": "stop"}, PING_SECONDS)

    def reload(self, wait_seconds: float = 0.0) -> None:
        """Make the service change to the model in force, and wait until that is loaded, at most `wait_seconds`.

        Raises ServiceUnavailable, ServiceRefused.
        """
        deadline = time.monotonic() + wait_seconds
        while self.request({"op": "reload"}, PING_SECONDS)["loading"] and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS * 5)

    def recall(self, text: str, *, timeout_seconds: float = RECALL_SECONDS, **options: Any) -> dict[str, Any]:
        """Recall. `options` are the fields of the protocol's recall: k, cwd, project, filter, render, budget_ms, …"""
        return self.request({"op": "recall", "text": text, **options}, timeout_seconds)

    def embed(self, texts: Sequence[str], *, timeout_seconds: float = EMBED_SECONDS) -> EmbeddedBatch:
        """Embed passages. Raises ModelUnavailable without a service or a model, or without an answer in time, and
        RequestFailed where these texts are what fails."""
        answer = self._ask_model({"op": "embed", "texts": list(texts)}, timeout_seconds)
        dimension = int(answer["dim"])
        rows = base64.b64decode(answer["vectors"])
        size = 4 * dimension
        vectors = tuple(rows[start : start + size] for start in range(0, len(rows), size))
        words = tuple(base64.b64decode(packed) for packed in answer["words"])
        return EmbeddedBatch(str(answer["model"]), dimension, vectors, words)

    def read(
        self,
        text: str,
        before: str,
        sentences: Sequence[tuple[int, int]],
        *,
        again: bool = False,
        timeout_seconds: float,
    ) -> dict[str, Any]:
        """Read a message, `again` with the second model (message_reader.py). Raises as `embed` does."""
        spans = [list(span) for span in sentences]
        message = {"op": "read", "text": text, "before": before, "sentences": spans, "again": again}
        return self._ask_model(message, timeout_seconds)

    def compare(self, text: str, others: Sequence[str], *, timeout_seconds: float) -> list[list[float]]:
        """Compare a statement with others (message_reader.SecondModel). Raises as `embed` does."""
        answer = self._ask_model({"op": "compare", "text": text, "others": list(others)}, timeout_seconds)
        return [[float(logit) for logit in row] for row in answer["logits"]]

    def _ask_model(self, message: Mapping[str, Any], timeout_seconds: float) -> dict[str, Any]:
        try:
            return self.request(message, timeout_seconds)
        except RequestFailed:
            raise
        except (ServiceUnavailable, ServiceRefused) as error:
            raise ModelUnavailable(str(error)) from error

    def _exchange(self, data: bytes, timeout_seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_seconds
        if self._socket is None or self._answers is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(min(CONNECT_SECONDS, timeout_seconds))
            self._socket.connect(self._path)
            self._answers = self._socket.makefile("rb")
        self._socket.settimeout(max(0.001, deadline - time.monotonic()))
        self._socket.sendall(data)
        self._socket.settimeout(max(0.001, deadline - time.monotonic()))
        line = read_line(self._answers, MAX_ANSWER_BYTES)
        if line is None:
            raise ConnectionError("it hung up")
        return decode(line)


def ensure_service(
    settings: Settings,
    wait_seconds: float = 0.0,
    *,
    wait_for_model: bool = False,
    command: Sequence[str] | None = None,
) -> bool:
    """Start the recall service detached unless one answers; True when one answers at the end.

    Waits up to `wait_seconds` for it to listen (and with `wait_for_model`, to have loaded the model or
    failed to). A service of another program version is stopped first. `command` replaces `memory service
    serve`. Raises ServiceUnavailable when it cannot be started.
    """
    state = settings.state
    deadline = time.monotonic() + wait_seconds
    started = False
    with RecallClient(state.recall_socket) as client:
        while True:
            try:
                answer = client.ping()
                if answer.get("version") != __version__ and not started:
                    client.stop()
                    client.close()
                    _wait_until_gone(state.recall_socket)
                    raise ServiceUnavailable("the service of another version has left")
                if not (wait_for_model and answer.get("loading")):
                    return True
            except ServiceRefused:
                client.close()
            except ServiceUnavailable:
                if not started:
                    started = True
                    _start(settings, command or [sys.executable, "-I", "-m", "memoryvault", "service", "serve"])
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)


def _wait_until_gone(socket_path: str) -> None:
    """Wait until a service that is stopping has removed its socket, the first thing that it does."""
    deadline = time.monotonic() + PING_SECONDS
    while os.path.exists(socket_path) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _start(settings: Settings, command: Sequence[str]) -> None:
    try:
        start_in_background(settings, "serve", command)
    except CannotStart as error:
        raise ServiceUnavailable(str(error)) from error
