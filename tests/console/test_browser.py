"""The review in real Chromium: by keyboard, without scripts, on a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from memoryvault.index.receipts import read_receipts
from memoryvault.tests.review.support import Bed

from .browser import Windows, let_settle, press, said
from .support import proposal
from .test_search_page import index, rule
from .vaults import idea, inbox_note

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
    assert said(page).startswith("approved, in place of an older entry: ")
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
    assert said(page).startswith("approved, and stops the agent once in a session, as soon as ")
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


INCUBATOR = "personal-private/_idea-incubator"


def act(page: Page, what: str, told: str) -> None:
    """One key, or a click where `what` is a selector; and the line that tells what was done."""
    let_settle(page)
    if len(what) == 1:
        page.keyboard.press(what)
    else:
        page.click(what)
    expect(page.locator("#said")).to_contain_text(told)


def test_ideas_by_key(bed: Bed, windows: Windows) -> None:
    ideas = {"k": "Retry page", "a": "Tides as a calendar", "d": "Replay from a command"}
    slugs = {key: idea(bed, title, f"{title}, for the shop.") for key, title in ideas.items()}
    today = bed.store.today()
    page = windows.sign_in()
    for key, told in (("k", "kept: "), ("a", "archived: "), ("d", "deleted: ")):
        page.goto(f"{windows.console.base}ideas?idea={slugs[key]}")
        act(page, key, told + slugs[key])
        assert bed.store.exists(f"{INCUBATOR}/{slugs[key]}/_index.md") is (key == "k")
    assert str(bed.store.read(f"{INCUBATOR}/{slugs['k']}/_index.md").extra["kept"]) == today.isoformat()
    assert {entry.status for entry in bed.entries() if slugs["a"] in entry.path} == {"archived"}
    (tombstone,) = [entry for entry in bed.entries() if entry.extra.get("idea") == slugs["d"]]
    assert tombstone.effective_status == "dismissed"
    act(page, "u", f"took back: deleted: {slugs['d']}")
    assert bed.store.read(f"{INCUBATOR}/{slugs['d']}/_index.md").effective_status == "incubating"


def test_a_search_with_a_filter(bed: Bed, windows: Windows) -> None:
    one = rule(bed, "login-tokens", "Login tokens last for fifteen minutes.")
    rule(bed, "token-fix", "Login tokens were lost in the proxy.", kind="fixes")
    index(bed)
    windows.sign_in().close()
    page = windows.open("search")
    let_settle(page)
    page.keyboard.press("/")
    page.keyboard.type("login tokens")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("2 entries answer")
    page.click("summary:has-text('Filters')")
    page.select_option("select[name=kind]", "decisions")
    let_settle(page)
    page.click("text=Apply")
    expect(page.locator("li.hit h2")).to_have_text(["Login tokens"])
    receipts = [line for line in read_receipts(Path(bed.settings.state.receipts)) if line["caller"] == "console"]
    assert [len(line["hits"]) for line in receipts] == [2, 1]
    assert receipts[-1]["hits"][0]["path"] == one


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_one_endless_word_makes_no_page_of_it_wider_than_the_window(bed: Bed, windows: Windows, size: str) -> None:
    word = "a" * 300
    body = f"# {word}\n\n{word}\n\nhttps://example.org/{word}\n\n    {word}"
    path = bed.note(
        f"personal-private/_review/{'b' * 100}.md", body, kind="preferences", status="pending", tags=[word[:200]]
    )
    inbox_note(bed, "long", word)
    page = windows.sign_in("phone" if size == "phone" else "desktop")
    for address in (f"entry?path={path}", f"review?item={path}", "inbox"):
        page.goto(windows.console.base + address)
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, address
    if size == "phone":
        assert page.locator(".scroll").evaluate("part => part.scrollWidth - part.clientWidth") <= 0


def free_at_left(text: Locator) -> float:
    """Pixels between the left edge of an element and of its text."""
    script = """node => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return range.getBoundingClientRect().left - node.getBoundingClientRect().left;
    }"""
    return float(text.evaluate(script))


def test_what_is_written_from_right_to_left_begins_at_the_right(bed: Bed, windows: Windows) -> None:
    arabic = "تذكر دائمًا"
    proposal(bed, "mixed", f"{arabic}\n\nThen English.")
    path = "personal-private/_review/arabic.md"
    bed.note(path, f"# {arabic}\n\n{arabic} {arabic}", kind="preferences", status="pending")
    page = windows.sign_in()
    for address, part in (
        ("review?item=", "#item-title"),
        ("review?item=", ".markdown p"),
        ("entry?path=", ".markdown p"),
    ):
        page.goto(windows.console.base + address + path)
        assert free_at_left(page.locator(part)) > 100
    page.goto(f"{windows.console.base}review?item=personal-private/_review/mixed.md")
    assert free_at_left(page.locator(".markdown p >> nth=0")) > 100
    assert free_at_left(page.locator(".markdown p >> nth=1")) < 1
    page.goto(f"{windows.console.base}review?item={path}&panel=edit")
    assert page.locator("textarea").evaluate("one => getComputedStyle(one).unicodeBidi") == "plaintext"
