"""The answers of search engines are data: nothing in one is opened."""

from pathlib import Path

import pytest

from memoryvault.sources.web.fetch import Page
from memoryvault.sources.web.search import AnswerUnreadable, providers

ATOM = (
    "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'><title>x</title>"
    "<entry><title>Private</title><link href='https://example.org/p'/><summary>Private</summary></entry></feed>"
)


def test_an_answer_that_names_a_file_is_not_that_file(tmp_path: Path) -> None:
    file = tmp_path / "local.xml"
    file.write_text(ATOM)
    arxiv = providers()["arxiv"]
    assert [result.title for result in arxiv.results_of("", answer(ATOM.encode()))] == ["Private"]
    with pytest.raises(AnswerUnreadable):
        arxiv.results_of("", answer(str(file).encode()))


def answer(body: bytes) -> Page:
    return Page("https://export.arxiv.org/api/query", 200, {"content-type": "application/atom+xml"}, body, 1)
