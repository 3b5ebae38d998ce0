"""The page of an entry: dismiss, mark and edit."""

from memoryvault.tests.review.support import Bed

from .support import Front, proposal, said
from .test_other_pages import forms, press
from .vaults import idea

TABS = "personal-private/preferences/tabs.md"


def tabs(bed: Bed, path: str = TABS, **fields: object) -> str:
    return bed.note(path, "# Tabs or spaces\n\nIndent with four spaces.", kind="preferences", **fields)


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
    assert bed.files() == before
    assert "was changed since you saw it" in said(press(front, dismissing, "entry/dismiss"))
    assert bed.files() == before
    assert "nothing was left" in said(press(front, page, "entry/edit", body=" "))
