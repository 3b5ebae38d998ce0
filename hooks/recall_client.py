"""Send one request to the recall service over its UNIX socket, with a deadline for everything."""

from __future__ import annotations

import os
import time

from ..runtime.interpreter import peer_uid, socket_module
from .payload import parse_object, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER_LIMIT_BYTES = 1 << 20
TEXT_LIMIT_CHARACTERS = 20_000
"""Longest text that is sent. Of a longer one, such as a pasted log, the beginning and the end are sent."""


def shorten(text: str, limit: int = TEXT_LIMIT_CHARACTERS) -> str:
    """Return the first and the last half of a text that is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit // 2] + "\n" + text[-(limit // 2) :]


class RecallCall:
    """A request that was sent. Its answer may be waited for more than once."""

    __slots__ = ("_buffer", "_socket")

    def __init__(self, path: str, request: bytes, deadline: float) -> None:
        """Connect and send. Raises OSError; FileNotFoundError or ConnectionRefusedError where no service listens."""
        self._buffer = b""
        self._socket = _unix_socket()
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        self._socket.connect(path)
        if peer_uid(self._socket) != os.geteuid():  # Its answer goes into a prompt.
            self._socket.close()
            raise ConnectionError("the recall service's socket belongs to another user")
        self._socket.sendall(request)

    def wait(self, deadline: float) -> dict[str, Any] | None:
        """Return the service's answer, or None when it has not come by `deadline` (monotonic seconds).

        Raises OSError when the connection broke or the answer is no JSON object.
        """
        while b"\n" not in self._buffer:
            patience = deadline - time.monotonic()
            if patience <= 0:
                return None
            self._socket.settimeout(patience)
            try:
                piece = self._socket.recv(1 << 16)
            except TimeoutError:
                return None
            if not piece:
                raise ConnectionError("the recall service hung up")
            self._buffer += piece
            if len(self._buffer) > ANSWER_LIMIT_BYTES:
                raise ConnectionError("the recall service's answer is too long")
        answer = parse_object(self._buffer.partition(b"\n")[0])
        if answer is None:
            raise ConnectionError("the recall service's answer is no JSON object")
        return answer


def _unix_socket() -> Any:
    sockets = socket_module()
    return sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)


def format_request(text: str, k: int, cwd: str, session: str, until: float, token_budget: int) -> bytes:
    """Format a recall request as one line of the service's protocol, version 1. `until`: deadline in monotonic
    seconds."""
    budget_ms = int((until - time.monotonic()) * 1000)
    return (
        f'{{"v":1,"op":"recall","text":{quote(shorten(text))},"k":{k},"cwd":{quote(cwd)},"session":{quote(session)},'
        f'"project":null,"budget_ms":{budget_ms},"until":{until:.4f},"render":true,"token_budget":{token_budget}}}\n'
    ).encode("ascii")


def is_listening(path: str) -> bool:
    """Whether a process accepts connections at `path`. A stopped one counts: the kernel accepts for it."""
    probe = _unix_socket()
    try:
        probe.settimeout(0.02)
        probe.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError:
        return True
    finally:
        probe.close()
    return True
