"""Patterns in whatever case, searched in the lower case of a text.

Without regard to case a search takes two to three times as long, since no letter tells at a glance where a match may
not begin. The lower case of a text answers as well where all that is not ASCII is without case.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator
from typing import Any

_TURKISH = str.maketrans("İı", "ii")
"""`re.IGNORECASE` takes both for an "i"; `casefold` does not."""


def fold(text: str) -> str:
    """The text as gates want it: what `re.IGNORECASE` holds equal is equal."""
    return text.lower() if text.isascii() else text.translate(_TURKISH).casefold()


_ASCII = bytes(range(128))


def is_lowered_in_ascii_alone(text: str) -> bool:
    """Is all that is not ASCII without case (dashes, arrows, emoji)?"""
    return text.isascii() or _has_no_case(text.encode("utf-8", "surrogatepass").translate(None, _ASCII))


@functools.lru_cache(maxsize=1024)
def _has_no_case(encoded: bytes) -> bool:
    text = encoded.decode("utf-8", "surrogatepass")
    return text.lower() == text == text.upper()


class CaselessPattern:
    """A pattern with `re.IGNORECASE`, and what is read off it."""

    __slots__ = ("asks_for_beginning", "in_lower_case", "pattern")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        try:
            # Private, so its absence must cost no more than time. tests/pipelines/test_gated.py looks that it is there.
            parser: Any = importlib.import_module("re._parser")
            parts = list(_parts(parser.parse(pattern.pattern, pattern.flags)))
        except (ImportError, AttributeError, TypeError, ValueError):
            parts = None
        self.asks_for_beginning = parts is None or any(map(_looks_back, parts))
        """It may match the end of a text and not the whole: it asks for the beginning, or for what stands before."""
        self.in_lower_case: re.Pattern[str] | None = None
        """Matches the lower case of a text that `is_lowered_in_ascii_alone` where `pattern` matches it; None where
        that is not known."""
        if parts is not None and all(map(_is_in_lower_case, parts)):
            self.in_lower_case = re.compile(pattern.pattern, pattern.flags & ~re.IGNORECASE)


def _parts(parsed: Any) -> Iterator[tuple[str, Any]]:
    """All parts of a parsed pattern, those inside others too. (`SubPattern` has no `__iter__`, and yet can be.)"""
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


def _is_in_lower_case(part: tuple[str, Any]) -> bool:
    name, argument = part
    if name in ("LITERAL", "NOT_LITERAL"):
        return fold(chr(argument)) == chr(argument)
    if name == "RANGE":
        # A range with both cases in it would match a capital in one of them.
        return all(fold(chr(end)) == chr(end) for end in argument) and not (argument[0] <= 90 and argument[1] >= 65)
    return True
