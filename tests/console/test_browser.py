"""The review in real Chromium: by keyboard, without scripts, on a phone."""

import pytest
from playwright.sync_api import Page, expect

from memoryvault.tests.review.support import Bed

from .browser import Windows, let_settle, press, said
from .support import proposal

pytestmark = pytest.mark.slow

OLD = "personal-private/preferences/use-npm.md"


def heading(page: Page) -> str:
    return page.inner_text("h2 >> nth=0")


def test_every_decision_of_the_review_has_its_key(bed: Bed, windows: Windows) -> None:
    bed.note(OLD, "# Use npm\n\nAlways use npm.", kind="preferences")
    for name in ("approve-me", "edit-me", "reject-me", "skip-me", "use-pnpm"):
        proposal(bed, name)
    page = windows.sign_in()
    assert heading(page) == "Approve me"
    press(page, "a")
    assert said(page) == "approved: personal-private/preferences/approve-me.md"
    assert heading(page) == "Edit me"

    press(page, "e")
    page.wait_for_selector("textarea:focus")
    page.keyboard.press("Control+End")
    page.keyboard.type(" Since yesterday.")
    let_settle(page)
    page.click("text=Approve this text")
    expect(page.locator("#said")).to_contain_text("edit-me")
    assert "Since yesterday." in bed.store.read("personal-private/preferences/edit-me.md").body

    press(page, "r")
    assert said(page) == "rejected: personal-private/_archive/reject-me.md"
    press(page, "s")
    assert heading(page) == "Use pnpm"
    press(page, "p")
    page.wait_for_selector("table.diff")
    press(page, "p")
    assert said(page).startswith("superseded: ")
    press(page, "u")
    assert said(page).startswith("took back: superseded")
    assert heading(page) == "Use pnpm"
    assert bed.store.exists("personal-private/_review/use-pnpm.md")
    assert bed.store.read(OLD).status == "active"


def test_a_key_that_is_held_down_decides_once(bed: Bed, windows: Windows) -> None:
    for name in ("one", "two", "three"):
        proposal(bed, name)
    page = windows.sign_in()
    page.wait_for_timeout(500)
    for _ in range(20):
        page.keyboard.down("a")  # without `up` between them: what a held key sends
    page.wait_for_timeout(800)
    page.keyboard.up("a")
    assert len([path for path in bed.files() if "/preferences/" in path]) == 1


def test_a_key_gives_it_always_or_has_it_stop_the_agent(bed: Bed, windows: Windows) -> None:
    proposal(bed, "always-short", "Keep answers short.")
    proposal(bed, "never-sudo", "Never use sudo.")
    page = windows.sign_in()
    press(page, "l")
    place = "personal-private/preferences"
    assert said(page) == f"approved, and given to every session at its start: {place}/always-short.md"
    assert bed.store.read(f"{place}/always-short.md").always_load
    press(page, "m")
    assert said(page).startswith(f"approved, and stops the agent once in a session: {place}/never-sudo.md")
    assert bed.store.read(f"{place}/never-sudo.md").guard == "remind"


def test_it_works_without_scripts(bed: Bed, windows: Windows) -> None:
    proposal(bed, "use-tabs")
    page = windows.sign_in(script=False)
    page.click("text=Approve")
    assert page.inner_text("#said").strip() == "approved: personal-private/preferences/use-tabs.md"


def test_the_help_tells_the_keys_of_the_page_and_single_keys_can_be_switched_off(bed: Bed, windows: Windows) -> None:
    proposal(bed, "use-tabs")
    page = windows.sign_in()
    let_settle(page)
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    assert "edit, then approve" in page.inner_text("dialog")
    page.check("#keys-off")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    page.wait_for_timeout(500)
    assert said(page) == ""
    assert bed.store.exists("personal-private/_review/use-tabs.md")
