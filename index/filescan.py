"""Recall without an index: a bounded look through the files themselves."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..vault.entry import Entry, parse_entry
from ..vault.paths import is_note_name, read_regular
from .query import QueryAnalysis
from .scope import Scope
from .store import row_of

MAX_FILES = 3_000
MAX_FILE_BYTES = 256_000
SCAN_SECONDS = 0.15
_TITLE_WEIGHT, _TAG_WEIGHT, _BODY_WEIGHT = 3.0, 2.0, 1.0


@dataclass(frozen=True)
class ScannedEntry:
    entry: Entry
    score: float
    """0..1: the share of the query's words found, weighted by where."""


def scan_files(
    vault: Path, query: QueryAnalysis, scope: Scope, *, seconds: float = SCAN_SECONDS
) -> tuple[list[ScannedEntry], bool]:
    """Entries that hold a word of the query, best first, and whether every file was looked at."""
    deadline = time.monotonic() + seconds
    words = [word.lower() for word in query.words]
    needles = [word.encode() for word in words]
    found: list[ScannedEntry] = []
    complete = True
    for number, relative in enumerate(_markdown(vault)):
        if number >= MAX_FILES or time.monotonic() > deadline:
            complete = False
            break
        try:
            data, _ = read_regular(vault / relative, MAX_FILE_BYTES)
        except OSError:
            continue
        lowered = data.lower()
        if not any(needle in lowered for needle in needles):
            continue
        entry = parse_entry(relative, data)
        if scope.admits(row_of(entry)) and (score := _score(entry, words)) > 0:
            found.append(ScannedEntry(entry, score))
    found.sort(key=lambda scanned: (-scanned.score, scanned.entry.path))
    return found, complete


def _score(entry: Entry, words: list[str]) -> float:
    title, tags, body = entry.title.lower(), " ".join(entry.tags).lower(), entry.body.lower()
    total = 0.0
    for word in words:
        where = (word in title, word in tags, word in body)
        weights = (_TITLE_WEIGHT, _TAG_WEIGHT, _BODY_WEIGHT)
        total += max((weight for found, weight in zip(where, weights, strict=True) if found), default=0.0)
    return math.sqrt(total / (_TITLE_WEIGHT * len(words))) if words else 0.0


def _markdown(vault: Path) -> Iterator[str]:
    """Vault-relative paths of .md files in a fixed order; the same that are indexed: no link, no conflict copy."""
    for folder, folders, files in os.walk(vault):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if is_note_name(name) and not os.path.islink(path):
                yield os.path.relpath(path, vault).replace(os.sep, "/")
