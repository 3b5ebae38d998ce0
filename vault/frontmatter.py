"""Read YAML frontmatter, and edit it line by line.

python-frontmatter reads; it drops comments, key order and quotes when it writes, so writing is done here: a field that
is not in an edit survives byte for byte.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import yaml
from frontmatter.default_handlers import SafeLoader, YAMLHandler

from ..runtime.errors import EntryInvalid
from .header import (
    BYTE_ORDER_MARK,
    DECISIVE,
    UNREADABLE,
    UNREADABLE_STATUS,
    canonical,
    conflict_line,
    is_lost,
    is_mark,
    parse_scalars,
    split_header,
)

_KEY_ORDER = (
    "kind status created updated tags group slug always_load project fingerprint confidence occurrences source "
    "surfaced_in_session surfaced_at supersedes superseded_by superseded_at superseded_reason"
)
KEY_ORDER = tuple(_KEY_ORDER.split())
"""The design's order. Other keys follow in the order in which they are given."""

Scalar: TypeAlias = str | int | float | bool | dt.date | None
FieldValue: TypeAlias = "Scalar | Sequence[FieldValue] | Mapping[str, FieldValue]"

# What the YAML constructors raise on well-formed but impossible values (`2026-13-45`, `? [a]`).
_YAML_FAULTS = (
    yaml.YAMLError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)

LONGEST_NUMBER = 250
"""Most characters of a whole number, of any base. Python makes no float of more than 308 digits, and prints no more
than 4,300."""


class _Loader(SafeLoader):  # type: ignore[misc,valid-type]  # C's, where it is built
    """Loads plain values, without whole numbers that are too long to be meant."""


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    if len(node.value) > LONGEST_NUMBER:
        raise ValueError("a number of too many digits")
    return int(loader.construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)

_KEY_LINE = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'\[\]{},&*!|>%@`?-][^\n]*?|[?-][^\s][^\n]*?)"""
    r"""[ \t]*:(?=[ \t\r\n]|$)"""
)
_PLAIN_TEXT = re.compile(r"[A-Za-z_/.(\u00a1-\ud7ff][^\n]*")
_DATE_OR_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?")
_UNPRINTABLE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")
_UNCOMMENTED = re.compile(r"""(?:[ \t\[{,]*(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'))?(?:[^ \t]|[ \t]+(?![# \t]))*""")
"""Matches a value, which may begin with a quotation, up to the blanks before a comment."""
# A number to some YAML reader, 1.1 (sexagesimal, 0x, underscores) or 1.2 (0o, 1e5).
_LOOKS_NUMERIC = re.compile(r"[-+]?(?:0[xob][\da-fA-F_]+|\.?\d[\d_,.:]*(?:[eE][-+]?\d+)?)")


def load_fields(header: str) -> dict[str, object]:
    """Return the header's fields. Never raises: where YAML fails, each field is read alone and bad ones left out.

    So one mistyped line does not hide the `status` of a rejected entry. Hooks read such a header in the same way.
    """
    loaded = _load(header)
    fields: dict[str, object] = {}
    if isinstance(loaded, dict):
        fields = {str(key): value for key, value in loaded.items()}
    elif loaded is not None:
        lines = header.split("\n")
        for field in _scan(lines):
            alone = _load("\n".join(lines[field.start : field.end]))
            if isinstance(alone, dict):
                fields.update((str(key), value) for key, value in alone.items())
    skimmed = parse_scalars(header)
    fields.update((key, skimmed[key]) for key in DECISIVE if key in skimmed)
    if UNREADABLE in skimmed and not isinstance(loaded, dict):
        fields["status"] = UNREADABLE_STATUS
    return fields


def is_broken(header: str) -> bool:
    """Whether YAML can't read the header as fields, so that `load_fields` had to guess."""
    return not isinstance(_load(header), dict | None)


def find_fault(text: str) -> tuple[int, str] | None:
    """Return (number of the line in the note, from 1, the line) at which its header can't be read or git's conflict
    marks begin; None for a sound note."""
    lines = text.replace("\r\n", "\n").split("\n")
    if "\0" in text:
        return text.partition("\0")[0].count("\n") + 1, "bytes that are no text; save the note as UTF-8"
    if number := conflict_line(text):
        return number, lines[number - 1]
    parts = split_header(text)
    if parts is None and is_lost(text):
        return 1, lines[0]
    if parts is None or not is_broken(parts[1]):
        return None
    header = parts[1].replace("\r\n", "\n").split("\n")
    whole = ((field.start, field.end) for field in _scan(header))
    faulty = next((span for span in whole if is_broken("\n".join(header[slice(*span)]))), (0, len(header)))
    ends = range(faulty[0] + 1, faulty[1] + 1)
    end = next((end for end in ends if is_broken("\n".join(header[faulty[0] : end]))), faulty[0] + 1)
    return parts[0].count("\n") + end, header[end - 1]


def require_sound(text: str, path: str = "the note") -> None:
    """Raise EntryInvalid, with the line to mend, for a note that has a fault."""
    if (fault := find_fault(text)) is not None:
        raise EntryInvalid(f"line {fault[0]} of {path} can't be read, mend it first: {fault[1].strip()[:80]}")


