"""Parse the user's decision on a proposal, and determine its consequences. Pure.

A decision may come from a key in `memory review`, from `--decide`, or from a line in the note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from ..runtime.errors import EntryInvalid
from ..runtime.layout import ARCHIVE, DEFAULT_GROUP, INCUBATOR, PROJECTS
from ..runtime.slug import idea_slug, slugify, validate_group, validate_name, validate_note_name
from ..vault.entry import Entry
from .candidate import title_of
from .likeness import own_words, statement_of
from .reading.sentences import sentences


@dataclass(frozen=True)
class Approve:
    """Accept the proposal. An entry that it was proposed to replace is superseded."""

    always: bool = False
    """Give it to every session at its start."""
    guard: str = ""
    """Its guard, one of `vault.entry.GUARDS`; '' for none."""


@dataclass(frozen=True)
class KeepBoth:
    """Accept the proposal, and keep the entry that it was proposed to replace."""


@dataclass(frozen=True)
class Reject:
    """Refuse the proposal, and never propose it again."""


@dataclass(frozen=True)
class Skip:
    """Decide later."""


@dataclass(frozen=True)
class Supersede:
    """Accept the proposal in place of another entry: its path, slug, or a link to it."""

    entry: str


Decision: TypeAlias = "Approve | KeepBoth | Reject | Skip | Supersede"

_WORDS: dict[str, Decision] = {
    **dict.fromkeys(("approve", "approved", "accept", "accepted", "yes", "keep"), Approve()),
    **dict.fromkeys(("always", "approve always"), Approve(always=True)),
    **dict.fromkeys(("remind", "approve remind"), Approve(guard="remind")),
    **dict.fromkeys(("keep both", "keep-both", "both"), KeepBoth()),
    **dict.fromkeys(("reject", "rejected", "no", "drop", "dismiss"), Reject()),
    **dict.fromkeys(("skip", "later"), Skip()),
}
_AROUND = "\"'“”‘’.! "
_SUPERSEDE = re.compile(r"(?:supersedes?|replaces?)\b[\s:=]*(?P<entry>\S.*)?", re.IGNORECASE | re.DOTALL)
ARCHIVED = f"{DEFAULT_GROUP}/{ARCHIVE}"
"""Folder of superseded entries."""
HOW_TO_DECIDE = "approve, always, remind, keep both, reject, skip, or supersede PATH"


def parse_decision(text: str, replaces: str | None = None) -> Decision | None:
    """Parse a decision such as `approve` or `supersede [[tabs]]`; None for anything else.

    `supersede` alone means `replaces`, the entry that the note names.
    """
    words = text.strip().strip("\"'")
    if (word := " ".join(words.lower().split()).strip(_AROUND)) in _WORDS:
        return _WORDS[word]
    match = _SUPERSEDE.fullmatch(words)
    if match is None:
        return None
    # A full stop is the end of a sentence, not of a note's name.
    entry = link_target((match["entry"] or "").rstrip(". ") or replaces or "")
    return Supersede(entry) if entry else None


def why_none(text: str) -> str:
    """Return what is wrong with a decision that `parse_decision` does not know, and what to write instead."""
    if _SUPERSEDE.fullmatch(text.strip().strip("\"'")) is not None:
        return f"{text[:60]!r} does not say what it replaces: write supersede [[entry]], with its name or path"
    return f"{text[:60]!r} is no decision: write {HOW_TO_DECIDE}"


def link_target(text: str) -> str:
    """Return the path or slug in `[[path|shown]]`, `[[path#heading]]`, `path.md` (also `C# rules.md`) or `slug`."""
    inner = text.strip().strip("\"'")
    if inner.endswith(".md") and not inner.startswith("[["):
        return inner
    inner = inner.removeprefix("[[").removesuffix("]]")
    return inner.split("|", 1)[0].split("#", 1)[0].strip()


@dataclass(frozen=True)
class Accepted:
    """The note moves to `path` with this status, and supersedes `replaces`, a path or slug."""

    path: str
    status: str
    replaces: str | None = None


@dataclass(frozen=True)
class PutAway:
    """The note moves to `path`, in the archive, with this status."""

    path: str
    status: str


def settle(proposal: Entry, decision: Decision) -> Accepted | PutAway | None:
    """Return the outcome of a decision on a waiting note; None if it stays where it is. If its path is taken, the next
    free name is meant.

    Raises EntryInvalid for an invalid kind, group or slug, and for an idea that is to replace something.
    """
    match decision:
        case Skip():
            return None
        case Reject():
            return PutAway(f"{DEFAULT_GROUP}/{ARCHIVE}/{proposal.slug}.md", "rejected")
        case Supersede(entry):
            if proposal.kind == "idea":
                raise EntryInvalid("an idea takes no other note's place: approve or reject it")
            return _accepted(proposal, entry)
        case Approve(always, guard):
            if proposal.kind == "idea" and (always or guard):
                raise EntryInvalid("an idea is no rule: approve or reject it")
            return _accepted(proposal, proposal.supersedes)
        case KeepBoth():
            return _accepted(proposal, None)


def _accepted(proposal: Entry, replaces: str | None) -> Accepted:
    if not proposal.kind:
        raise EntryInvalid(f"{proposal.path} has no kind: write one into its properties, as `kind: preferences`")
    kind = validate_name("kind", proposal.kind)
    if kind == "idea":
        return Accepted(f"{DEFAULT_GROUP}/{INCUBATOR}/{idea_slug(proposal.name)}/_index.md", "incubating")
    slug = validate_note_name(proposal.slug)
    return Accepted(f"{group_of(proposal.group, proposal.project)}/{kind}/{slug}.md", "active", replaces)


def group_of(group: str | None, project: str | None) -> str:
    """Return the group that the note names, else its project's, else the user's. Raises EntryInvalid."""
    if group:
        return validate_group(group)
    return f"{PROJECTS}/{slugify(project)}" if project else DEFAULT_GROUP


def archive_name(path: str, day: str, number: int = 1) -> str:
    """Return the path of a superseded entry: `_archive/<its path>.YYYYMMDD.md`, then `-2`, `-3`, …"""
    suffix = day if number == 1 else f"{day}-{number}"
    return f"{ARCHIVED}/{path}.{suffix}.md"


_ARCHIVED_AS = re.compile(rf"{ARCHIVED}/(?P<path>.+\.md)\.\d{{8}}(?:-\d+)?\.md")


def former_path(path: str) -> str | None:
    """Return the former path of the superseded entry at `path` (see `archive_name`); None for any other."""
    archived = _ARCHIVED_AS.fullmatch(path)
    return None if archived is None else archived["path"]


def with_title_of_statement(body: str, before: str) -> str:
    """Return an edited body whose heading follows the statement, if it was made of the one `before`.

    Any other heading is the user's.
    """
    heading, _, rest = body.partition("\n")
    said, now = (own_words(statement_of(text)) for text in (before, body))
    if not heading.startswith("# ") or now in ("", said):
        return body
    parts = (said, *(part.of(said) for part in sentences(said)))
    for is_idea in (False, True):
        if heading[2:].strip() in {title_of(part, is_idea=is_idea) for part in parts}:
            return f"# {title_of(now, is_idea=is_idea)}\n{rest}"
    return body
