"""Old sessions on disk, for tests."""

import json
import os
from pathlib import Path

from memoryvault.demo.sandbox import Sandbox
from memoryvault.tests.sources.records import assistant, human, text_block, write

DAY = 86_400.0
RULE = "Remember: always run the linter before you commit, never after."


def old_session(
    folder: Path, number: int, *said: str, at: float = 1_700_000_000.0, cwd: str = "/home/dev/shop"
) -> Path:
    """A session of a person, with an answer after each prompt; one name per number, written to at `at` + number."""
    session = f"00000000-1111-4222-8333-{number:012d}"
    path = folder / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    records = []
    for place, text in enumerate(said or (f"Please look at part {number}.",)):
        common = {"sessionId": session, "cwd": cwd}
        records.append(human(1000 * number + 2 * place, text, **common))
        records.append(assistant(1000 * number + 2 * place + 1, text_block("Done."), **common))
    write(path, *records)
    os.utime(path, (at + number, at + number))
    return path


def pause_upkeep(sandbox: Sandbox) -> None:
    """For a test that compares whole vaults: jobs that write notes two minutes later or at 4 a.m. may become due
    during it."""
    for kind in ("dashboard.write", "inbox.triage", "incubator.gc"):
        sandbox.memory("jobs", "pause", kind)


def grow(path: Path, number: int, said: str) -> None:
    """Append to the session."""
    record = human(1000 * number + 507, said, sessionId=path.stem, cwd="/home/dev/shop")
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")
