"""An editor that saves in place: it empties the file and writes it anew, and who looks meanwhile sees half of it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryvault.runtime.errors import EditConflict, VaultUnavailable
from memoryvault.tests.review.support import RULE, Bed
from memoryvault.vault.scrubbed import Scrubbed

pytestmark = pytest.mark.slow

PAUSE_SECONDS = 0.4


@contextmanager
def saving(path: Path, before: str, after: str, pause: float = PAUSE_SECONDS) -> Iterator[None]:
    """The editor has written `before` in place, and writes `after` a little later."""
    path.write_text(before)

    def rest() -> None:
        time.sleep(pause)
        path.write_text(after)

    editor = threading.Thread(target=rest)
    editor.start()
    try:
        yield
    finally:
        editor.join()


@pytest.mark.parametrize("half", ["", "---\nkind: preferences\nfinger"])
def test_a_rule_that_is_read_half_way_through_a_save_is_not_mined_into_a_second_file(bed: Bed, half: str) -> None:
    (path,) = bed.remember(RULE).written
    whole = (bed.vault / path).read_text()
    with saving(bed.vault / path, half, whole):
        bed.remember(RULE)
    assert bed.files() == {path: whole}


def test_of_a_note_that_is_saved_over_and_over_the_id_is_read(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    whole = (bed.vault / path).read_text()
    ends = time.monotonic() + 12.0

    def save_all_the_time() -> None:
        while time.monotonic() < ends:
            with saving(bed.vault / path, "", whole, pause=0.2):
                pass
            time.sleep(0.1)

    editor = threading.Thread(target=save_all_the_time)
    editor.start()
    heads, entries = [], []
    while editor.is_alive():
        heads.append(dict(bed.store.settled_heads(4096))[path])
        entries.append(bed.store.read_settled(path))
    assert all(b"fingerprint" in head for head in heads)
    assert all(entry.fingerprint for entry in entries)


@pytest.mark.parametrize("half", ["", "---\nkind: preferences\nfinger"])
def test_a_save_that_takes_longer_postpones_a_rule_that_would_get_the_files_name(bed: Bed, half: str) -> None:
    (path,) = bed.remember(RULE).written
    whole = (bed.vault / path).read_text()
    with saving(bed.vault / path, half, whole, pause=3.0), pytest.raises(VaultUnavailable, match="being saved"):
        bed.remember(RULE)
    bed.remember(RULE)
    assert bed.files() == {path: whole}


def test_a_file_that_stays_empty_postpones_nothing_after_a_minute(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    (bed.vault / path).write_text("")
    long_ago = time.time() - 61
    os.utime(bed.vault / path, (long_ago, long_ago))
    (second,) = bed.remember(RULE).written
    assert second != path


def test_what_a_person_types_while_we_write_is_kept(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    file = bed.vault / path
    typed = file.read_text() + "\nA line.\n" * 14
    with saving(file, typed[: len(typed) // 2], typed):
        entry = bed.store.read(path)
        with pytest.raises(EditConflict):
            bed.store.update(path, entry.content_hash, body=Scrubbed("Ours."))
    assert file.read_text() == typed


def test_what_is_deleted_while_a_person_saves_it_is_kept(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    file = bed.vault / path
    typed = file.read_text() + "\nA line.\n"
    with saving(file, typed[:-5], typed), pytest.raises(EditConflict):
        bed.store.remove(path, bed.store.read(path).content_hash)
    assert file.read_text() == typed


def test_a_note_that_was_saved_whole_is_not_waited_for(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    began = time.monotonic()
    for number in range(5):
        bed.store.update(path, bed.store.read(path).content_hash, body=Scrubbed(f"Ours {number}."))
    assert time.monotonic() - began < 5
