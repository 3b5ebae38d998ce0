"""index.db: schema, store, and what happens when the file is missing, locked, damaged or too new."""

import importlib.util
import os
import sqlite3
from pathlib import Path

import apsw
import pytest

from memoryvault.index import database, schema
from memoryvault.index.drain import drain, embed_with
from memoryvault.index.search_reader import SearchReader
from memoryvault.index.store import IndexStore, open_or_rebuild
from memoryvault.runtime.errors import IndexUnavailable, SchemaTooNew
from memoryvault.tests.index.bed import Bed, slugs
from memoryvault.tests.support.fake_embedder import FakeEmbedder


def row(bed: Bed, path: str, *columns: str) -> tuple[object, ...]:
    """As the hook reads it: with the standard library's sqlite3, read-only."""
    with sqlite3.connect(f"file:{bed.index_db}?mode=ro", uri=True) as connection:
        found = connection.execute(f"SELECT {', '.join(columns)} FROM entry_meta WHERE path = ?", (path,)).fetchone()
    connection.close()
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize(
    ("path", "head", "expected"),
    [
        (
            "notes/other-name.md",
            "kind: reference\ncreated: 2026-07-01\ntags: [a, b]\ngroup: personal/reference\nslug: my-note",
            {"kind": "reference", "created": "2026-07-01", "group_name": "personal/reference", "slug": "my-note"}
            | {"tags": '["a", "b"]'},
        ),
        ("fallback-name.md", "status: active", {"slug": "fallback-name", "status": "active", "project": None}),
        ("n.md", "broken: [", {"kind": None, "status": None, "project": None, "fingerprint": None, "tags": "[]"}),
    ],
)
def test_entry_meta_holds_the_frontmatter(bed: Bed, path: str, head: str, expected: dict[str, object]) -> None:
    (bed.vault / path).parent.mkdir(exist_ok=True)
    (bed.vault / path).write_text(f"---\n{head}\n---\n\nBody.\n")
    bed.index()
    assert dict(zip(expected, row(bed, path, *expected), strict=True)) == expected


@pytest.mark.parametrize(
    ("version", "error", "said"),
    [(schema.SCHEMA_VERSION - 1, database.IndexDamaged, "older version"), (99, SchemaTooNew, "schema 99")],
)
def test_an_index_of_another_version_is_refused_in_one_line_and_an_older_one_made_anew(
    bed: Bed, version: int, error: type[Exception], said: str
) -> None:
    IndexStore(bed.index_db).close()
    connection = apsw.Connection(str(bed.index_db))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    for opening in (IndexStore, SearchReader):
        with pytest.raises(error, match=said):
            opening(bed.index_db)
    if error is database.IndexDamaged:
        store, set_aside = open_or_rebuild(bed.index_db)
        store.close()
        assert set_aside is not None