class _Failed:
    """YAML could not be read."""


def _load(text: str) -> object:
    try:
        readable = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")  # bytes that were no text
        return YAMLHandler().load(readable.replace("\r\n", "\n"), Loader=_Loader)
    except _YAML_FAULTS:
        return _Failed()


@dataclass(slots=True)
class _Field:
    """Lines [start, end) of the header hold the field `key`."""

    key: str
    start: int
    end: int
    value_at: int


def _scan(lines: Sequence[str]) -> list[_Field]:
    """Return the top-level fields. Comments and blank lines between two fields belong to neither."""
    fields: list[_Field] = []
    for number, line in enumerate(lines):
        bare = line.strip()
        match = _KEY_LINE.match(line)
        if match is not None:
            fields.append(_Field(_key_name(match["key"]), number, number + 1, match.end()))
        elif fields and bare and not line.startswith("#"):
            fields[-1].end = number + 1
    return fields


def split_fields(header: str) -> list[tuple[str | None, str]]:
    """Split a header into its top-level fields, as (key, lines), and the lines between them, with the key None.

    Joined, the lines are `header` again.
    """
    lines = header.split("\n")
    pieces: list[tuple[str | None, int, int]] = []
    position = 0
    for field in _scan(lines):
        pieces += [(None, position, field.start), (field.key, field.start, field.end)]
        position = field.end
    pieces.append((None, position, len(lines)))
    ended = [line + "\n" for line in lines[:-1]] + lines[-1:]
    texts = [(key, "".join(ended[start:end])) for key, start, end in pieces]
    return [(key, text) for key, text in texts if text]


def carry_fields(text: str, source: str, keys: Collection[str]) -> str:
    """Return `text` with those of the fields `keys` that it lacks, as written in `source`.

    Unchanged unless both have a header, or if YAML can't read that of `source`.
    """
    parts, given = split_header(text), split_header(source)
    if parts is None or given is None or is_broken(given[1]):
        return text
    before, header, after = parts
    newline = "\r\n" if before.endswith("\r\n") else "\n"
    held = {key for key, _ in split_fields(header)}
    added = [lines for key, lines in split_fields(given[1]) if key in keys and key not in held]
    return before + header + "".join(added).replace("\r\n", "\n").replace("\n", newline) + after


def _key_name(written: str) -> str:
    if written[0] in "\"'":
        loaded = _load(written)
        return canonical(loaded) if isinstance(loaded, str) else written
    return canonical(written.strip())


def set_fields(text: str, changes: Mapping[str, FieldValue]) -> str:
    """Return `text` with these fields set, or removed where the value is None.

    Only their lines change, and none where a field already has the value; new fields are put in the design's order. A
    text without frontmatter gets one. Raises EntryInvalid for a header that cannot be edited without touching other
    fields.
    """
    parts = split_header(text)
    if parts is None:
        present = {key: value for key, value in changes.items() if not _is_empty(value)}
        if not present:
            return text
        mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
        body = text.removeprefix(BYTE_ORDER_MARK)
        newline = "\r\n" if "\r\n" in body else "\n"
        header = format_header(present).replace("\n", newline)
        gap = "" if not body or body.startswith(("\n", "\r\n")) else newline
        return f"{mark}---{newline}{header}---{newline}{gap}{body}"
    before, header, after = parts
    newline = "\r\n" if before.endswith("\r\n") else "\n"
    lines = header.split("\n")[:-1] if header else []
    before_edit = _load(header)
    if isinstance(before_edit, _Failed) or any(map(is_mark, lines)):
        require_sound(text)
    for key, value in changes.items():
        _set_one(lines, key, value, newline)
    edited = "".join(line + "\n" for line in lines)
    _assert_only(changes, before_edit, _load(edited))
    return before + edited + after


def _set_one(lines: list[str], key: str, value: FieldValue, newline: str) -> None:
    """Edit the header's lines (each without its \\n) in place."""
    found = [field for field in _scan(lines) if field.key == key]
    carriage = newline[:-1]
    if _is_empty(value):
        for field in reversed(found):
            del lines[field.start : field.end]
        return
    written = [line + carriage for line in format_field(key, value)]
    if not found:
        at = _insertion_point(lines, key)
        lines[at:at] = written
        return
    field = found[-1]  # YAML takes the last of several
    for other in reversed(found[:-1]):
        del lines[other.start : other.end]
    shift = sum(other.end - other.start for other in found[:-1])
    field.start, field.end = field.start - shift, field.end - shift
    old = "\n".join(lines[field.start : field.end])
    loaded = _load(old)
    if isinstance(loaded, dict) and _same(loaded.get(key), _reread(key, value)):
        return
    if len(written) == 1 and field.end == field.start + 1:
        comment = _UNCOMMENTED.sub("", lines[field.start][field.value_at :].rstrip("\r"), count=1)
        written = [written[0].rstrip("\r") + comment + carriage]
    lines[field.start : field.end] = written


