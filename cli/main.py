"""The `memory` command: parsing, the one place where errors become a line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .. import __version__
from ..runtime.errors import MemoryVaultError, UsageError
from .agent_rights import Command, Does, require_allowed
from .arguments import CommandParser, ProgramParser
from .context import Context
from .pages import HOW_TO
from .plain import OutputRefused, disarm_streams
from .standard_streams import discard_outputs, open_closed_streams
from .terminal import Interrupted

READS, PROPOSES, CHANGES = Does

# By its name, of one word or of a group and a word; what it does decides what an agent may do with it in its shell
# (agent_rights.py). A module is imported only when its command is asked for: `memory jobs list` must not wait for apsw.
COMMANDS: dict[str, Command] = {
    "init": Command("init", "choose the vault, wire the hooks into your agent, start the worker", CHANGES),
    "save": Command("save", "write an entry", PROPOSES),
    "recall": Command("recall", "ask the vault", READS),
    "list": Command("list_entries", "list entries", READS),
    "show": Command("show", "show one entry", READS),
    "review": Command(
        "review",
        "decide on what waits: approve, edit, reject, skip, supersede",
        {"--decide": CHANGES, "--undo": CHANGES, "--list": READS, "--json": READS},
    ),
    "console": Command(
        "console", "look and decide in the browser: review, inbox, ideas, search, receipts, jobs, health", CHANGES
    ),
    "evolve": Command("evolve", "put a new text in the place of an entry, which is archived", PROPOSES),
    "dismiss": Command("dismiss", "take a wrong entry out of use; it is not recalled, and not proposed again", CHANGES),
    "undo": Command(
        "undo",
        "take back what MemoryVault wrote by itself",
        {"--dry-run": READS, "--of agent": PROPOSES},
    ),
    "always": Command("always", "give an entry to every session at its start, or no more", CHANGES),
    "guard": Command("guard", "have a rule stop the agent when it acts, or only tell it", CHANGES),
    "idea": Command(
        "idea",
        "write an idea down; list, show, archive, delete, restore ideas; make a project of one",
        {
            "list": READS,
            "show": READS,
            "gc": CHANGES,
            "surface": CHANGES,
            "research": CHANGES,
            "keep": CHANGES,
            "archive": CHANGES,
            "delete": CHANGES,
            "restore": CHANGES,
            "promote": CHANGES,
            "": PROPOSES,
        },
    ),
    "reflect": Command(
        "reflect",
        "mine a session transcript, or all old ones",
        {"--miner": CHANGES, "--execute": CHANGES, "--dry-run": READS, "corpus": READS},
    ),
    "health": Command("health", "entries, queue, index, hook times, memory; what needs you", READS),
    "doctor": Command("doctor", "test every assumption live", READS),
    "pause": Command("pause", "record nothing and start no job until `memory resume`", CHANGES),
    "resume": Command("resume", "end what `memory pause` began", CHANGES),
    "uninstall": Command("uninstall", "take the hooks out again; the vault stays", CHANGES),
    "import seed": Command(
        "seed",
        "propose entries from CLAUDE.md, AGENTS.md, decision records and the agent's own notes",
        {"--dry-run": READS},
    ),
    "import migrate": Command("migrate", "move the notes of an older system into the vault", {"--dry-run": READS}),
    "skills index": Command("index_skills", "one entry for each skill on this machine", {"--dry-run": READS}),
    "skills discover": Command(
        "discover_skills", "look for new skills in the sources that you have confirmed", {"--dry-run": READS}
    ),
    "skills adapt": Command(
        "adapt_skills", "judge what was found; put what is worth adopting on the watchlist", {"--dry-run": READS}
    ),
    "skills watchlist": Command("watchlist", "decide on patterns to adopt: promote, dismiss, defer", {"list": READS}),
    "vault inbox": Command(
        "inbox", "list what was inferred once, or put it in order", {"list": READS, "--dry-run": READS}
    ),
    "vault inspect": Command(
        "inspect",
        "show what was recalled into prompts, and why",
        {"--useful": CHANGES, "--useless": CHANGES, "": READS},
    ),
    "vault topics": Command(
        "topics",
        "the agent's own notes about a project: list, read, write, rm, lint",
        {
            "list": READS,
            "read": READS,
            "lint": READS,
            "--dry-run": READS,
            "--project": CHANGES,
            "write": PROPOSES,
            "rebuild-index": PROPOSES,
        },
    ),
    "vault incident": Command(
        "incident", "note a failure and what helped; find it again", {"find": READS, "add": PROPOSES}
    ),
    "vault scrub": Command(
        "scrub", "look for secrets and personal data on disk, and replace them", {"--apply": CHANGES, "": READS}
    ),
    "vault reindex": Command("reindex", "bring the index in step with the files", {"--rebuild": CHANGES, "": READS}),
    "vault demo": Command("demo", "see the whole loop work in a temporary vault, nothing of yours touched", READS),
    "jobs list": Command("jobs", "the newest jobs, or a live table of them", READS, "list"),
    "jobs show": Command("jobs", "one job with its history", READS, "show"),
    "jobs retry": Command("jobs", "run a dead job again, or all of them", CHANGES, "retry"),
    "jobs cancel": Command("jobs", "take a job back; a running child is stopped", CHANGES, "cancel"),
    "jobs kinds": Command("jobs", "the limits of each kind", READS, "kinds"),
    "jobs pause": Command("jobs", "start no job of one kind; everything: `memory pause`", CHANGES, "pause"),
    "jobs resume": Command("jobs", "end what `memory jobs pause` began", CHANGES, "resume"),
    "jobs schedule": Command("schedule", "what runs when; run it now, pause one schedule", {"list": READS}),
    "service up": Command("up", "run worker and recall service together", CHANGES),
    "service worker": Command("worker", "run the worker", CHANGES),
    "service serve": Command("serve", "run the recall service", READS),
    "service mcp": Command("mcp", "serve the vault as tools of an agent (Model Context Protocol, stdio)", PROPOSES),
    "service install": Command("service", "run the worker from login on", CHANGES, "install"),
    "service status": Command("service", "whether the worker runs from login on", READS, "status"),
    "service remove": Command("service", "have sessions start the worker on demand again", CHANGES, "remove"),
    "service logs": Command("logs", "what hooks, worker and recall service wrote down", READS),
    "config show": Command("config", "show the settings in force, and what each means", READS),
    "config model": Command("model", "which embedding model answers; change to another", {"list": READS}),
    "config eval": Command("evaluate", "rank documents for queries with the recall engine", READS),
    "config hook-command": Command(
        "hook_command", "print the exact command that an agent host runs for an event", READS
    ),
}

GROUPS: dict[str, str] = {
    "import": "bring in what you have written elsewhere",
    "skills": "the skills of your agents, and new ones",
    "vault": "what else is in the vault, and the care of it",
    "jobs": "what the worker does",
    "service": "run what works in the background",
    "config": "settings and models",
}
"""First word of the names of two words, and what the group is about."""

OLD_NAMES: dict[str, str] = {
    "demo": "vault demo",
    "search": "recall",
    "inspect": "vault inspect",
    "inbox": "vault inbox",
    "promote idea": "idea promote",
    "discover-skills": "skills discover",
    "adapt-skills": "skills adapt",
    "watchlist": "skills watchlist",
    "scrub": "vault scrub",
    "index-skills": "skills index",
    "seed": "import seed",
    "migrate": "import migrate",
    "topics": "vault topics",
    "incident": "vault incident",
    "reindex": "vault reindex",
    "model": "config model",
    "jobs": "jobs list",
    "schedule": "jobs schedule",
    "worker": "service worker",
    "serve": "service serve",
    "up": "service up",
    "logs": "service logs",
    "config": "config show",
    "mcp": "service mcp",
    "eval": "config eval",
    "hook-command": "config hook-command",
}
"""Name of a command before there were groups -> its name now. They go with the next version."""

RUN_BY_PROGRAMS = ("worker", "serve", "mcp", "hook-command")
"""Old names that agents and units of the system run, which keep what a command says on stderr: to them the new one is
not told."""

EPILOG = """examples:
  memory init                          once: choose the vault, wire the hooks in
  memory doctor                        does everything work?
  memory recall 'how do we release?'   ask the vault
  memory COMMAND --help                each command, with an example; memory GROUP --help, what is in a group

