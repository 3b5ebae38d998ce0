"""A note whose evidence makes its header longer than what is first read of a file is still recognised."""

from uuid import UUID

import pytest

from memoryvault.pipelines.review import Reject
from memoryvault.pipelines.routing import MOST_PIECES
from memoryvault.vault.entry import Source
from memoryvault.vault.registry import HEADER_BYTES, find_by_fingerprint

from .support import CHOICE, RULE, Bed, said

pytestmark = pytest.mark.slow

MANY = 300


def grown(bed: Bed, status: str, sources: int = MANY) -> str:
    """Path of the only note of this status, which now has so much evidence."""
    entry = bed.only(status)
    evidence = [Source("claude", str(UUID(int=n)), (str(UUID(int=n + sources)),)) for n in range(sources)]
    bed.store.update(entry.path, entry.content_hash, fields={"source": evidence, "occurrences": sources})
    return entry.path


@pytest.mark.parametrize("sources", [100, 115, 130, 134, 138, MANY])
@pytest.mark.parametrize("statement", [RULE.statement, "please always use pnpm, and not npm"])
def test_said_again_it_is_one_note(bed: Bed, sources: int, statement: str) -> None:
    bed.remember(said(RULE, "a"))
    path = grown(bed, "active", sources)
    bed.remember(said(RULE, "b", statement))
    entry = bed.only("active")
    assert (entry.path, entry.occurrences, len(bed.files())) == (path, sources + 1, 1)


def test_its_reversal_is_put_to_the_user(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    path = grown(bed, "active")
    bed.remember(said(RULE, "b", "Actually, always use npm, not pnpm."))
    assert bed.only("pending").supersedes == path


def test_rejected_it_is_not_proposed_again(bed: Bed) -> None:
    bed.remember(said(CHOICE, "a"))
    bed.reviewer.decide(grown(bed, "pending"), Reject(), run="test")
    rejected = bed.only("rejected")
    assert rejected.fingerprint is not None
    assert [entry.path for entry in find_by_fingerprint(bed.store, rejected.fingerprint)] == [rejected.path]
    files = bed.files()
    bed.remember(said(CHOICE, "b"))
    assert bed.files() == files


def test_a_decision_at_the_end_of_its_header_is_seen(bed: Bed) -> None:
    bed.remember(said(CHOICE, "a"))
    path = grown(bed, "pending")
    assert (bed.vault / path).read_bytes().index(b"\n---\n") > HEADER_BYTES
    bed.edit(path, "\n---\n", "\ndecision: approve\n---\n")
    bed.reviewer.apply_notes()
    assert bed.only("active").occurrences == MANY


def test_note_full_of_evidence_is_neither_rewritten_nor_counted(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    grown(bed, "active", MOST_PIECES)
    files = bed.files()
    assert bed.remember(said(RULE, "b"), said(RULE, "c")).written == ()
    assert bed.files() == files
