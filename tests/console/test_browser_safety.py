"""Attacks in real Chromium: scripts in every field, other sites, bad links, and killed processes."""

import json
import signal
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from memoryvault.console.pages import PAGES
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.spending import SpendingBook
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.review.support import Bed
from memoryvault.tests.support import forked
from memoryvault.tests.support.files import put
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.loopback_site import Reply, site
from memoryvault.vault.marker import Marker, create_marker

from .browser import Windows, let_settle, press, said
from .support import proposal, serving
from .vaults import SESSION, transcript

pytestmark = pytest.mark.slow

OLD = "personal-private/preferences/use-npm.md"
ATTACKS = (
    "<script>pwned()</script>", "<img src=x onerror=pwned()>", '"><svg onload=pwned()>',
    "'><b onmouseover=pwned()>x</b>", "javascript:pwned()", "</textarea></title><script>pwned()</script>",
    "{{ 7 * 7 }}{% raw %}", "[x](javascript:pwned())",
    '<div hx-get="/x" hx-trigger="load" hx-on:load="pwned()">x</div>',
)  # fmt: skip
ATTACK = " ".join(ATTACKS)
FIELDS = (
    *("kind", "status", "created", "updated", "project", "group", "slug", "confidence", "fingerprint", "supersedes"),
    *("superseded_by", "superseded_reason", "surfaced_at", "deferred_until", "decision_error"),
)


def hostile(bed: Bed, path: str, **fields: object) -> None:
    """A note as somebody with access to the folder can write it: every field means harm."""
    source = [{"host": ATTACK, "session": SESSION, "records": ["3f0c6a52-r0", ATTACK]}, {"host": ATTACK}]
    lists: dict[str, object] = {"tags": [ATTACK], "aliases": [ATTACK], "source": source}
    known = {**dict.fromkeys(FIELDS, ATTACK), **lists, **fields}
    lines = "".join(f"{name}: {json.dumps(value)}\n" for name, value in known.items())
    body = "\n\n".join(
        [f"# {ATTACK}", ATTACK, *ATTACKS, f"```{ATTACKS[0]}\n{ATTACK}\n```", f"[[{ATTACKS[2]}|{ATTACKS[1]}]]"]
    )
    put(bed.vault / path, f"---\n{lines}---\n{body}\n")


