"""Which commands a command line has, and which calls a rule speaks of."""

from __future__ import annotations

import pytest

from memoryvault.bench.actions import lookup_of, measure_calls
from memoryvault.hooks.action_match import match_call, matches, split_commands
from memoryvault.pipelines.triggers import Triggers, compile_triggers


@pytest.mark.parametrize("half", ["dev", "held"])
def test_of_ten_calls_that_a_rule_speaks_of_eight_get_it_and_of_ten_others_at_most_one_gets_anything(half: str) -> None:
    spoken, told, others, wrong, _ = measure_calls(half)
    assert told >= 0.8 * spoken
    assert wrong <= 0.1 * others


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a b; c && d | e", [["a", "b"], ["c"], ["d"], ["e"]]),
        ("git commit -m 'a; b' # push", [["git", "commit", "-m", "a; b"]]),
        ('echo "a \\" && b"', [["echo", 'a " && b']]),
        ("x $(y z) `w`", [["x"], ["y", "z"], ["w"]]),
        ("a \\\n  b\nc", [["a", "b"], ["c"]]),
        ("", []),
        ("'open", [["open"]]),
    ],
)
def test_a_line_is_cut_into_its_commands(line: str, words: list[list[str]]) -> None:
    assert [found for found, _ in split_commands(line)] == words


def test_the_targets_of_redirections_are_known() -> None:
    assert [*split_commands("make 2>&1 > out.log < in.txt; ls &> all")] == [
        (["make", "in.txt"], ["out.log"]),
        (["ls"], ["all"]),
    ]


@pytest.mark.parametrize(
    ("trigger", "command", "found"),
    [
        ("git push", "git -C web push", True),
        ("git push", "FOO=1 sudo git push --tags", True),
        ("git push", "bash -c 'git push'", True),
        ("git push", "git stash push", False),
        ("git push", "git commit -m push", False),
        ("git push --force", "git push origin x --force", True),
        ("git push --force", "git push origin x", False),
        ("rm -rf", "rm -f -r x", True),
        ("rm -rf", "rm -f x", False),
        ("prisma", "npx prisma@5 migrate dev", True),
        ("black", "python -m black .", True),
    ],
)
def test_a_command_is_known_by_its_words(trigger: str, command: str, found: bool) -> None:
    lookup = lookup_of([Triggers(commands=(trigger,))])
    assert bool(match_call(lookup, "Bash", {"command": command})) is found


@pytest.mark.parametrize(
    ("trigger", "tool", "value", "found"),
    [
        ("vendor/", "Edit", "/p/vendor/a/b.go", True),
        ("vendor/", "Edit", "/p/vendors/a.go", False),
        ("vendor/", "Edit", "/p/src/vendor", False),
        ("vendor/", "Bash", "rm -r vendor", True),
        ("src/generated", "Edit", "/p/generated/a.py", False),
        ("src/generated", "Edit", "/p/src/generated/a.py", True),
        ("*.snap", "Write", "a/b.test.js.snap", True),
        (".env", "Bash", "echo A=1 >> .env", True),
        (".env", "Bash", "ls .env", False),
        (".env*", "Edit", ".env.local", True),
        ("README.md", "Bash", "grep x README.md", False),
        ("README.md", "Bash", "tee README.md", True),
    ],
)
def test_a_path_is_known_by_its_name_and_folders(trigger: str, tool: str, value: str, found: bool) -> None:
    lookup = lookup_of([Triggers(paths=(trigger,))])
    arguments = {"command": value} if tool == "Bash" else {"file_path": value}
    assert bool(match_call(lookup, tool, arguments)) is found


@pytest.mark.parametrize(
    ("name", "pattern", "is_match"),
    [("a.test.js", "*.test.*", True), ("a.js", "*.test.*", False), ("aba", "ab*ba", False), ("x", "*", True)],
)
def test_a_pattern_has_stars_alone(name: str, pattern: str, is_match: bool) -> None:
    assert matches(name, pattern) is is_match


@pytest.mark.parametrize(
    ("rule", "has", "has_not"),
    [
        ("Use pnpm, not npm.", {"npm"}, {"pnpm"}),
        ("Use uv for Python.", {"pip", "poetry"}, {"uv"}),
        ("Never push to main.", {"git push"}, {"git commit"}),
        ("Ask before adding a dependency.", {"npm install", "pip install", "cargo add"}, set()),
        ("Migrations belong into db/migrations.", {"db/migrations", "migrations/"}, set()),
        ("Run `make lint` before every commit.", {"git commit"}, set()),
        ("Never use rm -rf outside of build/.", {"rm -rf"}, {"build/"}),
        ("Use axios and/or fetch.", {"axios"}, {"and/or"}),
    ],
)
def test_a_rule_speaks_of_what_its_words_name(rule: str, has: set[str], has_not: set[str]) -> None:
    triggers = set(compile_triggers(rule).all)
    assert has <= triggers
    assert not has_not & triggers


@pytest.mark.parametrize(
    "rule",
    ["Keep answers short.", "Write British English.", "We deploy on Tuesdays.", "Every function gets type hints."],
)
def test_a_habit_of_speech_speaks_of_no_call(rule: str) -> None:
    assert not compile_triggers(rule)


def test_a_word_that_only_may_mean_a_call_counts_for_a_rule_of_action() -> None:
    rule = "Deployment is the user's."
    assert not compile_triggers(rule)
    assert "vercel" in compile_triggers(rule, channel="action").all
