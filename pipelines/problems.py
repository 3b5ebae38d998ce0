"""Several findings about one problem: what of the code they name tells. Pure.

An agent that looks for a cause says what it found, then what it found behind that, then what the fix did. Each is a
fix by itself, and none of them is like another in its words; but they name the same function or variable.
"""

from __future__ import annotations

import re

_NAME = re.compile(
    r"""
    (?<![\w./-])(?:\w+[.:])*                                     # a package or a type before it
    (?P<name>
        [A-Za-z_]\w{2,}(?=\(\))                                  # detect()
        | [A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*){1,}                # findBranches, StaleLock, FileID
        | [A-Za-z0-9]+(?:_[A-Za-z0-9]+)+                         # lock_path, MAX_SIZE
    )(?![\w/-])
    """,
    re.VERBOSE,
)
_FILE = re.compile(r"\.(?:py|go|ts|tsx|js|jsx|rs|rb|java|kt|c|h|cc|cpp|md|json|ya?ml|toml|sh|txt|lock|sql)\b", re.I)


def code_names(text: str) -> frozenset[str]:
    """Functions, types and variables that it names, in one spelling; files are not among them: they hold many."""
    return frozenset(
        match["name"].replace("_", "").casefold()
        for match in _NAME.finditer(text)
        if _FILE.match(text, match.end()) is None
    )
