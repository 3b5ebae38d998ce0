"""Ideas.md belongs to the user: a section is added as a whole, and all other bytes stay."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.pipelines.ideas_file import (
    annotated,
    has_section,
    heading_of,
    promoted_line,
    relinked,
    said_next,
    section_text,
    summary_beside,
    summary_of,
    unlinked,
    with_section,
    without_section,
)

DAY = date(2026, 5, 15)
LINK = "MemoryVault/personal-private/_idea-incubator/retry-page/_index.md"
NEW_LINK = "MemoryVault/personal-projects/retry-page/_index.md"
SECTION = section_text(DAY, "Retry page", "A page. It shows retries. More.", LINK)


def test_a_section_has_the_format_of_the_design() -> None:
    assert SECTION == (
        "## 2026-05-15: Retry page\n"
        "A page. It shows retries.\n"
        "See deep research: [[MemoryVault/personal-private/_idea-incubator/retry-page/_index.md]]\n"
    )


def test_a_missing_or_empty_file_is_begun() -> None:
    assert with_section(None, SECTION, DAY) == with_section("", SECTION, DAY) == "# Ideas\n\n" + SECTION


USERS = [
    "# Ideas\n",
    "# Ideas\n\nno newline at the end",
    "# Ideas\r\n\r\nWindows lines\r\n",
    "\ufeff# Ideas\n\n\n\n",
    "just words\n\n## My own section\n- [ ] a task\n\n```\n## 2026-01-01: not a heading\n```\n",
    "---\ntitle: x\n---\n# Ideas\n\n## 2026-04-01: Earlier\ntext\n\n# Part two\ntext\n",
]


@pytest.mark.parametrize("text", USERS)
def test_the_users_bytes_come_first_and_are_unchanged(text: str) -> None:
    after = with_section(text, SECTION, DAY)
    assert after.startswith(text)
    added = after[len(text) :].replace("\r\n", "\n")
    assert added.lstrip("\n") == SECTION
    assert ("\r\n" in after[len(text) :]) == ("\r\n" in text)
    assert re.search(r"^## 2026-05-15: Retry page\r?$", after, re.MULTILINE)


def test_sections_are_in_the_order_of_their_dates() -> None:
    early, late = "## 2026-05-01: Early\nx\n\n", "## 2026-06-01: Late\ny\n\nThe user's words.\n"
    after = with_section("# Ideas\n\n" + early + late, SECTION, DAY)
    assert after == "# Ideas\n\n" + early + SECTION + "\n" + late
    same_day = with_section(after, SECTION.replace("Retry page", "Second"), DAY)
    assert same_day.index("Retry page") < same_day.index("Second") < same_day.index("Late")


def test_unsorted_sections_of_the_user_stay_unsorted() -> None:
    text = "## 2026-06-01: Late\n\n## 2026-05-01: Early\n"
    assert with_section(text, SECTION, DAY) == text + "\n" + SECTION


EARLY, LATE = "## 2026-05-01: Early\nx\n\n", "## 2026-06-01: Late\ny\n"


@pytest.mark.parametrize(
    "between",
    ["What I think of it.\n\n", "### More\n\ntext\n\n", "- [ ] a task\n\n---\n\n", "```\n## 2026-05-20: code\n```\n\n"],
)
def test_text_below_a_section_stays_below_it(between: str) -> None:
    after = with_section("# Ideas\n\n" + EARLY + between + LATE, SECTION, DAY)
    assert after == "# Ideas\n\n" + EARLY + between + SECTION + "\n" + LATE


@pytest.mark.parametrize("between", ["# June\n\nA hot month.\n\n", "## Mine\n\ntext\n\n", "# A\n\n## B\n\n"])
def test_a_section_never_comes_between_the_users_heading_and_what_stands_below_it(between: str) -> None:
    after = with_section("# Ideas\n\n" + EARLY + between + LATE, SECTION, DAY)
    assert after == "# Ideas\n\n" + EARLY + SECTION + "\n" + between + LATE


@pytest.mark.parametrize(
    ("opened", "closed"),
    [("<!--\n", "-->\n"), ("%%\n", "%%\n"), ("<details>\n\n", "\n</details>\n"), ("$$\n", "$$\n")],
)
def test_a_section_that_would_be_hidden_in_what_the_user_has_opened_goes_to_the_end(opened: str, closed: str) -> None:
    text = "# Ideas\n\n" + EARLY + opened + LATE + closed
    hidden = "# Ideas\n\n" + opened + LATE + closed
    assert with_section(hidden, SECTION, DAY) == hidden + "\n" + SECTION
    assert with_section(text.replace(EARLY + opened, opened + EARLY), SECTION, DAY).endswith(closed + "\n" + SECTION)
    above = "# Ideas\n\n" + opened + "mine\n" + closed + "\n"
    assert with_section(above + LATE, SECTION, DAY) == above + SECTION + "\n" + LATE, "closed again, it hides nothing"
    told = "# Ideas\n\nI write `" + opened.strip() + "` and \\" + "\\".join(opened.strip()) + ".\n\n"
    assert with_section(told + LATE, SECTION, DAY) == told + SECTION + "\n" + LATE, "told of, it opens nothing"


def test_a_list_that_the_user_keeps_newest_first_gets_its_sections_at_the_end() -> None:
    text = "## 2026-06-02: A\nx\n\n## 2026-06-01: B\ny\n"
    assert with_section(text, SECTION, DAY) == text + "\n" + SECTION


_BLOCKS = st.sampled_from(
    ["# Part\n", "## Mine\n\ntext\n", "words\n", "- [ ] task\n", "%%\n", "\n", "```\n", "## 2026-05-10: My own\nx\n"]
)


@given(st.lists(_BLOCKS | st.dates(date(2026, 5, 1), date(2026, 5, 20)).map(
    lambda day: section_text(day, "Ours", "s.", "v/" + day.isoformat())), max_size=12), st.dates(
    date(2026, 5, 1), date(2026, 5, 20)))  # fmt: skip
def test_a_section_stands_before_a_heading_or_at_the_end_whatever_the_user_has_made_of_the_list(
    blocks: list[str], day: date
) -> None:
    text = "".join(["# Ideas\n", *blocks])
    section = section_text(day, "New", "n.", LINK)
    before, found, after = with_section(text, section, day).partition(section)
    assert found
    assert not after or after.startswith(("\n# ", "\n## "))
    rest = after.removeprefix("\n")
    assert text in (before + rest, before.removesuffix("\n") + rest, before.removesuffix("\n\n") + rest)


def test_the_summary_says_what_the_title_does_not() -> None:
    assert summary_beside("Retry page", "Retry page. It shows retries. By day. More.") == "It shows retries. By day."
    assert summary_beside("Retry page", "And a retry page.", "It shows retries.") == "It shows retries."
    assert summary_beside("Retry page", "A retry page that …", "x") == "A retry page that …"
    cut = "A page that shows how many …"
    assert summary_beside(cut, "A page that shows how many charges were retried.") == "… charges were retried."
    assert (
        summary_beside("Since yes, we have it …", "since yes, we have it, but no: that adds.") == "… but no: that adds."
    )
    assert summary_beside("Retry page", "retry page", "Retry page.", "") == ""
    assert summary_beside("So, a parser?", "So, a parser? No. A regex.") == "No. A regex.", "an answer is no opening"


def test_a_title_of_several_sentences_of_what_was_said_is_cut_after_the_first() -> None:
    assert heading_of("A page. It shows", "a page. It shows retries.") == "A page"
    assert heading_of("A page? It shows …", "And a page? It shows retries.") == "A page?"
    assert heading_of("Retry page. Yes", "A page. It shows retries.") == "Retry page. Yes", "the user's own title"
    assert heading_of("A page", "A page. It shows retries.") == "A page"


def test_a_title_that_was_cut_is_the_whole_sentence_where_a_heading_has_room_for_it() -> None:
    said = "and now: if we have the right agent in rewind and resume commands, we could also log it, right?"
    whole = "If we have the right agent in rewind and resume commands, we could also log it, right?"
    assert heading_of("Now: if we have the right agent in rewind and resume …", said) == whole
    assert summary_beside(whole, said) == "", "so no line is the beginning of another"
    assert heading_of("A page …", "Put it off.") == "A page …", "the user's own title"
    assert heading_of("A page", "A page that shows retries.") == "A page", "the user's own title"
    assert heading_of("a page", "A page. It shows retries.") == "a page", "the user's own title"
    long = "a page that shows " + "how many charges were retried " * 8 + "by day."
    heading = heading_of("A page that shows how many charges …", long)
    assert heading.endswith((" charges …", " were …", " retried …", " many …", " how …"))
    beyond = summary_beside(heading, long)
    assert f"{heading.removesuffix(' …')} {beyond.removeprefix('… ')}" == "A" + long[1:], "read on from line to line"


@pytest.mark.parametrize("opening", ["Good.", "Great!", "Ok.", "Yes please,", "Hmm,", "Perfect. And now:", "no - "])
def test_words_that_only_open_what_was_said_are_neither_heading_nor_summary(opening: str) -> None:
    pitch = f"{opening} Let's add a page. It shows retries."
    assert heading_of("Let's add a page. It shows retries", pitch) == "Let's add a page"
    assert heading_of(f"{opening} Let's add a page", f"{opening} let's add a page.") == "Let's add a page"
    assert summary_beside("Let's add a page", pitch) == "It shows retries."
    assert summary_beside("Let's add a page", f"{opening} Let's add a page.", opening) == ""


def test_continuation_is_read_from_the_first_passage() -> None:
    body = (
        "Put it off\n\n## Evidence\n\nProposed because: x\n\n> so. put it off. I assume\n> it fails.\n>\n> then fix\n"
        "\nSession s1\n\n> put it off. Another day.\n"
    )
    assert said_next(body, "put it off.") == "I assume it fails."
    listed = "## Evidence\n\n> idea:\n> - a page\n> - default 'off'\n> * with a README\n"
    assert said_next(listed, "idea: a page") == "default 'off'; with a README"
    assert said_next("## Evidence\n\n> only this\n", "only this") == ""
    assert said_next("no evidence > only this and that", "only this") == ""
    assert said_next("## Evidence\n\n> the statistics\n", "tics") == "", "found as words"


def test_the_summary_is_two_sentences_on_one_line() -> None:
    assert summary_of("One. Two!  Three?") == "One. Two!"
    assert summary_of("Version 2.5 of it\nis out. Good.") == "Version 2.5 of it is out. Good."
    assert len(summary_of("word " * 300)) <= 402


def test_no_text_of_an_idea_can_change_how_what_follows_is_shown() -> None:
    section = section_text(DAY, "<!-- x", "``` %% $$ <div> [[a]]", LINK)
    assert section.splitlines()[0] == "## 2026-05-15: \\<!-- x"
    assert section.splitlines()[1] == "\\`\\`\\` \\%\\% \\$\\$ \\<div> [[a]]"
    assert section_text(DAY, "t", "# heading", LINK).splitlines()[1] == "\\# heading"
    assert len(section.splitlines()) == 3


def test_promotion_is_written_under_the_link_and_nowhere_else() -> None:
    line = promoted_line(DAY, "MemoryVault/personal-projects/retry-page")
    text = "# Ideas\n\n" + SECTION + "My remark.\n\n## 2026-05-16: Other\nx\n"
    after = annotated(text, LINK, line, NEW_LINK)
    assert after is not None
    assert "→ promoted 2026-05-15 to MemoryVault/personal-projects/retry-page/" in after.splitlines()
    assert after.replace(line + "\n", "").replace(NEW_LINK, LINK) == text
    assert annotated("# Ideas\n", LINK, line, NEW_LINK) is None


def test_promotion_of_a_last_line_without_an_end() -> None:
    line = promoted_line(DAY, "MemoryVault/personal-projects/retry-page")
    after = annotated("# Ideas\r\n\r\n" + SECTION.replace("\n", "\r\n").rstrip(), LINK, line, NEW_LINK)
    assert after is not None
    assert after.endswith(f"[[{NEW_LINK}]]\r\n{line}")


def test_a_link_that_the_user_wrote_differently_is_found_and_left() -> None:
    text = SECTION.replace(f"[[{LINK}]]", f"[[{LINK.removesuffix('.md')}|my page]]")
    assert has_section(text, LINK)
    after = annotated(text, LINK, "→ x", NEW_LINK)
    assert after is not None
    assert "|my page]]" in after
    assert not has_section(SECTION.replace("retry-page", "retry-page-2"), LINK)


def test_a_link_that_obsidian_has_rewritten_follows_the_idea() -> None:
    """When a folder is renamed, Obsidian writes links to what is in it anew, without the ending."""
    text = SECTION.replace(f"[[{LINK}]]", f"[[{LINK.removesuffix('.md')}]]")
    assert relinked(text, LINK, NEW_LINK) == SECTION.replace(LINK, NEW_LINK)
    assert unlinked(text, LINK, "→ gone") == SECTION.replace(f"See deep research: [[{LINK}]]", "→ gone")
    assert annotated(text, LINK, "→ x", NEW_LINK) == SECTION.replace(LINK, NEW_LINK) + "→ x\n"


@pytest.mark.parametrize("text", [None, *USERS])
def test_a_section_that_was_put_in_can_be_taken_out_again(text: str | None) -> None:
    after = with_section(text, SECTION, DAY)
    rest = without_section(after, LINK)
    assert rest is not None
    assert rest.rstrip() == (text or "# Ideas\n").rstrip()
    assert without_section(after + "My own words on it.\n", LINK) is None


@given(st.text(alphabet=st.sampled_from("ab#-` \r\n\t1278:"), max_size=200), st.dates())
def test_whatever_the_user_wrote_every_byte_is_kept_in_its_order(text: str, day: date) -> None:
    section = section_text(day, "T", "s", LINK)
    after = with_section(text, section, day)
    if text == "":
        return
    written = section.replace("\n", "\r\n") if section not in after else section
    before, _, rest = after.partition(written)
    gap = len(before) + len(rest) - len(text)
    kept = [before[: len(before) - n] + rest[m:] for n in range(gap + 1) for m in range(gap - n + 1)]
    assert text in kept
