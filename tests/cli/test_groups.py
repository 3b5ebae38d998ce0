"""Commands in groups: few names at the top, and the old names for one more version."""

import argparse
import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.cli.agent_rights import what_it_does
from memoryvault.cli.main import (
    COMMANDS,
    GROUPS,
    OLD_NAMES,
    RUN_BY_PROGRAMS,
    build_parser,
    main,
    subcommands,
    todays_words,
)

ROOT = Path(__file__).resolve().parents[2]
MOST_AT_THE_TOP = 25
USES = {
    "recall": ["how"],
    "idea promote": ["an-idea"],
    "skills watchlist": ["promote", "a", "b"],
    "import migrate": ["contextvault", "."],
    "vault topics": ["write", "deploy"],
    "vault incident": ["add", "--body", "x"],
    "vault scrub": ["--apply"],
    "vault reindex": ["--rebuild"],
    "vault inspect": ["last"],
    "vault inbox": ["triage", "--yes"],
    "config model": ["use", "a/model"],
    "config eval": ["rank", "--docs", "d", "--queries", "q"],
    "config hook-command": ["Stop"],
    "jobs schedule": ["run", "discovery"],
    "jobs list": ["--all"],
    "jobs show": ["4"],
    "jobs retry": ["4"],
    "jobs cancel": ["4"],
    "jobs pause": ["reflect.corpus"],
    "jobs resume": ["reflect.corpus"],
    "config show": ["--json"],
}
"""Words behind a command: those that it needs, or with which it does most; a group alone asks for its help."""


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_few_names_are_at_the_top() -> None:
    assert len({name.split()[0] for name in COMMANDS}) <= MOST_AT_THE_TOP
    assert {name.split()[0] for name in COMMANDS if " " in name} == GROUPS.keys()


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_shows_its_commands_with_a_line_each(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([group])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for word in subcommands(group):
        assert re.search(rf"^    {word}\s+{re.escape(COMMANDS[f'{group} {word}'].line.split()[0])}", said, re.MULTILINE)


SPELLINGS = [*OLD_NAMES.items(), *((name, name) for name in (*COMMANDS, "idea promote"))]


@pytest.mark.parametrize(("spelling", "name"), SPELLINGS)
def test_an_agent_may_run_a_command_under_every_name_or_under_none(
    spelling: str, name: str, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked of the whole program, with what the command does taken out."""
    command = COMMANDS[name if name in COMMANDS else name.split()[0]]
    own = {"show": ["x"], "save": ["x y z."], "evolve": ["a"], "idea": ["list"], "always": ["a"], "dismiss": ["a"]}
    words = USES.get(name, own.get(name, []))
    module = command.configure(argparse.ArgumentParser())
    ran: list[str] = []

    def run(args: argparse.Namespace, context: object) -> int:
        ran.append(args.command)
        return 0

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setenv("CLAUDECODE", "1")
    line = build_parser(name.split()).parse_args([*name.split(), *words])
    allowed = what_it_does(command, line).value != "changes"
    assert main([*spelling.split(), *words]) == (0 if allowed else 2)
    assert bool(ran) is allowed
    assert any("only the user may" in said for said in told(capsys)) is not allowed
    assert list(vault.rglob("*")) == []


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_tells_a_new(old: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """But to the agents and units that run it, which keep what it says."""
    new = OLD_NAMES[old]
    command = COMMANDS.get(new) or COMMANDS[new.split()[0]]
    module = command.configure(argparse.ArgumentParser())
    monkeypatch.setattr(module, "run", lambda args, context: 0)
    assert main([*old.split(), *USES.get(new, [])]) == 0
    line = f"memory: `memory {old}` is called `memory {new}` now"
    assert told(capsys) == ([] if old in RUN_BY_PROGRAMS else [line])


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("jobs --all --limit 2", "jobs list --all --limit 2"),
        ("jobs", "jobs --help"),
        ("config --json", "config show --json"),
        ("jobs --json show 4", "jobs show --json 4"),
        ("--force inbox triage", "--force vault inbox triage"),
        ("idea promote a", "idea promote a"),
        ("skills", "skills --help"),
        ("jobs lst", "jobs lst"),
        ("list --kind jobs", "list --kind jobs"),
    ],
)
def test_a_line_is_read_by_the_names_of_today(line: str, now: str) -> None:
    assert todays_words(line.split())[0] == now.split()


# ---- what we say ourselves

_ALL = sorted(OLD_NAMES, key=len, reverse=True)
OLD_SPELLING = re.compile(rf"(?<!^## )(?<![\w./-])memory[ \n]+({'|'.join(_ALL)})(?![\w.-]|/)([ \n]+\S+)?", re.MULTILINE)


def _is_todays(group: str, word: str) -> bool:
    return re.sub(r"[^a-z-]+$", "", word) in subcommands(group) or word.startswith(("{…}", "…"))


def old_spellings(text: str) -> list[str]:
    return [
        f"memory {found.group(1)}"
        for found in OLD_SPELLING.finditer(text)
        if not (found.group(1) in GROUPS and _is_todays(found.group(1), (found.group(2) or "").strip()))
    ]


def tracked(*patterns: str) -> list[Path]:
    done = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines()]


def strings(module: Path) -> Iterator[str]:
    """Every string of a module, what is put into one as `{…}`."""
    parts = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):  # What holds a part comes before it.
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
        elif id(node) in parts:
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_nothing_that_we_say_names_an_old_spelling() -> None:
    """No string of the product, no page and no part of the plugin."""
    modules = [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] not in ("tests", "training")]
    pages = tracked("*.md", "*.html", "plugin", "Procfile", "Makefile", ":!CHANGELOG.md", ":!tests")
    assert modules
    said = [(path, text) for path in modules for text in strings(path)]
    said += [(path, path.read_text("utf-8")) for path in pages]
    assert {str(path): old for path, text in said if (old := old_spellings(text))} == {}


def test_an_old_spelling_would_be_found() -> None:
    assert old_spellings("run `memory index-skills`, or memory jobs --all") == ["memory index-skills", "memory jobs"]
    assert old_spellings("`memory jobs list`, `memory skills index`, memory models, memory/jobs") == []


def test_the_plugin_runs_a_command_of_today() -> None:
    server = json.loads((ROOT / "plugin" / ".mcp.json").read_text("utf-8"))["mcpServers"]["memory"]["args"]
    assert " ".join(server[2:]) in COMMANDS
