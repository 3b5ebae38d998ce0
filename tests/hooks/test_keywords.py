"""Which words count, and what is found in the time there is."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.hooks import search
from memoryvault.hooks.search import WORD_LIMIT, FallbackQuery, other_spellings, significant_words
from memoryvault.runtime.function_words import foreign_function_words

from .support import Sandbox, index


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


def asked(sandbox: Sandbox, prompt: str, *notes: str) -> list[str]:
    """The names of the notes that the hook finds; `notes`: their paths, a blank, their text."""
    texts = {f"personal-private/{path}": text for path, _, text in (note.partition(" ") for note in notes)}
    for path, text in texts.items():
        sandbox.entry(path, text, kind="fact")
    index(sandbox, *texts)
    query = FallbackQuery(prompt, str(sandbox.vault), "", 5, set(), time.monotonic() + 100)
    return [hit.slug for hit in search.search(query, sandbox.state.index_db).hits]


NAMES = ("ConfigLoader", "config_loader", "config loader")


@pytest.mark.parametrize("said", NAMES)
@pytest.mark.parametrize("meant", NAMES)
def test_a_name_is_found_however_it_is_written(sandbox: Sandbox, said: str, meant: str) -> None:
    others = [f"fact/other-{number}.md A config of the shop has {number} parts." for number in range(3)]
    note = f"fact/named.md The {said} needs tablet K7."
    assert asked(sandbox, f"What about the {meant}?", note, *others) == ["named"]


def test_a_part_of_a_name_is_not_the_name(sandbox: Sandbox) -> None:
    assert asked(sandbox, "What about GitHub?", "fact/git.md Commit with git.", "fact/hub.md The hub is blue.") == []
    assert other_spellings("What about GitHub?", {"github"}) == {"git hub": ("github",)}


def test_where_time_ends_among_long_notes_the_best_is_given(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"personal-private/fact/note-{number}.md" for number in range(12)]
    for number, path in enumerate(paths):
        sandbox.entry(path, "Talk. " * 200 + f"The quokka{number} flange needs tablet K7.", kind="fact")
    index(sandbox, *paths)
    clock = [0.0]
    stems = search._stems

    def of_a_slow_machine(connection: Any, texts: list[str]) -> list[set[str]]:
        clock[0] += sum(map(len, texts))
        return stems(connection, texts)

    monkeypatch.setattr(search, "_stems", of_a_slow_machine)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    query = FallbackQuery("which tablet does the quokka3 flange need?", str(sandbox.vault), "", 5, set(), 90.0)
    found = search.search(query, sandbox.state.index_db)
    assert [hit.slug for hit in found.hits] == ["note-3"]


# Grammar of other languages counts as little as English grammar does


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
