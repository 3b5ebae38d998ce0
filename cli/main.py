"""The `memory` command: parse the line, run one command, turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .. import __version__
from ..runtime.errors import MemoryVaultError, UsageError
from .agent_rights import NO_NAME, Command, Does, require_allowed
from .arguments import CommandParser, OneLineParser
from .context import Context
from .output import HOW_TO, home_path
from .standard_streams import discard_outputs, open_closed_streams
from .terminal import Interrupted
from .terminal_safety import OutputRefused, disarm_streams

READS, PROPOSES, CHANGES = Does

# By name: one word, or a group and a word. The last field decides whether an agent may run the command in its shell
# (agent_rights.py). A module is imported only for its own command: `memory jobs list` must not wait for apsw.
COMMANDS: dict[str, Command] = {
    "init": Command("init", "choose the vault, wire the hooks into your agent, start the worker", CHANGES),
    "save": Command("save", "write an entry", PROPOSES),
    "recall": Command("recall", "ask the vault", READS),
    "list": Command("list_entries", "list entries, the newest first", READS),
    "show": Command("show", "show one entry", READS),
    "review": Command(
        "review",
        "decide on waiting proposals: approve, edit, reject, skip, supersede",
        {"--decide": CHANGES, "--undo": CHANGES, "--list": READS, "--json": READS},
    ),
    "console": Command(
        "console", "look and decide in the browser: review, inbox, ideas, search, receipts, jobs, health", CHANGES
    ),
    "evolve": Command("evolve", "replace an entry by a new text; the old one is archived", PROPOSES),
    "dismiss": Command("dismiss", "mark a wrong entry: it is neither recalled nor proposed again", CHANGES),
    "undo": Command(
        "undo",
        "take back what MemoryVault wrote by itself",
        {"--dry-run": READS},
    ),
    "always": Command(
        "always", "give an entry to every session at its start, or stop that", {NO_NAME: READS, "--off": CHANGES}
    ),
    "guard": Command(
        "guard",
        "have a rule stop the agent when it acts, or only remind it",
        {"--on": CHANGES, "--off": CHANGES, NO_NAME: READS},
    ),
    "idea": Command(
        "idea",
        "save an idea; list, show, archive, delete or restore ideas; make one a project",
        {
            "list": READS,
            "show": READS,
            "gc": CHANGES,
            "surface": CHANGES,
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
    "health": Command("health", "what needs you; figures of entries, queue, index, hooks and processes", READS),
    "doctor": Command("doctor", "test the installation, live", READS),
    "pause": Command("pause", "stop recording and start no job until `memory resume`", CHANGES, "pause"),
    "resume": Command("pause", "end a `memory pause`", CHANGES, "resume"),
    "uninstall": Command("uninstall", "remove the hooks; the vault stays", CHANGES),
    "import seed": Command(
        "seed",
        "propose entries from CLAUDE.md, AGENTS.md, decision records and the agent's own notes",
        {"--dry-run": READS},
    ),
    "import migrate": Command("migrate", "copy the notes of an older system into the vault", {"--dry-run": READS}),
    "skills index": Command("index_skills", "write one entry for each skill on this machine", {"--dry-run": READS}),
    "skills discover": Command(
        "discover_skills", "look for new skills in the sources that you confirmed", {"--dry-run": READS}
    ),
    "skills adapt": Command("adapt_skills", "judge found skills; put those worth adopting on the watchlist", CHANGES),
    "skills watchlist": Command("watchlist", "decide on patterns to adopt: promote, dismiss, defer", {"list": READS}),
    "vault inbox": Command(
        "inbox",
        "list what was inferred once, or triage it",
        {"list": READS, "--dry-run": READS, "--yes": CHANGES, "": READS},
    ),
    "vault inspect": Command(
        "inspect",
        "show what was recalled into prompts, and why",
        READS,
    ),
    "vault topics": Command(
        "topics",
        "the agent's own notes about a project: list, read, write, rm",
        {
            "list": READS,
            "read": READS,
            "--project": CHANGES,
            "write": PROPOSES,
            "rebuild-index": PROPOSES,
        },
    ),
    "vault incident": Command(
        "incident", "record a failure and what helped; find it again", {"find": READS, "add": PROPOSES}
    ),
    "vault scrub": Command(
        "scrub", "find secrets and personal data on disk, and replace them", {"--apply": CHANGES, "": READS}
    ),
    "vault reindex": Command(
        "reindex", "update the index from the files, or rebuild it", {"--rebuild": CHANGES, "": READS}
    ),
    "vault demo": Command("demo", "run the whole loop in a temporary vault", READS),
    "jobs list": Command("jobs", "list the jobs that wait, run or are dead", READS, "list"),
    "jobs show": Command("jobs", "show one job with its history", READS, "show"),
    "jobs retry": Command("jobs", "run a dead job again, or all of them", CHANGES, "retry"),
    "jobs cancel": Command("jobs", "cancel a job; a running child process is stopped", CHANGES, "cancel"),
    "jobs kinds": Command("jobs", "list the limits of each kind", READS, "kinds"),
    "jobs pause": Command("jobs", "pause one kind of job; for everything: `memory pause`", CHANGES, "pause"),
    "jobs resume": Command("jobs", "end a `memory jobs pause`", CHANGES, "resume"),
    "jobs schedule": Command("schedule", "list schedules; run one", {"list": READS}),
    "service up": Command("up", "run worker and recall service together", CHANGES),
    "service worker": Command("worker", "run the worker", CHANGES),
    "service serve": Command("serve", "run the recall service", READS),
    "service mcp": Command("mcp", "serve the vault as tools of an agent (Model Context Protocol, stdio)", PROPOSES),
    "service install": Command("service", "run the worker from login on", CHANGES, "install"),
    "service status": Command("service", "show whether the worker runs from login on", READS, "status"),
    "service remove": Command(
        "service", "remove the login service; sessions start the worker again", CHANGES, "remove"
    ),
    "service logs": Command("logs", "show the log of hooks, worker and recall service", READS),
    "config show": Command("config", "show the settings in force, and what each means", READS),
    "config model": Command("model", "show the embedding models; change to another", {"list": READS}),
    "config eval": Command("evaluate", "rank documents for queries with the recall engine", READS),
    "config hook-command": Command(
        "hook_command", "print the exact command that an agent host runs for an event", READS
    ),
}

GROUPS: dict[str, str] = {
    "import": "import what you wrote elsewhere",
    "skills": "the skills of your agents, and new ones",
    "vault": "inspect and maintain the vault",
    "jobs": "jobs of the worker",
    "service": "background processes",
    "config": "settings and models",
}
"""First word of the names of two words, with the line for the help."""

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
"""Name of a command before there were groups -> its name now. The next version drops the old names."""

RUN_BY_PROGRAMS = ("worker", "serve", "mcp", "hook-command")
"""Old names that agents and service units run. They log stderr, so the new name is not printed there."""

EPILOG = """examples:
  memory init                          once: choose the vault, wire the hooks in
  memory doctor                        does everything work?
  memory recall 'how do we release?'   ask the vault
  memory COMMAND --help                each command, with an example; memory GROUP --help, what is in a group

