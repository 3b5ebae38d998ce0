"""Feeds: RSS, Atom, damaged ones, and malicious ones."""

import tarfile
import time
from contextlib import suppress
from itertools import permutations, product
from typing import Any

import pytest

from memoryvault.pipelines.discovery import MOST_KNOWN, novelty
from memoryvault.sources.discovery.feeds import FeedInvalid, feed_items
from memoryvault.sources.discovery.source_item import SourceItem
from memoryvault.tests.support.shared_data import shared_data

BASE = "https://b.org/blog/feed"

RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>B</title>
<item><title>Hooks &amp; skills</title><link>https://b.org/1</link><guid isPermaLink="false">g1</guid>
<description>
&lt;p&gt;How we &lt;b&gt;test&lt;/b&gt;&lt;script&gt;steal()&lt;/script&gt; them&lt;/p&gt;</description></item>
<item><title>Relative</title><link>/2</link></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><id>f</id><entry><id>urn:1</id>
<title type="html">A &lt;i&gt;b&lt;/i&gt;</title>
<link rel="alternate" href="https://b.org/1"/><published>2026-08-01T23:30:00Z</published>
<summary>Text</summary></entry></feed>"""


def test_rss() -> None:
    first, second = feed_items(RSS, BASE, "application/rss+xml")
    assert (first.title, first.url, first.identity) == ("Hooks & skills", "https://b.org/1", "g1")
    assert first.description == "How we test them"
    assert second.url == "https://b.org/2"


def test_atom() -> None:
    (item,) = feed_items(ATOM, BASE, "application/atom+xml")
    assert (item.title, item.url, item.description, item.identity) == ("A b", "https://b.org/1", "Text", "urn:1")
    assert item.day == "2026-08-01"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("&#55357;&#56832;", "\U0001f600"),
        ("&#xD83D;&#xDE00;", "\U0001f600"),
        ("&#xD800;", "\ufffd"),
        ("&#xFFFFFFFF;", "\ufffd"),
    ],
)
def test_a_reference_to_no_character_does_not_hide_the_feed(written: str, read: str) -> None:
    """Many programs write an emoji as two UTF-16 surrogates."""
    body = (
        f"<rss><channel><item><title>A</title><description>smile {written} now</description>"
        "<link>https://x.org/a</link></item></channel></rss>"
    )
    (item,) = feed_items(body.encode(), "https://x.org/feed.xml")
    assert item.description == f"smile {read} now"


def test_a_relative_link_of_a_feed_drops_the_key_in_its_address() -> None:
    body = b"<rss><channel><item><title>A</title><link>#a</link></item></channel></rss>"
    (item,) = feed_items(body, "https://b.org/feed.xml?k=my-own-secret")
    assert item.url == "https://b.org/feed.xml#a"


def test_an_invalid_address_hides_only_its_own_entry() -> None:
    draft = b"<item><title>Draft</title><link>https://[draft]/x</link></item>"
    script = b"<item><title>S</title><link>javascript:alert(1)</link></item>"
    read = feed_items(RSS.replace(b"<item>", draft + script + b"<item>", 1), BASE)
    assert [item.url for item in read] == [BASE, "https://b.org/1", "https://b.org/2"]
    (first, *_) = feed_items(RSS.replace(b"<channel>", b"<channel><link>https://[draft]/</link>"), BASE)
    assert first.url == "https://b.org/1"


@pytest.mark.parametrize(
    "body",
    [
        RSS[: RSS.index(b"<item><title>Relative") + 40],
        RSS.replace(b"&amp;", b"&"),
        RSS.replace(b'<?xml version="1.0"?>', b"\n\n  <!-- hm --> "),
        RSS.replace(b"skills", b"skills\x01\xff\xfe"),
        RSS.replace(b"version=\"1.0\"?>", b"version=\"1.0\" encoding=\"utf-16\"?>"),
        RSS.replace(b"<rss", b'<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://x.org/rss.dtd"><rss'),
    ],
)  # fmt: skip
def test_a_damaged_feed_gives_what_it_has(body: bytes) -> None:
    assert feed_items(body, BASE)[0].url == "https://b.org/1"


@pytest.mark.parametrize("body", [b"", b"<html><body>Not found</body></html>", b"{}", b"[1]", b"{", bytes(range(256))])
def test_page_that_is_not_a_feed_is_an_error(body: bytes) -> None:
    with pytest.raises(FeedInvalid):
        feed_items(body, BASE, "application/json" if body[:1] == b"[" else "")


def billion_laughs() -> bytes:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    declared = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "ha">{laughs}]>'
    return f"{declared}<rss><channel><title>&l9;</title></channel></rss>".encode()


QUADRATIC = b'<!DOCTYPE r [<!ENTITY a "' + b"a" * 100_000 + b'">]><rss><title>' + b"&a;" * 30_000 + b"</title></rss>"
EXTERNAL = b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss><channel><title>&x;</title></channel></rss>'


@pytest.mark.parametrize(
    "body",
    [
        billion_laughs(),
        ('<?xml version="1.0" encoding="utf-16"?>' + QUADRATIC.decode()).encode("utf-16"),
        b'<?xml version="1.0" encoding="utf-7"?>' + QUADRATIC.replace(b"<!", b"+ADwAIQ-"),
        ('<?xml version="1.0" encoding="cp037"?>' + QUADRATIC.decode()).encode("cp037"),
        QUADRATIC,
        EXTERNAL,
        b'<!DOCTYPE r [<!ENTITY % p SYSTEM "http://x.org/p.dtd"> %p;]><rss/>',
    ],
    ids=["billion laughs", "UTF-16", "UTF-7", "EBCDIC", "quadratic blow-up", "a file", "parameter entity"],
)
def test_a_feed_that_declares_entities_is_refused(body: bytes) -> None:
    started = time.process_time()
    with pytest.raises(FeedInvalid, match="entities"):
        feed_items(body, BASE, "application/rss+xml")
    assert time.process_time() - started < 1.0


def test_a_feed_whose_tag_is_crowded_with_attributes_is_refused() -> None:
    crowded = b"<rss " + b"".join(b'a%d="x" ' % number for number in range(200_000)) + b"><channel/></rss>"
    started = time.process_time()
    with pytest.raises(FeedInvalid, match="attributes"):
        feed_items(crowded, BASE, "application/rss+xml")
    assert time.process_time() - started < 1.0
    picture = b'<![CDATA[<img src="data:image/png;base64,' + b"A" * 200_000 + b'==">]]>'
    assert feed_items(RSS.replace(b"</title>", b"</title><description>" + picture + b"</description>", 1), BASE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"<rss><channel>" + b"<a>" * 30_000,
        b"<rss><channel><item><description>" + b"<" * 500_000,
        b"<rss><channel><item><title>" + b"<![CDATA[" * 50_000,
        b'{"items":' + b"[" * 200_000,
    ],
)
def test_no_feed_takes_more_than_seconds(body: bytes) -> None:
    started = time.process_time()
    with suppress(FeedInvalid):
        feed_items(body, BASE)
    assert time.process_time() - started < 20.0


@pytest.mark.slow
def test_real_feeds_are_read() -> None:
    with tarfile.open(shared_data("feeds/feeds.tar.gz")) as archive:
        feeds = [member for member in archive.getmembers() if member.isfile() and not member.name.endswith("LICENSE")]
        assert feeds
        for member in feeds:
            file = archive.extractfile(member)
            assert file is not None
            items = feed_items(file.read(), BASE)
            assert items, member.name
            assert all(item.title and item.url.startswith("http") for item in items)


def new_of(*weeks: str) -> list[list[str]]:
    """Return the titles that each week's RSS items add."""
    known: tuple[str, ...] = ()
    found = []
    for week in weeks:
        body = f"<rss version='2.0'><channel><link>https://b.org/</link>{week}</channel></rss>".encode()
        brought = novelty(feed_items(body, "https://b.org/feed.xml"), known, "s")
        known = brought.known
        found.append([pattern.title for pattern in brought.new])
    return found


