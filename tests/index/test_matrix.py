"""The index's vectors in memory (index/matrix.py): the same answers as sqlite-vec gives from the file."""

import struct
from collections.abc import Iterator
from contextlib import closing

import pytest

from memoryvault.index import matrix as subject
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.matrix import Matrix, MatrixCache
from memoryvault.index.scope import Scope
from memoryvault.index.search_reader import ModelKey, SearchReader
from memoryvault.tests.index.bed import Bed, slugs
from memoryvault.tests.support.fake_embedder import DIMENSION

NOTES = 120
ANIMALS = ("otter", "heron", "badger", "lynx", "newt")
MODEL = ModelKey(1, DIMENSION)


@pytest.fixture
def many(bed: Bed) -> Bed:
    for number in range(NOTES):
        project = {"project": f"p{number % 12}"} if number % 3 else {}
        text = f"The {ANIMALS[number % 5]} was seen at place{number} by watcher{number % 7}."
        bed.write(f"notes/n{number:03d}.md", text, status="active", **project)
    bed.refresh()
    return bed


@pytest.fixture
def reader(many: Bed) -> Iterator[SearchReader]:
    with closing(SearchReader(many.index_db)) as opened:
        yield opened


@pytest.fixture
def cache(many: Bed) -> Iterator[MatrixCache]:
    with closing(MatrixCache(many.index_db)) as made:
        yield made


def filled(cache: MatrixCache, reader: SearchReader) -> Matrix:
    cache.get(reader, MODEL)
    cache.wait_until_filled(10)
    found = cache.get(reader, MODEL)
    assert found is not None
    return found


def asked(bed: Bed, text: str) -> bytes:
    return bytes(bed.embedder.encode([text], query=True).vectors[0].astype("<f4").tobytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    "scope",
    [Scope(all_projects=True), Scope(project="p4"), Scope(project="p4", group="nobody"), Scope()],
    ids=["everything", "one project", "nothing", "no project"],
)
@pytest.mark.parametrize("overfetch", [(1, 1), (1, 2), (4, 64)], ids=str)
def test_within_any_scope_it_finds_what_sqlite_vec_finds(
    many: Bed,
    reader: SearchReader,
    cache: MatrixCache,
    scope: Scope,
    overfetch: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memoryvault.index.search_reader.FIRST_OVERFETCH", overfetch[0])
    monkeypatch.setattr("memoryvault.index.search_reader.SECOND_OVERFETCH", overfetch[1])
    matrix = filled(cache, reader)
    for number in range(10):
        vector = asked(many, f"which {ANIMALS[number % 5]} did watcher{number % 7} see at place{number}")
        ours = reader.search_vectors(MODEL.model_id, vector, scope, 8, matrix)
        exact = reader.search_vectors(MODEL.model_id, vector, scope, 8)
        assert [hit.similarity for hit in ours] == pytest.approx([hit.similarity for hit in exact], abs=1e-6)
        clear = {hit.chunk_rowid for hit in exact if hit.similarity > exact[-1].similarity + 1e-6}
        assert clear <= {hit.chunk_rowid for hit in ours}
        chunks = [1, 5, 9]
        ours, exact = (
            reader.similarities_of(MODEL.model_id, vector, chunks, matrix),
            reader.similarities_of(MODEL.model_id, vector, chunks),
        )
        assert [hit.similarity for hit in ours] == pytest.approx([hit.similarity for hit in exact], abs=1e-6)


def test_a_note_that_was_just_embedded_is_found(many: Bed, reader: SearchReader, cache: MatrixCache) -> None:
    before = filled(cache, reader)
    many.write("notes/new.md", "A wolverine crossed the glacier.", status="active")
    many.refresh()
    now = cache.get(reader, MODEL)
    assert now is before
    (nearest, *_) = reader.search_vectors(MODEL.model_id, asked(many, "wolverine glacier"), Scope(), 1, now)
    assert reader.entries_by_rowid([nearest.entry_rowid])[nearest.entry_rowid].slug == "new"


def test_many_new_ones_are_fetched_in_the_background(
    many: Bed, reader: SearchReader, cache: MatrixCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MAX_INLINE_VECTORS", 3)
    matrix = filled(cache, reader)
    for number in range(20):
        many.write(f"notes/more{number}.md", f"Another creature{number}.", status="active")
    many.refresh()
    cache.get(reader, MODEL)
    cache.wait_until_filled(10)
    assert matrix.count == NOTES + 20
    assert cache.get(reader, MODEL) is matrix


def test_once_vectors_were_dropped_it_is_filled_anew(many: Bed, reader: SearchReader, cache: MatrixCache) -> None:
    """The ids of dropped passages are used again: an old copy would give a new note another's vector."""
    before = filled(cache, reader)
    (many.vault / f"notes/n{NOTES - 1}.md").unlink()
    many.index()
    assert many.store.collect_orphans(older_than_seconds=-1) == 1
    many.write("notes/new.md", "A wolverine crossed the glacier.", status="active")
    many.refresh()
    assert cache.get(reader, MODEL) is None
    after = filled(cache, reader)
    assert after is not before
    (nearest, *_) = reader.search_vectors(MODEL.model_id, asked(many, "wolverine glacier"), Scope(), 1, after)
    assert reader.entries_by_rowid([nearest.entry_rowid])[nearest.entry_rowid].slug == "new"


def test_another_index_file_gets_a_matrix_of_its_own(many: Bed, reader: SearchReader, cache: MatrixCache) -> None:
    before = filled(cache, reader)
    many.close_store()
    many.index_db.rename(many.index_db.with_name("old.db"))
    many.refresh()
    with closing(SearchReader(many.index_db)) as other:
        assert cache.get(other, MODEL) is None
        assert filled(cache, other) is not before


def test_an_index_that_would_take_too_much_memory_is_left_to_sqlite_vec(
    many: Bed, reader: SearchReader, cache: MatrixCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MAX_BYTES", NOTES * DIMENSION * 4 - 1)
    assert cache.get(reader, MODEL) is None
    cache.wait_until_filled(1)
    assert cache.get(reader, MODEL) is None


def test_the_engine_gives_the_same_hits_with_it(many: Bed) -> None:
    plain = many.engine()
    with closing(RecallEngine(many.index_db, many.vault, many.embedder, keep_vectors=True)) as holding:
        for number in range(12):
            query = RecallQuery(f"who saw the {ANIMALS[number % 5]} at place{number}", project="p4")
            assert slugs(holding.recall(query)) == slugs(plain.recall(query))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e30, 0.0])
def test_a_damaged_vector_is_near_nothing(number: float) -> None:
    matrix = Matrix(None, ModelKey(1, 2), 0)
    good = struct.pack("<2f", 0.6, 0.8)
    matrix.add(1, struct.pack("<2f", number, number))
    matrix.add(2, good)
    assert matrix.nearest(good, 1) == {2: pytest.approx(1.0)}
    assert matrix.similarities(good, [1]) == {1: 0.0}
