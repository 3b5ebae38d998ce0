"""One text in several Unicode forms is compared in one of them."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unicodedata import is_normalized, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoryvault
from memoryvault.pipelines.likeness import wording_of
from memoryvault.runtime.normal_form import composed, normal_form
from memoryvault.vault.entry import fingerprint
from memoryvault.vault.project import project_slug


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("ｶﾞｰﾄﾞ", "ガード"),
        ("ＡＰＩ＿ｋｅｙ", "API_key"),
        (normalize("NFD", "が é ổ 배포"), "が é ổ 배포"),
        ("ﬁle of 5\u00a0㎏", "file of 5 kg"),
        ("don’t – “quoted”", "don’t – “quoted”"),
    ],
)
def test_forms_of_width_and_composition_become_one(written: str, compared: str) -> None:
    assert normal_form(written) == compared


@given(st.text(max_size=40))
def test_a_normal_form_is_its_own_and_is_that_of_every_equivalent_text(text: str) -> None:
    once = normal_form(text)
    assert is_normalized("NFKC", once)
    assert normal_form(once) == once
    assert normal_form(normalize("NFD", text)) == once


def test_half_of_a_surrogate_pair_is_let_through() -> None:
    assert normal_form("ｶ\ud83d") == "カ\ud83d"


def test_ascii_loads_no_table() -> None:
    code = (
        "import sys; package = type(sys)('memoryvault'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['memoryvault'] = package\n"
        "from memoryvault.runtime.normal_form import normal_form\n"
        "normal_form('plain'); print('unicodedata' in sys.modules)"
    )
    folder = str(Path(memoryvault.__file__ or "").parent)
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code, folder], capture_output=True, text=True, timeout=30)
    assert run.stdout.split() == ["False"], run.stderr


@pytest.mark.parametrize("name", ["プロジェクト", "йогурт", "배포"])
def test_a_folder_that_macos_named_is_the_same_project(name: str) -> None:
    assert project_slug(normalize("NFD", name)) == project_slug(name)


def test_a_statement_that_was_pasted_decomposed_is_known_again() -> None:
    said = "Résumé-Dateien gehören in den Ordner für Kunden."
    assert fingerprint(normalize("NFD", said)) == fingerprint(said)
    assert fingerprint("5 … 6") != fingerprint("5 ... 6"), "fingerprints are in notes: only equivalent text meets"


def test_statements_in_other_forms_have_the_same_words() -> None:
    said = "ガードはＡＰＩ2を使う résumé"
    typed = wording_of("ｶﾞｰﾄﾞはAPI2を使う " + normalize("NFD", "résumé"))
    assert (wording_of(said).words, wording_of(said).telling) == (typed.words, typed.telling)


@pytest.mark.parametrize("form", [normal_form, composed])
def test_endless_accents_take_no_endless_time(form: Callable[[str], str]) -> None:
    """Sorting all of these at once takes more than a minute, in which no other thread runs."""
    started = time.monotonic()
    assert len(form("a" + "\u0301\u0327" * 100_000)) > 100_000
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("before", range(998, 1003))
def test_a_letter_and_its_accent_are_not_parted_in_a_long_text(before: int) -> None:
    assert normal_form("x" * before + "e\u0301ｶﾞ" * 300 + " e\u0301") == "x" * before + "éガ" * 300 + " é"
