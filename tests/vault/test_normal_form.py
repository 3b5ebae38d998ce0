"""One text in several Unicode forms is compared in one of them."""

import time
from collections.abc import Callable
from unicodedata import is_normalized, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.pipelines.likeness import wording_of
from memoryvault.runtime.index_terms import cut_terms, index_text, split_terms
from memoryvault.runtime.normal_form import composed, normal_form
from memoryvault.vault.entry import fingerprint
from memoryvault.vault.project import project_slug


@given(st.text(max_size=40))
def test_a_normal_form_is_its_own_and_is_that_of_every_equivalent_text(text: str) -> None:
    once = normal_form(text)
    assert is_normalized("NFKC", once)
    assert normal_form(once) == once
    assert normal_form(normalize("NFD", text)) == once


def test_half_of_a_surrogate_pair_is_let_through() -> None:
    assert normal_form("ｶ\ud83d") == "カ\ud83d"


def test_names_and_statements_that_macos_decomposed_are_known_again() -> None:
    for name in ("プロジェクト", "йогурт", "배포"):
        assert project_slug(normalize("NFD", name)) == project_slug(name)
    said = "Résumé-Dateien gehören in den Ordner für Kunden."
    assert fingerprint(normalize("NFD", said)) == fingerprint(said)
    assert fingerprint("5 … 6") != fingerprint("5 ... 6"), "fingerprints are in notes: only equivalent text meets"
    typed = wording_of("ｶﾞｰﾄﾞはAPI2を使う " + normalize("NFD", "résumé"))
    said_so = wording_of("ガードはＡＰＩ2を使う résumé")
    assert (said_so.words, said_so.telling) == (typed.words, typed.telling)


@pytest.mark.parametrize("form", [normal_form, composed])
def test_endless_accents_take_no_endless_time(form: Callable[[str], str]) -> None:
    """Sorting all of these at once takes more than a minute, in which no other thread runs."""
    started = time.monotonic()
    assert len(form("a" + "\u0301\u0327" * 100_000)) > 100_000
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("before", range(998, 1003))
def test_a_letter_and_its_accent_are_not_parted_in_a_long_text(before: int) -> None:
    assert normal_form("x" * before + "e\u0301ｶﾞ" * 300 + " e\u0301") == "x" * before + "éガ" * 300 + " é"


# Chinese, Japanese and Korean text is indexed by terms that questions have too


@pytest.mark.parametrize(
    ("run", "terms"),
    [
        ("数据库密码", ["数据", "据库", "库密", "密码"]),
        ("ビルドが失敗したら", ["ビルド", "が", "失敗", "したら"]),
        ("配포", ["配포"]),
        ("log里", ["log", "里"]),
        ("deployment", ["deployment"]),
        ("กฎลบ", ["กฎ", "ฎล", "ลบ"]),
    ],
)
def test_ideographs_and_hangul_give_pairs_and_kana_runs_stay_whole(run: str, terms: list[str]) -> None:
    assert [run[start:end] for start, end in cut_terms(run)] == terms


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


@given(st.text(alphabet="数据库ビルがしたら배포a b1", max_size=30))
def test_a_text_that_was_split_is_split_no_further(text: str) -> None:
    once = split_terms(text).split()
    assert split_terms(" ".join(once)).split() == once


@given(st.text(max_size=40, alphabet=st.characters(max_codepoint=0xDFF) | st.sampled_from("ሀᎣგ“”—→✓…Ａ🔑\ud83d")))
def test_other_scripts_are_left_alone(text: str) -> None:
    assert split_terms(text) == text
