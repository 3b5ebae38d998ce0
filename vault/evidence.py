"""The section of a mined note that says where it is from: for the reader, not for recall. Light module."""

from __future__ import annotations

EVIDENCE_HEADING = "Evidence"
RECEIPT_HEADING = "Research receipt"
"""What was looked up about an idea, and what it cost: no part of what the note says either."""
NOT_TYPED = "Not typed by the user:"
"""The line above a passage that an agent or a tool said, or that was pasted."""
_LINES = ("\n## " + EVIDENCE_HEADING + "\n", "\n## " + RECEIPT_HEADING + "\n")


def without_evidence(body: str) -> str:
    """The note's text up to its evidence, or its receipt.

    The evidence repeats the statement with what surrounded it in the session: injected, it would only be longer,
    and searched, it would make every mined note resemble every other.
    """
    text = "\n" + body + "\n"
    places = [at for at in map(text.find, _LINES) if at >= 0]
    return body[: max(0, min(places) - 1)].rstrip() if places else body
