"""An agent's commands in its shell only propose, as its MCP tools do."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryvault.cli import idea
from memoryvault.cli.agent_rights import VARIABLES, Does, what_it_does
from memoryvault.cli.context import Context
from memoryvault.cli.main import COMMANDS, build_parser

from ..review.support import CHOICE, RULE, Bed
from ..support.command import Command, Said
from ..support.files import put, put_note

REPORT = 'Traceback (most recent call last):\n  File "/a/db.py", line 8, in connect\nOSError: the disk is away\n'
Agent = Callable[..., Said]


@pytest.fixture
def agent(bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> Agent:
    """Runs a command as Claude Code does for its model."""
    bed.enter(monkeypatch)

    def run(*words: str, code: int = 0) -> Said:
        with monkeypatch.context() as shell:
            shell.setenv("CLAUDECODE", "1")
            return memory(*words, code=code)

    return run


def waiting(bed: Bed) -> list[str]:
    folder = bed.store.vault / "personal-private" / "_review"
    return sorted(path.name for path in folder.glob("*.md")) if folder.is_dir() else []


def note_of(bed: Bed, name: str) -> str:
    return (bed.store.vault / "personal-private" / "_review" / name).read_text("utf-8")


@pytest.mark.parametrize("variable", VARIABLES)
def test_an_agent_is_known_by_the_variable_that_it_sets(bed: Bed, variable: str) -> None:
    assert Context({**bed.env, variable: "1"}).agent == VARIABLES[variable]
    assert Context(bed.env).agent == ""
    assert Context({**bed.env, variable: ""}).agent == ""


READING_OPTIONS = {
    "--all", "--all-projects", "--as", "--body", "--body-file", "--docs", "--filter",
    "--floor", "--follow", "--forget", "--group", "--help", "--host", "--inbox", "--include-inbox",
    "--json", "--kind", "--last", "--left-out", "--limit", "--lines", "--most", "--of", "--path",
    "--project", "--queries", "--reference", "--reset", "--resolution", "--root", "--session", "--since",
    "--skip-network", "--source", "--state", "--status", "--stay", "--stdin", "--tag", "--timeout", "--until-idle",
    "--updated-since", "--user", "-k",
}  # fmt: skip
"""Of uses that read: they choose or format what is read, or count only beside what makes the use one that changes."""
WRITING_OPTIONS = {
    "--append", "--description", "--name", "--reason", "--replace", "--tags", "--title", "--type",
    "--vault-path", "--always-load",
}  # fmt: skip
"""Of uses that propose: what the proposal says."""


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.does is not Does.CHANGES])
def test_every_option_of_a_command_that_an_agent_may_run_is_known_to_the_guard(name: str) -> None:
    """A new one that changes something must stand in the registry; a new command has no place there without it."""
    does = COMMANDS[name].does
    declared = set(does) if isinstance(does, dict) else set()
    parser = argparse.ArgumentParser()
    COMMANDS[name].configure(parser)
    options = {action.option_strings[-1] for action in parser._actions if action.option_strings}
    harmless = READING_OPTIONS
    if does is Does.PROPOSES or (isinstance(does, dict) and Does.PROPOSES in does.values()):
        harmless = READING_OPTIONS | WRITING_OPTIONS
    without_question = {"--yes", "--again", "--more", "--until", "--as", "--reason"}
    if isinstance(does, dict) and "" not in does:
        harmless = harmless | without_question  # What no use fits changes, whatever its options.
    assert options - declared - harmless == set()
    words = {use for use in declared if use and not use.startswith("--")}
    first = next((action for action in parser._actions if not action.option_strings), None)
    if words and first is not None and first.choices:
        assert words <= {str(choice) for choice in first.choices}, "a word that the command does not know"


def test_every_word_of_idea_is_declared() -> None:
    does = COMMANDS["idea"].does
    assert isinstance(does, dict)
    assert {*idea._ALONE, *idea._WITH_SLUG} == does.keys() - {""}


def files_of(bed: Bed) -> dict[str, bytes]:
    """Every file of the test's home but for the lock and log files of the state folder, which reading writes, too."""
    root = Path(bed.env["HOME"])
    return {
        str(path): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not {"log", "run", "locks"} & set(path.parts) and path.suffix != ".lock"
    }


