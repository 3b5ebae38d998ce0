"""The gate: what its features say, and what its weights must keep to."""

import pytest

from memoryvault.vault.gate import (
    BY_MEANING,
    BY_WORDS,
    EAGERNESS,
    log_odds,
    note_features,
    rarity,
    threshold,
    word_features,
)


@pytest.mark.parametrize("gate", [BY_MEANING, BY_WORDS])
def test_the_eager_let_more_through_than_the_cautious(gate: str) -> None:
    limits = [threshold(gate, eagerness) for eagerness in EAGERNESS]
    assert limits == sorted(limits, reverse=True)
    assert len(set(limits)) == len(EAGERNESS)


@pytest.mark.parametrize("total", [1, 5, 2000])
def test_a_term_is_the_rarer_the_fewer_passages_have_it(total: int) -> None:
    found = [rarity(count, total) for count in range(total + 1)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(1.0)
    assert found[-1] > 0.0


def test_the_more_of_a_prompt_a_passage_has_the_surer_it_is() -> None:
    terms = [((word,), 0.9) for word in ("deploy", "quokka", "staging")]

    def sure(*passage: str) -> float:
        return log_odds(BY_WORDS, word_features(terms, {*passage, "green", "button"}, 50))

    assert sure("deploy", "quokka", "staging") > sure("deploy", "quokka") > sure("deploy") > sure()


def test_any_of_a_misspelt_words_stems_counts() -> None:
    terms = [(("brwoser", "browser"), 0.8)]
    assert word_features(terms, {"browser"}, 9)["coverage"] == 1.0
    assert word_features(terms, {"server"}, 9)["coverage"] == 0.0


def test_a_prompt_or_a_passage_without_words_needs_no_special_case() -> None:
    assert word_features([], set(), 0)["coverage"] == 0.0
    assert word_features([(("a1",), 1.0)], set(), 0)["share"] == 0.0


@pytest.mark.parametrize("gate", [BY_MEANING, BY_WORDS])
def test_a_note_of_which_nothing_is_known_counts_as_an_average_one(gate: str) -> None:
    def sure(kind: str | None, confidence: str | None) -> float:
        return log_odds(gate, word_features([], set(), 9) | note_features(kind, confidence))

    kinds = [sure(kind, None) for kind in ("preferences", "fact", "workflow")]
    said = [sure(None, confidence) for confidence in ("HIGH", "MEDIUM", "LOW")]
    assert min(kinds) < sure(None, None) < max(kinds)
    assert said[2] < sure(None, None) < said[0], "a hint is needed less often than what was said plainly"
    assert sure("idea-research", "unheard of") == sure(None, None)
    assert sure("Preferences", "high") == sure("correction", "HIGH")
