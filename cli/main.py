"""The `memory` command: parsing, the one place where errors become a line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from .. import __version__
from ..vault.errors import MemoryVaultError
from .arguments import CommandParser, ProgramParser
from .context import Context
from .pages import HOW_TO
from .plain import OutputRefused, disarm_streams
from .reference import ReferenceAction
from .standard_streams import discard_outputs, open_closed_streams
from .terminal import Interrupted

# Command name -> module that has `configure(parser)` and `run(args, context) -> int`, and the help line.
# Modules are imported only when their command is asked for: `memory jobs` must not wait for apsw.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "choose the vault, wire the hooks into your agent, start the worker"),
    "demo": ("demo", "see the whole loop work in a temporary folder, nothing of yours touched"),
    "uninstall": ("uninstall", "take the hooks out again; the vault stays"),
    "save": ("save", "write an entry"),
    "evolve": ("evolve", "put a new text in the place of an entry, which is archived"),
    "undo": ("undo", "take back what MemoryVault wrote by itself"),
    "recall": ("recall", "ask the vault"),
    "search": ("recall", "the same as recall"),
    "list": ("list_entries", "list entries"),
    "show": ("show", "show one entry"),
    "dismiss": ("dismiss", "take a wrong entry out of use; it is not recalled, and not proposed again"),
    "inspect": ("inspect", "show what was recalled into prompts, and why"),
    "reflect": ("reflect", "mine a session transcript, or all old ones"),
    "console": ("console", "look and decide in the browser: review, inbox, ideas, search, receipts, jobs, health"),
    "review": ("review", "decide on what waits: approve, edit, reject, skip, supersede"),
    "inbox": ("inbox", "list what was inferred once, or put it in order"),
    "idea": ("idea", "write an idea down; list, show, archive, delete, restore ideas"),
    "promote": ("promote", "make a project of an idea"),
    "discover-skills": ("discover_skills", "look for new skills in the sources that you have confirmed"),
    "adapt-skills": ("adapt_skills", "judge what was found; put what is worth adopting on the watchlist"),
    "watchlist": ("watchlist", "decide on patterns to adopt: promote, dismiss, defer"),
    "scrub": ("scrub", "look for secrets and personal data on disk, and replace them"),
    "index-skills": ("index_skills", "one entry for each skill on this machine"),
    "seed": ("seed", "propose entries from CLAUDE.md, AGENTS.md, decision records and the agent's own notes"),
    "migrate": ("migrate", "move the notes of an older system into the vault"),
    "topics": ("topics", "the agent's own notes about a project: list, read, write, rm, lint"),
    "incident": ("incident", "note a failure and what helped; find it again"),
    "reindex": ("reindex", "bring the index in step with the files"),
    "model": ("model", "which embedding model answers; change to another"),
    "jobs": ("jobs", "look into the job ledger; retry, cancel, pause one kind"),
    "queue": ("queue", "the queue that several machines share: look at it, set it up"),
    "schedule": ("schedule", "what runs when; run it now, pause one schedule"),
    "worker": ("worker", "run the worker"),
    "serve": ("serve", "run the recall service"),
    "up": ("up", "run worker and recall service together"),
    "service": ("service", "run the worker from login on; look at that, or end it"),
    "pause": ("pause", "record nothing and start no job until `memory resume`"),
    "resume": ("resume", "end what `memory pause` began"),
    "health": ("health", "entries, queue, index, hook times, memory; what needs you"),
    "doctor": ("doctor", "test every assumption live"),
    "logs": ("logs", "what hooks, worker and recall service wrote down"),
    "config": ("config", "show the settings in force, and what each means"),
    "mcp": ("mcp", "serve the vault as tools of an agent (Model Context Protocol, stdio)"),
    "eval": ("evaluate", "rank documents for queries with the recall engine"),
    "hook-command": ("hook_command", "print the exact command that an agent host runs for an event"),
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
    parser.add_argument(
        "--reference", action=ReferenceAction, commands=COMMANDS, help="print what every command takes, as markdown"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    asked = next((word for word in argv if not word.startswith("-")), None)
    for name, (module_name, line) in COMMANDS.items():
        sub = commands.add_parser(name, help=line, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == asked:
            module = importlib.import_module(f".{module_name}", __package__)
            sub.description = line[0].upper() + line[1:] + "."
            module.configure(sub)
            sub.set_defaults(run=module.run)
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
        return int(args.run(args, Context(os.environ)))
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


def _tell(line: str) -> None:
    print(f"memory: {line}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
