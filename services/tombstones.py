"""Remember the evidence that `memory undo` removed, so that it is not written again from the same records.

It is kept in a note of the vault like other decisions: deleting the state folder does not revert it, deleting a line of
the note does. The lines hold ids of sessions and records, not the removed words. Reading old sessions again, or a whole
transcript by hand, skips those records; the same statement in a new record counts.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from ..pipelines.candidate import Candidate
from ..pipelines.routing import Action, RoutedCandidate, tier_of
from ..runtime.errors import EntryInvalid, EntryNotFound, PathRefused
from ..runtime.layout import META, original_name
from ..vault.entry import hash_of, parse_text
from ..vault.marker import is_session_id
from ..vault.note_text import decode_note
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .journal import Change, text_of
from .retrying import retry_edit

log = logging.getLogger(__name__)

NOTE = f"{META}/taken-back.md"
EMPTY = """\
---
kind: taken-back
---

# Taken back

What `memory undo` took out of these sessions, by the ids of their records: it is not written again when they are read
again. Delete a line, or this note, and it may be. A line to which something is added does not count either.

"""
"""The note without lines."""
WHY = f"you took it back: {NOTE}"
_RECORD = r"[A-Za-z0-9_:-]{1,128}"
"""Without dots: an imported file is its own record, and its name may reveal its content."""
_LINE = re.compile(rf"[ \t]*[-*+][ \t]+`(?P<session>[A-Za-z0-9._-]{{1,128}})`:(?P<records>(?:[ \t]+`{_RECORD}`)+)\s*")
_UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""A record id that only a copy of the record can share. Some hosts merely count their records."""

Evidence: TypeAlias = "tuple[str, str]"
"""Session and record."""


def record_removal(store: VaultStore, evidence: Iterable[Evidence]) -> list[Change]:
    """Return the change that records evidence as removed; none if nothing is new. Commit it in the act that removes the
    evidence from the vault: after a kill, both are done or neither.

    Raises EntryInvalid, PathRefused, VaultUnavailable.
    """
    text = text_of(store, NOTE)
    before = evidence_of(text or "")
    after = before | {each for each in evidence if _is_writable(each)}
    if after == before:
        return []
    return [Change(NOTE, text, _trusted(text_with(EMPTY if text is None else text, after)))]


def removed_evidence(store: VaultStore) -> set[Evidence]:
    """Return all removed evidence, from the note and its sync conflict copies. Raises VaultUnavailable."""
    found: set[Evidence] = set()
    for path in (NOTE, *_copies(store)):
        try:
            data = store.read_bytes(path)
        except EntryNotFound:
            continue
        except (EntryInvalid, PathRefused) as error:
            log.warning("passed over: %s", error)
            continue
        found |= evidence_of(decode_note(data))
    return found


def separate(store: VaultStore, candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[RoutedCandidate]]:
    """Split candidates into those that may be written and those on removed evidence. Raises VaultUnavailable."""
    known = {identity(each) for each in removed_evidence(store)} if candidates else set()
    kept, gone = [], []
    for each in candidates:
        # The last record identifies the statement: earlier ones only show what it is about.
        if identity((each.session, each.records[-1])) in known:
            gone.append(RoutedCandidate(each, tier_of(each)[0], Action.NOTHING, "", WHY))
        else:
            kept.append(each)
    return kept, gone


def forget_removals(store: VaultStore) -> None:
    """Forget all removals. The user's own lines in the note stay.

    Raises EditConflict, EntryInvalid, PathRefused, VaultUnavailable.
    """
    with store.lock():
        store.require_vault()
        for note in (NOTE, *_copies(store)):
            retry_edit(partial(_forget_in, store, note))


def _copies(store: VaultStore) -> Iterator[str]:
    with suppress(OSError):
        for name in sorted(os.listdir(store.vault / META)):
            if original_name(name) == NOTE.rpartition("/")[2]:
                yield f"{META}/{name}"


def _forget_in(store: VaultStore, note: str) -> None:
    text = text_of(store, note)
    if text is None or not evidence_of(text):
        return
    rest = text_with(text, ())
    if rest == EMPTY:
        store.remove(note, hash_of(text))
    else:
        store.write_text(note, _trusted(rest), hash_of(text))


def _trusted(text: str) -> Scrubbed:
    return Scrubbed.trusted(text, reason="ids, our own words, and what the user wrote beside them")


def identity(evidence: Evidence) -> Evidence:
    """Return an identity that a copy of the record in another session shares, as when a session is resumed."""
    session, record = evidence
    return ("" if _UNIQUE.fullmatch(record) else session, record)


def evidence_in(path: str, text: str) -> set[Evidence]:
    """Return the evidence of the note at `path`, as far as it can be recorded."""
    note = parse_text(path, text)
    found = {(source.session, record) for source in note.sources for record in source.records}
    return {each for each in found if _is_writable(each)}


def evidence_of(text: str) -> set[Evidence]:
    """Return the evidence in the note's lines. The user's own lines are ignored."""
    return {each for line in text.split("\n") for each in _said_in(line)}


def text_with(text: str, evidence: Collection[Evidence]) -> str:
    """Return the note with these lines, sorted, in place of its own; all other lines byte for byte."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    place = next((at for at, line in enumerate(lines) if _said_in(line)), None)
    others = [line for line in lines if line and not _said_in(line)]
    above = others if place is None else lines[:place]
    ending = "\r\n" if lines[0].endswith("\r\n") else "\n"
    if evidence and above and not above[-1].endswith("\n"):
        above = [*above[:-1], above[-1] + ending]
    return "".join([*above, *(line + ending for line in _lines(evidence)), *others[len(above) :]])


def _lines(evidence: Collection[Evidence]) -> Iterator[str]:
    records: dict[str, list[str]] = {}
    for session, record in sorted(evidence):
        records.setdefault(session, []).append(record)
    for session, of_session in records.items():
        yield f"- `{session}`: {' '.join(f'`{record}`' for record in of_session)}"


def _said_in(line: str) -> list[Evidence]:
    match = _LINE.fullmatch(line)
    if match is None or not is_session_id(match["session"]):
        return []
    return [(match["session"], record.strip("`")) for record in match["records"].split()]


def _is_writable(evidence: Evidence) -> bool:
    session, record = evidence
    return is_session_id(session) and re.fullmatch(_RECORD, record) is not None
