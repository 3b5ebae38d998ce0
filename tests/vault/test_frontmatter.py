"""Editing frontmatter: only the named fields change; all else survives byte for byte."""

import datetime as dt
import re

import frontmatter
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryvault.runtime.errors import EntryInvalid
from memoryvault.vault.frontmatter import (
    FieldValue,
    carry_fields,
    find_fault,
    format_header,
    format_scalar,
    load_fields,
    set_fields,
    split_fields,
)
from memoryvault.vault.header import body_of, parse_scalars, skim, split_header

HAND_WRITTEN = """\
---
# my own note on this note
cssclasses: [wide,   "dark"]   # theme
kind:   'preferences'
status: active  # until the rewrite

tags:
- one   # first
- two
description: >-
  A folded
  text: with a colon

  and a blank line
"quoted key": {a: 1}
slug: "x"
---

# Title

status: this is body, not a field
---
kind: nor is this
"""


def test_a_field_that_has_the_value_already_keeps_its_spelling() -> None:
    same = {"kind": "preferences", "tags": ["one", "two"], "slug": "x", "cssclasses": ["wide", "dark"]}
    assert set_fields(HAND_WRITTEN, same) == HAND_WRITTEN


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"status": "resolved"}, "status: active  # until", "status: resolved  # until"),
        ({"tags": ["three"]}, "tags:\n- one   # first\n- two\n", "tags: [three]\n"),
        ({"description": None}, HAND_WRITTEN[HAND_WRITTEN.index("desc") : HAND_WRITTEN.index('"quoted')], ""),
    ],
)
def test_a_change_is_of_the_lines_of_its_field(changes: dict[str, FieldValue], old: str, new: str) -> None:
    assert set_fields(HAND_WRITTEN, changes) == HAND_WRITTEN.replace(old, new)


def test_new_fields_take_their_place_in_the_designs_order() -> None:
    changed = set_fields(HAND_WRITTEN, {"created": dt.date(2026, 7, 1), "occurrences": 2, "mood": "good"})
    lines = changed.splitlines()
    assert lines.index("created: 2026-07-01") == lines.index("status: active  # until the rewrite") + 1
    assert lines.index("occurrences: 2") == lines.index('slug: "x"') + 1
    assert lines.index("mood: good") == lines.index("occurrences: 2") + 1
    assert [line for line in lines if line not in ("created: 2026-07-01", "occurrences: 2", "mood: good")] == (
        HAND_WRITTEN.splitlines()
    )


def test_a_note_without_frontmatter_gets_one() -> None:
    assert set_fields("# T\n\nBody\n", {"status": "active", "project": None}) == (
        "---\nstatus: active\n---\n\n# T\n\nBody\n"
    )
    assert set_fields("# T\n", {"status": None}) == "# T\n"
    assert set_fields("\ufeff# T\r\n", {"status": "active"}) == "\ufeff---\r\nstatus: active\r\n---\r\n\r\n# T\r\n"


def test_windows_line_ends_stay() -> None:
    text = "---\r\nkind: a\r\nmood: b # c\r\n---\r\nbody\r\n"
    assert set_fields(text, {"kind": "z", "slug": "s"}) == (
        "---\r\nkind: z\r\nslug: s\r\nmood: b # c\r\n---\r\nbody\r\n"
    )


def test_of_a_key_that_is_there_twice_one_is_left() -> None:
    text = "---\nstatus: a\nkind: k\nStatus: b\n---\n"
    assert set_fields(text, {"status": "c"}) == "---\nkind: k\nstatus: c\n---\n"
    assert set_fields(text.replace("S", "s"), {"status": "c"}) == "---\nkind: k\nstatus: c\n---\n"
    assert set_fields(text, {"status": "b"}) == "---\nkind: k\nstatus: b\n---\n"
    assert set_fields(text, {"status": None}) == "---\nkind: k\n---\n"


CONFLICTED = (
    "---\nkind: fix\n<<<<<<< HEAD\nstatus: dismissed\n=======\nstatus: active\n>>>>>>> origin/main\n---\nbody\n"
)


