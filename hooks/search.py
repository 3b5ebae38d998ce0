"""Recall without the service: FTS5 over index.db, or the files themselves where there is no index.

Both apply the scope of a hook (status `active`, no special folder, no other project), read the file of every hit before
it is shown, and stop at a deadline with the hits so far.
"""

from __future__ import annotations

import os
import time

from ..vault.automemory import ON_DEMAND_KINDS, kind_by_path
from ..vault.cjk import cut_cjk, without_chance_pairs
from ..vault.layout import ALWAYS_LOAD
from ..vault.normal_form import normal_form
from ..vault.project import project_of_note
from .entryfile import EntryFile, is_entry_name, read_entry_file
from .keywords import MIN_SKILL_COVERAGE, max_common_entries, rank, significant_words, split_words
from .sqlite import open_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    Id = TypeVar("Id", int, str)

SCOPE = (
    "(m.status IS NULL OR m.status = 'active') AND m.special IN ('', ?) AND (m.project IS NULL OR m.project IN ('', ?))"
    " AND (m.kind IS NULL OR m.kind NOT IN ('topic', 'topic-index', 'session-cost'))"
)
"""What a hook may show: not the index of the agent's own notes, which the session has since its start, and not those
notes themselves, which are read on demand. Parameters: `_always-load` or '', and the project."""
COUNT = f"SELECT count(*) FROM entry_meta m WHERE {SCOPE}"
MATCH = (
    "SELECT DISTINCT m.rowid FROM chunk_fts f JOIN chunk c ON c.rowid = f.rowid JOIN entry_meta m"
    f" ON m.rowid = c.entry_rowid WHERE chunk_fts MATCH ? AND {SCOPE} LIMIT ?"
)
META = "SELECT path, project, session FROM entry_meta WHERE rowid = ?"
BEST_CHUNK = (
    "SELECT c.text FROM chunk_fts f JOIN chunk c ON c.rowid = f.rowid"
    " WHERE chunk_fts MATCH ? AND c.entry_rowid = ? ORDER BY rank LIMIT 1"
)
SKILL_KIND = "skill"
"""As in vault/entry.py, which takes too long to import for a hook."""
SEARCHED_FILES = "searched the files"
EXCERPT_CHARACTERS = 1600
"""Of a longer entry only the passage that matched is shown."""
LOCK_PATIENCE_SECONDS = 0.02
SCAN_FILE_LIMIT = 5000
SCAN_READ_BYTES = 32 * 1024


class FallbackQuery:
    """What to search for, and where."""

    __slots__ = ("deadline", "exclude", "k", "project", "search_always_load", "text", "vault")

    def __init__(self, text: str, vault: str, project: str, k: int, exclude: set[str], deadline: float) -> None:
        self.text = text
        self.vault = vault
        self.project = project
        self.k = k
        self.exclude = exclude
        """Vault-relative paths of entries that the session has already."""
        self.deadline = deadline
        """time.monotonic() at which to stop."""
        self.search_always_load = False
        """Search `_always-load` too? Only where it is recorded which of its entries the session has."""

    @property
    def scope_parameters(self) -> tuple[str, str]:
        """The parameters of SCOPE."""
        return ALWAYS_LOAD if self.search_always_load else "", self.project


class FallbackHits:
    """Hits, best first; `degraded`: what was missing, in words; `searched`: False when neither index nor files were."""

    __slots__ = ("degraded", "hits", "searched")

    def __init__(self, hits: list[EntryFile], degraded: str, searched: bool) -> None:
        self.hits = hits
        self.degraded = degraded
        self.searched = searched


def search(query: FallbackQuery, index_db: str) -> FallbackHits:
    """Search the index, or the files if there is no usable one. Never raises."""
    if not os.path.isdir(query.vault):
        if os.path.exists(query.vault):
            return FallbackHits([], f"recall engine error: the vault {query.vault} is not a folder", False)
        return FallbackHits([], f"vault path not found: {query.vault}", False)
    words = significant_words(query.text)
    if not words:
        return FallbackHits([], "", True)
    why = "no index yet"
    if os.path.exists(index_db):
        try:
            return FallbackHits(_search_index(query, words, index_db), "keywords only", True)
        except Exception as error:  # noqa: BLE001  A damaged index is a case that this path is for.
            why = f"index unusable ({error})"
            if "no such module" in str(error):
                return FallbackHits([], f"this Python's SQLite has no FTS5 ({error}): nothing was searched", False)
    try:
        return FallbackHits(_search_files(query, words), f"{why}: {SEARCHED_FILES}", True)
    except Exception as error:  # noqa: BLE001
        return FallbackHits([], f"recall engine error: {error}", False)


