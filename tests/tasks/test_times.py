"""The worker's time limits: no setting changes them, tests of real processes shorten them."""

from __future__ import annotations

import pytest

from memoryvault.tasks.queue.times import WorkerTimes, worker_times


def test_no_setting_and_no_variable_of_one_changes_it() -> None:
    assert worker_times({"MEMORY_QUEUE_LEASE_SECONDS": "2"}) == WorkerTimes(poll=1.0, lease=30.0, drain=20.0)


@pytest.mark.parametrize(("text", "seconds"), [("2", 2.0), ("0", 0.05), ("-1", 0.05)])
def test_a_test_shortens_a_lease_but_not_to_nothing(text: str, seconds: float) -> None:
    assert worker_times({"MEMORY_TEST_LEASE_SECONDS": text}) == WorkerTimes(lease=seconds)
