"""What is printed for the model."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import pytest

from memoryvault.vault.header import skim
from memoryvault.vault.render import (
    estimate_tokens,
    render_always_load,
    render_block,
    select_fitting,
    select_hits,
    status_line,
)


@dataclass(frozen=True)
class FakeHit:
    slug: str
    excerpt: str
    project: str | None = None
    kind: str | None = None
    updated: str | None = None
    session: str | None = None


def always(path: str, text: str) -> dict[str, object]:
    fields, body = skim(text)
    stem = path.rsplit("/", 1)[1].removesuffix(".md")
    return {"path": path, "slug": fields.get("slug", stem), "priority": fields.get("priority"), "body": body}


def note(name: str, body: str, priority: str = "") -> dict[str, object]:
    header = f"name: {name}\ndescription: test entry {name}\n" + (f"priority: {priority}\n" if priority else "")
    return always(f"personal/_always-load/{name}.md", f"---\n{header}---\n\n{body}")


@pytest.mark.parametrize(("characters", "tokens"), [(0, 1), (40, 10), (4000, 1000)])
def test_four_characters_count_as_a_token(characters: int, tokens: int) -> None:
    assert estimate_tokens("x" * characters) == tokens


def test_other_scripts_count_more() -> None:
    assert estimate_tokens("語" * 40) == 30


@pytest.mark.parametrize(
    ("sizes", "budget", "kept"),
    [
        ([400] * 5, 250, [0, 1]),
        ([408] * 5, 320, [0, 1, 2]),
        ([400] * 3, -1, [0, 1, 2]),
        ([400] * 3, 0, [0, 1, 2]),
        ([4000, 400, 4000, 40], 120, [1, 3]),
        ([], 10, []),
    ],
)
def test_an_oversized_block_is_skipped_and_later_ones_still_fit(sizes: list[int], budget: int, kept: list[int]) -> None:
    assert select_fitting(["x" * size for size in sizes], budget) == kept


def test_small_entries_of_high_priority_survive_a_large_one() -> None:
    entries = [note("a-large", "x " * 82), note("b-small", "y " * 4, "high"), note("c-small", "z " * 4, "high")]
    text, kept = render_always_load(entries, 40)
    assert "### b-small" in text
    assert "### c-small" in text
    assert "a-large" not in text
    assert [entry["slug"] for entry in kept] == ["b-small", "c-small"]


def test_order_is_by_priority_then_path_whatever_the_listing() -> None:
    entries = [note("d", "4", "low"), note("c", "3"), note("b", "2"), note("a", "1", "HIGH"), note("e", "5", "odd")]
    text, _ = render_always_load(entries, 0)
    assert re.findall(r"^### (\w)$", text, re.MULTILINE) == ["a", "b", "c", "e", "d"]
    assert render_always_load(reversed(entries), 0)[0] == text


def test_nothing_in_the_frame_changes_from_day_to_day() -> None:
    text, _ = render_always_load([note("a", "Words.")], 0)
    assert text.startswith("# MemoryVault — always-load entries\n")
    assert not re.search(r"\d{4,}|\d\d:\d\d", text)


def test_no_entries_print_nothing() -> None:
    assert render_always_load([], 100) == ("", [])


def test_a_recalled_entry_is_labelled_as_reference_data_with_its_facts() -> None:
    hit = FakeHit("use-pnpm", "Use pnpm.", "app", "preferences", "2026-07-01", "s1")
    block = render_block([hit], 2000)
    assert block.startswith("# MemoryVault")
    assert "reference data" in block
    assert "### use-pnpm\n(project: app, kind: preferences, date: 2026-07-01, session: s1)\n\nUse pnpm.\n" in block


def test_mappings_serve_as_well_as_objects() -> None:
    hit = {"slug": "a", "excerpt": "text", "created": "2026-01-02"}
    assert "### a\n(date: 2026-01-02)\n\ntext\n" in render_block([hit], 0)


def test_what_was_said_long_before_it_was_noted_bears_the_day_of_saying() -> None:
    """To an agent the day of a backfill would make an old rule look fresh."""
    hit = {"slug": "a", "excerpt": "text", "surfaced_at": "2024-05-17T12:00:00Z", "created": "2026-11-23"}
    assert "### a\n(date: 2024-05-17)\n" in render_block([hit | {"updated": "2026-11-23"}], 0)
    assert "### a\n(date: 2026-12-01)\n" in render_block([hit | {"updated": "2026-12-01"}], 0), "changed since"


@pytest.mark.parametrize(("zone", "day"), [("Pacific/Kiritimati", "2024-05-18"), ("Pacific/Honolulu", "2024-05-17")])
def test_the_day_of_saying_is_the_users(monkeypatch: pytest.MonkeyPatch, zone: str, day: str) -> None:
    """As in `memory recall` and to agents that ask."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        block = render_block([{"slug": "a", "excerpt": "text", "surfaced_at": "2024-05-17T12:00:00Z"}], 0)
    time.tzset()
    assert f"### a\n(date: {day})\n" in block


def test_hits_that_do_not_fit_are_left_out_and_known() -> None:
    hits = [FakeHit("big", "x" * 4000), FakeHit("small", "y" * 40)]
    kept = select_hits(hits, 100)
    assert [hit.slug for hit in kept] == ["small"]
    assert render_block(hits, 100) == render_block(kept, 100)
    assert render_block([hits[0]], 100) == ""


def test_the_output_cannot_be_taken_for_json_nor_drive_a_terminal() -> None:
    block = render_block([FakeHit("{a}\nb", '{"x": 1}\x1b[2J\x07\x9b2J')], 0)
    assert not block.startswith("{")
    assert "### {a} b\n" in block
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", block)


def test_nothing_that_names_an_entry_drives_a_terminal_either() -> None:
    """A file's name and a property are as free as a body."""
    evil = "x\x1b]0;t\x07\x9b2Jy\x7f"
    hit = FakeHit(evil, "text", evil, evil, evil, evil)
    entry = {"path": evil, "slug": evil, "priority": evil, "body": evil}
    loaded, _ = render_always_load([entry, {**entry, "body": evil * 9000}], 100)
    for text in (render_block([hit], 0), loaded, status_line([evil])):
        assert "x]0;t2Jy" in text
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_the_status_line_counts_and_names() -> None:
    assert status_line(["a", "b"]) == "Loaded 2 relevant entries: a, b"
    assert status_line([]) == "Loaded 0 relevant entries"
