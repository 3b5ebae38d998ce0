"""Order and count of passages, and the terms that readers of a large index share."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from memoryvault.index.scope import Scope
from memoryvault.index.search_reader import COLUMN_WEIGHTS, SearchReader
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
def reader(indexed: Bed) -> Iterator[SearchReader]:
    with closing(SearchReader(indexed.index_db)) as opened:
        yield opened


@pytest.mark.parametrize(
    "match", ['"otter"', '"otter" OR "watcher3"', '("place7") AND ("place7" OR "otter")', '"swims"']
)
def test_passages_come_in_the_order_of_the_column_rank(reader: SearchReader, match: str) -> None:
    bm25 = f"bm25({', '.join(map(str, COLUMN_WEIGHTS))})"
    sql = f"SELECT rowid, -rank FROM chunk_fts WHERE chunk_fts MATCH ? AND rank MATCH '{bm25}' ORDER BY rank"
    expected = [tuple(row) for row in reader._connection.execute(sql, (match,))]
    found = reader.search_keywords(match, EVERYTHING, 100)
    assert expected
    assert [(hit.chunk_rowid, hit.bm25) for hit in found] == expected


def test_a_passage_that_was_added_is_counted(indexed: Bed, reader: SearchReader) -> None:
    before = reader.vocabulary.chunk_count
    assert reader.vocabulary.chunk_count == before == 40
    indexed.write("notes/new.md", "A heron stands there.", status="active")
    indexed.index()
    assert reader.vocabulary.chunk_count == before + 1


def test_only_what_could_come_with_a_prompt_is_counted_for_the_gate(bed: Bed) -> None:
    bed.write("personal-private/fix/tides.md", "Tides come in universal time.", kind="fix")
    bed.write("mine/fact/port.md", "The port is 8081.", kind="fact", project="mine")
    bed.write("theirs/fact/port.md", "The port is 9090.", kind="fact", project="theirs")
    bed.write("_archive/old.md", "The port was 80.", kind="fact", status="superseded")
    for number in range(5):
        bed.write(f"personal-skills/setup-{number}.md", f"Set up tool{number}.", kind="skill")
    bed.index()
    with closing(SearchReader(bed.index_db)) as reader:
        assert reader.count_rivals("mine", skills=False) == 2
        assert reader.count_rivals(None, skills=False) == 3
        assert reader.count_rivals("mine", skills=True) == 5
        assert reader.count_rivals("Mine", skills=None) == 7
        assert reader.count_rivals("mine", skills=False, folders={"", "_archive"}) == 3
