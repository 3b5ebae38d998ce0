import json
import os
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from memoryvault.runtime.settings import load_settings
from memoryvault.services.corpus.backfill import is_mined
from memoryvault.services.mining import MiningRequest, mine_transcript, mined_from_json
from memoryvault.sources.transcripts import compressed
from memoryvault.sources.transcripts.codex import transcript_files
from memoryvault.sources.transcripts.corpus import describe, find_transcripts
from memoryvault.sources.transcripts.hosts import HOSTS, host_of, open_transcript
from memoryvault.sources.transcripts.lines import complete_lines
from memoryvault.tests.support.files import put
from memoryvault.tests.support.shared_data import shared_data
from memoryvault.tests.support.zstd_frames import needs_decoder, packed
from memoryvault.vault.turn import Origin

HEADER = {"id": "c-1", "cwd": "/w/shop", "originator": "codex-tui", "source": "cli"}


def event(kind: str, **payload: Any) -> dict[str, Any]:
    """A record of Codex."""
    return {"timestamp": "2026-03-01T10:00:00Z", "type": "event_msg", "payload": {"type": kind, **payload}}


def response(kind: str, **payload: Any) -> dict[str, Any]:
    return {**event(kind, **payload), "type": "response_item"}


def header(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-01T10:00:00Z", "type": "session_meta", "payload": payload}


CODEX: list[dict[str, Any]] = [
    header(**HEADER),
    response("message", role="user", content=[{"type": "input_text", "text": "# AGENTS.md always x"}]),
    event("user_message", message="use private repos"),
    event("agent_message", message="I will."),
    response("function_call", name="exec_command", arguments='{"cmd":"make test"}', call_id="k1"),
    response("function_call_output", call_id="k1", output="Process exited with code 2\nOutput:\nno"),
    response("local_shell_call", call_id="k2", action={"command": ["bash", "-lc", "ls"]}),
    event("token_count", info={}),
]


def copilot(kind: str, number: int, **data: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"e{number}", "data": data}


COPILOT: list[dict[str, Any]] = [
    copilot("session.start", 0, sessionId="p-1", context={"cwd": "/w/shop"}),
    copilot("hook.start", 1, input={"prompt": "always hook"}),
    copilot("user.message", 2, content="use tabs", transformedContent="<system_reminder>never</system_reminder>"),
    copilot("user.message", 3, content="skill text: always", source="skill-x"),
    copilot("assistant.message", 4, content="ok", toolRequests=[]),
    copilot("assistant.message", 5, content="sub", parentToolCallId="t0"),
    copilot("tool.execution_start", 6, toolCallId="t1", toolName="bash", arguments={"command": "ls"}),
    copilot("tool.execution_complete", 7, toolCallId="t1", success=False, error={"message": "no such file"}),
]


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path


def test_codex_words_and_tools(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", CODEX)
    said, answer, ran, failed, shell = list(open_transcript(path))
    assert (said.origin, said.text) == (Origin.PROMPT, "use private repos")
    assert (said.session, said.cwd, said.host) == ("c-1", "/w/shop", "codex")
    assert said.record == f"line:{said.offset}"
    assert answer.text == "I will."
    assert ran.text == "make test"
    assert failed.tool is not None
    assert (failed.tool.name, failed.tool.command, failed.tool.is_error) == ("exec_command", "make test", True)
    assert shell.text == "ls"


@pytest.mark.parametrize("meta", [{"originator": "codex_exec"}, {"source": "exec"}, {"source": {"subagent": "review"}}])
def test_a_codex_run_without_a_person_is_skipped(tmp_path: Path, meta: dict[str, Any]) -> None:
    path = write(tmp_path / "rollout-1.jsonl", [header(id="c", **meta), *CODEX[1:]])
    reader = open_transcript(path)
    assert list(reader) == []
    assert reader.headless


def test_codex_is_read_on_from_an_offset(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", CODEX[:3])
    first = open_transcript(path)
    assert len(list(first)) == 1
    write(path, CODEX)
    rest = list(open_transcript(path, first.end_offset))
    assert [turn.origin for turn in rest][:1] == [Origin.ASSISTANT]
    assert {turn.session for turn in rest} == {"c-1"}


def test_copilot_words_and_tools(tmp_path: Path) -> None:
    folder = tmp_path / "p-1"
    folder.mkdir()
    said, answer, ran, failed = list(open_transcript(write(folder / "events.jsonl", COPILOT)))
    assert (said.text, said.record) == ("use tabs", "e2")
    assert (said.session, said.cwd, said.host) == ("p-1", "/w/shop", "copilot")
    assert (answer.text, ran.text) == ("ok", "ls")
    assert failed.tool is not None
    assert (failed.tool.name, failed.tool.is_error, failed.text) == ("bash", True, "no such file")


def test_every_host_has_a_folder_and_finds_its_files(tmp_path: Path) -> None:
    roots = load_settings({"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "cc")}).session_folders
    assert roots["claude"] == tmp_path / "cc" / "projects"
    names = {
        "claude": "p/s.jsonl",
        "codex": "2026/01/02/rollout-1.jsonl",
        "copilot": "s/events.jsonl",
        "antigravity": "antigravity/brain/s/.system_generated/logs/transcript.jsonl",
        "gemini": "shop/chats/session-2026-01-02T10-00-0b54a9e2.jsonl",
    }
    # OpenCode's are rows: tests/hosts/test_opencode_transcript.py.
    assert {*names, "opencode"} == set(HOSTS) == set(roots)
    for name, relative in names.items():
        file = roots[name] / relative
        file.parent.mkdir(parents=True)
        file.touch()
        assert list(HOSTS[name].find(roots[name])) == [file]


@pytest.mark.parametrize(
    ("relative", "host", "said", "bad"),
    [
        ("codex/transcripts/rollout-a8.jsonl", "codex", 3, 0),
        ("copilot/transcripts/events-6a.jsonl", "copilot", 1, 1),  # A system message with a bad escape.
    ],
)
def test_real_transcripts_of_other_hosts(relative: str, host: str, said: int, bad: int) -> None:
    path = shared_data("").parent / "fixtures" / relative
    assert host_of(path) == host
    reader = open_transcript(path)
    turns = list(reader)
    assert sum(turn.is_users_words for turn in turns) == said
    assert reader.bad_lines == bad
    assert reader.end_offset == path.stat().st_size


@pytest.mark.parametrize("odd", [{"type": []}, {"type": {}}, {"": 1}, {"type": None}])
def test_a_record_of_no_known_shape_names_no_host(tmp_path: Path, odd: dict[str, object]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{json.dumps(odd)}\n{{"type":"event_msg","payload":{{}}}}\n')
    assert host_of(path) == "codex"


# Newer versions of Codex write a message as a completed item, and no `user_message` beside it


def message(form: str, text: str, kind: str = "UserMessage") -> dict[str, Any]:
    if form == "event":
        return event("user_message" if kind == "UserMessage" else "agent_message", message=text)
    part: dict[str, Any] = {"type": "text" if kind == "UserMessage" else "Text", "text": text, "text_elements": []}
    return event("item_completed", turn_id="t", item={"type": kind, "id": "i", "content": [part]})


def said(path: Path, *records: dict[str, Any]) -> list[tuple[Origin, str]]:
    write(path, [header(id="s1", cwd="/home/dev/shop", originator="codex-tui"), *records])
    return [(turn.origin, turn.text) for turn in open_transcript(path, host="codex")]


@pytest.mark.parametrize("forms", [("item",), ("event", "item")], ids=["as an item", "in both forms"])
def test_a_message_that_is_an_item_is_read_once(tmp_path: Path, forms: tuple[str, ...]) -> None:
    records = [event("item_completed", item={"type": "Reasoning"})]
    records += [message(form, "Use the blue theme.") for form in forms]
    records += [message(form, "Done.", "AgentMessage") for form in reversed(forms)]
    turns = said(tmp_path / "rollout-1.jsonl", *records)
    assert turns == [(Origin.PROMPT, "Use the blue theme."), (Origin.ASSISTANT, "Done.")]


def test_the_same_words_typed_twice_are_two_prompts(tmp_path: Path) -> None:
    assert len(said(tmp_path / "rollout-1.jsonl", message("item", "Go on."), message("item", "Go on."))) == 2
    assert len(said(tmp_path / "rollout-2.jsonl", message("event", "Go on."), message("event", "Go on."))) == 2


def test_a_fork_names_the_sessions_that_it_begins_with(tmp_path: Path) -> None:
    rule = message("event", "From now on, always run the linter before you commit.")
    headers = [header(id="third", forked_from_id="second"), header(id="second", forked_from_id="first")]
    path = write(tmp_path / "rollout-third.jsonl", [*headers, rule])
    mined = mine_transcript(MiningRequest(str(path), "codex"))
    assert [(each.session, each.forked_from) for each in mined.candidates] == [("third", ("second", "first"))]
    assert mined_from_json(json.loads(json.dumps(asdict(mined)))) == mined
    write(path, [header(id="second"), rule])
    assert [each.forked_from for each in mine_transcript(MiningRequest(str(path), "codex")).candidates] == [()]


# Codex compresses what nobody went on with for a week: it is read as if it had not, or named as what cannot be


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
    relative = put(tmp_path / "bin" / "zstd", "#!/bin/sh\n")
    relative.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{tmp_path / 'none'}")
    assert len(find_transcripts([("codex", tmp_path)]).unreadable) == 1
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
def test_nothing_is_left_running_where_only_a_part_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    path = compress(rollout(tmp_path, more=30_000))
    assert open_transcript(path, 0, "codex").header().session == "s1"
    assert all(process.returncode is not None for process in started)
