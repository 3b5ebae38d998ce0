"""Removed evidence of old sessions stays removed, whatever happens to the state folder; with real workers."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memoryvault.services.tombstones import NOTE
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.shared_data import shared_data

from .sessions import RULE, grow, old_session, pause_upkeep

pytestmark = pytest.mark.slow

IDLE = ("service", "worker", "--until-idle", "--timeout", "120")


def made_up_sessions(folder: Path) -> list[Path]:
    said = [(RULE,), ("No, use pnpm instead of npm for the shop.",), ("Never push to main without a green build.",)]
    return [old_session(folder, number, *words) for number, words in enumerate(said, start=1)]


def real_sessions(folder: Path) -> list[Path]:
    sessions = shared_data("sessions")
    folder.mkdir(parents=True)
    return [Path(shutil.copy(path, folder)) for path in sorted(sessions.glob("*.jsonl"))]


def backfill(sandbox: Sandbox) -> None:
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)


def lose_state(sandbox: Sandbox) -> None:
    """Delete the state folder, including what was paused."""
    shutil.rmtree(sandbox.root / "state")
    pause_upkeep(sandbox)


def written(sandbox: Sandbox) -> dict[str, str]:
    """All notes except the one with the removed evidence."""
    notes = {str(path.relative_to(sandbox.vault)): path.read_text("utf-8") for path in sandbox.vault.rglob("*.md")}
    return {path: text for path, text in notes.items() if path != NOTE}


def read_in_every_way(sandbox: Sandbox, paths: Sequence[Path]) -> None:
    """Read the sessions by a backfill, by hand, and as a session that continues."""
    backfill(sandbox)
    for path in paths:
        sandbox.memory("reflect", "--session", str(path))
        payload = {"session_id": path.stem, "cwd": "/home/dev/shop", "transcript_path": str(path)}
        sandbox.hook("SessionStart", {**payload, "source": "resume"})
        sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    sandbox.memory(*IDLE)


@pytest.mark.parametrize("sessions", [made_up_sessions, real_sessions])
def test_nothing_comes_back_without_the_state_folder(sandbox: Sandbox, sessions: Callable[[Path], list[Path]]) -> None:
    pause_upkeep(sandbox)
    paths = sessions(sandbox.projects / "-home-dev-shop")
    read_in_every_way(sandbox, paths)
    first = written(sandbox)
    assert len(first) >= 3
    sandbox.memory("undo", "--since", "1h", "--yes")
    sandbox.memory(*IDLE)
    assert written(sandbox) == {}
    noted = (sandbox.vault / NOTE).read_bytes()
    lose_state(sandbox)
    read_in_every_way(sandbox, paths)
    assert written(sandbox) == {}
    assert (sandbox.vault / NOTE).read_bytes() == noted
    (sandbox.vault / NOTE).unlink()
    lose_state(sandbox)
    read_in_every_way(sandbox, paths)
    assert written(sandbox).keys() == first.keys(), "who deletes the note has it all again"


def test_new_statement_counts_and_reset_brings_the_rest_back(sandbox: Sandbox) -> None:
    pause_upkeep(sandbox)
    path, *_ = made_up_sessions(sandbox.projects / "-home-dev-shop")
    backfill(sandbox)
    first = written(sandbox)
    sandbox.memory("undo", "--last", "--yes")
    grow(path, 1, RULE)
    backfill(sandbox)
    (rule,) = written(sandbox).values()
    assert "linter" in rule
    assert "occurrences: 1" in rule
    assert "forgotten that 3 sessions were mined" in sandbox.memory("reflect", "corpus", "--reset", "--execute")
    assert not (sandbox.vault / NOTE).exists()
    sandbox.memory(*IDLE)
    assert written(sandbox).keys() == first.keys()
