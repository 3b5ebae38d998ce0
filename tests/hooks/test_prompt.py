"""UserPromptSubmit: an answer within 300 ms, whatever the recall service does."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryvault.hooks.injected import read_injected
from memoryvault.hooks.recall_client import RecallCall
from memoryvault.runtime.layout import INDEX_WANTED
from memoryvault.tests.support.hurry import patience

from .support import SESSION, Outcome, Sandbox, answer_with, indexed, recall_service

pytestmark = pytest.mark.hurried

LIMIT_SECONDS = 0.5
"""For the whole process on a busy machine; that the hook itself keeps to 300 ms, `ask` asserts by its log, and
`bench/hooks.py` measures both where nothing else runs."""
QUESTION = "how does the quokkaflange protocol handle widget alignment?"
BODY = "PROMPT_RECALL_SENTINEL_BODY the quokkaflange protocol governs widget alignment."
MATCHING = "personal-private/convention/matching-entry.md"


def ask(sandbox: Sandbox, prompt: str = QUESTION, *args: str, **fields: object) -> Outcome:
    done = sandbox.run("UserPromptSubmit", sandbox.payload(prompt=prompt, **fields), *args)
    assert sandbox.log_lines()[-1]["duration_ms"] < 300 * patience()
    return done


@contextmanager
def stopped_service(path: str) -> Iterator[None]:
    """The system takes connections for it, and it takes none from the system."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
        listener.bind(path)
        listener.listen(8)
        yield


@pytest.fixture
def vault(sandbox: Sandbox) -> Sandbox:
    """One entry that matches QUESTION, and one that does not."""
    indexed(sandbox, MATCHING, BODY)
    indexed(sandbox, "personal-private/convention/unrelated-entry.md", "Sourdough hydration ratios for winter.")
    return sandbox


@pytest.mark.parametrize(
    ("block", "paths"), [("Standing rules of the user:\n- Text.\n", ["a.md"]), ("", [])], ids=["one", "none"]
)
def test_a_services_block_is_printed_and_its_status_told_the_user(vault: Sandbox, block: str, paths: list[str]) -> None:
    status = f"Loaded {len(paths)} relevant entries"
    told = answer_with(block=block, status=status, paths=paths)
    with recall_service(vault.state.recall_socket, told) as requests:
        done = ask(vault, 'say "äöü" \\ 😀')
    assert done.stdout == block
    assert status in done.stderr
    (request,) = requests
    assert request["text"] == 'say "äöü" \\ 😀'
    assert (request["op"], request["session"], request["cwd"]) == ("recall", SESSION, str(vault.project))
    assert (request["k"], request["token_budget"], request["render"]) == (5, 2000, True)
    assert 0 < request["budget_ms"] <= 255 * patience()
    assert (read_injected(vault.state.markers, SESSION) or set()) == set(paths)


def counted(sandbox: Sandbox) -> list[object]:
    line = sandbox.log_lines()[-1]
    return [line[name] for name in ("entries_injected", "vec_hits", "grep_hits", "deduped_count")]


def test_the_log_says_in_fields_how_many_entries_were_found_and_given(vault: Sandbox) -> None:
    ask(vault)
    assert counted(vault) == [1, 0, 1, 0]
    found = {"vec_hits": 4, "grep_hits": 3, "deduped_count": 2}
    told = answer_with(block="Notes:\n- Text.\n", status="Loaded 1 relevant entries: a", paths=["a.md"], found=found)
    with recall_service(vault.state.recall_socket, told):
        ask(vault, "and what of the sourdough hydration?")
    assert counted(vault) == [1, 4, 3, 2]


def test_without_a_service_fts5_answers(vault: Sandbox) -> None:
    done = ask(vault)
    assert done.stdout == f"Standing rules of the user:\n- {BODY}\n"
    assert "Loaded 1 relevant entries: matching-entry" in done.stderr
    assert "recall service absent; keywords only" in done.stderr
    assert done.seconds < LIMIT_SECONDS * patience()


@pytest.mark.parametrize("stop", [True, False])
def test_a_service_that_is_stopped_or_slow_is_survived(vault: Sandbox, stop: bool) -> None:
    over = threading.Event()

    def never(request: dict[str, Any]) -> bytes:
        over.wait(30)
        return b""

    path = vault.state.recall_socket
    with stopped_service(path) if stop else recall_service(path, never):
        done = ask(vault)
        over.set()
    assert BODY in done.stdout
    assert "recall service slow" in done.stderr
    assert done.seconds < LIMIT_SECONDS * patience()


