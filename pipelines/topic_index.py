"""Find, add, change and remove the lines of MEMORY.md that name topics; all other lines stay. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..vault.automemory import INDEX_BYTES, INDEX_LINES, find_regions, strip_comments

_ENTRY = re.compile(r"[ \t]*[-*+][ \t]+\[[^\n]*?\]\((?:\./)?(?P<slug>[^()/\n]+?)\.md\)[^\n]*")
MOST_HOOK_CHARACTERS = 200


def index_lines(text: str) -> list[tuple[int, str]]:
    """Return (number from 0, slug) of the lines that name topic files of the same folder, outside comments and code."""
    hidden = [(start, end) for start, end, _ in find_regions(text)]
    found = []
    position = 0
    for number, line in enumerate(text.split("\n")):
        match = _ENTRY.fullmatch(line.rstrip("\r"))
        if match is not None and not any(start <= position < end for start, end in hidden):
            found.append((number, match["slug"]))
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
    known = [number for number, named in index_lines(text) if named == slug]
    if known:
        ending = "\r" if rows[known[0]].endswith("\r") else ""
        rows[known[0]] = line + ending
        return "\n".join(row for number, row in enumerate(rows) if number not in known[1:])
    kept = _closed(text).rstrip("\n")
    return (kept + "\n" if kept else "") + line + "\n"


def without_lines(text: str, slugs: Collection[str]) -> str:
    """Remove the lines of these topics from the index."""
    gone = {number for number, slug in index_lines(text) if slug in slugs}
    return "\n".join(row for number, row in enumerate(text.split("\n")) if number not in gone)


def rebuilt(text: str, topics: Mapping[str, str], unread: Collection[str] = ()) -> str:
    """Rebuild the index: one line for each topic, none for a missing one. Existing lines keep their wording.

    `topics`: for each slug the line to add if there is none; `unread`: slugs of which a line is kept, but none added.
    """
    seen: set[str] = set()
    gone = set()
    for number, slug in index_lines(text):
        if slug in seen or not (slug in topics or slug in unread):
            gone.add(number)
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