def nothing_ran(page: Page) -> None:
    assert page.evaluate("typeof window.pwned") == "undefined"
    found = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((element) =>
             [...element.attributes].some((one) => /^on|^hx-on|^style$/i.test(one.name))
             || (element.tagName === "A" && !/^https?:$/.test(element.protocol))
             || (element.tagName === "SCRIPT" && element.textContent)
             || (element.tagName === "IMG" && !element.src.endsWith("/icon.svg"))
             || ["IFRAME", "OBJECT", "EMBED", "BASE", "STYLE"].includes(element.tagName)
           ).map((element) => element.outerHTML.slice(0, 200))"""
    )
    assert found == []
    assert "49" not in page.title()


def test_no_field_of_a_note_a_session_or_an_address_is_obeyed(bed: Bed, windows: Windows) -> None:
    session = [(who, ATTACK) for who in ("user", "assistant", "user")]
    transcript(bed.root, session)
    evil_name = 'x"><img src=x onerror=pwned()>'
    hostile(bed, f"personal-private/_review/{evil_name}.md")
    hostile(bed, "personal-private/_review/known-kind.md", kind="preferences", status="pending", supersedes=OLD)
    hostile(bed, OLD, kind="preferences", status="active")
    hostile(bed, "personal-private/_inbox/a.md", kind="preferences", status="inbox")
    hostile(bed, "personal-private/_inbox/b.md", kind="preferences", status="inbox")
    hostile(bed, "personal-private/_idea-incubator/evil/_index.md", kind="idea", status="incubating")
    page = windows.sign_in()
    addresses = [
        *(one.name for one in PAGES),
        f"review?item=personal-private/_review/{evil_name}.md",
        "review?item=personal-private/_review/known-kind.md",
        f"review?item=personal-private/_review/known-kind.md&panel=supersede&old={OLD}",
        "review?item=personal-private/_review/known-kind.md&panel=edit",
        "inbox",
        f"entry?path={OLD}",
        f"entry?path=personal-private/_review/{evil_name}.md",
    ]
    for address in addresses:
        page.goto(windows.console.base + address)
        nothing_ran(page)
    asked = {
        "review": ("q", "item", "panel", "page", "other", "old"),
        "inbox": ("q", "view", "page"),
        "ideas": ("q", "idea", "page"),
        "entry": ("path",),
        "search": ("q", "kind", "project", "status", "tag", "since", "filter", "page"),
        "recall": ("q", "page"),
        "jobs": ("q",),
        "health": ("q",),
    }
    assert set(asked) == {one.name for one in PAGES}
    for address, names in asked.items():
        for name in names:
            page.goto(f"{windows.console.base}{address}?{urlencode({'panel': 'supersede', name: ATTACK})}")
            nothing_ran(page)


def test_a_decision_on_a_hostile_note_is_shown_as_text(bed: Bed, windows: Windows) -> None:
    """Titles and names come back in the line that tells what was done, in the undo button and in the history."""
    known = {"kind": "preferences", "status": "pending", **dict.fromkeys(("supersedes", "group", "slug"))}
    hostile(bed, "personal-private/_review/evil.md", **known)
    page = windows.sign_in()
    for key in "rua":
        press(page, key)
        assert said(page)
        nothing_ran(page)
    page.goto(f"{windows.console.base}entry?path=evil")
    nothing_ran(page)


def evil(field: str) -> str:
    """Says in which field it stands, so that a page which does not show it is found out."""
    return f"{field}~ {ATTACK}"


def hostile_state(bed: Bed) -> None:
    """Receipts, markers, jobs, log lines and folders, as a hostile repository or program leaves them."""
    state = bed.settings.state
    name = '~"><img src=x onerror=pwned()>'
    hit = {"path": f"personal-private/decisions/slug{name}.md", "score": 0.7}
    refused = {**hit, "path": f"personal-private/near{name}.md", "why": evil("why")}
    line: dict[str, object] = {
        "at": "2026-05-04T09:00:00+00:00",
        "session": SESSION,
        "hits": [hit],
        "refused": [refused],
    }
    line |= {"injected": [hit["path"]], "ms": {evil("stage"): 3.0, "total": 4.0}, "degraded": [evil("degraded")]}
    line |= {field: evil(field) for field in ("caller", "project", "query")}
    others = [{**line, "at": evil("at")}, {**line, "session": evil("session")}]
    Path(state.receipts).write_text("".join(json.dumps(one) + "\n" for one in (line, *others)), "utf-8")

    started, why, transcript, host = map(evil, ("started", "source", "transcript", "host"))
    create_marker(state.markers, Marker(SESSION, started, why, transcript, f"/home/me/cwd{name}", host))

    times = {"started": 1.0, "ended": 2.0}
    history = [
        {**times, "attempt": evil("attempt"), "outcome": evil("outcome"), "error": evil("why-not"), "result": None},
        {**times, "attempt": 2, "outcome": "done", "error": None, "result": {evil("result"): evil("figure")}},
    ]
    arguments = json.dumps({"session": SESSION, evil("argument"): evil("value")})
    insert = (
        "INSERT INTO job (kind, args, state, attempt, run_at, created_at, finished_at, error, history)"
        " VALUES (?, ?, ?, 1, 1, 1, 2, ?, ?)"
    )
    with open_ledger(bed.settings) as ledger, ledger.transaction() as conn:
        for kind in ("reflect.session", evil("kind")):
            conn.execute(insert, (kind, arguments, "dead", evil("error"), json.dumps(history)))
        conn.execute(insert, ("reflect.session", json.dumps({"session": evil("argument")}), "queued", None, "[]"))

    now = datetime.now(UTC).isoformat()
    hook = {"time": now, "event": "hook", "hook": evil("hook"), "duration_ms": 5.0, "level": ATTACK}
    hook |= {"degraded": evil("log")}
    slot = {"time": now, "event": ATTACK, "schedule": ATTACK, "slot": ATTACK, "hook": evil("hook"), "error": ATTACK}
    Path(state.log_file).write_text(json.dumps(hook) + "\n" + json.dumps(slot) + "\n", "utf-8")
    book = SpendingBook(state.state_db, evil("purpose"))
    book.settle(book.reserve(evil("subject"), {"tokens": 9}), {"tokens": 7})

    hostile(bed, f"personal-projects/group{name}/decisions/x.md", status="active", title=ATTACK)
    reconcile_now(bed.settings)


SHOWN: Mapping[str, tuple[str, ...]] = {
    "recall": ("caller", "project", "session", "slug", "near", "why", "stage", "degraded", "at"),
    f"recall?{urlencode({'q': evil('session')})}": ("caller", "degraded"),
    "jobs": ("kind", "error", "argument"),
    "health": ("hook", "purpose"),
    "search?status=any": (),
    "search?q=pwned&weak=1&status=any": (),
}
"""Addresses, and the fields of `hostile_state` that stand there."""


def test_no_field_of_receipts_markers_jobs_and_logs_is_obeyed(bed: Bed, windows: Windows) -> None:
    hostile_state(bed)
    page = windows.sign_in()
    for address, fields in SHOWN.items():
        answer = page.goto(windows.console.base + address)
        assert answer is not None
        assert (address, answer.status) == (address, 200)
        nothing_ran(page)
        text = page.text_content("body") or ""
        assert [field for field in fields if f"{field}~" not in text] == [], address
    # What an action tells goes through htmx.
    page.goto(windows.console.base + "jobs")
    let_settle(page)
    page.click("tr:has-text('kind~') >> button[value=retry]")
    page.wait_for_selector("#said p")
    assert "kind~" in said(page)
    nothing_ran(page)


def test_a_page_of_another_server_on_this_machine_can_neither_decide_nor_read(bed: Bed, windows: Windows) -> None:
    entry = proposal(bed, "use-tabs")
    mine = windows.sign_in()
    csrf = mine.locator("input[name=csrf]").first.get_attribute("value")
    form = {"csrf": csrf, "item": entry.path, "hash": entry.content_hash, "decision": "approve"}
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in form.items())
    target = windows.console.base + "review"
    html = f'<form method="post" action="{target}/decide">{inputs}<button>go</button></form><a href="{target}">read</a>'
    with site({"/": Reply(html.encode())}) as other:
        address = other.url + "/"
        page = windows.context.new_page()  # what this page asks of others is its own business
        page.goto(address)
        page.click("button")
        assert "made by another site; nothing was done" in page.inner_text("main")
        page.goto(address)
        page.click("a")
        assert "Another site led here" in page.inner_text("main")
        page.goto(address)
        failed = page.evaluate(
            "(url) => fetch(url, {credentials: 'include'}).then(() => 'read', () => 'failed')", target
        )
        assert failed == "failed"
        page.goto(address)
        page.evaluate(
            """(url) => new Promise((done) => { const frame = document.createElement("iframe"); frame.src = url;
               frame.onload = () => done(); document.body.append(frame); })""",
            target,
        )
        (frame,) = [one for one in page.frames if one.parent_frame is not None]
        assert frame.url == "chrome-error://chromewebdata/", "the browser shows its own page in the frame"
        assert "Review" not in frame.content()
        page.close()
    assert not any("memory-console" in headers.get("cookie", "") for _, headers in other.requests)
    assert bed.store.exists(entry.path)


@pytest.mark.hurried
def test_a_window_that_is_not_signed_in_any_more_keeps_what_was_typed(bed: Bed, windows: Windows) -> None:
    proposal(bed, "use-tabs")
    page = windows.sign_in()
    page.goto(f"{windows.console.base}review?panel=edit")
    page.locator("#body").fill("Use tabs, and write this down.")
    page.context.clear_cookies()
    page.get_by_role("button", name="Approve this text").click()
    expect(page.locator("#said")).to_contain_text("not signed in")
    assert page.locator("#body").input_value() == "Use tabs, and write this down."
    assert "panel=edit" in page.url


def test_wrong_used_and_expired_links_are_told_apart_and_open_nothing(bed: Bed, browser: Browser) -> None:
    proposal(bed, "use-tabs")
    with serving(bed, link_seconds=1.0 * patience()) as made:
        context = browser.new_context()
        page = context.new_page()
        for link, why in (
            (made.base + "enter?token=wrong", "is none of this console's"),
            (made.new_link(), "is too old"),
        ):
            time.sleep(1.1 * patience())
            page.goto(link)
            assert why in page.inner_text("main")
            page.goto(made.base + "review")
            assert "not signed in" in page.inner_text("main")
        link = made.new_link()
        page.goto(link)
        page.wait_for_selector("h1")
        page.goto(link)
        assert "was used already" in page.inner_text("main")
        page.goto(made.base + "review")
        assert page.inner_text("h2 >> nth=0") == "Use tabs"
        context.close()


def test_windows_that_race_decide_each_item_once(bed: Bed, windows: Windows) -> None:
    """Both press at the same time, for many items: each has one act in the journal and lies in one place."""
    names = [f"rule-{number}" for number in range(12)]
    for name in names:
        proposal(bed, name)
    first = windows.sign_in()
    second = windows.open("review")
    script = """async (decision) => {
      const answers = [];
      const csrf = document.querySelector("input[name=csrf]").value;
      const at = location.pathname.replace(/[^/]*$/, "");
      for (const link of [...document.querySelectorAll(".queue .list a")]) {
        const page = new DOMParser().parseFromString(await (await fetch(link.href)).text(), "text/html");
        const form = page.querySelector("form.actions");
        if (!form) continue;
        const fields = new URLSearchParams(new FormData(form));
        fields.set("decision", decision);
        answers.push(fetch(at + "review/decide", {method: "POST", body: fields}).then((one) => one.status));
      }
      return Promise.all(answers);
    }"""
    for page, decision in ((first, "approve"), (second, "reject")):
        page.evaluate(f"() => {{ window.racing = ({script})({json.dumps(decision)}); }}")
    for page in (first, second):
        assert set(page.evaluate("() => window.racing")) <= {200}
    acts = [act for act in bed.journal.acts() if act.actor == "review"]
    assert sorted(act.what.split(": ")[1] for act in acts) == sorted(names)
    assert len(bed.files()) == len(names)


def test_a_worker_killed_in_mid_decision_is_ended_by_the_window_and_not_done_twice(bed: Bed, windows: Windows) -> None:
    entry = proposal(bed, "use-tabs")
    page = windows.sign_in()
    bed.decide_in_note(entry.path, "approve")
    armed = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": "journal-applied"}
    worker = forked.memory({**bed.env, **armed}, "service", "worker", "--until-idle")
    assert worker.returncode == -signal.SIGKILL, worker.stderr
    assert bed.journal.is_interrupted
    assert bed.store.exists(entry.path), "killed between the new file and the removal of the old one"
    press(page, "r")
    assert said(page) == "personal-private/_review/use-tabs.md does not wait any more"
    assert list(bed.files()) == ["personal-private/preferences/use-tabs.md"]
    assert not bed.journal.is_interrupted
