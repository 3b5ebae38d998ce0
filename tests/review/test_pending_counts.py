"""Every place that counts what waits for the user shows the same numbers, and counts each thing once."""

import asyncio
import json
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.hooks.session_start import format_reminder as session_start_line
from memoryvault.pipelines.incubation import SURFACE_KIND
from memoryvault.services.ideas.ledger import question_change
from memoryvault.services.pending_counts import PendingCounts, count_pending
from memoryvault.tasks.jobs.dashboard import DASHBOARD, refresh_dashboard
from memoryvault.tests.console.support import Front, proposal, visible
from memoryvault.tests.console.vaults import idea, inbox_note, nobody_came_back_to, pattern
from memoryvault.vault.pending import find_pending_notes, group_by_place, question_path
from memoryvault.vault.store import VaultStore

from .support import Bed

pytestmark = pytest.mark.slow

Ask = Callable[..., str]
INCUBATOR = "personal-private/_idea-incubator"
WAITS = PendingCounts(proposals=4, questions=2, copies=1, inbox=2, ideas=3, patterns=1)
IN_WORDS = "4 proposals, 2 questions about ideas, 1 conflict copy, 2 in the inbox, 3 ideas, 1 pattern to adopt"


@pytest.fixture
def full(bed: Bed) -> Bed:
    """Of each place something that waits, and something beside it that does not."""
    today = bed.store.today()
    bed.note("personal-private/preferences/tabs.md", "# Tabs\n\nUse tabs.", kind="preferences", status="active")
    (bed.vault / "personal-private/preferences/tabs (conflicted copy).md").write_text("# Tabs\n\nUse spaces.\n")
    proposal(bed, "use-pnpm")
    proposal(bed, "surface-errors", "Surface errors to the user.")
    proposal(bed, "a-tool", kind="idea")
    bed.note("personal-projects/shop/_review/locks.md", "# Locks", kind="fix", status="pending")
    bed.note("personal-private/_review/_archive/old.md", "# Old", kind="fix", status="rejected")
    inbox_note(bed, "guess", "Perhaps so.")
    bed.note("personal-projects/shop/_inbox/guess.md", "# Guess", kind="fix", status="inbox")
    slugs = [idea(bed, title, f"{title} of it all.") for title in ("Robot", "Kite", "Boat")]
    asked = question_change(bed.settings, bed.store, bed.store.read(f"{INCUBATOR}/{slugs[0]}/_index.md"))
    assert asked is not None
    bed.journal.commit([asked], run="r", actor="idea", what="asked whether it may be put into Ideas.md")
    nobody_came_back_to(bed, *slugs[1:])
    bed.note(f"{INCUBATOR}/robot/related-kite.md", "# Near", kind="idea-research", status="active")
    bed.note(f"{INCUBATOR}/_archive/plane/_index.md", "# Plane", kind="idea", status="archived")
    pattern(bed, "small-steps")
    pattern(bed, "later", deferred_until=today + timedelta(days=3))
    pattern(bed, "done", status="active", promoted=today)
    pattern(bed, "no", source="_archive/skill-list", status="dismissed")
    return bed