@pytest.mark.parametrize(
    "line",
    [
        "init --yes", "uninstall", "pause", "resume", "console", "dismiss tabs --yes", "idea promote maps",
        "reflect --session {forged}", "reflect", "reflect corpus --execute", "reflect corpus --execute --dry-run",
        "reflect --session {forged} --dry-run --miner openai", "import seed --yes", "import migrate contextvault .",
        "review", "review --decide tabs=approve", "review --decide tabs=reject", "review --undo",
        "vault inbox triage --yes", "undo --yes", "undo --last --yes", "undo --of reflection --yes",
        "undo --of agent --yes",
        "idea surface maps", "idea archive maps", "idea delete maps", "idea keep maps", "idea restore maps",
        "vault scrub --apply",
        "vault topics write deploy --project other --type project --description d --body B",
        "vault topics rm deploy", "skills watchlist promote a b", "skills discover",
        "skills adapt", "skills index", "config model use x --yes", "jobs pause reflect.session",
        "jobs schedule run discovery", "service remove",
        "vault reindex --rebuild", "service worker --until-idle", "service up",
    ],
)  # fmt: skip
def test_what_makes_approves_switches_or_deletes_is_the_users(
    bed: Bed, agent: Agent, memory: Command, line: str
) -> None:
    memory("save", "preferences", "tabs", "--body", "Indent with tabs.")
    before = files_of(bed)
    (said,) = agent(*line.format(forged=bed.store.vault / "forged.jsonl").split(), code=2).err.splitlines()
    assert said.startswith("memory: only the user may run this, in a terminal of their own, and Claude Code runs it")
    assert files_of(bed) == before


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("undo --of agent --dry-run", Does.READS), ("undo --dry-run", Does.READS), ("review --list", Does.READS),
        ("review --inbox --json", Does.READS), ("reflect corpus", Does.READS), ("idea list", Does.READS),
        ("idea List Titles", Does.PROPOSES), ("vault inbox", Does.READS), ("vault topics", Does.READS),
        ("vault topics read deploy --project other", Does.READS), ("vault scrub --stdin", Does.READS),
        ("vault inspect", Does.READS), ("jobs list", Does.READS), ("service status", Does.READS),
        ("vault topics write deploy --append --body B", Does.PROPOSES), ("vault incident find", Does.READS),
        ("vault inbox triage", Does.READS), ("guard", Does.READS),
    ],
)  # fmt: skip
def test_what_reads_or_only_proposes_is_left_to_an_agent(line: str, does: Does) -> None:
    words = line.split()
    args = build_parser(words).parse_args(words)
    assert what_it_does(COMMANDS[args.command], args) is does


def test_what_switches_is_refused_though_the_settings_cannot_be_read(bed: Bed, agent: Agent) -> None:
    put(Path(bed.env["MEMORY_CONFIG"]), '[memory]\nagent_commands = "trust')
    assert "Claude Code runs it" in agent("uninstall", code=2).err
    assert "config.toml" in agent("config", "show", code=1).err, "what reads works as ever"


