"""The forms of the review page; no decision is made twice."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from memoryvault.cli.review_dialogue import KEYS
from memoryvault.hooks.wiring import install_for
from memoryvault.pipelines.review import Approve
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.journal import Change
from memoryvault.services.paging import load_pending_page, order_pending
from memoryvault.services.pending_counts import list_pending_notes
from memoryvault.tests.review.support import CHOICE, Bed
from memoryvault.vault.entry import Entry
from memoryvault.vault.scrubbed import Scrubbed

from .support import Front, proposal, said, visible
from .vaults import SESSION, transcript

OLD = "personal-private/preferences/use-npm.md"


@pytest.fixture
def old_rule(bed: Bed) -> str:
    return bed.note(OLD, "# Use npm\n\nAlways use npm.", kind="preferences")


def test_a_secret_in_the_edited_text_is_replaced_and_that_is_said(bed: Bed, front: Front) -> None:
    entry = proposal(bed, "use-tabs")
    token = "ghp_" + "b" * 36
    assert "secrets in the text were replaced" in said(front.decide(entry, "approve", body=f"Use the token {token}"))
    assert token not in bed.only("active").body


@pytest.mark.parametrize("decision", ["supersede", "approve"])
def test_an_entry_edited_since_it_was_compared_stays(bed: Bed, old_rule: str, front: Front, decision: str) -> None:
    """Whether it was chosen for the comparison, or the proposal names it itself."""
    entry = proposal(bed, "use-pnpm", "Always use pnpm.", supersedes=OLD if decision == "approve" else None)
    page = front.get("review", item=entry.path, panel="supersede" if decision == "supersede" else "").text
    seen = re.findall(r'name="old_hash" value="([0-9a-f]{64})"', page)
    assert seen == [bed.store.read(OLD).content_hash]
    bed.edit(OLD, "Always use npm", "Use npm for the shop only")
    files = bed.files()
    answer = front.decide(entry, decision, old=OLD, old_hash=seen[0])
    assert said(answer) == f"{OLD}, which it would replace, is not what you saw: compare them again"
    assert bed.files() == files
    now = bed.store.read(OLD).content_hash
    assert f'name="old_hash" value="{now}"' in answer.text, "the comparison is shown anew"
    assert said(front.decide(entry, decision, old=OLD, old_hash=now)).startswith("approved, in place of an older ")


def test_the_nearest_entry_is_shown_side_by_side(bed: Bed, old_rule: str, front: Front) -> None:
    proposal(bed, "use-pnpm", "Always use pnpm.")
    answer = front.get("review", item="personal-private/_review/use-pnpm.md", panel="supersede")
    assert f"Now: {OLD}" in visible(answer)
    assert "<del>npm</del>" in answer.text
    assert "<ins>pnpm</ins>" in answer.text


def test_another_entry_can_be_named_and_a_wrong_name_is_an_error(bed: Bed, old_rule: str, front: Front) -> None:
    entry = proposal(bed, "sleep-well")
    answer = front.get("review", item=entry.path, panel="supersede", other="use-npm")
    assert f"Now: {OLD}" in visible(answer)
    assert "there is no entry nothing-like-it" in said(
        front.get("review", item=entry.path, panel="supersede", other="nothing-like-it")
    )
    assert "which entry does it replace?" in said(front.decide(entry, "supersede"))


@pytest.mark.parametrize("panel", ["", "edit"])
def test_both_can_be_kept(bed: Bed, old_rule: str, front: Front, panel: str) -> None:
    entry = proposal(bed, "use-pnpm", "Always use pnpm.", supersedes=OLD)
    page = front.get("review", item=entry.path, panel=panel)
    assert "Approving it puts Use npm into the archive" in visible(page)
    assert 'value="keep both"' in page.text
    assert said(front.decide(entry, "keep both")) == "approved: personal-private/preferences/use-pnpm.md"
    assert bed.store.exists(OLD)
    proposal(bed, "sleep-well")
    assert 'value="keep both"' not in front.get("review").text


def test_the_page_has_the_keys_of_the_terminal_and_none_that_opens_pages(bed: Bed, old_rule: str, front: Front) -> None:
    entry = proposal(bed, "use-pnpm", "Never use npm, always pnpm.", supersedes=OLD)
    page = front.get("review", item=entry.path).text
    keys = set(re.findall('data-key="(.)"', page))
    assert {"a", "l", "m", "k", "r", "e", "p"} <= keys & KEYS.keys()
    assert "g" not in keys


def test_what_lacks_its_kind_says_what_to_write_into_it(bed: Bed, front: Front) -> None:
    bed.note("personal-private/_review/dropped-here.md", "Always use tabs.")
    answer = front.decide(bed.store.read("personal-private/_review/dropped-here.md"), "approve")
    assert "has no kind: write one into its properties, as `kind: preferences`" in said(answer)
    assert bed.store.exists("personal-private/_review/dropped-here.md")


def test_two_windows_that_undo_take_back_one_decision(bed: Bed, front: Front) -> None:
    first, second = proposal(bed, "one"), proposal(bed, "two")
    front.decide(first, "approve")
    front.decide(second, "approve")
    act = bed.reviewer.last_decision()
    assert act is not None
    assert said(front.post("review/undo", act=act.id)) == "took back: approved: two"
    assert "not the last one any more" in said(front.post("review/undo", act=act.id))
    assert bed.store.exists("personal-private/preferences/one.md")


def test_what_another_window_decided_is_told_in_one_line_and_not_done_twice(bed: Bed, front: Front) -> None:
    entry = proposal(bed, "use-tabs")
    front.decide(entry, "reject")
    files = bed.files()
    told = said(front.decide(entry, "approve"))
    assert told == "personal-private/_review/use-tabs.md does not wait any more"
    assert bed.files() == files


def test_the_text_that_was_written_for_a_proposal_that_is_gone_is_shown(bed: Bed, front: Front) -> None:
    entry, other = proposal(bed, "use-tabs"), proposal(bed, "wrap-lines")
    bed.reviewer.decide(entry.path, Approve(), run="review:elsewhere")
    answer = front.decide(entry, "approve", body="Use tabs & never\n\nspaces.", next=other.path)
    assert "does not wait any more" in said(answer)
    assert "readonly>\nUse tabs &amp; never\n\nspaces.</textarea>" in answer.text
    assert "readonly" not in front.decide(other, "approve", body="Wrap them.").text, "this one was kept"


def test_an_edited_note_is_shown_again_and_not_decided(bed: Bed, front: Front) -> None:
    entry = proposal(bed, "use-tabs")
    bed.edit(entry.path, "Always do", "Never do")
    answer = front.decide(entry, "approve")
    assert "was changed since you saw it" in said(answer)
    assert "Never do use-tabs" in visible(answer)
    assert bed.store.exists(entry.path)


@pytest.mark.parametrize("fields", [{"body": " \n"}, {"hash": ""}, {"decision": "supersede"}])
def test_a_decision_that_lacks_something_is_not_carried_out(bed: Bed, front: Front, fields: dict[str, str]) -> None:
    entry = proposal(bed, "use-tabs")
    seen = {"item": entry.path, "hash": entry.content_hash, "decision": "approve"}
    assert said(front.post("review/decide", None, **{**seen, **fields}))
    assert bed.store.exists(entry.path)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "personal-private/preferences/use-npm.md", ""])
def test_only_what_waits_can_be_decided_on(bed: Bed, old_rule: str, front: Front, path: str) -> None:
    files = bed.files()
    answer = front.post("review/decide", item=path, hash="0" * 64, decision="reject")
    assert said(answer)
    assert bed.files() == files


def test_a_long_queue_comes_in_pages_and_is_searched(bed: Bed, front: Front) -> None:
    for number in range(22):
        proposal(bed, f"rule-{number:02}", "Something about elephants." if number == 21 else "")
    first = front.get("review")
    assert "22 proposals wait" in visible(first)
    assert "1 of 2" in visible(first)
    assert first.text.count("/review?item=") < 70
    second = front.get("review", page="2").text
    assert "data-focus>Rule 20<" in second
    assert '<ol class="list" start="21">' in second
    found = visible(front.get("review", q="ELEPHANTS about"))
    assert "1 proposal waits" in found
    assert "Rule 21" in found
    assert "Nothing that waits has these words" in visible(front.get("review", q="elephants 100%"))


def test_what_was_said_around_a_proposal_is_asked_for_once_it_is_shown(bed: Bed, front: Front) -> None:
    transcript(bed.root, [("assistant", "I ran npm install."), ("user", "No, use pnpm instead of npm")])
    records = (f"{SESSION[:8]}-r1",)
    bed.remember(replace(CHOICE, session=SESSION, records=records, said_at="2026-05-04T09:01:00Z"))
    entry = bed.only("pending")
    page = front.get("review")
    assert "seen once, said 2026-05-04" in visible(page)
    assert f"review/said?item={quote(entry.path, safe='')}" in page.text
    assert "I ran npm install." not in page.text
    part = visible(front.get("review/said", item=entry.path))
    assert part.startswith("Agent 4 May 2026")
    assert "I ran npm install. You the evidence" in part
    front.decide(entry, "reject")
    assert visible(front.get("review/said", item=entry.path)) == "It does not wait any more."


def test_an_empty_queue_says_so(front: Front) -> None:
    assert "Nothing waits for your decision" in visible(front.get("review"))


def test_the_first_rule_about_tool_calls_offers_the_hooks_once(bed: Bed, front: Front) -> None:
    install_for("claude", bed.settings)
    first = said(front.decide(proposal(bed, "main", "Never push to main."), "approve"))
    assert "`memory guard --on`" in first
    assert "guard" not in said(front.decide(proposal(bed, "vendor", "Don't touch vendor/."), "approve"))


def offered(answer: Any) -> str:
    """The decision that the page offers to take back, '' for none."""
    found = re.search(r'name="act" value="([^"]*)"', answer.text)
    return found[1] if found else ""


def decide(bed: Bed, entry: Entry) -> str:
    """In another process, as the command does; the id of its act."""
    reviewer = bed.reviewer
    reviewer.decide(entry.path, Approve(), run=reviewer.journal.new_run("review"))
    act = reviewer.last_decision()
    assert act is not None
    return act.id


@pytest.mark.parametrize("page", ["review", "inbox", "ideas"])
def test_a_page_offers_to_undo_the_last_decision_of_any_process(bed: Bed, front: Front, page: str) -> None:
    first, second = proposal(bed, "one"), proposal(bed, "two")
    proposal(bed, "three")
    assert offered(front.get(page)) == ""
    one = decide(bed, first)
    assert offered(front.get(page)) == one
    two = decide(bed, second)
    assert offered(front.get(page)) == two
    bed.reviewer.undo_last(two)
    assert offered(front.get(page)) == one
    shutil.rmtree(bed.journal.files[0].parent)
    assert offered(front.get(page)) == ""


def test_a_full_journal_that_gave_way_to_a_new_one_is_another_journal(bed: Bed, front: Front) -> None:
    first, second = proposal(bed, "one"), proposal(bed, "two")
    decide(bed, first)
    assert offered(front.get("review"))
    rotated, current = bed.journal.files
    os.replace(current, rotated)
    two = decide(bed, second)
    os.utime(current, ns=(0, rotated.stat().st_mtime_ns))
    assert offered(front.get("review")) == two


def test_the_oldest_comes_first(bed: Bed) -> None:
    for name, day in (("a", "2026-03-01"), ("b", "2026-01-01"), ("c", "2026-02-01")):
        proposal(bed, name, created=day)
    ordered = order_pending(bed.store, list_pending_notes(bed.store)["proposals"])
    assert [path[-4] for path in ordered] == ["b", "c", "a"]


def test_a_search_takes_words_as_they_are_written(bed: Bed) -> None:
    proposal(bed, "plain", "Costs are 100 euro.")
    proposal(bed, "percent", "Costs are 100% of it.")
    proposal(bed, "under", "Call it snake_case.")
    proposal(bed, "other", "Übungen kommen in die Straße; ПРАВИЛО.")
    paths = list_pending_notes(bed.store)["proposals"]

    def found(search: str) -> list[str]:
        return [path.rsplit("/", 1)[-1] for path in order_pending(bed.store, paths, search)]

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


def test_the_journal_reads_the_same_from_its_end(bed: Bed) -> None:
    for number in range(12):
        path = f"personal-private/preferences/n{number}.md"
        change = Change(path, None, Scrubbed(f"---\nkind: preferences\n---\n# {number}\n{'ü' * number}\n"))
        bed.journal.commit([change], run="r", actor="review", what=f"n{number}")
    first, last = bed.journal.files
    lines = last.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:5]) + b"not json\n")
    Path(last).write_bytes(b"".join(lines[5:]) + b'{"cut')
    assert list(bed.journal.newest()) == list(reversed(bed.journal.acts()))
    assert [act.what for act in bed.journal.acts()] == [f"n{number}" for number in range(12)]


def test_what_is_asked_of_the_journal_is_found_among_notes_that_quote_it(bed: Bed) -> None:
    kept, quoting = "personal-private/preferences/kept.md", '{"actor": "review", "path": "personal-private/odd.md"}'
    act = bed.journal.commit([Change(kept, None, Scrubbed(quoting))], run="r", actor="reflection", what="1")
    decided = [
        bed.journal.commit([Change(f"personal-private/n{n}.md", None, Scrubbed("x"))], run="r", actor="review", what=n)
        for n in "23"
    ]
    bed.journal.commit([Change(kept, quoting, None)], run="r", actor="undo", what="4", undoes=[decided[1].id])
    assert bed.reviewer.last_decision() == decided[0]
    assert [one.what for one in bed.journal.newest()] == ["4", "3", "2", "1"]
    assert act.changes[0].path == kept


def test_a_missing_vault_is_reported(bed: Bed, front: Front) -> None:
    bed.vault.rename(bed.root / "elsewhere")
    answer = front.get("review")
    assert answer.status_code == 503
    assert "is not there: mount it" in said(answer)
    assert "Traceback" not in visible(answer)


def test_a_fault_of_ours_shows_no_traceback(bed: Bed, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryvault.console.pages.review.list_pending_notes", lambda store: 1 / 0)
    front.client._transport.raise_server_exceptions = False  # type: ignore[attr-defined]  # as a browser sees it
    answer = front.get("review")
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert "Something went wrong" in answer.text
    assert answer.headers["Content-Security-Policy"]
