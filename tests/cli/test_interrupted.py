"""Ctrl-C at a question counts as no: one line, nothing changed, exit code 1."""

import signal
import time

import pytest

from memoryvault.tests.review.test_commands import propose
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal

pytestmark = pytest.mark.slow


def ctrl_c(terminal: Terminal) -> None:
    """When it waits for the answer: a signal between the question and the read would be seen only with the answer."""
    time.sleep(0.3)
    terminal.process.send_signal(signal.SIGINT)


def interrupted(sandbox: Sandbox, arguments: list[str], *answers: str) -> list[str]:
    """The lines that are printed after Ctrl-C at the question that follows these answers. The command ends with 1."""
    terminal = Terminal(sandbox, arguments)
    for answer in answers:
        terminal.expect("[y/N] ")
        terminal.write(answer)
    terminal.expect("[y/N] ")
    ctrl_c(terminal)
    lines = terminal.rest().split()
    assert terminal.close() == 1
    return lines


def files(sandbox: Sandbox) -> dict[str, bytes]:
    """All that a command may change: vault, home, settings."""
    places = [sandbox.vault, sandbox.root / "home", sandbox.root / "config.toml"]
    found = [path for place in places for path in (place.rglob("*") if place.is_dir() else [place])]
    return {str(path): path.read_bytes() for path in found if path.is_file()}


NOTHING_CHANGED = ["memory:", "nothing", "was", "changed"]


@pytest.mark.parametrize("answers", [(), ("y\n",), ("y\n", "y\n")], ids=["go ahead", "research", "sources"])
def test_init_asks_everything_before_it_changes_anything(sandbox: Sandbox, answers: tuple[str, ...]) -> None:
    before = files(sandbox)
    lines = interrupted(sandbox, ["init", "--vault", str(sandbox.vault)], *answers)
    assert lines[-4:] == NOTHING_CHANGED
    assert "Traceback" not in lines
    assert files(sandbox) == before


def test_the_first_question_of_a_review_is_asked_again(sandbox: Sandbox) -> None:
    sandbox.memory("idea", "Greenhouse robot", "A robot could water the greenhouse.")
    assert interrupted(sandbox, ["review"]) == NOTHING_CHANGED
    assert not (sandbox.root / "config.toml").exists()
    assert interrupted(sandbox, ["review"]) == NOTHING_CHANGED


def test_the_question_what_a_proposal_replaces_leads_back_to_the_proposal(sandbox: Sandbox) -> None:
    path = propose(sandbox, "tabs", "Use tabs")
    terminal = Terminal(sandbox, ["review"])
    terminal.press("p", "empty: none) ")
    ctrl_c(terminal)
    terminal.press("q")
    terminal.rest()
    assert terminal.close() == 0
    assert path.is_file()
