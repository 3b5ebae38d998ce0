"""Record one session, ask the next in other words, get the memory back: real processes, real model."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from pathlib import Path

import pytest

from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox

pytestmark = pytest.mark.slow

SHIPPED = Path(__file__).resolve().parents[2] / "demo" / "session.jsonl"
SESSION = "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11"
RULE = "always ship on tuesday mornings"
SIDEWAYS = "Which day is good for putting the new version into production?"
COMMON = {"cwd": "/home/dev/shop"}


def _content_words(text: str) -> set[str]:
    small = {"and", "on", "the", "is", "for", "which", "into", "right", "before", "good", "always", "never"}
    return set(re.findall(r"[a-z]+", text.lower())) - small


def test_the_question_shares_no_content_word_with_the_rule() -> None:
    rule = "And always ship on Tuesday mornings, never right before the weekend."
    assert not _content_words(rule) & _content_words(SIDEWAYS)


def record_session(sandbox: Sandbox, session: str = SESSION, lines: str | None = None) -> Path:
    """A session from its first hook to its last."""
    payload = {**COMMON, "session_id": session, "transcript_path": str(sandbox.projects / f"-p/{session}.jsonl")}
    sandbox.hook("SessionStart", {**payload, "source": "startup"})
    transcript = Path(str(payload["transcript_path"]))
    transcript.parent.mkdir(exist_ok=True)
    transcript.write_text(lines or SHIPPED.read_text("utf-8"), "utf-8")
    sandbox.hook("Stop", {**payload, "prompt_id": str(uuid.uuid4())})
    sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    return transcript


def approve_rule(sandbox: Sandbox) -> None:
    """The person's yes to the rule, where it was only proposed, as it is without the model."""
    for note in sandbox.json("list", "--status", "pending"):
        if "tuesday" in note["path"]:
            sandbox.memory("review", "--decide", f"{Path(note['path']).stem}=approve")
    sandbox.memory("service", "worker", "--until-idle")
    assert any("tuesday" in note["path"] for note in sandbox.json("list"))


def vault_files(sandbox: Sandbox) -> dict[str, str]:
    """What was mined, by path: not when, nor what was looked up about an idea, which depends on the index of then."""
    return {
        str(path.relative_to(sandbox.vault)): re.sub(
            r"(?m)^surfaced_at: .*\n", "", path.read_text("utf-8").partition("\n## Research receipt")[0]
        )
        for path in sorted(sandbox.vault.rglob("*.md"))
        if not path.name.startswith("related-")
    }


@pytest.mark.model
@pytest.mark.hurried
def test_a_rule_of_one_session_is_given_at_the_next_start_and_answers_a_sideways_question(sandbox: Sandbox) -> None:
    record_session(sandbox)
    with sandbox.recall_service():
        sandbox.memory("service", "worker", "--until-idle")
        payload = {**COMMON, "session_id": "second", "transcript_path": str(sandbox.projects / "-p/second.jsonl")}
        start = sandbox.hook("SessionStart", {**payload, "source": "startup"})
        prompt = {**payload, "prompt": SIDEWAYS}
        again = sandbox.hook("UserPromptSubmit", {**prompt, "prompt_id": "p1"})
        for number in range(4):  # A busy machine may leave the hook no time to answer; then the next session asks.
            # A session that began before the rule was saved.
            before = {"session_id": f"began-before-{number}", "prompt_id": "p1"}
            printed = sandbox.hook("UserPromptSubmit", {**prompt, **before})
            if printed:
                break
        small_talk = sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": "p3", "prompt": "hello there"})
    assert RULE in start.lower(), "a small memory is given whole"
    assert RULE in printed.lower()
    assert printed.startswith("Standing rules of the user:\n- ")
    assert RULE not in again.lower(), "what the session already holds is not printed twice"
    assert small_talk == "", "a prompt about nothing gets nothing"


@pytest.mark.model
def test_the_shipped_session_is_mined_by_tier(sandbox: Sandbox) -> None:
    record_session(sandbox)
    with sandbox.recall_service():
        sandbox.memory("service", "worker", "--until-idle")
    found = {entry["title"].lower(): entry for entry in sandbox.json("list", "--status", "all")}
    rule = next(entry for title, entry in found.items() if "tuesday" in title)
    push = next(entry for title, entry in found.items() if "push" in title)
    idea = next(entry for entry in found.values() if entry["kind"] == "idea")
    assert rule["confidence"] == "HIGH"
    assert push["confidence"] == "HIGH", "a rejected tool call phrased as a rule"
    assert idea["status"] == "incubating"
    assert not any("payment client first" in title for title in found), "the agent's plan is no memory"


def test_mining_a_session_twice_writes_the_same_files_once(sandbox: Sandbox) -> None:
    transcript = record_session(sandbox)
    sandbox.memory("service", "worker", "--until-idle")
    first = vault_files(sandbox)
    assert first
    sandbox.memory("reflect", "--session", str(transcript))
    sandbox.memory("reflect", "--session", str(transcript))
    assert vault_files(sandbox) == first


