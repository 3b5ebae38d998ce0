"""The `memory` command: parsing, the one place where errors become a line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from .. import __version__
from ..runtime.errors import MemoryVaultError, UsageError
from .agent_rights import Command, Does, require_allowed
from .arguments import CommandParser, ProgramParser
from .context import Context
from .pages import HOW_TO
from .plain import OutputRefused, disarm_streams
from .reference import ReferenceAction
from .standard_streams import discard_outputs, open_closed_streams
from .terminal import Interrupted

READS, PROPOSES, CHANGES = Does

# By its name; what it does decides what an agent may do with it in its shell (agent_rights.py).
# Modules are imported only when their command is asked for: `memory jobs` must not wait for apsw.
COMMANDS: dict[str, Command] = {
    "demo": Command("demo", "see the whole loop work in a temporary folder, nothing of yours touched", READS),
    "init": Command("init", "choose the vault, wire the hooks into your agent, start the worker", CHANGES),
    "uninstall": Command("uninstall", "take the hooks out again; the vault stays", CHANGES),
    "save": Command("save", "write an entry", PROPOSES),
    "evolve": Command("evolve", "put a new text in the place of an entry, which is archived", PROPOSES),
    "undo": Command(
        "undo",
        "take back what MemoryVault wrote by itself",
        {"--dry-run": READS, "--include-edited": CHANGES, "--of agent": PROPOSES},
    ),
    "recall": Command("recall", "ask the vault", READS),
    "search": Command("recall", "the same as recall", READS),
    "list": Command("list_entries", "list entries", READS),
    "show": Command("show", "show one entry", READS),
    "always": Command("always", "give an entry to every session at its start, or no more", CHANGES),
    "guard": Command("guard", "have a rule stop the agent when it acts; tell it of rules as it acts, or not", CHANGES),
    "dismiss": Command("dismiss", "take a wrong entry out of use; it is not recalled, and not proposed again", CHANGES),
    "inspect": Command(
        "inspect",
        "show what was recalled into prompts, and why",
        {"--useful": CHANGES, "--useless": CHANGES, "": READS},
    ),
    "reflect": Command(
        "reflect",
        "mine a session transcript, or all old ones",
        {"--miner": CHANGES, "--execute": CHANGES, "--more": CHANGES, "--dry-run": READS, "corpus": READS},
    ),
    "console": Command(
        "console", "look and decide in the browser: review, inbox, ideas, search, receipts, jobs, health", CHANGES
    ),
    "review": Command(
        "review",
        "decide on what waits: approve, edit, reject, skip, supersede",
        {"--decide": CHANGES, "--undo": CHANGES, "--list": READS, "--json": READS},
    ),
    "inbox": Command("inbox", "list what was inferred once, or put it in order", {"list": READS, "--dry-run": READS}),
    "idea": Command(
        "idea",
        "write an idea down; list, show, archive, delete, restore ideas",
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
            "": PROPOSES,
        },
    ),
    "promote": Command("promote", "make a project of an idea", CHANGES),
    "discover-skills": Command(
        "discover_skills", "look for new skills in the sources that you have confirmed", {"--dry-run": READS}
    ),
    "adapt-skills": Command(
        "adapt_skills", "judge what was found; put what is worth adopting on the watchlist", {"--dry-run": READS}
    ),
    "watchlist": Command("watchlist", "decide on patterns to adopt: promote, dismiss, defer", {"list": READS}),
    "scrub": Command(
        "scrub", "look for secrets and personal data on disk, and replace them", {"--apply": CHANGES, "": READS}
    ),
    "index-skills": Command("index_skills", "one entry for each skill on this machine", {"--dry-run": READS}),
    "seed": Command(
        "seed",
        "propose entries from CLAUDE.md, AGENTS.md, decision records and the agent's own notes",
        {"--dry-run": READS},
    ),
    "migrate": Command("migrate", "move the notes of an older system into the vault", {"--dry-run": READS}),
    "topics": Command(
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
    "incident": Command("incident", "note a failure and what helped; find it again", {"find": READS, "add": PROPOSES}),
    "reindex": Command("reindex", "bring the index in step with the files", {"--rebuild": CHANGES, "": READS}),
    "model": Command("model", "which embedding model answers; change to another", {"list": READS}),
    "jobs": Command(
        "jobs",
        "look into the job ledger; retry, cancel, pause one kind",
        {"list": READS, "show": READS, "kinds": READS},
    ),
    "schedule": Command("schedule", "what runs when; run it now, pause one schedule", {"list": READS}),
    "worker": Command("worker", "run the worker", READS),
    "serve": Command("serve", "run the recall service", READS),
    "up": Command("up", "run worker and recall service together", READS),
    "service": Command("service", "run the worker from login on; look at that, or end it", {"status": READS}),
    "pause": Command("pause", "record nothing and start no job until `memory resume`", CHANGES),
    "resume": Command("resume", "end what `memory pause` began", CHANGES),
    "health": Command("health", "entries, queue, index, hook times, memory; what needs you", READS),
    "doctor": Command("doctor", "test every assumption live", READS),
    "logs": Command("logs", "what hooks, worker and recall service wrote down", READS),
    "config": Command("config", "show the settings in force, and what each means", READS),
    "mcp": Command("mcp", "serve the vault as tools of an agent (Model Context Protocol, stdio)", PROPOSES),
    "eval": Command("evaluate", "rank documents for queries with the recall engine", READS),
    "hook-command": Command("hook_command", "print the exact command that an agent host runs for an event", READS),
}

EPILOG = """examples:
  memory init                          once: choose the vault, wire the hooks in
  memory doctor                        does everything work?
  memory recall 'how do we release?'   ask the vault
  memory COMMAND --help                each command, with an example

Pages that are called docs/how-to/… lie in {pages}
"""


def build_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; only the asked command's arguments are defined, the others by name and help line."""
    parser = ProgramParser(
        prog="memory",
        description="MemoryVault: permanent, local memory for coding agents.",
        epilog=EPILOG.format(pages=HOW_TO),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"memory {__version__}")
    parser.add_argument("--force", action="store_true", help="write to the vault although memory.enabled is false")
    parser.add_argument(
        "--reference", action=ReferenceAction, commands=COMMANDS, help="print what every command takes, as markdown"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    asked = next((word for word in argv if not word.startswith("-")), None)
    for name, (module_name, line, _) in COMMANDS.items():
        sub = commands.add_parser(name, help=line, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == asked:
            module = importlib.import_module(f".{module_name}", __package__)
            sub.description = line[0].upper() + line[1:] + "."
            module.configure(sub)
            first = next((each.dest for each in sub._actions if not each.option_strings), "")
            sub.set_defaults(run=module.run, first=first)
    return parser


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
    if not arguments:
        build_parser([]).print_help(sys.stderr)
        return 2
    try:
        args = build_parser(arguments).parse_args(arguments)
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
