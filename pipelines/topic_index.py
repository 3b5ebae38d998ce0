"""Find, add, change and remove the lines of MEMORY.md that name topics; all other lines stay. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..vault.automemory import INDEX_BYTES, INDEX_LINES, find_regions, strip_comments

_ENTRY = re.compile(r"[ \t]*[-*+][ \t]+\[(?P<title>[^\n]*?)\]\((?P<file>[^()\n]+?\.md)\)[^\n]*")
MOST_HOOK_CHARACTERS = 200


@dataclass(frozen=True)
class IndexLine:
    """One line `- [title](file) — hook`. `number` counts from 0."""

    number: int
    title: str
    file: str


def index_lines(text: str) -> list[IndexLine]:
    """Return the lines that name topic files of the same folder, outside comments and code."""
    hidden = [(start, end) for start, end, _ in find_regions(text)]
    found = []
    position = 0
    for number, line in enumerate(text.split("\n")):
        match = _ENTRY.fullmatch(line.rstrip("\r"))
        if match is not None and not any(start <= position < end for start, end in hidden):
            file = match["file"].removeprefix("./")
            if "/" not in file:
                found.append(IndexLine(number, match["title"], file))
        position += len(line) + 1
    return found


def line_for(title: str, slug: str, description: str) -> str:
    """Render the line of a topic, on one line whatever the texts contain."""
    shown = " ".join(title.replace("[", "(").replace("]", ")").split()) or slug
    hook = " ".join(description.split())
    if len(hook) > MOST_HOOK_CHARACTERS:
        hook = hook[:MOST_HOOK_CHARACTERS].rsplit(" ", 1)[0] + " …"
    line = f"- [{shown}]({slug}.md)" + (f" — {hook}" if hook else "")
    # A comment, or code that begins here and ends later, would hide the next lines.
    line = line.replace("<!--", "&lt;!--")
    ends_here = sum(line[start:end].count("`") for start, end, _ in find_regions(line)) == line.count("`")
    return line if ends_here else line.replace("`", "'")


def with_line(text: str, slug: str, line: str) -> str:
    """Put a topic's line into the index, in place of its present line, else at the end."""
    rows = text.split("\n")
    known = [one for one in index_lines(text) if one.file == f"{slug}.md"]
    if known:
        ending = "\r" if rows[known[0].number].endswith("\r") else ""
        rows[known[0].number] = line + ending
        return "\n".join(row for number, row in enumerate(rows) if number not in {one.number for one in known[1:]})
    kept = _closed(text).rstrip("\n")
    return (kept + "\n" if kept else "") + line + "\n"


def without_lines(text: str, slugs: Collection[str]) -> str:
    """Remove the lines of these topics from the index."""
    gone = {one.number for one in index_lines(text) if one.file.removesuffix(".md") in slugs}
    return "\n".join(row for number, row in enumerate(text.split("\n")) if number not in gone)


def rebuilt(text: str, topics: Mapping[str, str], unread: Collection[str] = ()) -> str:
    """Rebuild the index: one line for each topic, none for a missing one. Existing lines keep their wording.

    `topics`: for each slug the line to add if there is none; `unread`: slugs of which a line is kept, but none added.
    """
    seen: set[str] = set()
    gone = set()
    for one in index_lines(text):
        slug = one.file.removesuffix(".md")
        if slug in seen or not (slug in topics or slug in unread):
            gone.add(one.number)
        seen.add(slug)
    kept = "\n".join(row for number, row in enumerate(text.split("\n")) if number not in gone)
    for slug in sorted(set(topics) - seen):
        kept = with_line(kept, slug, topics[slug])
    return kept


def over_the_limit(text: str) -> str:
    """Describe how much of the index sessions do not load; '' if they load all of it."""
    shown = strip_comments(text).strip("\n")
    lines, size = shown.count("\n") + 1, len(shown.encode("utf-8", "surrogatepass"))
    if lines > INDEX_LINES:
        return f"the index has {lines} lines; sessions see the first {INDEX_LINES}"
    return f"the index has {size} bytes; sessions see the first {INDEX_BYTES}" if size > INDEX_BYTES else ""


def _closed(text: str) -> str:
    """Close a code block that is open at the end of `text`, so that an added line is not code."""
    for start, end, what in find_regions(text):
        if what == "code" and end == len(text):
            fence = re.search(r"`{3,}|~{3,}", text[start:end])
            closing = text.rstrip("\n").rsplit("\n", 1)[-1].strip(" \t>")
            if fence and not (closing.startswith(fence.group()) and not closing.strip(fence.group()[0])):
                return text.rstrip("\n") + "\n" + fence.group() + "\n"
    return text
