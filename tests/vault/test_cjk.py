"""Text of other scripts, and names in code, are indexed by terms that questions have too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.runtime.cjk import cut_cjk, function_letters, index_text, split_cjk, without_chance_pairs


@pytest.mark.parametrize(
    ("run", "terms"),
    [
        ("数据库密码", ["数据", "据库", "库密", "密码"]),
        ("密码", ["密码"]),
        ("ビルドが失敗したら", ["ビルド", "が", "失敗", "したら"]),
        ("配포", ["配포"]),
        ("배포는", ["배포", "포는"]),
        ("log里", ["log", "里"]),
        ("deployment", ["deployment"]),
        ("กฎลบ", ["กฎ", "ฎล", "ลบ"]),
    ],
)
def test_ideographs_and_hangul_give_pairs_and_kana_runs_stay_whole(run: str, terms: list[str]) -> None:
    assert [run[start:end] for start, end in cut_cjk(run)] == terms


@pytest.mark.parametrize(
    ("note", "asked"),
    [
        ("เราปล่อยเวอร์ชันวันอังคาร", "ปล่อย"),
        ("हम मंगलवार को तैनाती करते हैं", "तैनाती"),
        ("נִכְתָּב בְּיוֹם שְׁלִישִׁי", "שלישי"),
        ("ننشر يَوْم الثلاثاء", "يوم"),
        ("call config_loader() twice", "ConfigLoader"),
    ],
)
def test_a_word_of_a_note_is_found_in_it(note: str, asked: str) -> None:
    terms = index_text(note).casefold().split()
    assert set(index_text(asked).casefold().split()) <= {term.strip("()") for term in terms}


def test_words_of_marks_and_letters_stay_whole() -> None:
    assert index_text("तैनाती").split() == ["तनत"]


@given(st.text(alphabet="数据库ビルがしたら배포a b1", max_size=30))
def test_a_text_that_was_split_is_split_no_further(text: str) -> None:
    once = split_cjk(text).split()
    assert split_cjk(" ".join(once)).split() == once


@given(st.text(max_size=40, alphabet=st.characters(max_codepoint=0xDFF) | st.sampled_from("ሀᎣგក“”—→✓…Ａ🔑\ud83d")))
def test_other_scripts_are_left_alone(text: str) -> None:
    assert split_cjk(text) == text


def content_of(question: str) -> list[str]:
    """The terms of a question without grammar."""
    grammar = function_letters(question)
    return [question[start:end] for start, end in cut_cjk(question) if grammar.isdisjoint(range(start, end))]


def test_grammar_is_no_term_of_a_question() -> None:
    assert content_of("什么时候可以部署新版本") == ["部署", "署新", "新版", "版本"]
    assert content_of("ログに書く環境変数はどこ") == ["ログ", "環境", "境変", "変数"], "書く is a verb"


def test_a_pair_across_two_words_is_no_word_that_the_notes_lack() -> None:
    question = ["密码", "码放", "放在"]
    assert without_chance_pairs(question, {"密码"}.__contains__) == ["密码", "放在"]
    assert without_chance_pairs(question, set[str]().__contains__) == question, "nothing shows which are words"
    assert without_chance_pairs(["login", "in"], {"login"}.__contains__) == ["login", "in"]