def entry(title: str, link: str = "", guid: str = "", description: str = "", pubDate: str = "") -> str:
    parts = {"title": title, "link": link, "guid": guid, "description": description, "pubDate": pubDate}
    return f"<item>{''.join(f'<{name}>{text}</{name}>' for name, text in parts.items() if text)}</item>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (entry("A", "https://b.org/a", "1"), entry("A", "https://b.org/a", "2")),
        (entry("A", "https://b.org/a", "1"), entry("A, corrected", "https://b.org/a", "2")),
        (entry("A", "https://b.org/a", "1"), entry("A, corrected", "https://b.org/2026/a", "1")),
        (entry("A", "https://b.org/a"), entry("A, corrected", "http://www.b.org/a/?utm_source=rss")),
        (entry("A", "https://b.org/a", "http://b.org/?p=1"), entry("A", "https://b.org/2026/a", "https://b.org/?p=1")),
        (entry("A", guid="tag:1"), entry("A, corrected", guid="tag:1")),
    ],
    ids=["other id", "other id and title", "other address", "no id", "id in another spelling", "no address"],
)
def test_an_entry_that_changes_is_not_new(before: str, after: str) -> None:
    assert new_of(before, after) == [["A"], []]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (entry("A", "https://b.org/", "1"), entry("B", "https://b.org/", "2")),
        (entry("A", "https://b.org/log#v1"), entry("B", "https://b.org/log#v2")),
        (entry("A", "https://b.org/a", "x"), entry("B", "https://b.org/b", "x")),
        (entry("A", guid="tag:1"), entry("B", guid="tag:2")),
        (entry("A"), entry("B")),
    ],
    ids=["one address for all", "chapters of one page", "one id for all", "no address", "neither"],
)
def test_entries_with_the_same_id_or_address_are_distinguished(old: str, new: str) -> None:
    assert new_of(old, new + old, new + old) == [["A"], ["B"], []]


