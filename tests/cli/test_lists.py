"""Lists: a cut text is marked, and unknown kinds, projects and statuses are reported."""

import json
import os
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.services.active_counts import count_active, describe_notes, read_index
from memoryvault.services.indexing import reconcile_now
from memoryvault.tasks.jobs.dashboard import render
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.files import put, put_note

from ..console.support import Front, visible
from ..review.support import Bed, make_bed

PRIVATE = "personal-private"


def write(vault: Path, path: str, status: str, text: str, **fields: str) -> None:
    days = {"created": "2020-01-01", "updated": "2020-01-01"}
    put_note(vault, path, f"# Retries\n\n{text}", status=status, **fields, **days)


@pytest.mark.parametrize("line", ["idea list", "idea gc", "topics list --project shop"])
def test_a_list_marks_a_cut_text(vault: Path, memory: Command, line: str) -> None:
    shown = "A page that shows how many charges were retried on each day of the month by the people who look"
    text = f"{shown} after payments and for whom nobody has made one so far."
    write(vault, f"{PRIVATE}/_idea-incubator/retries/_index.md", "incubating", text, kind="idea")
    topic = "personal-projects/shop/memory/retries.md"
    put_note(vault, topic, text, name="retries", description=text, type="project")
    (row,) = [each for each in memory(*line.split()).out.splitlines() if each.startswith("retries")]
    assert row.endswith(f"{shown} …")


@pytest.mark.parametrize(("said", "days"), [({}, 30), ({"surfaced_at": "2026-01-10T09:00:00Z"}, 22)])
def test_the_age_of_the_inbox_is_that_of_its_oldest_saying(
    vault: Path, memory: Command, monkeypatch: pytest.MonkeyPatch, said: dict[str, str], days: int
) -> None:
    monkeypatch.setattr("memoryvault.cli.inbox.local_today", lambda: date(2026, 2, 1))
    noted = {"status": "inbox", "created": "2026-01-02", "updated": "2026-01-31"}
    put_note(vault, f"{PRIVATE}/_inbox/retries.md", **noted, **said)
    assert f"the oldest is from {days} days ago" in memory("vault", "inbox").err


def test_the_inbox_is_listed_with_the_likeliest_first(vault: Path, memory: Command) -> None:
    for slug, probability in (("a", "0.08"), ("b", "0.15"), ("c", "0.11")):
        write(vault, f"{PRIVATE}/_inbox/{slug}.md", "inbox", "Use tabs.", kind="preferences", probability=probability)
    listed = json.loads(memory("vault", "inbox", "list", "--json").out)
    assert [Path(entry["path"]).stem for entry in listed] == ["b", "c", "a"]


@pytest.mark.parametrize("text", ["> It says of itself: retries.", "```text\nTraceback (most recent call last):\n```"])
def test_an_entry_that_begins_with_others_words_is_listed_by_its_title(vault: Path, memory: Command, text: str) -> None:
    write(vault, f"{PRIVATE}/notes/retries.md", "active", text, kind="note")
    assert memory("list").out.splitlines()[0] == "2020-01-01  Retries  (note, any project)"
    write(vault, "personal-projects/shop/session-cost/s1.md", "active", text, kind="session-cost")
    assert memory("list", "--kind", "session-cost").out.splitlines()[0] == "2020-01-01  Retries  (session-cost, shop)"


def test_what_was_said_last_is_listed_first(vault: Path, memory: Command) -> None:
    for slug, day in (("a", "2026-02-03"), ("b", "2025-12-24"), ("c", "2026-05-01")):
        write(vault, f"{PRIVATE}/fact/{slug}.md", "active", "Tea.", kind="fact", surfaced_at=f"{day}T12:00:00Z")
    listed = memory("list").out.splitlines()[::2]
    assert [line[:10] for line in listed] == ["2026-05-01", "2026-02-03", "2025-12-24"]


