"""Messages that the protocol's package cannot read: mended where it is clear what was meant, else answered.

The package passes over them in silence, and a host waits for the answer to a request until its own time limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from anyio.abc import ObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

BYTE_ORDER_MARK = "\ufeff"
"""Some programs write one before their first message."""


class AnsweredMessages(ObjectReceiveStream["SessionMessage | Exception"]):
    """The messages of a host, as a read stream of the package (`inner`); what is no message is answered on `out`."""

    def __init__(self, inner: Any, out: Any) -> None:
        self._inner = inner
        self._out = out

    @property
    def last_context(self) -> Any:
        """What the package hands on beside each message."""
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
            for error in read:
                await self._out.send(SessionMessage(error))

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._inner.aclose()


def _read_again(error: ValidationError) -> SessionMessage | list[JSONRPCError]:
    """The message that was meant, or the answers to what cannot be one; none to an empty line."""
    faults = error.errors()
    if faults[0]["type"] != "json_invalid":
        # The whole message is told only with the faults that concern it as a whole.
        whole = next((fault["input"] for fault in faults if fault["type"] in ("missing", "model_type")), None)
        return [*_refusals(whole)]
    line = str(faults[0]["input"]).removeprefix(BYTE_ORDER_MARK).strip()
    if not line:
        return []
    text = ""
    try:
        value = json.loads(line)
        # Half of a surrogate pair, as of an emoji that was cut in two, is an escape that only JSON itself lets pass.
        text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError:
        return [*_refusals(json.loads(text))]
    except (ValueError, RecursionError):
        return [_answer(None, PARSE_ERROR, "this line is no JSON")]


def _refusals(value: object) -> Iterator[JSONRPCError]:
    """One for each request in it, so that none is waited for; one for what has none.

    The id of a response is the server's own: a host may wait for the answer to another request of that id.
    """
    several = isinstance(value, list)
    why = "send one message at a time: batches are not read" if several else "this is no request of JSON-RPC 2.0"
    ids: list[str | int | None] = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and ("method" in each or each.keys().isdisjoint({"result", "error"})):
            ids += [id_] if isinstance(id_ := each.get("id"), str | int) and not isinstance(id_, bool) else []
    for id_ in ids or [None]:
        yield _answer(id_, INVALID_REQUEST, why)


def _answer(request: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message))
