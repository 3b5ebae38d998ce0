"""What a reader remembers of a large index, and that it forgets it in time (index/reader.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memoryvault.index import reader as subject
from memoryvault.index.reader import COLUMN_WEIGHTS, IndexReader, Remembered
from memoryvault.index.scope import Scope
from memoryvault.tests.index.bed import Bed

EVERYTHING = Scope(all_projects=True)


@pytest.fixture
def indexed(bed: Bed) -> Bed:
    for number in range(40):
        text = "The otter " * (number % 4) + f"swims past watcher{number % 7} at place{number}."
        bed.write(f"notes/n{number:02d}.md", text, status="active")
    bed.index()
    return bed


@pytest.fixture
def reader(indexed: Bed) -> Iterator[IndexReader]:
    opened = IndexReader(indexed.index_db)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "match", ['"otter"', '"otter" OR "watcher3"', '("place7") AND ("place7" OR "otter")', '"swims"']
)
def test_passages_come_in_the_order_of_the_column_rank(reader: IndexReader, match: str) -> None:
    bm25 = f"bm25({', '.join(map(str, COLUMN_WEIGHTS))})"
    sql = f"SELECT rowid, -rank FROM chunk_fts WHERE chunk_fts MATCH ? AND rank MATCH '{bm25}' ORDER BY rank"
    expected = [tuple(row) for row in reader._connection.execute(sql, (match,))]
    found = reader.keyword(match, EVERYTHING, 100)
    assert expected
    assert [(hit.chunk_rowid, hit.bm25) for hit in found] == expected


def test_a_passage_that_was_added_is_counted(indexed: Bed, reader: IndexReader) -> None:
    before = reader.total
    assert reader.total == before == 40
    indexed.write("notes/new.md", "A heron stands there.", status="active")
    indexed.index()
    assert reader.total == before + 1


def test_readers_of_one_file_share_the_terms_that_one_of_them_has_read(
    indexed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "REMEMBERED_FROM", 10)
    shared = Remembered()
    first = IndexReader(indexed.index_db, remembered=shared)
    second = IndexReader(indexed.index_db, remembered=shared)
    try:
        found = first.candidates("place77")
        assert {"place7", "place17"} <= set(found)
        assert {abs(len(term) - len("place77")) for term in found} <= {0, 1, 2}
        monkeypatch.setattr(second, "_terms", lambda *_: pytest.fail("read again"))
        assert second.candidates("place77") == found
    finally:
        first.close()
        second.close()


def test_terms_are_read_again_once_the_index_has_grown(indexed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "REMEMBERED_FROM", 10)
    reader = IndexReader(indexed.index_db)
    try:
        assert "heron" not in reader.candidates("herom")
        indexed.write("notes/new.md", "A heron stands there.", status="active")
        indexed.index()
        assert "heron" in reader.candidates("herom")
    finally:
        reader.close()
