"""What is read of a page."""

import pytest

from memoryvault.sources.web.fetch import Page
from memoryvault.sources.web.pages import readable
from memoryvault.tests.support.loopback_site import page


def _page(body: bytes, type_: str = "text/html; charset=utf-8") -> Page:
    return Page("https://example.org/", 200, {"content-type": type_}, body, 1)


@pytest.mark.slow
def test_menus_and_scripts_are_left_out() -> None:
    text = "Bees dance to tell each other where flowers are; the angle of the dance is the angle to the sun."
    body = page("How bees dance", text, "A second paragraph tells how far away the flowers are, by its length.")
    found = readable(_page(body.replace(b"<nav>", b"<script>alert(1)</script><nav>")))
    assert found.title == "How bees dance"
    assert text in found.text
    assert "alert" not in found.text
    assert "Home About" not in found.text


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"", b"<", b"\x00\xff" * 50, b"<html>" * 5000, b"<div>" * 20_000 + b"x"])
def test_a_page_of_nothing_or_nonsense_has_no_text_and_does_no_harm(body: bytes) -> None:
    assert len(readable(_page(body)).text) < 1000


def test_plain_text_is_taken_as_it_is() -> None:
    assert readable(_page("  Grüße\n".encode(), "text/plain; charset=utf-8")).text == "Grüße"


@pytest.mark.slow
@pytest.mark.parametrize(
    "span", ['colspan="1000"', "COLSPAN = 1000", "rowspan='1000' colspan=1000", "class='a'colspan=1000"]
)
def test_a_cell_that_spans_a_thousand_columns_is_one_cell(span: str) -> None:
    """Twenty thousand of them took the extractor a minute of processor time."""
    row = "".join(f"<td {span}>column {number}</td>" for number in range(20))
    body = f"<article><table><tr>{row}</tr></table><p>{'words of a page ' * 50}</p></article>".encode()
    text = readable(_page(body)).text
    assert "column 19" in text
    assert text.count("|") < 50


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 20_000], ids=["a wide row", "many rows below a wide one"])
def test_a_table_of_very_many_cells_is_read_as_text(rows: int) -> None:
    """The extractor fills each row up to the widest: it made six million characters of 20,000 short rows."""
    wide = "".join(f"<td>column {number}</td>" for number in range(6_000))
    long = "".join(f"<tr><td>row {number}</td></tr>" for number in range(rows))
    body = f"<article><p>{'words of a page ' * 50}</p><table><tr>{wide}</tr>{long}</table></article>".encode()
    text = readable(_page(body)).text
    assert "column 5999" in text
    assert f"row {rows - 1}" in text
    assert len(text) < len(body)
