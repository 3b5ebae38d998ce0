"""Recall without an index: a bounded look through the files themselves."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..vault.entry import Entry, parse_entry
from ..vault.paths import is_note_name, read_regular
from .query import QueryAnalysis, Term, inverse_frequency
from .scope import Scope
from .stemming import stems
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
    covered: float
    """0..1: the share of the query's words found, weighted by how rare each is in the files that were looked at."""


def scan_files(
    vault: Path, query: QueryAnalysis, scope: Scope, *, seconds: float = SCAN_SECONDS
) -> tuple[list[ScannedEntry], bool]:
    """Entries that hold a word of the query, best first, and whether every file was looked at.

    Without a word those that the filter admits, by their paths.
    """
    deadline = time.monotonic() + seconds
    needles = [_needle(term) for term in query.terms]
    if not needles and scope.filter is None:
        return [], True
    holding = [0] * len(needles)
    total = 0
    candidates: list[tuple[Entry, list[bool], float]] = []
    complete = True
    for number, relative in enumerate(_markdown(vault)):
        if number >= MAX_FILES or time.monotonic() > deadline:
            complete = False
            break
        try:
            data, _ = read_regular(vault / relative, MAX_FILE_BYTES)
        except OSError:
            continue
        total += 1
        lowered = data.lower()
        present = [needle in lowered for needle in needles]
        if needles and not any(present):
            continue
        holding = [count + there for count, there in zip(holding, present, strict=True)]
        entry = parse_entry(relative, data)
        if scope.admits(row_of(entry)):
            held, score = _held(entry, query.terms)
            if score > 0 or not needles:  # by the filter alone
                candidates.append((entry, held, score))
    rarity = [inverse_frequency(count, total) for count in holding]
    found = [
        ScannedEntry(entry, score, sum(itertools.compress(rarity, held)) / (sum(rarity) or 1.0))
        for entry, held, score in candidates
    ]
    found.sort(key=lambda scanned: (-scanned.score, scanned.entry.path))
    return found, complete


def _needle(term: Term) -> bytes:
    """What every form of the word begins with."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(term.word, term.stem, strict=False))
    return "".join(letter for letter, _ in alike).encode() or term.word.encode()


def _held(entry: Entry, terms: Sequence[Term]) -> tuple[list[bool], float]:
    """Which of the words it has, and how much of them, weighted by where."""
    places = [
        (set(stems(entry.name)), _TITLE_WEIGHT),
        (set(stems(" ".join((*entry.tags, *entry.aliases)))), _TAG_WEIGHT),
        (set(stems(entry.body)), _BODY_WEIGHT),
    ]
    weights = [max((weight for held, weight in places if term.stem in held), default=0.0) for term in terms]
    return [weight > 0 for weight in weights], math.sqrt(sum(weights) / (_TITLE_WEIGHT * max(1, len(terms))))


def _markdown(vault: Path) -> Iterator[str]:
    """Vault-relative paths of .md files in a fixed order; the same that are indexed: no link, no conflict copy."""
    for folder, folders, files in os.walk(vault):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if is_note_name(name) and not os.path.islink(path):
                yield os.path.relpath(path, vault).replace(os.sep, "/")
