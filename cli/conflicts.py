"""The part of `memory review` for copies that a sync conflict left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..runtime.errors import EditConflict, MemoryVaultError
from ..services.conflicts import CHOICES, Choice, ConflictCopy, find_copy, settle_copy, waiting_copies
from ..services.journal import Journal
from ..vault.store import VaultStore
from ..vault.wording import counted
from .editor import Drafts
from .review_steps import Steps
from .terminal import read_key

KEYS = "[m]ine: the note  [t]heirs: the copy  [e]dit both  [s]kip  [u]ndo  [q]uit "
KIND = "sync-conflict"
SHOWN_LINES = 40


def copy_as_json(copy: ConflictCopy) -> dict[str, Any]:
    """A copy as `memory review --list --json` prints it."""
    return {
        "slug": copy.path.rsplit("/", 1)[-1].removesuffix(".md"),
        "path": copy.path,
        "kind": KIND,
        "note": copy.note,
        "difference": copy.difference,
    }


def choice_of(store: VaultStore, name: str, words: str) -> tuple[ConflictCopy, Choice] | None:
    """Return the copy and the choice of `--decide NAME=WORDS`; None if the words do not choose between two texts.

    Raises EntryNotFound, UsageError.
    """
    first = words.strip().casefold().removeprefix("keep ").removeprefix("take ")
    for choice in CHOICES:
        if first == choice:
            return find_copy(store, name), choice
    return None


def ask_about_copies(
    journal: Journal,
    copies: Sequence[ConflictCopy],
    *,
    run: str,
    drafts: Drafts,
    steps: Steps[int],
) -> bool:
    """Ask about each copy in turn, answered by one key; return whether files were changed."""
    changed = False
    paths = [copy.path for copy in copies]
    at = 0
    while at < len(paths):
        copy = next((one for one in waiting_copies(journal.store) if one.path == paths[at]), None)
        if copy is None:
            at += 1
            continue
        _show(copy, at + 1, len(paths))
        try:
            match read_key(KEYS):
                case "m":
                    verdict = _settled("kept", settle_copy(journal, copy, "mine", run=run))
                case "t":
                    verdict = _settled("taken", settle_copy(journal, copy, "theirs", run=run))
                case "e":
                    text = drafts.edit(copy.path, copy.both())
                    if text is None:
                        print("nothing was changed")
                        drafts.report_kept(copy.path)
                        continue
                    verdict = _settled("merged", settle_copy(journal, copy, "merged", run=run, text=text))
                    drafts.used(copy.path)
                case "s" | "\r" | "\n" | " ":
                    steps.skipped(at)
                    at += 1
                    continue
                case "u":
                    place, undone = steps.go_back()
                    changed = changed or undone
                    at = at if place is None else place
                    continue
                case "q" | "\x03" | "\x04" | "":
                    return changed
                case _:
                    print("press one of: m t e s u q")
                    continue
        except EditConflict as error:
            print(f"{error}; these are its present texts")
            drafts.report_kept(copy.path)
            continue
        except MemoryVaultError as error:
            print(f"not done: {error}")
            drafts.report_kept(copy.path)
            continue
        changed = True
        steps.decided(at, verdict)
        at += 1
    return changed


def _settled(verdict: str, path: str) -> str:
    print(f"{verdict}: {path}")
    return verdict


def _show(copy: ConflictCopy, number: int, of: int) -> None:
    print(f"\n[{number}/{of}] a sync client kept two texts of {copy.note}")
    if copy.mine is None:
        print("    there is no note of this name any more; the copy says:")
        lines = copy.theirs.splitlines()
    else:
        lines = copy.difference or ["both say the same"]
    print("\n".join(f"    {line}" for line in lines[:SHOWN_LINES]))
    if len(lines) > SHOWN_LINES:
        print(f"    and {counted(len(lines) - SHOWN_LINES, 'more line')}")
