"""Scans: consent, new items, crashes, and malicious servers."""

import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from memoryvault.services import cursors
from memoryvault.services.discovery.adapting import SOURCES_NOTE
from memoryvault.services.discovery.fetch_child import FetchRequest, FetchResult, fetch, fetch_in_child
from memoryvault.services.discovery.scan import NotConfirmed, seed_sources
from memoryvault.services.state_db import state_transaction
from memoryvault.sources.discovery.github import raw_address, tree_items
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.job import Retry
from memoryvault.tasks.queue.records import Job
from memoryvault.tasks.queue.supervisor import ChildResult
from memoryvault.tests.support import forked
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.files import put
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.loopback_site import Site

from .bed import Bed, a_list


def titles(report: Any) -> list[str]:
    return [pattern.title for pattern in report.new]


# --- consent ---


def test_nothing_is_asked_before_the_user_has_confirmed(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', a_list('a'))}", confirmed="false")
    with pytest.raises(NotConfirmed, match="confirmed: true"):
        bed.scan()
    assert site.requests == []


def test_the_proposal_is_written_once_and_left_as_the_user_made_it(bed: Bed) -> None:
    discovery = bed.discovery()
    assert seed_sources(bed.store)
    text = (bed.vault / SOURCES_NOTE).read_text("utf-8")
    assert "confirmed: false" in text
    (bed.vault / SOURCES_NOTE).write_text(text.replace("false", "true"), "utf-8")
    assert not seed_sources(bed.store)
    assert discovery.note().confirmed
    assert len(discovery.note().sources) == 4


@pytest.mark.parametrize(
    ("left", "confirmed", "asked"),
    [((0, 1, 2), "false", ["/0.md"]), ((0, 2), "true", ["/0.md", "/2.md"])],
    ids=["consent is withdrawn", "a source is taken out"],
)
def test_a_change_of_the_note_during_a_scan_holds_from_the_next_request_on(
    bed: Bed, site: Site, left: tuple[int, ...], confirmed: str, asked: list[str]
) -> None:
    lines = [f"list: {site.put(f'/{n}.md', a_list('a'))}" for n in range(3)]
    bed.sources(*lines)

    def change(request: FetchRequest) -> FetchResult:
        bed.sources(*(lines[number] for number in left), confirmed=confirmed)
        return fetch(request)

    report = bed.scan(fetch=change)
    assert site.paths() == asked
    assert [source.state for source in report.sources] == ["fetched"] * len(asked)
    assert any("confirmed" in problem for problem in report.problems) is (confirmed == "false")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("---\nconfirmed: [true\n---\n- list: https://x.org\n", "line 2 can't be read"),
        ("---\nconfirmed: true\n- list: https://x.org\n", "between two lines of ---"),
    ],
)
def test_properties_that_cannot_be_read_are_told(bed: Bed, text: str, hint: str) -> None:
    put(bed.vault / SOURCES_NOTE, text)
    note = bed.discovery().note()
    assert (note.confirmed, hint in note.problems[0]) == (False, True)


