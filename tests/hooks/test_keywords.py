"""Which words count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.hooks.search import WORD_LIMIT, significant_words


def test_a_prompt_about_nothing_has_no_significant_word() -> None:
    for prompt in ("ok thanks, please go on", "yes", "", "?!", "Can you do that again?", "Hello there"):
        assert significant_words(prompt) == []


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("Deploy the Billing-Service; deploy!", ["deploy", "billing", "service"]),
        ("ＤＥＰＬＯＹ ｶﾞｰﾄﾞ re\u0301sume\u0301", ["deploy", "ガード", "résumé"]),
        ("Wann releasen wir?", ["releasen"]),
        ("部署需要多少时间？", ["部署", "时间"]),
        ("İstanbul sunucusu", ["istanbul", "sunucusu"]),
        ("배포 언제 해?", ["배포", "언제", "해"]),
    ],
)
def test_words_of_content_are_folded_split_and_kept_in_order(prompt: str, words: list[str]) -> None:
    assert significant_words(prompt) == words


@given(st.text())
def test_any_text_gives_few_words_that_fts5_takes_as_one(text: str) -> None:
    words = significant_words(text)
    assert len(words) <= WORD_LIMIT
    assert len(set(words)) == len(words)
    assert all(word.isalnum() and '"' not in word for word in words)
