"""How commands print: what goes to people."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.cli.output import with_home


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("see /home/me/notes/a.md", "see ~/notes/a.md"),
        ("/home/me/notes", "~/notes"),
        ("memory init --vault '/home/me/my notes'", "memory init --vault '/home/me/my notes'"),
        ("/home/media/film and /mnt/home/me/x", "/home/media/film and /mnt/home/me/x"),
    ],
)
def test_a_path_in_the_home_folder_begins_with_a_tilde_unless_it_is_in_quotes(
    monkeypatch: pytest.MonkeyPatch, said: str, shown: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert with_home(said) == shown


def test_text_for_people_names_the_home_folder_by_a_tilde_and_json_in_full(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(vault.parent))
    for line in (
        ["save", "preferences", "tabs", "--body", "Always use tabs."],
        ["evolve", "tabs", "Always use spaces.", "agreed"],
        ["idea", "A bot that waters the plants"],
        ["idea", "show", "bot-that-waters-the-plants"],
        ["config", "show"],
        ["vault", "incident", "add", "--body", "uv fails behind the proxy"],
    ):
        assert main(line) == 0
        told = "".join(capsys.readouterr())
        assert f"~/{vault.name}/" in told or "~/Ideas.md" in told or line[0] == "config"
        assert str(vault.parent) not in told
    assert main(["save", "preferences", "short", "--body", "Keep answers short.", "--json"]) == 0
    assert str(vault) in capsys.readouterr().out


def test_a_name_that_is_taken_says_how_to_replace_the_entry(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        code = main(["save", "preferences", "tabs", "--body", "Always use tabs."])
    assert code == 1
    assert "`memory evolve tabs 'TEXT' 'REASON'` replaces it" in capsys.readouterr().err
