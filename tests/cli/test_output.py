"""How commands print: what goes to people."""

from __future__ import annotations

import pytest

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
