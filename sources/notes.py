"""Search the user's own notes around the vault by words. They are only read, and never copied whole."""

from __future__ import annotations

import heapq
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..runtime.paths import is_downloaded, is_note_name, read_regular
from ..vault.header import body_of
from ..vault.listing import obsidian_settings, obsidian_templates

MAX_NOTES = 20_000
MAX_NOTE_BYTES = 512 * 1024
EXCERPT_CHARACTERS = 220
LEAST_EXCERPT_CHARACTERS = 24
_WORD = re.compile(r"[^\W_][\w'-]*", re.UNICODE)
_TITLE = re.compile(r"^# +(.+?) *#*$", re.MULTILINE)


class NoteMatch(NamedTuple):
    """A note with words of the query. `link`: its path for a wikilink, without `.md`."""

    title: str
    link: str
    excerpt: str


@dataclass(frozen=True)
class NotesScan:
    """Matches of a scan, best first, the number of notes read, and whether it read all notes."""

    matches: tuple[NoteMatch, ...]
    notes: int
    complete: bool


def scan_notes(root: Path, leave_out: Sequence[Path], words: Sequence[str], *, most: int, deadline: float) -> NotesScan:
    """Return the `most` notes below `root` that share most with `words`, and at least two of them if there are two.

    Left out: `leave_out`, what Obsidian's settings exclude and its templates, dot-folders, symbolic links, and files
    that are large, binary, not downloaded or unreadable. Stops at `deadline` (time.monotonic) or MAX_NOTES.
    """
    wanted = {_stem(word) for word in words}
    excluded = {os.path.realpath(path) for path in leave_out}
    seen: list[tuple[str, set[str]]] = []
    notes, complete = 0, True
    documents: Counter[str] = Counter()
    for path in _notes(os.path.realpath(root), excluded, left_out_in_obsidian(root)):
        if notes >= MAX_NOTES or time.monotonic() > deadline:
            complete = False
            break
        text = read_note(path)
        if text is None:
            continue
        notes += 1
        shared = wanted & {_stem(word) for word in _WORD.findall(f"{Path(path).stem}\n{text}".lower())}
        documents.update(shared)
        if shared and len(shared) >= min(2, len(wanted)):
            seen.append((path, shared))
    # A word counts for more the fewer notes have it.
    scores = {path: sum(math.log(1 + notes / documents[stem]) for stem in shared) for path, shared in seen}
    best = heapq.nsmallest(most, scores, key=lambda path: (-scores[path], path))
    matches = (_match(root, Path(path), wanted) for path in best)
    return NotesScan(tuple(match for match in matches if match), notes, complete)


def left_out_in_obsidian(root: Path) -> Callable[[str], bool]:
    """Return whether Obsidian's settings exclude a path: relative to the vault, of a folder with `/` at its end.

    These are "Excluded files" (beginnings of paths, or /regular expressions/) and the folders of templates.
    """
    filters = obsidian_settings(root, "app.json").get("userIgnoreFilters")
    texts = [one for one in filters if isinstance(one, str) and one] if isinstance(filters, list) else []
    texts += [f"{folder}/" for folder in obsidian_templates(root)]
    beginnings = tuple(text.casefold() for text in texts if not _is_expression(text))
    expressions = []
    for text in filter(_is_expression, texts):
        with suppress(re.error):  # Written for JavaScript; one that Python does not accept is ignored.
            expressions.append(re.compile(text[1:-1], re.IGNORECASE))
    return lambda path: path.casefold().startswith(beginnings) or any(found.search(path) for found in expressions)


def _is_expression(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "/"


def _notes(root: str, excluded: set[str], left_out: Callable[[str], bool]) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        inside = "" if folder == root else os.path.relpath(folder, root).replace(os.sep, "/") + "/"
        folders[:] = sorted(
            name
            for name in folders
            if name[0] != "." and os.path.join(folder, name) not in excluded and not left_out(f"{inside}{name}/")
        )
        for name in sorted(names):
            path = os.path.join(folder, name)
            if is_note_name(name) and path not in excluded and not left_out(inside + name):
                yield path


def read_note(path: str) -> str | None:
    """Return a note's text; None for a link, a special, large, binary or unreadable file, or one only in the cloud."""
    try:
        status = os.stat(path)
        if not is_downloaded(status) or status.st_size > MAX_NOTE_BYTES:
            return None
        data, _ = read_regular(Path(path), MAX_NOTE_BYTES)
    except OSError:
        return None
    return None if b"\0" in data[:4096] else data.decode("utf-8", "replace")


def _match(root: Path, path: Path, wanted: set[str]) -> NoteMatch | None:
    text = read_note(str(path))
    if text is None:
        return None
    body = body_of(text)
    heading = _TITLE.search(body)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=[-*#>] )", body)]
    best = max(
        (part for part in paragraphs if not part.startswith("# ")),
        key=lambda part: len({_stem(word) for word in _WORD.findall(part.lower())} & wanted),
        default="",
    )
    link = os.path.relpath(path, os.path.realpath(root)).removesuffix(".md").replace(os.sep, "/")
    # Not more than half of a short note.
    limit = min(EXCERPT_CHARACTERS, len(" ".join(paragraphs)) // 2)
    excerpt = _around(best, wanted, limit) if limit >= LEAST_EXCERPT_CHARACTERS else ""
    return NoteMatch(heading[1] if heading else path.stem, link, excerpt)


def _around(text: str, wanted: set[str], limit: int) -> str:
    """Return the part of a paragraph around the first of the words, of at most `limit` characters."""
    if len(text) <= limit:
        return text
    place = next((m.start() for m in _WORD.finditer(text) if _stem(m.group().lower()) in wanted), 0)
    start = max(0, min(place - limit // 4, len(text) - limit))
    part = text[start : start + limit]
    if start:
        part = "…" + part.partition(" ")[2]
    return part.rpartition(" ")[0] + "…" if start + limit < len(text) else part


def _stem(word: str) -> str:
    """Remove the plural or verb ending of a word, roughly."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)]
    return word
