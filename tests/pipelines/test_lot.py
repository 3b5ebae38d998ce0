"""Judging the miner on prompts that lie outside the repository, and knowing which were judged on before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the benchmarks of mining need the extra `semantic`")

from memoryvault.bench.lot import KNOWN_LOTS, key_of, main, rows_of

LOT = (
    {"person": "a", "label": "preference", "text": "Always run the linter before you commit."},
    {"person": "a", "label": "none", "text": "show me the log", "before": "The build failed."},
    {"person": "b", "label": "correction", "text": "no, use pnpm, not npm", "before": "I ran npm install."},
)


def test_a_lot_is_judged_by_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lot.jsonl"
    file.write_text("\n".join(map(json.dumps, LOT)), encoding="utf-8")
    assert main([str(file)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("3 prompts of 2 people, 0 of them in earlier lots")
    assert "| preference or correction | local miner | 1.00 (1.00–1.00) | 1.00 (1.00–1.00)" in shown
    assert "| saved unasked (HIGH) | local miner | 1.00" in shown


@pytest.mark.parametrize(("file", "prompts"), [*zip(KNOWN_LOTS, (184, 208, 239, 240), strict=True)])
def test_a_known_lot_holds_labels_and_no_words(file: Path, prompts: int) -> None:
    rows = rows_of(file)
    assert len({row["key"] for row in rows}) == len(rows) == prompts
    assert {name for row in rows for name in row} == {"key", "person", "label", "doubtful", "second"}
    assert all(len(row["key"]) == 16 and len(row["person"]) <= 2 for row in rows)
    assert {row["label"] for row in rows} <= {"preference", "correction", "idea", "fix", "none"}


def test_a_prompt_that_was_cut_has_the_same_key() -> None:
    words = "please  Go through all the modules and say which of them have no tests, "
    assert key_of(words) == key_of(words.lower().replace("  ", "\n") + "and then the rest of a long message")
    assert key_of(words) != key_of("please go through none of the modules and say which of them have no tests")
