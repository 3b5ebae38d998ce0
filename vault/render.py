"""Rendering entries for the model: labelled reference data within a token budget. Light module.

The same input gives the same bytes on every day in one time zone, so that a host's prompt cache stays valid.
"""

from __future__ import annotations

from .days import day_of, effective_date
from .evidence import strip_evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

CHARACTERS_PER_TOKEN = 4
"""A common rule of thumb for English; counted in UTF-8 bytes, which is fairer to other scripts."""

ALWAYS_LOAD_HEADER = """\
# MemoryVault — always-load entries

These are the user's own notes from their MemoryVault, kept for every session. They are reference data: \
what the user has stated before."""

RECALL_HEADER = """\
# MemoryVault — recalled entries

These are the user's own notes from earlier sessions that seem related to this prompt. They are reference \
data: facts as they were noted then; some may no longer hold."""


def estimate_tokens(text: str) -> int:
    """Estimated number of tokens in `text`, at least 1."""
    return max(1, len(text.encode("utf-8", "surrogatepass")) // CHARACTERS_PER_TOKEN)


def select_fitting(
    blocks: Sequence[str], token_budget: int, count: Callable[[str], int] = estimate_tokens
) -> list[int]:
    """Indexes of the blocks that fit into the budget, in order; after one that is too big smaller ones still may.

    A budget of 0 or less is no limit. `count` returns the number of tokens of a text.
    """
    if token_budget <= 0:
        return list(range(len(blocks)))
    kept = []
    left = token_budget
    for index, block in enumerate(blocks):
        tokens = count(block)
        if tokens <= left:
            kept.append(index)
            left -= tokens
    return kept


def _get(item: Any, name: str) -> Any:
    """A field of a mapping or of an object; None when it has none."""
    if isinstance(item, dict):
        return item.get(name)
    return getattr(item, name, None)


def _one_line(value: object) -> str:
    return clean(" ".join(str(value).split()))


def clean(text: str) -> str:
    """`text` without control characters (they can rewrite a terminal) and without blank lines around it."""
    kept = "".join(c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))
    return kept.strip()


def render_hit(hit: Any) -> str:
    """Render one recalled entry: heading, a line of its metadata, its text."""
    meant = effective_date(_get(hit, "surfaced_at"), _get(hit, "created"), _get(hit, "updated"))
    values = {
        "project": _get(hit, "project"),
        "kind": _get(hit, "kind"),
        "date": meant and day_of(str(meant)),
        "session": _get(hit, "session"),
    }
    facts = [label + ": " + _one_line(value) for label, value in values.items() if value]
    lines = ["### " + _one_line(_get(hit, "slug") or _get(hit, "path") or "entry")]
    if facts:
        lines.append("(" + ", ".join(facts) + ")")
    return "\n".join(lines) + "\n\n" + clean(_get(hit, "excerpt") or _get(hit, "body") or "")


def select_hits(hits: Sequence[Any], token_budget: int, count: Callable[[str], int] = estimate_tokens) -> list[Any]:
    """The hits that `render_block` prints within the budget, best first as given."""
    return [hits[index] for index in select_fitting([render_hit(hit) for hit in hits], token_budget, count)]


def render_block(hits: Sequence[Any], token_budget: int) -> str:
    """Render the hits (objects or mappings with the fields of `Hit`) as one text; '' when none fits."""
    kept = select_hits(hits, token_budget)
    if not kept:
        return ""
    return "\n\n".join([RECALL_HEADER, *(render_hit(hit) for hit in kept)]) + "\n"


def status_line(slugs: Iterable[str]) -> str:
    """Format `Loaded N relevant entries: a, b`."""
    names = [_one_line(slug) for slug in slugs]
    line = "Loaded " + str(len(names)) + " relevant entries"
    return line + ": " + ", ".join(names) if names else line


def render_entry(entry: Any) -> str:
    """Render one always-load entry."""
    return (
        "### " + _one_line(_get(entry, "slug") or "entry") + "\n\n" + clean(strip_evidence(_get(entry, "body") or ""))
    )


def render_always_load(entries: Iterable[Any], words: int) -> tuple[str, list[Any]]:
    """Render (text for the start of a session, entries in it) within a budget of `words`; ('', []) when there are none.

    `entries` have path, slug, priority, project, occurrences and body.
    """
    from .core import select_core  # Of a session's start alone: a prompt does not wait for it.

    kept, _ = select_core(entries, words)
    if not kept:
        return "", []
    return "\n\n".join([ALWAYS_LOAD_HEADER, *map(render_entry, kept)]) + "\n", kept
