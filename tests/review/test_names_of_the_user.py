"""A note that the user renamed in Obsidian is strengthened, replaced, archived and restored by its new name."""

from dataclasses import replace
from uuid import UUID

import pytest

from memoryvault.pipelines.review import Reject, Supersede
from memoryvault.pipelines.routing import MOST_PIECES
from memoryvault.runtime.errors import MemoryVaultError, PathRefused
from memoryvault.services.entry_names import find_by_fingerprint
from memoryvault.services.evolving import evolve
from memoryvault.services.journal import Change, text_of
from memoryvault.services.scrubbing import scrub_everything
from memoryvault.services.undoing import Selector
from memoryvault.vault.entry import Source
from memoryvault.vault.scrubbed import Scrubbed

from .support import CHOICE, GUESS, RULE, Bed, said

pytestmark = pytest.mark.slow

FOLDER = "personal-private/preferences"
NAMES = ["Why pnpm?", "C# and pnpm", "[pnpm]|", 'The "pnpm" rule', "pnpm: always", "Always pnpm.", " pnpm ", "a*b"]


def renamed(bed: Bed, name: str) -> str:
    """A rule that a session stated, under the name that the user gave it since."""
    bed.remember(RULE)
    (entry,) = bed.entries()
    (bed.vault / entry.path).rename(bed.vault / FOLDER / f"{name}.md")
    return f"{FOLDER}/{name}.md"


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_is_strengthened_replaced_and_evolved_under_any_name(bed: Bed, name: str) -> None:
    path = renamed(bed, name)
    bed.remember(said(RULE, "s2"), replace(said(GUESS, "s2"), records=("r2",)))
    assert bed.store.read(path).occurrences == 2
    assert len(bed.entries()) == 2
    bed.undo.carry_out(Selector(session="s2"))
    assert bed.store.read(path).occurrences == 1

    before = bed.files()[path]
    bed.remember(replace(CHOICE, statement="No, use yarn instead of pnpm", records=("r7",), session="s7"))
    done = bed.reviewer.decide(bed.only("pending").path, Supersede(path), run="t")
    assert bed.only("superseded").path == done.archived
    assert path not in bed.files()
    bed.reviewer.undo_last()
    assert bed.files()[path] == before

    archived = evolve(bed.store, bed.journal, path, Scrubbed("Use yarn."), Scrubbed("x"))
    assert "Use yarn." in bed.files()[path]
    assert "pnpm" in bed.files()[archived]


def test_a_proposal_under_any_name_is_rejected(bed: Bed) -> None:
    bed.remember(CHOICE)
    proposal = bed.vault / bed.only("pending").path
    asked = proposal.rename(proposal.with_name("Really?.md")).relative_to(bed.vault).as_posix()
    assert bed.reviewer.decide(asked, Reject(), run="t").path == bed.only("rejected").path


def test_a_secret_in_a_note_of_any_name_is_replaced(bed: Bed) -> None:
    path = renamed(bed, NAMES[0])
    key = "AKIA" + "Q4ZT7N2MXW5KJ3RB"
    bed.edit(path, "Always use pnpm", f"key {key} Always use pnpm")
    scrub_everything(bed.settings, bed.store, apply=True)
    assert key not in bed.files()[path]


def test_unwritable_file_rolls_the_act_back_and_blocks_no_other(bed: Bed) -> None:
    bed.remember(RULE)
    (entry,) = bed.entries()
    before = bed.files()
    text = text_of(bed.store, entry.path) or ""
    changed = Scrubbed.trusted(text + "More.\n", reason="a test")
    with pytest.raises(PathRefused):
        bed.journal.commit(
            [Change(entry.path, text, changed), Change(f"{FOLDER}/.hidden/x.md", None, changed)],
            run="t",
            actor="review",
            what="a test",
        )
    assert bed.files() == before
    assert not bed.journal.is_interrupted
    bed.remember(said(RULE, "s2"))
    assert bed.store.read(entry.path).occurrences == 2


def test_a_name_that_not_every_disk_stores_is_not_chosen(bed: Bed) -> None:
    with pytest.raises(MemoryVaultError, match="it holds a control character"):
        bed.store.compose(f"{FOLDER}/What?.md", {"kind": "preferences"}, None, Scrubbed("x"))


# A note whose evidence makes its header longer than what is first read of a file is still recognised


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
    assert (bed.vault / path).read_bytes().index(b"\n---\n") > 16_384
    bed.edit(path, "\n---\n", "\ndecision: approve\n---\n")
    bed.reviewer.apply_notes()
    assert bed.only("active").occurrences == MANY


def test_note_full_of_evidence_is_neither_rewritten_nor_counted(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    grown(bed, "active", MOST_PIECES)
    files = bed.files()
    assert bed.remember(said(RULE, "b"), said(RULE, "c")).written == ()
    assert bed.files() == files
