"""Choosing the new place of a note of a ContextVault. Pure; the rules are those of the design's section Migrations."""

from __future__ import annotations

from dataclasses import dataclass

from ..runtime.layout import DEFAULT_GROUP, PROJECTS
from ..runtime.slug import slugify

DOMAIN_KIND = "domain-reference"
CONVERSATION_KIND = "conversation"
NOTE_KIND = "project-note"
RENAMED_PROJECTS = {"ai-context-system": "memoryvault"}
"""The project that the old vault was designed in became MemoryVault."""


@dataclass(frozen=True)
class NewPlace:
    """The new place of a note: `folder` and `slug` give the path, which is numbered if it is taken."""

    folder: str
    slug: str
    kind: str
    group: str
    project: str | None

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.slug}.md"


def new_place(name: str) -> NewPlace | None:
    """Choose the place of `domains/…` or `projects/<project>/…`; None for any other path.

    A note in a deeper folder carries the folder's words in its name, so that no two meet.
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
