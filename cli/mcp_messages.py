"""Messages that the protocol's package cannot read: repaired where the meaning is clear, else answered with an error.

The package drops them silently, and a host waits for the answer to a request until its own time limit.
"""

from __future__ import annotations

import json
from typing import Any

from anyio.abc import ObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from ..runtime.json_text import parse_json


class AnsweredMessages(ObjectReceiveStream["SessionMessage | Exception"]):
    """The messages of a host, as a read stream of the package (`inner`); errors go to the write stream `out`."""

    def __init__(self, inner: Any, out: Any) -> None:
        self._inner = inner
        self._out = out

    @property
    def last_context(self) -> Any:
        """What the package passes on beside each message."""
        return self._inner.last_context

    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises anyio.EndOfStream."""
        while True:
            item: SessionMessage | Exception = await self._inner.receive()
            if not isinstance(item, ValidationError):
                return item
            read = _read_again(item)
            if isinstance(read, SessionMessage):
                return read
            if read is not None:
                await self._out.send(SessionMessage(read))

    async def aclose(self) -> None:
        """Close the inner stream."""
        await self._inner.aclose()


def _read_again(error: ValidationError) -> SessionMessage | JSONRPCError | None:
    """The repaired message, or the error to answer with; None for an empty line."""
    faults = error.errors()
    if faults[0]["type"] == "json_invalid":
        line = str(faults[0]["input"]).strip()
        if not line:
            return None
        try:
            value = parse_json(line)
            # Half of a surrogate pair, as of an emoji that was cut in two, is an escape that only JSON itself allows.
            text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            value = parse_json(text)
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValidationError:
            pass
        except ValueError:
            return _answer(None, PARSE_ERROR, "this line is no JSON")
    else:
        # Only faults of the message as a whole carry all of it.
        value = next((fault["input"] for fault in faults if fault["type"] in ("missing", "model_type")), None)
    return _answer(_request_id(value), INVALID_REQUEST, "this is no request of JSON-RPC 2.0; batches are not read")


def _request_id(value: object) -> str | int | None:
    """The id of a request. That of a response is the server's own: the host may use it for a request that it awaits."""
    if not isinstance(value, dict) or ("method" not in value and not value.keys().isdisjoint({"result", "error"})):
        return None
    id_ = value.get("id")
    return id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None


def _answer(request: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message))
