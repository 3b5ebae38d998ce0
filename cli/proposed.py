"""Report the outcome of an agent's proposal."""

from __future__ import annotations

from ..runtime.errors import EntryInvalid
from ..services.agent_proposals import ProposalOutcome
from ..tasks.queue.enqueue import request_indexing
from .context import Context
from .output import note, print_json, result_path


def report_proposed(
    proposed: ProposalOutcome, context: Context, *, as_json: bool, known: str = "nothing was written"
) -> int:
    """Print the outcome and why it is only a proposal; return the exit code. Raises EntryInvalid if it was rejected."""
    if proposed.verdict == "rejected before":
        raise EntryInvalid(f"the user has turned that down before: {proposed.path}")
    where = str(context.vault / proposed.path)
    if proposed.verdict == "waits for review":
        request_indexing(context.settings)
    if as_json:
        print_json({"verdict": proposed.verdict, "path": where})
    else:
        print(result_path(where))
    if proposed.verdict == "waits for review":
        note(f"memory: run by {context.agent}, so it is a proposal: it waits for the user (`memory review`)")
    else:
        note(f"memory: that is known already; {known}")
    return 0