@pytest.mark.parametrize("line", ["list --status foo", "recall --filter status=foo", "recall x --filter status!=Foo"])
def test_an_unknown_status_is_bad_usage(vault: Path, memory: Command, line: str) -> None:
    write(vault, f"{PRIVATE}/preferences/tabs.md", "active", "Tabs.", kind="preferences")
    known = "active, pending, inbox, incubating, resolved, superseded, rejected, dismissed, archived"
    told = memory(*line.split(), code=2)
    assert (told.out, told.err) == ("", f"memory: there is no status 'foo'; there are: {known}\n")


@pytest.mark.parametrize("line", ["list --status draft", "recall --filter status=Draft", "list --status ARCHIVED"])
def test_a_status_of_the_users_own_notes_can_be_asked_for(vault: Path, line: str) -> None:
    write(vault, f"{PRIVATE}/preferences/tabs.md", "Draft", "Tabs.", kind="preferences")
    assert main(line.split()) == 0


@pytest.mark.parametrize("command", ["list --project", "recall charges --project", "recall charges --filter"])
@pytest.mark.parametrize("written", ["My Shop", "my-shop"])
def test_a_project_is_the_same_however_it_is_written(vault: Path, memory: Command, command: str, written: str) -> None:
    text = "Charges are retried."
    write(vault, f"{PRIVATE}/fix/linked.md", "active", text, kind="fix", project="\n  - '[[work/My Shop]]'")
    write(vault, "personal-projects/My Shop/fix/placed.md", "active", text, kind="fix")
    write(vault, f"{PRIVATE}/fix/other.md", "active", text, kind="fix", project="[bank]")
    option = f"project='{written}'" if command.endswith("--filter") else written
    found = memory.json(*command.split(), option)
    paths = {one["path"].rsplit("/", 1)[-1] for one in (found if isinstance(found, list) else found["hits"])}
    assert paths == {"linked.md", "placed.md"}


@pytest.mark.parametrize("line", ["list --include-inbox", "review --list", "inbox list", "show"])
def test_a_files_name_does_not_end_its_line(vault: Path, memory: Command, line: str) -> None:
    name = "one\n1     preferences  forged\t\x1b[2K"
    for folder, status in (("fix", "active"), ("_review", "pending"), ("_inbox", "inbox")):
        write(vault, f"{PRIVATE}/{folder}/{name}.md", status, "Retry each charge twice.", kind="preferences")
    words = line.split() if line != "show" else ["show", f"{PRIVATE}/fix/{name}.md"]
    out = memory(*words).out
    assert "one\\u000a1     preferences  forged\\u0009" in out
    assert not [each for each in out.splitlines() if each.startswith("1     preferences  forged")]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("list", f"{PRIVATE}/fix/{{}}.md"),
        ("review --list", f"{PRIVATE}/_review/{{}}.md"),
        ("vault inbox list", f"{PRIVATE}/_inbox/{{}}.md"),
        ("idea list", f"{PRIVATE}/_idea-incubator/{{}}/_index.md"),
        ("watchlist", f"{PRIVATE}/_skill-watchlist/a/{{}}.md"),
        ("topics list --project shop", "personal-projects/shop/memory/{}.md"),
        ("idea gc", f"{PRIVATE}/_idea-incubator/{{}}/_index.md"),
        ("guard", f"{PRIVATE}/fix/{{}}.md"),
        ("always", f"{PRIVATE}/fix/{{}}.md"),
        ("health", f"{PRIVATE}/fix/{{}}.md"),
    ],
)
def test_every_list_names_what_it_could_not_read(vault: Path, memory: Command, line: str, place: str) -> None:
    status = {"list": "active", "idea list": "incubating"}.get(line, "pending")
    kind = "idea" if "idea" in line else "fix"
    write(vault, place.format("well"), status, "Which charges were retried.", kind=kind, name="well")
    write(vault, place.format("huge"), status, "x" * 8_100_000)
    said = memory(*line.split())
    assert "well" in said.out or line in ("idea gc", "guard", "always", "health")
    assert f"{place.format('huge')} is larger than 8 MB" in said.out + said.err
    if "/_review/" in place or "/_inbox/" in place:
        assert [note["slug"] for note in memory.json(*line.split())] == ["well", "huge"]


