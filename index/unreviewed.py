"""Give a prompt what the user said and has not reviewed: only a strong answer, marked as not confirmed.

It is a second recall, of proposals and the inbox alone. It leaves out what an agent claims and what the user only
passed on, and is not used at a session's start.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..runtime.days import day_of, effective_date
from ..runtime.paths import read_regular
from ..runtime.safe_text import safe_line
from ..vault.entry import IN_INBOX, PENDING, parse_entry
from ..vault.evidence import NOT_CONFIRMED_TAG
from .engine import Hit, RecallEngine, RecallQuery
from .query import analyse
from .stemming import stems

MOST = 2
CANDIDATES = 6
FOLDERS = frozenset({"_review", "_inbox"})
STRONG = {PENDING: 0.55, IN_INBOX: 1.0}
"""Log-odds above the threshold that such an entry must reach, by its status."""
ALONE = 2.5
"""An entry below the threshold comes, too, if it alone has one of the prompt's words and its log-odds exceed the next
one's by this. Where a rival is close, words in common are chance."""
CHARACTERS = 240
READ_BYTES = 64_000
MIN_BUDGET_MS = 40.0
HEADING = "Said by the user in earlier sessions and not confirmed since; ask before you rely on it:"


def recall_unreviewed(engine: RecallEngine, vault: Path, query: RecallQuery, deadline: float | None) -> Sequence[Hit]:
    """Return at most MOST hits for the prompt `query`, best first; none if there is too little time.

    `deadline`: in monotonic seconds; None for no limit.
    """
    left_ms = None if deadline is None else (deadline - time.monotonic()) * 1000
    if left_ms is not None and left_ms < MIN_BUDGET_MS:
        return ()
    waiting = frozenset(STRONG)
    asked = replace(query, k=CANDIDATES, statuses=waiting, include=FOLDERS, apply_threshold=False)
    found = engine.recall(asked, budget_ms=left_ms)
    above = {hit.path: (hit.answers or 0.0) - found.threshold for hit in found.hits if hit.status in STRONG}
    ranked = sorted((hit for hit in found.hits if hit.path in above), key=lambda hit: -above[hit.path])
    strong = [hit for hit in ranked if above[hit.path] >= STRONG[hit.status or ""]]
    if not strong and ranked and _is_alone(query.text, ranked):
        strong = ranked[:1]
    return [hit for hit in strong if _is_the_users(vault, hit.path)][:MOST]


def _is_alone(prompt: str, ranked: Sequence[Hit]) -> bool:
    """Whether the first hit is far ahead of the others, by meaning, and alone has one of the prompt's words."""
    first, *others = ranked
    if first.dense is None or not others or (first.answers or 0.0) - (others[0].answers or 0.0) < ALONE:
        return False
    asked = {term.stem for term in analyse(prompt).terms}
    return bool(asked.intersection(stems(first.excerpt)).difference(*(stems(other.excerpt) for other in others)))


def render_unreviewed(hits: Sequence[Hit]) -> str:
    """Render one line for each hit, below a heading; '' for none."""
    return "\n".join([HEADING, *map(_line, hits)]) + "\n" if hits else ""


def _line(hit: Hit) -> str:
    said = effective_date(hit.surfaced_at, hit.created, hit.updated)
    day = f" on {day_of(said)}" if said else ""
    text = safe_line(hit.excerpt or hit.title)
    return f"- You said{day}, not confirmed: {text[:CHARACTERS]}{'…' if len(text) > CHARACTERS else ''}"


def _is_the_users(vault: Path, path: str) -> bool:
    """Whether the user said it: no agent wrote it, and the host's record says that a person typed it."""
    try:
        data, _ = read_regular(vault / path, READ_BYTES)
    except OSError:
        return False
    entry = parse_entry(path, data)
    return not entry.written_by_agent and NOT_CONFIRMED_TAG not in entry.tags and bool(entry.sources)
