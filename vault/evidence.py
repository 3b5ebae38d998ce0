"""The section of a mined note that says where it is from: for the reader, not for recall. Light module."""

from __future__ import annotations

EVIDENCE_HEADING = "Evidence"
_LINE = "\n## " + EVIDENCE_HEADING + "\n"


def without_evidence(body: str) -> str:
    """The note's text up to its evidence.

    The evidence repeats the statement with what surrounded it in the session: injected, it would only be longer,
    and searched, it would make every mined note resemble every other.
    """
    at = ("\n" + body + "\n").find(_LINE)
    return body if at < 0 else body[: max(0, at - 1)].rstrip()
