"""Which always-load entries a session's start gives, and in what order."""

import pytest

from memoryvault.vault.core import count_words, is_ban, select_core


def entry(path: str, body: str, project: str = "", occurrences: int = 1, priority: str = "") -> dict[str, object]:
    return {"path": path, "body": body, "project": project, "occurrences": occurrences, "priority": priority}


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("# Tests\n\nPlease don't touch the fixtures.", True),
        ("You must not edit generated code.", True),
        ("No trailing whitespace.", True),
        ("Avoid classes.", True),
        ("Don’t amend pushed commits.", True),
        ("Use pnpm, not npm.", False),
        ("Nothing else matters.", False),
        ("# Never\n", False),
    ],
)
def test_a_ban_is_recognised_by_its_negation(text: str, is_one: bool) -> None:
    assert is_ban(text) is is_one


def test_the_order_is_owner_then_bans_then_confirmations() -> None:
    entries = [
        entry("p-ban", "Never b.", "shop", 9),
        entry("u-once", "Do a."),
        entry("u-often", "Do b.", occurrences=4),
        entry("u-ban", "Never a."),
        entry("p-first", "Do c.", "shop", priority="high"),
    ]
    kept, left_out = select_core(entries, 0)
    assert [one["path"] for one in kept] == ["p-first", "u-ban", "u-often", "u-once", "p-ban"]
    assert left_out == []


def test_the_budget_counts_words_of_the_rule_and_not_its_evidence() -> None:
    quoted = entry("a", "Keep it short.\n\n## Evidence\n\n" + "word " * 500)
    long = entry("b", "word " * 60)
    kept, left_out = select_core([quoted, long], 50)
    assert ([one["path"] for one in kept], [one["path"] for one in left_out]) == (["a"], ["b"])


def test_a_text_without_spaces_is_not_one_word() -> None:
    assert count_words("短く答えてください" * 10) > 20
