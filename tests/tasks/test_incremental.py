"""Mining a growing session: no turn is read more than three times, whatever the session's size, in constant memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from memoryvault.bench.sessions import session_lines
from memoryvault.pipelines.candidate import Candidate
from memoryvault.services.mining import Mined, MiningRequest, mine_transcript
from memoryvault.vault.marker import Marker

from ..sources.records import assistant, call, human, result, text_block, uuid, write

IO = Path("/proc/self/io")


@dataclass
class Growing:
    """A transcript that grows by turns and is mined after each, as after a Stop hook."""

    path: Path
    marker: Marker

    @classmethod
    def at(cls, path: Path) -> Growing:
        path.write_bytes(b"")
        return cls(path, Marker("s", transcript=str(path), host="claude"))

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def mine(self) -> Mined:
        marker = self.marker
        mined = mine_transcript(MiningRequest(str(self.path), "claude", marker.offset, marker.resume))
        self.marker = marker.with_offset(mined.mined_until, mined.context_offset)
        return mined


def identity(candidates: tuple[Candidate, ...]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(candidate.category, candidate.statement, candidate.records) for candidate in candidates]


def bytes_read() -> int:
    """By this process so far, in whatever way."""
    return int(next(line for line in IO.read_text().splitlines() if line.startswith("rchar:")).split()[1])


def test_however_a_session_is_cut_it_yields_what_one_reading_yields(tmp_path: Path) -> None:
    path = write(
        tmp_path / "whole.jsonl",
        human(1, "start with the parser"),
        assistant(2, text_block("Which clock should it use?")),
        human(3, "no, use the database's clock instead of the system's"),
        assistant(4, call("a", "Bash", command="pip install .")),
        result(5, "a", "error: externally-managed-environment", is_error=True),
        assistant(6, text_block("I see."), call("b", "Bash", command="pip config set x y")),
        result(7, "b", "ok"),
        assistant(8, call("c", "Bash", command="pip install .")),
        result(9, "c", "installed"),
        human(10, "always lint before you commit"),
        assistant(11, text_block("The issue was a stale lock. Fixed by closing the handle in a finally block.")),
        assistant(12, call("d", "Bash", command="git push")),
        result(
            13,
            "d",
            "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
            "never push without asking me",
            is_error=True,
        ),
        assistant(14, text_block("Understood.")),
        human(15, "I prefer small commits"),
    )
    whole = identity(mine_transcript(MiningRequest(str(path), "claude")).candidates)
    assert len(whole) >= 5
    lines = path.read_bytes().splitlines(keepends=True)
    for cut in range(len(lines) + 1):
        session = Growing.at(tmp_path / "cut.jsonl")
        session.append(b"".join(lines[:cut]))
        found = identity(session.mine().candidates)
        assert session.mine().candidates == (), "nothing new is said"
        session.append(b"".join(lines[cut:]))
        assert sorted(found + identity(session.mine().candidates)) == sorted(whole), f"cut before line {cut}"
    session = Growing.at(tmp_path / "each.jsonl")
    found = []
    for line in lines:
        session.append(line)
        found += identity(session.mine().candidates)
    assert sorted(found) == sorted(whole)


def test_a_fix_after_which_the_same_failure_came_again_is_none(tmp_path: Path) -> None:
    def ran(number: int, failed: bool) -> list[dict[str, Any]]:
        made = assistant(number, call(f"t{number}", "Bash", command="make test"))
        return [made, result(number + 1, f"t{number}", "E  labels differ" if failed else "ok", failed)]

    told = assistant(4, text_block("It was caused by a race; fixed by a lock."))
    proof = [human(1, "mend the tests"), *ran(2, True), told, *ran(5, False)]
    request = MiningRequest(str(write(tmp_path / "s.jsonl", *proof)), "claude")
    assert [each.category for each in mine_transcript(request).candidates] == ["fix"]
    write(tmp_path / "s.jsonl", *proof, *ran(7, True))
    assert mine_transcript(request).candidates == ()


TURNS = 200
"""Reading all of it again with every turn would be a hundred passes."""


@pytest.mark.slow
@pytest.mark.skipif(not IO.exists(), reason="the bytes a process reads are counted by Linux only")
def test_a_session_of_200_turns_costs_less_than_three_passes(tmp_path: Path) -> None:
    session = Growing.at(tmp_path / "s.jsonl")
    once = Growing.at(tmp_path / "once.jsonl")
    candidates, steps = [], 0
    mine_transcript(MiningRequest(str(once.path), "claude"))  # what is loaded once is not counted
    reading = 0
    for _, turn in groupby(session_lines(TURNS, 125_000), key=lambda item: item[0]):
        data = b"".join(line for _, line in turn)
        session.append(data)
        once.append(data)
        before = bytes_read()
        candidates += identity(session.mine().candidates)
        reading += bytes_read() - before
        steps += 1
    size = session.path.stat().st_size
    assert steps == TURNS
    assert size > 125_000 * TURNS
    before = bytes_read()
    whole = identity(once.mine().candidates)
    one_pass = bytes_read() - before
    assert one_pass >= size
    assert candidates == whole
    assert reading <= 3 * one_pass


MINE = r"""
import re, resource, sys
from pathlib import Path
from memoryvault.services.mining import MiningRequest, mine_transcript
mined = mine_transcript(MiningRequest(sys.argv[1], "claude"))
status = Path("/proc/self/status")
# Linux counts into ru_maxrss what the parent had when it forked.
peak = re.search(r"VmHWM:\s+(\d+)", status.read_text())[1] if status.exists() else None
print(mined.mined_until, peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_stays_flat_on_a_huge_transcript(tmp_path: Path) -> None:
    """Ten times the bytes, the same memory but for the records' ids (16 bytes each, and what holds them)."""
    peaks = []
    for megabytes in (10, 100):
        path = tmp_path / "s.jsonl"
        with path.open("wb") as file:
            for _, line in session_lines(megabytes, 1_000_000):
                file.write(line)
        done = subprocess.run([sys.executable, "-c", MINE, str(path)], check=True, capture_output=True, text=True)
        end, peak = map(int, done.stdout.split())
        assert end == path.stat().st_size >= megabytes * 1_000_000
        peaks.append(peak * (1 if sys.platform == "darwin" else 1024))
        path.unlink()
    assert peaks[1] - peaks[0] < 14_000_000
    assert peaks[1] < 150_000_000


# Transcripts that the host shortens by removing an answer that broke off


def line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


ASKED = line(human(1, "start with the parser"))
BROKEN_OFF = line(assistant(3, text_block("Let me look at " + "the clocks " * 40)))
RULE = "always lint before you commit"


@pytest.mark.parametrize(
    "before",
    [b"", ASKED, ASKED + line(assistant(2, text_block("Which clock should it use?")))],
    ids=["nothing", "a prompt", "an answer"],
)
@pytest.mark.parametrize("more", [0, 300, 3000], ids=["shorter", "straddling", "longer"])
def test_text_after_a_rewound_answer_is_mined(tmp_path: Path, before: bytes, more: int) -> None:
    session = Growing.at(tmp_path / "s.jsonl")
    session.append(before + BROKEN_OFF)
    session.mine()
    session.path.write_bytes(before)  # As the host does.
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