def renewed(number: int, fetch: int, title: str, description: str) -> SourceItem:
    """An entry in a feed that makes up ids and addresses at each fetch."""
    return SourceItem(f"https://b.org/{fetch}/{number}", title, description, identity=f"urn:{fetch}:{number}")


def notes(number: int, month: str) -> SourceItem:
    """Many feeds call each entry "Release notes"."""
    return renewed(number, number, "Notes", f"Of {month}." if month else "")


ON_A_DAY = [SourceItem(f"https://b.org/{n}", "Notes", identity=f"urn:{n}", day="2026-08-01") for n in (1, 2)]


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ([notes(1, "July")], [notes(2, "July"), renewed(3, 2, "Links", "Of July.")], ["Links"]),
        ([notes(1, "July")], [notes(1, "July"), notes(2, "July")], ["Notes"]),
        (ON_A_DAY[:1], ON_A_DAY[::-1], ["Notes"]),
        ([notes(1, "July")], [notes(2, "August")], ["Notes"]),
        ([notes(1, "July"), notes(2, "")], [notes(3, "August"), notes(1, "July"), notes(2, "")], ["Notes"]),
        ([notes(1, "July"), renewed(2, 1, "Links", "")], [notes(3, "August"), renewed(2, 1, "Links", "")], ["Notes"]),
        ([notes(1, "June"), notes(2, "July")], [notes(3, "August"), notes(4, "September")], ["Notes", "Notes"]),
    ],
    ids=["the same text", "the text of one still listed", "twice on a day", "another text", "one more", "in place",
         "two in place"],
)  # fmt: skip
def test_an_entry_under_another_id_and_address_is_known_by_title_and_text_unless_both_are_listed(
    before: list[SourceItem], after: list[SourceItem], new: list[str]
) -> None:
    known = novelty(before, (), "s").known
    assert [pattern.title for pattern in novelty(after, known, "s").new] == new


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    "address", ["posts/{week}/{title}", "{week}-{title}", "{title}/{week}", "?p={week}{title}", ""]
)
def test_a_feed_whose_titles_recur_brings_each_week_something_new(address: str, told: bool, dated: bool) -> None:
    """Each week has its own ids, links and, mostly, texts. Some weeks say nothing, or have one entry more."""

    def fetched(week: int) -> list[SourceItem]:
        body = ""
        for title in ("Tools of the week", "Prompts of the week", *(["Jobs of the week"] if week % 2 else [])):
            place = address.format(week=week, title=title.split()[0].lower())
            link = f"https://b.org/{place}" if place else ""
            text = f"What we liked in week {week}." if told and week % 3 else ""
            day = f"{week - 30} Aug 2026 08:00:00 GMT" if dated else ""
            body += entry(title, link, f"tag:{week} {title}", text, day)
        return feed_items(f'<rss version="2.0"><channel>{body}</channel></rss>'.encode(), BASE)

    known: tuple[str, ...] = ()
    for week in range(40, 48):
        found = novelty(fetched(week), known, "s")
        assert [pattern.title for pattern in found.new] == [item.title for item in fetched(week)], week
        assert novelty(fetched(week), found.known, "s").new == ()
        known = found.known


