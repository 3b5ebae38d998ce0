"""Every action of every page, pressed or clicked in real Chromium, and what it did to the files.

What each page refuses, and what stands on it, is tested without a browser; the review's own keys in `test_browser`.
"""

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from memoryvault.index.receipts import read_marks, read_receipts
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.scheduler import Scheduler, local_timezone
from memoryvault.tests.review.support import Bed

from .browser import Windows, let_settle
from .test_jobs_page import dead_job, queued_job, state_of
from .test_recall_page import SESSION, leave
from .test_search_page import index, rule
from .vaults import idea, inbox_note, pattern

pytestmark = pytest.mark.slow

INBOX = "personal-private/_inbox"
INCUBATOR = "personal-private/_idea-incubator"
WATCHLIST = "personal-private/_skill-watchlist"


def act(page: Page, what: str, told: str) -> None:
    """One key, or a click where `what` is a selector; and the line that tells what was done."""
    let_settle(page)
    if len(what) == 1:
        page.keyboard.press(what)
    else:
        page.click(what)
    expect(page.locator("#said")).to_contain_text(told)


def test_the_inbox_group_by_group_and_note_by_note(bed: Bed, windows: Windows) -> None:
    inbox_note(bed, "often", "Run the linter before each push.", occurrences=5)
    inbox_note(bed, "old", "Seems to work in a dark terminal.", created="2024-01-01", updated="2024-01-01")
    for name in ("lists", "parser"):
        inbox_note(bed, f"{name}-1", f"Prefer short functions in the {name} of the shop.")
        inbox_note(bed, f"{name}-2", f"Prefer short functions in the {name} of the shop!")
    windows.sign_in().close()
    page = windows.open("inbox")
    act(page, "y", "promoted: personal-private/_review/often.md")
    act(page, "y", "expired: personal-private/_archive/old.md")
    act(page, "y", f"merged: {INBOX}/lists-")
    assert bed.store.read("personal-private/_review/often.md").status == "pending"
    assert bed.store.read("personal-private/_archive/old.md").status == "archived"
    (merged,) = [entry for entry in bed.entries() if "lists" in entry.path and entry.special == "_inbox"]
    assert merged.occurrences == 2
    before = bed.files()
    act(page, "x", "rejected: personal-private/_archive/parser-1.md (2 notes)")
    assert not [path for path in bed.files() if path.startswith(f"{INBOX}/parser-")]
    act(page, "u", "took back: rejected")
    assert bed.files() == before

    page = windows.open("inbox?view=all")
    act(page, "[aria-label='Approve parser-1']", "approved: personal-private/preferences/parser-1.md")
    act(page, "[aria-label='Reject parser-2']", "rejected: personal-private/_archive/parser-2.md")
    assert bed.store.read("personal-private/preferences/parser-1.md").status == "active"
    assert bed.store.read("personal-private/_archive/parser-2.md").status == "rejected"
    act(page, "u", "took back: rejected: parser-2")
    assert bed.store.exists(f"{INBOX}/parser-2.md")


def test_ideas_and_patterns_by_key(bed: Bed, windows: Windows) -> None:
    slugs = {key: idea(bed, title, f"{title}, for the shop.") for key, title in IDEAS.items()}
    for name in ("adopt-it", "later-on", "not-for-us"):
        pattern(bed, name)
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

    for key, name, told in (("p", "adopt-it", "promoted: "), ("f", "later-on", "deferred "), ("d", "not-for-us", "")):
        page.goto(f"{windows.console.base}watchlist?item={WATCHLIST}/skill-list/{name}.md")
        before = bed.files()
        act(page, key, told or f"dismissed: {WATCHLIST}/_archive/skill-list/not-for-us.md")
    promoted = bed.store.read(f"{WATCHLIST}/skill-list/adopt-it.md")
    assert (promoted.status, str(promoted.extra["promoted"])) == ("active", today.isoformat())
    later = str(bed.store.read(f"{WATCHLIST}/skill-list/later-on.md").extra["deferred_until"])
    assert later > (today + timedelta(days=1)).isoformat()
    assert bed.store.read(f"{WATCHLIST}/_archive/skill-list/not-for-us.md").status == "dismissed"
    act(page, "u", "took back: dismissed: skill-list/not-for-us")
    assert bed.files() == before


