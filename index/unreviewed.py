"""Give a prompt what the user said and has not reviewed: only a strong answer, marked as not confirmed.

It is a second recall, of proposals and the inbox alone. It leaves out what an agent claims and what the user only
passed on, and is not used at a session's start.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from ..runtime.days import day_of, effective_date
from ..runtime.paths import read_regular
from ..runtime.safe_text import safe_line
from ..vault.entry import IN_INBOX, PENDING, Entry, parse_entry
from ..vault.evidence import NOT_CONFIRMED_TAG, strip_evidence
from ..vault.note_text import without_replacement_line
from ..vault.pending import find_pending_notes
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


def recall_unreviewed(
    engine: RecallEngine, vault: Path, query: RecallQuery, deadline: float | None, given: Collection[str] = ()
) -> Sequence[Hit]:
    """Return at most MOST hits for the prompt `query`, best first; none if there is too little time.

    What would replace one of the `given` entries comes in any case, what would replace one that the session had before
    if the prompt has a word of either. `deadline`: in monotonic seconds; None for no limit.
    """
    end = inf if deadline is None else deadline - MIN_BUDGET_MS / 1000
    if time.monotonic() > end:
        return ()
    words = {term.stem for term in analyse(query.text).terms}
    changes = [
        _hit_of(entry)
        for rule, entry in said_since(vault, {*given, *query.exclude_paths}, end).items()
        if entry.path not in query.exclude_paths
        if rule in given or not words.isdisjoint(stems(f"{_statement(entry)} {_text_of(vault, rule)}"))
    ]
    waiting = frozenset(STRONG)
    asked = replace(query, k=CANDIDATES, statuses=waiting, include=FOLDERS, apply_threshold=False)
    if time.monotonic() > end:
        return changes[:MOST]
    found = engine.recall(asked, budget_ms=None if deadline is None else (deadline - time.monotonic()) * 1000)
    above = {hit.path: (hit.answers or 0.0) - found.threshold for hit in found.hits if hit.status in STRONG}
    ranked = sorted((hit for hit in found.hits if hit.path in above), key=lambda hit: -above[hit.path])
    strong = [hit for hit in ranked if above[hit.path] >= STRONG[hit.status or ""]]
    if not strong and ranked and _is_alone(query.text, ranked):
        strong = ranked[:1]
    told = {hit.path for hit in changes}
    for hit in strong:
        entry = _of_the_user(vault, hit.path) if hit.path not in told else None
        if entry is not None:
            changes.append(replace(hit, excerpt=_statement(entry)))
    return changes[:MOST]


def said_since(vault: Path, given: Collection[str], end: float = inf) -> dict[str, Entry]:
    """Return what the user said last of each of these rules that waits and would replace it, by the rule's path.

    `end`: in monotonic seconds, when no further note is read.
    """
    names = [path.removesuffix(".md").encode("utf-8", "surrogateescape") for path in given]
    found: dict[str, Entry] = {}
    for path in find_pending_notes(str(vault)) if names else ():
        if time.monotonic() > end:
            break
        entry = _of_the_user(vault, path, names)
        rule = (entry.supersedes or "") if entry is not None else ""
        if entry is None or rule not in given or entry.effective_status not in STRONG:
            continue
        if rule not in found or _when(entry) >= _when(found[rule]):
            found[rule] = entry
    return found


def _when(entry: Entry) -> str:
    return effective_date(entry.surfaced_at, entry.created, entry.updated) or ""


def _is_alone(prompt: str, ranked: Sequence[Hit]) -> bool:
    """Whether the first hit is far ahead of the others, by meaning, and alone has one of the prompt's words."""
    first, *others = ranked
    if first.dense is None or not others or (first.answers or 0.0) - (others[0].answers or 0.0) < ALONE:
        return False
    asked = {term.stem for term in analyse(prompt).terms}
    return bool(asked.intersection(stems(first.excerpt)).difference(*(stems(other.excerpt) for other in others)))


def render_unreviewed(hits: Sequence[Hit]) -> str:
    """Render one line for each hit, below a heading; '' for none."""
    return "\n".join([HEADING, *(f"- {line_of(hit)}" for hit in hits)]) + "\n" if hits else ""


def line_of(said: Hit | Entry) -> str:
    """Return what was said and when, as one line that says that nobody has confirmed it."""
    when = effective_date(said.surfaced_at, said.created, said.updated)
    day = f" on {day_of(when)}" if when else ""
    text = safe_line((said.excerpt or said.title) if isinstance(said, Hit) else _statement(said))
    return f"You said{day}, not confirmed: {text[:CHARACTERS]}{'…' if len(text) > CHARACTERS else ''}"


def _text_of(vault: Path, path: str) -> str:
    try:
        data, _ = read_regular(vault / path, READ_BYTES)
    except OSError:
        return ""
    return strip_evidence(parse_entry(path, data).body)


def _of_the_user(vault: Path, path: str, names: Sequence[bytes] = (b"",)) -> Entry | None:
    """Return the entry if the user said it: no agent wrote it, and the host's record says that a person typed it. None
    also for a file with none of these names."""
    try:
        data, _ = read_regular(vault / path, READ_BYTES)
    except OSError:
        return None
    if not any(name in data for name in names):
        return None
    entry = parse_entry(path, data)
    is_typed = not entry.written_by_agent and NOT_CONFIRMED_TAG not in entry.tags and bool(entry.sources)
    return entry if is_typed else None


def _hit_of(entry: Entry) -> Hit:
    return Hit(
        entry.path, entry.slug, "", entry.kind, entry.effective_status, entry.project, 0.0, None, None,
        _statement(entry), 0, None, entry.created, entry.updated, entry.surfaced_at,
    )  # fmt: skip


def _statement(entry: Entry) -> str:
    """Return what was said, without heading, evidence and the line that names what it would replace."""
    lines = without_replacement_line(strip_evidence(entry.body)).split("\n")
    return "\n".join(line for line in lines if line[:1] != "#").strip() or entry.title
