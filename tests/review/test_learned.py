"""The user's decisions on proposals affect later ones."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from memoryvault.pipelines.learned import APPROVED_SHIFT, LEAST_DECISIONS, learned_shift, shifted
from memoryvault.pipelines.review import Approve, Reject
from memoryvault.pipelines.routing import Action, route
from memoryvault.services.known_memories import VaultMemories
from memoryvault.services.semantic_similarity import SemanticSimilarity

from .support import CHOICE, RULE, Bed, said

FIRST = "No, put the release notes into the wiki"
OTHER_WORDS = "Release notes belong on our wiki pages"


class Meaning(SemanticSimilarity):
    """All texts are as near in meaning as it says."""

    def __init__(self, bed: Bed, cosine: float | None) -> None:
        super().__init__(bed.settings)
        self._cosine_of_all = cosine

    def cosines(self, text: str, others: Sequence[str]) -> list[float | None]:
        return [self._cosine_of_all] * len(others)


def memories(bed: Bed, cosine: float | None) -> VaultMemories:
    return VaultMemories(bed.store, bed.settings, Meaning(bed, cosine))


def decide(bed: Bed, decision: Approve | Reject) -> None:
    bed.remember(replace(said(CHOICE, "a", FIRST), excerpt=FIRST))
    bed.reviewer.decide(bed.only("pending").path, decision, run="review-1")


@pytest.mark.parametrize(("cosine", "action"), [(0.85, Action.NOTHING), (0.5, Action.WRITE), (None, Action.WRITE)])
def test_statement_similar_to_a_rejected_one_is_not_proposed(bed: Bed, cosine: float | None, action: Action) -> None:
    decide(bed, Reject())
    assert route(said(CHOICE, "b", OTHER_WORDS), memories(bed, cosine)).action is action


def test_a_standing_rule_in_the_users_own_words_is_heard_though_something_near_it_was_rejected(bed: Bed) -> None:
    decide(bed, Reject())
    statement = "Always put the release notes into the wiki and into docs/notes.md"
    assert route(said(CHOICE, "b", statement), memories(bed, 0.85)).action is Action.NOTHING
    assert route(said(RULE, "b", statement), memories(bed, 0.85)).action is Action.WRITE


def test_contradiction_of_a_rejected_statement_is_not_taken_for_it(bed: Bed) -> None:
    decide(bed, Reject())
    opposite = said(CHOICE, "b", "Don't put the release notes into the wiki")
    assert route(opposite, memories(bed, 0.95)).action is Action.WRITE


def test_statement_similar_to_an_approved_one_is_more_probable(bed: Bed) -> None:
    candidate = said(CHOICE, "b", OTHER_WORDS)
    assert memories(bed, 0.7).shift(candidate) == 0
    decide(bed, Approve())
    assert memories(bed, 0.7).shift(candidate) == APPROVED_SHIFT
    assert memories(bed, None).shift(candidate) == 0


def test_after_thirty_decisions_the_share_of_approvals_counts() -> None:
    assert learned_shift(0, LEAST_DECISIONS - 1, None) == 0
    assert learned_shift(0, LEAST_DECISIONS, None) < 0 < learned_shift(LEAST_DECISIONS, 0, None)
    assert learned_shift(15, 15, None) == pytest.approx(0)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_probability_stays_one(probability: float) -> None:
    less, same, more = (shifted(probability, shift) for shift in (-2.0, 0.0, 2.0))
    assert 0 <= less <= same <= more <= 1
    assert same == pytest.approx(probability)
