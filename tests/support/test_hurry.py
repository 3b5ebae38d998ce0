"""Which tests get a second try, when, and that they are named."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import pytest
from memoryvault.tests.support import hurry

hurry.Busyness.is_busy = lambda self: {busy}

def pytest_runtest_protocol(item, nextitem):
    if not hurry.may_be_hurried(item):
        return None
    hurry.run_hurried(item, nextitem)
    return True

def pytest_terminal_summary(terminalreporter):
    for test in hurry.second_tries(r for rs in terminalreporter.stats.values() for r in rs):
        terminalreporter.write_line("again: " + test)
"""
SETTINGS = "[pytest]\nmarkers =\n    slow: s\n    alone: a\n    once: o\n    hurried: h\n"
FAILS_ONCE = """
import pathlib, pytest
@pytest.fixture(scope="module")
def folder():
    return pathlib.Path(__file__).parent
{marks}
def test_it(folder):
    tried = folder / "tried"
    first = not tried.exists()
    tried.touch()
    assert not first, "too late\\nby a second"
"""
FAILS_TWICE = "import pytest\n@pytest.mark.slow\ndef test_it():\n    assert False\n"


def run(folder: Path, test: str, *, busy: bool = True) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.format(busy=busy))
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_it.py").write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("marks", ["@pytest.mark.slow", "@pytest.mark.hurried"])
def test_a_test_that_fails_once_on_a_busy_machine_passes_and_is_named_with_its_reason(
    tmp_path: Path, marks: str
) -> None:
    done = run(tmp_path, FAILS_ONCE.format(marks=marks))
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("again: ")]
    assert "test_it.py::test_it: " in line
    assert line.endswith("AssertionError: too late")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "busy"),
    [
        (FAILS_TWICE, True),
        (FAILS_ONCE.format(marks="@pytest.mark.slow"), False),
        (FAILS_ONCE.format(marks="@pytest.mark.slow\n@pytest.mark.alone"), True),
        (FAILS_ONCE.format(marks="@pytest.mark.slow\n@pytest.mark.once"), True),
        (FAILS_ONCE.format(marks=""), True),
    ],
    ids=["twice", "on a machine at rest", "alone", "once", "quick"],
)
def test_all_others_fail(tmp_path: Path, test: str, busy: bool) -> None:
    assert run(tmp_path, test, busy=busy).returncode == 1
