"""The protocol that the plugin ships matches the code."""

import re
import shlex
from pathlib import Path

import pytest

from memoryvault.cli.main import build_parser
from memoryvault.cli.topics import ACTIONS
from memoryvault.vault.automemory import INDEX_BYTES, INDEX_LINES, READ_COMMAND, TYPES

ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "plugin" / "skills" / "memory" / "topics.md"
TEXT = SKILL.read_text("utf-8")
COMMANDS = [
    line
    for block in [
        *re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL),
        *re.findall(r"`(memory vault topics [^`…]+)`", TEXT),
    ]
    for line in block.strip().splitlines()
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_it_is_one(command: str) -> None:
    arguments = shlex.split(command)[1:]
    args = build_parser(arguments).parse_args(arguments)
    assert args.command == "vault topics"


def test_skill_names_every_action_and_no_other() -> None:
    assert {shlex.split(command)[3] for command in COMMANDS} == set(ACTIONS) - {"import"}, (
        "importing is the user's business"
    )


def test_skill_names_the_four_types_and_no_other() -> None:
    table = TEXT.split("## The four types")[1].split("##")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == TYPES


def test_skill_has_the_parts_of_a_protocol_and_the_current_limits() -> None:
    headings = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert headings == ["When to read", "When to write", "The four types", "What not to write"]
    assert f"first {INDEX_LINES} lines ({INDEX_BYTES // 1000} KB)" in TEXT
    assert "<auto-memory>" in TEXT


def test_command_named_in_the_block_exists() -> None:
    arguments = shlex.split(READ_COMMAND)[1:]
    assert build_parser(arguments).parse_args(arguments).action == "read"
