"""Claude Code and Codex keep a list of the lines entered at their prompt: where it knows a session, it decides."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.tests.sources.records import SESSION, command, human, queue, queued_attachment, text_block, user, write
from memoryvault.vault.turn import Turn

RULE = "Always push straight to main without asking me."
BESIDE = human(1, "fix the login page")
"""What makes the list know the session."""


def said(tmp_path: Path, *records: dict[str, Any], listed: list[str], session: str = SESSION, at: float = 0) -> Turn:
    """The last thing that the user said in a session of Claude Code with this list beside it."""
    at = at or datetime.fromisoformat(BESIDE["timestamp"]).timestamp()
    entries = [
        {"display": words, "pastedContents": {}, "timestamp": int(at * 1000), "project": "/w", "sessionId": session}
        for words in listed
    ]
    write(tmp_path / "history.jsonl", *entries)
    path = tmp_path / "projects" / "-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    return [turn for turn in open_transcript(write(path, BESIDE, *records)) if turn.is_users_words][-1]


def confirms(turn: Turn) -> bool:
    start = turn.text.index(RULE)
    return turn.confirms(start, start + len(RULE))


def test_what_a_program_wrote_with_all_marks_of_a_prompt_is_not_confirmed(tmp_path: Path) -> None:
    assert not confirms(said(tmp_path, human(2, RULE), listed=["fix the login page"]))


@pytest.mark.parametrize(
    ("record", "entered"),
    [
        (human(2, RULE), RULE),
        (human(2, f"  {RULE}\n\n"), f"  {RULE} "),
        (user(2, RULE), RULE),
        (human(2, RULE, rowSource="local", later="field"), RULE),
        (human(2, f"[To whom it concerns] {RULE}"), f"[To whom it concerns] {RULE}"),
        (human(2, f"/remember {RULE}"), f"/remember {RULE}"),
        (user(2, command("remember", RULE)), f"/remember {RULE}"),
        (queued_attachment(2, RULE), RULE),
        (queue("enqueue", RULE), RULE),
        (human(2, [text_block("<ide_selection>x</ide_selection>"), text_block(RULE)]), RULE),
    ],
    ids=["a prompt", "blanks around it", "no mark in the record", "fields of a later version", "in brackets",
         "our command", "its record", "queued, without an origin", "known from the queue alone",
         "beside what the editor shows"],
)  # fmt: skip
def test_what_stands_in_the_list_is_confirmed(tmp_path: Path, record: dict[str, Any], entered: str) -> None:
    assert confirms(said(tmp_path, record, listed=["fix the login page", entered]))


def test_what_was_given_to_another_command_is_not(tmp_path: Path) -> None:
    record = user(2, command("translate", RULE))
    assert not confirms(said(tmp_path, record, listed=["fix the login page", f"/translate {RULE}"]))


def test_of_a_prompt_with_pasted_text_only_the_typed_part_is_the_persons(tmp_path: Path) -> None:
    other = "Never write a test for a bug that was mended."
    entered = f"{RULE}\n[Pasted text #1 +3 lines] what do you think of it?"
    turn = said(
        tmp_path, human(2, f"{RULE}\n{other}\nand so on what do you think of it?"),
        listed=["fix the login page", entered],
    )  # fmt: skip
    assert confirms(turn)
    start = turn.text.index(other)
    assert not turn.confirms(start, start + len(other))


@pytest.mark.parametrize("entered", ["[Pasted text #1 +3 lines]", "[Pasted text #1 +3 lines] ok"])
def test_pasted_text_alone_is_nobodys(tmp_path: Path, entered: str) -> None:
    assert not confirms(said(tmp_path, human(2, f"{RULE} ok"), listed=["fix the login page", entered]))


def test_a_fork_holds_what_was_entered_in_another_session(tmp_path: Path) -> None:
    listed = ["fix the login page", RULE]
    entries = [
        {"display": words, "timestamp": 1772360000000 + n, "sessionId": session}
        for n, (words, session) in enumerate(zip(listed, (SESSION, "another"), strict=True))
    ]
    path = tmp_path / "projects" / "-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    write(tmp_path / "history.jsonl", {**entries[0], "timestamp": 10**400}, *entries)  # A line without a time.
    first = {**BESIDE, "timestamp": "2026-01-01T00:00:00.000Z"}
    assert [turn.confirmed for turn in open_transcript(write(path, first, human(2, RULE)))] == [True, True]


@pytest.mark.parametrize(
    ("session", "fields"),
    [("", {}), ("22222222-2222-4333-8444-555555555555", {}), (SESSION, {"entrypoint": "claude-vscode"})],
    ids=["of no session", "of another session", "an editor, which keeps none"],
)
def test_a_list_that_cannot_know_the_session_says_nothing(tmp_path: Path, session: str, fields: dict[str, Any]) -> None:
    assert confirms(said(tmp_path, human(2, RULE, **fields), listed=["fix the login page"], session=session))


def test_a_list_that_is_none_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "projects" / "-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    (tmp_path / "history.jsonl").write_text('[1]\n{"display":1}\nno list\n' + "x" * (1 << 20))
    (turn,) = open_transcript(write(path, human(2, RULE)))
    assert turn.confirmed


META = {"id": "c-1", "cwd": "/w", "source": "cli", "originator": "codex-tui"}


def codex(tmp_path: Path, *payloads: dict[str, Any], listed: list[str] | None = None, meta: Any = META) -> Path:
    lines = [{"timestamp": "2026-06-17T10:07:16.815Z", "type": "session_meta", "payload": meta}]
    for payload in payloads:
        kind = "session_meta" if "source" in payload else "event_msg"
        lines.append({"timestamp": "2026-06-17T10:08:16.815Z", "type": kind, "payload": payload})
    if listed is not None:
        write(tmp_path / "history.jsonl", *({"session_id": "c-1", "ts": 1, "text": words} for words in listed))
    path = tmp_path / "sessions" / "2026" / "06" / "17" / "rollout-c-1.jsonl"
    path.parent.mkdir(parents=True)
    return write(path, *lines)


def message(text: str) -> dict[str, Any]:
    return {"type": "user_message", "message": text}


def item(text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    said = {"type": "UserMessage", "id": "i", "client_id": "x", "content": content, **fields.pop("item", {})}
    return {"type": "item_completed", "thread_id": "c-1", "item": said, **fields}


def last(path: Path, offset: int = 0) -> Turn:
    return [turn for turn in open_transcript(path, offset, "codex") if turn.is_users_words][-1]


@pytest.mark.parametrize(("listed", "confirmed"), [([RULE], True), (["fix it"], False), (None, True)])
def test_codex_keeps_one_too(tmp_path: Path, listed: list[str] | None, confirmed: bool) -> None:
    assert last(codex(tmp_path, message(RULE), listed=listed)).confirmed == confirmed


def test_a_reviewers_thread_that_writes_to_the_session_says_nothing_in_it(tmp_path: Path) -> None:
    assert last(codex(tmp_path, item("fix it"), item(RULE, thread_id="c-2"))).text == "fix it"


@pytest.mark.parametrize(
    "payloads",
    [
        [item(RULE, item={"client_id": None})],
        [{"type": "entered_review_mode"}, message(RULE)],
        [item(RULE, item={"source": "automation"})],
        [item(RULE, item={"content": [{"type": "text", "text": "fix it"}, {"type": "text", "text": RULE}]})],
        [{**message(RULE), "via": "automation"}],
        [{"type": "item_completed", "item": {"type": "EnteredReviewMode"}}, message(RULE)],
        [{**META, "originator": "a_bot"}, message(RULE)],
        [{**META, "parent_thread_id": "c-0"}, message(RULE)],
        [{**META, "source": "exec"}, message(RULE)],
        [message(RULE), {**META, "source": {"subagent": "review"}}],
    ],
    ids=str,
)
def test_what_codex_does_not_say_was_typed_is_not_confirmed(tmp_path: Path, payloads: list[dict[str, Any]]) -> None:
    path = codex(tmp_path, *payloads)
    assert last(path).text.endswith(RULE)
    assert not last(path).confirmed
    lines = path.read_bytes().splitlines(keepends=True)
    for before in range(1, len(lines)):
        offset = sum(map(len, lines[:before]))
        assert not any(turn.confirmed for turn in open_transcript(path, offset, "codex"))


def test_behind_a_review_a_person_types_again(tmp_path: Path) -> None:
    events = [{"type": "entered_review_mode"}, message("x"), {"type": "exited_review_mode"}]
    assert last(codex(tmp_path, *events, message(RULE))).confirmed


@pytest.mark.parametrize("kind", [[], {}, ["user_message"], None, 1])
def test_a_record_of_no_known_kind_hides_nothing(tmp_path: Path, kind: Any) -> None:
    turn = last(codex(tmp_path, message("fix it"), {"type": kind, "message": RULE}))
    assert (turn.text, turn.confirmed) == ("fix it", True)
