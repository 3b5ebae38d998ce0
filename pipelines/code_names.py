"""Recognising findings about one problem by the code that they name. Pure.

An agent that looks for a cause says what it found, then what it found behind that, then what the fix did. Each is a
fix by itself, and none of them is like another in its words; but they name the same function or variable.
"""

from __future__ import annotations

import re
from functools import lru_cache

_IN_BACKTICKS = re.compile(r"(`[^`\n]+`)")
_DOTTED = re.compile(r"(?<![\w.:/-])(?=(?P<whole>\w+(?:(?:\.|::?)\w+)*))(?P=whole)(?![/-])")
"""A word with the packages and types before it. Taken whole or not at all (a look-ahead is not tried
again): text such as `a:a:a:` has very many starting points."""
_SEPARATOR = re.compile(r"(\.|::?)")
_CALLED = re.compile(r"[A-Za-z_]\w{2,}")  # detect()
_SNAKE_CASE = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+")  # lock_path, MAX_SIZE
_CAMEL_CASE = re.compile(r"[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")  # findBranches, StaleLock; GitHub and macOS, too
_FILE_ENDING = re.compile(r"(?:py|go|ts|tsx|js|jsx|rs|rb|java|kt|c|h|cc|cpp|md|json|ya?ml|toml|sh|txt|lock|sql)", re.I)
_COMMON_WORDS = """
    add all any append apply build call check clear close copy create delete exec execute exists filter find format
    get handle has init insert join len list load log main map new next open parse pop print push put read remove
    render reset run save send set setup show sort split start stop str test update value wait write x8664
"""
_COMMON = frozenset(_COMMON_WORDS.split())
"""Names that many programs have: two findings that share one need not be about one problem."""


@lru_cache(maxsize=4096)
def code_names(text: str) -> frozenset[str]:
    """Extract the functions, types and variables that a text names, in one spelling.

    Files are not among them: they hold many. Nor are products (GitHub, PostgreSQL), which are spelt as types are:
    such a name counts only in backticks, before `(` or after a dot.
    """
    names = set()
    for place, piece in enumerate(_IN_BACKTICKS.split(text)):
        for word in _DOTTED.finditer(piece):
            name = _name_in(_SEPARATOR.split(word[0]), piece[word.end() : word.end() + 2], in_code=place % 2 == 1)
            names.add(name.replace("_", "").casefold())
    return frozenset(names - _COMMON - {""})


def _name_in(parts: list[str], after: str, *, in_code: bool) -> str:
    """The last word that is a name, '' if none is. `parts`: words, and between each two their separator."""
    for at in range(len(parts) - 1, -1, -2):
        is_last = at == len(parts) - 1
        is_code = in_code or (is_last and after.startswith("(")) or (at > 0 and parts[at - 1] != ":")
        if (
            (is_last and after == "()" and _CALLED.fullmatch(parts[at]))
            or _SNAKE_CASE.fullmatch(parts[at])
            or (is_code and _CAMEL_CASE.fullmatch(parts[at]))
        ):
            is_file = not is_last and parts[at + 1] == "." and _FILE_ENDING.fullmatch(parts[at + 2])
            return "" if is_file else parts[at]
    return ""
