"""Hooks and worker agree on which transcripts may be read."""

from pathlib import Path

import pytest

from memoryvault.runtime.layout import resolve_within


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    folder.mkdir()
    (folder / "own.jsonl").write_text("", "utf-8")
    return folder


def test_a_transcript_in_a_hosts_folder_is_resolved(root: Path) -> None:
    (root / "link.jsonl").symlink_to(root / "own.jsonl")
    assert resolve_within(f"{root}/link.jsonl", [str(root)]) == str(root / "own.jsonl")


def test_it_need_not_be_written_yet(root: Path) -> None:
    assert resolve_within(f"{root}/later/own.jsonl", [str(root)]) == f"{root}/later/own.jsonl"


def test_a_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").symlink_to(root)
    assert resolve_within(f"{tmp_path}/dotfiles/own.jsonl", [f"{tmp_path}/dotfiles/"]) == str(root / "own.jsonl")


@pytest.mark.parametrize(
    ("path", "roots"),
    [
        ("{root}-other/own.jsonl", "{root}"),
        ("own.jsonl", "{root}"),
        *((f"{{root}}/{name}", "{root}") for name in ("two\nlines", "escape\x1b[2J", "byte\udcff", "zero\0")),
        ("{root}/own.jsonl", ""),  # An empty root is not the working directory.
        ("{root}/own.jsonl", "."),
    ],
)
def test_what_leads_elsewhere_or_cannot_be_printed_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, roots: str
) -> None:
    monkeypatch.chdir(root)
    assert resolve_within(path.format(root=root), [roots.format(root=root)]) is None