@pytest.mark.parametrize(
    ("text", "number", "line"),
    [
        ('---\ntitle: "unclosed\nkind: a\n---\nbody\n', 2, 'title: "unclosed'),
        (
            "\n---\nkind: a\ntitle: Deploys: the short way\nstatus: active\n---\nbody\n",
            4,
            "title: Deploys: the short way",
        ),
        ("---\nkind: a\nno field\n---\nbody\n", 3, "no field"),
        ("---\r\nkind: a\r\ncreated: {{date:YYYY}}\r\n---\r\nbody\r\n", 3, "created: {{date:YYYY}}"),
        (CONFLICTED, 3, "<<<<<<< HEAD"),
        (CONFLICTED.replace("<<<<<<< HEAD\n", "").replace("=======\nstatus: active\n", ""), 4, ">>>>>>> origin/main"),
    ],
)
def test_an_edit_of_a_header_that_cannot_be_read_names_the_line_to_mend(text: str, number: int, line: str) -> None:
    assert find_fault(text) == (number, line)
    with pytest.raises(EntryInvalid, match=rf"line {number} of the note .*{re.escape(line.strip())}"):
        set_fields(text, {"status": "dismissed"})


def test_a_sound_note_has_no_fault() -> None:
    for text in ("", "no header", "---\nkind: a\n---\nbody: x: y", "---\n---\n", "---\n# only a comment\n---\n"):
        assert find_fault(text) is None


def header_of(text: str) -> str:
    parts = split_header(text)
    assert parts is not None
    return parts[1]


@pytest.mark.parametrize(
    "text",
    [
        "---\n{kind: a, other: b}\n---\n",
        "---\ntext: 'runs over\nstatus: here'\n---\n",
        "---\n- a\n---\n",
        "---\nbase: &b x\nkind: *b\nsame: *b\n---\n",
    ],
)
def test_a_header_that_an_edit_would_garble_is_refused_or_left_whole(text: str) -> None:
    before = load_fields(header_of(text))
    try:
        changed = set_fields(text, {"status": "z", "base": None})
    except EntryInvalid:
        return
    after = load_fields(header_of(changed))
    assert {k: v for k, v in after.items() if k not in ("status", "base")} == {
        k: v for k, v in before.items() if k not in ("status", "base")
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a/b c.md", "a/b c.md"),
        ("Привет", "Привет"),
        ("2026-07-01T10:00:00Z", "2026-07-01T10:00:00Z"),
        ("yes", '"yes"'),
        ("12:30:45", '"12:30:45"'),
        ("2026-99-99", '"2026-99-99"'),
        ("a: b", '"a: b"'),
        ('say "hi"\n', '"say \\"hi\\"\\n"'),
        ("", '""'),
        (True, "true"),
        (3, "3"),
        (1e-7, "1.0e-07"),
        (dt.datetime(2026, 7, 1, 10, tzinfo=dt.UTC), "2026-07-01T10:00:00Z"),
    ],
)
def test_text_is_quoted_only_where_it_would_read_as_something_else(value: str, written: str) -> None:
    assert format_scalar(value) == written


def test_a_header_is_written_in_the_designs_order_without_empty_fields() -> None:
    header = format_header(
        {
            "mood": "x",
            "source": [{"host": "claude-code", "session": "s", "records": ["a", "b"]}],
            "tags": ["smoke", "test"],
            "status": "active",
            "kind": "preferences",
            "always_load": False,
            "project": None,
            "aliases": [],
        }
    )
    assert header == (
        "kind: preferences\nstatus: active\ntags: [smoke, test]\nalways_load: false\n"
        "source:\n  - host: claude-code\n    session: s\n    records: [a, b]\nmood: x\n"
    )


def test_skimming_reads_the_plain_fields_without_yaml() -> None:
    fields, body = skim(
        "\n---\nkind: \"a \\\"b\\\"\"\nslug: 'it''s'\ntags: [a]\nlist:\n  - x: 1\nnote: b # c\n---\n\n# T\n"
    )
    assert fields == {"kind": 'a "b"', "slug": "it's", "note": "b", "tags": "a"}
    assert body == "# T"
    assert skim("no header") == ({}, "no header")
    assert parse_scalars("a:b\n: c\nkey:\n") == {}
    assert parse_scalars("a: |\n  - x\nb: c\n  goes on\n- x\nd: " + "[" * 9_999) == {"b": "c"}


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
KEY = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,12}", fullmatch=True) | TEXT.filter(lambda t: t.strip() != "")
SCALAR = (
    TEXT.filter(bool)
    | st.sampled_from(
        ["yes", "no", "~", "null", "1_000", ".5", "-", "?", ":", "=", "<<", "0o7", "1:2", "!x", "%a", "---"]
    )
    | st.integers(-(10**12), 10**12)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.dates()
)
VALUE = (
    SCALAR
    | st.lists(SCALAR, min_size=1, max_size=3)
    | st.dictionaries(KEY, SCALAR, min_size=1, max_size=3)
    | st.lists(
        st.dictionaries(KEY, SCALAR | st.lists(SCALAR, min_size=1, max_size=2), min_size=1, max_size=2),
        min_size=1,
        max_size=2,
    )
)


