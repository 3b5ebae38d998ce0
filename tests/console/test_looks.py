"""Every page in a browser: axe finds nothing serious, nothing is wider than a phone, and live parts update."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import pytest

from memoryvault.console.pages import PAGES
from memoryvault.tests.review.support import Bed

from .demo import demo_vault
from .screenshots import pages, wait_for_parts
from .support import Front
from .test_jobs_page import queued_job
from .vaults import SESSION, inbox_note, transcript

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from .browser import Windows

pytestmark = pytest.mark.slow

SERIOUS = frozenset({"serious", "critical"})


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """A vault with something on every page; nobody changes it."""
    return demo_vault(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def lived_in_windows(browser: Browser, lived_in: Bed) -> Iterator[Windows]:
    from .browser import windows_on

    with windows_on(browser, lived_in.env) as windows:
        yield windows


def test_the_pictures_and_the_checks_leave_no_page_out(lived_in: Bed) -> None:
    looked_at = {re.split(r"[?/]", address)[0] for address in pages(lived_in).values()}
    assert looked_at == {page.name for page in PAGES}


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_window(
    lived_in: Bed, lived_in_windows: Windows, size: Literal["desktop", "phone"]
) -> None:
    assert _look_over(lived_in_windows, pages(lived_in), size) == []


def test_axe_finds_nothing_serious_on_pages_with_nothing_on_them(windows: Windows) -> None:
    assert _look_over(windows, {page.name: page.name for page in PAGES}, "phone") == []


OF_THE_SIZE = ["target-size", "scrollable-region-focusable", "label", "button-name", "link-name", "color-contrast"]
OF_THE_COLOURS = ["color-contrast", "link-in-text-block"]


def _look_over(windows: Windows, addresses: Mapping[str, str], size: Literal["desktop", "phone"]) -> list[str]:
    """Where axe finds something serious, and which page is wider than the window."""
    found = []
    page = windows.sign_in(size)
    for name, address in addresses.items():
        page.goto(windows.console.base + address)
        wait_for_parts(page)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        _load_axe(page)
        # On a phone only what the size changes is asked again.
        schemes: dict[str, list[str] | None] = {"light": OF_THE_SIZE}
        if size == "desktop":
            schemes = {"light": None, "dark": OF_THE_COLOURS}
        for scheme, rules in schemes.items():
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its words
            for one in _serious(page, rules):
                found += [f"{name}, {scheme}: {one['id']}: {node['html'][:200]}" for node in one["nodes"]]
        for text in ("100%", "200%"):
            page.evaluate("size => { document.documentElement.style.fontSize = size }", text)
            if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                found.append(f"{name}, text at {text}: wider than the window")
    return found


def _load_axe(page: Page) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate(Axe().axe_script)


def _serious(page: Page, rules: list[str] | None) -> list[dict[str, Any]]:
    """What axe finds, by these rules or all. Details of what is in order are not asked for: they take most of it."""
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = page.evaluate("options => axe.run(document, options).then(found => found.violations)", options)
    return [one for one in found if one["impact"] in SERIOUS]


def test_axe_would_find_what_is_wrong(windows: Windows) -> None:
    page = windows.sign_in()
    page.evaluate("document.getElementById('main').innerHTML = '<button></button><img>'")
    _load_axe(page)
    assert {"button-name", "image-alt"} <= {one["id"] for one in _serious(page, None)}
    assert [one["id"] for one in _serious(page, OF_THE_SIZE)] == ["button-name"]


def test_after_a_decision_on_a_row_the_focus_is_on_the_next_row(bed: Bed, windows: Windows) -> None:
    from playwright.sync_api import expect

    for number in range(25):
        inbox_note(bed, f"note-{number:02d}", f"A guess about thing {number:02d}.")
    page = windows.sign_in()
    page.goto(windows.console.base + "inbox")
    rows = page.locator("tbody tr")
    ninth, tenth = rows.nth(8).locator("th").inner_text(), rows.nth(9).locator("th").inner_text()
    page.focus(f"tr:has-text('{ninth}') >> text=Reject")
    page.keyboard.press("Enter")
    page.wait_for_selector("#said p")
    page.wait_for_selector("th:focus")
    assert page.evaluate("document.activeElement.innerText") == tenth
    page.wait_for_timeout(400)
    rows.last.locator("text=Reject").click()
    expect(rows).to_have_count(23)
    page.wait_for_selector("th:focus")
    assert page.evaluate("document.activeElement.innerText") == rows.last.locator("th").inner_text()
    assert page.evaluate("scrollY") > 0
    expect(page.locator("#said")).to_be_in_viewport()


@pytest.mark.parametrize(("size", "width"), [("phone", 390), ("desktop", 1280)])
def test_the_buttons_of_the_inbox_and_every_tab_are_seen_without_scrolling(
    bed: Bed, windows: Windows, size: Literal["phone", "desktop"], width: int
) -> None:
    inbox_note(bed, "one", f"A guess about {'some/folder_with_a_name/' * 6}file.go, which is said at some length.")
    queued_job(bed)
    page = windows.sign_in(size)
    for address, name in (("inbox", "Reject"), ("jobs", "Cancel")):
        page.goto(windows.console.base + address)
        button = page.locator(f"main :text('{name}')").first
        box = button.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width, name
        for part in page.locator("main .scroll").all():
            assert part.evaluate("(part) => part.scrollWidth - part.clientWidth") <= 1, address


def said_once(bed: Bed) -> None:
    """A proposal whose page asks for what was said around it once it is shown."""
    source = [{"host": "claude", "session": SESSION, "records": ["3f0c6a52-r0"]}]
    bed.note("personal-private/_review/tabs.md", "Use tabs.", kind="preferences", status="pending", source=source)
    transcript(bed.root, [("user", "Use tabs.")])


def test_what_was_said_comes_by_itself_and_holds_up_neither_focus_nor_keys(bed: Bed, windows: Windows) -> None:
    said_once(bed)
    page = windows.sign_in()
    held: list[Route] = []
    page.route("**/review/said*", lambda route: held.append(route))
    page.goto(windows.console.base + "review")
    page.wait_for_selector("text=It is being looked up")
    assert page.locator(".later a").is_hidden()
    page.wait_for_timeout(400)  # console.js lets no key decide on what has only just appeared
    page.focus("nav [data-go=h]")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    held[0].continue_()
    page.wait_for_selector(".talk")
    assert page.locator(".later").count() == 0
    assert page.evaluate("document.activeElement.dataset.go") == "h"
    assert page.url.endswith("/review")


def test_what_was_said_is_a_link_away_with_scripts_off(bed: Bed, windows: Windows) -> None:
    said_once(bed)
    page = windows.sign_in(script=False)
    page.goto(windows.console.base + "review")
    assert page.locator(".later:visible").count() == 1
    assert page.locator(".meanwhile:visible").count() == 0
    page.click("text=Show it")
    page.wait_for_selector(".talk")


def test_every_page_is_reached_by_two_keys(bed: Bed, windows: Windows) -> None:
    from playwright.sync_api import TimeoutError as NotThere

    page = windows.sign_in()
    for one in PAGES:
        if one.key:
            # A page is there before its script listens, and how long before depends on the machine: so press again.
            for patience_ms in (1_000, 2_000, 4_000, 8_000, 20_000):
                page.wait_for_timeout(400)
                page.keyboard.press("g")
                page.keyboard.press(one.key)
                with suppress(NotThere):
                    page.wait_for_selector(f"h1:text-is('{one.title}')", timeout=patience_ms)
                    break
            assert page.is_visible(f"h1:text-is('{one.title}')"), one.title
    assert len({one.key for one in PAGES}) == len(PAGES)


def test_every_page_answers_without_a_vault(bed: Bed, front: Front) -> None:
    bed.vault.rmdir()
    for page in PAGES:
        assert front.get(page.name).status_code in (200, 303, 404, 503), page.name
