"""Filter expressions: the grammar, and what they admit."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.index.filters import (
    Filter,
    all_of,
    any_of,
    equals,
    matches,
    named_values,
    negated,
    parse_filter,
    within,
)
from memoryvault.runtime.errors import UsageError

TODAY = date(2026, 7, 15)

ENTRY: dict[str, Any] = {
    "path": "personal-projects/sherwood/fix/a.md",
    "kind": "fix",
    "status": "active",
    "project": "sherwood",
    "group_name": "personal-projects/sherwood",
    "slug": "a",
    "fingerprint": None,
    "special": "",
    "session": None,
    "created": "2026-01-31",
    "updated": "2026-06-20",
    "tags": ["security", "Two Words"],
}


def holds(expression: str, **changes: Any) -> bool:
    tree = parse_filter(expression, TODAY)
    assert tree is not None
    return matches(tree, {**ENTRY, **changes})


@pytest.mark.parametrize("expression", [None, "", "   "])
def test_an_empty_expression_filters_nothing(expression: str | None) -> None:
    assert parse_filter(expression, TODAY) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("tag=security", True),
        ("tag=sec", False),
        ("tag=SECURITY", True),
        ("tag=#security", True),
        ('tag="two words"', True),
        ("tag='Two Words'", True),
        ("tag=security AND project=sherwood", True),
        ("kind=reference and status=active", False),
        ("kind=reference or status=active", True),
        ("NOT kind=reference", True),
        ("not (kind=fix AND tag=security)", False),
        ("kind!=fix", False),
        ("kind=note OR kind=fix AND tag=none", False),
        ("(kind=note OR kind=fix) AND tag=security", True),
        ("group=personal-projects", True),
        ("group=personal-projects/sher", False),
        ("group=personal-projects/sherwood/", True),
        ('fingerprint=""', True),
        ("created>2026-01", True),
        ("created>=2026-01-31", True),
        ("created>2026-01-31", False),
        ("created<2026-01", False),
        ("created<=2026-01", True),
        ("created=2026-02", False),
        ("created!=2026-02", True),
        ("updated since 30d", True),
        ("updated since 3w", False),
        ("updated>=2026-06-20", True),
        ("created since 30w AND updated since 4w", True),
    ],
)
def test_an_expression_decides(expression: str, expected: bool) -> None:
    assert holds(expression) is expected


def test_a_note_never_updated_counts_as_updated_when_created() -> None:
    assert holds("updated=2026-01", updated=None)
    assert not holds("created>2000-01", created=None, updated=None)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("not-a-clause", "write key=value"),
        ("garbage", "write key=value"),
        ("nonexistent=foo", "unknown key 'nonexistent'"),
        ("tag=", "value is missing"),
        ("tag=a tag=b", "AND or OR"),
        ("tag=a AND", "expected a clause"),
        ("(tag=a", "never closed"),
        ('tag="a', "quote that is never closed"),
        ("tag>a", "compared with ="),
        ("created>soon", "not a date"),
        ("created>2026-13", "not a date"),
        ("NOT " * 200 + "tag=a", "nested too deeply"),
        (" OR ".join(["tag=a"] * 201), "more than 200 clauses"),
        ("=a", "expected a clause"),
    ],
)
def test_a_bad_expression_is_refused_in_one_line(expression: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"^filter: ") as caught:
        parse_filter(expression, TODAY)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_values_that_are_named_are_known() -> None:
    tree = parse_filter("status=superseded OR NOT (status=Pending AND tag=x)", TODAY)
    assert named_values(tree, "status") == {"superseded", "pending"}
    assert named_values(None, "status") == frozenset()


def test_all_of_no_filters_admit_and_any_of_none_does_not() -> None:
    assert matches(all_of(()), ENTRY)
    assert not matches(any_of(()), ENTRY)


def test_a_path_that_is_no_utf_8_is_compared_like_any_other() -> None:
    assert holds("kind=fix", path="a/\udcff.md", title="\ud800")
    assert not matches(equals("path", "\udcfe.md"), {**ENTRY, "path": "a.md"})


# Negation

words = st.sampled_from(["a", "b", "A", "a/b", "x y", "ä", "Ä", "", "it's", 'say "hi"', "%", "_"])
days = st.sampled_from(["2025-12-31", "2026-01-01", "2026-01-15", "2026-02-01", "", None])
rows = st.fixed_dictionaries(
    {
        "kind": st.one_of(st.none(), words),
        "status": st.one_of(st.none(), words),
        "project": st.one_of(st.none(), words),
        "group_name": st.one_of(st.none(), words),
        "created": days,
        "updated": days,
        "tags": st.lists(words.filter(bool), max_size=3),
    }
)
leaves = st.one_of(
    st.builds(equals, st.sampled_from(["kind", "status", "project", "group", "tag"]), words),
    st.builds(
        within,
        st.sampled_from(["created", "updated"]),
        st.sampled_from(["2025-12-31", "2026-01-01"]),
        st.sampled_from(["2026-01-01", "2026-01-31", "9999-12-31"]),
    ),
)
trees: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(negated, inner),
        st.builds(all_of, st.tuples(inner, inner)),
        st.builds(any_of, st.tuples(inner, inner)),
    ),
    max_leaves=6,
)


@given(rows, trees)
def test_of_a_filter_and_its_negation_one_admits_a_row(row: dict[str, Any], tree: Filter) -> None:
    """A condition that is NULL would admit it in neither."""
    assert matches(negated(tree), row) is not matches(tree, row)


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(words, words)
def test_any_value_can_be_written_in_quotes(kind: str, tag: str) -> None:
    tree = parse_filter(f"kind={quoted(kind)} AND NOT tag={quoted(tag)}", TODAY)
    assert tree == all_of([equals("kind", kind), negated(equals("tag", tag))])
