"""index.db damaged in hundreds of ways: recall goes on, and the worker's first walk makes the index again."""

import random
import shutil
from pathlib import Path

import apsw
import pytest

from memoryvault.hooks.search import FallbackQuery, search
from memoryvault.index import database
from memoryvault.index.catalog_reader import CatalogReader
from memoryvault.index.engine import RecallResult
from memoryvault.index.scope import Scope
from memoryvault.index.store import open_or_rebuild
from memoryvault.runtime.errors import MemoryVaultError
from memoryvault.tests.index.bed import Bed, slugs
from memoryvault.tests.support.damage import damaged, rounds

pytestmark = pytest.mark.slow

WORDS = ("walrus", "quokka", "ocelot", "badger", "marmot", "gibbon", "iguana", "jackal")


def filled_index(bed: Bed) -> bytes:
    for number, word in enumerate(WORDS):
        body = f"The {word} carries the release number {number}.\n\n" + f"More about the {word} and its habits. " * 40
        bed.write(f"notes/{word}.md", body, kind="fact", tags=f"[animal, {word}]", title=f"About the {word}")
    bed.refresh()
    bed.close_store()
    connection = apsw.Connection(str(bed.index_db))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return bed.index_db.read_bytes()


def recall(bed: Bed, word: str) -> RecallResult:
    """By an engine of its own, as of a service that has just started."""
    answer = bed.recall(f"what about the {word}?")
    bed._engines.pop().close()
    return answer


def look(bed: Bed) -> None:
    """As pages and commands do."""
    try:
        reader = CatalogReader(bed.index_db)
    except MemoryVaultError:
        return
    try:
        with reader.snapshot():
            reader.file_stamps()
            reader.list_entries(Scope(), 0, 10)
            reader.distinct_values("kind")
    except MemoryVaultError:
        pass
    finally:
        reader.close()


def walk(bed: Bed) -> None:
    """As the job of the worker does; it comes again after what it can't do now."""
    said: list[str] = []
    for _ in range(3):
        try:
            store, _ = open_or_rebuild(bed.index_db)
            with store:
                bed._store = store
                bed.refresh()
                store.stats()
            return
        except MemoryVaultError as error:
            said.append(str(error))
        finally:
            bed._store = None
    raise AssertionError(f"three walks did not mend it: {said}")


@pytest.mark.parametrize("part", range(4))
def test_a_damaged_index_is_whole_again_after_the_first_walk_of_a_worker(bed: Bed, part: int) -> None:
    data = filled_index(bed)
    files = {path: path.read_bytes() for path in bed.vault.rglob("*.md")}
    for number in range(part, rounds(40), 4):
        shutil.rmtree(bed.state.root)
        bed.state.ensure()
        bed.index_db.write_bytes(damaged(data, random.Random(f"index {number}")))
        try:
            for word in WORDS[number % 3 :: 3]:
                search(FallbackQuery(word, str(bed.vault), "", 3, set(), 1e12), bed.state.index_db)
                recall(bed, word)  # It may miss what SQLite does not know to be missing.
                look(bed)
            database.forget_sound(bed.index_db)  # As the worker does at its start.
            walk(bed)
            for word in WORDS:
                answer = recall(bed, word)
                assert (slugs(answer)[:1], answer.degraded) == ([word], ())
            assert {path: path.read_bytes() for path in bed.vault.rglob("*.md")} == files
            assert len(list(Path(bed.state.root).glob("index.db.damaged-*[Z0-9]"))) <= 2
        except BaseException as error:
            error.add_note(f"round {number}")
            raise


def test_vectors_whose_model_is_not_known_any_more_are_made_anew(bed: Bed) -> None:
    """Otherwise each later drain would fail at the vector that is there already."""
    filled_index(bed)
    with apsw.Connection(str(bed.index_db)) as connection:
        connection.execute("UPDATE embedding SET model_id = 'x' WHERE rowid % 2")
    connection.close()
    database.forget_sound(bed.index_db)
    walk(bed)
    for word in WORDS:
        assert slugs(recall(bed, word))[:1] == [word]


@pytest.mark.parametrize("by", [b"\0", b"\xff"], ids=["zeros", "no numbers"])
def test_a_vector_without_a_direction_is_near_nothing(bed: Bed, by: bytes) -> None:
    filled_index(bed)
    connection = apsw.Connection(str(bed.index_db))
    ((table,),) = connection.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'chunk_vec_*_vector_chunks00'")
    for rowid, vectors in connection.execute(f"SELECT rowid, vectors FROM {table}").fetchall():
        assert isinstance(vectors, bytes)
        connection.execute(f"UPDATE {table} SET vectors = ? WHERE rowid = ?", (by * len(vectors), rowid))
    connection.close()
    for word in WORDS:
        assert slugs(recall(bed, word))[:1] == [word]
