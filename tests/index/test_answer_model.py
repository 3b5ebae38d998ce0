"""A prompt gets no note that shares its words alone (answer_model.py)."""

from collections.abc import Sequence

import numpy
import pytest

from memoryvault.index.answer_model import MOST_PARTS, PASSAGE_TOKENS, PROMPT_TOKENS
from memoryvault.index.embedder import DEFAULT_MODEL, PackagedEmbedder, load_embedder
from memoryvault.index.engine import LEAST_ANSWER, RecallQuery
from memoryvault.tests.support.fake_embedder import FakeEmbedder

from .bed import Bed

STAGING = "The staging database is refreshed from production every Sunday night."
PROMPT = "When is the staging database refreshed?"
ASKED = "when does staging get a copy of the data?"


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> PackagedEmbedder:
    embedder = load_embedder(DEFAULT_MODEL, models_folder=tmp_path_factory.mktemp("models"))
    assert isinstance(embedder, PackagedEmbedder)
    return embedder


def test_a_note_answers_what_it_says_and_not_what_has_its_words(packaged: PackagedEmbedder) -> None:
    (answered,) = packaged.judge_answers(PROMPT, [STAGING])
    (asked_in_vain,) = packaged.judge_answers("Who has admin rights on the staging database?", [STAGING])
    assert asked_in_vain < LEAST_ANSWER < answered


def test_a_passage_is_judged_alike_alone_and_beside_others(packaged: PackagedEmbedder) -> None:
    passages = [
        STAGING,
        "Use pnpm.",
        f"Backups are kept for a week, on two hosts. {STAGING} Ask before you drop a table.",
    ]
    alone = [packaged.judge_answers(PROMPT, [passage])[0] for passage in passages]
    assert numpy.allclose(packaged.judge_answers(PROMPT, passages), alone, atol=1e-3)


def test_a_long_passage_is_judged_by_its_best_part(packaged: PackagedEmbedder) -> None:
    filler = "cat " * PASSAGE_TOKENS
    (answered,) = packaged.judge_answers(PROMPT, [STAGING])
    behind, too_far_behind = packaged.judge_answers(PROMPT, [filler + STAGING, filler * MOST_PARTS + STAGING])
    assert abs(behind - answered) < 1e-3
    assert too_far_behind < behind


def test_an_empty_passage_and_a_long_prompt_are_no_error(packaged: PackagedEmbedder) -> None:
    assert len(packaged.judge_answers("?", ["", STAGING])) == 2
    assert packaged.judge_answers("cat " * (PROMPT_TOKENS + 1), [STAGING]) == []


class Judging(FakeEmbedder):
    """Judges by a list of passages that do not answer."""

    vain: tuple[str, ...] = ()
    judged: list[str]

    def judge_answers(self, prompt: str, passages: Sequence[str]) -> list[float]:
        self.judged = list(passages)
        return [LEAST_ANSWER - any(part in passage for part in self.vain) for passage in passages]


@pytest.fixture
def judging(bed: Bed) -> Judging:
    embedder = Judging()
    bed.embedder = embedder
    bed.write("personal-private/refresh.md", "# Refresh\n\nStaging gets a copy of the data on Sundays.", kind="fact")
    bed.write("personal-private/cats.md", "# Cats\n\nCats sleep on the router.", kind="fact")
    bed.refresh()
    return embedder


def test_a_prompt_gets_what_answers_it(bed: Bed, judging: Judging) -> None:
    assert [hit.slug for hit in bed.recall(ASKED, is_prompt=True).hits] == ["refresh"]
    assert judging.judged == ["Refresh\nStaging gets a copy of the data on Sundays."]
    judging.vain = ("Sundays",)
    result = bed.recall(ASKED, is_prompt=True)
    assert (result.hits, [(one.path, one.reason) for one in result.rejections][:1]) == (
        (),
        [("personal-private/refresh.md", "no-answer")],
    )


def test_a_question_to_the_vault_gets_all_that_is_near(bed: Bed, judging: Judging) -> None:
    judging.vain = ("Sundays",)
    assert [hit.slug for hit in bed.recall(ASKED).hits][:1] == ["refresh"]


def test_without_time_the_gate_alone_decides(bed: Bed, judging: Judging) -> None:
    judging.vain = ("Sundays",)
    engine = bed.engine()
    assert engine.recall(RecallQuery(ASKED, is_prompt=True), budget_ms=5000).hits == ()
    assert engine.recall(RecallQuery(ASKED, is_prompt=True), budget_ms=60).hits != ()
