"""SKILL.md files are found where hosts keep them, and read whatever is in them."""

import json
import os
import time
from pathlib import Path

import pytest

from memoryvault.sources.skills import finding
from memoryvault.sources.skills.finding import SkillRoot, WalkResult, claude_roots, project_root, skill_files
from memoryvault.sources.skills.reading import READ_BYTES, SkillText, read_skill
from memoryvault.tests.support.files import put

TEXT = "---\nname: alpha\ndescription: First one.\nversion: 1.0.0\n---\n\n# alpha\n\nWhat it\ndoes.\n\nNot this.\n"


def skill(folder: Path, text: str = TEXT) -> Path:
    put(folder / "SKILL.md", text)
    return folder / "SKILL.md"


def read(file: Path) -> SkillText:
    text = read_skill(file)
    assert text is not None
    return text


def found(root: SkillRoot) -> list[Path]:
    return list(skill_files(root, WalkResult()))


def test_name_description_version_and_first_paragraph_are_read(tmp_path: Path) -> None:
    text = read(skill(tmp_path / "alpha"))
    assert (text.name, text.description, text.version) == ("alpha", "First one.", "1.0.0")
    assert text.summary == "What it does."
    assert text.warnings == ()


@pytest.mark.parametrize(
    ("content", "name", "description", "warning"),
    [
        ("---\nname: a: b\ndescription: use: it\n---\nx\n", "folder", "", "not valid YAML"),
        ("---\nname: good\ndescription: [broken\nversion: 2\n---\nx\n", "good", "", "not valid YAML"),
        ("---\n- a list\n---\nx\n", "folder", "", "not valid YAML"),
        ("# no frontmatter\n\nText.\n", "folder", "", "no frontmatter"),
        ("---\nname: [x]\ndescription: {a: b}\n---\nx\n", "folder", "", None),
        ("---\nname: folded\ndescription: >\n  one\n  two\n---\n", "folded", "one two", None),
    ],
)
def test_bad_frontmatter_warns(tmp_path: Path, content: str, name: str, description: str, warning: str | None) -> None:
    text = read(skill(tmp_path / "folder", content))
    assert (text.name, text.description) == (name, description)
    assert any(warning in each for each in text.warnings) if warning else not text.warnings


def test_a_giant_a_bomb_and_bytes_that_are_no_text_are_read_in_part(tmp_path: Path) -> None:
    file = skill(tmp_path / "big", TEXT + "x" * (10 << 20))
    text = read(file)
    assert text.description == "First one."
    assert "10.5 MB" in text.warnings[0]
    assert file.stat().st_size > READ_BYTES
    bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
        for a, b in zip("abcdefghij", "bcdefghijk", strict=True)
    )
    started = time.process_time()
    text = read(skill(tmp_path / "bomb", bomb + "description: *k\n---\n"))
    assert text.description == ""
    assert time.process_time() - started < 5
    put(tmp_path / "bytes" / "SKILL.md", b"---\nname: x\n---\n\xff\xfe text\n")
    text = read(tmp_path / "bytes" / "SKILL.md")
    assert text.warnings == ("it is not UTF-8",)
    assert read_skill(skill(tmp_path / "empty", "\n")) is None


def test_a_pipe_and_a_link_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "SKILL.md").symlink_to("/etc/passwd")
    for name in ("pipe", "link"):
        with pytest.raises(OSError):
            read_skill(tmp_path / name / "SKILL.md")
    assert found(SkillRoot(tmp_path, "x", "given")) == []


def test_skills_are_found_at_any_depth_but_not_in_what_was_installed_for_a_program(tmp_path: Path) -> None:
    wanted = [skill(tmp_path / "a" / "b" / "c"), skill(tmp_path / ".claude" / "skills" / "x")]
    skill(tmp_path / "node_modules" / "dep")
    skill(tmp_path / ".git" / "x")
    assert sorted(found(SkillRoot(tmp_path, "x", "given"))) == sorted(wanted)


def test_links_that_loop_or_lead_out_are_not_followed_but_in_the_users_own_folder(tmp_path: Path) -> None:
    outside = skill(tmp_path / "outside" / "one")
    root = tmp_path / "root"
    inside = skill(root / "two")
    (root / "loop").symlink_to(root)
    (root / "out").symlink_to(outside.parent)
    assert found(SkillRoot(root, "x", "given")) == [inside]
    assert found(SkillRoot(root, "user", "user")) == [root / "out" / "SKILL.md", inside]


def test_a_tree_without_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MAX_FOLDERS", 5)
    for number in range(10):
        skill(tmp_path / f"s{number}")
    walked = WalkResult()
    assert len(list(skill_files(SkillRoot(tmp_path, "x", "given"), walked))) < 10
    assert not walked.complete
    assert "more than 5 folders" in walked.warnings[0]


def test_of_plugins_those_that_are_installed_count(tmp_path: Path) -> None:
    cache = tmp_path / "plugins" / "cache" / "market"
    assert [root.path for root in claude_roots(tmp_path)] == [tmp_path / "skills"]
    for name in ("kept", "other"):
        skill(cache / name / "1.0.0" / "skills" / "s")
    assert [root.repo for root in claude_roots(tmp_path)] == ["user", "kept", "other"]
    listed = {"version": 2, "plugins": {"kept@market": [{"installPath": str(cache / "kept" / "1.0.0")}], "bad@m": [{}]}}
    (tmp_path / "plugins" / "installed_plugins.json").write_text(json.dumps(listed))
    assert [(root.repo, root.owner) for root in claude_roots(tmp_path)] == [("user", "user"), ("kept", "plugin")]
    assert project_root(Path("/p"), "shop").project == "shop"
