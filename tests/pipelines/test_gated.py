"""The gates of the miner's patterns: they may let too much through, never too little."""

from __future__ import annotations

import re
import zlib
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.pipelines.mining import fixes
from memoryvault.pipelines.mining.cues import CUES
from memoryvault.pipelines.mining.features import message
from memoryvault.pipelines.mining.gated import GatedPattern, fold, stems
from memoryvault.pipelines.mining.model import packaged
from memoryvault.pipelines.mining.searched import CUE_BITS, Searched
from memoryvault.pipelines.mining.wanted import Wanted, WordGates, clauses
from memoryvault.pipelines.mining.wording import without_lead_in
from memoryvault.pipelines.mining.words import MOST_KEPT, hashed_ngrams, words_of
from memoryvault.vault.turn import Origin, Role, Turn


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
    without = [name for name, cue in CUES.items() if not clauses(cue)]
    assert without == [], without


def _opens(pattern: str, text: str) -> bool:
    return WordGates({"it": re.compile(pattern, re.IGNORECASE)}).open_to(words_of(fold(text)), fold(text)) != 0


@pytest.mark.parametrize(
    ("pattern", "passes", "not_let_through"),
    [
        (r"\bso\b", "So what", "also, reason"),
        (r"\bfail(?:s|ed)?\b", "it failed", "a fa il"),
        (r"\bfix(?:es)?\b", "FIXES it", "a prefix"),
        (r"fix", "a prefix", "a fax"),
        (r"\bdon'?t\b", "don't", "donate"),
        (r"\bit\b", "it's", "its"),
        (r"\b(?:not|isn'?t)\s+(?:right|correct)\b", "isn't right", "not now"),
        (r"\blet me fix\b", "let me fix it", "let me see"),
        (r"(?:\w+\s+)?rather\s", "rather this", "gather this"),
        (r"^no\b", "no, not so", "note"),
        (r"`[^`]+`", "see `x`", "see x"),
        (r"\S->\S", "a->b", "a - b"),
    ],
)
def test_a_gate_knows_words_where_they_begin_and_end(pattern: str, passes: str, not_let_through: str) -> None:
    assert _opens(pattern, passes)
    assert not _opens(pattern, not_let_through)


def test_all_groups_of_words_are_asked_for() -> None:
    known = clauses(re.compile(r"\b(?:was|is) caused\s+by\b.*\bsolutions?\b"))
    assert [sorted(wanted.text for wanted in clause) for clause in known] == [["caused"], ["solution"], ["by"]]
    assert known[1] == {Wanted("solution", begins=True, ends=False)}


def test_without_words_a_gate_is_always_open() -> None:
    assert clauses(re.compile(r"(?:maybe)?\w+")) == ()
    assert _opens(r"(?:maybe)?\w+", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CUES, "cure"])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_matches_passes_its_gate(name: str, data: st.DataObject) -> None:
    pattern = CUES.get(name, fixes.STATES_CURE)
    text = data.draw(st.from_regex(pattern))
    folded = fold(text)
    assert GatedPattern(pattern).may_match(folded)
    assert WordGates({name: pattern}).open_to(words_of(folded), folded)


@pytest.mark.parametrize("head_name", ["agent-fix", "durable", "idea"])
@settings(deadline=None)
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
    assert hashed_ngrams(text) == {zlib.crc32(gram.encode()) % 4096 for gram in grams}


_PIECES = [
    *(
        "so",
        "that",
        "it",
        "is",
        "not",
        "right",
        "the",
        "issue",
        "was",
        "found",
        "fix",
        "fixed",
        "by",
        "let",
        "me",
        "later",
    ),
    *(
        "don't",
        "DON'T",
        "isn't",
        "I'd",
        "prefer",
        "we",
        "could",
        "also",
        "add",
        "why",
        "did",
        "you",
        "because",
        "of",
        "a",
    ),
    *("ſo", "K", "ﬁx", "İt", "`x`", "->", "first", "then", "_it_", "5", "v2", "instead", "should", "be", "stop"),
]


@settings(deadline=None)
@given(
    pieces=st.lists(st.sampled_from(_PIECES), max_size=9),
    joints=st.lists(st.sampled_from([" ", " ", " ", ", ", "'", "_", "-", "\n", ": "]), min_size=9, max_size=9),
)
def test_no_gate_is_shut_to_what_its_pattern_matches(pieces: list[str], joints: list[str]) -> None:
    text = "".join(piece + joint for piece, joint in zip(pieces, joints, strict=False))
    searched = Searched(text)
    for name, cue in CUES.items():
        if cue.search(text) or cue.search(without_lead_in(text)):
            assert searched.may_show & CUE_BITS[name], name


def test_what_is_kept_of_words_is_bounded() -> None:
    gates = WordGates({"a": CUES["fix:fails"]})
    for number in range(MOST_KEPT // 1000 + 3):
        words = [f"{letters}" for letters in _made_up(number)]
        gates.open_to(words, " ".join(words))
    assert len(gates._fulfilled_by) <= MOST_KEPT


def _made_up(number: int) -> list[str]:
    return ["".join(chr(97 + int(digit)) for digit in str(number * 1000 + place)) for place in range(1000)]