def test_an_answer_that_comes_a_little_late_still_wins(vault: Sandbox) -> None:
    def answer(request: dict[str, Any]) -> bytes:
        time.sleep(0.13)
        return told(request)

    told = answer_with(block="late", status="Loaded 1 relevant entries: l", paths=["l.md"])
    with recall_service(vault.state.recall_socket, answer):
        done = ask(vault)
    assert done.stdout.startswith("late")
    assert done.seconds < LIMIT_SECONDS * patience()


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (b"", "broken"),
        (b"no json\n", "broken"),
        (b'{"v":1,"ok":false,"error":"index locked"}\n', "broken"),
        (b'{"v":1,"ok":true}\n', "broken"),
        (b'{"v":1,"ok":true,"block":"","status":"","paths":[],"degraded":["keyword-late","dense-late"]}\n', "slow"),
        (b"[]\n", "broken"),
        (b"x" * 2_000_000, "broken"),
    ],
)
def test_a_service_that_answers_nonsense_or_nothing_is_replaced(vault: Sandbox, answer: bytes, state: str) -> None:
    def say(request: dict[str, Any]) -> bytes:
        return answer

    with recall_service(vault.state.recall_socket, say):
        done = ask(vault)
    assert BODY in done.stdout
    assert f"recall service {state}" in done.stderr


def test_what_the_session_holds_is_not_printed_again(vault: Sandbox) -> None:
    assert BODY in ask(vault).stdout
    again = ask(vault, QUESTION + " once more")
    assert again.stdout == ""
    assert "Loaded 0 relevant entries" in again.stderr
    assert BODY in ask(vault, session_id="another").stdout
    assert BODY in vault.run("SessionStart", vault.payload(source="compact")).stdout
    assert ask(vault, QUESTION + " after compaction").stdout == ""


def test_after_a_compaction_a_prompt_gives_again_what_the_start_has_no_room_for(vault: Sandbox) -> None:
    vault.extra_env["MEMORY_RECALL_CORE_WORDS"] = "1"
    vault.run("SessionStart", vault.payload(source="startup"))
    assert BODY in ask(vault).stdout
    assert BODY not in vault.run("SessionStart", vault.payload(source="compact")).stdout
    assert BODY in ask(vault, QUESTION + " after compaction").stdout


def test_installed_twice_it_prints_once(vault: Sandbox) -> None:
    prompt_id = "550e8400-e29b-41d4-a716-446655440000"
    payload = vault.payload(prompt=QUESTION, prompt_id=prompt_id)
    outputs = [vault.run("UserPromptSubmit", payload).stdout for _ in range(2)]
    assert sorted(map(bool, outputs)) == [False, True]
    assert vault.log_lines()[-1]["result"] == "duplicate"


def test_a_file_that_is_gone_changed_or_superseded_meanwhile(vault: Sandbox) -> None:
    vault.entry(MATCHING, BODY + " Since May.")
    assert "Since May." in ask(vault, session_id="s1").stdout
    vault.entry(MATCHING, BODY, status="superseded")
    assert ask(vault, session_id="s2").stdout == ""
    (vault.vault / MATCHING).unlink()
    assert ask(vault, session_id="s3").stdout == ""


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("personal-private/_inbox/x.md", {}),
        ("personal-private/_always-load/x.md", {}),
        ("personal-private/convention/x.md", {"status": "superseded"}),
        ("personal-private/convention/x.md", {"project": "other"}),
        ("personal-projects/other/convention/x.md", {}),
        ("personal-projects/my-shop/memory/x.md", {"kind": ""}),
        ("personal-private/doctor-probe/x.md", {"kind": "doctor-probe"}),  # stays where `memory doctor` is killed
        ("personal-private/convention/x.md", {"status": "[dismissed]"}),
        ("personal-private/convention/x.md", {"project": "\n  - Other"}),
    ],
)
def test_what_a_hook_may_not_show_stays_out(sandbox: Sandbox, path: str, header: dict[str, str]) -> None:
    indexed(sandbox, path, BODY, **header)
    assert ask(sandbox).stdout == ""


@pytest.mark.parametrize("path", ["personal-private/_always-load/x.md", "work/_always-load/team/_x.md"])
def test_a_rule_that_the_sessions_start_left_out_is_recalled(sandbox: Sandbox, path: str) -> None:
    indexed(sandbox, path, BODY)
    sandbox.extra_env["MEMORY_RECALL_CORE_WORDS"] = "1"
    start = sandbox.run("SessionStart", sandbox.payload(source="startup"))
    assert BODY not in start.stdout
    assert BODY in ask(sandbox).stdout
    assert ask(sandbox, "again: " + QUESTION).stdout == "", "it holds it now"


def test_a_fact_deep_in_a_long_note_is_in_the_line_that_is_printed(sandbox: Sandbox) -> None:
    text = "# Meeting\n\n" + "Nobody objected to it.\n" * 40 + "The quokkaflange needs tablet K7."
    indexed(sandbox, "personal-private/fact/meeting.md", text, kind="fact")
    assert "[…] The quokkaflange needs tablet K7." in ask(sandbox, "which tablet does the quokkaflange need?").stdout


def test_this_projects_entry_comes_first(sandbox: Sandbox) -> None:
    indexed(sandbox, "personal-private/convention/general.md", BODY)
    indexed(sandbox, "personal-projects/my-shop/convention/special.md", BODY, project="my-shop")
    assert "Loaded 2 relevant entries: special, general" in ask(sandbox).stderr


