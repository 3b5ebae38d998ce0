"""The explicit forms guarantee a proposal, whatever a reader thinks."""

from __future__ import annotations

import json
from dataclasses import replace
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
    "Steps to release:\n1. bump the version\n2. tag it",
    "ab jetzt schreibst du Commits auf Deutsch",
    "从现在起用中文回答",
)


class Doubtful:
    name = "words"

    def read(self, message: Message) -> MessageReading:
        part = SentenceReading(0.0, "preference", 0.0, "prompt")
        return MessageReading(0.0, 0.0, 0.0, [part for _ in message.sentences])


def prompt(text: str) -> Turn:
    return Turn(Role.USER, Origin.PROMPT, text, "r1", "s1", confirmed=True)


@pytest.mark.parametrize("text", STATED)
@pytest.mark.parametrize("eagerness", EAGERNESS)
def test_what_is_said_outright_is_proposed_by_a_reader_that_doubts_it(text: str, eagerness: Eagerness) -> None:
    (candidate,) = mine([prompt(text)], reader=Doubtful(), eagerness=eagerness)
    assert candidate.claimed_rule
    assert not candidate.standing_rule


@pytest.mark.parametrize(
    "text",
    [
        "Idea: a museum of kites. It opens by itself.",
        "Future idea - print every failed webhook",
        "todo idea: dark mode. Not now.",
        "Also, idea for later: a dark theme. People asked for it.",
    ],
)
def test_what_is_labelled_an_idea_is_one(text: str) -> None:
    (candidate,) = mine([prompt(text)], reader=Doubtful())
    assert (candidate.category, candidate.claimed_rule, candidate.confirmed) == ("idea", True, True)


class TakesItForAnothers(Doubtful):
    name = "model"

    def read(self, message: Message) -> MessageReading:
        reading = super().read(message)
        return replace(reading, sentences=[replace(part, apart=20.0) for part in reading.sentences])


@pytest.mark.parametrize("lead", ["", "Kim wrote:\n"])
def test_a_label_that_opens_the_message_says_whose_idea_it_is(lead: str) -> None:
    (candidate,) = mine([prompt(f"{lead}Idea: we drop the old table. It is unused.")], reader=TakesItForAnothers())
    assert candidate.confirmed == (not lead)


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
    data: dict[str, list[str]] = json.loads(forms._DATA.read_text("utf-8"))
    missed = [word for words in data.values() for word in words if explicit_form(f"{word} x") is None]
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
