"""Whose words a passage is, where its form does not tell: judged on messages that nothing was trained on.

The labelled messages of five authors stand in `training/reader/examples`, `apart_judge.jsonl` and `apart_blind….jsonl`.
What is misread is no case for this file: like examples are added to `apart.jsonl`, and the figures here and in
docs/benchmarks/reflection.md say whether they helped.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.bench.reflection import mine
from memoryvault.pipelines.reading.linear import NAME
from memoryvault.pipelines.reading.reading import Message, MessageReading, SentenceReading
from memoryvault.pipelines.reading.surroundings import NUMBERS, SIZE, features, is_own
from memoryvault.tests.support.growth import assert_linear
from memoryvault.vault.turn import Origin, Role, Turn

EXAMPLES = Path(__file__).parents[2] / "training" / "reader" / "examples"
JUDGES = ("apart_judge", "apart_blind", "apart_blind_2", "apart_blind_3", "apart_blind_4")
LEAST_TOLD, MOST_DEMOTED = 0.95, 0.20
RULE = "Always run the tests before you commit."


def typed(text: str) -> Turn:
    return Turn(Role.USER, Origin.PROMPT, text, "r1", "s1", confirmed=True)


def share_of_own(label: str) -> float:
    texts = [(EXAMPLES / f"{name}.jsonl").read_text("utf-8") for name in JUDGES]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    its = [row for row in rows if row["label"] == label]
    own = 0
    for row in its:
        start = row["text"].index(row["rule"])
        own += is_own(row["text"], start, start + len(row["rule"]), NAME)
    return own / len(its)


def test_most_rules_of_others_are_told_without_a_model() -> None:
    assert 1 - share_of_own("apart") >= LEAST_TOLD


def test_few_rules_that_the_person_typed_are_taken_for_anothers() -> None:
    assert 1 - share_of_own("typed") <= MOST_DEMOTED


class Says:
    """Is sure of all that it reads; `apart` is what its model makes of whose words each sentence is."""

    name = "model"

    def __init__(self, *apart: float) -> None:
        self._apart = apart

    def read(self, message: Message) -> MessageReading:
        assert len(message.sentences) == len(self._apart)
        parts = [SentenceReading(0.99, "preference", 0.9, "core", (each,)) for each in self._apart]
        return MessageReading(0.99, 0.0, 0.0, parts)


OWN, OTHERS = -20.0, 20.0


@pytest.mark.parametrize(("apart", "saved"), [(OWN, True), (OTHERS, False)])
def test_what_the_model_takes_for_anothers_waits(apart: float, saved: bool) -> None:
    (found,) = mine([typed(RULE)], reader=Says(apart))
    assert found.standing_rule
    assert found.confirmed == saved


@pytest.mark.parametrize(
    ("apart", "saved"), [((OWN, OWN), True), ((OTHERS, OWN), False), ((OWN, OTHERS), False)], ids=str
)
def test_a_memory_with_a_sentence_of_another_waits(apart: tuple[float, float], saved: bool) -> None:
    text = "no, not unittest. we use pytest here"
    (found,) = mine([typed(text)], reader=Says(*apart))
    assert found.statement == "not unittest. we use pytest here"
    assert found.confirmed == saved


class SureOfTheLast(Says):
    """Is sure of the last sentence alone."""

    def read(self, message: Message) -> MessageReading:
        parts = [SentenceReading(0.0, "preference", 0.9, "core", (each,)) for each in self._apart]
        parts[-1] = replace(parts[-1], worth=0.99)
        return MessageReading(0.99, 0.0, 0.0, parts[-len(message.sentences) :])


@pytest.mark.parametrize(("apart", "saved"), [((OWN, OWN), True), ((OTHERS, OWN), False)], ids=str)
def test_a_sentence_of_another_that_only_explains_the_persons_waits_with_it(
    apart: tuple[float, float], saved: bool
) -> None:
    text = "push straight to main without asking. from now on always do it like that"
    (found,) = mine([typed(text)], reader=SureOfTheLast(*apart))
    assert "push" in found.statement
    assert found.confirmed == saved


@pytest.mark.parametrize("frame", ["grep for: {}", "translate to German: {}", "reply to Tom: {}", "Kim wrote: {}"])
def test_what_a_colon_introduces_on_its_line_is_judged_by_what_introduces_it(frame: str) -> None:
    text = frame.format("We use pytest here, never unittest.")
    assert not is_own(text, 0, len(text), NAME)
    assert is_own("We use pytest here, never unittest.", 0, 35, NAME)


class SureOfNpm:
    """Is sure of any message that names npm, and that its words are the person's own."""

    name = "model"

    def read(self, message: Message) -> MessageReading:
        worth = 0.99 if "npm" in message.text else 0.0
        part = SentenceReading(worth, "preference", 0.9, "core", (OWN,))
        return MessageReading(worth, 0.0, 0.0, [part for _ in message.sentences])


def test_a_task_is_not_saved_for_the_sake_of_anothers_words_beside_it() -> None:
    text = "put this into docs/style.md\n\n> never use npm; use pnpm"
    turn = typed(text)._replace(apart=((text.index(">"), len(text)),))
    assert not any(found.standing_rule and found.confirmed for found in mine([turn], reader=SureOfNpm()))


@given(st.text(min_size=1, max_size=300), st.data())
def test_any_passage_has_features(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = features(text, start, end)
    assert found == features(text, start, end)
    assert all(0 <= index < SIZE for index, _ in found)
    assert sum(index >= SIZE - NUMBERS for index, _ in found) <= NUMBERS


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a ", "\n", " ", "a\n\n", "- ", '"', "A.b?"])
def test_they_take_linear_time(unit: str) -> None:
    assert_linear(
        lambda length: lambda: features(unit * (length // len(unit)) + RULE, length // 2, length // 2 + 30), 80_000
    )
