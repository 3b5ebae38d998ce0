"""Whose shell a command runs in: agents give the commands that they run variables to be known by.

A convention, no wall: whoever takes the variable away passes for the user (docs/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..tasks.agent_proposals import ProposalOutcome
from ..tasks.queue.enqueue import request_indexing
from ..vault.errors import EntryInvalid
from .context import Context
from .output import note, print_json

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
"""What each sets for the commands that it runs; the last is what several have agreed on."""
TRUST = "trust"


def agent_of(context: Context) -> str:
    """Whose shell this is, '' when it is the user's own or one that the settings trust like it."""
    for name, agent in VARIABLES.items():
        if context.env.get(name, "").lower() not in ("", "0", "false"):
            return "" if context.settings.memory.agent_commands == TRUST else agent
    return ""


def tell_proposed(
    proposed: ProposalOutcome,
    agent: str,
    context: Context,
    *,
    as_json: bool,
    known: str = "nothing was written",
) -> int:
    """Print what became of a proposal, and say why it is only one; the exit code. Raises EntryInvalid."""
    if proposed.verdict == "rejected before":
        raise EntryInvalid(f"the user has turned that down before: {proposed.path}")
    where = str(context.vault / proposed.path)
    if proposed.verdict == "waits for review":
        request_indexing(context.settings)
    if as_json:
        print_json({"verdict": proposed.verdict, "path": where})
    else:
        print(where)
    if proposed.verdict == "waits for review":
        note(f"memory: run by {agent}, so it is a proposal: it waits for the user (`memory review`)")
    else:
        note(f"memory: that is known already; {known}")
    return 0