def test_a_source_in_another_spelling_is_the_same_source(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', a_list('a'))}")
    bed.scan()
    site.put("/l.md", a_list("a", "b"))
    bed.sources(f"list: {site.url}/l.md?utm_source=x#readme")
    assert titles(bed.scan()) == ["b"]


# --- what is new ---


def test_a_first_scan_is_the_baseline_proposed_if_asked_and_later_ones_find_what_is_new(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', a_list('a', 'b'))}")
    first = bed.scan()
    assert (titles(first), first.sources[0].baseline) == ([], 2)
    site.put("/l.md", a_list("c", "b", "a"))
    assert titles(bed.scan()) == ["c"]
    assert titles(bed.scan()) == []
    assert titles(bed.scan(everything=True)) == ["b", "a"]
    assert titles(bed.scan(everything=True)) == []


@pytest.mark.parametrize(
    ("meanwhile", "state"),
    [(a_list("a"), "fetched"), ("Moved to another page.", "error")],
    ids=["less", "nothing, which is told"],
)
def test_what_a_list_leaves_out_for_a_while_is_not_forgotten(bed: Bed, site: Site, meanwhile: str, state: str) -> None:
    bed.sources(f"list: {site.put('/l.md', a_list('a', 'b'))}")
    bed.scan()
    site.put("/l.md", meanwhile)
    assert bed.scan(everything=True).sources[0].state == state
    site.put("/l.md", a_list("a", "b", "c"))
    assert titles(bed.scan()) == ["c"]


def test_items_of_a_list_are_stored_in_one_transaction(bed: Bed, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction waits for the disk: two thousand entries took half a minute."""
    bed.sources(f"list: {site.put('/l.md', a_list(*(f's-{n}' for n in range(100))))}")
    transactions = 0

    def counted(path: Path | str) -> AbstractContextManager[sqlite3.Connection]:
        nonlocal transactions
        transactions += 1
        return state_transaction(path)

    monkeypatch.setattr(cursors, "state_transaction", counted)
    assert len(bed.scan(everything=True).new) == 100
    assert transactions < 20


@pytest.mark.parametrize(
    "body",
    ["", "# List\n\nWe are moving.\n", "<html><body><h1>Back soon</h1><p>Maintenance.</p></body></html>"],
    ids=["empty", "prose", "another page"],
)
def test_a_list_that_lists_nothing_is_no_baseline_and_is_told(bed: Bed, site: Site, body: str) -> None:
    """Otherwise all items would be new at the next scan, when the page is back."""
    bed.sources(f"list: {site.put('/l.md', body)}")
    (source,) = bed.scan().sources
    assert (source.state, "lists nothing" in source.detail, source.again_at) == ("error", True, None)
    site.put("/l.md", a_list("a", "b"))
    (source,) = bed.scan().sources
    assert (source.new, source.baseline) == ((), 2)


def test_links_of_a_list_are_relative_to_where_it_was_found(bed: Bed, site: Site) -> None:
    """Many servers redirect a folder's address to the same address with a slash."""
    site.put("/skills", "", 301, location="/skills/")
    site.put("/skills/", "- [Alpha](a/alpha.md) - a skill\n- [Beta](/beta.md) - a skill\n")
    bed.sources(f"list: {site.url}/skills")
    assert [pattern.url for pattern in bed.scan(everything=True).new] == [
        site.url + "/skills/a/alpha.md",
        site.url + "/beta.md",
    ]


def test_a_feed_may_have_no_entry_yet(bed: Bed, site: Site) -> None:
    bed.sources(f"feed: {site.put('/f', '<rss><channel></channel></rss>')}")
    assert bed.scan().sources[0].state == "fetched"


def bare_feed(*entries: str) -> str:
    """A feed of titles without day and text; each entry is `host/place Title`."""
    body = ""
    for entry in entries:
        place, _, title = entry.partition(" ")
        body += f"<item><title>{title}</title><link>https://{place}</link><guid>https://{place}</guid></item>"
    return f"<rss version='2.0'><channel>{body}</channel></rss>"


OLD = [f"b.org/{n} {title}" for n, title in enumerate(("Hooks", "Skills", "Evals", "Weekly"))]
MOVED = [f"new.example/blog/{entry.partition('/')[2]}" for entry in OLD]


@pytest.mark.parametrize(
    ("later", "new"),
    [
        ([MOVED], [[]]),
        ([["new.example/blog/9 Traces", *MOVED], MOVED], [["Traces"], []]),
        ([MOVED, [entry.replace("new", "newest") for entry in MOVED]], [[], []]),
        ([["b.org/9 Weekly", *OLD]], [["Weekly"]]),
        ([["b.org/9 Weekly", "b.org/8 Hooks", "b.org/7 Evals", OLD[0]]], [["Weekly", "Hooks", "Evals"]]),
        ([["b.org/9 Weekly"], ["b.org/8 Weekly", "b.org/7 Hooks"]], [["Weekly"], ["Weekly", "Hooks"]]),
        ([[*MOVED[:3], *(f"new.example/{n} Title {n}" for n in range(4))]], [["Hooks", "Skills", "Evals"]]),
    ],
    ids=["moved", "moved, and one more", "moved twice", "a title recurs", "titles recur beside one known",
         "too few titles to tell", "most titles are new"],
)  # fmt: skip
def test_a_feed_of_bare_titles_that_moves_brings_only_what_is_new(
    bed: Bed, site: Site, later: list[list[str]], new: list[list[str]]
) -> None:
    bed.sources(f"feed: {site.put('/f.xml', bare_feed(*OLD))}")
    bed.scan()
    for entries, expected in zip(later, new, strict=True):
        site.put("/f.xml", bare_feed(*entries))
        assert [title for title in titles(bed.scan()) if not title.startswith("Title")] == expected


def test_feeds_topics_and_folders_are_sources_too(bed: Bed, site: Site) -> None:
    feed = "<rss version='2.0'><channel>{}</channel></rss>"
    entry = "<item><title>{0}</title><link>https://b.org/{0}</link></item>"
    skills = bed.root / "skills"
    site.put("/f.xml", feed.format(entry.format("one")))
    site.put("/search/repositories", json.dumps({"items": [{"full_name": "o/old", "description": "x"}]}))
    bed.sources(f"feed: {site.url}/f.xml", "topic: claude-code", f"folder: {skills}")
    skills.mkdir()
    bed.scan()
    site.put("/f.xml", feed.format(entry.format("two") + entry.format("one")))
    items = [{"full_name": name, "description": "x"} for name in ("o/new", "o/old", "../../etc", 7)]
    site.put("/search/repositories", json.dumps({"items": items}))
    put(skills / "tool" / "SKILL.md", "---\nname: my-tool\ndescription: Does it\n---\nText")
    put(skills / "broken" / "SKILL.md", "---\nname: [x\n---")
    put(skills / "bomb" / "SKILL.md", "---\na: &a [x]\nname: bomb\nb: [*a, *a]\n---")
    assert titles(bed.scan()) == ["two", "new", "bomb", "broken", "my-tool"]
    assert "topic%3Aclaude-code" in next(path for path in site.paths() if path.startswith("/search"))


def test_a_folder_on_github_holds_what_lies_below_it_not_beside_it() -> None:
    paths = ["skills/a/SKILL.md", "skills-archive/b/SKILL.md", "skills/SKILL.md", "other/c/SKILL.md"]
    body = json.dumps({"tree": [{"path": path} for path in paths]}).encode()
    items = tree_items(body, "https://github.com/o/r/tree/main/skills")
    assert [item.title for item in items] == ["a", "skills"]


def test_pages_on_github_are_read_as_raw_files() -> None:
    raw = "https://raw.githubusercontent.com/o/r"
    assert raw_address("https://github.com/o/r") == f"{raw}/HEAD/README.md"
    assert raw_address("https://github.com/o/r/blob/dev/docs/list.md") == f"{raw}/dev/docs/list.md"
    assert raw_address("https://github.com/o/r/tree/dev/docs") == f"{raw}/dev/docs/README.md"
    assert raw_address("https://example.org/o/r") == "https://example.org/o/r"


# --- failures ---


def test_a_source_that_fails_leaves_the_others_alone(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.url}/missing", f"list: {site.put('/l.md', a_list('a'))}")
    report = bed.scan()
    assert [source.state for source in report.sources] == ["error", "fetched"]
    assert "404" in report.sources[0].detail


NO_LINKS = "<rss><channel><item><title>one-{n}</title><guid isPermaLink='false'>{n}</guid></item></channel></rss>"


def test_token_is_not_in_items_that_take_the_address_of_the_page(bed: Bed, site: Site) -> None:
    """It would end up in the pattern's note."""
    site.put("/page", NO_LINKS.format(n=1))
    bed.sources(f"feed: {site.url}/page?k=my-own-secret")
    bed.scan()
    site.put("/page", NO_LINKS.format(n=2))
    (new,) = bed.scan().new
    assert (new.title, new.url) == ("one-2", site.url + "/page")


@pytest.mark.parametrize(
    "rest", ["?token={}&page=2", "?api_key={}", "?keyword=tea#myToken={}", "?X-Amz-Signature={}", "/a?sig={}"]
)
def test_a_token_in_the_address_of_a_pattern_is_neither_kept_nor_shown(bed: Bed, site: Site, rest: str) -> None:
    address = f"https://ann:hush7@x.example/{rest.format('hush7')}"
    bed.sources(f"list: {site.put('/l.md', f'# List{chr(10)}- [one]({address}) - See <{address}>, a skill.{chr(10)}')}")
    (new,) = bed.scan(everything=True).new
    assert new.url == f"https://x.example/{rest.format('[REDACTED-API-KEY]')}"
    assert "hush7" not in str(new)
    assert b"hush7" not in b"".join(path.read_bytes() for path in Path(bed.settings.state.root).glob("state.db*"))


@pytest.mark.parametrize("problem", ["missing", "no feed", "hangs", "bursts"])
def test_the_token_in_the_address_of_a_feed_is_in_no_message(bed: Bed, site: Site, problem: str) -> None:
    def run(*_: object, **__: object) -> ChildResult:
        if problem == "hangs":
            raise Retry("the child took too long")
        return ChildResult("exited", 1, b"", "", 0.1)

    if problem == "no feed":
        site.put("/feed.xml", "no feed")
    bed.sources(f"feed: {site.url}/feed.xml?token=c0ffee")
    fetched = fetch if problem in ("missing", "no feed") else fetch_in_child(bed.settings, run)
    (source,) = bed.scan(fetch=fetched).sources
    assert source.state == "error"
    assert "/feed.xml" in source.detail
    assert "c0ffee" not in source.detail


@pytest.mark.slow
def test_a_failure_is_told_once_and_in_one_line(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.url}/missing")
    done = forked.memory(bed.env, "skills", "discover")
    assert (done.returncode, done.stdout.count("\n"), done.stderr.count("\n")) == (1, 1, 1)
    assert done.stderr.startswith("memory: ")
    assert "status 404" in done.stderr


@pytest.mark.slow
def test_a_source_is_shown_with_its_address_without_what_may_be_a_token(
    bed: Bed, site: Site, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    """Most slugs are meaningless: `url-1c2d3e4f`."""
    bed.enter(monkeypatch)
    gone = site.url.replace("127.0.0.1", "localhost") + "/gone.xml"
    bed.sources(f"list: {site.put('/l.md', a_list('one'))}?token=hush", f"feed: {gone}")
    listed, missing = memory("skills", "discover", code=1).out.splitlines()
    assert f"  <{site.url}/l.md>: first scan" in listed
    assert f"  <{gone}>: could not be read" in missing
    assert "hush" not in listed


# --- crashes ---


@pytest.mark.once
@pytest.mark.slow
def test_killed_after_a_note_was_written_nothing_is_lost_and_nothing_doubled(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', a_list('a-skill'))}")
    bed.scan()
    site.put("/l.md", a_list("a-skill", "b-skill"))

    def command(word: str, kill: str = "") -> int:
        armed = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill} if kill else {}
        return forked.memory({**bed.env, **armed}, "skills", word).returncode

    assert [command("discover"), command("adapt", "journal-recorded")] == [0, -9]
    assert [command("discover"), command("adapt")] == [0, 0]
    assert [note.slug for note in bed.notes()] == ["b-skill"]


def test_a_scan_that_ended_early_finds_the_same_again(bed: Bed, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.sources(f"list: {site.put('/l.md', a_list('a-skill'))}")
    bed.scan()
    site.put("/l.md", a_list("a-skill", "b-skill"))
    set_cursor = cursors.Cursors.set

    def end_at_a_source(scan: cursors.Cursors, source: str, value: Mapping[str, Any]) -> None:
        if not source.startswith("host:"):
            raise KeyboardInterrupt
        set_cursor(scan, source, value)

    monkeypatch.setattr(cursors.Cursors, "set", end_at_a_source)
    with pytest.raises(KeyboardInterrupt):
        bed.scan()
    monkeypatch.undo()
    bed.scan()
    bed.adapt()
    assert [note.slug for note in bed.notes()] == ["b-skill"]


# --- a server that means harm ---


def test_a_public_source_may_not_lead_to_the_own_machine(bed: Bed) -> None:
    seen: list[FetchRequest] = []

    def fetch(request: FetchRequest) -> FetchResult:
        seen.append(request)
        return FetchResult()

    bed.sources("list: https://example.org/list.md", "feed: https://localhost.example.org/f.xml")
    bed.scan(fetch=fetch)
    assert [request.allow for request in seen] == [(), ()]


# --- the worker ---


def run_worker(bed: Bed, *before: str) -> None:
    """Run these commands, and then all that is due, in a real worker."""
    for line in (*before, "service worker --until-idle"):
        done = forked.memory(bed.env, *line.split())
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_worker_scans_when_it_is_due_and_writes_the_notes(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', a_list('a-skill'))}")
    bed.scan()
    site.put("/l.md", a_list("a-skill", "agent-hook"))
    run_worker(bed, "jobs schedule run discovery")
    assert [note.path for note in bed.notes()] == [
        f"personal-private/_skill-watchlist/{bed.scan().sources[0].source.slug}/agent-hook.md"
    ]


@pytest.mark.slow
@pytest.mark.hurried
def test_a_source_that_failed_is_asked_again_when_its_host_allows_not_only_next_week(bed: Bed, site: Site) -> None:
    """Both on one host, so that the second could not be asked either; the third is a folder, which is read."""
    folder = bed.root / "skills" / "one"
    put(folder / "SKILL.md", "---\nname: one\ndescription: d\n---\n")
    bed.sources(
        f"list: {site.put('/fails.md', 'x', status=503, retry_after=f'{4 * patience():.0f}')}",
        f"list: {site.put('/l.md', a_list('a-skill'))}",
        f"folder: {folder.parent}",
    )
    run_worker(bed, "jobs schedule run discovery")
    assert site.paths() == ["/fails.md"]
    (waiting,) = waiting_scans(bed)
    assert 2.0 * patience() < waiting.run_at - waiting.created_at
    assert waiting.run_at - time.time() <= 4.5 * patience()
    site.put("/fails.md", a_list("b-skill"))
    time.sleep(4.5 * patience())
    run_worker(bed)
    assert sorted(site.paths()) == ["/fails.md", "/fails.md", "/l.md"]
    assert waiting_scans(bed) == []


@pytest.mark.slow
def test_a_page_that_is_missing_waits_for_the_next_week_even_if_it_is_the_only_source(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/gone.md', 'x', status=410)}")
    run_worker(bed, "jobs schedule run discovery")
    assert site.paths() == ["/gone.md"]
    assert waiting_scans(bed) == []


def waiting_scans(bed: Bed) -> list[Job]:
    with open_ledger(bed.settings) as ledger:
        return ledger.list_jobs(["queued"], kind="discover.scan")


# How often a host is asked, and how long it is left alone after a failure or on its request


DAY = 86_400.0


def test_requests_to_one_host_keep_their_distance(bed: Bed, site: Site) -> None:
    bed.sources(*(f"list: {site.put(f'/{n}.md', a_list('a'))}" for n in range(3)))
    bed.scan()
    assert bed.clock.pauses == [2.0, 2.0]


def test_a_host_that_fails_is_left_alone_for_longer_each_time_also_by_the_next_process(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', 'x', status=503)}")
    waited = []
    for _ in range(3):
        assert bed.scan().sources[0].state == "error"
        report = bed.scan()
        assert report.sources[0].state == "waiting"
        assert report.again_at is not None
        waited.append(report.again_at - bed.clock.now)
        bed.clock.now = report.again_at + 1
    assert waited == [300.0, 600.0, 1200.0]
    assert len(site.requests) == 3
    site.put("/l.md", a_list("a"))
    assert bed.scan().sources[0].state == "fetched"


def test_retry_after_is_kept_to(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', 'x', status=429, retry_after='7200')}")
    bed.scan()
    assert bed.scan().again_at == bed.clock.now + 7200


@pytest.mark.parametrize(
    ("unit", "most"),
    [(1, 900.0), (1000, DAY), (10**400, 3600.0)],
    ids=["in a quarter of an hour", "milliseconds", "no number"],
)
def test_a_host_is_asked_again_with_a_new_allowance_within_a_day(bed: Bed, site: Site, unit: int, most: float) -> None:
    reset = str(int(time.time() + 900) * unit)[:400]
    body = json.dumps({"items": []})
    site.put("/search/repositories", body, status=403, x_ratelimit_remaining="0", x_ratelimit_reset=reset)
    bed.sources("topic: a", "topic: b")
    report = bed.scan()
    states = [source.state for source in report.sources]
    assert states == ["error", "waiting"]
    assert report.again_at is not None
    assert bed.clock.now < report.again_at <= bed.clock.now + most
    bed.clock.now = report.again_at + 1
    assert bed.scan().sources[0].state != "waiting"


def test_a_host_that_failed_while_the_clock_was_years_ahead_may_be_asked(bed: Bed, site: Site) -> None:
    right = bed.clock.now
    bed.sources(f"list: {site.put('/l.md', 'x', status=503)}")
    bed.clock.now += 3 * 365 * DAY
    bed.scan()
    site.put("/l.md", a_list("a"))
    bed.clock.now = right
    assert bed.scan().sources[0].state == "fetched"


def test_a_host_that_says_at_once_again_and_again_is_taken_at_its_word_once(bed: Bed, site: Site) -> None:
    """Otherwise all attempts of a job would be used up within seconds."""
    bed.sources(f"list: {site.put('/l.md', 'x', status=429, retry_after='0')}")
    waited = []
    for _ in range(4):
        report = bed.scan()
        assert report.again_at is not None
        waited.append(report.again_at - bed.clock.now)
        bed.clock.now = report.again_at + 1
    assert waited == [2.0, 300.0, 600.0, 1200.0]
