"""Candidate: a proposed memory with its evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ..vault.wording import cut

TITLE_CHARACTERS = 90
_LEAD_IN = re.compile(
    r"""(?:(?:(?:and|so|but|ok|okay|yes|yeah|yep|yup|hm+|uh+|oh|lol|also|please|pls|btw|by\ the\ way|(?:just\ )?fyi
            |actually|no(?=\s+(?:we|i|you|they|don'?t|never|not)\b)
            )\b(?:\s*[,.:;!…–—]+|\s+-)?
          |(?:no|nope|nah|good|great|nice|cool|perfect|awesome|right|alright|sure|thanks|thank\ you
            |ah|well|now|done|true|again|hi|hey|hello|wait|sorry
            |(?:looks|sounds)\ (?:good|great)|(?:good|great|nice)\ work
            )\b
           (?:\s*[,.:;!…–—]+|\s+-))
        (?:\s+|$))+""",
    re.IGNORECASE | re.VERBOSE,
)
"""Opening words without content. Some count only before a comma or the like: "no, never" but not "no emojis"."""

_RUN_MARKS = re.compile(
    r"""\A\s*(?:[\[(][^\])\n]{0,30}\d[^\])\n]{0,30}[\])] | \d{4}-\d\d-\d\d[T\ ][\d:.,]+Z? | \d{1,2}:\d\d(?::\d\d)?
        | [#]?\d+(?=[:)]) | \w{1,12}\ [#]?\d{1,9}(?=:) )[\s:)–—-]*
      | \s*[\[(][^\])\n]{0,30}\d[^\])\n]{0,30}[\])]\s*\Z""",
    re.VERBOSE,
)
"""Marks of time and number: "[2026-09-01T10:05:00Z]", "10:05", "#7:", "Run 7:", "(3/10)"."""

Category = Literal["preference", "correction", "fact", "workflow", "fix", "idea"]
"""Kind of memory. `correction` is a preference that was learned from a mistake of the agent; `fact` is a lasting fact
about the person, the project, its environment, its vocabulary or its decisions."""

Scope = Literal["personal", "project"]
"""Whether a memory holds wherever the user works, or only in the project in which it was said."""

Speaker = Literal["user", "assistant", "tool"]
"""Speaker of the words that the statement is made of."""

CATEGORIES: tuple[Category, ...] = ("preference", "correction", "fact", "workflow", "fix", "idea")


@dataclass(frozen=True)
class Candidate:
    """One proposed memory: `Turn -> Candidate -> RoutedCandidate -> Entry`.

    Not scrubbed: a candidate is only held in memory, and is scrubbed before any write.
    """

    category: Category
    statement: str
    """One sentence that can be understood without the session; the local miner takes it from the user's own words."""
    reason: str
    """Why it was proposed, in one line for the user who reviews it."""
    role: Speaker
    records: tuple[str, ...]
    """Ids of the transcript records that are its evidence, oldest first; never empty."""
    excerpt: str
    """Passage of the session that contains it, verbatim."""
    session: str
    project: str | None = None
    scope: Scope = "personal"
    standing_rule: bool = False
    """Phrased as a rule for the future ("always", "never", "from now on"), not as a remark about this moment."""
    typed: bool = True
    """The user typed the words of the statement: not pasted, quoted, or written by a tool or the agent."""
    score: float = 0.0
    """The miner's confidence in the category, 0 to 1."""
    limit: float = 0.0
    """Least score with which it is proposed; 0 if something else decided, such as an explicit form."""
    said: str | None = None
    """Original words of a reworded statement, by which the memory is recognised in another wording."""
    claimed_rule: bool = False
    """It may be a standing rule, by its form or a model's opinion, but is not stated plainly enough."""
    said_at: str | None = None
    """When it was said or done, as `moment` formats it; None if unknown."""
    occasion: str = ""
    """What the user answered, in one line, for the review; '' if the statement says it or it is unknown. Never part of
    the memory."""

    confirmed: bool = False
    """The host's record says that a person typed it; otherwise it is never saved unasked."""
    headline: str = ""
    """The sentence of the statement that its title is made of; '' for its first line."""
    channel: str = ""
    """How it should reach the agent, by the reader's opinion: `core` (a habit for all work), `prompt` (when its topic
    comes up) or `action` (when the agent does what it speaks of); '' if unknown."""
    forked_from: tuple[str, ...] = ()
    """Sessions of which its session begins with a copy, so that this may have been said there."""

    def __post_init__(self) -> None:
        if self.category not in CATEGORIES:
            raise ValueError(f"unknown category: {self.category!r}")
        if not self.records:
            raise ValueError("a candidate needs the record that says it")
        if not self.statement.strip():
            raise ValueError("a candidate needs a statement")

    @property
    def kind(self) -> str:
        """Kind of the entry (and folder) that it becomes."""
        return KIND_OF_CATEGORY[self.category]

    @property
    def title(self) -> str:
        """Heading: what the statement mainly says, without opening words, cut at a word."""
        return title_of(self.headline or self.statement, is_idea=self.category == "idea")

    @property
    def answered(self) -> str:
        """What the user answered, without the words that introduce it in `occasion`."""
        return self.occasion.removeprefix("in answer to: ").removeprefix("asked: ").removeprefix("when refusing ")

    @property
    def identity(self) -> str:
        """Text of its fingerprint: the same from every miner that found the sentence, and without the time or number
        that a loop puts before or after its prompt."""
        text = self.said or self.statement
        return _RUN_MARKS.sub("", text).strip() or text

    @property
    def from_user(self) -> bool:
        """Whether the user typed it, as far as its form shows."""
        return self.role == "user" and self.typed


IDEA_LABEL = (
    r"(?:(?:an?|one more|another|new|random|crazy|quick|feature|future|todo) )*idea(?: for later)?\s*(?::|\s[-—–]\s)"
)
"""Pattern of what says outright that an idea follows; superfluous in a title, beside the kind."""
_LABEL = re.compile(rf"^{IDEA_LABEL}\s*", re.IGNORECASE)


def title_of(statement: str, *, is_idea: bool = False) -> str:
    """Return the heading for a statement: its first line without opening words and an idea's label, cut at a word."""
    line = statement.strip().split("\n", 1)[0]
    line = without_opening(line) or line
    if is_idea:
        line = _LABEL.sub("", line) or line
    line = cut(line, TITLE_CHARACTERS)
    return (line[:1].upper() + line[1:]).rstrip(".")


def without_opening(text: str) -> str:
    """Remove leading words that only open a text ("Great. And now: …"); '' when nothing is left."""
    stripped = text.strip()
    opening = _LEAD_IN.match(stripped)
    return stripped[opening.end() :] if opening else stripped


def moment(timestamp: str | None) -> str | None:
    """Convert a host's ISO 8601 timestamp to UTC, to the second: "2026-11-22T08:05:00Z"; None if it is not one."""
    try:
        # Hosts write UTC where they name no zone.
        at = datetime.fromisoformat((timestamp or "")[:40])
        if at.tzinfo:
            at = at.astimezone(UTC).replace(tzinfo=None)
        return f"{at.isoformat(timespec='seconds')}Z" if at.year >= 1970 else None
    except (ValueError, OverflowError):
        return None


KIND_OF_CATEGORY: dict[str, str] = {
    "preference": "preferences",
    "correction": "preferences",
    "fact": "fact",
    "fix": "fix",
    "workflow": "workflow",
    "idea": "idea",
}