@pytest.fixture
def ask(full: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """What a command says, on both streams."""
    full.enter(monkeypatch)

    def said(*arguments: str) -> str:
        capsys.readouterr()
        main([*arguments])
        out, err = capsys.readouterr()
        return out + err

    return said


def test_each_thing_is_counted_once_and_what_asks_about_an_idea_is_no_proposal(full: Bed) -> None:
    assert count_pending(full.store) == WAITS
    assert count_pending(full.store).describe() == IN_WORDS


def test_the_hook_finds_the_same_without_a_walk_through_the_vault(full: Bed) -> None:
    places = group_by_place(find_pending_notes(str(full.vault)))
    assert {place: sorted(paths) for place, paths in places.items() if place != "patterns"} == {
        place: sorted(paths) for place, paths in group_by_place(full.store.walk()).items() if place != "patterns"
    }
    line = session_start_line(str(full.vault), full.settings.state.markers, "", "")
    assert line == "MemoryVault: 4 proposals and 2 questions about ideas wait for review (`memory review`)."


def test_each_command_counts_what_it_lists(full: Bed, ask: Ask) -> None:
    assert "4 proposals, 2 questions about ideas, 1 conflict copy" in ask("review", "--list")
    assert len(json.loads(ask("review", "--list", "--json"))) == 4 + 2 + 1
    assert "4 proposals, 2 questions about ideas, 1 conflict copy wait, but" in ask("review")
    assert "2 in the inbox" in ask("review", "--list", "--inbox")
    assert "2 in the inbox wait, but" in ask("review", "--inbox")
    assert len(json.loads(ask("vault", "inbox", "list", "--json"))) == WAITS.inbox
    assert len(json.loads(ask("idea", "list", "--json"))) == WAITS.ideas
    assert json.loads(ask("skills", "watchlist", "--json"))["count"] == WAITS.patterns
    assert f"waiting          {IN_WORDS}\n" in ask("health")
    assert json.loads(ask("health", "--json"))["waiting"] == WAITS.__dict__


def test_list_says_it_where_no_entry_matches_and_shows_each_thing_once(full: Bed, ask: Ask) -> None:
    for file in full.vault.rglob("personal-private/preferences/*.md"):
        file.unlink()
    said = ask("list")
    assert (
        "for you: 4 proposals (memory review); 2 in the inbox (memory vault inbox); 3 ideas (memory idea list); "
        in said
    )
    shown = json.loads(ask("list", "--include-inbox", "--json"))
    waiting = [one["path"] for one in shown if one["status"] != "active"]
    assert len(waiting) == WAITS.proposals + WAITS.inbox + WAITS.ideas
    (asked,) = json.loads(ask("list", "--include-inbox", "--kind", SURFACE_KIND, "--json"))
    assert asked["path"] == question_path("robot")


def test_the_dashboard_note_counts_the_same_under_the_same_names(full: Bed) -> None:
    refresh_dashboard(full.store)
    counts = dict(re.findall(r"^## (.+) \((\d+)\)$", (full.vault / DASHBOARD).read_text("utf-8"), re.MULTILINE))
    assert counts == {
        "Proposals": "4",
        "Questions about ideas": "2",
        "Conflict copies": "1",
        "In the inbox": "2",
        "Patterns to adopt": "1",
        "Ideas": "3",
        "Newest entries": "1",
    }


@pytest.mark.parametrize(("days", "waiting"), [(2, 1), (3, 2)])
def test_a_pattern_that_was_deferred_waits_again_on_its_day(full: Bed, days: int, waiting: int) -> None:
    day = full.store.today() + timedelta(days=days)
    store = VaultStore(full.vault, full.settings.state.vault_lock, today=lambda: day)
    assert count_pending(store).patterns == waiting
    refresh_dashboard(store)
    assert f"## Patterns to adopt ({waiting})" in (full.vault / DASHBOARD).read_text("utf-8")


def test_the_console_has_them_beside_its_pages_and_in_its_figures(full: Bed) -> None:
    with Front(full.settings) as front:
        front.enter()
        page = visible(front.get("health"))
    for title, number in (("Review", 6), ("Inbox", 2), ("Ideas", 3)):
        assert f"{title} {number} waiting" in page
    assert "For you: 4 proposals and 2 questions about ideas and 1 conflict copy , 2 in the inbox , 3 ideas" in page
    assert "1 pattern to adopt (memory skills watchlist)" in page


def test_agents_are_told_the_same(full: Bed, ask: Ask) -> None:
    from memoryvault.cli.context import Context
    from memoryvault.cli.mcp import build_server

    server = build_server(Context(full.env), str(full.root))
    result = asyncio.run(server.call_tool("review", {}))
    assert result.structured_content == WAITS.__dict__  # type: ignore[union-attr]  # no question comes back


def test_an_empty_review_says_what_waits_elsewhere(bed: Bed, ask: Ask) -> None:
    for file in [*bed.vault.rglob("_review/*.md"), *bed.vault.rglob("*conflicted*")]:
        file.unlink()
    nothing = (
        "nothing waits for your decision; elsewhere: 2 in the inbox (memory vault inbox), 3 ideas (memory idea list)"
    )
    assert nothing in ask("review")
    assert nothing in ask("review", "--list")
    for file in bed.vault.rglob("_inbox/*.md"):
        file.unlink()
    assert ask("review", "--list", "--inbox").startswith("the inbox is empty\n")
    assert ask("review", "--inbox").startswith("the inbox is empty\n")
    assert ask("vault", "inbox", "list") == "the inbox is empty\n"


def test_a_question_about_an_idea_that_is_gone_is_a_thing_of_its_own() -> None:
    asks = question_path("robot")
    there = f"{INCUBATOR}/robot/_index.md"
    assert group_by_place([asks, there])["questions"] == [asks]
    assert group_by_place([asks])["proposals"] == [asks]


def test_a_link_out_of_the_vault_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere/_review").mkdir(parents=True)
    (tmp_path / "elsewhere/_review/a.md").write_text("x")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/group").symlink_to(tmp_path / "elsewhere")
    assert list(find_pending_notes(str(tmp_path / "vault"))) == []


@pytest.mark.parametrize(
    "words", ["review --list", "review", "vault inbox", "vault inbox triage", "health", "idea list"]
)
def test_a_folder_that_cannot_be_read_is_named_beside_what_waits_elsewhere(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    bed.enter(monkeypatch)
    locked = bed.vault / "personal-private"
    locked.mkdir(exist_ok=True)
    scandir, stat = os.scandir, os.stat

    def refused(path: str, then: Callable[..., object], *more: object, **named: object) -> object:
        if (str(path).rstrip("/") == str(locked) and then is scandir) or f"{locked}/" in str(path):
            raise PermissionError(13, "Permission denied", str(path))  # Permissions do not stop root.
        return then(path, *more, **named)

    monkeypatch.setattr(os, "scandir", lambda path=".": refused(path, scandir))
    monkeypatch.setattr(os, "stat", lambda path, **named: refused(path, stat, **named))
    assert main(words.split()) in (0, 1)
    said = capsys.readouterr()
    assert "the folder personal-private/ cannot be read: Permission denied" in said.out + said.err