def test_what_a_newer_version_made_stays_and_it_mends_the_rest_once(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a plugin and an installed command of another version do, which use one index in turn."""

    def walk_as(derivation: int) -> tuple[int, int]:
        monkeypatch.setattr(schema, "DERIVATION", derivation)
        report = bed.index()
        bed.close_store()
        return report.touched, report.unchanged

    for name in ("a.md", "b.md", "c.md"):
        os.utime(bed.write(name, f"# {name}\n\nText."), (1.7e9, 1.7e9))
    older, newer = schema.DERIVATION, schema.DERIVATION + 1
    assert walk_as(older) == (3, 0)
    assert walk_as(newer) == (3, 0)
    assert walk_as(older) == (0, 3)
    os.utime(bed.write("b.md", "# Another title\n\nText."), (1.6e9, 1.6e9))
    assert walk_as(older) == (1, 2), "it answers for what was written meanwhile"
    assert row(bed, "b.md", "title") == ("Another title",)
    assert walk_as(newer) == (1, 2), "only what the older one wrote"
    assert walk_as(older) == (0, 3)
    assert walk_as(newer) == (0, 3)


def test_tables_that_cannot_all_be_made_are_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_STATEMENTS", ("CREATE TABLE half (a)", "NOT SQL"))
    with pytest.raises(database.IndexDamaged):
        IndexStore(tmp_path / "index.db")
    connection = apsw.Connection(str(tmp_path / "index.db"))
    assert connection.execute("SELECT count(*) FROM sqlite_master").get == 0
    connection.close()


@pytest.mark.parametrize("content", [b"this is no database" * 1000, b"SQLite format 3\0" + b"\xff" * 8192])
def test_a_damaged_file_is_set_aside_with_its_date_and_rebuilt(bed: Bed, content: bytes) -> None:
    bed.write("a.md", "Remember the milk.")
    bed.index()
    bed.close_store()
    for suffix in ("-wal", "-shm"):
        Path(f"{bed.index_db}{suffix}").unlink(missing_ok=True)
    bed.index_db.write_bytes(content)
    with pytest.raises(IndexUnavailable, match="damaged"):
        IndexStore(bed.index_db)
    store, set_aside = open_or_rebuild(bed.index_db)
    store.close()
    assert set_aside is not None
    assert set_aside.name.startswith("index.db.damaged-2")
    assert set_aside.read_bytes() == content
    assert bed.index().added == 1
    assert slugs(bed.recall("milk", dense=False)) == ["a"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE chunk_vec_1_vector_chunks00 SET vectors = zeroblob(100)", "vectors-damaged"),
        ("DROP TABLE chunk_vec_1", "vectors-damaged"),
        ("DROP TABLE chunk_fts", "no-index"),
        ("DROP TABLE entry_meta", "no-index"),
        ("ALTER TABLE entry_meta RENAME COLUMN slug TO slvg", "no-index"),
    ],
)
def test_damage_that_sqlite_finds_sound_is_answered_around_and_found_too(bed: Bed, damage: str, said: str) -> None:
    bed.write("a.md", "Remember the oat milk.")
    bed.refresh()
    assert bed.store.integrity_problems(quick=True) == []
    connection = database.open_writer(bed.index_db)
    connection.execute(damage)
    connection.close()
    bed.close_store()

    answer = bed.recall("remember the oat milk")
    assert (slugs(answer), answer.degraded) == (["a"], (said,))

    database.forget_sound(bed.index_db)
    store, set_aside = open_or_rebuild(bed.index_db)
    store.close()
    assert set_aside is not None
    assert bed.index().added == 1


def test_a_lock_is_not_taken_for_damage(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.write("a.md", "Words.")
    bed.index()
    monkeypatch.setattr(
        bed.store, "_read_all_parts", lambda: (_ for _ in ()).throw(apsw.BusyError("database is locked"))
    )
    with pytest.raises(IndexUnavailable, match="locked"):
        bed.store.integrity_problems(quick=True)


def test_a_locked_index_is_reported_as_locked(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_MILLISECONDS", 50)
    bed.write("a.md", "Words.")
    store = bed.store
    other = apsw.Connection(str(bed.index_db))
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(IndexUnavailable, match="locked"):
        bed.index()
    other.execute("ROLLBACK")
    other.close()
    assert bed.index().added == 1
    assert store.integrity_problems() == []


def test_a_vector_is_found_by_its_text_so_that_nothing_is_embedded_twice(bed: Bed) -> None:
    bed.write("a.md", "The same words.")
    bed.write("b.md", "Other words.")
    bed.index()
    assert bed.embed().processed == 2
    (bed.vault / "a.md").rename(bed.vault / "renamed.md")
    bed.write("b.md", "Other words.", kind="fix")
    bed.write("copy/b.md", "Other words.")
    bed.index()
    pending = {text.text for text in bed.store.pending_texts("fake", 10)}
    assert pending == {"renamed\nThe same words."}  # the title is the file's name: another text


def test_vectors_outlive_their_text_for_a_while_and_no_longer(bed: Bed) -> None:
    file = bed.write("a.md", "Words to keep.")
    bed.refresh()
    text = file.read_text()
    file.unlink()
    bed.index()
    file.write_text(text)
    bed.index()
    assert bed.embed().processed == 0
    file.unlink()
    bed.index()
    assert bed.store.collect_orphans(older_than_seconds=-1) == 1
    assert bed.store.stats().embedded == 0


def test_another_model_gets_its_own_vectors_and_the_one_before_is_kept(bed: Bed) -> None:
    for number in range(3):
        bed.write(f"{number}.md", f"Text {number}.")
    bed.refresh()
    other, stops = FakeEmbedder("other", dimension=32), iter((False, False))
    bed.store.put_in_force("fake")
    partly = drain(bed.store, embed_with(other), model="other", batch_texts=1, should_stop=lambda: next(stops, True))
    assert partly.remaining > 0
    assert set(bed.store.models()) == {"fake", "other"}
    assert bed.recall("text 1").degraded == ()
    assert bed.embed(other).remaining == 0
    bed.store.put_in_force("other")
    assert set(bed.store.models()) == {"fake", "other"}
    third = FakeEmbedder("third", dimension=16)
    assert bed.embed(third).remaining == 0
    bed.store.put_in_force("third")
    assert set(bed.store.models()) == {"other", "third"}  # the one before is kept, to go back to
    assert bed.recall("text 1").degraded == ("no-vectors",)


def test_a_model_that_changed_its_dimension_starts_anew(bed: Bed) -> None:
    bed.write("a.md", "Words.")
    bed.index()
    bed.embed(FakeEmbedder("fake", dimension=16))
    assert bed.recall("words").degraded == ("no-vectors",)
    assert bed.store.model_id("fake", 64) > 0
    assert bed.embed().processed == 1
    assert bed.recall("words").degraded == ()


def test_stats_count_what_is_there(bed: Bed) -> None:
    bed.write("a.md", "One.")
    bed.write("b.md", "Two.")
    bed.index()
    assert bed.store.stats().pending is None
    bed.embed()
    bed.write("c.md", "Three.")
    bed.index()
    stats = bed.store.stats()
    assert (stats.entries, stats.embedded, stats.pending, stats.models) == (3, 2, 1, ("fake",))


def test_an_extension_installed_while_a_worker_runs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec("sqlite_vec")
    database._vector_extension.cache_clear()
    connection = apsw.Connection(":memory:")
    with monkeypatch.context() as hidden:
        hidden.setattr(importlib.util, "find_spec", lambda name: None)
        assert not database.load_vectors(connection)
    assert found is not None
    assert database.load_vectors(connection)
    connection.close()
