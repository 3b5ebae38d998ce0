"""Odd notes in real Chromium: an endless word, text from right to left, a phone."""

import pytest
from playwright.sync_api import Locator

from memoryvault.tests.review.support import Bed

from .browser import Windows
from .support import proposal
from .vaults import inbox_note, pattern

pytestmark = pytest.mark.slow

FREE_AT_LEFT = """node => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return range.getBoundingClientRect().left - node.getBoundingClientRect().left;
}"""
"""Pixels between the left edge of an element and of its text."""


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_one_endless_word_makes_no_page_of_it_wider_than_the_window(bed: Bed, windows: Windows, size: str) -> None:
    word = "a" * 300
    body = f"# {word}\n\n{word}\n\nhttps://example.org/{word}\n\n    {word}"
    path = bed.note(
        f"personal-private/_review/{'b' * 100}.md", body, kind="preferences", status="pending", tags=[word[:200]]
    )
    inbox_note(bed, "long", word)
    pattern(bed, "long", text=word)
    page = windows.sign_in("phone" if size == "phone" else "desktop")
    for address in (f"entry?path={path}", f"review?item={path}", "inbox?view=all", "watchlist"):
        page.goto(windows.console.base + address)
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, address


def free_at_left(text: Locator) -> float:
    return float(text.evaluate(FREE_AT_LEFT))


def test_what_is_written_from_right_to_left_begins_at_the_right(bed: Bed, windows: Windows) -> None:
    arabic = "تذكر دائمًا"
    proposal(bed, "mixed", f"{arabic}\n\nThen English.")
    path = "personal-private/_review/arabic.md"
    bed.note(path, f"# {arabic}\n\n{arabic} {arabic}", kind="preferences", status="pending")
    page = windows.sign_in()
    page.goto(f"{windows.console.base}review?item={path}")
    assert free_at_left(page.locator("#item-title")) > 100
    assert free_at_left(page.locator(".markdown p")) > 100
    page.goto(f"{windows.console.base}entry?path={path}")
    assert free_at_left(page.locator(".markdown p")) > 100
    page.goto(f"{windows.console.base}review?item=personal-private/_review/mixed.md")
    assert free_at_left(page.locator(".markdown p >> nth=0")) > 100
    assert free_at_left(page.locator(".markdown p >> nth=1")) < 1
    page.goto(f"{windows.console.base}review?item={path}&panel=edit")
    assert page.locator("textarea").evaluate("one => getComputedStyle(one).unicodeBidi") == "plaintext"


def test_on_a_phone_the_fields_of_a_pattern_stand_below_each_other(bed: Bed, windows: Windows) -> None:
    pattern(bed, "one")
    page = windows.sign_in("phone")
    page.goto(windows.console.base + "watchlist")
    why, until = page.locator("#reason").bounding_box(), page.locator("#until").bounding_box()
    assert why
    assert until
    assert until["y"] >= why["y"] + why["height"]
    assert why["width"] > 250
