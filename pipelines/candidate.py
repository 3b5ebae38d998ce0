"""What mining proposes: a memory worth keeping, with the evidence for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ..vault.wording import cut

TITLE_CHARACTERS = 90
_LEAD_IN = re.compile(
    r"""(?:(?:(?:and|so|but|ok|okay|yes|yeah|yep|yup|hm+|uh+|also|please|pls)\b(?:\s*[,.:;!…–—]+|\s+-)?
          |(?:no|nope|nah|good|great|nice|cool|perfect|awesome|right|alright|sure|thanks|thank\ you
            |oh|ah|well|now|done|true
            )\b
           (?:\s*[,.:;!…–—]+|\s+-))
        (?:\s+|$))+""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words that only open what is said. Some do so only before a comma or the like: "no, never" but not "no emojis"."""

Category = Literal["preference", "correction", "fix", "workflow", "idea"]
"""What kind of memory it is. `correction` is a preference that was learned from a mistake of the agent."""

Scope = Literal["personal", "project"]
"""Does it hold wherever this user works, or only in the project it was said in?"""

Speaker = Literal["user", "assistant", "tool"]
"""Whose words the statement is made of."""

CATEGORIES: tuple[Category, ...] = ("preference", "correction", "fix", "workflow", "idea")


@dataclass(frozen=True)
class Candidate:
    """One proposed memory. `Turn -> Candidate -> RoutedCandidate -> Entry`.

    Nothing here is scrubbed yet: a candidate is held in memory only; `pipelines.scrub` comes before any write.
    """

    category: Category
    statement: str
    """One sentence that can be understood without the session. The user's own words for the local miner."""
    reason: str
    """Why it was proposed, for the user who reviews it: one line."""
    role: Speaker
    records: tuple[str, ...]
    """Ids of the transcript records that say it, oldest first; never empty."""
    excerpt: str
    """The passage of the session that shows it, as it was said."""
    session: str
    project: str | None = None
    scope: Scope = "personal"
    standing_rule: bool = False
    """Phrased as a rule for the future ("always", "never", "from now on"), not as a remark about this moment."""
    typed: bool = True
    """The statement is made of words the user typed: not pasted, quoted, or written by a tool or the agent."""
    score: float = 0.0
    """The miner's confidence that this is a memory of this category, 0 to 1."""
    replaces: str | None = None
    """What the statement says not to do any more ("npm" in "use pnpm, not npm"), where it names it."""
    said: str | None = None
    """What was said, where the statement rewords it: by this it is known again, however it is reworded next time."""
    claimed_rule: bool = False
    """A model takes it for a standing rule, or it has the form of one; it is not stated so plainly that it is one."""
    passed_on: bool = False
    """It stands in a paragraph that speaks in nobody's voice: by its look, a text of somebody else's."""
    said_at: str | None = None
    """When it was said or done, as `moment` gives it; None where the transcript does not tell."""

    def __post_init__(self) -> None:
        if self.category not in CATEGORIES:
            raise ValueError(f"unknown category: {self.category!r}")
        if not self.records:
            raise ValueError("a candidate needs the record that says it")
        if not self.statement.strip():
            raise ValueError("a candidate needs a statement")

    @property
    def kind(self) -> str:
        """The kind of entry (and folder) it becomes."""
        return KIND_OF_CATEGORY[self.category]

    @property
    def title(self) -> str:
        """The statement's first line as a heading: without the word that only opens it, cut at a word."""
        line = self.statement.strip().split("\n", 1)[0]
        line = cut(without_opening(line) or line, TITLE_CHARACTERS)
        return (line[:1].upper() + line[1:]).rstrip(".")

    @property
    def identity(self) -> str:
        """The text that its fingerprint is taken of: the same from every miner that found the same sentence."""
        return self.said or self.statement

    @property
    def from_user(self) -> bool:
        """The user put it into the prompt, and nothing shows that it was pasted."""
        return self.role == "user" and self.typed

    @property
    def in_own_voice(self) -> bool:
        """Only these may ever be saved without asking."""
        return self.from_user and not self.passed_on


def without_opening(text: str) -> str:
    """The text without words in front that only open it ("Great. And now: …"); '' when there are no others."""
    stripped = text.strip()
    opening = _LEAD_IN.match(stripped)
    return stripped[opening.end() :] if opening else stripped


def moment(timestamp: str | None) -> str | None:
    """A host's ISO 8601 timestamp in UTC to the second, "2026-11-22T08:05:00Z"; None for what is none."""
    try:
        # Within this length there is nothing but a time; without a zone hosts write UTC.
        at = datetime.fromisoformat((timestamp or "")[:40])
        if at.tzinfo:
            at = at.astimezone(UTC).replace(tzinfo=None)
        return f"{at.isoformat(timespec='seconds')}Z" if at.year >= 1970 else None
    except (ValueError, OverflowError):
        return None


KIND_OF_CATEGORY: dict[str, str] = {
    "preference": "preferences",
    "correction": "preferences",
    "fix": "fix",
    "workflow": "workflow",
    "idea": "idea",
}
