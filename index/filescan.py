"""Searches the notes' files where there is no index, within a limit of files and time."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..runtime.cjk import without_chance_pairs
from ..runtime.normal_form import normal_form
from ..runtime.paths import is_note_name, is_text, read_regular
from ..vault.entry import Entry, parse_entry
from ..vault.header import is_open
from .query import QueryAnalysis, Term, inverse_document_frequency
from .scope import Scope
from .stemming import stems
from .store import row_of

MAX_FILES = 3_000
MAX_FILE_BYTES = 256_000
SCAN_SECONDS = 0.15
_TITLE_WEIGHT, _TAG_WEIGHT, _BODY_WEIGHT = 3.0, 2.0, 1.0


@dataclass(frozen=True)
class ScannedEntry:
    """An entry that was found by reading its file."""

    entry: Entry
    score: float
    """Share of the query's words that the entry has, weighted by where, 0..1."""
    coverage: float
    """Share of the query's words that the entry has, weighted by their rarity in the files that were read, 0..1."""

    @property
    def text(self) -> str:
        """Title, tags and body, as in the keyword index."""
        return "\n".join((self.entry.name, " ".join((*self.entry.tags, *self.entry.aliases)), self.entry.body))


@dataclass(frozen=True)
class FileScan:
    """What a scan of the files found."""

    entries: Sequence[ScannedEntry]
    """Best first."""
    is_complete: bool
    """Whether every file was read."""
    total: int
    """Files that were read."""
    counts: Mapping[str, int]
    """Number of files by stem of the query's words."""


def scan_files(vault: Path, query: QueryAnalysis, scope: Scope, *, seconds: float = SCAN_SECONDS) -> FileScan:
    """Find the entries that have a word of the query.

    For a query without words they are those that the filter admits, by path. Stops after `seconds` or MAX_FILES.
    """
    deadline = time.monotonic() + seconds
    needles = [_common_prefix(term) for term in query.terms]
    if not needles and scope.filter is None:
        return FileScan((), True, 0, {})
    file_counts = [0] * len(needles)
    total = 0
    candidates: list[tuple[Entry, list[bool], float]] = []
    is_complete = True
    for number, relative in enumerate(_note_paths(vault)):
        if number >= MAX_FILES or time.monotonic() > deadline:
            is_complete = False
            break
        try:
            data, _ = read_regular(vault / relative, MAX_FILE_BYTES)
        except OSError:
            continue
        if len(data) == MAX_FILE_BYTES and is_open(data.decode("utf-8", "replace")):
            continue  # Its header goes on: whose it is, and whether it is active, is not known.
        total += 1
        lowered = data.lower() if data.isascii() else normal_form(data.decode("utf-8", "replace")).lower().encode()
        present = [needle in lowered for needle in needles]
        if needles and not any(present):
            continue
        file_counts = [count + has for count, has in zip(file_counts, present, strict=True)]
        entry = parse_entry(relative, data)
        if scope.admits(row_of(entry)):
            has_term, score = _match_terms(entry, query.terms)
            if score > 0 or not needles:  # by the filter alone
                candidates.append((entry, has_term, score))
    counts = dict(zip(query.words, file_counts, strict=True))
    words = set(without_chance_pairs(query.words, lambda word: counts[word] > 0))
    rarity = [inverse_document_frequency(count, total) if word in words else 0.0 for word, count in counts.items()]
    scanned = [
        ScannedEntry(entry, score, sum(itertools.compress(rarity, has_term)) / (sum(rarity) or 1.0))
        for entry, has_term, score in candidates
    ]
    scanned.sort(key=lambda match: (-match.score, match.entry.path))
    stem_counts = {term.stem: count for term, count in zip(query.terms, file_counts, strict=True)}
    return FileScan(scanned, is_complete, total, stem_counts)


def _common_prefix(term: Term) -> bytes:
    """The prefix that all forms of the word share, as UTF-8."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(term.word, term.stem, strict=False))
    return "".join(letter for letter, _ in alike).encode() or term.word.encode()


def _match_terms(entry: Entry, terms: Sequence[Term]) -> tuple[list[bool], float]:
    """Whether the entry has each of the terms, and a score of 0..1, weighted by where it has them."""
    fields = [
        (set(stems(entry.name)), _TITLE_WEIGHT),
        (set(stems(" ".join((*entry.tags, *entry.aliases)))), _TAG_WEIGHT),
        (set(stems(entry.body)), _BODY_WEIGHT),
    ]
    weights = [max((weight for words, weight in fields if term.stem in words), default=0.0) for term in terms]
    return [weight > 0 for weight in weights], math.sqrt(sum(weights) / (_TITLE_WEIGHT * max(1, len(terms))))


def _note_paths(vault: Path) -> Iterator[str]:
    """Vault-relative paths of the notes in a fixed order; the same that are indexed: no links or copies."""
    for folder, folders, files in os.walk(vault):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if is_note_name(name) and is_text(path) and not os.path.islink(path):
                yield os.path.relpath(path, vault).replace(os.sep, "/")
