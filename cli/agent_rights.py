"""What an agent may do by a command in its shell. The registry in main.py says what each command does.

An agent is recognised by an environment variable that it sets. This is a convention, not a barrier: a command without
the variable counts as the user's (docs/threat-model.md).
"""

from __future__ import annotations

import argparse
import importlib
import os
import pwd
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from ..runtime.errors import UsageError
from .output import add_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .context import Context

VARIABLES: Mapping[str, str] = {
    "CLAUDECODE": "Claude Code",
    "CODEX_THREAD_ID": "Codex",
    "CODEX_CI": "Codex",
    "CODEX_SANDBOX": "Codex",
    "COPILOT_CLI": "Copilot CLI",
    "ANTIGRAVITY_AGENT": "Antigravity",
    "GEMINI_CLI": "Gemini CLI",
    "CURSOR_AGENT": "Cursor",
    "OPENCODE": "OpenCode",
    "AI_AGENT": "an agent",
}
"""Variable -> name of the agent that sets it for its commands; several agents share the last one."""
TRUST = "trust"
NO_NAME = "no NAME"
"""The use of a command without its first word."""


class Does(Enum):
    """What a command does to memories, settings and running processes."""

    READS = "reads"
    """Nothing, except to what can be rebuilt from the files (the index, logs)."""
    PROPOSES = "proposes"
    """In an agent's shell it writes a proposal for the user's review, or the agent's own note about the project."""
    CHANGES = "changes"
    """It creates, approves, switches or deletes something: only the user may run it."""


class Command(NamedTuple):
    """A command of `memory`."""

    module: str
    """In this package, with `EPILOG`, `run(args, context) -> int` and, unless it takes `--json` alone,
    `configure(parser)`."""
    line: str
    """The line in the help."""
    does: Does | Mapping[str, Does]
    """The same for every use, or by use: an option (`--apply`) or the first word (`list`; '' for any, NO_NAME for
    none). The first use that fits the arguments counts; without one the command CHANGES."""
    word: str = ""
    """Which of the module's commands, if it has several: `args.action`. It then has `configure(parser, word)` and
    `EPILOGS`."""

    def configure(self, parser: argparse.ArgumentParser) -> Any:
        """Define the arguments and the epilog of `parser`. Return the command's module."""
        module = importlib.import_module(f".{self.module}", __package__)
        parser.epilog = module.EPILOGS[self.word] if self.word else module.EPILOG
        if self.word:
            parser.set_defaults(action=self.word)
        if hasattr(module, "configure"):
            module.configure(parser, *([self.word] if self.word else []))
        else:
            add_json(parser)
        return module


LOOSENING = frozenset({"MEMORY_REVIEW_MODE", "MEMORY_REFLECTION_EAGERNESS", "MEMORY_RECALL_EAGERNESS"})
"""Variables that make more be saved unasked or recalled. In an agent's shell the agent may have set them."""


def without_loosening(env: Mapping[str, str]) -> Mapping[str, str]:
    """Return `env`, in an agent's shell without the variables of LOOSENING."""
    return {name: value for name, value in env.items() if name not in LOOSENING} if agent_in(env) else env


def persons_home() -> str:
    """Return the user's home folder from the password database, because an agent may have set HOME."""
    return pwd.getpwuid(os.getuid()).pw_dir


def agent_in(env: Mapping[str, str]) -> str:
    """Return the name of the agent in whose shell a command with these variables runs; '' in the user's own shell."""
    found = (agent for name, agent in VARIABLES.items() if env.get(name, "").lower() not in ("", "0", "false"))
    return next(found, "")


def what_it_does(command: Command, args: argparse.Namespace) -> Does:
    """Return what the command does with these arguments; `args.first` names its first positional argument."""
    if isinstance(command.does, Does):
        return command.does
    return next((does for use, does in command.does.items() if _fits(use, args)), Does.CHANGES)


def _fits(use: str, args: argparse.Namespace) -> bool:
    if not use.startswith("--"):
        word = getattr(args, args.first) if args.first else None
        if use == NO_NAME:
            return word in (None, [])
        return use in ("", word[0] if isinstance(word, list) and word else word)
    return getattr(args, use.removeprefix("--").replace("-", "_")) not in (None, False, [])


def require_allowed(name: str, command: Command, args: argparse.Namespace, context: Context) -> None:
    """Raise UsageError when an agent runs what only the user may."""
    if what_it_does(command, args) is not Does.CHANGES or not (agent := context.agent):
        return
    uses = {} if isinstance(command.does, Does) else command.does
    allowed = [use for use, does in uses.items() if use and does is not Does.CHANGES]
    hint = f" (an agent may run it with {' or '.join(allowed)})" if allowed else ""
    raise UsageError(
        f"only the user may run this, in a terminal of their own, and {agent} runs it: memory {name}; "
        f"nothing was changed{hint}"
    )
