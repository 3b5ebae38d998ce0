"""An editor that saves in place: it empties the file and writes it anew, and who looks meanwhile sees half of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryvault.runtime.errors import EditConflict
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