def test_an_empty_list_counts_what_waits_though_it_cannot_be_read(vault: Path, memory: Command) -> None:
    write(vault, f"{PRIVATE}/_review/huge.md", "pending", "x" * 8_100_000)
    assert "for you: 1 proposal (memory review)" in memory("list").err
    assert "for you" not in memory("list", "--tag", "shop").err


# Every command and page counts and lists the same entries in use


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
        put(bed.vault / path, f"---\n{text}")
    put(bed.vault / PRIVATE / "none.md")
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
    for path in (f"{PRIVATE}/fix/huge.md", f"{PRIVATE}/_review/huge.md"):
        os.truncate(put(bed.vault / path), 8_100_000)  # Which nobody reads, not even root.
    assert listed(memory) == ["locks.md", "name.md", "tabs.md"]
    groups = {PRIVATE: 2, "personal-projects": 1}
    assert in_use(memory) == {"groups": groups, "in_use": 3, "set_aside": {"resolved": 1, "unreadable": 1}}
    told = memory("health").out
    assert f"entries          {PRIVATE} 2, personal-projects 1; not in use: 1 resolved, 1 unreadable\n" in told
    assert "waiting          1 proposal, 1 in the inbox\n" in told
    notes = "14 notes (3 entries in use, 1 proposal, 1 in the inbox, 9 others), "
    assert notes in memory("doctor").out
    newest = render(bed.store).partition("## Newest entries")[2]
    assert sorted(re.findall(r"\[\[([^|]+)\|", newest)) == [
        f"{PRIVATE}/_always-load/name", f"{PRIVATE}/preferences/tabs", "personal-projects/shop/fix/locks"
    ]  # fmt: skip
    if not is_indexed:
        return
    known = read_index(Path(bed.settings.state.index_db))
    assert known is not None
    assert describe_notes(*known) == "12 notes (3 entries in use, 1 in the inbox, 8 others)"
    with Front(bed.settings) as front:
        front.enter()
        search = visible(front.get("search"))
    assert re.search(r"\b3 entries\b", search), search


def test_a_file_that_is_another_than_the_index_knows_is_read(bed: Bed, memory: Command) -> None:
    reconcile_now(bed.settings)
    put_note(bed.vault, f"{PRIVATE}/failure-incident/x.md", "It broke anew.", kind="failure-incident")
    put_note(bed.vault, f"{PRIVATE}/empty.md", "Not empty any more.", kind="fix")
    assert in_use(memory)["in_use"] == len(listed(memory)) == 5


def test_a_note_that_is_gone_does_not_count_by_the_status_that_the_index_still_knows(bed: Bed) -> None:
    reconcile_now(bed.settings)
    assert count_active(bed.store).set_aside == {"resolved": 1}
    (bed.vault / PRIVATE / "failure-incident/x.md").unlink()
    assert count_active(bed.store).set_aside == {}


def test_entries_hidden_by_their_status_are_counted(bed: Bed, memory: Command) -> None:
    assert memory("list").err == "memory: not in use, and not shown: 1 resolved (--status resolved)\n"
    assert listed(memory, "--status", "resolved") == ["x.md"]
    assert memory("list", "--kind", "fix").err == ""


def test_the_hint_of_what_waits_counts_under_the_same_filters(bed: Bed, memory: Command) -> None:
    assert memory("list", "--project", "nope").err == ""
    (bed.vault / PRIVATE / "_inbox/more.md").write_text("---\nkind: workflow\nstatus: inbox\n---\n\nMore.\n")
    assert (
        memory("list", "--kind", "workflow").err
        == "memory: for you: 1 in the inbox (memory vault inbox); --include-inbox lists it, too\n"
    )
