"""The forms of inbox, ideas and entry; no decision is made twice."""

import re
import shutil
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from memoryvault.services.indexing import reconcile_now
from memoryvault.tests.ideas.support import IDEA
from memoryvault.tests.review.support import TABS, Bed, tabs
from memoryvault.tests.support.files import put

from .support import Front, proposal, said, visible
from .vaults import idea, inbox_note, learned, nobody_came_back_to, transcript

FORM = re.compile(r'<form method="post" action="/here/([^"]+)"[^>]*>(.*?)</form>', re.DOTALL)


def forms(answer: Any, action: str) -> list[dict[str, str]]:
    """The hidden fields of each form of a page that goes there."""
    hidden = r'<input type="hidden" name="([^"]+)" value="([^"]*)"'
    bodies = [body for where, body in FORM.findall(answer.text) if where.split("?")[0] == action]
    return [{name: unescape(value) for name, value in re.findall(hidden, body)} for body in bodies]


def press(front: Front, page: Any, action: str, **fields: str) -> Any:
    """Send the first of the forms of a page that go there, as a button does."""
    form = forms(page, action)[0] | fields
    form.pop("csrf")
    return front.post(action, None, **form)


def test_a_note_of_the_inbox_that_another_window_decided_or_changed_is_left(bed: Bed, front: Front) -> None:
    inbox_note(bed, "one", "Prefer short functions in the parser.")
    page = front.get("inbox")
    bed.edit("personal-private/_inbox/one.md", "Prefer", "Never prefer")
    assert "was changed since you saw it" in said(press(front, page, "inbox/decide", decision="approve"))
    assert bed.store.exists("personal-private/_inbox/one.md")
    front.decide(bed.store.read("personal-private/_inbox/one.md"), "reject")
    files = bed.files()
    assert "does not wait any more" in said(press(front, page, "inbox/decide", decision="approve"))
    assert bed.files() == files


def test_a_note_of_the_inbox_is_approved_and_comes_back(bed: Bed, front: Front) -> None:
    path = inbox_note(bed, "one", "Prefer short functions in the parser.")
    done = press(front, front.get("inbox"), "inbox/decide", decision="approve")
    assert said(done) == "approved: personal-private/preferences/one.md"
    assert said(press(front, done, "inbox/undo")) == "took back: approved: one"
    assert bed.store.exists(path)


def test_the_notes_of_the_inbox_come_in_pages_and_are_searched(bed: Bed, front: Front) -> None:
    for number in range(26):
        inbox_note(bed, f"note-{number:02}", f"Thing {number} is kept apart.")
    assert "1 of 2" in visible(front.get("inbox"))
    assert "Thing 17" in visible(front.get("inbox", q="thing 17"))


@pytest.mark.parametrize(("answer", "told"), [("keep", "kept"), ("archive", "archived"), ("delete", "deleted")])
@pytest.mark.parametrize("is_listed", [True, False])
def test_an_idea_is_kept_or_goes_and_returns(bed: Bed, front: Front, answer: str, told: str, is_listed: bool) -> None:
    slug = idea(bed, "Retry page", "A page of all that failed.")
    if is_listed:
        nobody_came_back_to(bed, slug)
    before = bed.files()
    page = front.get("ideas")
    assert ("nobody came back" in visible(page)) is is_listed
    done = press(front, page, "ideas/decide", answer=answer)
    assert said(done).startswith(f"{told}: {slug}")
    assert bed.store.exists("personal-private/_review/ideas-nobody-came-back-to.md") is False
    assert said(press(front, done, "ideas/undo")) == f"took back: {told}: {slug}"
    assert bed.files() == before


@pytest.mark.parametrize("indexed", [True, False])
def test_ideas_are_shown_by_the_days_they_were_said_the_oldest_first(bed: Bed, front: Front, indexed: bool) -> None:
    days = {"kites": "2026-02-03", "boats": "2026-05-01", "lamps": "2025-12-24"}
    for thing, day in days.items():
        said_at = f"{day}T12:00:00Z"
        bed.remember(replace(IDEA, statement=f"Idea: a museum of {thing}.", records=(thing,), said_at=said_at))
    if indexed:
        reconcile_now(bed.settings)
    text = visible(front.get("ideas"))
    assert "since 2025-12-24" in text
    rows = text[text.rindex("A museum of lamps 2025-12-24") :]
    assert re.findall(r"20\d\d-\d\d-\d\d", rows)[:3] == sorted(days.values())


