"""Which words count, and how much they must weigh together."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.hooks.keywords import WORD_LIMIT, max_common_entries, rank, significant_words


def test_a_prompt_about_nothing_has_no_significant_word() -> None:
    for prompt in ("ok thanks, please go on", "yes", "", "?!", "Can you do that again?", "Hello there"):
        assert significant_words(prompt) == []


def test_words_in_other_unicode_forms_are_the_same_words() -> None:
    assert significant_words("ＤＥＰＬＯＹ ｶﾞｰﾄﾞ re\u0301sume\u0301") == ["deploy", "ガード", "résumé"]


def test_words_are_folded_split_and_kept_in_order() -> None:
    assert significant_words("Deploy the Billing-Service; deploy!") == ["deploy", "billing", "service"]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("Wann releasen wir?", ["releasen"]),
        ("部署需要多少时间？", ["部署", "时间"]),
        ("배포 언제 해?", ["배포", "언제", "해"]),
    ],
)
def test_the_words_of_other_languages_are_those_of_content(prompt: str, words: list[str]) -> None:
    assert significant_words(prompt) == words


@given(st.text())
def test_any_text_gives_few_words_that_fts5_takes_as_one(text: str) -> None:
    words = significant_words(text)
    assert len(words) <= WORD_LIMIT
    assert len(set(words)) == len(words)
    assert all(word.isalnum() and '"' not in word for word in words)


def test_a_rare_word_of_a_short_prompt_is_enough() -> None:
    assert [entry for entry, _ in rank({"quokka": [7], "handle": [], "widget": [7]}, 2000, log)] == [7]
    assert [entry for entry, _ in rank({"quokka": [7], "a1": [], "a2": []}, 2000, log)] == [7]


def test_one_shared_word_of_many_is_not_enough() -> None:
    found: dict[str, list[int]] = {word: [] for word in ("summarize", "kubernetes", "cluster", "invoice")}
    assert rank({**found, "rollout": [3]}, 2000, log) == []


def test_a_word_that_is_everywhere_counts_nothing() -> None:
    everywhere = list(range(max_common_entries(100) + 1))
    assert rank({"test": everywhere}, 100, log) == []


def test_rarer_words_weigh_more() -> None:
    found = {"common": list(range(15)), "rare": [40], "middling": [1, 2, 3, 40]}
    ranked = rank(found, 100, log)
    assert ranked[0][0] == 40
    assert ranked[0][1] > ranked[1][1]


@given(
    st.dictionaries(st.text(min_size=1, max_size=5), st.lists(st.integers(0, 30), unique=True), max_size=8),
    st.integers(0, 100),
)
def test_scores_are_shares_in_descending_order(found: dict[str, list[int]], total: int) -> None:
    scores = [score for _, score in rank(found, total, log)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@pytest.mark.parametrize("total", [1, 2])
def test_a_tiny_vault_is_searched_too(total: int) -> None:
    assert [entry for entry, _ in rank({"teapot": [1]}, total, log)] == [1]
