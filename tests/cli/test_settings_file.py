"""Writing one setting keeps the rest of the user's file (cli/settings_file.py)."""

import errno
from pathlib import Path

import pytest

from memoryvault.cli import settings_file
from memoryvault.cli.settings_file import write_setting
from memoryvault.runtime.errors import SettingsError

OWN = '# mine\n[memory]\nreview_mode = "auto"  # never ask\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config.toml of the user's own."""
    path = tmp_path / "config" / "config.toml"
    path.parent.mkdir()
    path.write_text(OWN)
    return path


def test_the_rest_of_the_file_stays_and_the_file_is_private(config: Path) -> None:
    write_setting(config, "vault", "path", "/notes")
    assert config.read_text() == OWN + '\n[vault]\npath = "/notes"\n'
    assert config.stat().st_mode & 0o777 == 0o600
    assert list(config.parent.iterdir()) == [config]


def test_a_link_into_the_users_dotfiles_stays_one_and_what_it_leads_to_is_written(config: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    config.rename(kept)
    config.symlink_to(kept)
    write_setting(config, "vault", "path", "/notes")
    assert config.is_symlink()
    assert 'path = "/notes"' in kept.read_text()


def test_a_file_that_cannot_be_read_as_toml_is_left_alone(config: Path) -> None:
    config.write_text("[vault\n")
    with pytest.raises(SettingsError, match=r"can't write .*config\.toml"):
        write_setting(config, "vault", "path", "/notes")
    assert config.read_text() == "[vault\n"


def test_a_file_that_cannot_be_written_gets_the_line_to_add_by_hand(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(settings_file, "replace_file", refused)
    for section, key, value, line in (
        ("vault", "path", 'a "b"', r'path = "a \"b\""'),
        ("memory", "enabled", False, "enabled = false"),
    ):
        with pytest.raises(SettingsError) as told:
            write_setting(config, section, key, value)
        assert f"Permission denied; put `{line}` below `[{section}]` there by hand" in str(told.value)