Pages that are called docs/how-to/… lie in {pages}
"""


def subcommands(group: str) -> list[str]:
    """The second words of the group's commands."""
    return [name.split()[1] for name in COMMANDS if name.startswith(f"{group} ")]


def todays_words(words: Sequence[str]) -> tuple[list[str], str]:
    """Replace an old name of a command in the command line. Return the new line, and the old name or ''.

    Options between a group and its command move behind the command. A group alone prints its help; a group with nothing
    but options stands for the command that had this name before.
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
    """The parser for a line with current names (`todays_words`).

    Only the requested command has its arguments; the others have their name and help line.
    """
    parser = OneLineParser(
        prog="memory",
        description="MemoryVault: permanent, local memory for coding agents.",
        epilog=EPILOG.format(pages=home_path(HOW_TO)),
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
    """Run one command and return its exit code.

    0: done; 1: not done, with one line on stderr (it failed, or the user answered no); 2: bad usage.
    """
    open_closed_streams()
    disarm_streams()
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()  # At the interpreter's end a failure could not be reported.
    except OutputRefused as error:
        with suppress(OutputRefused, BrokenPipeError):
            _print_error(str(error))
        discard_outputs()
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) went away: no failure.
        discard_outputs()
        return 0


def _run(arguments: Sequence[str]) -> int:
    words, old = todays_words(arguments)
    if not words:
        build_parser([]).print_help(sys.stderr)
        return 2
    try:
        if old and old not in RUN_BY_PROGRAMS:
            _print_error(f"`memory {old}` is called `memory {OLD_NAMES[old]}` now")
        args = build_parser(words).parse_args(words, argparse.Namespace(old_name=old))
        context = Context({**os.environ, "MEMORY_ENABLED": "true"} if args.force else os.environ)
        if args.force and context.agent:
            raise UsageError(f"--force is for the user's own shell, and this is {context.agent}'s")
        require_allowed(args.command, COMMANDS[args.command], args, context)
        _end_interrupted_change(context)
        try:
            return int(args.run(args, context))
        finally:  # Lists and searches go on without the notes that cannot be read.
            if "store" in vars(context):
                for problem in context.store.passed_over.values():
                    if problem != str(sys.exception()):
                        _print_error(problem)
    except OutputRefused:
        raise
    except MemoryVaultError as error:
        _print_error(str(error))
        return error.exit_code
    except Interrupted:
        _print_error("nothing was changed")
        return 1
    except KeyboardInterrupt:
        _print_error("interrupted; nothing that was already done is lost")
        return 1


def _end_interrupted_change(context: Context) -> None:
    """Complete a change that a killed command or worker left unfinished, so that the command sees all of it."""
    with suppress(MemoryVaultError):  # A command that needs settings or vault reports the error itself.
        if os.path.exists(context.settings.state.pending_change):
            from ..services.journal import Journal
            from ..tasks.queue.enqueue import request_indexing

            Journal(context.state, context.store).recover()
            request_indexing(context.settings)


def _print_error(line: str) -> None:
    from .output import note

    note(f"memory: {line}")


if __name__ == "__main__":
    raise SystemExit(main())
