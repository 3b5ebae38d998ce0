"""The section of a mined note that quotes its evidence, which readers see and recall does not. Light module."""

from __future__ import annotations

EVIDENCE_HEADING = "Evidence"
RECEIPT_HEADING = "Research receipt"
"""Heading of the section on how an idea was researched and at what cost; recall does not see it either."""
NOT_CONFIRMED_TAG = "not-confirmed"
"""Tag of a note that waits in words of which no record of the host says that the user typed them. It is never saved in
these words unless the user types or approves them."""
LOOKED_UP = "Research about this idea is listed below, in a receipt. Without a receipt, nothing has been looked up yet."
"""A line in the note of every idea: Ideas.md leads there from the start, as to deep research."""
NOT_TYPED = "Not typed by the user:"
"""The line above a quoted passage of an agent or a tool, or one that was pasted."""
SAID = "Said "
"""Begins the line of the evidence that tells what the user answered: context for who decides, in the agent's words."""
_LINES = ("\n## " + EVIDENCE_HEADING + "\n", "\n## " + RECEIPT_HEADING + "\n")


def strip_evidence(body: str) -> str:
    """The text of a note up to its evidence or receipt, and without the line that announces a receipt.

    The evidence repeats the statement with its context in the session: injected it would only be longer, and indexed it
    would make all mined notes alike.
    """
    text = "\n" + body + "\n"
    places = [at for at in map(text.find, _LINES) if at >= 0]
    text = body[: max(0, min(places) - 1)].rstrip() if places else body
    return text.replace(f"\n\n{LOOKED_UP}", "") if LOOKED_UP in text else text
