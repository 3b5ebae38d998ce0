"""Edit `Ideas.md`, the user's own list of ideas. Pure.

Only whole sections are inserted. All other bytes of the file stay, in their order and with their line ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from ..runtime.layout import TRASH
from ..vault.note_text import unfenced
from ..vault.wording import cut
from .candidate import without_opening

NEW_FILE = "# Ideas\n"
SUMMARY_SENTENCES = 2
SUMMARY_CHARACTERS = 400
HEADING_CHARACTERS = 140
LINK_LABEL = "See deep research: "
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_DATED = re.compile(r" {0,3}##[ \t]+(\d{4}-\d{2}-\d{2})\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9`])")
# Beginnings of a block, a comment or a formula, which would change how the user's text below is shown.
_BLOCK_START = re.compile(r"\A(?=[#>*+=|~`-])")
_OPENER = re.compile(r"<(?=[!/?A-Za-z])|%%|\$\$|`{3,}|~{3,}")


@dataclass(frozen=True)
class Section:
    """Lines [start, end) of the file: a heading and all up to the next one of its level."""

    start: int
    end: int
    day: str | None
    """ISO date in its heading; None for a section of the user."""


def summary_of(statement: str) -> str:
    """Cut a statement to its first two sentences, on one line."""
    return cut(" ".join(_SENTENCE_END.split(" ".join(statement.split()))[:SUMMARY_SENTENCES]), SUMMARY_CHARACTERS)


def first_sentence(pitch: str) -> tuple[str, str]:
    """Split a pitch into its first sentence, as a heading without opening words and full stop, and the rest."""
    heading, *rest = _SENTENCE_END.split(" ".join(without_opening(pitch).split()) or pitch)
    heading = cut(heading, HEADING_CHARACTERS)
    return (heading[:1].upper() + heading[1:]).rstrip("."), " ".join(rest)


def section_text(day: date, title: str, summary: str, link: str) -> str:
    """Render the section of one idea. `link`: path of its note for a wikilink."""
    heading = _harmless(" ".join(title.split()))
    return f"## {day.isoformat()}: {heading}\n{_harmless(summary_of(summary))}\n{LINK_LABEL}[[{link}]]\n"


def _harmless(line: str) -> str:
    line = _OPENER.sub(lambda found: "\\" + "\\".join(found.group()), line)
    return _BLOCK_START.sub(r"\\", line)


def with_section(text: str | None, section: str, day: date) -> str:
    """Insert the section before the first later date, else at the end. `text`: None if there is no file."""
    if text is None or text == "":
        return f"{NEW_FILE}\n{section}"
    newline = _newline_of(text)
    section = section.replace("\n", newline)
    lines = _lines(text)
    at = _place(lines, day)
    before, after = "".join(lines[:at]), "".join(lines[at:])
    return before + _gap(before, newline) + section + (newline + after if after else "")


def _lines(text: str) -> list[str]:
    """Split into lines with their ends. Only LF ends a line; other separators may be in a sentence."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _place(lines: list[str], day: date) -> int:
    """Return the number of the line before which a section of this day belongs.

    It is directly below the previous section, so that no text of the user is separated from its heading. It is the end
    of the file if the list is in another order.
    """
    later: Section | None = None
    place: int | None = None
    for section in reversed(sections(lines)):
        if section.day is None:
            continue
        if section.day <= day.isoformat():
            place = section.end
            break
        if later is not None and section.day > str(later.day):
            return len(lines)
        later = section
    if later is None:
        return len(lines)
    return later.start if place is None else place


def _gap(before: str, newline: str) -> str:
    """Return the line ends to insert for a blank line before the section."""
    if not before.removeprefix("\ufeff"):
        return ""
    if not before.endswith(("\n", "\r")):
        return newline * 2
    return "" if before.endswith((newline * 2, "\n\n")) else newline


def _newline_of(text: str) -> str:
    """Return the most frequent line end."""
    windows = text.count("\r\n")
    return "\r\n" if windows * 2 > text.count("\n") else "\n"


def sections(lines: list[str]) -> list[Section]:
    """Return the sections of level two, outside fenced code, in order."""
    starts: list[tuple[int, int, str | None]] = []
    for number, bare in unfenced(line.rstrip("\r\n") for line in lines):
        if (heading := _HEADING.match(bare)) is not None and len(heading[1]) <= 2:
            dated = _DATED.match(bare)
            starts.append((number, len(heading[1]), dated[1] if dated else None))
    ends = [start for start, _, _ in starts[1:]] + [len(lines)] * bool(starts)
    return [Section(start, end, day) for (start, level, day), end in zip(starts, ends, strict=True) if level == 2]


def links_to(link: str) -> re.Pattern[str]:
    """Compile a pattern for `[[link]]`, with or without `.md`, a heading or an alias; for what `_shown` makes of it if
    the note was deleted, too."""
    name = re.escape(link.removesuffix(".md"))
    return re.compile(rf"\[\[\s*{name}(?:\.md)?\s*(?:[|#][^\]]*)?\]\]|`{name}\.md` \(deleted\)")


def _shown(link: str) -> str:
    return f"`{link}` (deleted)" if f"/{TRASH}/" in link else f"[[{link}]]"


def has_section(text: str | None, link: str) -> bool:
    """Whether a section of ours links to the idea."""
    return text is not None and _link_line(_lines(text), link) is not None


def _link_line(lines: list[str], link: str) -> tuple[Section, int] | None:
    wanted = links_to(link)
    for section in reversed(sections(lines)):  # The newest: an earlier idea may have had this name.
        for number in range(section.start + 1, section.end):
            if lines[number].lstrip().startswith(LINK_LABEL.strip()) and wanted.search(lines[number]):
                return section, number
    return None


def promoted_line(day: date, folder: str) -> str:
    """Render the line that annotates a promoted idea."""
    return f"→ promoted {day.isoformat()} to {folder}/"


def relinked(text: str, link: str, new_link: str, line: str = "") -> str | None:
    """Replace the idea's link by `new_link` and insert `line` below it; a link that the user has rewritten stays.

    One to a deleted idea becomes text in any case, since it would lead nowhere once the trash is emptied. None without
    a section, or if nothing changes.
    """
    lines = _lines(text)
    found = _link_line(lines, link)
    if found is None:
        return None
    _, number = found
    written = lines[number].strip()
    # Obsidian removes the ending `.md` when the idea's folder is renamed.
    ours = (_shown(link), f"[[{link}]]", f"[[{link.removesuffix('.md')}]]")
    if f"/{TRASH}/" in new_link or written.removeprefix(LINK_LABEL) in ours:
        lines[number] = links_to(link).sub(lambda _: _shown(new_link), lines[number])
    if line:
        newline = _newline_of(text)
        has_end = lines[number].endswith(("\n", "\r"))
        lines[number] += line + newline if has_end else newline + line
    changed = "".join(lines)
    return None if changed == text else changed


def without_section(text: str, link: str) -> str | None:
    """Remove the idea's section if it is as it was written; None if it is gone or has more lines."""
    lines = _lines(text)
    found = _link_line(lines, link)
    if found is None:
        return None
    section, number = found
    rest = [line for line in lines[number + 1 : section.end] if line.strip()]
    if number != section.start + 2 or rest or section.day is None:
        return None
    before, after = "".join(lines[: section.start]), "".join(lines[section.end :])
    newline = _newline_of(text)
    # Also the blank line before it.
    if not after and before.endswith(newline * 2):
        before = before[: -len(newline)]
    return before + after
