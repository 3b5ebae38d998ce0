"""Which recall is worked on next, and how thoroughly, when more is asked than can be answered in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryvault.index import admission as admission_module
from memoryvault.index.admission import FULL_SECONDS, Admission, Effort
from memoryvault.tests.support.hurry import patience


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def waiting(admission: Admission) -> int:
    return len(admission._waiting)


def soon(seconds: float) -> float:
    return time.monotonic() + seconds * patience()


@pytest.mark.hurried
def test_one_alone_is_answered_in_full() -> None:
    with Admission(2).admit(soon(0.2)) as effort:
        assert effort is Effort.FULL


def test_one_with_less_time_than_a_whole_recall_takes_is_answered_in_a_hurry() -> None:
    with Admission(2).admit(soon(FULL_SECONDS / 2)) as effort:
        assert effort is Effort.REDUCED


def test_one_slow_moment_does_not_keep_all_later_ones_in_a_hurry() -> None:
    """The machine was busy, or the model still loading, when one took its time; a reduced recall measures nothing."""
    now = [1000.0]
    admission = Admission(2, clock=lambda: now[0])
    with admission.admit(None):
        now[0] += 4.0
    with admission.admit(now[0] + 0.25) as effort:
        assert effort is Effort.REDUCED, "the machine may still be so slow"
    now[0] += 5.0
    with admission.admit(now[0] + 0.25) as effort:
        assert effort is Effort.FULL


def test_one_whose_time_is_over_is_not_worked_on() -> None:
    with Admission(2).admit(soon(-0.1)) as effort:
        assert effort is Effort.NONE


def test_one_that_may_take_its_time_is_answered_in_full() -> None:
    with Admission(1).admit(None) as effort:
        assert effort is Effort.FULL


def test_no_more_than_the_places_are_worked_on_at_once() -> None:
    admission, at_work, most = Admission(2), [0], [0]
    lock = threading.Lock()

    def one(_: int) -> None:
        with admission.admit(None):
            with lock:
                at_work[0] += 1
                most[0] = max(most[0], at_work[0])
            time.sleep(0.002)
            with lock:
                at_work[0] -= 1

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(one, range(30)))
    assert most[0] == 2


@pytest.mark.hurried
def test_when_more_wait_than_can_be_answered_in_full_each_is_answered_in_a_hurry() -> None:
    admission = Admission(1)
    efforts: list[Effort] = []

    def one() -> None:
        with admission.admit(soon(5)) as effort:
            efforts.append(effort)

    admission._full_seconds = 1.0
    with ThreadPoolExecutor(10) as pool:
        with admission.admit(None):
            done = [pool.submit(one) for _ in range(10)]
            until(lambda: waiting(admission) == 10)
        for each in done:
            each.result(30)
    assert efforts[0] is Effort.REDUCED
    assert efforts[-1] is Effort.FULL, "at the end nobody else waits any more"


def test_who_has_least_time_left_is_next() -> None:
    admission, order = Admission(1), list[str]()

    def one(name: str, deadline: float | None) -> None:
        with admission.admit(deadline):
            order.append(name)

    with ThreadPoolExecutor(3) as pool, admission.admit(None):
        waiters = [("no hurry", None), ("later", soon(20)), ("soon", soon(10))]
        for number, each in enumerate(waiters, 1):
            pool.submit(one, *each)
            until(lambda: waiting(admission) == number)  # noqa: B023  waited for within the turn
    assert order == ["soon", "later", "no hurry"]


@pytest.mark.hurried
def test_who_waited_in_vain_is_told_in_time_and_keeps_no_place() -> None:
    admission = Admission(1)
    with admission.admit(None):
        deadline = soon(0.05)
        with admission.admit(deadline) as effort:
            assert effort is Effort.NONE
            assert time.monotonic() < deadline + 1 * patience()
    assert waiting(admission) == 0
    with admission.admit(soon(1)) as effort:
        assert effort is Effort.FULL


def test_a_recall_that_fails_gives_its_place_back() -> None:
    admission = Admission(1)
    with pytest.raises(RuntimeError), admission.admit(None):
        raise RuntimeError
    with admission.admit(soon(1)) as effort:
        assert effort is Effort.FULL


def test_a_deadline_without_measure_is_waited_for_like_any_other() -> None:
    admission = Admission(1)
    efforts: list[Effort] = []

    def one() -> None:
        with admission.admit(1e300) as effort:
            efforts.append(effort)

    with ThreadPoolExecutor(1) as pool:
        with admission.admit(None):
            done = pool.submit(one)
            until(lambda: waiting(admission) == 1 or done.done())
        done.result(30)
    assert efforts == [Effort.FULL]


def test_who_fails_while_it_waits_is_given_no_place() -> None:
    clock_stops = False

    def clock() -> float:
        if clock_stops:
            raise RuntimeError
        return time.monotonic()

    admission = Admission(1, clock=clock)
    with admission.admit(None):
        clock_stops = True
        with pytest.raises(RuntimeError), admission.admit(soon(5)):
            pass
        clock_stops = False
    assert waiting(admission) == 0
    with admission.admit(soon(1)) as effort:
        assert effort is Effort.FULL


def test_who_may_take_its_time_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_module, "MAX_WAIT_SECONDS", 0.05, raising=False)
    admission, efforts = Admission(1), list[Effort]()

    def one() -> None:
        with admission.admit(None) as effort:
            efforts.append(effort)

    with admission.admit(None):
        waiter = threading.Thread(target=one)
        waiter.start()
        waiter.join(30)
        came = list(efforts)
    waiter.join()
    assert came == [Effort.NONE]
