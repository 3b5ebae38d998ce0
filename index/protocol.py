"""The recall service's protocol: one JSON object per line over a UNIX socket, both ways.

{"v":1,"op":"recall","text":"…","k":5,…}   → {"v":1,"ok":true,"hits":[…],"degraded":[…],"ms":12.3,…}
    with "budget_ms" the answer comes within it, and by "until" (seconds of the machine's monotonic clock) if that is
    sooner
{"v":1,"op":"embed","texts":["…"]}         → {"v":1,"ok":true,"model":"…","dim":384,"vectors":"<base64>","words":[…]}
{"v":1,"op":"read","text":"…","before":"…","sentences":[[0,12],…]} → {"v":1,"ok":true,"window":[…],"sentences":[{…},…]}
    logits of what is worth remembering in a message (message_reader.py); with "again":true by the second model
{"v":1,"op":"compare","text":"…","others":["…"]} → {"v":1,"ok":true,"logits":[[1.5,-0.3,0.2],…]}
    of the same, contradiction and neither, by the second model
{"v":1,"op":"ping"}                        → {"v":1,"ok":true,"model":…,"loading":…,"pid":…,"version":"…"}
{"v":1,"op":"reload"}                      → {"v":1,"ok":true,"model":"…","loading":…}  the model now in force
{"v":1,"op":"stop"}                        → {"v":1,"ok":true}
anything else                              → {"v":1,"ok":false,"error":"one line"}
    with "failed":true if this request failed inside the service, which may answer the next one
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

from ..runtime.errors import UsageError
from ..runtime.json_text import parse_json

VERSION = 1
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_BUDGET_MS = 60_000.0
"""An upper limit: an unlimited number would overflow the clocks."""
MAX_K = 100
MAX_COMPARED = 64
MAX_TEXT_CHARACTERS = 100_000
SESSION_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


class MessageTooLong(Exception):
    """The peer sent more than MAX_MESSAGE_BYTES without a line end."""


def encode(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Raises UsageError when the line is not a JSON object."""
    try:
        message = parse_json(line)
    except ValueError as error:
        raise UsageError("the message is not JSON") from error
    if not isinstance(message, dict):
        raise UsageError("the message is not a JSON object")
    return message


def read_line(stream: BinaryIO, limit: int = MAX_MESSAGE_BYTES) -> bytes | None:
    """Read the next line of a connection; None when the peer closed. Raises MessageTooLong, TimeoutError."""
    line = stream.readline(limit + 1)
    if len(line) > limit:
        raise MessageTooLong
    return line if line.endswith(b"\n") else None


def text_field(message: Mapping[str, Any], name: str) -> str | None:
    """Read a string; None when absent. Raises UsageError for another type."""
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{name} must be a string")
    return value


def number_field(message: Mapping[str, Any], name: str, default: float | None) -> float | None:
    """Read a number that is not NaN. Raises UsageError for another type."""
    value = message.get(name, default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value != value):
        raise UsageError(f"{name} must be a number")
    return value


def strings_field(message: Mapping[str, Any], name: str) -> list[str] | None:
    """Read a list of strings; None when absent. Raises UsageError for another type."""
    value = message.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{name} must be a list of strings")
    return value


def spans_field(message: Mapping[str, Any], name: str, length: int) -> list[tuple[int, int]]:
    """Read a list of ranges [start, end) of a text of this length, in order. Raises UsageError for anything else."""
    value = message.get(name)
    if not isinstance(value, list):
        raise UsageError(f"{name} must be a list of ranges")
    spans: list[tuple[int, int]] = []
    for item in value:
        match item:
            case [int() as start, int() as end] if (spans[-1][1] if spans else 0) <= start < end <= length:
                spans.append((start, end))
            case _:
                raise UsageError(f"{name} must be ranges of the text, in order")
    return spans
