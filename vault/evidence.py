"""The section of a mined note that quotes its evidence: shown to readers, not used by recall."""

from __future__ import annotations

EVIDENCE_HEADING = "Evidence"
RECEIPT_HEADING = "Research receipt"
"""Heading of the section on how an idea was researched and at what cost; not used by recall either."""
NOT_CONFIRMED_TAG = "not-confirmed"
"""Tag of a pending note whose words are not surely the user's. It is never saved in these words unless the user types
or approves them."""
LOOKED_UP = "What is looked up about this idea is listed below."
"""A line in the note of every idea, to which Ideas.md links from the start, as to deep research."""
NOT_TYPED = "Perhaps not typed by the user:"
"""The line above a quoted passage of an agent or a tool, or one that was pasted."""
SAID = "Said "
"""Begins the line of the evidence with the agent's question that the user answered: context for the decision."""
_LINES = ("\n## " + EVIDENCE_HEADING + "\n", "\n## " + RECEIPT_HEADING + "\n")


def strip_evidence(body: str) -> str:
    """Return the text of a note up to its evidence or receipt, and without the line that announces a receipt.

    The evidence repeats the statement with its context in the session: injected it would only be longer, and indexed it
    would make all mined notes alike.
    """
    text = "\n" + body + "\n"
    places = [at for at in map(text.find, _LINES) if at >= 0]
    text = body[: max(0, min(places) - 1)].rstrip() if places else body
    return text.replace(f"\n\n{LOOKED_UP}", "")
