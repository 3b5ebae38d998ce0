"""What is taken for more than linear time, and what only for a machine that has something else to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memoryvault.tests.support import growth

Times = Callable[[int], float]


class Clock:
    """Processor time by the length of what runs."""

    def __init__(self, seconds: Times) -> None:
        self.seconds = seconds
        self.lengths: list[int] = []

    def judge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def made(length: int) -> Callable[[], int]:
            return lambda: length

        def measured(run: Callable[[], object]) -> float:
            length = run()
            assert isinstance(length, int)
            self.lengths.append(length)
            return self.seconds(length)

        monkeypatch.setattr(growth, "processor_seconds", measured)
        growth.assert_linear(made, 80_000)


def test_linear_time_is_believed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(lambda length: length * 3e-6)
    clock.judge(monkeypatch)
    assert len(clock.lengths) == 5


@pytest.mark.parametrize(
    "seconds",
    [
        lambda length: length**2 * 1e-9,
        lambda length: length * 3e-6 + length**2 * 9e-11,
        lambda length: length * 3e-6 + length**2 * 3e-10,
    ],
    ids=["quadratic", "quadratic in part", "and more"],
)
def test_what_is_quadratic_is_found_be_it_in_part(seconds: Times, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="more than linear time"):
        Clock(seconds).judge(monkeypatch)


def test_what_is_quadratic_throughout_is_not_measured_at_a_length_of_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(lambda length: length**2 * 1e-9)
    with pytest.raises(AssertionError):
        clock.judge(monkeypatch)
    assert max(clock.lengths) == 80_000


def test_a_machine_that_is_slow_with_what_is_long_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was measured beside other tests: 0.014, 0.060 and 0.590 s of a computation that takes 1.2 s for 320,000."""
    Clock(lambda length: length * 3e-6 * (2.4 if length >= 80_000 else 1)).judge(monkeypatch)