def test_what_was_looked_up_about_an_idea_is_listed_by_title(bed: Bed, front: Front) -> None:
    folder = bed.vault / "personal-private" / "_idea-incubator" / idea(bed, "Retry page", "A page of all that failed.")
    (folder / "related-memoryvault.md").write_text("---\nkind: idea-research\n---\n\n# Related memories\n\nNone.\n")
    assert "Looked up about it Related memories" in visible(front.get("ideas"))


@pytest.mark.parametrize(
    ("page", "path"),
    [
        ("review", "personal-private/_review/huge.md"),
        ("inbox", "personal-private/_inbox/huge.md"),
        ("ideas", "personal-private/_idea-incubator/huge/_index.md"),
    ],
)
def test_what_waits_and_cannot_be_read_is_named_and_counted(bed: Bed, front: Front, page: str, path: str) -> None:
    put(bed.vault / path, "x" * 8_100_000)
    assert f"{path} is larger than 8 MB" in visible(front.get(page, view="all"))
    if page in ("review", "ideas"):
        assert "What waits here cannot be read" in visible(front.get(page))
        proposal(bed, "small")
        idea(bed, "Retry page", "A page of all that failed.")
        assert {"review": "2 proposals wait", "ideas": "2 ideas"}[page] in visible(front.get(page))
        assert "Skip <kbd>" not in front.get(page).text
        for number in range(19):
            proposal(bed, f"small-{number}")
            idea(bed, f"Page {number}", "A page.")
        assert "2 of 2" in visible(front.get(page, page="2"))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("archive", "the idea retry-page was archived on"),
        ("keep", "was changed since you saw it"),
    ],
)
def test_an_idea_answered_in_another_window_is_not_deleted_here(bed: Bed, front: Front, answer: str, told: str) -> None:
    assert idea(bed, "Retry page", "A page of all that failed.") == "retry-page"
    page = front.get("ideas")
    press(front, page, "ideas/decide", answer=answer)
    files = bed.files()
    assert told in said(press(front, page, "ideas/decide", answer="delete"))
    assert bed.files() == files


def test_stale_ideas_come_first_and_only_those_that_are_shown_are_counted_as_to_answer(bed: Bed, front: Front) -> None:
    idea(bed, "Alpha", "The first of all.")
    slug = idea(bed, "Zulu radio", "Voices across the sea.")
    nobody_came_back_to(bed, slug)
    page = front.get("ideas")
    assert "data-focus>Zulu radio<" in page.text
    assert "2 ideas, 1 to answer" in visible(page)
    assert "Decide on these ideas" in visible(front.get("review"))
    assert "to answer" not in visible(front.get("ideas", q="alpha"))
    shutil.rmtree(bed.vault / "personal-private/_idea-incubator" / slug)
    assert "to answer" not in visible(front.get("ideas"))


def test_an_entry_shows_where_it_was_said_scrubbed_and_around_it(bed: Bed, front: Front) -> None:
    transcript(
        bed.root,
        [
            ("user", "Something long before."),
            ("assistant", "It fails."),
            ("user", "Always use pnpm, not npm. I am jane.doe@example.com"),
            ("assistant", "Understood."),
        ],
    )
    learned(bed)
    text = visible(front.get("entry", path="always-use-pnpm-not-npm"))
    assert "Something long before." in text
    assert "the evidence" in text
    assert "[REDACTED-EMAIL]" in text
    assert "jane.doe" not in text
    assert "Understood." in text


def test_private_passages_of_a_session_are_not_shown(bed: Bed, front: Front) -> None:
    transcript(bed.root, [("user", "<private>the code is 4711</private>"), ("assistant", "ok"), ("user", "Use pnpm.")])
    learned(bed)
    assert "4711" not in front.get("entry", path="always-use-pnpm-not-npm").text


def test_a_transcript_outside_the_hosts_folders_is_not_read(bed: Bed, front: Front) -> None:
    path = transcript(bed.root, [("user", "a"), ("assistant", "b"), ("user", "Something secret.")])
    path.rename(bed.root / path.name)
    path.symlink_to(bed.root / path.name)
    learned(bed)
    assert "Something secret." not in front.get("entry", path="always-use-pnpm-not-npm").text


def test_an_entry_tells_its_history_through_the_review(bed: Bed, front: Front) -> None:
    bed.note("personal-private/preferences/use-npm.md", "# Use npm\n\nAlways use npm.", kind="preferences")
    entry = proposal(bed, "use-pnpm", "Always use pnpm.")
    front.decide(entry, "supersede", old="personal-private/preferences/use-npm.md")
    page = front.get("entry", path="personal-private/preferences/use-pnpm.md")
    assert "superseded use-npm: use-pnpm by review" in visible(page)
    assert "In the place of" in visible(page)
    old = front.get("entry", path=bed.only("superseded").path)
    assert "Superseded by use-pnpm" in visible(old)


