"""Ideas.md belongs to the user: a section is added as a whole, and all other bytes stay."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.pipelines.ideas_file import (
    has_section,
    promoted_line,
    relinked,
    section_text,
    summary_of,
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


BELOW_THE_SECTION = "What I think of it.\n\n", "### More\n\ntext\n\n", "```\n## 2026-05-20: code\n```\n\n"
HEADINGS = "# June\n\nA hot month.\n\n", "## Mine\n\ntext\n\n", "# A\n\n## B\n\n"


@pytest.mark.parametrize("between", [*BELOW_THE_SECTION, *HEADINGS])
def test_text_below_a_section_or_a_heading_stays_below_it(between: str) -> None:
    early, late = "# Ideas\n\n## 2026-05-01: Early\nx\n\n", "## 2026-06-01: Late\ny\n"
    after = with_section(early + between + late, SECTION, DAY)
    parts = (between, SECTION, "\n") if between in BELOW_THE_SECTION else (SECTION, "\n", between)
    assert after == "".join((early, *parts, late))


_BLOCKS = st.sampled_from(
    ["# Part\n", "## Mine\n\ntext\n", "words\n", "- [ ] task\n", "%%\n", "\n", "```\n", "## 2026-05-10: My own\nx\n"]
)


@given(st.lists(_BLOCKS | st.dates(date(2026, 5, 1), date(2026, 5, 20)).map(
    lambda day: section_text(day, "Ours", "s.", "v/" + day.isoformat())), max_size=12), st.dates(
    date(2026, 5, 1), date(2026, 5, 20)))  # fmt: skip
def test_a_section_stands_before_a_heading_or_at_the_end_of_any_list(blocks: list[str], day: date) -> None:
    text = "".join(["# Ideas\n", *blocks])
    section = section_text(day, "New", "n.", LINK)
    before, found, after = with_section(text, section, day).partition(section)
    assert found
    assert not after or after.startswith(("\n# ", "\n## "))
    rest = after.removeprefix("\n")
    assert text in (before + rest, before.removesuffix("\n") + rest, before.removesuffix("\n\n") + rest)


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
    after = relinked(text, LINK, NEW_LINK, line)
    assert after is not None
    assert "→ promoted 2026-05-15 to MemoryVault/personal-projects/retry-page/" in after.splitlines()
    assert after.replace(line + "\n", "").replace(NEW_LINK, LINK) == text
    assert relinked("# Ideas\n", LINK, NEW_LINK, line) is None


def test_promotion_of_a_last_line_without_an_end() -> None:
    line = promoted_line(DAY, "MemoryVault/personal-projects/retry-page")
    after = relinked("# Ideas\r\n\r\n" + SECTION.replace("\n", "\r\n").rstrip(), LINK, NEW_LINK, line)
    assert after is not None
    assert after.endswith(f"[[{NEW_LINK}]]\r\n{line}")


def test_a_link_that_the_user_wrote_differently_is_found_and_left() -> None:
    text = SECTION.replace(f"[[{LINK}]]", f"[[{LINK.removesuffix('.md')}|my page]]")
    assert has_section(text, LINK)
    after = relinked(text, LINK, NEW_LINK, "→ x")
    assert after is not None
    assert "|my page]]" in after
    assert not has_section(SECTION.replace("retry-page", "retry-page-2"), LINK)


def test_a_link_that_obsidian_has_rewritten_follows_the_idea() -> None:
    """When a folder is renamed, Obsidian writes links to what is in it anew, without the ending."""
    text = SECTION.replace(f"[[{LINK}]]", f"[[{LINK.removesuffix('.md')}]]")
    assert relinked(text, LINK, NEW_LINK) == SECTION.replace(LINK, NEW_LINK)
    assert relinked(text, LINK, NEW_LINK, "→ x") == SECTION.replace(LINK, NEW_LINK) + "→ x\n"


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
