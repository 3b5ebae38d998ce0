"""Questions at a terminal: web research needs consent, which is asked for once; no answer is no."""

import signal
import time
import tomllib

import pytest

from memoryvault.tests.review.test_commands import propose
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal, answered

pytestmark = pytest.mark.slow


def init_at_a_terminal(sandbox: Sandbox, typed: str) -> str:
    status, told = answered(sandbox, ("init", "--vault", str(sandbox.vault)), typed)
    assert status == 0, told
    return told


def consent(sandbox: Sandbox) -> object:
    settings = tomllib.loads((sandbox.root / "config.toml").read_text("utf-8"))
    return settings.get("research", {}).get("network")


@pytest.mark.parametrize(("typed", "answer"), [("y\ny\n\n", True), ("y\n\n\n", False), ("y\nno\n\n", False)])
def test_init_asks_once_and_takes_nothing_as_no(sandbox: ForkedSandbox, typed: str, answer: bool) -> None:
    assert "look up your ideas on Wikipedia" in init_at_a_terminal(sandbox, typed)
    assert consent(sandbox) is answer
    assert "look up your ideas on Wikipedia" not in init_at_a_terminal(sandbox, "y\n")
    assert consent(sandbox) is answer


@pytest.mark.parametrize(("typed", "answer"), [("y\n\ny\n", True), ("y\n\n\n", False)])
def test_sources_of_discovery_are_confirmed_by_a_plain_yes(sandbox: ForkedSandbox, typed: str, answer: bool) -> None:
    assert "public lists" in init_at_a_terminal(sandbox, typed)
    assert sandbox.json("skills", "discover", "--dry-run")["confirmed"] is answer
    assert "public lists" not in init_at_a_terminal(sandbox, "y\n"), "the note is the answer"
    assert sandbox.json("skills", "discover", "--dry-run")["confirmed"] is answer


def test_without_a_question_there_is_no_consent(sandbox: ForkedSandbox) -> None:
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
    assert consent(sandbox) is None
    assert not (sandbox.vault / "_meta").exists()
    assert sandbox.json("config", "show", "--json")  # It can be read.


def test_review_says_that_research_stays_here_until_the_user_has_decided(sandbox: ForkedSandbox) -> None:
    assert "research.network" not in sandbox.run("review", "--list").stderr
    sandbox.memory("idea", "Greenhouse robot", "A robot could water the greenhouse.")
    assert "research.network" in sandbox.run("review", "--list").stderr
    (sandbox.root / "config.toml").write_text("[research]\nnetwork = false\n", "utf-8")
    assert "research.network" not in sandbox.run("review", "--list").stderr


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("\n", False)])
def test_the_first_review_at_a_terminal_asks_once(sandbox: ForkedSandbox, typed: str, answer: bool) -> None:
    sandbox.memory("idea", "Greenhouse robot", "A robot could water the greenhouse.")
    for asked in (True, False):
        terminal = Terminal(sandbox, ["review"])
        if asked:
            terminal.expect("[y/N]")
            terminal.write(typed)
        terminal.expect("nothing waits for your decision")
        assert terminal.close() == 0
        assert "y/N" not in terminal.shown
        assert consent(sandbox) is answer


# Ctrl-C at a question counts as no: one line, nothing changed, exit code 1


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
