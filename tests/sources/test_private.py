"""What stands between <private> and </private> leaves no reader, whoever repeats it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoryvault.pipelines.reading.miner import mine
from memoryvault.pipelines.routing import Tier, tier_of
from memoryvault.sources.transcripts.claude import ClaudeReader

CANARY = "CANARY4711"
HIDDEN = f"<private>{CANARY}</private>"


def user(content: Any) -> dict[str, Any]:
    typed = {"userType": "external", "permissionMode": "default"}
    return {"type": "user", "message": {"role": "user", "content": content}, **typed}


def agent(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": list(blocks)}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def run(use: str, command: str) -> dict[str, Any]:
    return agent({"type": "tool_use", "id": use, "name": "Bash", "input": {"command": command}})


def result(use: str, output: str, *, failed: bool = False) -> dict[str, Any]:
    return user([{"type": "tool_result", "tool_use_id": use, "is_error": failed, "content": output}])


SESSION = [
    user(f"Always deploy {HIDDEN} with make ship."),
    agent(
        text(f"ok {HIDDEN} done. The root cause was that {HIDDEN} the cache key ignores the locale. Is {HIDDEN} it?")
    ),
    user("no, use pnpm, not npm"),
    run("t1", f"npm start # {HIDDEN}"),
    result("t1", f"Error: listen EADDRINUSE: address already in use :3000 {HIDDEN}", failed=True),
    run("t2", "kill 4711"),
    result("t2", "ok"),
    run("t3", f"npm start # {HIDDEN}"),
    result("t3", f"up <private>{CANARY}"),
    agent(text(f"Should I leave this for a follow-up? <private>{CANARY}")),
    user(f"never do this again <private>{CANARY}"),
    user(f"Never use <private>{CANARY}, and from now on use pnpm"),
]


def test_no_candidate_holds_a_word_of_it(tmp_path: Path) -> None:
    path = tmp_path / "5c1d9a52-3b7e-4f5c-9a57-0c3a8f4d1e11.jsonl"
    lines = (json.dumps({"uuid": f"u{n}", "cwd": "/home/dev/shop", **line}) for n, line in enumerate(SESSION))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    turns = list(ClaudeReader(path))
    found = mine(turns)
    assert {c.category for c in found} >= {"preference", "correction", "fix"}
    assert CANARY not in repr(turns)
    assert CANARY not in repr(found)
    assert not [c.statement for c in found if c.standing_rule and "[private]" in c.statement]


@pytest.mark.parametrize(
    ("text", "statement", "tier"),
    [
        (f"Always use {HIDDEN} for the staging host.", "Always use [private] for the staging host.", Tier.MEDIUM),
        (f"Never log in to &lt;private&gt;{CANARY}&lt;/private&gt;", "Never log in to [private]", Tier.MEDIUM),
        (f"Always use this address: {HIDDEN}", "Always use this address: [private]", Tier.MEDIUM),
        (f"{HIDDEN}\nAlways use pnpm. {HIDDEN}", "Always use pnpm.", Tier.MEDIUM),
        (f"Thank you. {HIDDEN} Never push without asking.", "Never push without asking.", Tier.MEDIUM),
    ],
)
def test_a_sentence_of_which_a_part_is_private_is_put_to_the_user(
    tmp_path: Path, text: str, statement: str, tier: Tier
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"uuid": "u1", "cwd": "/home/dev/shop", **user(text)}) + "\n", "utf-8")
    assert [(tier_of(c)[0], c.statement) for c in mine(ClaudeReader(path))] == [(tier, statement)]


@pytest.mark.parametrize(
    "text",
    [
        f"{HIDDEN} and also please rerun the flaky job",
        f"ok {HIDDEN} and please fix the flake",
        f"use {HIDDEN} and please fix the flake",
    ],
)
def test_what_a_private_passage_leaves_of_an_order_is_no_correction(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"uuid": "u1", "cwd": "/home/dev/shop", **user(text)}) + "\n", "utf-8")
    assert mine(ClaudeReader(path)) == []


def test_what_was_pasted_beside_an_escaped_private_passage_is_still_known_as_pasted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    said = f"&lt;private&gt;{CANARY}&lt;/private&gt;\nSee:\n```\nalways use npm\n```"
    path.write_text(json.dumps({"uuid": "u1", "cwd": "/home/dev/shop", **user(said)}) + "\n", "utf-8")
    (turn,) = ClaudeReader(path)
    assert [turn.text[start:end].strip() for start, end in turn.pasted] == ["```\nalways use npm\n```"]


@pytest.mark.parametrize(
    "tag",
    [
        ("<private>", "</private>"),
        ("&lt;private&gt;", "&LT;/PRIVATE&GT;"),
        ("<PR\u0130VATE>", "</pr\u0131vate>"),
    ],
)
def test_a_tag_is_known_plain_and_escaped_in_text_and_in_arguments(tmp_path: Path, tag: tuple[str, str]) -> None:
    hidden = CANARY.join(tag)
    records = (agent(text(f"Said {hidden}.")), run("t1", f"echo {hidden}"), result("t1", f"out {hidden}"))
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    turns = list(ClaudeReader(path))
    assert len(turns) == 3
    assert CANARY not in repr(turns)
