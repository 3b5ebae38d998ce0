"""For every test: it says itself in whose shell it runs, whoever started the tests; what was left out is said."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from memoryvault.cli.agent_rights import VARIABLES
from memoryvault.tasks.queue import supervisor
from memoryvault.tests.review.support import Bed, make_bed
from memoryvault.tests.support import forked
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.hurry import may_be_hurried, run_hurried, second_tries

# A program that is started in the background of a shell ignores Ctrl-C, and so do its children: they shall not.
signal.signal(signal.SIGINT, signal.default_int_handler)

for _name in VARIABLES:
    os.environ.pop(_name, None)

# Several tests share the cores: a model's threads, one for each, would be busy waiting for one another.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    """An empty vault with its state, for services that are called in this process."""
    return make_bed(tmp_path)


@pytest.fixture
def ask(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> Bed:
    """The bed as the vault for commands in this process."""
    bed.enter(monkeypatch)
    return bed


@pytest.fixture
def sandbox(tmp_path: Path) -> ForkedSandbox:
    """A home, a vault and a state folder, for commands that run as processes."""
    return ForkedSandbox(tmp_path)


@pytest.fixture
def memory(capsys: pytest.CaptureFixture[str]) -> Command:
    """Commands in the process of the test, for which `vault`, or a bed that is entered, sets the environment."""
    return Command(capsys)


@pytest.fixture
def forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that run in the process of the test have their children forked."""
    monkeypatch.setattr(supervisor, "run_child", forked.run_child)


def say_left_out(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that were left out, by their reason: none of them has passed."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"left out: {count} test{'s' if count > 1 else ''}: {reason}")


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Tests that a busy machine may fail get a second try there (support/hurry.py)."""
    if not may_be_hurried(item):
        return None
    run_hurried(item, nextitem)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was left out, and what passed or failed only at the second try: that says nothing about speed."""
    say_left_out(terminalreporter)
    again = second_tries(report for reports in terminalreporter.stats.values() for report in reports)
    if again:
        terminalreporter.write_sep("=", f"{len(again)} run again: the machine was busy")
        for test in again:
            terminalreporter.write_line(test)
