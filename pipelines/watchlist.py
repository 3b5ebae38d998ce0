"""Paths and texts of the watchlist's notes, and the user's decisions on them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from ..runtime.errors import EntryInvalid, PathRefused
from ..runtime.layout import ARCHIVE, DEFAULT_GROUP, WATCHLIST
from ..runtime.slug import NAME_PATTERN, validate_user_name
from .adaptation import Facts, Judgement

FOLDER = f"{DEFAULT_GROUP}/{WATCHLIST}"
DEFER_DAYS = 30
MAX_PART_CHARACTERS = 80


Verdict = Literal["promoted", "dismissed", "deferred"]
"""What the user decided: to adopt the pattern, which installs nothing; to refuse it for ever; to be asked later."""


@dataclass(frozen=True)
class Decision:
    """The user's decision. `until`: the day on which a deferred pattern is asked about again."""

    verdict: Verdict
    until: date | None = None


PROMOTE, DISMISS = Decision("promoted"), Decision("dismissed")
HOW_TO_DECIDE = "promote, dismiss, or defer YYYY-MM-DD"

_DEFER = re.compile(
    r"(?:defer(?:red)?|later|snooze)\b[\s:=]*(?:until|till|to)?[\s:=]*(?P<day>\d{4}-\d{2}-\d{2})?", re.IGNORECASE
)
_WORDS: dict[str, Decision] = {
    **dict.fromkeys(("promote", "promoted", "adopt", "yes", "approve", "true"), PROMOTE),
    **dict.fromkeys(("dismiss", "dismissed", "reject", "rejected", "no", "drop", "false"), DISMISS),
}


def parse_decision(text: str, today: date) -> Decision | None:
    """Parse a decision such as `defer 2030-08-01`; None for anything else. `defer` alone means 30 days."""
    words = text.strip("\"'“”‘’.! \n")
    if words.lower() in _WORDS:
        return _WORDS[words.lower()]
    match = _DEFER.fullmatch(words)
    if match is None:
        return None
    try:
        until = date.fromisoformat(match["day"]) if match["day"] else today + timedelta(days=DEFER_DAYS)
    except ValueError:
        return None
    return Decision("deferred", until)


def note_path(source: str, pattern: str) -> str:
    """Return the path of the note of a new pattern. Raises PathRefused."""
    for name in (source, pattern):
        if NAME_PATTERN.fullmatch(name) is None or len(name) > MAX_PART_CHARACTERS:
            raise PathRefused(
                f"{name[:80]!r} can be no part of a watchlist path: lower-case letters, digits and hyphens"
            )
    return f"{FOLDER}/{source}/{pattern}.md"


def archive_path(path: str) -> str:
    """Return the path of a dismissed note. Raises PathRefused."""
    source, pattern = parts_of(path)
    return f"{FOLDER}/{ARCHIVE}/{_part(source)}/{_part(pattern)}.md"


def parts_of(path: str) -> tuple[str, str]:
    """Return (source, pattern) of a note that is not archived. Raises PathRefused for any other path."""
    below = path.removeprefix(f"{FOLDER}/")
    source, slash, name = below.partition("/")
    if below == path or not slash or "/" in name or not name.endswith(".md"):
        raise PathRefused(f"{path!r} is no note of the watchlist")
    return _part(source), _part(name.removesuffix(".md"))


def is_note(path: str) -> bool:
    """Whether a vault-relative path is a watchlist note, archived or not."""
    return path.startswith(f"{FOLDER}/")


def is_archived(path: str) -> bool:
    """Whether a watchlist note was dismissed."""
    return path.startswith(f"{FOLDER}/{ARCHIVE}/")


def _part(name: str) -> str:
    try:
        return validate_user_name(name)
    except EntryInvalid as error:
        raise PathRefused(f"{name[:80]!r} can be no part of a watchlist path: give it as it is shown") from error


# --- what a note says ---

_SAFE_NAME = re.compile(r"[^\w./+# -]")
MAX_NAME_WORDS = 6


def shown_name(title: str) -> str:
    """Return a foreign title as a name: its first words, without marks that markdown or a host would act on."""
    words = _SAFE_NAME.sub(" ", title).split()
    return " ".join(words[:MAX_NAME_WORDS])[:80] or "unnamed"


def note_body(judgement: Judgement, facts: Facts | None, address: str, advice: Iterable[str] = ()) -> str:
    """Render the note in our own words. `advice`: lines of pass 2, checked for copies."""
    lines = [
        "## What to adopt",
        "",
        *(advice or ["Read it, then say in your own words what you would do alike."]),
        "",
        "Take the idea, not the text: nothing of it was copied here, and nothing of it is installed.",
        "",
        "## Why",
        "",
        f"Confidence {judgement.confidence.name}{''.join(f'; {why}' for why in judgement.moved)}. By the rubric "
        f"{judgement.score:+d}:",
        "",
        *(f"- {rule.points:+d} {rule.id.split(':')[0]}: {rule.why}" for rule in judgement.rules),
        "",
    ]
    if judgement.trust:
        lines += [f"Its repository: {'; '.join(judgement.trust)}.", ""]
    elif facts is None:
        lines += ["Its repository was not looked up.", ""]
    lines += [
        f"Source: <{address}>",
        "",
        "## Decide",
        "",
        f"Write `decision:` and {HOW_TO_DECIDE} into this note's properties, or run `memory skills watchlist`.",
    ]
    return "\n".join(lines)
