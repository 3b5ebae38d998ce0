"""What a host sent on standard input: bytes to `HookCall`, without the `json` and `re` modules.

Importing `json` costs about as much as half a bare interpreter start; its C scanner costs a tenth of that.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STDIN_LIMIT_BYTES = 32 * 1024 * 1024


class HookCall:
    """One hook invocation in host-neutral words; an absent text is ''."""

    __slots__ = (
        "agent",
        "cwd",
        "event",
        "host",
        "moment",
        "notification",
        "prompt",
        "session",
        "source",
        "transcript",
    )

    def __init__(self, event: str, host: str) -> None:
        self.event = event
        """Name in Claude Code's vocabulary, whatever the host calls it."""
        self.host = host
        self.session = ""
        """Session id, already checked: safe as a file name and in JSON."""
        self.transcript = ""
        self.cwd = ""
        self.prompt = ""
        self.source = ""
        """SessionStart: startup, resume, clear, compact, fork."""
        self.notification = ""
        self.agent = ""
        """Not empty inside a sub-agent."""
        self.moment = ""
        """The host's id of this prompt, where it sends one: equal for two installations of the same hook."""


class _ScannerContext:
    """The attributes `_json.make_scanner` reads; control characters in strings are let through."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012  The C scanner keeps its own; it only wants the attribute.

    @staticmethod
    def parse_constant(name: str) -> None:
        """NaN and the infinities are no JSON; nothing we read is a number."""
        return


def read_stdin(limit: int = STDIN_LIMIT_BYTES) -> bytes:
    """All of standard input, b'' for a terminal or a closed descriptor."""
    try:
        if os.isatty(0):
            return b""
        pieces: list[bytes] = []
        size = 0
        while size < limit:
            piece = os.read(0, 1 << 16)
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
    except OSError:
        return b""
    return b"".join(pieces)


def parse_object(raw: bytes) -> dict[str, Any] | None:
    """The JSON object in `raw`, or None for anything else."""
    text = raw.decode("utf-8", "replace").lstrip("\ufeff").strip()
    if not text.startswith("{"):
        return None
    try:
        scan = _scanner()
        value, end = scan(text, 0)
    except Exception:  # noqa: BLE001  Bad JSON has several names (StopIteration, RecursionError, JSONDecodeError).
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def quote(text: str) -> str:
    """`text` as a JSON string, ASCII only."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)


def text_of(payload: dict[str, Any], key: str) -> str:
    """The string under `key`, '' when it is absent or something else."""
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    try:
        from _json import make_scanner
    except ImportError:  # An interpreter without the C accelerator: slower, the same result.
        from json import JSONDecoder

        return JSONDecoder(strict=False).raw_decode
    scan: Callable[[str, int], tuple[Any, int]] = make_scanner(_ScannerContext)  # type: ignore[arg-type]
    return scan
