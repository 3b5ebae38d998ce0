"""The text that is put before the model: labelled reference data within a token budget. Light module.

The same input gives the same bytes on every day, so that a host's prompt cache stays valid.
"""

from __future__ import annotations

from .days import last_meant

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

DAY_CHARACTERS = len("2026-11-23")
_PRIORITY_ORDER = {"high": 0, "normal": 1, "low": 2}


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, at least 1."""
    return max(1, len(text.encode("utf-8", "surrogatepass")) // CHARACTERS_PER_TOKEN)


def fit_blocks(blocks: Sequence[str], token_budget: int, count: Callable[[str], int] = estimate_tokens) -> list[int]:
    """Indexes of the blocks that fit, in order. One that is too big is skipped and later ones still fit.

    A budget of 0 or less is no limit. `count` gives the tokens of a text.
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


def hit_block(hit: Any) -> str:
    """One recalled entry: heading, a line of facts about it, its text."""
    meant = last_meant(_get(hit, "surfaced_at"), _get(hit, "created"), _get(hit, "updated"))
    told = {
        "project": _get(hit, "project"),
        "kind": _get(hit, "kind"),
        "date": meant and str(meant)[:DAY_CHARACTERS],  # of UTC: a zone's rules cost more than a hook has
        "session": _get(hit, "session"),
    }
    facts = [label + ": " + _one_line(value) for label, value in told.items() if value]
    lines = ["### " + _one_line(_get(hit, "slug") or _get(hit, "path") or "entry")]
    if facts:
        lines.append("(" + ", ".join(facts) + ")")
    return "\n".join(lines) + "\n\n" + clean(_get(hit, "excerpt") or _get(hit, "body") or "")


def select_hits(hits: Sequence[Any], token_budget: int, count: Callable[[str], int] = estimate_tokens) -> list[Any]:
    """The hits that `render_block` prints within the budget, best first as given."""
    return [hits[index] for index in fit_blocks([hit_block(hit) for hit in hits], token_budget, count)]


def render_block(hits: Sequence[Any], token_budget: int) -> str:
    """The hits (objects or mappings with the fields of `Hit`) as one text; '' when none fits."""
    kept = select_hits(hits, token_budget)
    if not kept:
        return ""
    return "\n\n".join([RECALL_HEADER, *(hit_block(hit) for hit in kept)]) + "\n"


def status_line(slugs: Iterable[str]) -> str:
    """`Loaded N relevant entries: a, b`."""
    names = [_one_line(slug) for slug in slugs]
    line = "Loaded " + str(len(names)) + " relevant entries"
    return line + ": " + ", ".join(names) if names else line


def sort_always_load(entries: Iterable[Any]) -> list[Any]:
    """By priority (high, normal, low), then by path: never in the order of a directory listing."""

    def rank(entry: Any) -> tuple[int, str]:
        priority = str(_get(entry, "priority") or "normal").lower()
        return _PRIORITY_ORDER.get(priority, 1), str(_get(entry, "path") or _get(entry, "slug") or "")

    return sorted(entries, key=rank)


def always_load_block(entry: Any) -> str:
    """One always-load entry."""
    return "### " + _one_line(_get(entry, "slug") or "entry") + "\n\n" + clean(_get(entry, "body") or "")


def render_always_load(entries: Iterable[Any], token_budget: int) -> tuple[str, list[Any]]:
    """(text for the session's start, entries it holds). What did not fit is named in a closing note.

    `entries` have path, slug, priority and body; ('', []) when there are none.
    """
    ordered = sort_always_load(entries)
    if not ordered:
        return "", []
    blocks = [always_load_block(entry) for entry in ordered]
    kept = fit_blocks(blocks, token_budget)
    parts = [ALWAYS_LOAD_HEADER, *(blocks[index] for index in kept)]
    fitting = set(kept)
    omitted = [_one_line(_get(e, "slug") or "entry") for i, e in enumerate(ordered) if i not in fitting]
    if omitted:
        parts.append(
            "> [!NOTE]\n> recall truncated to the budget of " + str(token_budget) + " tokens; "
            "entries omitted: " + ", ".join(omitted)
        )
    return "\n\n".join(parts) + "\n", [ordered[index] for index in kept]
