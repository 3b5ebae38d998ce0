"""Reconciling, and the watcher: what is done to files is done to the index."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryvault.index.reconcile import reconcile
from memoryvault.index.store import IndexStore
from memoryvault.index.watcher import VaultWatcher
from memoryvault.runtime.errors import VaultUnavailable
from memoryvault.tests.index.bed import Bed, slugs
from memoryvault.tests.support.hurry import patience


def old(file: Path) -> None:
    """As if it had been written an hour ago: a file that was just written is read again."""
    then = time.time() - 3600
    os.utime(file, (then, then))


def test_a_walk_adds_changes_moves_and_forgets(bed: Bed) -> None:
    for name in ("stays", "edited", "moved", "deleted"):
        old(bed.write(f"notes/{name}.md", f"This one {name}."))
    assert bed.index().added == 4
    again = bed.index()
    assert (again.unchanged, again.touched) == (4, 0)
    bed.write("notes/edited.md", "Something else entirely.")
    (bed.vault / "other").mkdir()
    (bed.vault / "notes/moved.md").rename(bed.vault / "other/place.md")
    (bed.vault / "notes/deleted.md").unlink()
    report = bed.index()
    assert (report.added, report.changed, report.moved, report.removed) == (0, 1, 1, 1)
    assert set(bed.store.files()) == {"notes/stays.md", "notes/edited.md", "other/place.md"}
    assert slugs(bed.recall("deleted", dense=False)) == []
    assert slugs(bed.recall("moved", dense=False)) == ["place"]
    assert bed.store.integrity_problems() == []


def test_a_file_written_twice_within_one_clock_tick_is_seen(bed: Bed) -> None:
    file = bed.write("a.md", "First aaaa.")
    state = os.stat(file)
    bed.index()
    file.write_text("Other bbbb.\n")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert os.stat(file).st_size == state.st_size
    assert bed.index().changed == 1


def test_a_file_that_was_only_touched_is_not_indexed_again(bed: Bed) -> None:
    file = bed.write("a.md", "Words.")
    old(file)
    bed.index()
    os.utime(file)
    assert bed.index().unchanged == 1


def test_a_move_within_the_vault_follows_the_new_folder(bed: Bed) -> None:
    bed.write("personal-private/_inbox/a.md", "Waiting words.", status="active")
    bed.index()
    assert slugs(bed.recall("waiting")) == []
    (bed.vault / "personal-private/fix").mkdir()
    (bed.vault / "personal-private/_inbox/a.md").rename(bed.vault / "personal-private/fix/a.md")
    bed.index()
    assert slugs(bed.recall("waiting", dense=False)) == ["a"]


def test_a_file_that_cannot_be_read_keeps_what_the_index_had(bed: Bed) -> None:
    file = bed.write("a.md", "Words.")
    bed.index()
    file.unlink()
    file.mkdir()
    report = reconcile(bed.store, bed.vault, lambda: ["a.md"])
    assert report.failed == ["a.md"]
    assert "a.md" in bed.store.files()


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems know no such names")
def test_a_file_whose_name_is_no_text_keeps_no_other_from_being_indexed(bed: Bed) -> None:
    bed.write("a.md", "A brass pump.")
    bed.write("z.md", "A steel pump.")
    for raw in (b"caf\xe9.md", b"r\xe9p/x.md"):
        file = os.path.join(os.fsencode(bed.vault), raw)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as note:
            note.write(b"A pump of bytes.")
    named = ["caf\udce9.md", "r\udce9p/x.md"]
    scanned = slugs(bed.recall("pump", dense=False))
    report = bed.index()
    assert (report.added, report.failed) == (2, named)
    assert sorted(slugs(bed.recall("pump", dense=False))) == sorted(scanned) == ["a", "z"]


def test_every_file_indexed_anew_gives_the_same_ranking(bed: Bed) -> None:
    for number in range(40):
        bed.write(f"n{number:02}.md", f"Note {number % 7} on topic{number % 5} and word{number % 3}.")
    bed.refresh()
    questions = ["topic3 word1", "note 4", "topic1 and something", "word2 topic2 note 6"]
    before = [bed.recall(question, k=40, apply_threshold=False).hits for question in questions]
    report = reconcile(bed.store, bed.vault, bed.walk, force=True)
    assert report.added + report.changed == 40
    assert bed.embed().processed == 0
    for question, expected in zip(questions, before, strict=True):
        found = bed.recall(question, k=40, apply_threshold=False).hits
        assert [hit.path for hit in found] == [hit.path for hit in expected]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-4)


# The watcher


def test_a_vault_that_goes_away_during_the_walk_takes_nothing_out_of_the_index(bed: Bed) -> None:
    bed.write("a.md", "Kettle.")
    bed.index()

    def walk() -> Iterator[str]:
        bed.vault.rename(bed.root / "moved")
        return iter(())

    with pytest.raises(VaultUnavailable):
        reconcile(bed.store, bed.vault, walk)
    (bed.root / "moved").rename(bed.vault)
    assert [*bed.store.files()] == ["a.md"]


@pytest.mark.hurried
def test_a_vault_that_is_gone_is_told_once_and_watched_again_when_it_is_back(bed: Bed) -> None:
    bed.write("a.md", "Kettle.")
    bed.index()
    with watching(bed, poll_seconds=0.05) as watch:
        bed.vault.rename(bed.root / "vault2")
        assert within_five_seconds(lambda: bool(watch.errors))
        time.sleep(0.3)
        assert [type(error) for error in watch.errors] == [VaultUnavailable]
        assert f"the vault {bed.vault.resolve()} is not there" in str(watch.errors[0])
        assert not bed.vault.exists()
        (bed.root / "vault2").rename(bed.vault)
        bed.write("b.md", "Teapot.")
        assert within_five_seconds(lambda: "b.md" in bed.store.files())
    assert len(watch.errors) == 1


class watching:
    """A watcher that keeps the bed's index up to date, on a store of its own."""

    def __init__(self, bed: Bed, **options: Any) -> None:
        self.bed = bed
        self.seen = 0
        self.errors: list[Exception] = []
        self.watcher = VaultWatcher(bed.vault, self.changed, on_error=self.errors.append, **options)

    def changed(self) -> None:
        self.seen += 1
        with IndexStore(self.bed.index_db) as store:
            reconcile(store, self.bed.vault, self.bed.walk)

    def __enter__(self) -> watching:
        self.watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.watcher.stop()


