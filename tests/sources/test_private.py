"""What stands between <private> and </private> leaves no reader, whoever repeats it."""

from pathlib import Path
from typing import Any

import pytest

from memoryvault.bench.reflection import mine
from memoryvault.pipelines.routing import Tier, tier_of
from memoryvault.services.mining import MiningRequest, mine_transcript
from memoryvault.sources.transcripts.claude import ClaudeReader
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.tests.pipelines.test_model_answers import pack
from memoryvault.tests.sources.records import assistant, call, older, result, text_block, write

CANARY = "CANARY4711"
HIDDEN = f"<private>{CANARY}</private>"


SESSION = [
    older(1, f"Always deploy {HIDDEN} with make ship."),
    assistant(2, text_block(f"ok {HIDDEN}. The root cause was that {HIDDEN} the cache key ignores the locale.")),
    older(3, "no, use pnpm, not npm"),
    assistant(4, call("t1", "Bash", command=f"npm start # {HIDDEN}")),
    result(5, "t1", f"Error: listen EADDRINUSE: address already in use :3000 {HIDDEN}", True),
    assistant(6, call("t2", "Bash", command="kill 4711")),
    result(7, "t2", "ok"),
    assistant(8, call("t3", "Bash", command=f"npm start # {HIDDEN}")),
    result(9, "t3", f"up <private>{CANARY}"),
    assistant(10, text_block(f"Should I leave this for a follow-up? <private>{CANARY}")),
    older(11, f"never do this again <private>{CANARY}"),
    older(12, f"Never use <private>{CANARY}, and from now on use pnpm"),
]


def test_no_candidate_holds_a_word_of_it(tmp_path: Path) -> None:
    turns = list(ClaudeReader(write(tmp_path / "s.jsonl", *SESSION)))
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
def test_a_sentence_that_is_partly_private_is_proposed(tmp_path: Path, text: str, statement: str, tier: Tier) -> None:
    path = write(tmp_path / "s.jsonl", older(1, text))
    assert [(tier_of(c)[0], c.statement) for c in mine(ClaudeReader(path))] == [(tier, statement)]


def test_what_a_private_passage_leaves_of_an_order_is_no_correction(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", older(1, f"use {HIDDEN} and please fix the flake"))
    assert mine(ClaudeReader(path)) == []


def test_what_was_pasted_beside_an_escaped_private_passage_is_still_known_as_pasted(tmp_path: Path) -> None:
    said = f"&lt;private&gt;{CANARY}&lt;/private&gt;\nSee:\n```\nalways use npm\n```"
    (turn,) = ClaudeReader(write(tmp_path / "s.jsonl", older(1, said)))
    assert [turn.text[start:end].strip() for start, end in turn.pasted] == ["```\nalways use npm\n```"]


@pytest.mark.parametrize(
    "tag", [("<private>", "</private>"), ("&lt;private&gt;", "&LT;/PRIVATE&GT;"), ("<PR\u0130VATE>", "</pr\u0131vate>")]
)
def test_a_tag_is_known_plain_and_escaped_in_text_and_in_arguments(tmp_path: Path, tag: tuple[str, str]) -> None:
    hidden = CANARY.join(tag)
    said = assistant(1, text_block(f"Said {hidden}."))
    ran = assistant(2, call("t1", "Bash", command=f"echo {hidden}"))
    path = write(tmp_path / "s.jsonl", said, ran, result(3, "t1", f"out {hidden}"))
    turns = list(ClaudeReader(path))
    assert len(turns) == 3
    assert CANARY not in repr(turns)


# What a reader shortens is scrubbed afterwards: nothing of a secret may be left that the scrubber no longer knows


PASSWORD = "Xk29vQpLm7Zt"
LOGIN = f"postgres://app:{PASSWORD}@db.acme-corp.io/shop"


def ran(number: int, command: str, output: str, *, failed: bool = False) -> list[dict[str, Any]]:
    use = f"t{number}"
    return [assistant(number, call(use, "Bash", command=command)), result(number + 1, use, output, failed)]


def findings(folder: Path, command: str, output: str) -> str:
    """What is sent to a model and what is kept of a failure with `output` that `command` cured."""
    path = write(
        folder / "s.jsonl",
        older(1, "please install it"),
        *ran(2, "npm install", output, failed=True),
        *ran(4, command, "ok"),
        *ran(6, "npm install", "added 3 packages"),
        assistant(8, text_block("It is installed now.")),
    )
    sent = "".join(window.text for window in pack(open_transcript(path), 2500))
    kept = mine_transcript(MiningRequest(str(path), "claude")).candidates
    assert "npm install" in sent
    assert any("npm install" in each.statement for each in kept)
    return sent + repr(kept)


@pytest.mark.parametrize("before", [*range(45, 70, 3), *range(246, 270, 3)])
def test_no_part_of_a_password_in_a_long_command_is_sent_or_kept(tmp_path: Path, before: int) -> None:
    command = f"npm config set {'a' * before} {LOGIN} and more of it {'b ' * 60}"
    assert PASSWORD[:4] not in findings(tmp_path, command, "npm ERR! EACCES: permission denied")


@pytest.mark.parametrize("before", range(123, 150, 3))
def test_no_part_of_a_password_in_a_long_output_is_sent_or_kept(tmp_path: Path, before: int) -> None:
    line = f"npm ERR! EACCES: permission denied {LOGIN} for user app"
    begun, more = "some lines before\n" * 34, "and some lines after it\n" * 60
    output = f"{'c' * before}\n{begun}{line}\n{more}"
    assert PASSWORD[:4] not in findings(tmp_path, "npm cache clean", output)