@pytest.mark.parametrize("path", ["nothing-like-it", "../../etc/passwd", "/etc/passwd.md", "a/../../x.md", ""])
def test_a_missing_entry_is_reported(front: Front, path: str) -> None:
    answer = front.get("entry", path=path)
    assert answer.status_code in (404, 422)
    assert said(answer)


def test_a_link_of_obsidian_leads_to_its_entry(bed: Bed, front: Front) -> None:
    proposal(bed, "use-tabs")
    assert front.get("entry", path="MemoryVault/personal-private/_review/use-tabs").status_code == 200


def test_it_is_dismissed_and_comes_back(bed: Bed, front: Front) -> None:
    tabs(bed)
    before = bed.files()
    page = front.get("entry", path="tabs")
    assert forms(page, "entry/undo") == []
    done = press(front, page, "entry/dismiss")
    assert said(done) == f"dismissed: {TABS}"
    assert bed.store.read(TABS).status == "dismissed"
    assert forms(done, "entry/dismiss") == []
    assert said(press(front, page, "entry/dismiss")) == f"dismissed already: {TABS}"
    assert said(press(front, done, "entry/undo")) == "took back: dismissed: tabs"
    assert bed.files() == before


def test_what_is_decided_on_elsewhere_has_no_such_button(bed: Bed, front: Front) -> None:
    archived = tabs(bed, "personal-private/_archive/tabs.md", status="superseded")
    waits = proposal(bed, "spaces").path
    thought = idea(bed, "Offline maps", "Ship the tiles with the app.")
    for path in (archived, waits, thought):
        page = front.get("entry", path=path)
        assert page.status_code == 200
        assert forms(page, "entry/dismiss") == []
    topic = bed.note("personal-projects/shop/memory/deploy.md", "Tag, then push.")
    assert forms(front.get("entry", path=topic), "entry/mark") == []


def test_another_decision_on_it_is_not_taken_back_here(bed: Bed, front: Front) -> None:
    front.decide(proposal(bed, "tabs", "Indent with four spaces."), "approve")
    page = front.get("entry", path=TABS)
    assert len(forms(page, "entry/dismiss")) == 1
    assert forms(page, "entry/undo") == []


def test_it_is_given_to_every_session_and_guarded_by_a_button(bed: Bed, front: Front) -> None:
    tabs(bed)
    before = bed.files()
    page = front.get("entry", path="tabs")
    done = press(front, page, "entry/mark", mark="always")
    assert said(done) == f"given to every session: {TABS}"
    assert bed.store.read(TABS).always_load
    done = press(front, done, "entry/mark", mark="deny")
    assert bed.store.read(TABS).guard == "deny"
    for mark in ("off", "not always"):
        done = press(front, done, "entry/mark", mark=mark)
    assert {path: text.replace("always_load: false\n", "") for path, text in bed.files().items()} == {
        path: text.replace("always_load: false\n", "") for path, text in before.items()
    }


def test_it_is_edited_on_its_page_and_comes_back(bed: Bed, front: Front) -> None:
    tabs(bed)
    before = bed.files()
    page = front.get("entry", path="tabs", panel="edit")
    text = "# Tabs or spaces\n\nIndent with two spaces."
    done = press(front, page, "entry/edit", body=text.replace("\n", "\r\n"))
    assert said(done) == f"edited: {TABS}"
    entry = bed.store.read(TABS)
    assert entry.body.strip() == text
    assert entry.status == "active"
    assert said(press(front, done, "entry/undo")) == "took back: edited: tabs"
    assert bed.files() == before


def test_an_edit_in_obsidian_is_kept_and_the_typed_text_shown_again(bed: Bed, front: Front) -> None:
    tabs(bed)
    page, dismissing = front.get("entry", path="tabs", panel="edit"), front.get("entry", path="tabs")
    bed.edit(TABS, "four", "three")
    before = bed.files()
    done = press(front, page, "entry/edit", body="Indent with two spaces.")
    assert "was changed since you saw it" in said(done)
    assert "Indent with two spaces." in done.text
    assert "was changed since you saw it" in said(press(front, dismissing, "entry/dismiss"))
    assert bed.files() == before
    assert "nothing was left" in said(press(front, page, "entry/edit", body=" "))
