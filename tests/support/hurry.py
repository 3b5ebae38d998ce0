"""Tests of programs that give themselves a fraction of a second, on a machine that may have something else to do.

A hook ends at 300 or 500 ms whatever it has found by then. A test marked `hurried` is run as it is; only when it fails
while the machine had more work than cores, it is run once more with hooks that are given `MORE` times the time. What a
hook answers is then judged as ever. A hook that is too slow by itself fails at once where nothing else runs, and a hook
that answers wrongly fails both times.

So are the slow tests, those marked `alone` left out: several share two cores with servers, browsers and workers,
all real, and one of nine hundred found its page, its job or its connection a moment too late in most runs. A second
try hides what goes wrong rarely, so the summary names the test with what the first one said: to be read. What asks
after a kill whether anything was lost or doubled has one try (`once`): no machine is too busy for that.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

MARKER = "hurried"
CROWDED, APART, ONCE = "slow", "alone", "once"
"""Tests that run beside others, those among them that do not, and those whose failure is nobody else's fault."""
PATIENT_STUB = Path(__file__).with_name("patient_stub.py")
MORE = 8.0
SECOND_TRY = "second try on a busy machine"
"""User property of the reports of a test that was run again; its value is the test and what the first try said."""
BUSY_SHARE = 0.2
"""A test during which something waited for a core for more than this share of the time says little about speed."""

_PRESSURE = Path("/proc/pressure/cpu")
_patience = 1.0


def patience() -> float:
    """By how much every wait and limit of a hook is longer than it is for users: 1, or `MORE`."""
    return _patience


def patient(script: list[str]) -> list[str]:
    """A hook's script and what follows it, as hosts run it; in the second try the one that has more time."""
    return script if patience() == 1 else [str(PATIENT_STUB), str(patience()), *script]


@contextmanager
def _more_patience() -> Iterator[None]:
    global _patience
    _patience = MORE
    try:
        yield
    finally:
        _patience = 1.0


def _waited_seconds() -> float | None:
    """Seconds so far during which some process waited for a core (Linux's pressure stall information)."""
    try:
        return int(_PRESSURE.read_text("ascii").split("total=")[1].split()[0]) / 1e6
    except (OSError, IndexError, ValueError):
        return None


class Busyness:
    """Whether the machine had more work than cores since this was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._waited = _waited_seconds()

    def is_busy(self) -> bool:
        """By the pressure since then; by the average load where the system does not tell."""
        waited = _waited_seconds()
        if waited is None or self._waited is None:
            return os.getloadavg()[0] > (os.cpu_count() or 1)
        return waited - self._waited > BUSY_SHARE * (time.monotonic() - self._began)


def may_be_hurried(item: pytest.Item) -> bool:
    """Whether a failure of this test may be the machine's."""
    marks = {mark.name for mark in item.iter_markers()}
    return MARKER in marks or (CROWDED in marks and not marks & {APART, ONCE})


def run_hurried(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run the test, and once more with patience where it failed on a busy machine."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    machine = Busyness()
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    failures = [report for report in reports if report.failed]
    if failures and machine.is_busy():
        told = f"{item.nodeid}: {_last_line(failures[0])}"
        item._initrequest()  # type: ignore[attr-defined]  # as pytest-rerunfailures does: fixtures are made anew
        with _more_patience():
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
        for report in reports:
            report.user_properties.append((SECOND_TRY, told))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _last_line(report: pytest.TestReport) -> str:
    """What went wrong and where: the line under the traceback's last frame."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = f"{crash.path}:{crash.lineno}: {crash.message}" if crash else report.longreprtext.strip()
    return text.partition("\n")[0][:300]


def second_tries(reports: Iterable[object]) -> list[str]:
    """The tests among these reports (others than of tests are passed over) that were run again, and why."""
    found = {
        str(value)
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, value in report.user_properties
        if name == SECOND_TRY
    }
    return sorted(found)
