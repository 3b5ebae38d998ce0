"""The owner of the model: nobody waits for an answer that will not come."""

import sys

import pytest

from memoryvault.index.runner import ModelRunner
from memoryvault.runtime.errors import ModelUnavailable
from memoryvault.tests.support.fake_embedder import FakeEmbedder


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
