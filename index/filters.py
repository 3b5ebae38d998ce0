"""Filter expressions (`--filter`): a small grammar, evaluated in SQL.

    expression := conjunction ("OR" conjunction)*
    conjunction := negation ("AND" negation)*
    negation := "NOT" negation | "(" expression ")" | clause
    clause := key ("=" | "!=" | ">" | ">=" | "<" | "<=") value | date-key "since" value

Keywords may be written in any case; values with spaces are quoted. Tags, kinds and the like are
compared whole, ignoring ASCII case; a group includes the groups below it.
Dates are a day, a month, or an age in days or weeks (`30d`, `2w`). A month counts from its
first day: `created>2026-01` and `created>=2026-01` both take in January; `<=` runs through its
last day and `=` means within it.
"""

from __future__ import annotations

import calendar
import json
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import apsw

from ..runtime.errors import UsageError
from ..vault.entry import ACTIVE, STATUSES
from ..vault.project import project_named
from ..vault.store import VaultStore
from . import schema

TEXT_COLUMNS: Mapping[str, str] = {
    "kind": "kind",
    "status": "status",
    "project": "project",
    "group": "group_name",
    "slug": "slug",
    "fingerprint": "fingerprint",
    "path": "path",
    "folder": "special",
    "session": "session",
}
_UNSAID = {"status": ACTIVE}
"""Values of a note without the property."""
DATE_KEYS = frozenset({"created", "updated"})
KEYS = frozenset({"tag", *TEXT_COLUMNS, *DATE_KEYS})

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<open>\()
      | (?P<close>\))
      | (?P<operator>!=|>=|<=|=|>|<)
      | (?P<word>[^\s()"'=<>!]+)
      | (?P<bad>\S)
    )""",
    re.VERBOSE,
)
_DATE = re.compile(r"^(\d{4})-(\d{1,2})(?:-(\d{1,2}))?$")
_AGE = re.compile(r"^(\d{1,5})([dw])$", re.IGNORECASE)
MOST_CLAUSES = 200
"""SQLite refuses a condition of some hundreds of them, in words that damage to the index has, too."""
MOST_NESTED = 50
_HELP = "e.g. tag=security AND project=sherwood, NOT kind=fix, created>2026-01, updated since 30d"


@dataclass(frozen=True)
class Filter:
    """A condition over a row of entry_meta, as `m`, that is never NULL."""

    sql: str
    parameters: tuple[str, ...]
    named: frozenset[tuple[str, str]] = frozenset()
    """Key and value, in lower case, of every clause: a filter with a status or a project includes it."""
    asked: frozenset[tuple[str, str]] = frozenset()
    """The same, without clauses below a NOT."""


def equals(key: str, value: str) -> Filter:
    """True where `key` has this value; for `tag`, where one of the tags has it; for `group`, also below it."""
    if key == "tag":
        sql = "EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = ? COLLATE NOCASE)"
    else:
        column = f"COALESCE(NULLIF(m.{TEXT_COLUMNS[key]}, ''), '{_UNSAID.get(key, '')}')"
        sql = f"{column} = ? COLLATE NOCASE"
        if key == "group":
            sql += f" OR substr({column}, 1, length(?) + 1) = ? || '/' COLLATE NOCASE"
    clause = frozenset({(key, value.lower())})
    return Filter(f"({sql})", (value,) * sql.count("?"), clause, clause)


def within(key: str, first: str, last: str) -> Filter:
    """True where `first <= day <= last`, ISO days; False for an entry without that date."""
    # A note without `updated` was last updated when it was created.
    column = "COALESCE(NULLIF(m.updated, ''), m.created, '')" if key == "updated" else f"COALESCE(m.{key}, '')"
    return Filter(f"(substr({column}, 1, 10) BETWEEN ? AND ?)", (first, last))


def negated(operand: Filter) -> Filter:
    return Filter(f"(NOT {operand.sql})", operand.parameters, operand.named)


def all_of(operands: Sequence[Filter]) -> Filter:
    """True where all are; of none, too."""
    return _joined(" AND ", operands, "1")


def any_of(operands: Sequence[Filter]) -> Filter:
    """True where one of them is."""
    return _joined(" OR ", operands, "0")


def _joined(word: str, operands: Sequence[Filter], of_none: str) -> Filter:
    if len(operands) == 1:
        return operands[0]
    return Filter(
        f"({word.join(one.sql for one in operands) or of_none})",
        tuple(value for one in operands for value in one.parameters),
        frozenset().union(*(one.named for one in operands)),
        frozenset().union(*(one.asked for one in operands)),
    )


def parse_filter(text: str | None, today: date) -> Filter | None:
    """Parse an expression; None for an empty one. Raises UsageError, which names the fault."""
    tokens = _tokens(text or "")
    if not tokens:
        return None
    parser = _Parser(tokens, today)
    tree = parser.expression()
    if parser.position < len(tokens):
        raise _usage(f"unexpected {tokens[parser.position].text!r} (join clauses with AND or OR)")
    return tree


def since(key: str, value: str, today: date) -> Filter:
    """Return the filter `key since value` for one date. Raises UsageError as `parse_filter` does."""
    return within(key, _span(value, today)[0], "9999-12-31")


def named_values(tree: Filter | None, key: str) -> frozenset[str]:
    """Return every value in the expression for `key`, lower case."""
    return frozenset(value for name, value in tree.named if name == key) if tree else frozenset()


def asked_values(tree: Filter | None, key: str) -> frozenset[str]:
    """Return the same as `named_values`, without values below a NOT."""
    return frozenset(value for name, value in tree.asked if name == key) if tree else frozenset()


def matches(tree: Filter, row: Mapping[str, Any]) -> bool:
    """Whether the filter admits a row of entry_meta, given as a mapping (`tags` a sequence of strings)."""
    return admits_row(tree.sql, tree.parameters, row)


_in_memory = apsw.Connection(":memory:")
_lock = threading.Lock()
_COLUMNS = [name for name, _ in schema.ENTRY_META_COLUMNS]
_ROW = f"WITH m ({', '.join(_COLUMNS)}) AS (VALUES ({', '.join('?' * len(_COLUMNS))}))"


def admits_row(condition: str, parameters: Sequence[str], row: Mapping[str, Any]) -> bool:
    """Whether a condition over entry_meta, as `m`, holds of a row that is in no database, such as that of a note that
    was just read."""
    values = {**row, "tags": json.dumps([*(row.get("tags") or ())])}
    bound = (*(values.get(name) for name in _COLUMNS), *parameters)
    # A path or an argument of a command may be no UTF-8, which no database holds.
    storable = [each.encode("utf-8", "replace").decode() if isinstance(each, str) else each for each in bound]
    with _lock:
        return bool(_in_memory.execute(f"{_ROW} SELECT {condition} FROM m", storable).get)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:  # pragma: no cover - `bad` takes any character
            raise _usage(f"cannot read {text[position:]!r}")
        kind, value = match.lastgroup, match.group(match.lastgroup)
        if kind == "bad":
            what = "a quote that is never closed" if value in "\"'" else f"unexpected {value!r}"
            raise _usage(what)
        if kind == "quoted":
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        tokens.append(_Token(kind, value))
        position = match.end()
    return tokens


class _Parser:
    """A recursive-descent parser of the tokens."""

    def __init__(self, tokens: list[_Token], today: date) -> None:
        self.tokens = tokens
        self.today = today
        self.position = 0
        self.depth = 0
        self.clauses = 0

    def expression(self) -> Filter:
        parts = [self.conjunction()]
        while self._keyword("OR"):
            parts.append(self.conjunction())
        return any_of(parts)

    def conjunction(self) -> Filter:
        parts = [self.negation()]
        while self._keyword("AND"):
            parts.append(self.negation())
        return all_of(parts)

    def negation(self) -> Filter:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise _usage("nested too deeply")
        try:
            if self._keyword("NOT"):
                return negated(self.negation())
            if self._peek("open"):
                self.position += 1
                inner = self.expression()
                if not self._peek("close"):
                    raise _usage("a parenthesis is never closed")
                self.position += 1
                return inner
            return self.clause()
        finally:
            self.depth -= 1

    def clause(self) -> Filter:
        self.clauses += 1
        if self.clauses > MOST_CLAUSES:
            raise _usage(f"too long: it has more than {MOST_CLAUSES} clauses")
        if not self._peek("word"):
            what = self.tokens[self.position].text if self.position < len(self.tokens) else "the end"
            raise _usage(f"expected a clause such as tag=security, found {what!r}")
        written = self._take().text
        key = written.lower()
        if key in DATE_KEYS and self._keyword("since"):
            operator = ">="
        elif self._peek("operator"):
            operator = self._take().text
        else:
            raise _usage(f"{written!r} is not a clause: write key=value")
        if key not in KEYS:
            raise _usage(f"unknown key {written!r} (allowed: {', '.join(sorted(KEYS))})")
        if not (self._peek("word") or self._peek("quoted")):
            raise _usage(f"{written} {operator} what? A value is missing")
        return self._clause(key, operator, self._take().text)

    def _clause(self, key: str, operator: str, value: str) -> Filter:
        if key in DATE_KEYS:
            first, last = _span(value, self.today)
            if operator in ("=", "!="):
                inside = within(key, first, last)
                return inside if operator == "=" else negated(inside)
            whole_day = first == last
            if operator == ">":
                return within(key, _shifted(last, 1) if whole_day else first, "9999-12-31")
            if operator == ">=":
                return within(key, first, "9999-12-31")
            return within(key, "0001-01-01", last if operator == "<=" else _shifted(first, -1))
        if operator not in ("=", "!="):
            raise _usage(f"{key} is compared with = or !=, not {operator} (dates: created, updated)")
        value = value.removeprefix("#") if key == "tag" else value
        value = value.strip("/") if key == "group" else value
        value = project_named(value) if key == "project" else value
        return equals(key, value) if operator == "=" else negated(equals(key, value))

    def _peek(self, kind: str) -> bool:
        return self.position < len(self.tokens) and self.tokens[self.position].kind == kind

    def _take(self) -> _Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def _keyword(self, word: str) -> bool:
        if self._peek("word") and self.tokens[self.position].text.upper() == word.upper():
            self.position += 1
            return True
        return False


def _span(value: str, today: date) -> tuple[str, str]:
    """Return the first and last ISO day of a date, month or age. Raises UsageError."""
    if age := _AGE.match(value):
        day = (today - timedelta(days=int(age[1]) * (7 if age[2].lower() == "w" else 1))).isoformat()
        return day, day
    match = _DATE.match(value)
    try:
        if match is None:
            raise ValueError
        year, month = int(match[1]), int(match[2])
        days = (int(match[3]),) * 2 if match[3] else (1, calendar.monthrange(year, month)[1])
        first, last = (date(year, month, day).isoformat() for day in days)
    except ValueError:
        raise _usage(f"{value!r} is not a date: write 2026-01-31, 2026-01, or an age such as 30d or 2w") from None
    return first, last


def _shifted(day: str, days: int) -> str:
    try:
        return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
    except OverflowError:
        return day if days > 0 else "0000-00-00"


def _usage(what: str) -> UsageError:
    return UsageError(f"filter: {what}; {_HELP}")


def require_known(statuses: Collection[str], store: VaultStore) -> None:
    """Raise UsageError for a status, in lower case, that is neither one of STATUSES nor that of a note: it is a typing
    error, and an empty result would hide it.

    The notes are read only for a status that is not one of STATUSES. Raises VaultUnavailable.
    """
    unknown = set(statuses) - set(STATUSES)
    if unknown and (unknown := unknown - {entry.status for entry in store.readable()}):
        raise UsageError(f"there is no status {min(unknown)!r}; there are: {', '.join(STATUSES)}")