def test_a_title_that_recurs_with_a_link_to_each_time_another_site_is_new() -> None:
    weeks = [entry("Tool of the week", f"https://{site}.example/", site) for site in ("adze", "plane", "saw")]
    assert new_of(*weeks) == [["Tool of the week"]] * 3


ENTRIES = [("Fast hooks", "1", "How to start."), ("Slow hooks", "2", "How not to."), ("Evals in CI", "3", "Measure.")]


def feed(form: str, *, named: bool, linked: bool, told: bool, host: str = "b.org", more: str = "") -> list[SourceItem]:
    """A feed with or without ids, links and descriptions. Each entry has its day."""
    body = ""
    for title, number, text in [*ENTRIES, *([(more, "4", "New.")] if more else [])]:
        link, summary = f"https://{host}/p/{number}" if linked else "", text if told else ""
        if form == "atom":
            id_ = f"<id>urn:{number}</id>" if named else ""
            rest = (f'<link href="{link}"/>' if link else "") + (f"<summary>{summary}</summary>" if told else "")
            rest += f"<published>2026-08-0{number}T23:30:00Z</published>"
            body += f"<entry>{id_}<title>{title}</title>{rest}</entry>"
        else:
            body += entry(title, link, f"tag:{number}" if named else "", summary, f"0{number} Aug 2026 23:30:00 GMT")
    start = '<feed xmlns="http://www.w3.org/2005/Atom">' if form == "atom" else '<rss version="2.0"><channel>'
    return feed_items((start + body + ("</feed>" if form == "atom" else "</channel></rss>")).encode(), BASE)


def test_a_feed_that_changes_its_form_is_known_by_its_titles_and_days() -> None:
    """It drops its ids or links, gets other ids, gains descriptions, becomes Atom, moves, or all of that at once."""
    forms: list[dict[str, Any]] = [
        {"form": form, "named": named, "linked": linked, "told": told, "host": host}
        for form in ("rss", "atom")
        for named, linked, told in product((True, False), repeat=3)
        for host in ("b.org", "new.example")
    ]
    before = [novelty(feed(**form), (), "s").known for form in forms]
    after = [feed(**form, more="Skills") for form in forms]
    for old, new in permutations(range(len(forms)), 2):
        found = novelty(after[new], before[old], "s")
        assert [pattern.title for pattern in found.new] == ["Skills"], (forms[old], forms[new])
        assert novelty(after[new], found.known, "s").new == ()


def test_known_entries_of_a_feed_are_limited() -> None:
    known: tuple[str, ...] = ()
    for fetch in range(5):
        listed = [renewed(number, fetch, f"Title {fetch} {number}", "Its own text.") for number in range(2_000)]
        known = novelty(listed, known, "s").known
        assert novelty(listed, known, "s").new == (), "nothing that is still listed comes twice"
    assert len(known) <= MOST_KNOWN + 5 * 2_000 + 2
    last = [renewed(number, 4, f"Title 4 {number}", "Its own text.") for number in range(2_000)]
    assert novelty(last, novelty([], known, "s").known, "s").new == (), "nor what is gone for a while"