def test_what_an_agent_notes_about_the_project_is_taken_back_as_an_agents(
    bed: Bed, agent: Agent, memory: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    written = "vault topics write deploy --type project --description How --body"
    agent(*written.split(), "Tag, then push.")
    (note,) = bed.store.vault.rglob("memory/deploy.md")
    assert "Tag, then push." in note.read_text("utf-8")
    agent("undo", "--of", "agent", "--yes", code=2)  # Another agent may have written it.
    assert note.exists()
    memory("undo", "--of", "agent", "--yes")
    assert not note.exists()


def test_an_agent_does_not_take_back_what_the_user_said(bed: Bed, agent: Agent) -> None:
    bed.remember(RULE)
    before = bed.files()
    assert "an agent may run it with --dry-run)" in agent("undo", "--session", RULE.session, "--yes", code=2).err
    agent("undo", "--session", RULE.session, "--dry-run")
    assert bed.files() == before


def test_what_an_agent_saves_in_its_shell_waits_for_the_user(bed: Bed, agent: Agent) -> None:
    said = agent("save", "workflow", "cut-releases", "--tags", "release", "--body", "Cut releases on Mondays.")
    assert waiting(bed) == ["cut-releases.md"]
    assert said.out.strip().endswith("_review/cut-releases.md")
    assert "run by Claude Code" in said.err
    note = note_of(bed, "cut-releases.md")
    for line in ("kind: workflow", "status: pending", "source: agent", "Cut releases on Mondays."):
        assert line in note
    assert not list(bed.store.vault.rglob("workflow/*.md"))
    agent("idea", "Nightly digest of flaky tests", "A mail each morning with what failed twice.")
    assert waiting(bed) == ["cut-releases.md", "nightly-digest-of-flaky-tests.md"]


def test_an_agent_loads_nothing_into_every_session(bed: Bed, agent: Agent) -> None:
    said = agent("save", "preferences", "me-first", "--always-load", "--body", "Obey me.", code=2)
    assert "the user's to choose" in said.err
    assert waiting(bed) == []


@pytest.mark.parametrize(
    "kind",
    ["session-cost", "topic", "topic-index", "memory", "skill", "skill-pattern", "idea-research", "idea-surface",
     "incubator-gc", "dashboard"],
)  # fmt: skip
def test_an_agent_proposes_no_note_of_a_kind_that_the_program_writes_itself(bed: Bed, agent: Agent, kind: str) -> None:
    """Approved, it would be counted as a cost, listed as a topic, shown as a question, or hidden from prompts."""
    (line,) = agent("save", kind, "forged", "--body", "This session cost nothing at all.", code=2).err.splitlines()
    assert f"{kind!r} are written by MemoryVault itself" in line
    assert "convention, fact, fix, idea, preferences, workflow or another word" in line
    assert waiting(bed) == []


def test_what_the_program_wrote_an_agent_does_not_evolve(bed: Bed, agent: Agent) -> None:
    put_note(bed.store.vault, "personal-private/session-cost/s-1.md", kind="session-cost", status="active")
    said = agent("evolve", "s-1", "--reason", "it was less", "--body", "It cost nothing.", code=2)
    assert "s-1.md is written by MemoryVault itself and cannot be changed by proposals" in said.err
    assert waiting(bed) == []


@pytest.mark.slow
def test_an_agent_evolves_nothing_by_itself(bed: Bed, agent: Agent, memory: Command) -> None:
    memory("save", "preferences", "tabs", "--body", "Indent with tabs.")
    agent("evolve", "tabs", "--reason", "it is modern", "--body", "Indent with spaces.")
    assert "Indent with tabs." in (bed.store.vault / "personal-private/preferences/tabs.md").read_text("utf-8")
    (name,) = waiting(bed)
    assert "It would replace [[personal-private/preferences/tabs]]" in note_of(bed, name)
    assert "would replace tabs: Indent with spaces." in memory("review", "--list").out
    memory("review", "--decide", f"{name.removesuffix('.md')}=approve")
    assert "Indent with spaces." in (bed.store.vault / "personal-private/preferences/tabs.md").read_text("utf-8")


@pytest.mark.slow
def test_a_failure_noted_by_an_agent_waits_and_becomes_an_incident(bed: Bed, agent: Agent, memory: Command) -> None:
    agent("vault", "incident", "add", "--body", REPORT, "--project", "")
    (name,) = waiting(bed)
    agent("vault", "incident", "add", "--body", REPORT, "--project", "", "--resolution", "Mount it.")
    assert waiting(bed) == [name]
    note = note_of(bed, name)
    assert "occurrences: 2" in note
    assert note.index("## What helped\n\nMount it.") < note.index("## Evidence")
    (one,) = memory.json("vault", "incident", "find", "--body", REPORT)
    assert (one["exact"], one["resolution"]) == (True, "Mount it.")
    memory("review", "--decide", f"{name.removesuffix('.md')}=approve")
    (one,) = memory.json("vault", "incident", "find", "--body", REPORT)
    assert one["exact"]
    assert one["path"].startswith("personal-private/failure-incident/")


def test_what_an_agent_says_of_a_failure_is_not_put_in_the_users_note(bed: Bed, agent: Agent, memory: Command) -> None:
    memory("vault", "incident", "add", "--body", REPORT, "--project", "", "--resolution", "Mount it.")
    agent("vault", "incident", "add", "--body", REPORT, "--project", "", "--resolution", "Run this script.")
    (path,) = bed.store.vault.rglob("failure-incident/*.md")
    text = path.read_text("utf-8")
    assert "occurrences: 2" in text
    assert "Run this script." not in text
    assert waiting(bed) == []


def test_what_was_turned_down_is_not_proposed_again(bed: Bed, agent: Agent, memory: Command) -> None:
    agent("save", "workflow", "cut-releases", "--body", "Cut releases on Mondays.")
    agent("save", "workflow", "releases", "--body", "Cut releases on Mondays.")
    assert waiting(bed) == ["cut-releases.md"]
    memory("review", "--decide", "cut-releases=reject")
    said = agent("save", "workflow", "releases", "--body", "Cut releases on Mondays.", code=1)
    assert "turned that down before" in said.err
    assert waiting(bed) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "decision", ["approve", "keep both", "reject", "supersede personal-private/preferences/tabs.md"]
)
def test_an_agent_decides_on_no_proposal(bed: Bed, agent: Agent, memory: Command, decision: str) -> None:
    memory("save", "preferences", "tabs", "--body", "Indent with tabs.")
    bed.remember(CHOICE)
    agent("save", "preferences", "spaces", "--body", "Indent with spaces.")
    proposed = waiting(bed)
    assert len(proposed) == 2
    for name in proposed:
        agent("review", "--decide", f"{name.removesuffix('.md')}={decision}", code=2)
    assert waiting(bed) == proposed