def within_five_seconds(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5 * patience()
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.hurried
def test_a_new_note_an_edit_an_atomic_save_a_move_and_a_deletion_are_live_within_5_s(bed: Bed) -> None:
    def found(text: str) -> list[str]:
        return slugs(bed.recall(text, dense=False, apply_threshold=False))

    bed.index()
    with watching(bed):
        file = bed.write("new-folder/a.md", "Zebra crossing.")
        assert within_five_seconds(lambda: found("zebra") == ["a"])
        file.write_text("Giraffe crossing.\n")
        assert within_five_seconds(lambda: found("giraffe") == ["a"] and "a" not in found("zebra"))
        (bed.vault / ".a.md.tmp").write_text("Quokka crossing.\n")
        (bed.vault / ".a.md.tmp").replace(file)
        assert within_five_seconds(lambda: found("quokka") == ["a"])
        file.rename(bed.vault / "b.md")
        assert within_five_seconds(lambda: found("quokka") == ["b"] and "new-folder/a.md" not in bed.store.files())
        (bed.vault / "b.md").unlink()
        assert within_five_seconds(lambda: not bed.store.files())


@pytest.mark.hurried
def test_many_changes_at_once_are_one_walk(bed: Bed) -> None:
    bed.index()
    with watching(bed) as watch:
        for number in range(300):
            bed.write(f"n{number}.md", f"Note {number}.")
        assert within_five_seconds(lambda: len(bed.store.files()) == 300)
    assert watch.seen <= 4


@pytest.mark.hurried
def test_where_nothing_can_be_watched_it_polls(bed: Bed) -> None:
    class Broken:
        def schedule(self, *_: object, **__: object) -> None:
            return

        def start(self) -> None:
            raise OSError(28, "inotify watch limit reached")

    bed.index()
    with watching(bed, observe=Broken, poll_seconds=0.2) as watch:
        assert watch.watcher.polling
        bed.write("a.md", "Quokka.")
        assert within_five_seconds(lambda: "a.md" in bed.store.files())
    assert watch.errors


@pytest.mark.slow
def test_a_folder_that_left_and_came_back_is_watched_without_a_warning(bed: Bed, tmp_path: Path) -> None:
    """A warning ends the test, and here the watching thread."""
    bed.write("notes/deep/a.md", "One.")
    bed.index()
    with watching(bed, delay_seconds=0.05) as watched:
        (bed.vault / "notes").rename(tmp_path / "away")
        assert within_five_seconds(lambda: watched.seen == 1)
        (tmp_path / "away").rename(bed.vault / "notes")
        assert within_five_seconds(lambda: watched.seen > 1)
        bed.write("notes/deep/b.md", "Two kettles.")
        assert within_five_seconds(lambda: "notes/deep/b.md" in bed.store.files())
        assert not watched.watcher.polling
        assert watched.errors == []


@pytest.mark.hurried
def test_an_error_in_the_callback_does_not_end_the_watching(bed: Bed) -> None:
    class FailingOnce(watching):
        def changed(self) -> None:
            super().changed()
            if self.seen == 1:
                raise RuntimeError("once")

    with FailingOnce(bed, delay_seconds=0.05) as watch:
        bed.write("a.md", "One.")
        assert within_five_seconds(lambda: bool(watch.errors))
        bed.write("b.md", "Two.")
        assert within_five_seconds(lambda: "b.md" in bed.store.files())
