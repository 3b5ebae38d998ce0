"""Pages of waiting notes, the nearest entries from the index, and the journal read from its end."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryvault.runtime.layout import INBOX, INCUBATOR, REVIEW, WATCHLIST, special_folder
from memoryvault.services import journal, reverse_lines
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.journal import Act, Change, FolderMove
from memoryvault.services.pending_page import list_pending_paths, load_pending_page, order_pending
from memoryvault.tests.review.support import Bed
from memoryvault.vault.scrubbed import Scrubbed

from .support import Front, proposal, said, visible
from .vaults import idea, inbox_note, pattern


def test_pending_paths_are_exactly_those_in_their_folders(bed: Bed) -> None:
    proposal(bed, "one")
    inbox_note(bed, "two", "A thing.")
    idea(bed, "Three", "Of them.")
    pattern(bed, "four")
    bed.note("personal-projects/shop/_review/five.md", "# Five", kind="preferences")
    bed.note("personal-private/preferences/six.md", "# Six", kind="preferences")
    bed.note("personal-private/_archive/_review/seven.md", "# Seven", kind="preferences")
    (bed.vault / "personal-private/_review/.hidden.md").write_text("x")
    found = list_pending_paths(bed.store)
    everything = list(bed.store.walk())
    for folder in (REVIEW, INBOX, INCUBATOR, WATCHLIST):
        assert found[folder] == [path for path in everything if special_folder(path) == folder]
        assert found[folder]


def test_the_oldest_comes_first_whether_the_index_knows_it_or_not(bed: Bed) -> None:
    for name, day in (("a", "2026-03-01"), ("b", "2026-01-01"), ("c", "2026-02-01")):
        proposal(bed, name, created=day)
    reconcile_now(bed.settings)
    proposal(bed, "d", created="2025-12-31")
    paths = list_pending_paths(bed.store)[REVIEW]
    ordered = order_pending(bed.settings, bed.store, REVIEW, paths)
    assert [path[-4] for path in ordered] == ["d", "b", "c", "a"]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_search_takes_words_as_they_are_written(bed: Bed, is_indexed: bool) -> None:
    proposal(bed, "plain", "Costs are 100 euro.")
    proposal(bed, "percent", "Costs are 100% of it.")
    proposal(bed, "under", "Call it snake_case.")
    proposal(bed, "other", "Übungen kommen in die Straße; ПРАВИЛО.")
    if is_indexed:
        reconcile_now(bed.settings)
    paths = list_pending_paths(bed.store)[REVIEW]

    def found(search: str) -> list[str]:
        return [path.rsplit("/", 1)[-1] for path in order_pending(bed.settings, bed.store, REVIEW, paths, search)]

    assert found("100%") == ["percent.md"]
    assert found("snake_case") == ["under.md"]
    assert found("snakeXcase") == []
    assert found("COSTS 100") == ["percent.md", "plain.md"]
    assert [found(word) for word in ("übung", "ÜBUNGEN", "STRASSE", "правило")] == [["other.md"]] * 4


def test_a_page_leaves_out_notes_that_are_gone(bed: Bed) -> None:
    proposal(bed, "one")
    page = load_pending_page(bed.store, ["personal-private/_review/gone.md", "personal-private/_review/one.md"], 9, 25)
    assert ([entry.slug for entry in page.rows], page.number, page.pages) == (["one"], 1, 1)


def test_the_nearest_come_from_the_index(bed: Bed) -> None:
    bed.note("personal-private/preferences/known.md", "# Known\n\nAlways use npm for packages.", kind="preferences")
    bed.note("personal-private/preferences/far.md", "# Far\n\nCharts have a legend.", kind="preferences")
    bed.note("personal-private/preferences/fresh.md", "# Fresh\n\nUse yarn for packages.", kind="preferences")
    reconcile_now(bed.settings)
    near = bed.reviewer.nearest(proposal(bed, "use-pnpm", "Always use pnpm for packages."))
    assert {one.path.rsplit("/", 1)[-1] for one in near} == {"known.md", "fresh.md"}


def test_the_journal_reads_the_same_from_its_end(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        path = f"personal-private/preferences/n{number}.md"
        change = Change(path, None, Scrubbed(f"---\nkind: preferences\n---\n# {number}\n{'ü' * number}\n"))
        bed.journal.commit([change], run="r", actor="review", what=f"n{number}")
    first, last = bed.journal.files
    lines = last.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:5]) + b"not json\n")
    Path(last).write_bytes(b"".join(lines[5:]) + b'{"cut')
    for block in (1, 7, 100, 65_536):
        monkeypatch.setattr(reverse_lines, "BLOCK_BYTES", block)
        assert list(bed.journal.newest()) == list(reversed(bed.journal.acts()))
    assert len(bed.journal.acts()) == 12


def test_what_is_asked_of_the_journal_is_found_without_reading_all_of_it(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines hold whole notes: only those are parsed that may be it."""
    kept, quoting = "personal-private/preferences/kept.md", '{"actor": "review", "path": "personal-private/odd.md"}'
    act = bed.journal.commit([Change(kept, None, Scrubbed(quoting))], run="r", actor="reflection", what="1")
    decided = [
        bed.journal.commit([Change(f"personal-private/n{n}.md", None, Scrubbed("x"))], run="r", actor="review", what=n)
        for n in "23"
    ]
    bed.journal.commit([Change(kept, quoting, None)], run="r", actor="undo", what="4", undoes=[decided[1].id])
    bed.journal.commit([], run="r", actor="idea", what="5", moves=[_moved(bed, "old", "new")])
    parsed: list[str] = []
    read = journal._done

    def noted(found: Mapping[str, Any]) -> Act:
        parsed.append(found["what"])
        return read(found)

    monkeypatch.setattr(journal, "_done", noted)
    assert bed.reviewer.last_decision() == decided[0]
    assert parsed == ["4", "3", "2"]
    parsed.clear()
    assert [one.what for one in bed.journal.newest_of([kept])] == ["5", "4", "1"]
    assert parsed == ["5", "4", "1"]
    assert act.changes[0].path == kept
    gone = bed.reviewer.what_became_of("personal-private/old/a.md")
    assert gone is not None
    assert gone.what == "5"
    assert bed.reviewer.what_became_of("personal-private/odd.md") is None


def _moved(bed: Bed, old: str, new: str) -> FolderMove:
    bed.note(f"personal-private/{old}/a.md", "# A")
    return FolderMove(f"personal-private/{old}", f"personal-private/{new}")


def test_a_missing_vault_is_reported(bed: Bed, front: Front) -> None:
    bed.vault.rename(bed.root / "elsewhere")
    answer = front.get("review")
    assert answer.status_code == 503
    assert "is not there: mount it" in said(answer)
    assert "Traceback" not in visible(answer)


def test_a_fault_of_ours_shows_no_traceback(bed: Bed, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryvault.console.pages.review.list_pending_paths", lambda store: 1 / 0)
    front.client._transport.raise_server_exceptions = False  # type: ignore[attr-defined]  # as a browser sees it
    answer = front.get("review")
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert "Something went wrong" in answer.text
    assert answer.headers["Content-Security-Policy"]
