"""Choose the new place of a note of a ContextVault. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..runtime.layout import DEFAULT_GROUP, PROJECTS
from ..runtime.slug import slugify

DOMAIN_KIND = "domain-reference"
CONVERSATION_KIND = "conversation"
NOTE_KIND = "project-note"
RENAMED_PROJECTS = {"ai-context-system": "memoryvault"}
"""Projects that have another name now."""


@dataclass(frozen=True)
class NewPlace:
    """The new place of a note. If its path is taken, a number is added."""

    folder: str
    slug: str
    kind: str
    group: str
    project: str | None


def new_place(name: str) -> NewPlace | None:
    """Return the new place of `domains/…` or `projects/<project>/…`; None for any other path.

    The names of deeper folders become part of the note's name, so that no two notes get the same path.
    """
    top, *rest = name.removesuffix(".md").split("/")
    if top == "domains" and rest:
        return NewPlace(f"{DEFAULT_GROUP}/domains", slugify(" ".join(rest)), DOMAIN_KIND, DEFAULT_GROUP, None)
    if top != "projects" or len(rest) < 2:
        return None
    project = RENAMED_PROJECTS.get(rest[0], slugify(rest[0]))
    group = f"{PROJECTS}/{project}"
    if rest[1] == "conversations" and len(rest) > 2:
        return NewPlace(f"{group}/conversations", slugify(" ".join(rest[2:])), CONVERSATION_KIND, group, project)
    return NewPlace(f"{group}/notes", slugify(" ".join(rest[1:])), NOTE_KIND, group, project)
