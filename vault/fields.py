"""Validate the header fields that the store writes.

Names, paths and dates that this program made may be plain text; every other text must have been scrubbed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TypeAlias

from ..runtime.errors import EntryInvalid
from ..runtime.slug import validate_group, validate_name
from .entry import STATUSES, Source, to_link
from .frontmatter import FieldValue
from .scrubbed import Scrubbed

StoreValue: TypeAlias = "FieldValue | Source | Sequence[Source]"

_MACHINE_KEYS = (
    "kind status created updated tags group slug project fingerprint confidence guard channel source "
    "surfaced_in_session surfaced_at supersedes superseded_by superseded_at priority promoted dismissed "
    "deferred_until archived deleted kept idea ideas surface contradicts"
)
MACHINE_KEYS = frozenset(_MACHINE_KEYS.split())
"""Fields whose text is a name, a path or a date that this program made; text of all others must be Scrubbed."""
MAX_MACHINE_TEXT_CHARACTERS = 1000
LINKED_KEYS = frozenset({"supersedes", "superseded_by"})
"""Fields that refer to another entry: written as links, for Obsidian's links and backlinks."""


def require_scrubbed(what: str, text: str) -> str:
    """Return the text, fit for UTF-8. Raises TypeError, with `what`, for text that was not scrubbed."""
    if not isinstance(text, Scrubbed):
        raise TypeError(f"{what}: only text of type Scrubbed is written to the vault")
    return replace_unencodable(text)


def validate_fields(fields: Mapping[str, StoreValue], *, new: bool) -> dict[str, FieldValue]:
    """Convert fields to YAML types. Raises EntryInvalid; TypeError for free text that was not scrubbed."""
    checked = {key: _validate_value(key, value) for key, value in fields.items()}
    if (status := checked.get("status")) is not None and status not in STATUSES:
        raise EntryInvalid(f"status {status!r} is not allowed: use one of {', '.join(STATUSES)}")
    if (kind := checked.get("kind")) is not None:
        validate_name("kind", str(kind))
    if (group := checked.get("group")) is not None:
        validate_group(str(group))
    if new:
        tags = checked.get("tags")
        for tag in tags if isinstance(tags, list) else []:
            validate_name("tag", str(tag))
    occurrences = checked.get("occurrences")
    if occurrences is not None and (not isinstance(occurrences, int) or occurrences < 1):
        raise EntryInvalid("occurrences must be a whole number of at least 1")
    return checked


def _validate_value(key: str, value: StoreValue) -> FieldValue:
    if isinstance(value, Source):
        return _validate_value(key, [value])
    if value is None or isinstance(value, bool | int | float | date):
        return value
    if isinstance(value, str):
        text = _validate_text(key, value)
        return to_link(text) if key in LINKED_KEYS else text
    if isinstance(value, Mapping):
        return {name: _validate_value(key, item) for name, item in value.items()}
    items = [_source_field(item) if isinstance(item, Source) else _validate_value(key, item) for item in value]
    if key == "source" and len(items) == 1 and isinstance(items[0], str):
        return items[0]  # `source: agent`
    return items


def _validate_text(key: str, text: str) -> str:
    if not isinstance(text, Scrubbed):
        if key not in MACHINE_KEYS:
            raise TypeError(f"{key}: only text of type Scrubbed is written to the vault")
        if len(text) > MAX_MACHINE_TEXT_CHARACTERS or any(ord(c) < 32 or c == "\x7f" for c in text):
            raise EntryInvalid(f"{key} must be one line of at most {MAX_MACHINE_TEXT_CHARACTERS} characters")
    return replace_unencodable(text)


def _source_field(source: Source) -> dict[str, FieldValue] | str:
    """Return `{host, session, records}` without empty ones; only the host's name if it has nothing else."""
    if not source.session and not source.records:
        return _validate_text("source", source.host)
    field: dict[str, FieldValue] = {
        "host": _validate_text("source", source.host),
        "session": _validate_text("source", source.session),
        "records": [_validate_text("source", record) for record in source.records],
        "said": _validate_text("source", source.said),
    }
    return {name: value for name, value in field.items() if value}


def replace_unencodable(text: str) -> str:
    """Return `text` with `?` for what UTF-8 cannot encode: half a surrogate pair, cut by some JSON writer."""
    return text.encode("utf-8", "replace").decode("utf-8")