Pages that are called docs/how-to/… lie in {pages}
"""


def subcommands(group: str) -> list[str]:
    """The second words of the commands of a group."""
    return [name.split()[1] for name in COMMANDS if name.startswith(f"{group} ")]


def todays_words(words: Sequence[str]) -> tuple[list[str], str]:
    """The command line with the command's name as it is today, and its old name where it had one, else ''.

    Options between a group and its word are put behind the word. A group alone asks for its help; with options alone it
    means the command that had its name, if one did.
    """
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    before, rest = [*words[:at]], [*words[at:]]
    if rest and rest[0] in GROUPS:
        group, behind = rest[0], rest[1:]
        if not behind:
            return [*words, "--help"], ""
        if behind and (not behind[0].startswith("-") or behind[0] in ("-h", "--help")):
            return [*words], ""
        if word := next((word for word in behind if word in subcommands(group)), ""):
            behind.remove(word)
            return [*before, group, word, *behind], ""
    old = next((old for old in OLD_NAMES if rest[: old.count(" ") + 1] == old.split()), "")
    return ([*before, *OLD_NAMES[old].split(), *rest[old.count(" ") + 1 :]], old) if old else ([*words], "")


def build_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; only the asked command's arguments are defined, the others by name and help line. It knows the names
    of today alone (`todays_words`)."""
    parser = ProgramParser(
        prog="memory",
        description="MemoryVault: permanent, local memory for coding agents.",
        epilog=EPILOG.format(pages=HOW_TO),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"memory {__version__}")
    parser.add_argument("--force", action="store_true", help="write to the vault although memory.enabled is false")
    parser.elsewhere = {**{name.split()[1]: name for name in COMMANDS if " " in name}, **OLD_NAMES}
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    asked = [word for word in argv if not word.startswith("-")]
    for name, command in COMMANDS.items():
        if " " not in name:
            _add(commands, name, command, asked)
    for group, about in GROUPS.items():
        line = f"{about}: {', '.join(subcommands(group))}"
        its_own = commands.add_parser(group, help=line, description=f"{about[0].upper()}{about[1:]}.")
        if asked[:1] == [group]:
            words = its_own.add_subparsers(metavar="COMMAND", required=True)
            for word in subcommands(group):
                _add(words, f"{group} {word}", COMMANDS[f"{group} {word}"], asked)
    return parser


