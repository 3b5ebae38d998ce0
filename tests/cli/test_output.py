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


def test_a_terminal_is_told_the_home_folder_by_a_tilde_and_a_pipe_in_full(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(vault.parent))
    for at_terminal, way in ((True, "seen"), (False, "piped")):
        monkeypatch.setattr("sys.stdout.isatty", lambda at=at_terminal: at)
        for line in (
            ["save", "preferences", f"tabs-{way}", "--body", f"Always use tabs: {way}."],
            ["evolve", f"tabs-{way}", f"Always use spaces: {way}.", "agreed"],
            ["idea", f"A bot that waters the plants {way}"],
            ["idea", "show", f"bot-that-waters-the-plants-{way}"],
            ["vault", "incident", "add", "--body", f"uv fails behind the proxy {way}"],
            ["vault", "topics", "write", f"deploy-{way}", "--project", "shop", "--type", "project",
             "--description", "How", "--body", "Tag, then push."],
        ):  # fmt: skip
            assert main(line) == 0
            told = capsys.readouterr()
            assert (f"~/{vault.name}/" in told.out) == at_terminal, told
            assert (str(vault) in told.out) != at_terminal, told
            assert str(vault) not in told.err
    assert main(["save", "preferences", "short", "--body", "Keep answers short.", "--json"]) == 0
    assert str(vault) in capsys.readouterr().out


def test_an_entry_is_named_by_the_path_that_was_printed(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(vault.parent))
    assert main(["save", "preferences", "tabs", "--body", "Always use tabs."]) == 0
    path = f"~/{vault.name}/personal-private/preferences/tabs.md"
    assert main(["show", path]) == 0
    assert main(["evolve", path, "Always use spaces.", "agreed"]) == 0
    assert main(["show", f"~/{vault.name}/personal-private/preferences/none.md"]) == 1
    assert "there is no entry" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("TABS", "there is no entry TABS; did you mean tabs-not-spaces?"),
        ("tab-not-space", "there is no entry tab-not-space; did you mean tabs-not-spaces?"),
        ("no such thing", "there is no entry 'no such thing': `memory list` shows what there is"),
    ],
)
def test_a_name_that_no_entry_has_is_told_with_the_one_that_was_meant(
    vault: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    assert main(["save", "preferences", "tabs-not-spaces", "--body", "Always use tabs."]) == 0
    for command in (["show", name], ["guard", name], ["always", name]):
        capsys.readouterr()
        assert main(command) == 1
        assert said in capsys.readouterr().err


def test_a_name_that_is_taken_says_how_to_replace_the_entry(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        code = main(["save", "preferences", "tabs", "--body", "Always use tabs."])
    assert code == 1
    assert "`memory evolve tabs 'TEXT' 'REASON'` replaces it" in capsys.readouterr().err
