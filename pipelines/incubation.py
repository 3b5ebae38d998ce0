"""Find stale ideas of the incubator, render the question about them, and parse the answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

DAYS_A_MONTH = 30
TRASH_DAYS = 30
"""Days in which a deleted idea can be restored."""
SURFACE_KIND = "idea-surface"
"""Kind of the note in `_review/` that asks whether an idea may be put into Ideas.md."""
GC_KIND = "incubator-gc"
"""Kind of the note in `_review/` that lists stale ideas."""
KIND_IN_WORDS = {SURFACE_KIND: "question about an idea", GC_KIND: "questions about ideas"}
"""How these kinds are called where a person decides."""


class Answer(StrEnum):
    """The user's answer about a stale idea."""

    KEEP = "keep"
    ARCHIVE = "archive"
    DELETE = "delete"


@dataclass(frozen=True)
class StaleIdea:
    """A stale idea that the user is asked about."""

    slug: str
    title: str
    statement: str
    link: str
    last: date


def is_stale(last: date, today: date, months: int) -> bool:
    """Whether an idea was last used at least `months` months ago."""
    return (today - last).days >= months * DAYS_A_MONTH


def question_body(stale: Sequence[StaleIdea], months: int) -> str:
    """Render the note about stale ideas, with three boxes below each."""
    parts = [
        f"What is listed here was neither edited, linked, recalled nor promoted for {months} months or more. Tick one "
        "box below each, or none: nothing is deleted without your answer. A deleted idea can be restored for "
        f"{TRASH_DAYS} days (`memory idea restore`). The link to it in your list of ideas follows it; nothing else "
        "there is changed."
    ]
    for idea in sorted(stale, key=lambda one: (one.last, one.slug)):
        repeats = idea.statement.casefold().rstrip(".") == idea.title.casefold().rstrip(".")
        says = "" if repeats else idea.statement
        boxes = "\n".join(f"- [ ] {answer.capitalize()}" for answer in Answer)
        title = " ".join(idea.title.replace("|", "/").replace("[[", "").replace("]]", "").split())
        link = f"[[{idea.link.removesuffix('.md')}|{title}]]"
        parts.append(f"## {link}\n\n{f'Last touched {idea.last.isoformat()}. {says}'.rstrip()}\n\n{boxes}")
    return "\n\n".join(parts) + "\n"


_IDEA_HEADING = re.compile(
    # The path before the name may hold anything, also what ends a link: a folder may be called "C# page".
    r"^## +\[\[(?:(?:[^\n]*?/)?(?P<folder>[^_.\n/][^\n/]*)/_index(?:\.md)?"
    r"|(?:[^\]|#\n]*/)?(?P<slug>[^_.\]|#\n/][^\]|#\n/]*))[\]|#]"
)
_IDEA_LINK = re.compile(r"\[\[(?:[^\n]*?/_index(?:\.md)?|[^\]|\n]*)\|([^\]\n]*)\]\]")
_BOX = re.compile(r"^\s*[-*+] \[(?P<mark>.)\]\s+(?P<answer>keep|archive|delete)\b", re.IGNORECASE)


def listed(body: str) -> dict[str, tuple[Answer, ...]]:
    """Return the ideas of such a note, in order, each with its ticked boxes."""
    found: dict[str, tuple[Answer, ...]] = {}
    for line, slug in _with_slugs(body):
        if slug and line.startswith("## "):
            found[slug] = ()
        elif slug and (box := _BOX.match(line)) is not None and box["mark"] not in " -":
            found[slug] = (*found[slug], Answer(box["answer"].lower()))
    return found


def without_idea(body: str, slug: str) -> str:
    """Remove the part of one idea from the note's text."""
    return "\n".join(line for line, of in _with_slugs(body) if of != slug)


def part_of(body: str, slug: str) -> list[str]:
    """Return the lines of the note about one idea, without its boxes, for a terminal."""
    lines = [line for line, of in _with_slugs(body) if of == slug and line.strip() and not _BOX.match(line)]
    return [_IDEA_LINK.sub(r"\1", line).lstrip("# ") for line in lines]


def _with_slugs(body: str) -> list[tuple[str, str]]:
    """Pair each line with the slug of its idea; '' outside of one."""
    found = []
    slug = ""
    for line in body.split("\n"):
        if line.startswith("## "):
            heading = _IDEA_HEADING.match(line)
            slug = (heading["folder"] or heading["slug"]) if heading is not None else ""
        found.append((line, slug))
    return found
