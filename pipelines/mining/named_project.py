"""The project that a sentence names: "In the shop repo, never force-push" holds there, wherever it is said."""

from __future__ import annotations

from ...vault.slug import slugify
from .common_patterns import cue, without_lead_in

_POINTS = (
    "this|that|the|these|those|our|my|your|their|its|whole|entire|same|other|another|new|old|current|next|last|first|"
    "second|third|previous|original|single|each|every|any|all|no|a|an|one|main|actual|real|right|wrong|git|github|gitlab|public|"
    "private|local|remote|upstream|shared|mono|monorepo|open|source|team|company|personal|demo|sample|example|side|toy|test"
)
"""Words before "repo" that are no name."""
_IN_PROJECT = rf"""(?:in|for|inside|within)\ (?:the\ |our\ |my\ )?
    `?(?!(?:{_POINTS})\b)(?P<name>[a-z0-9][\w.-]*)`?\ (?:repo(?:sitory)?|project|code\ ?base)\b"""
_NAMES = cue(rf"\b{_IN_PROJECT}")
_OPENS = cue(rf"^{_IN_PROJECT}(?:\s*,\s*|\s+)(?=\w)")


def named_project(sentence: str) -> str | None:
    """Slug of the project that the sentence names, if it names one; "this repo" is no name."""
    names = {slugify(found["name"]) for found in _NAMES.finditer(sentence)}
    return names.pop() if len(names) == 1 else None


def without_named_project(sentence: str) -> str:
    """What is to be done in the project that the sentence opens with; the sentence as it is if it opens with none."""
    core = without_lead_in(sentence)
    opening = _OPENS.match(core)
    return sentence if opening is None else core[opening.end() :]
