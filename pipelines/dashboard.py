"""Render the dashboard note, which links the vault's newest entries and all that waits for a decision. Pure.

It holds neither today's date nor this device's name, so that two devices write the same text, and an unchanged one is
not written again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..vault.wording import cut

BEGIN = "%% memoryvault: made by the program from here on; write above this line or below the last one %%"
END = "%% memoryvault: end %%"
"""Marks of the generated part: comments in Obsidian, hidden in reading view."""
HEADINGS: Mapping[str, str] = {
    "proposals": "Proposals",
    "questions": "Questions about ideas",
    "inbox": "In the inbox",
    "patterns": "Patterns to adopt",
    "ideas": "Ideas",
}
MOST_LISTED = 20
NEWEST = 10
TITLE_CHARACTERS = 120
_LINK_SYNTAX = str.maketrans({"|": "/", "[": "(", "]": ")", "\n": " ", "%": "％"})


@dataclass(frozen=True)
class DashboardItem:
    """A note in a list of the dashboard."""

    path: str
    title: str
    kind: str
    day: str
    """ISO date when it was said, else created; '' if unknown."""


def dashboard(
    living: Sequence[DashboardItem], waiting: Mapping[str, Sequence[DashboardItem]], copies: Sequence[str] = ()
) -> str:
    """Render the generated part, from BEGIN to END.

    `living`: the entries in use; `waiting`: notes that wait for the user, by place (`vault.pending.group_by_place`);
    `copies`: paths of conflict copies.
    """
    waits = any(waiting.values()) or copies
    parts = [
        "" if waits else "Nothing waits for you.",
        *(_section(HEADINGS[place], waiting.get(place, ())) for place in ("proposals", "questions")),
        _copies(copies),
        *(_section(HEADINGS[place], waiting.get(place, ())) for place in ("inbox", "patterns", "ideas")),
        _counts([note.path.split("/", 1)[0] for note in living if "/" in note.path]),
        _newest(living),
    ]
    return "\n\n".join([BEGIN, *(part for part in parts if part), END])


def with_dashboard(body: str, generated: str) -> str:
    """Replace the generated part of the note's body; the user's text around it stays.

    A body in which the end mark is missing is returned unchanged.
    """
    before, begin, rest = body.partition(BEGIN)
    if not begin:
        return f"{body.rstrip()}\n\n{generated}".strip()
    _, end, after = rest.partition(END)
    if not end:
        return body
    return f"{before.rstrip()}\n\n{generated}\n\n{after.strip()}".strip()


def _section(heading: str, notes: Sequence[DashboardItem]) -> str:
    """Render a list of notes, the oldest first."""
    if not notes:
        return ""
    lines = [_line(note) for note in sorted(notes, key=lambda note: (note.day, note.path))[:MOST_LISTED]]
    if len(notes) > MOST_LISTED:
        lines.append(f"- and {len(notes) - MOST_LISTED} more")
    return f"## {heading} ({len(notes)})\n\n" + "\n".join(lines)


def _newest(notes: Sequence[DashboardItem]) -> str:
    """Render the newest entries, the newest first."""
    if not notes:
        return ""
    by_path = sorted(notes, key=lambda note: note.path)
    newest = sorted(by_path, key=lambda note: note.day, reverse=True)[:NEWEST]
    number = f"{NEWEST} of {len(notes)}" if len(notes) > NEWEST else len(notes)
    return f"## Newest entries ({number})\n\n" + "\n".join(map(_line, newest))


def _line(note: DashboardItem) -> str:
    title = cut(note.title.translate(_LINK_SYNTAX), TITLE_CHARACTERS) or note.path
    details = ", ".join(word for word in (note.kind, note.day) if word)
    return f"- [[{note.path.removesuffix('.md')}|{title}]]" + (f" ({details})" if details else "")


def _counts(groups: Sequence[str]) -> str:
    if not groups:
        return ""
    rows = "\n".join(f"| {group} | {count} |" for group, count in sorted(Counter(groups).items()))
    return f"## Entries\n\n| group | entries |\n|---|---|\n{rows}"


def _copies(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    lines = "\n".join(f"- [[{path.removesuffix('.md')}]]" for path in sorted(paths)[:MOST_LISTED])
    return f"## Conflict copies ({len(paths)})\n\n`memory review` shows both texts.\n\n{lines}"
