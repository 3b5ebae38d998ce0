"""Single entries on the command line: which of them a session would get, and what a list says of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryvault.cli.main import main

PRIVATE = "personal-private"
ANSWERS = f"{PRIVATE}/workflow/db-backup.md"
WEAK = f"{PRIVATE}/fix/wal.md"
MARK = "; a session would not get it)"


def write(vault: Path, path: str, text: str, **fields: str) -> Path:
    note = vault / path
    note.parent.mkdir(parents=True, exist_ok=True)
    values = {"status": "active", "kind": path.split("/")[-2], "created": "2026-01-31", "updated": "2026-01-31"}
    header = "\n".join(f"{key}: {value}" for key, value in (values | fields).items())
    note.write_text(f"---\n{header}\n---\n\n{text}\n", "utf-8")
    return note


@pytest.fixture
def notes(vault: Path) -> Path:
    """One that answers a question about backups, one that only shares a word with it, and others."""
    write(vault, ANSWERS, "Take a backup of the database before every migration.")
    write(vault, WEAK, "The database was locked and nobody knew why until the third day of it.")
    write(vault, f"{PRIVATE}/preferences/release-notes.md", "Release notes are bullet points.")
    assert main(["reindex"]) == 0
    return vault


QUESTION = "when do we take a backup of the database, also after a lock"


def test_recall_marks_what_a_session_would_not_get(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["recall", QUESTION]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [line.endswith(MARK) for line in lines] == [False, True]
    assert main(["recall", QUESTION, "--json"]) == 0
    assert [(hit["path"], hit["given"]) for hit in json.loads(capsys.readouterr().out)["hits"]] == [
        (ANSWERS, True),
        (WEAK, False),
    ]


def test_what_a_filter_or_another_project_brings_no_session_gets(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(notes, ANSWERS, "Take a backup of the database before every migration.", status="superseded")
    write(notes, "personal-projects/shop/fix/backup.md", "Take a backup of the shop.", project="shop")
    capsys.readouterr()
    assert main(["recall", QUESTION, "--filter", "status=superseded"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(MARK)
    assert main(["recall", "backup of the shop", "--all-projects", "-k", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(MARK)
    assert main(["recall", "backup of the shop", "--project", "shop", "-k", "1"]) == 0
    assert not capsys.readouterr().out.splitlines()[0].endswith(MARK)


def test_what_every_session_gets_at_its_start_is_not_marked(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(notes, f"{PRIVATE}/_always-load/short.md", "Answers are short.", kind="preferences")
    capsys.readouterr()
    assert main(["recall", "short answers"]) == 0
    assert MARK not in capsys.readouterr().out


def test_without_a_question_there_is_no_prompt_to_compare_with(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["recall", "--filter", "kind=fix"]) == 0
    assert MARK not in capsys.readouterr().out
    assert main(["recall", "--filter", "kind=fix", "--json"]) == 0
    assert all("given" not in hit for hit in json.loads(capsys.readouterr().out)["hits"])
