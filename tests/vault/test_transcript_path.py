"""Hooks and worker agree on which transcripts may be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.runtime.layout import resolve_within


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    folder.mkdir()
    (folder / "own.jsonl").write_text("", "utf-8")
    (tmp_path / "elsewhere.jsonl").write_text("", "utf-8")
    return folder


def test_a_transcript_in_a_hosts_folder_is_resolved(root: Path) -> None:
    (root / "link.jsonl").symlink_to(root / "own.jsonl")
    assert resolve_within(f"{root}/link.jsonl", [str(root)]) == str(root / "own.jsonl")


def test_it_need_not_be_written_yet(root: Path) -> None:
    assert resolve_within(f"{root}/later/own.jsonl", [str(root)]) == f"{root}/later/own.jsonl"


def test_a_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").symlink_to(root)
    assert resolve_within(f"{tmp_path}/dotfiles/own.jsonl", [f"{tmp_path}/dotfiles/"]) == str(root / "own.jsonl")


def test_a_link_or_dots_that_lead_out_of_the_hosts_folders_are_refused(root: Path, tmp_path: Path) -> None:
    (root / "link.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    for path in (f"{root}/link.jsonl", f"{root}/../elsewhere.jsonl", f"{root}-other/own.jsonl", str(root)):
        assert resolve_within(path, [str(root)]) is None, path


def test_a_relative_path_is_refused_though_it_leads_into_a_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert resolve_within("own.jsonl", [str(root)]) is None


@pytest.mark.parametrize("name", ["two\nlines.jsonl", "escape\x1b[2J.jsonl", "byte\udcff.jsonl", "zero\0.jsonl"])
def test_a_path_that_cannot_be_printed_is_refused(root: Path, name: str) -> None:
    assert resolve_within(f"{root}/{name}", [str(root)]) is None


def test_an_empty_root_is_not_the_working_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert resolve_within(f"{root}/own.jsonl", ["", "."]) is None
