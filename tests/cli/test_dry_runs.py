"""A dry run shows what would be done and changes no file."""

import argparse
import hashlib
from pathlib import Path

import pytest

from memoryvault.cli.main import COMMANDS
from memoryvault.tests.corpus.sessions import RULE, old_session
from memoryvault.tests.support.files import put, put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox

LINES = {
    "reflect": (
        "reflect --session {session} --dry-run",
        "reflect corpus --dry-run",
        "reflect corpus --reset --dry-run",
    ),
    "undo": ("undo --last --dry-run", "undo --of seed --dry-run"),
    "vault inbox": ("vault inbox triage --dry-run",),
    "skills index": ("skills index --dry-run", "skills index --path {skills} --dry-run"),
    "import seed": ("import seed {repository} --dry-run",),
    "skills discover": ("skills discover --dry-run",),
    "import migrate": ("import migrate contextvault {old} --dry-run",),
}
"""Of every command that has the option; each of them would write something without it, or may."""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A vault that is in use, and outside it something for each command to find."""
    sandbox = ForkedSandbox(tmp_path)
    sandbox.memory("save", "preferences", "tabs", "--body", "Indent with tabs.")
    sandbox.memory("reflect", "--session", str(old_session(tmp_path / "first", 1, "Never push without asking.")))
    for number in range(2):
        guess = {"kind": "preferences", "status": "inbox", "created": "2020-01-01"}
        put_note(sandbox.vault, f"personal-private/_inbox/guess-{number}.md", "Prefer small commits.", **guess)
    for path, text in {
        "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: How we deploy a service.\n---\n\nTag, then push.\n",
        "repository/CLAUDE.md": "# Rules\n\n- Always run the tests before you push.\n",
        "old/domains/office/notes.md": "# Notes\n\nWe deploy on Tuesdays.\n",
        "home/.claude/projects/-home-dev-shop/memory/deploy.md": (
            "---\nname: deploy\ndescription: How to deploy.\ntype: project\n---\n\nTag it.\n"
        ),
        "home/.claude/skills/review/SKILL.md": "---\nname: review\ndescription: Review a change.\n---\n\nRead it.\n",
    }.items():
        put(tmp_path / path, text)
    old_session(sandbox.projects / "-home-dev-shop", 2, RULE)
    return sandbox


def everything(sandbox: Sandbox) -> dict[str, str]:
    """Each file and folder below the sandbox, by path, with the hash of what it holds."""
    return {
        str(path.relative_to(sandbox.root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(sandbox.root.rglob("*"))
        if not path.is_socket()
    }


def test_every_command_that_has_dry_runs_is_tried_here() -> None:
    knowing = set()
    for name, command in COMMANDS.items():
        parser = argparse.ArgumentParser()
        command.configure(parser)
        knowing |= {name} if "--dry-run" in parser._option_string_actions else set()
    assert knowing == LINES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for lines in LINES.values() for line in lines])
def test_a_dry_run_writes_nothing_at_all(sandbox: Sandbox, line: str) -> None:
    before = everything(sandbox)
    session = next((sandbox.projects / "-home-dev-shop").glob("*.jsonl"))
    places = {name: sandbox.root / name for name in ("skills", "repository", "old")}
    done = sandbox.run(*line.format(session=session, **places).split())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert everything(sandbox) == before


def test_unconfirmed_sources_are_shown_as_proposed(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path)
    shown = sandbox.json("skills", "discover", "--dry-run")
    assert (shown["confirmed"], shown["whitelist_seeded"], shown["total_sources"]) == (False, False, 4)
    first, *_ = shown["sources"]
    only = sandbox.run("skills", "discover", "--dry-run", "--source", first["name"])
    assert (first["target"] in only.stdout, "1 source, not confirmed" in only.stdout) == (True, True)
    assert "without --dry-run they are written to _meta/" in only.stderr
    for options in ([], ["--dry-run"]):
        assert first["name"] in sandbox.refused("skills", "discover", "--source", "foo", *options, code=2)
    assert list(sandbox.vault.iterdir()) == []
    assert sandbox.json("skills", "discover")["whitelist_seeded"] is True
    assert sandbox.json("skills", "discover", "--dry-run")["sources"] == shown["sources"]
