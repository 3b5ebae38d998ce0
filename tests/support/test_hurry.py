"""Which tests get a second try, when, and that they are named: this decides whether a run is red."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
from memoryvault.tests.support import hurry

hurry.Busyness.is_busy = lambda self: {busy}

def pytest_runtest_protocol(item, nextitem):
    if hurry.may_be_hurried(item):
        hurry.run_hurried(item, nextitem)
        return True

def pytest_terminal_summary(terminalreporter):
    for test in hurry.second_tries(r for rs in terminalreporter.stats.values() for r in rs):
        terminalreporter.write_line("again: " + test)
"""
TEST = """
import pathlib, pytest
{marks}
def test_it():
    tried = pathlib.Path("tried")
    first = not tried.exists()
    tried.touch()
    assert not {fails}, "too late"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marks", "busy", "fails", "passes"),
    [
        ("slow", True, "first", True),
        ("hurried", True, "first", True),
        ("slow", True, "True", False),
        ("slow", False, "first", False),
        ("slow alone", True, "first", False),
        ("slow once", True, "first", False),
        ("", True, "first", False),
    ],
)
def test_only_what_a_busy_machine_may_have_failed_is_tried_again_and_named(
    tmp_path: Path, marks: str, busy: bool, fails: str, passes: bool
) -> None:
    decorators = "\n".join(f"@pytest.mark.{mark}" for mark in marks.split())
    (tmp_path / "conftest.py").write_text(CONFTEST.format(busy=busy))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n alone\n once\n hurried\n")
    (tmp_path / "test_it.py").write_text(TEST.format(marks=decorators, fails=fails))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if passes else 1), done.stdout
    again = [line for line in done.stdout.splitlines() if line.startswith("again: ")]
    assert [line.endswith("AssertionError: too late") for line in again] == [True] * (passes or fails == "True")
