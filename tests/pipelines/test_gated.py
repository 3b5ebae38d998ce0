"""The gates of the miner's patterns: they may let too much through, never too little."""

from __future__ import annotations

import json
import re
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.pipelines import mining
from memoryvault.pipelines.mining import fixes
from memoryvault.pipelines.mining.agent_message import AgentMessage
from memoryvault.pipelines.mining.caseless_pattern import CaselessPattern, fold, has_case_in_ascii_only
from memoryvault.pipelines.mining.classifier import packaged
from memoryvault.pipelines.mining.common_patterns import order_of, without_lead_in
from memoryvault.pipelines.mining.cues import CUES
from memoryvault.pipelines.mining.explicit_forms import explicit_forms, sets_aside
from memoryvault.pipelines.mining.features import message
from memoryvault.pipelines.mining.named_project import without_named_project
from memoryvault.pipelines.mining.required_text import RequiredText, WordGates, clauses
from memoryvault.pipelines.mining.sentence_scan import (
    AGENTS,
    ASIDE_BIT,
    BITS,
    CURE_BIT,
    PATTERNS,
    MessageScan,
    SentenceScan,
)
from memoryvault.pipelines.mining.sentences import sentences
from memoryvault.pipelines.mining.standing_rules import RULE_FORMS, standing_rule
from memoryvault.pipelines.mining.tokens import MOST_KEPT, hashed_ngrams, word_matches, words_of, words_of_lines
from memoryvault.vault.turn import Origin, Role, Turn


@pytest.mark.parametrize(
    ("pattern", "lower_case_pattern", "depends_on_start"),
    [
        (r"\bfoo\s+bar(?:baz)?\b", True, False),
        (r"\b(?:prefer|(?-i:NOT))\b", False, False),
        (r"[A-F]\d|ſo", False, False),
        (r"(?:maybe|^so)\W", True, True),
        (r"[^,.](?<!un)likely", True, True),
    ],
)
def test_how_a_pattern_may_be_searched_is_read_off_it(
    pattern: str, lower_case_pattern: bool, depends_on_start: bool
) -> None:
    read = CaselessPattern(re.compile(pattern, re.IGNORECASE))
    assert (read.lower_case_pattern is not None, read.depends_on_start) == (lower_case_pattern, depends_on_start)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("Use pnpm", True),
        ("Nope — use it → now ✅ 😅", True),
        ("日本", True),
        ("\ud800", True),
        ("für", False),
        ("İt", False),
        ("ſo", False),
        ("10 \u212a", False),
    ],
)
def test_dashes_and_emoji_do_not_keep_a_text_from_its_lower_case(text: str, alone: bool) -> None:
    assert has_case_in_ascii_only(text) is alone


def test_nearly_every_cue_is_searched_in_lower_case_and_once() -> None:
    """Otherwise the miner is right, but slow: this tells when Python's parser has changed."""
    read = {name: CaselessPattern(cue) for name, cue in CUES.items()}
    assert [name for name, cue in read.items() if cue.lower_case_pattern is None] == ["preference:shouts"]
    assert sum(cue.depends_on_start for cue in read.values()) < len(read) / 3


def test_nearly_every_cue_has_a_gate() -> None:
    """Without one the miner is right, but slow: this tells when Python's parser has changed."""
    without = [name for name, cue in CUES.items() if not clauses(cue)]
    assert without == [], without


def _open_to(gates: WordGates, folded: str) -> int:
    return gates.open_by([gates.known[word][0] for word in words_of(folded)], folded)


def _opens(pattern: str, text: str) -> bool:
    return _open_to(WordGates({"it": re.compile(pattern, re.IGNORECASE)}), fold(text)) != 0


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
    assert known[1] == {RequiredText("solution", begins=True, ends=False)}


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
    read = CaselessPattern(pattern)
    if read.lower_case_pattern is not None and text.isascii():
        assert read.lower_case_pattern.search(folded)
    assert _open_to(WordGates({name: pattern}), folded)


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
    said = AgentMessage(turn) if by_agent else message(turn)
    assert said.probability(head) == head.probability(said.features)
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


@given(st.lists(st.sampled_from([*"ab'z09?! -._#A", "\n", "é", "—", "😀", "٣", "①", "ſ", "\ud800"]), max_size=12))
def test_words_are_what_their_pattern_finds(letters: list[str]) -> None:
    folded = fold("".join(letters))
    assert words_of(folded) == [match[0] for match in word_matches(folded)]
    cut = words_of_lines("".join(letters))
    assert cut == [words_of(line) for line in folded.split("\n")] or (cut is None and not "".join(letters).isascii())


@given(
    st.lists(st.lists(st.sampled_from(["we", "could", "later", "42v", "?", "don't", "ſo", "İt", "`x`"])), max_size=4)
)
def test_sentences_are_known_together_as_each_is_alone(sentences: list[list[str]]) -> None:
    texts = [" ".join(words) for words in sentences]
    glance = MessageScan(texts)
    for place, text in enumerate(texts):
        assert glance.sentence(place).may_show == SentenceScan(text).may_show
        assert SentenceScan(text).may_show & ~glance.may_show == 0
    words = words_of(" ".join(texts).lower())
    assert glance.words == len(words)
    assert glance.ngrams(7) == hashed_ngrams(words[:7])


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


_RULE_PIECES = re.split(
    r" \| |\n",
    """always | never | Never ever | must | must always | from now on | going forward, | in the future, | remember:
keep in mind that | for future reference: | in this repo | here we | our convention is | I prefer
we never want | we always use | my preference is | I hate when | prefer | for every | whenever | every commit
tests | run | use | use snake_case | British English | stick with tabs | don't | do not | avoid | commits
anything | without asking | ask me before | you delete | files | please | no, | Ok. | I told you to
you forgot to | instead of npm | idea: | someday | wishlist: | would be cool if | ? | . | I wonder if we could
leave it for later | a workaround is | caused by | the problem was | when it runs | out of scope | for a follow-up
future work | you could clean up later | Fixed it by | the solution | retry""",
)

