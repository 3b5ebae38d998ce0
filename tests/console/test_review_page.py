"""The forms of the review page; no decision is made twice."""

import re
from dataclasses import replace
from urllib.parse import quote

import pytest

from memoryvault.cli.review import MEANINGS
from memoryvault.hooks.install import install
from memoryvault.pipelines.review import Approve
from memoryvault.tests.review.support import CHOICE, Bed

from .support import Front, proposal, said, visible
from .vaults import SESSION, transcript

OLD = "personal-private/preferences/use-npm.md"


def old_rule(bed: Bed) -> str:
    return bed.note(OLD, "# Use npm\n\nAlways use npm.", kind="preferences")


def test_a_secret_in_the_edited_text_is_replaced_and_that_is_said(bed: Bed, front: Front) -> None:
    entry = proposal(bed, "use-tabs")
    token = "ghp_" + "b" * 36
    assert "secrets in the text were replaced" in said(front.decide(entry, "approve", body=f"Use the token {token}"))
    assert token not in bed.only("active").body


def test_an_edit_that_leaves_nothing_is_refused(bed: Bed, front: Front) -> None:
    entry = proposal(bed, "use-tabs")
    assert "nothing was left" in said(front.decide(entry, "approve", body=" \n"))
    assert bed.store.exists(entry.path)


@pytest.mark.parametrize("decision", ["supersede", "approve"])
def test_an_entry_that_was_edited_since_it_was_compared_is_not_replaced(bed: Bed, front: Front, decision: str) -> None:
    """Whether it was chosen for the comparison, or the proposal names it itself."""
    old_rule(bed)
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
    assert said(front.decide(entry, decision, old=OLD, old_hash=now)).startswith("superseded: ")


def test_the_nearest_entry_is_shown_side_by_side(bed: Bed, front: Front) -> None:
    old_rule(bed)
    proposal(bed, "use-pnpm", "Always use pnpm.")
    answer = front.get("review", item="personal-private/_review/use-pnpm.md", panel="supersede")
    assert f"Now: {OLD}" in visible(answer)
    assert "<del>npm</del>" in answer.text
    assert "<ins>pnpm</ins>" in answer.text


def test_another_entry_can_be_named_and_a_wrong_name_is_an_error(bed: Bed, front: Front) -> None:
    old_rule(bed)
    entry = proposal(bed, "sleep-well")
    answer = front.get("review", item=entry.path, panel="supersede", other="use-npm")
    assert f"Now: {OLD}" in visible(answer)
    assert "there is no entry nothing-like-it" in said(
        front.get("review", item=entry.path, panel="supersede", other="nothing-like-it")
    )
    assert "which entry does it replace?" in said(front.decide(entry, "supersede"))


@pytest.mark.parametrize("panel", ["", "edit"])
def test_both_can_be_kept(bed: Bed, front: Front, panel: str) -> None:
    old_rule(bed)
    entry = proposal(bed, "use-pnpm", "Always use pnpm.", supersedes=OLD)
    page = front.get("review", item=entry.path, panel=panel)
    assert "Approving it puts Use npm into the archive" in visible(page)
    assert 'value="keep both"' in page.text
    assert said(front.decide(entry, "keep both")) == "approved: personal-private/preferences/use-pnpm.md"
    assert bed.store.exists(OLD)
    proposal(bed, "sleep-well")
    assert 'value="keep both"' not in front.get("review").text


def test_the_page_has_the_keys_of_the_terminal_and_none_that_opens_pages(bed: Bed, front: Front) -> None:
    old_rule(bed)
    entry = proposal(bed, "use-pnpm", "Never use npm, always pnpm.", supersedes=OLD)
    page = front.get("review", item=entry.path).text
    keys = dict(re.findall(r'value="([\w ]+)"[^>]*data-key="(.)"', page))
    keys |= dict(re.findall(r'panel=(\w+)[^>]*data-key="(.)"', page))
    named = {
        "approve": "a",
        "always": "l",
        "remind": "m",
        "keep both": "k",
        "reject": "r",
        "edit": "e",
        "supersede": "p",
    }
    assert {what: keys.get(what) for what in named} == named
    assert set(named.values()) < MEANINGS.keys()
    assert "g" not in keys.values()


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
    assert told == "that was decided elsewhere already (rejected: use-tabs); nothing was done twice"
    assert bed.files() == files


def test_the_text_that_was_written_for_a_proposal_that_is_gone_is_shown(bed: Bed, front: Front) -> None:
    entry, other = proposal(bed, "use-tabs"), proposal(bed, "wrap-lines")
    bed.reviewer.decide(entry.path, Approve(), run="review:elsewhere")
    answer = front.decide(entry, "approve", body="Use tabs & never\n\nspaces.", next=other.path)
    assert "decided elsewhere already" in said(answer)
    assert "readonly>\nUse tabs &amp; never\n\nspaces.</textarea>" in answer.text
    assert "readonly" not in front.decide(other, "approve", body="Wrap them.").text, "this one was kept"


def test_an_edited_note_is_shown_again_and_not_decided(bed: Bed, front: Front) -> None:
    entry = proposal(bed, "use-tabs")
    bed.edit(entry.path, "Always do", "Never do")
    answer = front.decide(entry, "approve")
    assert "was changed since you saw it" in said(answer)
    assert "Never do use-tabs" in visible(answer)
    assert bed.store.exists(entry.path)


def test_a_decision_without_what_was_seen_is_not_carried_out(bed: Bed, front: Front) -> None:
    entry = proposal(bed, "use-tabs")
    front.post("review/decide", item=entry.path, decision="approve")
    assert bed.store.exists(entry.path)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "personal-private/preferences/use-npm.md", ""])
def test_only_what_waits_can_be_decided_on(bed: Bed, front: Front, path: str) -> None:
    old_rule(bed)
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
    install(bed.settings)
    first = said(front.decide(proposal(bed, "main", "Never push to main."), "approve"))
    assert "`memory guard --on`" in first
    assert "guard" not in said(front.decide(proposal(bed, "vendor", "Don't touch vendor/."), "approve"))