def _add(commands: Any, name: str, command: Command, asked: Sequence[str]) -> None:
    sub = commands.add_parser(name.split()[-1], help=command.line, formatter_class=argparse.RawDescriptionHelpFormatter)
    if [*asked[: name.count(" ") + 1]] == name.split():
        sub.description = command.line[0].upper() + command.line[1:] + "."
        module = command.configure(sub)
        first = next((each.dest for each in sub._actions if not each.option_strings), "")
        sub.set_defaults(command=name, run=module.run, first=first)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done; 1 not done, with one line on stderr (it failed, or the user
    answered no to the question whether to do it); 2 bad usage."""
    open_closed_streams()
    disarm_streams()
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()  # The interpreter does so at its end, where nobody can say what went wrong.
    except OutputRefused as error:
        with suppress(OutputRefused, BrokenPipeError):
            _tell(str(error))
        discard_outputs()
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) went away: that is its right, not our failure.
        discard_outputs()
        return 0


def _run(arguments: Sequence[str]) -> int:
    words, old = todays_words(arguments)
    if not words:
        build_parser([]).print_help(sys.stderr)
        return 2
    try:
        if old and old not in RUN_BY_PROGRAMS:
            _tell(f"`memory {old}` is called `memory {OLD_NAMES[old]}` now")
        args = build_parser(words).parse_args(words, argparse.Namespace(old_name=old))
        context = _forced() if args.force else Context(os.environ)
        require_allowed(args.command, COMMANDS[args.command], args, context)
        _end_interrupted_change(context)
        return int(args.run(args, context))
    except OutputRefused:
        raise
    except MemoryVaultError as error:
        _tell(str(error))
        return error.exit_code
    except Interrupted:
        _tell("nothing was changed")
        return 1
    except KeyboardInterrupt:
        _tell("interrupted; nothing that was already done is lost")
        return 1


def _end_interrupted_change(context: Context) -> None:
    """End what a killed command or worker left half done, so that also a command that reads sees all of it."""
    with suppress(MemoryVaultError):  # A command that needs settings or vault says what is wrong with them.
        if os.path.exists(context.settings.state.pending_change):
            from ..services.journal import Journal
            from ..tasks.queue.enqueue import request_indexing

            Journal(context.state, context.store).recover()
            request_indexing(context.settings)


def _forced() -> Context:
    """As if memory.enabled were true, for a user who means it. Raises UsageError in an agent's shell."""
    if agent := Context(os.environ).agent:
        raise UsageError(f"--force is for the user's own shell, and this is {agent}'s")
    return Context({**os.environ, "MEMORY_ENABLED": "true"})


def _tell(line: str) -> None:
    print(f"memory: {line}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
