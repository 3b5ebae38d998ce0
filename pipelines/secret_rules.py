"""The rules for secrets, as `secret_rules.toml` has them.

SHAPES are recognised by their form alone (`scrub`); INTRODUCED by the words before them (`named_secrets`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import secret_checks

RULES_FILE = Path(__file__).with_name("secret_rules.toml")
Check = Callable[[re.Match[str], str], bool]
"""Whether a match with this value is a secret."""


class Rule(NamedTuple):
    """A kind of secret, and how it is found."""

    kind: str
    signs: tuple[str, ...]
    """The rule is tried only on text with one of these: in small letters, but for shapes."""
    pattern: re.Pattern[str]
    """The secret is the group `value`, else the last group that matched, else the whole match."""
    example: str
    check: Check

    def span(self, match: re.Match[str]) -> tuple[int, int]:
        """Range of the secret."""
        if "value" in self.pattern.groupindex and match["value"] is not None:
            return match.span("value")
        return match.span(match.lastgroup or 0)


def _rules(rows: Iterable[Mapping[str, Any]]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            row.get("kind", "PASSWORD"),
            tuple(row["signs"]),
            re.compile(row["pattern"].replace("\n", "")),
            row["example"],
            getattr(secret_checks, row.get("check", "always")),
        )
        for row in rows
    )


_TABLES = tomllib.loads(RULES_FILE.read_text("utf-8"))
SHAPES = _rules(_TABLES["shape"])
INTRODUCED = _rules(_TABLES["introduced"])
_BEGINNING = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf0])|(?<=[%=][0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=[\[;]\dm)|(?<=[\[;]\d\dm))"
)
"""Where a token may begin: not behind a letter or digit, unless it ends an escape (`\\n`, `%3D`) or sets a colour."""
MARKED_TOKEN = re.compile(_BEGINNING + "(?:" + "|".join(_TABLES["marked"]) + ")")
"""Matches a token with an issuer's mark."""
