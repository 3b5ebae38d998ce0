"""A prompt gets no note that shares its words alone (answer_model.py)."""

import sys

import pytest

from memoryvault.index.answer_model import MOST_CHARACTERS, PASSAGE_TOKENS, PROMPT_TOKENS
from memoryvault.index.embedder import DEFAULT_MODEL, PackagedEmbedder, load_embedder
from memoryvault.index.engine import LEAST_ANSWER, RecallQuery
from memoryvault.index.runner import ModelRunner
from memoryvault.runtime.errors import ModelUnavailable
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


def judged(packaged: PackagedEmbedder, passage: str, prompt: str = PROMPT) -> float:
    logit = packaged.judge_answer(prompt, passage)
    assert logit is not None
    return logit


def test_a_note_answers_what_it_says_and_not_what_has_its_words(packaged: PackagedEmbedder) -> None:
    in_vain = judged(packaged, STAGING, "Who has admin rights on the staging database?")
    assert in_vain < LEAST_ANSWER < judged(packaged, STAGING)


def test_what_is_empty_or_long_is_not_judged(packaged: PackagedEmbedder) -> None:
    for prompt, passage in (
        ("", STAGING),
        ("cat " * (PROMPT_TOKENS + 1), STAGING),
        ("cat" * MOST_CHARACTERS, STAGING),
        (PROMPT, ""),
        (PROMPT, "cat " * (PASSAGE_TOKENS + 1)),
    ):
        assert packaged.judge_answer(prompt, passage) is None


class Judging(FakeEmbedder):
    """Judges by a list of passages that do not answer."""

    vain: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.judged: list[str] = []

    def judge_answer(self, prompt: str, passage: str) -> float | None:
        self.judged.append(passage)
        return LEAST_ANSWER - any(part in passage for part in self.vain)


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


def test_a_fix_is_not_judged(bed: Bed, judging: Judging) -> None:
    judging.vain = ("Sundays",)
    bed.write("personal-private/refresh.md", "# Refresh\n\nStaging gets a copy of the data on Sundays.", kind="Fix")
    bed.refresh()
    assert [hit.slug for hit in bed.recall(ASKED, is_prompt=True).hits] == ["refresh"]


def test_without_time_the_gate_alone_decides(bed: Bed, judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    judging.vain = ("Sundays",)
    asked, engine = RecallQuery(ASKED, is_prompt=True), bed.engine()
    assert engine.recall(asked, budget_ms=60_000).hits == ()
    monkeypatch.setattr("memoryvault.index.engine.LEAST_SECONDS", 60.0)
    assert [hit.slug for hit in engine.recall(asked, budget_ms=60_000).hits] == ["refresh"]


class Broken(FakeEmbedder):
    def judge_answer(self, prompt: str, passage: str) -> float | None:
        raise ValueError("broken weights")


def test_a_model_that_fails_to_judge_loses_no_answer() -> None:
    runner = ModelRunner("fake", Broken)
    assert runner.wait_ready(10)
    assert runner.judge_answer(PROMPT, STAGING) is None
    runner.stop()


# The owner of the model: nobody waits for an answer that will not come


def test_what_is_asked_after_the_end_is_refused_at_once() -> None:
    runner = ModelRunner("fake", FakeEmbedder)
    assert runner.wait_ready(10)
    runner.stop()
    with pytest.raises(ModelUnavailable, match="is ending"):
        runner.batch(["a passage"])
    with pytest.raises(ModelUnavailable, match="is ending"):
        runner.question(["a question"])


def test_a_question_that_nobody_waits_for_does_not_keep_the_others_from_their_end() -> None:
    runner = ModelRunner("fake", lambda: FakeEmbedder(delay_seconds=0.05))
    assert runner.wait_ready(10)
    futures = [runner.question([f"question {number}"]) for number in range(9)]
    futures[-2].cancel()
    runner.stop()
    with pytest.raises(ModelUnavailable, match="is ending"):
        futures[-1].result(5)


def test_without_a_model_there_need_be_no_numpy_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both come with the extra `semantic`: who does not have it is told so, in words, and keywords answer."""
    monkeypatch.setitem(sys.modules, "numpy", None)

    def not_here() -> FakeEmbedder:
        raise ModelUnavailable("the model is not installed")

    runner = ModelRunner("fake", not_here)
    assert not runner.wait_ready(10)
    with pytest.raises(ModelUnavailable, match="not installed"):
        runner.encode(["a question"])
    runner.stop()
