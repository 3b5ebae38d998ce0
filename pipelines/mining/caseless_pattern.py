"""Searching caseless patterns in the lower case of a text.

A search that ignores case takes two to three times as long, since no letter can be skipped quickly. Searching the lower
case of a text is equivalent if no character outside of ASCII has case.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator
from typing import Any

_TURKISH = str.maketrans("İı", "ii")
"""Letters that `re.IGNORECASE` takes for an "i"; `casefold` does not."""


def fold(text: str) -> str:
    """Fold the case of a text so that whatever `re.IGNORECASE` treats as equal is equal."""
    return text.lower() if text.isascii() else text.translate(_TURKISH).casefold()


_ASCII = bytes(range(128))


def has_case_in_ascii_only(text: str) -> bool:
    """Whether all characters outside of ASCII are without case (dashes, arrows, emoji)."""
    return text.isascii() or _has_no_case(text.encode("utf-8", "surrogatepass").translate(None, _ASCII))


@functools.lru_cache(maxsize=1024)
def _has_no_case(encoded: bytes) -> bool:
    text = encoded.decode("utf-8", "surrogatepass")
    return text.lower() == text == text.upper()


class CaselessPattern:
    """A pattern with `re.IGNORECASE`, and an equivalent one for lower case."""

    __slots__ = ("depends_on_start", "lower_case_pattern", "pattern")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        try:
            # Private, so its absence must cost no more than time. tests/pipelines/test_gated.py asserts that it exists.
            parser: Any = importlib.import_module("re._parser")
            parts = list(_parts(parser.parse(pattern.pattern, pattern.flags)))
        except (ImportError, AttributeError, TypeError, ValueError):
            parts = None
        self.depends_on_start = parts is None or any(map(_looks_back, parts))
        """Whether it may match the end of a text but not the whole text: it tests for the start, or looks behind."""
        self.lower_case_pattern: re.Pattern[str] | None = None
        """Matches the lower case of a text that `has_case_in_ascii_only` exactly if `pattern` matches the text; None if
        no such pattern is known."""
        if parts is not None and all(map(_matches_in_lower_case, parts)):
            self.lower_case_pattern = re.compile(pattern.pattern, pattern.flags & ~re.IGNORECASE)


def _parts(parsed: Any) -> Iterator[tuple[str, Any]]:
    """Yield all parts of a parsed pattern, nested ones too. (`SubPattern` is iterable without `__iter__`.)"""
    for operation, argument in parsed:
        yield str(operation), argument
        if str(operation) == "IN":
            yield from ((str(kind), member) for kind, member in argument)
        else:
            yield from _inner(argument)


def _inner(argument: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(argument, "pattern") or hasattr(argument, "data"):
        yield from _parts(argument)
    elif isinstance(argument, tuple | list):
        for item in argument:
            yield from _inner(item)


def _looks_back(part: tuple[str, Any]) -> bool:
    name, argument = part
    return (name == "AT" and "BEGINNING" in str(argument)) or (name.startswith("ASSERT") and argument[0] < 0)


def _matches_in_lower_case(part: tuple[str, Any]) -> bool:
    name, argument = part
    if name in ("LITERAL", "NOT_LITERAL"):
        return fold(chr(argument)) == chr(argument)
    if name == "RANGE":
        # A range with both cases in it would match a capital in one of them.
        return all(fold(chr(end)) == chr(end) for end in argument) and not (argument[0] <= 90 and argument[1] >= 65)
    return True
