"""Web research needs consent, which is asked for once at a terminal; no answer is no."""

import tomllib
from pathlib import Path

import pytest

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
def test_the_sources_of_discovery_are_confirmed_by_a_plain_yes_alone(
    sandbox: ForkedSandbox, typed: str, answer: bool
) -> None:
    assert "public lists" in init_at_a_terminal(sandbox, typed)
    assert sandbox.json("skills", "discover", "--dry-run")["confirmed"] is answer
    assert "public lists" not in init_at_a_terminal(sandbox, "y\n"), "the note is the answer"
    assert sandbox.json("skills", "discover", "--dry-run")["confirmed"] is answer


def test_without_a_question_there_is_no_consent(sandbox: ForkedSandbox) -> None:
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
    assert consent(sandbox) is None
    assert not (sandbox.vault / "_meta").exists()
    assert sandbox.json("config", "show", "--json")  # It can be read.


def test_review_says_that_research_stays_here_until_the_user_has_decided(
    tmp_path: Path, sandbox: ForkedSandbox
) -> None:
    assert "research.network" not in sandbox.run("review", "--list").stderr
    sandbox.memory("idea", "Greenhouse robot", "A robot could water the greenhouse.")
    assert "research.network" in sandbox.run("review", "--list").stderr
    (tmp_path / "config.toml").write_text("[research]\nnetwork = false\n", "utf-8")
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