def plain(value: object) -> object:
    """Text in the form of a date is written as a date, on purpose."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    read = load_fields(f"k: {format_scalar(value)}").get("k") if isinstance(value, str) else None
    return read if isinstance(read, dt.date) else value


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(KEY, VALUE, max_size=5))
def test_python_frontmatter_reads_back_exactly_what_was_written(fields: dict[str, FieldValue]) -> None:
    text = f"---\n{format_header(fields)}---\n\nBody.\n"
    # Not `loads`: its Post cannot hold a field called "content" or "handler".
    metadata, content = frontmatter.parse(text)
    assert metadata == plain(fields)
    assert content == "Body."


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(KEY, VALUE, max_size=5), st.dictionaries(KEY, VALUE | st.none(), max_size=3), TEXT)
def test_an_edit_sets_what_it_names_and_nothing_else(
    fields: dict[str, FieldValue], changes: dict[str, FieldValue], body: str
) -> None:
    text = f"---\n{format_header(fields)}---\n\n{body}"
    changed = set_fields(text, changes)
    expected = {**fields, **changes}
    parts = split_header(changed)
    assert parts is not None
    assert load_fields(parts[1]) == plain({k: v for k, v in expected.items() if v is not None})
    assert parts[2] == f"---\n\n{body}"
    assert set_fields(changed, changes) == changed


@given(st.text(st.sampled_from("-a: \n\r\ufeff#"), max_size=60))
def test_splitting_loses_no_character(text: str) -> None:
    parts = split_header(text)
    assert parts is None or "".join(parts) == text
    assert body_of(text) == body_of(text).strip()


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab:-#'\"[]{},|>& \n"), max_size=80))
def test_unknown_text_survives_or_the_edit_is_refused(header: str) -> None:
    text = f"---\n{header}\n---\nbody\n"
    try:
        changed = set_fields(text, {"status": "zz"})
    except EntryInvalid:
        return
    lines = changed.splitlines(keepends=True)
    assert "status: zz\n" in lines
    lines.remove("status: zz\n")
    assert "".join(lines) == text


@given(st.text(alphabet="ab:\"'-#|>[]{}? \t\r\n", max_size=80))
def test_the_fields_of_a_header_and_what_is_between_them_are_the_header(header: str) -> None:
    assert "".join(text for _, text in split_fields(header)) == header


def test_a_header_is_split_where_a_field_begins_and_comments_belong_to_none() -> None:
    header = 'kind: fix\n# why\n"api key":\n  - a\n\n  - b\nä.b: |\n  c: d\n'
    assert split_fields(header) == [
        ("kind", "kind: fix\n"),
        (None, "# why\n"),
        ("api key", '"api key":\n  - a\n\n  - b\n'),
        ("ä.b", "ä.b: |\n  c: d\n"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fields_that_a_note_has_not_are_carried_to_it_as_they_are_written(end: str) -> None:
    text = end.join(("---", "kind: fix", "mood: good", "---", "", "Body.", ""))
    source = '---\nmood: bad\n"due": 2026-01-01 # soon\nlist:\n- a\nother: x\n---\n\nText.\n'
    carried = carry_fields(text, source, {"mood", "due", "list"})
    added = end.join(("kind: fix", "mood: good", '"due": 2026-01-01 # soon', "list:", "- a", ""))
    assert carried == text.replace(end.join(("kind: fix", "mood: good", "")), added)
    for nothing in ("Text.\n", source.replace("other: x", "other: [")):
        assert carry_fields(text, nothing, {"due"}) == text
    assert carry_fields("Body.\n", source, {"due"}) == "Body.\n"