@pytest.mark.parametrize("field", ["#reason", "#until"])
def test_enter_in_a_field_decides_on_no_pattern(bed: Bed, windows: Windows, field: str) -> None:
    pattern(bed, "adopt-it")
    before = bed.files()
    page = windows.sign_in()
    page.goto(f"{windows.console.base}watchlist")
    page.locator("#reason").fill("so")
    page.locator(field).press("Enter")
    expect(page.locator("#said")).to_contain_text("nothing was decided")
    assert bed.files() == before
    assert page.locator("#reason").input_value() == "so"
    let_settle(page)
    page.locator("button[value=dismiss]").click()
    expect(page.locator("#said")).to_contain_text("dismissed: ")


IDEAS = {"k": "Retry page", "a": "Tides as a calendar", "d": "Replay from a command"}


def test_jobs_kinds_and_schedules(bed: Bed, windows: Windows) -> None:
    dead = [dead_job(bed) for _ in range(3)]
    queued = queued_job(bed)
    windows.sign_in().close()
    page = windows.open("jobs")
    expect(page.locator(f"#job-{queued}")).to_be_visible()
    late = queued_job(bed, "s2")
    expect(page.locator(f"#job-{late}")).to_be_visible(timeout=10_000)  # the page brings itself up to date

    # What is clicked from here on must not be exchanged under the pointer.
    page.click("text=Stop the updates")
    expect(page.locator("text=Update by itself")).to_be_visible()
    act(page, f"#retry-{dead[0]}", f"job {dead[0]} (research.idea) is queued again")
    act(page, f"#cancel-{queued}", f"job {queued} (reflect.session) is cancelled")
    assert [state_of(bed, job) for job in (*dead, queued)] == ["queued", "dead", "dead", "cancelled"]
    act(page, "#retry-all", "2 dead jobs are queued again")
    assert [state_of(bed, job) for job in (*dead, queued)] == ["queued", "queued", "queued", "cancelled"]
    page.goto(f"{windows.console.base}jobs?id={late}&live=off")
    act(page, f"#cancel-{late}", f"job {late} (reflect.session) is cancelled")
    assert state_of(bed, late) == "cancelled"

    page.goto(f"{windows.console.base}jobs?view=schedules&live=off")
    act(page, "#schedule-run-idle-sweep", "idle-sweep: queued as job")
    with open_ledger(bed.settings) as ledger:
        sweeps = [job.kind for job in ledger.list_jobs(["queued"]) if job.kind == "recover.orphans"]
        assert sweeps == ["recover.orphans"]
    for button, told, is_paused in (("pause", "idle-sweep: paused", True), ("resume", "idle-sweep: resumed", False)):
        act(page, f"#schedule-{button}-idle-sweep", told)
        with open_ledger(bed.settings) as ledger:
            scheduler = Scheduler(ledger, kinds={"recover.orphans"}, tz=local_timezone())
            (status,) = [one for one in scheduler.status() if one.schedule.name == "idle-sweep"]
        assert status.paused is is_paused

    page.goto(f"{windows.console.base}jobs?view=kinds&live=off")
    for button, told, paused in (("pause", "no job of this kind", ["research.idea"]), ("resume", "resumed", [])):
        act(page, f"[id='{button}-research.idea']", told)
        with open_ledger(bed.settings) as ledger:
            assert ledger.paused() == paused


def test_a_search_with_a_filter_and_marks_of_its_hits(bed: Bed, windows: Windows) -> None:
    one = rule(bed, "login-tokens", "Login tokens last for fifteen minutes.")
    rule(bed, "token-fix", "Login tokens were lost in the proxy.", kind="fixes")
    index(bed)
    at = leave(bed, one)
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

    page.goto(f"{windows.console.base}recall?session={SESSION}")
    act(page, "button[name=useful][value=yes]", f"{one} is marked as useful")
    expect(page.locator("button[value=yes]")).to_have_attribute("aria-pressed", "true")
    act(page, "button[name=useful][value=no]", f"{one} is marked as noise")
    marks = read_marks(Path(bed.settings.state.log) / "marks.jsonl")
    assert [(mark["at"], mark["path"], mark["useful"]) for mark in marks] == [(at, one, True), (at, one, False)]
