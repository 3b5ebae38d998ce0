"""For every test: it says itself in whose shell it runs, whoever started the tests."""

from __future__ import annotations

import os

import pytest

from memoryvault.cli.agent_shell import VARIABLES
from memoryvault.tests.support.hurry import MARKER, run_hurried, second_tries

for _name in VARIABLES:
    os.environ.pop(_name, None)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Tests marked `hurried` get a second try where the machine was busy (support/hurry.py)."""
    if item.get_closest_marker(MARKER) is None:
        return None
    run_hurried(item, nextitem)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what passed or failed only at the second try: a pass like that says nothing about speed."""
    again = second_tries(report for reports in terminalreporter.stats.values() for report in reports)
    if again:
        terminalreporter.write_sep("=", f"{len(again)} run again: the machine was busy")
        for test in again:
            terminalreporter.write_line(test)
