"""The entries that a recall may show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..runtime.layout import ALWAYS_LOAD
from ..vault.active import EXPLICIT_KINDS
from ..vault.automemory import ON_DEMAND_KINDS
from ..vault.entry import ACTIVE, STATUSES
from .filters import Filter, admits_row, asked_values, equals, named_values
from .schema import IS_IN_USE_STATUS
from .store import HIDDEN_FOLDERS

_FOLDERS_OF_STATUS: Mapping[str, frozenset[str]] = {
    "inbox": frozenset({"_inbox"}),
    "pending": frozenset({"_review"}),
    "superseded": frozenset({"_archive"}),
    "archived": frozenset({"_archive"}),
    "rejected": frozenset({"_archive"}),
    "dismissed": frozenset({"_archive"}),
}

ON_DEMAND = frozenset(ON_DEMAND_KINDS)
"""Kinds that no prompt gets: a session has the index of its project's notes and reads them when it needs them."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Admits active entries of no project or of `project`, outside the hidden folders.

    More appears only when named: a folder in `include` (with whatever status its entries have), a
    status, project, folder or hidden kind that the filter names, every project with `all_projects`.
    """

    project: str | None = None
    all_projects: bool = False
    group: str | None = None
    statuses: frozenset[str] = frozenset({"active"})
    include: frozenset[str] = frozenset()
    exclude_paths: frozenset[str] = frozenset()
    exclude_always_load: bool = False
    exclude_kinds: frozenset[str] = EXPLICIT_KINDS
    is_prompt: bool = False
    """True for a prompt to an agent, for which only places of entries in use are searched: no special folder, unless it
    is named."""
    filter: Filter | None = None
    _named_statuses: frozenset[str] = field(init=False, repr=False)
    _named_folders: frozenset[str] = field(init=False, repr=False)
    any_project: bool = field(init=False, repr=False)
    """Whether entries of every project are admitted."""

    def __post_init__(self) -> None:
        statuses = named_values(self.filter, "status")
        if ACTIVE in statuses - asked_values(self.filter, "status"):
            statuses = frozenset(STATUSES)  # What is not active is all else, wherever it lies.
        folders = self.include | named_values(self.filter, "folder")
        object.__setattr__(self, "_named_statuses", self.statuses | statuses)
        object.__setattr__(self, "_named_folders", folders)
        object.__setattr__(self, "any_project", self.all_projects or bool(named_values(self.filter, "project")))

    def without(self, kind: str | None) -> Scope:
        """This scope without the entries of one more kind."""
        return self if kind is None else replace(self, exclude_kinds=self.exclude_kinds | {kind})

    def _hidden_folders(self) -> frozenset[str]:
        named = self._named_folders
        for status in self._named_statuses:
            named |= _FOLDERS_OF_STATUS.get(status, frozenset())
        return HIDDEN_FOLDERS - named

    def sql(self) -> tuple[str, list[str]]:
        """Build a condition over entry_meta as `m`, and its parameters."""
        parts: list[str] = []
        parameters: list[str] = []

        def add(condition: str, *values: str) -> None:
            parts.append(condition)
            parameters.extend(values)

        status = f"lower(COALESCE(NULLIF(m.status, ''), 'active')) IN {_LIST}"
        if ACTIVE in self._named_statuses:
            status = f"({status} OR {IS_IN_USE_STATUS})"
        if self._named_folders:
            add(
                f"({status} OR m.special IN {_LIST})",
                _json_list(self._named_statuses),
                _json_list(self._named_folders),
            )
        else:
            add(status, _json_list(self._named_statuses))
        add(f"m.special NOT IN {_LIST}", _json_list(self._hidden_folders()))
        if self.is_prompt:
            add(f"m.special IN {_LIST}", _json_list(self._named_folders | {"", ALWAYS_LOAD}))
        if self.exclude_always_load:
            add("m.always_load = 0")
        if kinds := self.exclude_kinds - named_values(self.filter, "kind"):
            add(f"lower(COALESCE(m.kind, '')) NOT IN {_LIST}", _json_list(kinds))
        if not self.any_project:
            add("COALESCE(m.project, '') COLLATE NOCASE IN ('', ?)", self.project or "")
        if self.group:
            group = equals("group", self.group.strip("/"))
            add(group.sql, *group.parameters)
        if self.exclude_paths:
            add(f"m.path NOT IN {_LIST}", _json_list(self.exclude_paths))
        if self.filter is not None:
            add(self.filter.sql, *self.filter.parameters)
        return " AND ".join(parts), parameters

    def admits(self, row: Mapping[str, Any]) -> bool:
        """Whether the scope has this row of entry_meta, given as a mapping (`tags` a sequence)."""
        return admits_row(*self.sql(), row)


_LIST = "(SELECT value FROM json_each(?))"


def _json_list(values: frozenset[str]) -> str:
    return json.dumps(sorted(values))
