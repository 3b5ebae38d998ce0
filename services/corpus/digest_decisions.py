"""Decisions on lines of the digest: what was said too seldom to be proposed is kept, or never comes again.

A line becomes the note that its session's reflection would have made of it, and that note is decided on as any that
waits: so it is in the journal, can be taken back, and is remembered by its evidence. Done again, whatever was done
already is found in the vault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...pipelines.corpus import Pattern, as_claimed, decisions_in, listed_lines, unconfirmed
from ...pipelines.incubation import Answer
from ...pipelines.review import Approve, Reject
from ...runtime.errors import EditConflict, EntryInvalid, EntryNotFound, MemoryVaultError, VaultUnavailable
from ...runtime.layout import CORPUS_DIGEST
from ...runtime.settings import Settings
from ...vault.entry import AWAITING_STATUSES
from ...vault.pending import is_idea_path
from ...vault.store import VaultStore
from ..ideas.incubator import decide_on_idea
from ..ideas.ledger import slug_of
from ..known_memories import VaultMemories
from ..replacing import replaced_now
from ..reviewing import DecisionOutcome, DecisionProblem, Reviewer
from .settling import path_of, refresh_digest, survey, write_pattern

Decision = Approve | Reject
LEFT = "left for the review"
"""What becomes of a line that was approved but would replace an entry: the review shows both, the digest neither."""
ATTEMPTS_AT_EDITED_DIGEST = 3


def lines_to_decide(store: VaultStore) -> dict[str, str]:
    """The lines of the digest by their keys, as it lists them; {} without one."""
    return listed_lines(_body(store))


def decided_lines(store: VaultStore) -> dict[str, Decision]:
    """What is written into the boxes of the digest, by the keys of the lines."""
    return decisions_in(_body(store))


def decide_lines(
    settings: Settings,
    reviewer: Reviewer,
    decisions: Mapping[str, Decision],
    *,
    run: str,
    may_go_on: Callable[[], bool] = lambda: True,
) -> list[DecisionOutcome | DecisionProblem]:
    """Carry out decisions on lines, by their keys, and write the digest without them. Raises VaultUnavailable.

    A line that is in the vault by now is decided on there if it still waits; on what the user has decided already
    nothing is done. `may_go_on` is asked before each but the first: what is left then stays as it is.
    """
    if not decisions:
        return []
    found = survey(settings, reviewer.store)
    every = (*(known for known, _ in found.known), *found.new)
    patterns = {saying.key: pattern for pattern in every for saying in pattern.sayings}
    new = {saying.key for pattern in found.new for saying in pattern.sayings}
    results: list[DecisionOutcome | DecisionProblem] = []
    for place, (key, decision) in enumerate(decisions.items()):
        if place and not may_go_on():
            break
        pattern = patterns.get(key)
        if pattern is None:
            results.append(DecisionProblem(f"^{key}", f"it is no line of {CORPUS_DIGEST}, or another machine mined it"))
            continue
        try:
            decided = _decide(settings, reviewer, pattern, decision, run, among=every, is_new=key in new)
        except VaultUnavailable:
            raise
        except MemoryVaultError as error:
            results.append(DecisionProblem(f"^{key}", str(error)))
        else:
            results += [] if decided is None else [replace(decided, proposal=f"^{key}")]
    if patterns.keys() & decisions.keys():  # Else the digest may be another machine's.
        for _ in range(ATTEMPTS_AT_EDITED_DIGEST):
            with suppress(EditConflict):  # What was decided is, whatever is written there: the next rewriting sees it.
                refresh_digest(settings, reviewer.store)
                break
    return results


def decide_line(settings: Settings, reviewer: Reviewer, key: str, decision: Decision, *, run: str) -> DecisionOutcome:
    """Carry out one decision. Raises EntryInvalid for what cannot be done, VaultUnavailable."""
    match decide_lines(settings, reviewer, {key: decision}, run=run):
        case [DecisionOutcome() as decided]:
            return decided
        case [DecisionProblem(problem=problem)]:
            raise EntryInvalid(problem)
    return DecisionOutcome(f"^{key}", "decided before", CORPUS_DIGEST)


def _decide(
    settings: Settings,
    reviewer: Reviewer,
    pattern: Pattern,
    decision: Decision,
    run: str,
    *,
    among: Sequence[Pattern],
    is_new: bool,
) -> DecisionOutcome | None:
    """None: it was decided on before. `is_new`: just now the vault did not hold it; to look costs a walk through it."""
    path = None if is_new else path_of(settings, reviewer.store, pattern, among)
    if path is None:
        # It waits for the decision that comes now, whatever the settings do with what is not decided on.
        asked = replace(
            settings,
            memory=replace(settings.memory, review_mode="interactive"),
            reflection=replace(settings.reflection, session_entries=0),
        )
        proposal = unconfirmed(pattern)
        claimed = replace(proposal.candidate, claimed_rule=True, limit=0.0)
        if isinstance(decision, Approve) and VaultMemories(reviewer.store, asked).reversed_rule(claimed) is not None:
            proposal = as_claimed(proposal)
        path = write_pattern(proposal, reviewer.store, asked, run)
        path = path or path_of(settings, reviewer.store, pattern, among)
    if path is None:
        raise EntryInvalid("it was taken back, or its transcript names no record: it cannot be written")
    entry = reviewer.store.read(path)
    if entry.effective_status not in AWAITING_STATUSES:
        return None
    if not is_idea_path(path):
        # Only the review shows what would be archived.
        if isinstance(decision, Approve) and replaced_now(reviewer.store, entry) is not None:
            return DecisionOutcome(path, LEFT, path)
        return reviewer.decide(path, decision, run=run)
    # Kept, not only left there: else it waits as if it had not been decided on, and nothing could be taken back.
    answer = Answer.KEEP if isinstance(decision, Approve) else Answer.ARCHIVE
    done = decide_on_idea(settings, reviewer.journal, slug_of(path), answer, run=run)
    return DecisionOutcome(path, done.verdict, done.path)


def _body(store: VaultStore) -> str:
    with suppress(EntryNotFound, EntryInvalid):
        return store.read(CORPUS_DIGEST).body
    return ""
