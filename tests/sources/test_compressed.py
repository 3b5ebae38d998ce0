"""Codex compresses what nobody went on with for a week: it is read as if it had not, or named as what cannot be."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryvault.services.corpus.backfill import is_mined
from memoryvault.services.mining import MiningRequest, mine_transcript
from memoryvault.sources.transcripts import compressed
from memoryvault.sources.transcripts.codex import transcript_files
from memoryvault.sources.transcripts.corpus import describe, find_transcripts
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.sources.transcripts.lines import complete_lines
from memoryvault.tests.support.zstd_frames import needs_decoder, packed

from .test_codex_items import message, said

RULE = "From now on, always run the linter before you commit."
NAME = "rollout-2026-03-01T10-00-00-0195.jsonl"


def rollout(folder: Path, *, more: int = 0) -> Path:
    path = folder / NAME
    records = [message("event", f"and then number {number}") for number in range(more)]
    said(path, message("event", RULE), *records)
    return path


def compress(path: Path) -> Path:
    """As Codex does it: the text goes."""
    result = path.with_name(f"{path.name}.zst")
    result.write_bytes(packed(path.read_bytes()))
    path.unlink()
    return result


@needs_decoder
def test_it_yields_the_same_turns_and_candidates_from_any_offset(tmp_path: Path) -> None:
    plain = rollout(tmp_path, more=3000)
    as_text = tmp_path / "text" / NAME
    as_text.parent.mkdir()
    shutil.copy(plain, as_text)
    path = compress(plain)
    ends = [line.end for line in complete_lines(as_text)]
    assert ends == [line.end for line in complete_lines(path)]
    for offset in (0, ends[1], ends[2000], ends[2000] - 3, ends[-1], ends[-1] + 1000):
        one, other = open_transcript(as_text, offset), open_transcript(path, offset)
        assert list(one) == list(other), offset
        assert (one.end_offset, one.bad_lines) == (other.end_offset, other.bad_lines)
    mined = mine_transcript(MiningRequest(str(path), "codex"))
    assert RULE in [each.statement for each in mined.candidates]
    assert mined == mine_transcript(MiningRequest(str(as_text), "codex"))


@needs_decoder
def test_it_is_found_and_known_as_the_same_session_whose_text_goes_first(tmp_path: Path) -> None:
    plain = rollout(tmp_path)
    before = describe(plain, "codex")
    path = compress(plain)
    after = describe(path, "codex")
    assert before is not None
    assert after is not None
    assert (after.identity, after.session, after.cwd) == (before.identity, before.session, before.cwd)
    assert [each.path for each in find_transcripts([("codex", tmp_path)]).transcripts] == [path]
    rollout(tmp_path)  # Codex has unpacked it, to go on with it.
    assert list(transcript_files(tmp_path)) == [plain]


def test_what_was_mined_before_it_was_compressed_is_known(tmp_path: Path) -> None:
    plain = rollout(tmp_path)
    before = describe(plain, "codex")
    assert before is not None
    times = os.stat(plain)
    cursor = {"size": before.size, "modified": before.modified, "offset": before.size}
    path = compress(plain)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = replace(before, path=path, size=path.stat().st_size, modified=path.stat().st_mtime)
    assert is_mined(after, cursor)
    assert not is_mined(after, {**cursor, "has_more": True})
    assert not is_mined(replace(after, modified=after.modified + 1), cursor), "another session's file"


def test_without_a_decoder_it_is_counted_and_the_reason_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compress(rollout(tmp_path))
    monkeypatch.setattr(compressed, "_MODULES", ())
    relative = tmp_path / "bin" / "zstd"
    relative.parent.mkdir()
    relative.write_text("#!/bin/sh\n", "utf-8")
    relative.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{tmp_path / 'none'}")
    assert find_transcripts([("codex", tmp_path)]).unreadable == 1
    with pytest.raises(OSError, match="program zstd"):
        list(complete_lines(path))


@needs_decoder
@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
def test_a_damaged_one_is_an_error_not_a_shorter_session(tmp_path: Path, damage: str) -> None:
    path = compress(rollout(tmp_path, more=3000))
    data = path.read_bytes()
    path.write_bytes({"cut": data[: len(data) // 2], "noise": b"x" * 100, "empty": b"\x28"}[damage])
    with pytest.raises(OSError, match="damaged"):
        list(open_transcript(path, 0, "codex"))


@needs_decoder
def test_nothing_is_left_running_where_only_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    path = compress(rollout(tmp_path, more=30_000))
    assert open_transcript(path, 0, "codex").header().session == "s1"
    assert all(process.returncode is not None for process in started)
