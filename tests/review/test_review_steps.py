"""Go back over the steps of a review (cli/review_steps.py); `test_commands` tests the keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from memoryvault.cli import review_steps
from memoryvault.cli.review_steps import Steps
from memoryvault.pipelines.review import Reject

from .support import CHOICE, Bed


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine stands 14 hours before UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("tomorrow")
def test_a_decision_from_before_is_named_with_the_day_on_which_the_user_made_it(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.remember(CHOICE)
    reviewer = bed.reviewer
    reviewer.decide(bed.only("pending").path, Reject(), run="before")
    act = reviewer.last_decision()
    assert act is not None
    monkeypatch.setattr(reviewer, "last_decision", lambda: replace(act, at="2026-01-30T12:00:00Z"))
    monkeypatch.setattr(review_steps, "read_key", lambda question: "n")
    steps: Steps[int] = Steps(reviewer, "another run")
    assert steps.go_back() == (None, False)
    assert "the last decision before is of 2026-01-31: rejected" in capsys.readouterr().out
