"""Notes as HTML, and the comparison of two texts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryvault.console.diff import side_by_side
from memoryvault.console.markdown import render_markdown
from memoryvault.pipelines.research import RECEIPT_END, receipt_text


def html(text: str) -> str:
    return str(render_markdown(text, lambda target: f"/here/entry?path={target.replace(' ', '+')}"))


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a <b onclick=alert(1)>c</b>",
        "<!-- x --><svg/onload=alert(1)>", "```html\n<script>alert(1)</script>\n```",
        '```"><script>alert(1)</script>\ncode\n```', "[[x|<script>alert(1)</script>]]",
        '[["><script>alert(1)</script>]]', "| <script>alert(1)</script> |\n|---|\n| x |",
    ],
)  # fmt: skip
def test_html_in_a_note_is_shown_and_not_obeyed(text: str) -> None:
    made = html(text)
    assert re.findall(r"<(script|img|svg|b)\b", made) == []
    assert re.findall(r"<[^>]*\son\w+=", made) == []


def test_an_aligned_table_needs_no_style_of_its_own() -> None:
    made = html("| a |\n|:-:|\n| b |")
    assert 'align="center"' in made
    assert "style=" not in made


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//evil",
        "/here/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["[x]({})", "<{}>", "[x](<{}>)"])
def test_only_links_of_the_web_are_links(form: str, link: str) -> None:
    assert "<a " not in html(form.format(link))


def test_links_to_other_sites_send_no_referrer() -> None:
    assert html("[x](https://example.org)") == (
        '<p><a href="https://example.org" rel="noreferrer noopener" target="_blank">x</a></p>\n'
    )


def test_a_link_to_a_note_leads_to_its_page() -> None:
    assert html("see [[a/b c|that]]") == '<p>see <a href="/here/entry?path=a/b+c">that</a></p>\n'
    assert "<a" not in html("`[[x]]`")


def test_an_image_is_not_fetched() -> None:
    assert "<img" not in html("![x](https://example.org/pixel.png)")


def test_marks_of_the_program_are_not_shown_and_other_comments_are() -> None:
    # What is approved reaches agents with its comments: nothing of it may be hidden from who decides.
    receipt = receipt_text("done", {}, [], ["one"])
    assert "%%" not in html(f"{receipt}\n\nMine.")
    assert "Mine." in html(f"{receipt}\n\nMine.")
    assert "%% do it %%" in html("%% do it %%")
    assert f"say {RECEIPT_END}" in html(f"say {RECEIPT_END}")


def test_headings_leave_no_level_out() -> None:
    text = "# One\n\n#### Two\n\n## Three\n\n# Four"
    assert re.findall(r"<h(\d)>", html(text)) == ["3", "5", "4", "3"], "below those of the page"
    assert "<h3>Six</h3>" in html("###### Six")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("<>\"'&[]()|`*_#!:/ \najsonerr=")))
def test_whatever_is_written_no_tag_of_it_comes_through(text: str) -> None:
    made = html(text)
    tags = set(re.findall(r"</?([a-zA-Z][a-zA-Z0-9]*)", made))
    texts, lists = {"p", "a", "em", "strong", "code", "pre", "br", "hr", "blockquote"}, {"ul", "ol", "li"}
    assert tags <= texts | lists | {"h3", "h4", "h5", "h6"}


def test_only_the_words_that_differ_are_marked() -> None:
    (row,) = side_by_side("Always use npm.", "Always use pnpm.")
    marked = [[part.text for part in side or () if part.differs] for side in (row.old, row.new)]
    assert marked == [["npm"], ["pnpm"]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b c", "", "d"]), max_size=6),
    st.lists(st.sampled_from(["a", "b x", "", "e"]), max_size=6),
)
def test_both_texts_are_whole_in_the_comparison(one: list[str], other: list[str]) -> None:
    old, new = "\n".join(one), "\n".join(other)
    rows = side_by_side(old, new)
    assert ["".join(part.text for part in row.old) for row in rows if row.old is not None] == old.splitlines()
    assert ["".join(part.text for part in row.new) for row in rows if row.new is not None] == new.splitlines()


def test_what_is_too_long_to_be_aligned_is_shown_all_the_same() -> None:
    new = "\n".join(f"line {number}" for number in range(600))
    rows = side_by_side("line 0", new)
    assert [part.text for row in rows if row.new is not None for part in row.new] == new.splitlines()


def test_words_are_not_compared_in_lines_that_are_not_aligned() -> None:
    old, new = ("\n".join(f"{verb} line {number}" for number in range(600)) for verb in ("is", "was"))
    rows = side_by_side(old, new)
    assert [len(row.new or ()) for row in rows] == [2] * 400 + [1] * 200
