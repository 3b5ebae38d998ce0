"""How commands print: what goes to people."""

from pathlib import Path

import pytest

from memoryvault.cli.output import with_home
from memoryvault.tests.support.command import Command


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
    vault: Path, monkeypatch: pytest.MonkeyPatch, memory: Command
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
            told = memory(*line)
            assert (f"~/{vault.name}/" in told.out) == at_terminal, told
            assert (str(vault) in told.out) != at_terminal, told
            assert str(vault) not in told.err
    assert str(vault) in memory("save", "preferences", "short", "--body", "Keep answers short.", "--json").out


def test_an_entry_is_named_by_the_path_that_was_printed(
    vault: Path, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    monkeypatch.setenv("HOME", str(vault.parent))
    memory("save", "preferences", "tabs", "--body", "Always use tabs.")
    path = f"~/{vault.name}/personal-private/preferences/tabs.md"
    memory("show", path)
    memory("evolve", path, "Always use spaces.", "agreed")
    assert "there is no entry" in memory("show", f"~/{vault.name}/personal-private/preferences/none.md", code=1).err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("TABS", "there is no entry TABS; did you mean tabs-not-spaces?"),
        ("tab-not-space", "there is no entry tab-not-space; did you mean tabs-not-spaces?"),
        ("smal-commits", "there is no entry smal-commits; did you mean small-commits?"),
        ("no such thing", "there is no entry 'no such thing': `memory list` shows what there is"),
    ],
)
def test_a_name_that_no_entry_has_is_told_with_the_one_that_was_meant(
    vault: Path, memory: Command, name: str, said: str
) -> None:
    memory("save", "preferences", "tabs-not-spaces", "--body", "Always use tabs.")
    memory("save", "preferences", "small-commits", "--always", "--body", "Always make small commits.")
    for command in ("show", "guard", "always"):
        assert said in memory(command, name, code=1).err


def test_a_name_that_is_taken_says_how_to_replace_the_entry(vault: Path, memory: Command) -> None:
    line = ("save", "preferences", "tabs", "--body", "Always use tabs.")
    memory(*line)
    assert "`memory evolve tabs 'TEXT' 'REASON'` replaces it" in memory(*line, code=1).err
