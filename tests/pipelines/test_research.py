"""What is asked, followed and kept in research."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoryvault.pipelines.research import (
    MOST_QUERY_WORDS,
    RECEIPT_END,
    one_line,
    query_of,
    quoted,
    receipt_text,
    related_text,
    safe_link,
    summary_of,
    typed_links,
    with_receipt,
    within_tokens,
    without_receipt,
)
from memoryvault.vault.evidence import NOT_TYPED, RECEIPT_HEADING, strip_evidence
from memoryvault.vault.render import estimate_tokens

PAGE = """
The history of the town begins in the year 1200. Soil moisture decides when tomatoes are watered. Our shop is
closed on Mondays for the whole winter. A robot can water tomatoes at night when the soil is dry. Cookies make this
site work better for everyone. Moisture sensors in the soil drift with heat, so the robot must calibrate them.
"""


def test_a_query_is_a_few_words_of_the_title_and_what_recurs() -> None:
    query = query_of("A watering robot", "The robot could check the soil; the soil sensor tells it. Perhaps later.")
    assert query.split()[:2] == ["watering", "robot"]
    assert "soil" in query
    assert len(query.split()) <= MOST_QUERY_WORDS


@pytest.mark.parametrize(
    "text", ["[REDACTED-EMAIL]", "https://intranet.example/wiki/apollo", "host42 db_password v1.2.3", "shop-backend"]
)
def test_private_words_and_names_of_machines_are_not_in_a_query(text: str) -> None:
    query = query_of("Watering robot", f"Look at {text}", private=["shop-backend"])
    for word in ("redacted", "email", "intranet", "apollo", "host42", "password", "shop", "backend"):
        assert word not in query


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Acme’s", "acme"),
        ("2024acme", "acme"),
        ("x" * 31 + "acme", "acme"),
        ("MemoryVault", "memory-vault"),
        ("Vault", "memory-vault"),
        ("Café", "cafe"),
        ("MÜLLER-Shop", "muller-shop"),
        ("ＡＣＭＥ", "acme"),
        ("Acmeの", "acme"),
        ("Straße", "strasse"),
        ("秘密プロジェクトacme", "acme-秘密プロジェクト"),
    ],
)
def test_a_private_name_is_in_no_query_however_it_is_written(text: str, name: str) -> None:
    """A project is known by the folder's name without accents."""
    words = query_of(f"Watering {text} robot", text, private=[name]).split()
    assert words[0] == "watering"
    assert {"robot", "の"}.issuperset(words[1:])


@pytest.mark.parametrize(
    ("title", "text", "query"),
    [
        ("温室的番茄需要在夜间浇水机器人自动完成全部工作", "番茄番茄浇水", "温室的番茄需要在夜间"),
        ("番茄 Watering robot", "土壤", "番茄 watering robot 土壤"),
        ("デプロイ", "サーバーを再起動する仕組みについて考えたい", "デプロイ サーバー"),
        ("Watering robot", "Ask 10prodhost or _internal or 3x-prodhost", "watering robot ask"),
        ("Watering HTTPS://example.org/wiki_(apollo(moon robot", "", "watering robot"),
    ],
)
def test_two_cjk_letters_are_a_word_the_rest_of_a_name_or_address_is_none(title: str, text: str, query: str) -> None:
    assert query_of(title, text) == query


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_text_gives_a_short_query(title: str, summary: str) -> None:
    words = query_of(title, summary).split()
    assert len(words) <= MOST_QUERY_WORDS
    assert all(len(word) <= 30 for word in words)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://example.org/a?page=2#part", "https://example.org/a?page=2"),
        ("http://example.org/a", "https://example.org/a"),
        ("https://example.org/a?access_token=x1", "https://example.org/a"),
        ("https://example.org/a?x=k3Jx9Qm2Lw8Zr5Tn7Vb4", "https://example.org/a"),
        ("https://example.org/a?0123456789abcdef", "https://example.org/a"),
        ("https://user:pw@example.org/a", None),
        ("https://example.org/[REDACTED-API-KEY]", None),
        ("https://example.org:99999/", None),
    ],
)
def test_a_link_is_requested_without_parts_that_may_be_secret(url: str, asked: str | None) -> None:
    assert safe_link(url) == asked


def test_links_are_those_of_the_quoted_words_of_the_user() -> None:
    body = (
        "An idea, see https://example.org/agent\n\n## Evidence\n\nProposed because: https://example.org/why\n\n"
        "> I read (https://example.org/a), and https://example.org/b.\n> again https://example.org/a\n"
    )
    assert typed_links(body, written_by_agent=False) == ["https://example.org/a", "https://example.org/b"]
    assert typed_links(body, written_by_agent=True) == []
    assert typed_links("See https://example.org/a", written_by_agent=False) == ["https://example.org/a"]


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("See https://example.org/Rust_(language).", "https://example.org/Rust_(language)"),
        ("[it](https://example.org/Rust_(language)) says", "https://example.org/Rust_(language)"),
        ("(see https://example.org/a)", "https://example.org/a"),
        ("看https://example.org/a。然后（https://example.org/a）", "https://example.org/a"),
        ("HTTPS://example.org/a", "https://example.org/a"),
    ],
)
def test_a_link_ends_before_punctuation_and_unpaired_brackets(text: str, link: str) -> None:
    assert typed_links(text, written_by_agent=False) == [link]


