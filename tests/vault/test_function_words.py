"""Grammar of other languages counts as little as English grammar does."""

import pytest

from memoryvault.runtime.function_words import foreign_function_words


def content_of(prompt: str) -> list[str]:
    words = "".join(letter if letter.isalnum() else " " for letter in prompt.lower()).split()
    ignored = foreign_function_words(words)
    return [word for word in words if word not in ignored]


@pytest.mark.parametrize(
    ("prompt", "content"),
    [
        ("Wann releasen wir?", ["releasen"]),
        ("Warum schlägt das fehl?", ["schlägt", "fehl"]),
        ("Où est le mot de passe de la base ?", ["mot", "passe", "base"]),
        ("¿Dónde está la contraseña?", ["contraseña"]),
        ("Onde fica a senha do banco?", ["fica", "senha", "banco"]),
        ("Perché il test fallisce?", ["test", "fallisce"]),
        ("Waarom is de build zo traag?", ["build", "traag"]),
        ("Dlaczego ten test nie działa?", ["test", "działa"]),
        ("когда можно релизить?", ["релизить"]),
        ("Bu test neden başarısız?", ["test", "başarısız"]),
    ],
)
def test_words_of_grammar_go(prompt: str, content: list[str]) -> None:
    assert content_of(prompt) == content


@pytest.mark.parametrize(
    "prompt",
    [
        *(
            "kill the die process", "MIT license", "what is the war room", "hat man page", "git status",
            "SELECT * FROM a",
        ),
        *("jest config", "todo list", "ci pipeline", "proto files", "comment style", "fast tests", "due date"),
        *("NAS backup", "SES quota", "az login", "dig dns", "num workers", "NIC driver", "door sensor", "todo"),
    ],
)  # fmt: skip
def test_an_english_prompt_keeps_words_that_are_grammar_elsewhere(prompt: str) -> None:
    assert content_of(prompt) == "".join(c if c.isalnum() else " " for c in prompt.lower()).split()
