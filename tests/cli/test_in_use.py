"""Every command and page counts and lists the same entries in use."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryvault.index.catalog_reader import CatalogReader
from memoryvault.services.active_counts import count_active, describe_notes
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.stores import open_index
from memoryvault.tasks.jobs.dashboard import view_of
from memoryvault.tests.support.command import Command

from ..console.support import Front, visible
from ..review.support import Bed, make_bed

PRIVATE = "personal-private"


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    """Three entries in use, one of them undated, beside all that might be taken for one."""
    bed = make_bed(tmp_path)
    bed.enter(monkeypatch)
    today = datetime.now(UTC).date()
    for path, text in {
        f"{PRIVATE}/preferences/tabs.md": f"kind: preferences\nstatus: active\ncreated: {today}\n---\n\nTabs.\n",
        f"{PRIVATE}/_always-load/name.md": f"kind: preferences\nstatus: active\ncreated: {today}\n---\n\n# Ann\n",
        "personal-projects/shop/fix/locks.md": "kind: fix\n---\n\nA lock.\n",
        f"{PRIVATE}/failure-incident/x.md": "kind: failure-incident\nstatus: resolved\n---\n\nIt broke.\n",
        f"{PRIVATE}/session-cost/s.md": f"kind: session-cost\nstatus: active\ncreated: {today}\n---\n\n# Session\n",
        "personal-projects/shop/memory/MEMORY.md": "x: y\n---\n\n- [A](a.md)\n",
        f"{PRIVATE}/empty.md": "kind: fix\nstatus: active\n---\n",
        f"{PRIVATE}/_archive/old.md": "kind: fix\nstatus: superseded\n---\n\nOld.\n",
        f"{PRIVATE}/_mine/draft.md": "kind: fix\n---\n\nDraft.\n",
        f"{PRIVATE}/_inbox/said.md": "kind: fix\nstatus: inbox\n---\n\nSaid.\n",
        "_meta/settings.md": "kind: settings\n---\n\n# Settings\n",
    }.items():
        file = bed.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\n{text}", "utf-8")
    (bed.vault / PRIVATE / "none.md").write_text("")
    return bed


def listed(memory: Command, *options: str) -> list[str]:
    return sorted(entry["path"].rsplit("/", 1)[-1] for entry in json.loads(memory("list", "--json", *options).out))


def in_use(memory: Command) -> dict[str, object]:
    found: dict[str, object] = memory.json("health")["entries"]
    return found


@pytest.mark.parametrize("is_indexed", [False, True])
def test_list_health_doctor_and_the_console_agree(bed: Bed, memory: Command, is_indexed: bool) -> None:
    if is_indexed:
        reconcile_now(bed.settings)
    assert listed(memory) == ["locks.md", "name.md", "tabs.md"]
    groups = {PRIVATE: 2, "personal-projects": 1}
    assert in_use(memory) == {"groups": groups, "in_use": 3, "set_aside": {"resolved": 1}}
    assert f"entries          {PRIVATE} 2, personal-projects 1; not in use: 1 resolved\n" in memory("health").out
    assert sorted(note.path for note in view_of(bed.store).living) == [
        f"{PRIVATE}/_always-load/name.md", f"{PRIVATE}/preferences/tabs.md", "personal-projects/shop/fix/locks.md"
    ]  # fmt: skip
    if not is_indexed:
        return
    with open_index(bed.settings) as index:
        assert (
            describe_notes(index.paths(), index.set_aside()) == "12 notes (3 entries in use, 1 in the inbox, 8 others)"
        )
    with Front(bed.settings) as front:
        front.enter()
        health, search = visible(front.get("health", view="whole")), visible(front.get("search"))
    assert "Entries in use All 3 " in health
    assert re.search(r"\b3 entries\b", search), search


def test_a_file_that_is_another_than_the_index_knows_is_read(bed: Bed, memory: Command) -> None:
    reconcile_now(bed.settings)
    (bed.vault / PRIVATE / "failure-incident/x.md").write_text("---\nkind: failure-incident\n---\n\nIt broke anew.\n")
    (bed.vault / PRIVATE / "empty.md").write_text("---\nkind: fix\n---\n\nNot empty any more.\n")
    assert in_use(memory)["in_use"] == len(listed(memory)) == 5
    assert CatalogReader(Path(bed.settings.state.index_db)).set_aside(), "which knows the old ones"


def test_a_note_that_is_gone_does_not_count_by_the_status_that_the_index_still_knows(bed: Bed) -> None:
    reconcile_now(bed.settings)
    assert count_active(bed.settings, bed.store).set_aside == {"resolved": 1}
    (bed.vault / PRIVATE / "failure-incident/x.md").unlink()
    assert count_active(bed.settings, bed.store).set_aside == {}


def test_entries_hidden_by_their_status_are_counted(bed: Bed, memory: Command) -> None:
    assert memory("list").err == "memory: not in use, and not shown: 1 resolved (--status resolved)\n"
    assert listed(memory, "--status", "resolved") == ["x.md"]
    assert memory("list", "--kind", "fix").err == ""


def test_the_kinds_that_are_named_have_something_to_list(bed: Bed, memory: Command) -> None:
    told = "fix, preferences, session-cost, topic-index"
    unknown = memory("list", "--kind", "preference")
    assert unknown.err == f"memory: no entry has the kind 'preference'; there are: {told}\n"
    for kind in told.split(", "):
        assert listed(memory, "--kind", kind)
    assert "there are: fix, topic-index\n" in memory("list", "--kind", "preference", "--project", "shop").err


def test_the_hint_of_what_waits_counts_under_the_same_filters(bed: Bed, memory: Command) -> None:
    assert memory("list", "--project", "nope").err == "memory: no entry has the project 'nope'; there are: shop\n"
    (bed.vault / PRIVATE / "_inbox/more.md").write_text("---\nkind: workflow\nstatus: inbox\n---\n\nMore.\n")
    assert (
        memory("list", "--kind", "workflow").err
        == "memory: for you: 1 in the inbox (memory vault inbox); --include-inbox lists it, too\n"
    )