def _insertion_point(lines: Sequence[str], key: str) -> int:
    """Return the place after the nearest field before `key` in the design's order; the end for other keys."""
    fields = _scan(lines)
    if key not in KEY_ORDER:
        return _end_of(fields, lines)
    rank = KEY_ORDER.index(key)
    earlier = set(KEY_ORDER[:rank])
    ends = [field.end for field in fields if field.key in earlier]
    if ends:
        return max(ends)
    later = [field.start for field in fields if field.key in KEY_ORDER]
    return min(later) if later else _end_of(fields, lines)


def _end_of(fields: Sequence[_Field], lines: Sequence[str]) -> int:
    return max((field.end for field in fields), default=len(lines))


def _assert_only(changes: Mapping[str, FieldValue], before: object, after: object) -> None:
    """Raise EntryInvalid unless the edit changed these fields and nothing else, by what YAML reads before and after."""
    old = _canonical(before) if isinstance(before, dict) else {}
    new = _canonical(after) if isinstance(after, dict) else {} if after is None else None
    expected = {key: value for key, value in old.items() if key not in changes}
    for key, value in changes.items():
        if not _is_empty(value):
            expected[key] = _reread(key, value)
    if new is None or not _same(new, expected):
        raise EntryInvalid(
            "the frontmatter is written in a way that cannot be edited safely; "
            "put each field on its own line(s), `key: value`, and try again"
        )


def _canonical(fields: Mapping[object, object]) -> dict[object, object]:
    return {canonical(key) if isinstance(key, str) else key: value for key, value in fields.items()}


def _same(left: object, right: object) -> bool:
    """Whether the values are equal, types included (1 is not True), NaN equal to itself."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right, strict=True))
    return type(left) is type(right) and (left == right or (left != left and right != right))


def _reread(key: str, value: FieldValue) -> object:
    loaded = _load("\n".join(format_field(key, value)))
    if not isinstance(loaded, dict):
        raise EntryInvalid(f"the value of {key!r} cannot be written as YAML")
    return loaded.get(key)


def _is_empty(value: FieldValue) -> bool:
    """Whether a value is left out of a header: None, empty text, empty lists; not False or 0."""
    return value is None or (isinstance(value, str | Sequence | Mapping) and len(value) == 0)


def format_header(fields: Mapping[str, FieldValue]) -> str:
    """Return all fields that are not empty as the lines of a header, in the design's order, each ending in LF."""
    known = [key for key in KEY_ORDER if key in fields]
    keys = known + [key for key in fields if key not in KEY_ORDER]
    lines = [line for key in keys if not _is_empty(fields[key]) for line in format_field(key, fields[key])]
    return "".join(line + "\n" for line in lines)


def format_field(key: str, value: FieldValue) -> list[str]:
    """Return the lines of one field, without line ends."""
    name = key if re.fullmatch(r"[A-Za-z_][\w-]*", key, re.ASCII) and _is_plain(key) else _quoted(key)
    if isinstance(value, Mapping):
        return [f"{name}:", *_mapping_lines(value, "  ")]
    if isinstance(value, Sequence) and not isinstance(value, str):
        if any(isinstance(item, Mapping) for item in value):
            lines = [f"{name}:"]
            for item in value:
                lines += _item_lines(item)
            return lines
        return [f"{name}: {_flow(value)}"]
    return [f"{name}: {format_scalar(value)}"]


def _mapping_lines(mapping: Mapping[str, FieldValue], indent: str) -> list[str]:
    return [indent + line for key, value in mapping.items() for line in format_field(key, value)]


def _item_lines(item: FieldValue) -> list[str]:
    if not isinstance(item, Mapping) or not item:
        return [f"  - {_flow(item)}"]
    lines = _mapping_lines(item, "    ")
    return ["  - " + lines[0][4:], *lines[1:]]


def _flow(value: FieldValue) -> str:
    """Return the value in one line: `[a, b]`, `{a: b}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    written = format_scalar(value)
    if written[0] != '"' and isinstance(value, str) and re.search(r"[\[\]{},:?]", written):
        return _quoted(value)
    return written


def format_scalar(value: Scalar) -> str:
    """Return the value as YAML on one line. Text is quoted only where it would read back as something else."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 reads 1e-07 as text
    if isinstance(value, dt.datetime):
        text = value.isoformat()
        return text[:-6] + "Z" if text.endswith("+00:00") else text
    if isinstance(value, dt.date):
        return value.isoformat()
    if _DATE_OR_TIME.fullmatch(value) and isinstance(_load(value), dt.date):
        return value  # dates are dates, as in a note that Obsidian writes
    return value if _is_plain(value) else _quoted(value)


def _is_plain(text: str) -> bool:
    """Whether the text needs no quotes in YAML 1.1 and 1.2."""
    if not _PLAIN_TEXT.fullmatch(text) and not re.fullmatch(r"\d+[A-Za-z_.-][^\n]*", text):
        return False
    if _UNPRINTABLE.search(text) or _LOOKS_NUMERIC.fullmatch(text):
        return False
    return _load(text) == text


def _quoted(text: str) -> str:
    """Return a double-quoted scalar that every YAML reader takes as `text`."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))
