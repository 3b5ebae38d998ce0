"""Transcripts that the host shortens by removing an answer that broke off."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ..sources.records import assistant, human, text_block, uuid
from .test_incremental import Growing


def line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def cut_back(session: Growing, data: bytes) -> None:
    """Rewrite the transcript from here on, as the host does."""
    whole = session.path.read_bytes()
    assert whole.endswith(data)
    session.path.write_bytes(whole.removesuffix(data))


ASKED = line(human(1, "start with the parser"))
ANSWERED = line(assistant(2, text_block("Which clock should it use?")))
BROKEN_OFF = line(assistant(3, text_block("Let me look at " + "the clocks " * 40)))
RULE = "always lint before you commit"


@pytest.mark.parametrize("before", [b"", ASKED, ASKED + ANSWERED], ids=["nothing", "a prompt", "an answer"])
@pytest.mark.parametrize("more", [0, 300, 3000], ids=["shorter", "straddling", "longer"])
def test_text_after_a_rewound_answer_is_mined(tmp_path: Path, before: bytes, more: int) -> None:
    session = Growing.at(tmp_path / "s.jsonl")
    session.append(before + BROKEN_OFF)
    session.mine()
    cut_back(session, BROKEN_OFF)
    session.append(line(human(4, RULE, gitBranch="b" * more)))
    found = session.mine().candidates
    assert [(candidate.statement, candidate.records[-1]) for candidate in found] == [(RULE, uuid(4))]
    assert session.marker.offset == session.path.stat().st_size


@pytest.mark.parametrize("damage", [BROKEN_OFF[:-200], b"\0" * 200], ids=["half a record", "lost power"])
def test_a_turn_that_begins_inside_of_a_damaged_line_is_no_rewritten_end(tmp_path: Path, damage: bytes) -> None:
    session = Growing.at(tmp_path / "s.jsonl")
    answered = line({"parentUuid": None, **assistant(2, text_block("Which clock should it use?"))})
    session.append(line(human(1, RULE)) + damage + answered)
    assert [candidate.statement for candidate in session.mine().candidates] == [RULE]
    session.append(line(human(4, "look at the clocks")))
    assert session.mine().candidates == ()
    session.append(line(assistant(5, text_block("Which of them?"))))
    assert session.mine().candidates == ()
