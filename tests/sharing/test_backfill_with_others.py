"""A backfill that other machines help with comes to the vault that one alone comes to, whatever happens."""

from __future__ import annotations

import signal
import time

import pytest

from memoryvault.tests.sharing.machines import SESSIONS, Machine, Machines, Vault
from memoryvault.tests.tasks.support import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

KILLED = -signal.SIGKILL


def answered(machines: Machines) -> bool:
    """Is nothing left to be looked at?"""
    return machines.rows("SELECT count(*) FROM job WHERE kind = 'share.mine' AND state <> 'done'") == [(0,)]


def work_on(machines: Machines, *each: Machine) -> None:
    """Let all of them work until nothing is left of the backfill, and of the shared queue."""
    until = time.monotonic() + 60
    while True:
        for machine in each:
            machine.work()
        left = machines.rows("SELECT count(*) FROM job WHERE state IN ('queued', 'running')")[0][0]
        if not left and not any(machine.jobs("reflect.corpus") + machine.jobs("corpus.settle") for machine in each):
            return
        assert time.monotonic() < until
        machines.make_due()
        for machine in each:
            machine.make_due()


def test_what_others_look_at_comes_to_the_same_vault(machines: Machines, alone: Vault) -> None:
    home, other = machines.home(), machines.make("other")
    assert home.work() == 0
    assert home.jobs("reflect.corpus", "queued") == SESSIONS
    assert "_meta/corpus-digest.md" not in home.notes(), "nothing is settled while others look"
    assert other.work() == 0
    assert other.notes() == {}
    assert home.work() == 0
    assert home.jobs("reflect.corpus", "done") == SESSIONS
    assert home.notes() == alone
    assert machines.rows("SELECT count(*) FROM content") == [(0,)]
    assert machines.rows("SELECT kind, state, count(*) FROM job GROUP BY 1, 2 ORDER BY 1") == [
        ("share.mine", "done", 1),
        ("share.result", "done", 1),
    ]


@pytest.mark.once
@pytest.mark.parametrize(
    ("at_home", "elsewhere", "then"),
    [
        (("share-recorded",), (), ()),
        (("share-put",), ("share-mid-judging", "share-judged"), ("share-picked", "share-withdrawn")),
        ((), ("share-answered",), ("share-hastened", "corpus-mined@2", "corpus-kept@3")),
    ],
)
def test_killed_anywhere_on_either_machine_it_comes_to_the_same_vault(
    machines: Machines, alone: Vault, at_home: tuple[str, ...], elsewhere: tuple[str, ...], then: tuple[str, ...]
) -> None:
    home, other = machines.home(), machines.make("other")

    def killed(machine: Machine, point: str) -> bool:
        machine.make_due()
        machines.make_due()
        ended = machine.work(point)
        assert ended in (0, KILLED), point
        return "mid" in point or ended == KILLED

    for machine, points in ((home, at_home), (other, elsewhere), (home, then)):
        for point in points:
            wait_until(lambda: killed(machine, point), f"{point} is passed", 60.0)  # noqa: B023  called at once
        if machine is home and not points:
            home.work()
        if machine is other:
            wait_until(lambda: killed(other, "mid") and answered(machines), "the other machine has answered", 60.0)
    time.sleep(2.0)  # Leases of the killed run out.
    work_on(machines, home, other)
    assert home.json("jobs", "list", "--state", "dead") == []
    assert home.notes() == alone
    assert machines.rows("SELECT count(*) FROM content") == [(0,)]
    assert machines.rows("SELECT count(*) FROM job WHERE state = 'dead'") == [(0,)]