_ONE_OF_EACH_FORM = [
    *re.split(
        r" \| |\n",
        """Always run the linter.
never ever, push on Fridays | please never touch gen/
UNDER NO CIRCUMSTANCES, deploy
From now on run the tests | going forward write docs first | as a rule, squash | henceforth rebase on main
Whenever you push, run it | before every commit run ruff | ask me first when you rename
after each release, tag | I never want tabs | we don't ever want mocks | I do not want you to ever rebase main
we always use pnpm | I always squash | commits must always compile | the scripts should never print secrets
I really prefer tabs | prefer pathlib | my preference is short names | I hate when tests sleep
tests must use real files | every module needs to have a docstring | sign each commit
we should test any parser | I want a changelog line for every fix | we need types in all modules
I expect docs at all times | use British spelling | write in Australian English | use conventional commits
stick to snake_case | our convention is snake case names | my policy: small commits
the team's rule is no mocks here | in this repo we use tabs | Here we log to stderr only
use make in this monorepo | don't push without asking | avoid global variables | no more mocks unless I say
stop adding comments | ask me before deleting any file | please check with me before you add new packages
remember: the staging key rotates | keep in mind that Bob owns CI | for future reference: port 8081
memorise: the port | 'Always lint' | _never_ push | *From now on* lint | (remember: lint) | Don’t ever push
No, use pnpm | I already told you to lint | you forgot to lint | use pnpm instead of npm | Idea: a dark mode
wishlist: | put it on the backlog | that would be cool to have | I wonder if we could cache it
someday we could shard it | let's leave that for later | fixed it by clearing the cache
The workaround is setting TZ | the issue was a stale lock | when the disk is full, it crashes
the crash was caused by a race | This is a good follow-up | Not in scope, maybe later | resolved by the retry""",
    ),
    "It was caused by\na missing lock; the solution was to wait",
    "\u017ftop adding comments",
    "no, stop adding files",
    "in the shop repo, always lint",
    "stop asking me before a build",
    "found \u0130t, and f\u0131xed by adding a lock",
    "A\u017f\u212a me before adding anything",
]


def _has_its_gates_open(text: str) -> None:
    searched = SentenceScan(text)
    assert SentenceScan(text, AGENTS).may_show == searched.may_show & sum(AGENTS.bits.values()), "an agent's says less"
    looked_at = {text, text.strip(), without_lead_in(text), order_of(without_named_project(text))}
    for name, pattern in PATTERNS.items():
        if any(map(pattern.search, looked_at)):
            assert searched.may_show & BITS[name], name
        if name in CUES:
            assert searched.shows(name) == any(map(pattern.search, (text, without_lead_in(text)))), name
    assert searched.standing_rule == standing_rule(text), "a rule of the user's would be lost"
    if standing_rule(text) is not None:
        assert any(form.search(said) for form in RULE_FORMS for said in looked_at), "its form is not in RULE_FORMS"
    assert searched.explicit == explicit_forms(text)
    assert searched.may_show & ASIDE_BIT or not sets_aside(text)
    assert searched.may_show & CURE_BIT or not fixes.states_cure(text)


@settings(deadline=None)
@given(
    pieces=st.lists(st.sampled_from(_PIECES), max_size=9),
    joints=st.lists(st.sampled_from([" ", " ", " ", ", ", "'", "_", "-", "\n", ": "]), min_size=9, max_size=9),
)
def test_no_gate_is_shut_to_what_its_pattern_matches(pieces: list[str], joints: list[str]) -> None:
    _has_its_gates_open("".join(piece + joint for piece, joint in zip(pieces, joints, strict=False)))


@settings(deadline=None)
@given(
    pieces=st.lists(st.sampled_from(_RULE_PIECES), max_size=5),
    joints=st.lists(st.sampled_from([" ", " ", " ", ", ", "\n", "_"]), min_size=5, max_size=5),
    upper=st.booleans(),
)
def test_no_gate_is_shut_to_a_rule(pieces: list[str], joints: list[str], upper: bool) -> None:
    text = "".join(piece + joint for piece, joint in zip(pieces, joints, strict=False))
    _has_its_gates_open(text.upper() if upper else text)


def test_no_gate_is_shut_to_what_people_say() -> None:
    """Nor is a form of `standing_rule` missing in RULE_FORMS: each has sentences here that have no other."""
    said = [json.loads(line)["text"] for file in _SAID for line in file.read_text("utf-8").splitlines()]
    turns = [Turn(role=Role.USER, origin=Origin.PROMPT, text=text, record="r", session="s") for text in said]
    cut = [part.text for turn in turns for part in sentences(turn)]
    for text in {*_ONE_OF_EACH_FORM, *said, *cut}:
        _has_its_gates_open(text)
    assert sum(standing_rule(text) is not None for text in cut) > 20


_TRAINING = Path(mining.__file__).parent / "training"
_SAID = [_TRAINING / name for name in ("examples.jsonl", "held_out.jsonl")]


def test_what_is_kept_of_words_is_bounded() -> None:
    gates = WordGates({"a": CUES["fix:fails"]})
    for number in range(MOST_KEPT // 1000 + 3):
        words = [f"{letters}" for letters in _made_up(number)]
        _open_to(gates, " ".join(words))
    assert len(gates.known) <= MOST_KEPT


def _made_up(number: int) -> list[str]:
    return ["".join(chr(97 + int(digit)) for digit in str(number * 1000 + place)) for place in range(1000)]
