"""Which words count, and what is found in the time there is."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.hooks import search
from memoryvault.hooks.search import WORD_LIMIT, FallbackQuery, other_spellings, significant_words


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


def asked(vault: Path, prompt: str, *notes: str) -> list[str]:
    """The names of the notes that a hook without an index gives; `notes`: their paths, a blank, their text."""
    for note in notes:
        path, _, text = note.partition(" ")
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(f"---\nkind: fact\n---\n\n{text}\n")
    query = FallbackQuery(prompt, str(vault), "", 5, set(), time.monotonic() + 100)
    return [hit.slug for hit in search.search(query, str(vault / "none.db")).hits]


NAMES = ("ConfigLoader", "config_loader", "config loader")


@pytest.mark.parametrize("said", NAMES)
@pytest.mark.parametrize("meant", NAMES)
def test_a_name_is_found_however_it_is_written(tmp_path: Path, said: str, meant: str) -> None:
    others = [f"fact/other-{number}.md A config of the shop has {number} parts." for number in range(3)]
    note = f"fact/named.md The {said} needs tablet K7."
    assert asked(tmp_path, f"What about the {meant}?", note, *others) == ["named"]


def test_a_part_of_a_name_is_not_the_name(tmp_path: Path) -> None:
    assert asked(tmp_path, "What about GitHub?", "fact/git.md Commit with git.", "fact/hub.md The hub is blue.") == []
    assert other_spellings("What about GitHub?", {"github"}) == {"git hub": ("github",)}


def test_a_template_of_obsidians_is_not_given_where_there_is_no_index(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian/templates.json").write_text('{"folder": "Notes/Vorlagen"}')
    notes = [
        f"{folder}/{name}.md The quokka flange needs tablet K7." for folder, name in (("Vorlagen", "a"), ("b", "b"))
    ]
    assert asked(tmp_path / "Notes", "which tablet does the quokka flange need?", *notes) == ["b"]


def test_where_the_time_ends_among_long_notes_the_best_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        note = tmp_path / f"personal-private/fact/note-{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text("---\nkind: fact\n---\n\n" + "Talk. " * 200 + f"The quokka{number} flange needs tablet K7.\n")
    clock = [0.0]
    stems = search._stems

    def of_a_slow_machine(connection: Any, texts: list[str]) -> list[set[str]]:
        clock[0] += sum(map(len, texts))
        return stems(connection, texts)

    monkeypatch.setattr(search, "_stems", of_a_slow_machine)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    query = FallbackQuery("which tablet does the quokka3 flange need?", str(tmp_path), "", 5, set(), 1000.0)
    found = search.search(query, str(tmp_path / "none.db"))
    assert [hit.slug for hit in found.hits] == ["note-3"]
