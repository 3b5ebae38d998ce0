"""The gates of the miner's patterns: they may let too much through, never too little."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.pipelines.mining import fixes, rules
from memoryvault.pipelines.mining.features import NO_FEATURES, message, message_worth_a_look
from memoryvault.pipelines.mining.gated import GatedPattern, fold, stems
from memoryvault.pipelines.mining.model import packaged
from memoryvault.vault.turn import Origin, Role, Turn

CUES = {f"{family}:{name}": cue for family, cues in rules.ALL_CUES.items() for name, cue in cues.items()}


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
def test_a_message_left_alone_would_have_been_told_no(parts: list[str]) -> None:
    head = packaged()["agent-fix"]
    turn = Turn(role=Role.ASSISTANT, origin=Origin.ASSISTANT, text=" ".join(parts) or "-", record="r", session="s")
    quick, whole = message_worth_a_look(turn, head), message(turn)
    if quick.features is NO_FEATURES:
        assert head.probability(whole.features) < head.threshold
    else:
        assert head.logit(quick.features) == pytest.approx(head.logit(whole.features))