def _search_index(query: FallbackQuery, words: list[str], index_db: str) -> list[EntryFile]:
    from math import log

    connection = open_database(index_db, "ro", LOCK_PATIENCE_SECONDS)
    total = connection.execute(COUNT, query.scope_parameters).fetchone()[0]
    limit = max_common_entries(total) + 1
    rowids_by_word: dict[str, list[int]] = {}
    for word in words:
        if time.monotonic() > query.deadline:
            break
        rows = connection.execute(MATCH, (f'"{word}"', *query.scope_parameters, limit)).fetchall()
        rowids_by_word[word] = [row[0] for row in rows]
    rowids_by_word = _without_chance_pairs(rowids_by_word)
    match = " OR ".join(f'"{word}"' for word in words)

    def read_ranked() -> Iterator[tuple[EntryFile, float]]:
        for rowid, score in rank(rowids_by_word, total, log):
            path, project, session = connection.execute(META, (rowid,)).fetchone()
            hit = _read_current(query, path)
            if hit is None:
                continue
            hit.session = session or ""
            if len(hit.body) > EXCERPT_CHARACTERS:
                row = connection.execute(BEST_CHUNK, (match, rowid)).fetchone()
                hit.excerpt = _excerpt(hit.body, row[0] if row else "")
            yield hit, score + (0.05 if project and project == query.project else 0.0)

    return _take_best(query, read_ranked())


def _read_current(query: FallbackQuery, path: str) -> EntryFile | None:
    """The entry as it is in its file now; None when it may not be shown (any more)."""
    if path in query.exclude or kind_by_path(path):
        return None
    hit = read_entry_file(query.vault, path)
    if hit is None or hit.status != "active" or hit.kind in ON_DEMAND_KINDS or hit.project not in ("", query.project):
        return None
    return hit


def _take_best(query: FallbackQuery, hits: Iterator[tuple[EntryFile, float]]) -> list[EntryFile]:
    """The best k of (hit, score) pairs, which come sorted but for what this project's entries gain: so 2 k are read.

    Of skills only the best one is taken, and only if it covers MIN_SKILL_COVERAGE of the prompt.
    """
    kept: list[tuple[EntryFile, float]] = []
    has_skill = False
    for hit, score in hits:
        is_skill = hit.kind == SKILL_KIND
        if not is_skill or (score >= MIN_SKILL_COVERAGE and not has_skill):
            kept.append((hit, score))
            has_skill |= is_skill
        if len(kept) >= 2 * query.k or time.monotonic() > query.deadline:
            break
    kept.sort(key=lambda pair: -pair[1])
    return [hit for hit, _ in kept[: query.k]]


def _excerpt(body: str, chunk: str) -> str:
    """The indexed passage `chunk` if `body` still has it, else the beginning of `body`."""
    if chunk and chunk.strip() in body:
        return chunk.strip()
    return body[:EXCERPT_CHARACTERS].rsplit("\n", 1)[0] + " …"


def _search_files(query: FallbackQuery, words: list[str]) -> list[EntryFile]:
    from math import log

    stems = {word: _stem(word) for word in words}
    paths_by_word: dict[str, list[str]] = {word: [] for word in words}
    total = 0
    for path in _walk_entries(query.vault, query.deadline, (ALWAYS_LOAD,) if query.search_always_load else ()):
        if project_of_note(path) not in ("", query.project) or kind_by_path(path):
            continue
        try:
            # O_NONBLOCK: a named pipe called x.md must not hang the reader.
            file = os.open(f"{query.vault}/{path}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                text = normal_form(os.read(file, SCAN_READ_BYTES).decode("utf-8", "replace")).lower()
            finally:
                os.close(file)
        except OSError:
            continue
        total += 1
        possible = [word for word in words if stems[word] in text]
        if possible:
            text_stems = {_stem(run[start:end]) for run in split_words(text) for start, end in cut_cjk(run)}
            for word in possible:
                if stems[word] in text_stems:
                    paths_by_word[word].append(path)
    pairs = rank(_without_chance_pairs(paths_by_word), total, log)
    readable = ((hit, score) for path, score in pairs if (hit := _read_current(query, path)) is not None)
    hits = _take_best(query, readable)
    for hit in hits:
        if len(hit.body) > EXCERPT_CHARACTERS:
            hit.excerpt = _excerpt(hit.body, "")
    return hits


def _without_chance_pairs(entries_by_word: dict[str, list[Id]]) -> dict[str, list[Id]]:
    kept = without_chance_pairs(list(entries_by_word), lambda word: bool(entries_by_word[word]))
    return {word: entries_by_word[word] for word in kept}


def _walk_entries(vault: str, deadline: float, special: tuple[str, ...]) -> Iterator[str]:
    """Yield vault-relative paths of entries in no special folder but `special`, until `deadline` or SCAN_FILE_LIMIT."""
    count = 0
    for folder, folders, names in os.walk(vault):
        folders[:] = sorted(name for name in folders if name[0] not in "._" or name in special)
        inside = folder[len(vault) :].strip("/")
        for name in sorted(names):
            if is_entry_name(name):
                yield f"{inside}/{name}" if inside else name
                count += 1
                if count >= SCAN_FILE_LIMIT or time.monotonic() > deadline:
                    return


def _stem(word: str) -> str:
    """The word without its plural or verb ending, roughly: enough to find `widgets` by `widget`."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)]
    return word
