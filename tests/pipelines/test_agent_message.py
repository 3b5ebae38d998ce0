"""A message of the agent's is told by its words whether it may be a fix, and cut into sentences only if it may."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryvault.pipelines.mining.agent_message import AgentMessage
from memoryvault.pipelines.mining.classifier import packaged
from memoryvault.pipelines.mining.sentence_scan import AGENTS, BITS
from memoryvault.pipelines.mining.sentences import sentences, without_fenced
from memoryvault.vault.turn import Origin, Role, Turn

FIX = "Found it. The root cause is a stale lock: `cache.py` never closes the file."


def said(text: str) -> Turn:
    return Turn(role=Role.ASSISTANT, origin=Origin.ASSISTANT, text=text, record="r", session="s")


def test_what_is_told_by_its_words_is_not_cut_into_sentences() -> None:
    plain, fix = AgentMessage(said("Now let me run the tests.")), AgentMessage(said(FIX))
    head = packaged()["agent-fix"]
    assert plain.is_beyond(head)
    assert "sentences" not in vars(plain)
    assert not fix.is_beyond(head)
    assert fix.probability(head) >= head.threshold


def test_what_stands_between_fences_counts_for_nothing() -> None:
    fenced = AgentMessage(said(f"Done.\n```\n{FIX}\n```"))
    assert fenced.features == AgentMessage(said("Done.\n")).features
    assert fenced.may_show == 0


def test_of_the_words_only_the_first_count_and_of_the_cues_those_in_later_ones_too() -> None:
    long = "word " * 400
    assert AgentMessage(said(long + "gamma")).features == AgentMessage(said(long + "delta")).features
    assert AgentMessage(said("gamma " + long)).features != AgentMessage(said("delta " + long)).features
    assert AgentMessage(said(f"{long}. It was fixed by clearing the cache.")).may_show & BITS["states a cure"]


def test_the_sentence_that_tells_the_cause_speaks_most_for_a_fix() -> None:
    message, head = AgentMessage(said(f"Let me look. {FIX} All tests pass.")), packaged()["agent-fix"]
    weights = [message.speaks_for(head, index) for index in range(len(message.sentences))]
    assert "root cause" in message.sentences[weights.index(max(weights))].text


def test_its_bits_are_those_of_the_users() -> None:
    assert AGENTS.bits
    assert all(BITS[name] == bit for name, bit in AGENTS.bits.items())


@given(st.lists(st.sampled_from(["```", "~~~", "  ```py", "Found it.", "a ``` b", "", "- The cause."]), max_size=8))
def test_fenced_lines_are_those_that_have_no_sentences(lines: list[str]) -> None:
    text = "\n".join(lines)
    kept = [part.text for part in sentences(said(without_fenced(text)))]
    assert kept == [part.text for part in sentences(said(text))]
