"""The health page."""

import fcntl
import re
import socket

import pytest

from memoryvault.console.pages import health
from memoryvault.console.times import ago, lasting, size, when_iso
from memoryvault.runtime.layout import leave_socket_folder, make_socket_folder
from memoryvault.tests.review.support import Bed

from .support import Front, visible
from .test_search_page import rule


def test_an_empty_vault_is_well(front: Front) -> None:
    text = visible(front.get("health", view="whole"))
    assert "All is well. No worker runs now: memory service up" in text


def test_a_recall_service_that_hangs_is_not_said_to_run(bed: Bed, front: Front) -> None:
    state = bed.settings.state
    state.ensure()
    make_socket_folder(state.recall_socket)
    with socket.socket(socket.AF_UNIX) as silent, open(state.recall_lock, "w") as lock:
        silent.bind(state.recall_socket)
        silent.listen()
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        assert "Recall service does not answer process 4711" in visible(front.get("health", view="whole"))
    leave_socket_folder(state.recall_socket)


def test_what_looks_at_every_note_is_not_waited_for(bed: Bed, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(*args: object) -> None:
        raise AssertionError("the page looks at every note before it is shown")

    rule(bed, "a-rule", "Something.")
    with monkeypatch.context() as patched:
        patched.setattr(health, "count_active", looks)
        page = front.get("health")
    assert "All is well." in visible(page)
    assert re.search(r'hx-get="[^"]*/health/entries" hx-trigger="load"', page.text)


def test_the_count_of_entries_is_a_part(bed: Bed, front: Front) -> None:
    rule(bed, "a-rule", "Something.")
    entries = front.get("health/entries")
    assert visible(entries) == "All 1 personal-private 1"
    assert "<html" not in entries.text
    assert visible(entries) in visible(front.get("health", view="whole"))


def test_without_the_vault_the_page_shows_the_rest(bed: Bed, front: Front) -> None:
    bed.vault.rmdir()
    assert visible(front.get("health/entries")) == "They cannot be counted now."
    assert "Memory" in visible(front.get("health", view="whole"))


def test_times_and_sizes_are_short() -> None:
    assert [ago(at, 1000.0) for at in (None, 0.0, 990.0, 1180.0)] == ["–", "–", "10 s ago", "in 3 min"]
    assert [lasting(s) for s in (0.42, 59, 600, 9000, 999_999)] == ["0.4 s", "59 s", "10 min", "2 h", "12 days"]
    assert [size(n) for n in (12, 4_000, 5_600_000)] == ["12 bytes", "4 kB", "5.6 MB"]
    assert [when_iso(text) for text in ("2026-05-04", "soon", None)] == ["4 May 2026", "soon", "–"]