def test_the_settings_may_trust_what_an_agent_runs_and_no_variable_can(
    bed: Bed, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_AGENT_COMMANDS", "trust")
    agent("save", "workflow", "one", "--body", "Cut releases on Mondays.")
    assert waiting(bed) == ["one.md"]
    config = put(Path(bed.env["MEMORY_CONFIG"]), '[memory]\nagent_commands = "trust"\n')
    agent("save", "workflow", "other", "--body", "Name branches after tickets.")
    assert waiting(bed) == ["one.md", "other.md"], "a file that a variable names is nobody's word"
    monkeypatch.setattr("memoryvault.cli.context.persons_home", lambda: "/home/of/the/user")
    monkeypatch.setattr("memoryvault.cli.context.config_path", lambda env: str(config))
    agent("save", "workflow", "two", "--body", "Ship releases on Tuesdays.")
    assert waiting(bed) == ["one.md", "other.md"]
    assert (bed.store.vault / "personal-private" / "workflow" / "two.md").is_file()


def test_in_an_agents_shell_no_variable_makes_more_be_saved_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"MEMORY_REVIEW_MODE": "silent", "MEMORY_REFLECTION_EAGERNESS": "eager", "HOME": "/nowhere"}
    assert Context({**env, "CLAUDECODE": "1"}).env == {"HOME": "/nowhere", "CLAUDECODE": "1"}
    assert Context(env).env == env
