"""Gemini CLI's chats: what was typed is what its list of typed lines says, each entry once."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryvault.sources.transcripts.hosts import HOSTS, find_session, host_of, open_transcript
from memoryvault.vault.turn import Origin, Role, Turn

SESSION = "3f1c2d4e-0000-4000-8000-00000000000a"
Record = dict[str, Any]
CONTEXT = "<session_context>\nThis is the Gemini CLI. Always obey.\n</session_context>"


def at(second: float) -> str:
    return f"2026-03-01T10:{int(second) // 60:02d}:{second % 60:06.3f}Z"


HEADER: Record = {"sessionId": SESSION, "projectHash": "ab", "startTime": at(0), "lastUpdated": at(0), "kind": "main"}


def record(name: str, second: float, kind: str, content: object, **more: object) -> Record:
    return {"id": name, "timestamp": at(second), "type": kind, "content": content, **more}


def user(name: str, second: float, *parts: str, shown: str | None = None) -> Record:
    more = {} if shown is None else {"displayContent": [{"text": shown}]}
    return record(name, second, "user", [{"text": each} for each in parts], **more)


def model(name: str, second: float, text: str) -> Record:
    return record(name, second, "gemini", text, thoughts=[], tokens={"input": 1})


def called(name: str, second: float, status: str, response: Mapping[str, str], **arguments: str) -> Record:
    call = {"id": f"c-{name}", "name": "run_shell_command", "args": arguments, "status": status}
    answer = [{"functionResponse": {"id": f"c-{name}", "name": "run_shell_command", "response": response}}]
    return {**model(name, second, ""), "toolCalls": [{**call, "result": answer}]}


def hooked(text: str) -> str:
    return f"<hook_context>{text}</hook_context>"


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "tmp" / "shop" / "chats" / f"session-2026-03-01T10-00-{SESSION[:8]}.jsonl"
    path.parent.mkdir(parents=True)
    (path.parents[1] / ".project_root").write_text("/home/dev/shop")
    return path


def write(
    path: Path, *records: Record, typed: Mapping[int, str] | Mapping[float, str] | None, began: float = 0
) -> Path:
    lines = ({**HEADER, "startTime": at(began)}, {"$set": {"messages": [user("d0", 0, CONTEXT)]}}, *records)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    if typed is not None:
        entries = [{"sessionId": "x", "type": "user", "message": each, "timestamp": at(s)} for s, each in typed.items()]
        (path.parents[1] / "logs.json").write_text(json.dumps(entries))
    return path


def prompts(path: Path) -> list[tuple[str, bool]]:
    return [(turn.text, turn.confirmed) for turn in open_transcript(path) if turn.origin is Origin.PROMPT]


def test_what_the_list_has_was_typed_and_what_it_lacks_is_not_confirmed(chat: Path) -> None:
    write(
        chat,
        user("u0", 1, hooked("Always use what the vault says.")),
        user("u1", 5, "Use the blue theme.", hooked("Always."), shown="Use the blue theme."),
        model("m1", 6, "I will."),
        user("u2", 9, "Never say this was typed."),
        user("u3", 12, "look at @notes.txt", "\n--- Content from referenced files ---", "\nAlways x."),
        typed={4.5: "Use the blue theme.", 11.5: "look at @notes.txt", 20: "Never say this was typed."},
    )
    assert prompts(chat) == [
        ("Use the blue theme.", True), ("Never say this was typed.", False), ("look at @notes.txt", True),
    ]  # fmt: skip


def test_what_was_typed_before_the_session_confirms_nothing_in_it(chat: Path) -> None:
    write(chat, user("u", 70, "Go on."), user("v", 80, "Yes."), typed={5: "Go on.", 79: "Yes."}, began=60)
    assert prompts(chat) == [("Go on.", False), ("Yes.", True)]


def test_a_cancelled_turns_history_under_new_ids_says_nothing_again(chat: Path) -> None:
    first = (
        user("u1", 5, "Expanded: plant trees", shown="/plant trees"),
        user("u2", 9, "Yes, go on."),
        model("m2", 10, "Done."),
        user("u3", 12, "Yes, go on."),
        called(
            "m3", 13, "cancelled", {"error": "[Operation Cancelled] Reason: User denied execution."}, command="rm x"
        ),
    )
    typed: dict[float, str] = {4: "/plant trees", 8: "Yes, go on.", 11: "Yes, go on."}
    write(chat, *first, typed=typed)
    reader = open_transcript(chat)
    once = list(reader)
    assert [turn.text for turn in once if turn.origin is Origin.PROMPT] == ["Yes, go on."] * 2
    written_again = (
        user("n1", 15, CONTEXT, "Expanded: plant trees"),
        user("n2", 15, "Yes, go on."),
        {**model("n3", 15, ""), "content": [{"text": "Done."}], "tokens": None},
        user("n4", 15, "Yes, go on."),
        {"$set": {"messages": [user("n1", 15, CONTEXT), user("n2", 15, "Yes, go on.")]}},
    )
    later = (user("u4", 20, "Never remove x."), model("m4", 21, "Noted."))
    write(chat, *first, *written_again, *later, typed={**typed, 19: "Never remove x."})
    assert [turn.text for turn in open_transcript(chat)] == [*(turn.text for turn in once), "Never remove x.", "Noted."]
    rest = list(open_transcript(chat, reader.end_offset, read_until=reader.end_offset))
    assert [turn.text for turn in rest] == ["Never remove x.", "Noted."], "also where reading goes on behind the first"


def test_a_run_without_a_person_is_skipped_and_one_that_a_person_went_on_with_is_not(chat: Path) -> None:
    start = user("u1", 5, f"{hooked('Always.')}\n\nAlways deploy.", shown=f"{hooked('Always.')}\n\nAlways deploy.")
    write(chat, start, model("m1", 6, "Noted."), typed=None)
    reader = open_transcript(chat)
    assert (list(reader), reader.headless) == ([], True)
    write(chat, user("u1", 5, "Always deploy."), typed={59: "in another session"})
    assert open_transcript(chat).header().headless
    write(chat, start, model("m1", 6, "Noted."), user("u2", 30, "Never on Fridays."), typed={29: "Never on Fridays."})
    assert prompts(chat) == [("Never on Fridays.", True)]


@pytest.mark.parametrize("opening", ["Always.", ""])
def test_a_run_is_skipped_though_a_person_types_in_another_window_meanwhile(chat: Path, opening: str) -> None:
    said = f"{hooked(opening)}\n\nAlways deploy." if opening else "Always deploy."
    write(chat, user("u1", 5, said, shown=said), user("u2", 9, "Never on Fridays."), typed={8: "Hello there."})
    assert open_transcript(chat).header().headless


def test_half_a_character_in_the_list_takes_no_line_of_it_away(chat: Path) -> None:
    write(chat, user("u1", 5, "Use the X theme."), typed={3: "half a X", 4.5: "Use the X theme."})
    for path in (chat, chat.parents[1] / "logs.json"):
        path.write_text(path.read_text().replace("X", "\\ud83d"))
    assert prompts(chat) == [("Use the \ufffd theme.", True)]


def test_a_sub_agents_chat_is_no_session(chat: Path) -> None:
    write(chat, user("u1", 5, "Always deploy."), typed={4: "Always deploy."})
    chat.write_text(chat.read_text().replace('"kind":"main"', '"kind":"subagent"'))
    assert open_transcript(chat).header().headless
    inner = chat.parent / SESSION / "sub.jsonl"
    inner.parent.mkdir()
    inner.touch()
    assert list(HOSTS["gemini"].find(chat.parents[2])) == [chat]


def test_calls_and_their_results(chat: Path) -> None:
    printed = "Output: Error: boom\nExit Code: 3\nProcess Group PGID: 9"
    output = f"<untrusted_context>\n{printed}\n</untrusted_context>\n\n{hooked('Never x.')}"
    plain = "<untrusted_context>\nOutput: ok\nProcess Group PGID: 9\n</untrusted_context>"
    shell = "I ran the following shell command:\n```sh\nmake\n```\n\nThis produced the following result:\n```\nok\n```"
    write(
        chat,
        user("u1", 5, "Test it."),
        model("m1", 6, ""),
        called("m1", 6, "success", {"output": output}, command="make test"),
        user("u2", 7, shell),
        called("m2", 8, "success", {"output": plain}, command="make"),
        called("m3", 9, "cancelled", {"error": "[Operation Cancelled]"}, command="rm x"),
        typed={4: "Test it.", 6.5: "make"},
    )
    turns = list(open_transcript(chat))
    assert [turn.origin for turn in turns] == [
        Origin.PROMPT, Origin.TOOL_USE, Origin.TOOL_RESULT, Origin.BASH, Origin.TOOL_USE, Origin.TOOL_RESULT,
        Origin.TOOL_USE, Origin.TOOL_RESULT,
    ]  # fmt: skip
    results = [turn for turn in turns if turn.origin is Origin.TOOL_RESULT]
    assert [(turn.text, *outcome(turn)) for turn in results] == [
        ("Error: boom", "make test", True), ("ok", "make", False), ("[Operation Cancelled]", "rm x", True),
    ]  # fmt: skip
    assert turns[3].text == "make"


def outcome(turn: Turn) -> tuple[str | None, bool]:
    assert turn.tool is not None
    return turn.tool.command, turn.tool.is_error


def test_it_is_known_by_its_header_found_by_its_session_and_knows_its_folder(chat: Path) -> None:
    write(chat, user("u1", 5, "Use the blue theme."), typed={4: "Use the blue theme."})
    assert host_of(chat) == "gemini"
    assert find_session(SESSION, "gemini", [chat.parents[2]]) == chat
    (turn,) = open_transcript(chat)
    assert (turn.role, turn.record, turn.session, turn.cwd) == (Role.USER, "u1", SESSION, "/home/dev/shop")


@pytest.mark.parametrize("listed", [None, "", "{", "{}", '[1, {"type": "user"}]', '[{"type": "user", "message": 3}]'])
def test_a_list_that_cannot_be_read_confirms_nothing(chat: Path, listed: str | None) -> None:
    write(chat, user("u1", 5, "Use the blue theme."), typed=None)
    if listed is not None:
        (chat.parents[1] / "logs.json").write_text(listed)
    assert all(not confirmed for _, confirmed in prompts(chat))
