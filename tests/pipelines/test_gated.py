"""The gates of the miner's patterns: they may let too much through, never too little."""

from __future__ import annotations

import re
import zlib
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.pipelines.mining import cues, fixes
from memoryvault.pipelines.mining.features import message
from memoryvault.pipelines.mining.gated import GatedPattern, fold, stems
from memoryvault.pipelines.mining.model import packaged
from memoryvault.pipelines.mining.words import MOST_KEPT, WordGates, hashed_ngrams, words_of
from memoryvault.vault.turn import Origin, Role, Turn

CUES = {f"{family}:{name}": cue for family, patterns in cues.ALL_CUES.items() for name, cue in patterns.items()}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\bfoo\s+bar(?:baz)?\b", ("foo",)),
        (r"\b(?:prefer|rather)\b", ("prefer", "rather")),
        (r"(?:maybe)?\w+", ()),
        (r"colou?r", ("colo",)),
        (r"(?:no|x*)", ()),
        (r"the (?:root cause|culprit)", ("culprit", "root cause")),
        (r"ab(?!never)c{2,}", ("ab",)),
    ],
)
def test_the_strings_are_read_off_the_pattern(pattern: str, expected: tuple[str, ...]) -> None:
    assert stems(re.compile(pattern, re.IGNORECASE)) == expected


def test_nearly_every_cue_has_a_gate() -> None:
    """Without one the miner is right, but slow: this tells when Python's parser has changed."""
    without = [name for name, cue in CUES.items() if not stems(cue)]
    assert len(without) <= 2, without


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CUES, "cure"])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_matches_passes_its_gate(name: str, data: st.DataObject) -> None:
    pattern = CUES.get(name, fixes.STATES_CURE)
    text = data.draw(st.from_regex(pattern))
    assert GatedPattern(pattern).may_match(fold(text))


@pytest.mark.parametrize("head_name", ["agent-fix", "durable", "idea"])
@given(
    parts=st.lists(
        st.sampled_from(
            [
                *("The root cause is", "Found it:", "`cache.py` never closes the file", "because of a stale lock"),
                *("Now I'll", "run the tests", "fixed by adding", "a retry", "The issue was", "It fails", "so that"),
                *("we could", "later", "no, not right.", "All tests pass.", "Done?", "I always prefer"),
                *("the workaround", "doesn't respect", "timeouts"),
            ]
        ),
        max_size=12,
    )
)
def test_a_message_left_alone_would_have_been_told_no(head_name: str, parts: list[str]) -> None:
    head = packaged()[head_name]
    by_agent = head_name == "agent-fix"
    role, origin = (Role.ASSISTANT, Origin.ASSISTANT) if by_agent else (Role.USER, Origin.PROMPT)
    turn = Turn(role=role, origin=origin, text=" ".join(parts) or "-", record="r", session="s")
    said = message(turn)
    if said.is_beyond(head):
        assert head.probability(said.features) < head.threshold


@given(
    text=st.lists(
        st.sampled_from(["we", "could", "later", "the", "root", "cause", "42", "7", "?", "don't"]), max_size=9
    )
)
def test_ngrams_fall_into_the_buckets_of_their_checksums(text: list[str]) -> None:
    words = ["^", *("#" if word.isdigit() else word for word in text)]
    grams = [*words[1:], *(f"{first} {second}" for first, second in pairwise(words))]
    assert hashed_ngrams(text, 4096) == {zlib.crc32(gram.encode()) % 4096 for gram in grams}


@settings(suppress_health_check=list(HealthCheck))
@given(
    text=st.text(alphabet=st.sampled_from("abcdefghilnoprstuwy' ?!`,->→ſKﬁ5"), max_size=60),
    name=st.sampled_from(list(CUES)),
)
def test_a_look_at_the_words_lets_through_what_a_look_at_the_text_does(text: str, name: str) -> None:
    folded, gated = fold(text), GatedPattern(CUES[name])
    gates = WordGates({name: gated})
    assert not gated.may_match(folded) or gates.open_to(words_of(folded), folded)


@pytest.mark.parametrize("name", [*CUES])
def test_each_string_of_a_gate_opens_it_within_a_longer_text(name: str) -> None:
    gated = GatedPattern(CUES[name])
    gates = WordGates({name: gated})
    for stem in gated.stems:
        for text in (stem, f"x{stem}y", f"so 12 {stem} then"):
            assert gates.open_to(words_of(text), text)


def test_what_is_kept_of_words_is_bounded() -> None:
    gates = WordGates({"a": GatedPattern(CUES["fix:fails"])})
    for number in range(MOST_KEPT // 1000 + 3):
        words = [f"{letters}" for letters in _made_up(number)]
        gates.open_to(words, " ".join(words))
    assert len(gates._opened_by) <= MOST_KEPT


def _made_up(number: int) -> list[str]:
    return ["".join(chr(97 + int(digit)) for digit in str(number * 1000 + place)) for place in range(1000)]
