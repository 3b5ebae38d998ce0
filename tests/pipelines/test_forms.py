"""The explicit forms guarantee a proposal, whatever a reader thinks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryvault.pipelines.reading import forms
from memoryvault.pipelines.reading.calibration import EAGERNESS, Eagerness
from memoryvault.pipelines.reading.forms import explicit_form
from memoryvault.pipelines.reading.miner import mine
from memoryvault.pipelines.reading.reading import Message, MessageReading, SentenceReading
from memoryvault.pipelines.reading.statement import statement
from memoryvault.vault.turn import Origin, Role, Turn

STATED = (
    "remember: staging runs on 8081",
    "From now on, deploy on Mondays.",
    "rule: no ORM in this service",
    "always run the linter before you commit",
    "ok, never push to main",
    "I prefer small commits",
    "don't ever rewrite the lock file",
    "every time you add a setting, document it",
    "in this repo we use tabs",
    "we use httpx, not requests",
    "We've decided to keep the REST API",
    "locked: the orders API stays on v2",
    "we agreed with finance that sent invoices stay",
    "Steps to release:\n1. bump the version\n2. tag it",
    "ab jetzt schreibst du Commits auf Deutsch",
    "从现在起用中文回答",
)


class Doubtful:
    name = "words"

    def __init__(self, worth: float = 0.0, idea: float = 0.0) -> None:
        self.worth = worth
        self.idea = idea

    def read(self, message: Message) -> MessageReading:
        part = SentenceReading(self.worth, "preference", 0.0, "prompt")
        return MessageReading(self.worth, self.idea, 0.0, [part for _ in message.sentences])


def prompt(text: str) -> Turn:
    return Turn(Role.USER, Origin.PROMPT, text, "r1", "s1", confirmed=True)


@pytest.mark.parametrize("text", STATED)
@pytest.mark.parametrize("eagerness", EAGERNESS)
def test_what_is_said_outright_is_proposed_by_a_reader_that_doubts_it(text: str, eagerness: Eagerness) -> None:
    (candidate,) = mine([prompt(text)], reader=Doubtful(), eagerness=eagerness)
    assert candidate.claimed_rule
    assert not candidate.standing_rule


@pytest.mark.parametrize(("worth", "is_proposed"), [(0.0, False), (0.06, True)])
@pytest.mark.parametrize("text", ["c'est toujours cassé", "benutze immer pnpm"])
def test_always_in_another_language_is_a_hint_if_the_reader_denies_it(
    text: str, worth: float, is_proposed: bool
) -> None:
    """It often means "still", in a report of a bug."""
    (candidate,) = mine([prompt(text)], reader=Doubtful(worth))
    assert candidate.claimed_rule is is_proposed


def test_a_decision_is_no_idea() -> None:
    (candidate,) = mine([prompt("locked: the export stays as it is until March")], reader=Doubtful(0.1, idea=0.9))
    assert candidate.category != "idea"


@pytest.mark.parametrize(
    "text", ["Idea: a museum of kites.", "Future idea - print every failed webhook", "todo idea: dark mode. Not now."]
)
def test_what_is_labelled_an_idea_is_one(text: str) -> None:
    (candidate,) = mine([prompt(text)], reader=Doubtful())
    assert (candidate.category, candidate.claimed_rule) == ("idea", True)


def test_an_idea_keeps_what_is_said_of_it_and_no_more() -> None:
    text = "Idea: cache the price list. It would save a minute. This helps the shop, too. Now fix the login."
    (candidate,) = mine([prompt(text)], reader=Doubtful())
    assert candidate.statement.endswith("cache the price list. It would save a minute. This helps the shop, too.")


@pytest.mark.parametrize(
    "text", ["should we always run the linter?", "never mind", "add a rule for lint", "fix the failing test"]
)
def test_questions_and_orders_have_no_form(text: str) -> None:
    assert explicit_form(text) is None


def test_there_are_at_most_ten_forms_and_the_files_stay_small() -> None:
    assert len(forms._FORMS) <= 10
    folder = Path(forms.__file__).parent
    lines = [len((folder / name).read_text("utf-8").splitlines()) for name in ("forms.py", "forms.json")]
    assert max(lines) <= 150


def test_each_word_of_another_language_is_found_by_itself() -> None:
    data: dict[str, dict[str, list[str]]] = json.loads(forms._DATA.read_text("utf-8"))
    words = [word for kinds in data.values() for word in (*kinds["request"], *kinds["always"])]
    missed = [word for word in words if explicit_form(f"{word} x") is None]
    assert missed == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Remember: always run the linter.", "always run the linter."),
        ("ok, please remember that staging has no Redis", "staging has no Redis"),
        ("Don't forget that the tests need Redis.", "the tests need Redis."),
        ("Remember the linter.", "Remember the linter."),
        ("Remember:", "Remember:"),
    ],
)
def test_what_is_to_be_remembered_stands_without_the_request(said: str, kept: str) -> None:
    assert statement(said) == kept


@pytest.mark.parametrize(
    "sentence", ["Never \ufffd touch the log.", "Never\ufffd touch the log.", "\ufffd Never touch it."]
)
def test_what_was_no_character_does_not_hide_a_form(sentence: str) -> None:
    """A host wrote half of a surrogate pair there, after an emoji was cut."""
    assert explicit_form(sentence) is not None