def test_at_most_five_entries_within_the_token_budget(sandbox: Sandbox) -> None:
    for number in range(8):
        indexed(sandbox, f"personal-private/convention/e{number}.md", BODY)
    assert "Loaded 5 relevant entries" in ask(sandbox).stderr
    sandbox.extra_env["MEMORY_RECALL_TOKEN_BUDGET"] = "45"
    assert "Loaded 2 relevant entries" in ask(sandbox, session_id="s2").stderr


@pytest.mark.parametrize(
    "prompt",
    [
        "please summarize yesterday's kubernetes rollout",
        "ok, go on",
        "<task-notification>\n<summary>quokkaflange widget</summary>\n</task-notification>",
        "/memory:review",
    ],
)
def test_a_prompt_about_nothing_in_the_vault_gets_nothing(vault: Sandbox, prompt: str) -> None:
    assert ask(vault, prompt).stdout == ""


def test_of_a_machines_skills_only_one_that_holds_half_of_the_prompt_is_shown(sandbox: Sandbox) -> None:
    indexed(sandbox, "personal-private/fix/snapshots.md", "Snapshots of the quokkaflange are kept for a week.")
    for number in range(4):
        text = f"Publish wheels of kind{number} with provenance."
        indexed(sandbox, f"personal-skills/toolbox--release-{number}.md", text, kind="skill")
    assert ask(sandbox, "publish wheels with provenance").stdout.count("- skill: ") == 1
    assert "skill: " not in ask(sandbox, "publish snapshots of the quokkaflange").stdout


def test_the_words_after_a_slash_command_are_asked(vault: Sandbox) -> None:
    assert BODY in ask(vault, "/memory:recall quokkaflange alignment").stdout


@pytest.mark.parametrize("damage", ["absent", "garbage", "empty"])
def test_without_a_usable_index_the_worker_is_asked_for_one(vault: Sandbox, damage: str) -> None:
    file = Path(vault.state.index_db)
    if damage == "absent":
        file.unlink()
    else:
        file.write_bytes(b"garbage" * 4096 if damage == "garbage" else b"")
    done = ask(vault)
    assert done.stdout == ""
    assert "no index that can be used" in done.stderr
    assert Path(vault.state.run, INDEX_WANTED).exists()


def test_a_writer_in_the_middle_of_a_transaction_is_not_waited_for(vault: Sandbox) -> None:
    with closing(sqlite3.connect(vault.state.index_db, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("DELETE FROM entry_meta")
        done = ask(vault)
    assert BODY in done.stdout
    assert "keywords only" in done.stderr


def test_a_vault_that_is_gone_or_a_file(vault: Sandbox) -> None:
    vault.vault.rename(vault.root / "moved")
    done = ask(vault)
    assert done.stdout == ""
    assert "vault path not found" in done.stderr
    assert "nothing was searched" in done.stderr
    vault.vault.write_text("")
    done = ask(vault, session_id="s2")
    assert "recall engine error" in done.stderr


@pytest.mark.parametrize(
    ("prompt", "note"), [("quokkaflange", "Loaded 1"), ("hydration", "Loaded 1"), ("widget", "Loaded 0"), ("yes", "")]
)
def test_without_the_service_a_word_gets_the_note_that_alone_has_it(sandbox: Sandbox, prompt: str, note: str) -> None:
    indexed(sandbox, "personal-private/convention/one.md", BODY)
    indexed(sandbox, "personal-private/convention/two.md", "Sourdough hydration ratios for each widget.")
    assert note in ask(sandbox, prompt).stderr


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("部署", "部署只在星期二进行"),
        ("развёртывание", "развёртывание только по вторникам"),
        ("ガードレールの順番は", "認証ガードはｶﾞｰﾄﾞﾚｰﾙより先に登録する。"),
        ("what does QuokkaPool do", "数据库连接由QuokkaPool负责，超时三次。"),
    ],
    ids=["no blanks", "another alphabet", "another form of Unicode", "a name glued to another script"],
)
def test_a_word_of_another_script_finds_its_note_without_the_service(sandbox: Sandbox, prompt: str, text: str) -> None:
    indexed(sandbox, "personal-private/convention/it.md", text)
    for number in range(10):
        indexed(sandbox, f"personal-private/facts/n{number}.md", f"The widget number {number} has its own drawer.")
    assert text in ask(sandbox, prompt).stdout


def test_a_huge_prompt_is_cut_not_refused(vault: Sandbox) -> None:
    log = "\n".join(f"line {number} of a log nobody reads" for number in range(100_000))
    begun = time.monotonic()
    ask(vault, log)
    assert time.monotonic() - begun < 1.0 * patience()


def test_the_answer_of_another_users_process_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
        with pytest.raises(ConnectionError, match="another user"):
            RecallCall(str(tmp_path / "s"), b"{}\n", time.monotonic() + 5)
