"""What commands list: a text that does not fit shows that it goes on, and a filter that can match nothing is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.demo.sandbox import Sandbox

LONG = "A page that shows how many charges were retried on each day of the month by the people who look after payments"
SHOWN = "A page that shows how many charges were retried on each day of the month by the people who look …"
PRIVATE = "personal-private"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sandbox = Sandbox(tmp_path)
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return sandbox.vault


def write(vault: Path, path: str, status: str, text: str, **fields: str) -> None:
    note = vault / path
    note.parent.mkdir(parents=True, exist_ok=True)
    header = "\n".join(f"{key}: {value}" for key, value in {"status": status, **fields}.items())
    note.write_text(f"---\n{header}\ncreated: 2020-01-01\nupdated: 2020-01-01\n---\n\n# Retries\n\n{text}\n", "utf-8")


@pytest.mark.parametrize("line", ["idea list", "idea gc", "inbox list", "topics list --project shop"])
def test_a_list_shows_where_a_text_goes_on(vault: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    text = f"{LONG} and for whom nobody has made one so far."
    write(vault, f"{PRIVATE}/_idea-incubator/retries/_index.md", "incubating", text, kind="idea")
    write(vault, f"{PRIVATE}/_inbox/retries.md", "inbox", text, kind="preferences")
    topic = vault / "personal-projects/shop/memory/retries.md"
    topic.parent.mkdir(parents=True)
    topic.write_text(f"---\nname: retries\ndescription: {text}\ntype: project\n---\n\n{text}\n", "utf-8")
    assert main(line.split()) == 0
    (row,) = [each for each in capsys.readouterr().out.splitlines() if each.startswith(("retries", "1 "))]
    assert row.endswith(SHOWN)
