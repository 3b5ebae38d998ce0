"""Which note of the vault holds which pattern of old sessions, by the evidence that notes name.

By that a note is known again however its words were changed. But one message may say two things, and then its record is
evidence of two notes: which is whose, their fingerprints tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ...pipelines.candidate import Candidate
from ...pipelines.corpus import Pattern, Saying
from ...runtime.layout import META, special_folder
from ...vault.entry import fingerprint
from ...vault.header import skim
from ...vault.registry import HEADER_BYTES
from ...vault.store import VaultStore
from ..tombstones import Evidence

_WORD = re.compile(rb"[A-Za-z0-9_:.-]{2,128}")


class EvidenceNotes:
    """The notes whose evidence names records of some patterns, as they are when this is made."""

    def __init__(self, store: VaultStore, patterns: Sequence[Pattern]) -> None:
        """Raises VaultUnavailable."""
        self._said: dict[Evidence, list[tuple[bool, frozenset[str]]]] = {}
        """Of each pattern that has the evidence whether it is a fix, and its fingerprints."""
        for pattern in patterns:
            for evidence in _evidence_of_pattern(pattern):
                self._said.setdefault(evidence, []).append((_is_fix(pattern), _fingerprints(pattern)))
        self._named = _named(store, self._said.keys())

    def name(self, evidence: Collection[Evidence]) -> bool:
        """Whether notes name all of it."""
        return self._named.keys() >= set(evidence)

    def name_any(self, evidence: Collection[Evidence]) -> bool:
        """Whether notes name any of it."""
        return not self._named.keys().isdisjoint(evidence)

    def path_of(self, pattern: Pattern) -> str | None:
        """The note that holds the pattern; None where none names its evidence, or only as that of another one."""
        return self._path(pattern, _evidence_of_pattern(pattern))

    def holds(self, pattern: Pattern, saying: Saying) -> bool:
        """Whether a note of the pattern names the evidence of this saying."""
        return self._path(pattern, evidence_of(saying.candidate)) is not None

    def _path(self, pattern: Pattern, evidence: Collection[Evidence]) -> str | None:
        own = _fingerprints(pattern)
        for each in sorted(evidence):
            said = (prints for is_fix, prints in self._said.get(each, ()) if not (is_fix and _is_fix(pattern)))
            others = {one for prints in said if prints.isdisjoint(own) for one in prints}
            notes = [(path, known) for path, known in self._named.get(each, ()) if known not in others]
            if notes:
                return next((path for path, known in notes if known in own), notes[0][0])
        return None


def evidence_of(candidate: Candidate) -> set[Evidence]:
    """Session and record of each piece."""
    return {(candidate.session, record) for record in candidate.records}


def _evidence_of_pattern(pattern: Pattern) -> set[Evidence]:
    """That of all its sayings."""
    return {each for saying in pattern.sayings for each in evidence_of(saying.candidate)}


def _is_fix(pattern: Pattern) -> bool:
    """What an agent found out about one problem is one note, whichever of it came first."""
    return pattern.candidate.category == "fix"


def _fingerprints(pattern: Pattern) -> frozenset[str]:
    """Of every text that its note may have been made of."""
    texts = {pattern.candidate.statement, *(saying.candidate.identity for saying in pattern.sayings)}
    return frozenset(map(fingerprint, texts))


def _named(store: VaultStore, evidence: Collection[Evidence]) -> dict[Evidence, list[tuple[str, str]]]:
    """Path and fingerprint of each note that names a piece of evidence."""
    # Some hosts' records have no id but their place in the file: without the session they say nothing.
    sessions: dict[str, set[str]] = {}
    for session, record in evidence:
        sessions.setdefault(record, set()).add(session)
    found: dict[Evidence, list[tuple[str, str]]] = {}
    for path, head in store.heads(HEADER_BYTES):
        if special_folder(path) == META:  # What lists evidence, as of what was taken back, is none.
            continue
        words = {word.decode("ascii") for word in _WORD.findall(head.split(b"\n---", 1)[0])}
        for record in words & sessions.keys():
            for session in sessions[record] & words:
                fields, _ = skim(head.decode("utf-8", "replace"))
                found.setdefault((session, record), []).append((path, fields.get("fingerprint", "")))
    store.require_vault()
    return found