def test_links_of_a_passage_that_the_user_did_not_type_or_of_a_receipt_are_not_followed() -> None:
    body = (
        f"An idea.\n\n## Evidence\n\nProposed because: x\n\n{NOT_TYPED}\n\n> See https://example.org/agent\n>\n"
        "> and https://example.org/agent2\n\nSession s1\n\n> I read https://example.org/mine\n\nSession s2"
    )
    looked_up = with_receipt(body, receipt_text("done", {}, ["https://example.org/asked"], []))
    assert "https://example.org/asked" in looked_up
    assert typed_links(looked_up, written_by_agent=False) == ["https://example.org/mine"]


def test_a_summary_is_made_of_the_sentences_that_matter_in_their_order() -> None:
    summary = summary_of(PAGE, "robot watering tomatoes soil moisture", token_limit=200, sentences=3)
    parts = summary.split("\n\n")
    assert len(parts) == 3
    flat = " ".join(PAGE.split())
    assert [flat.index(part) for part in parts] == sorted(flat.index(part) for part in parts)
    assert "Cookies" not in summary
    assert "Mondays" not in summary


@given(st.text(max_size=2000), st.integers(0, 300))
def test_what_is_kept_fits_the_tokens(text: str, limit: int) -> None:
    for kept in (within_tokens(text, limit), summary_of(text, "any", token_limit=limit)):
        assert not kept or estimate_tokens(kept) <= max(limit, 1) + 1


MARKS = st.sampled_from(["`", "~", "[[", "![", "|", "$=", "dataviewjs", "\n", " "])


@given(st.one_of(st.text(max_size=300), st.lists(MARKS, max_size=30).map("".join)))
@example("```dataviewjs\nalert(1)\n```")
@example("~[[~~dataviewjs")
@example("`$= alert(1)`")
def test_no_line_of_quoted_text_begins_anything(text: str) -> None:
    for line in quoted(text).split("\n"):
        assert not line.strip() or line.startswith(">")
    assert "\n" not in one_line(text)
    assert "[[" not in one_line(text)
    for written in (quoted(text), one_line(text)):
        assert "`" not in written, "a plugin runs what stands between them"
        assert "~~~" not in written


def test_invisible_and_reordering_characters_are_not_kept() -> None:
    """A reader would see other words than those that are there."""
    turned = "soil\u202e sensors\u2066\u200b\ufeff \x1b[31mred\U000e0041\x00 न\u200d 👩\u200d🌾"
    assert one_line(turned) == "soil sensors [31mred न\u200d 👩\u200d🌾"
    assert quoted(turned) == "> soil sensors [31mred न\u200d 👩\u200d🌾"


def test_related_notes_are_wikilinks_with_excerpts() -> None:
    text = related_text("Found.", [("A | [[title]]", "Garden/Tomatoes", "night\nwater")], "nothing")
    assert "[[Garden/Tomatoes|A / title]]" in text
    assert "> night\n> water" in text
    assert related_text("Found.", [], "nothing") == "nothing"


def test_a_receipt_takes_the_place_of_the_earlier_one() -> None:
    body = with_receipt("An idea.", receipt_text("waiting", {"fetches": (0, 3)}, [], ["one"]))
    body += "\n## Mine\n\nMy own words.\n"
    body = with_receipt(body, receipt_text("done", {"fetches": (3, 3)}, ["https://example.org/?q=a"], ["two"]))
    assert body.count(f"## {RECEIPT_HEADING}") == 1
    assert "waiting" not in body
    assert "My own words." in body
    assert "3 of 3 fetches" in body
    assert without_receipt(body).split() == ["An", "idea.", "##", "Mine", "My", "own", "words."]


def test_what_the_user_types_below_a_receipt_stays_and_is_theirs() -> None:
    for typed in ("My own line.\n", "- my own bullet\n", "\nA line.\n\nAnother.\n", "\n> quoted"):
        first = with_receipt("An idea.", receipt_text("waiting", {"fetches": (0, 3)}, [], ["one"])) + typed
        again = with_receipt(first, receipt_text("done", {"fetches": (3, 3)}, [], ["two"]))
        assert again.endswith(typed.lstrip("\n"))
        assert "waiting" not in again
        assert again.count(f"## {RECEIPT_HEADING}") == 1
        assert without_receipt(again) == without_receipt(first) == "An idea.\n\n" + typed.lstrip("\n")


def test_a_line_that_replaces_the_end_of_a_receipt_stays() -> None:
    """The comment that ends it may be gone: the user edits the note."""
    body = with_receipt("An idea.", receipt_text("done", {}, [], ["one"])).replace(RECEIPT_END, "My own line.")
    assert "My own line." in with_receipt(body, receipt_text("done", {}, [], ["two"]))


def test_a_receipt_is_no_part_of_what_the_note_says() -> None:
    body = with_receipt("An idea.", receipt_text("done", {}, [], []))
    assert strip_evidence(body) == "An idea."