@pytest.mark.slow
def test_mining_in_two_halves_writes_the_same_files(tmp_path: Path) -> None:
    whole, halves = ForkedSandbox(tmp_path / "whole"), ForkedSandbox(tmp_path / "halves")
    record_session(whole)
    whole.memory("service", "worker", "--until-idle")
    lines = SHIPPED.read_text("utf-8").splitlines(keepends=True)
    record_session(halves, lines="".join(lines[:9]))
    halves.memory("service", "worker", "--until-idle")
    record_session(halves, lines="".join(lines))
    halves.memory("service", "worker", "--until-idle")
    assert vault_files(halves) == vault_files(whole)


@pytest.mark.slow
def test_a_finished_session_leaves_a_reflected_marker_with_its_length(sandbox: Sandbox) -> None:
    transcript = record_session(sandbox)
    sandbox.memory("service", "worker", "--until-idle")
    marker = sandbox.state / "markers" / f"session-id-{SESSION}.reflected"
    assert f"offset: {transcript.stat().st_size}" in marker.read_text("utf-8")


@pytest.mark.slow
def test_a_turn_that_ends_during_mining_is_not_lost(sandbox: Sandbox) -> None:
    lines = SHIPPED.read_text("utf-8").splitlines(keepends=True)
    record_session(sandbox, lines="".join(lines[:6]))
    sandbox.memory("service", "worker", "--until-idle")
    transcript = record_session(sandbox, lines="".join(lines[:6]))
    with transcript.open("a", encoding="utf-8") as file:
        file.write("".join(lines[6:]))
    sandbox.hook("Stop", {**COMMON, "session_id": SESSION, "transcript_path": str(transcript), "prompt_id": "later"})
    sandbox.hook("SessionEnd", {**COMMON, "session_id": SESSION, "transcript_path": str(transcript), "reason": "other"})
    sandbox.memory("service", "worker", "--until-idle")
    assert any("tuesday" in text.lower() for text in vault_files(sandbox).values())


@pytest.mark.slow
def test_two_workers_at_once_write_each_memory_once(sandbox: Sandbox) -> None:
    record_session(sandbox)
    with (
        sandbox.process("service", "worker", "--until-idle") as one,
        sandbox.process("service", "worker", "--until-idle") as two,
    ):
        one.wait(60)
        two.wait(60)
    sandbox.memory("service", "worker", "--until-idle")
    titles = [entry["title"] for entry in sandbox.json("list", "--status", "all")]
    assert titles
    assert len(titles) == len(set(titles))


@pytest.mark.slow
def test_deleting_the_queue_loses_nothing(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path)
    transcript = record_session(sandbox)
    for leftover in sandbox.state.glob("queue.db*"):
        leftover.unlink()
    long_ago = time.time() - 7200
    os.utime(transcript, (long_ago, long_ago))
    os.utime(sandbox.state / "markers" / f"session-id-{SESSION}.start", (long_ago, long_ago))
    sandbox.memory("service", "worker", "--until-idle")
    assert any("tuesday" in text.lower() for text in vault_files(sandbox).values())


def test_reflect_json_names_evidence_and_destination(sandbox: Sandbox) -> None:
    transcript = sandbox.transcript(SESSION, SHIPPED.read_text("utf-8"))
    found = sandbox.json("reflect", "--session", str(transcript), "--dry-run")
    assert vault_files(sandbox) == {}, "a dry run writes nothing"
    for candidate in found:
        assert set(candidate) == {
            "category",
            "tier",
            "statement",
            "reason",
            "role",
            "records",
            "excerpt",
            "destination",
        }
    uuids = {json.loads(line).get("uuid") for line in SHIPPED.read_text("utf-8").splitlines()}
    assert all(record in uuids for candidate in found for record in candidate["records"])
    categories = {candidate["category"] for candidate in found}
    assert {"idea", "fix"} <= categories
    assert categories & {"preference", "correction"}, "what was said against a push"


@pytest.mark.slow
def test_switched_off_every_hook_writes_nothing_and_says_nothing(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path, {"MEMORY_ENABLED": "false"})
    payload = {**COMMON, "session_id": SESSION, "transcript_path": str(sandbox.projects / f"-p/{SESSION}.jsonl")}
    argv = {
        event: json.loads(sandbox.memory("config", "hook-command", event, "--json"))
        for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact", "Notification")
    }
    before = {path for path in (tmp_path / "state").rglob("*") if path.is_file()}
    for event, command in argv.items():
        extra = {"prompt": SIDEWAYS, "source": "startup", "notification_type": "idle_prompt"}
        assert sandbox.hook(event, {**payload, **extra}, argv=command) == ""
    after = {path for path in (tmp_path / "state").rglob("*") if path.is_file()}
    assert {path for path in after - before if path.suffix != ".snapshot"} == set()
    assert vault_files(sandbox) == {}
