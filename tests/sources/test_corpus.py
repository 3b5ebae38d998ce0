"""Which transcripts on disk are sessions of a person, and what each says of itself."""

import json
import os
import shutil
from pathlib import Path

import pytest

from memoryvault.sources.transcripts.corpus import DEFAULT_CLEANUP_DAYS, claude_cleanup_days, find_transcripts

from .records import human, user, write


def session(path: Path, name: str, **fields: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, human(1, f"hello from {name}", **{"sessionId": name, **fields}))


def test_only_a_persons_sessions_are_found(tmp_path: Path) -> None:
    kept = session(tmp_path / "proj" / "sess-1.jsonl", "sess-1")
    for left_out in (
        "proj/subagents/agent-abc.jsonl",
        "proj/sess-1/subagents/abc.jsonl",
        "proj/subagents/workflows/wf_abc123/sess.jsonl",
        "proj/wf_abc/sess.jsonl",
        "proj/journal.jsonl",
        "proj/agent-1.jsonl",
    ):
        session(tmp_path / left_out, left_out)
    write(tmp_path / "proj" / "run.jsonl", user(1, "do it", entrypoint="sdk-cli", sessionId="run"))
    (tmp_path / "proj" / "empty.jsonl").write_bytes(b"")
    (tmp_path / "proj" / "notes.jsonl").write_text('{"a": 1}\n')
    found = find_transcripts([("claude", tmp_path)])
    assert [each.path for each in found.transcripts if each.session != "notes"] == [kept]
    assert find_transcripts([(None, tmp_path)]).transcripts[0].session == "sess-1"
    assert find_transcripts([(None, tmp_path)]).headless == 3


def test_a_transcript_keeps_its_identity_while_it_grows_moves_and_is_copied(tmp_path: Path) -> None:
    path = session(tmp_path / "a" / "s.jsonl", "s")
    before = find_transcripts([("claude", tmp_path)]).transcripts[0]
    with path.open("a") as out:
        out.write(json.dumps(human(2, "more", sessionId="s")) + "\n")
    (grown,) = find_transcripts([("claude", tmp_path)]).transcripts
    assert grown.identity == before.identity
    assert grown.size > before.size
    shutil.copy(path, tmp_path / "copy.jsonl")
    shutil.move(path, tmp_path / "moved.jsonl")
    (moved,) = find_transcripts([("claude", tmp_path)]).transcripts
    assert moved.identity == before.identity


def test_of_two_copies_the_longer_one_counts(tmp_path: Path) -> None:
    session(tmp_path / "old" / "s.jsonl", "s")
    longer = write(tmp_path / "s.jsonl", human(1, "hello from s", sessionId="s"), human(2, "more", sessionId="s"))
    assert [each.path for each in find_transcripts([(None, tmp_path)]).transcripts] == [longer]


def test_transcripts_are_sorted_oldest_first(tmp_path: Path) -> None:
    for name, at in (("new", 3000), ("old", 1000), ("mid", 2000)):
        os.utime(session(tmp_path / f"{name}.jsonl", name), (at, at))
    assert [each.session for each in find_transcripts([(None, tmp_path)]).transcripts] == ["old", "mid", "new"]


def test_codex_and_copilot_sessions_are_known_by_their_records(tmp_path: Path) -> None:
    meta = {"type": "session_meta", "payload": {"id": "cx-1", "cwd": "/home/dev/shop", "source": "cli"}}
    (tmp_path / "rollout-2026-01-01-cx-1.jsonl").write_text(json.dumps(meta) + "\n")
    start = {"type": "session.start", "data": {"sessionId": "cp-1", "context": {"cwd": "/home/dev/web"}}, "id": "e1"}
    (tmp_path / "cp").mkdir()
    (tmp_path / "cp" / "events.jsonl").write_text(json.dumps(start) + "\n")
    places = [("codex", tmp_path), ("copilot", tmp_path)]
    found = {each.host: each for each in find_transcripts(places).transcripts}
    assert (found["codex"].session, found["codex"].cwd) == ("cx-1", "/home/dev/shop")
    assert (found["copilot"].session, found["copilot"].cwd) == ("cp-1", "/home/dev/web")
    assert {each.host for each in find_transcripts([(None, tmp_path)]).transcripts} == {"codex", "copilot"}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ('{"cleanupPeriodDays": 90}', 90),
        ('{"cleanupPeriodDays": "soon"}', DEFAULT_CLEANUP_DAYS),
        ("{broken", DEFAULT_CLEANUP_DAYS),
        ("[1]", DEFAULT_CLEANUP_DAYS),
    ],
)
def test_how_long_claude_code_keeps_transcripts(tmp_path: Path, text: str, days: int) -> None:
    (tmp_path / "settings.json").write_text(text)
    assert claude_cleanup_days(tmp_path) == days
    assert claude_cleanup_days(tmp_path / "none") == DEFAULT_CLEANUP_DAYS
