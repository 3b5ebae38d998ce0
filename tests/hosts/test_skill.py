"""The skill beside the hooks: `memory init` writes it where each host reads its user's skills, and takes it away."""

from pathlib import Path

import pytest

from memoryvault.hooks.skill import PAGES, install_skill, remove_skill, skill_folder
from memoryvault.hooks.wiring import HOSTS
from memoryvault.runtime.settings import Settings
from memoryvault.sources.skills.finding import SkillRoot, WalkResult, skill_files
from memoryvault.tests.support.files import put

from ..hooks.support import Sandbox


@pytest.mark.parametrize("host", HOSTS)
def test_the_skill_is_written_and_taken_away_whole(sandbox: Sandbox, settings: Settings, host: str) -> None:
    before = sandbox.files()
    assert install_skill(host, settings) == ""
    folder = skill_folder(host, settings)
    assert {page.name for page in folder.glob("*.md")} == {page.name for page in PAGES.glob("*.md")}
    once = sandbox.files()
    assert install_skill(host, settings) == ""
    assert sandbox.files() == once
    assert remove_skill(host, settings) == folder
    assert sandbox.files() == before
    assert not folder.exists()
    assert remove_skill(host, settings) is None


def test_its_pages_name_a_command_that_runs_without_the_plugin_and_are_no_entries(settings: Settings) -> None:
    folder = skill_folder("claude", settings)
    folder.parent.mkdir(parents=True)
    install_skill("claude", settings)
    text = (folder / "SKILL.md").read_text("utf-8")
    assert "CLAUDE_PLUGIN_ROOT" not in text
    assert "-I -m memoryvault" in text
    assert list(skill_files(SkillRoot(folder.parent, "user", "user"), WalkResult())) == []
    remove_skill("claude", settings)
    assert list(folder.parent.iterdir()) == [], "a folder that was there before stays"


def test_a_skill_of_this_name_that_is_the_users_own_stays(settings: Settings) -> None:
    folder = skill_folder("claude", settings)
    put(folder / "SKILL.md", "mine")
    assert "is another's" in install_skill("claude", settings)
    assert remove_skill("claude", settings) is None
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("SKILL.md", "mine")]


def test_a_page_that_the_user_changed_stays_and_an_older_one_is_brought_up_to_date(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    put(older / "SKILL.md", "of the version before")
    (older / "save.md").write_text("of the version before")
    with monkeypatch.context() as earlier:
        earlier.setattr("memoryvault.hooks.skill.PAGES", older)
        install_skill("claude", settings)
    folder = skill_folder("claude", settings)
    (folder / "save.md").write_text("mine")
    assert install_skill("claude", settings) == f"save.md in {folder}: you changed it, so it stays"
    assert (folder / "SKILL.md").read_text("utf-8").startswith("---\nname: memory\n")
    assert (folder / "save.md").read_text() == "mine"
    assert remove_skill("claude", settings) == folder
    assert [path.name for path in folder.iterdir()] == ["save.md"]
