"""Propose entries from a repository's instruction files: plan, show, and add to the review on the user's request.

What the vault has in any status is not proposed again, so that a second run proposes only what is new or ranked below
the limit of the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..pipelines.routing import REJECTED_STATUSES, Tier
from ..pipelines.scrub import scrub
from ..pipelines.seeding import Proposal, decision_in, index_of, injections_in, is_injection, rules_in
from ..runtime.layout import DEFAULT_GROUP, PROJECTS, REVIEW
from ..runtime.settings import Settings
from ..runtime.slug import mining_slug
from ..sources.instructions import InstructionFile, Unread, repository_files, user_files
from ..vault.entry import Source
from ..vault.evidence import EVIDENCE_HEADING
from ..vault.project import project_slug
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import cut
from .journal import Change, Journal
from .known_memories import VaultMemories
from .remembering import free_path

RUN = "seed"
"""Run name prefix of proposals."""
HABITS = frozenset({"preferences", "convention"})
"""Kinds of proposals that may be habits for all projects."""
INDEX: Final = "index"
INDEX_KIND = "project-index"
INDEX_SCORE = 3.5
INDEX_NAMES_CHARACTERS = 200
DEFAULT_MOST = 20
"""Proposals per run: what a person decides on in one sitting."""
BLOCK = 5
"""Every file may propose this many before any file proposes more, so that a long file does not crowd out short ones."""


@dataclass(frozen=True)
class PlannedProposal:
    """A scrubbed proposal and its file."""

    file: InstructionFile
    proposal: Proposal

    @property
    def group(self) -> str:
        """The folder for the approved entry."""
        return f"{PROJECTS}/{self.file.project}" if self.file.project else DEFAULT_GROUP


@dataclass(frozen=True)
class SeedPlan:
    """What a run would do."""

    files: tuple[InstructionFile, ...]
    unread: tuple[Unread, ...]
    chosen: tuple[PlannedProposal, ...]
    """Strongest first, which is the order in the review."""
    held: tuple[PlannedProposal, ...]
    """Proposals that rank below the limit."""
    known: int
    """Number of sentences that the vault has already or that the user rejected."""


class Seeding:
    """Plans and carries out seeding from repositories into one vault."""

    def __init__(self, settings: Settings, store: VaultStore) -> None:
        self._settings = settings
        self._store = store
        self._journal = Journal(settings.state, store)

    def plan(self, repositories: Sequence[Path], *, user: bool = False, most: int = DEFAULT_MOST) -> SeedPlan:
        """Read all files and return the plan, without writing.

        `user`: also the user's own instructions. Raises UsageError for a path that is not a folder, VaultUnavailable.
        """
        files, unread = self._files(repositories, user)
        memories = VaultMemories(self._store)
        waiting: list[tuple[int, PlannedProposal]] = []
        known = 0
        seen: set[tuple[str, str]] = set()
        for file in sorted([*files, *_indexes(files)], key=lambda file: bool(file.project)):  # General rules first.
            for line in injections_in(file.text) if file.kind != INDEX else ():
                unread.append(Unread(file.path, f"line {line} speaks to the agent over your head; it is not proposed"))
            place = 0
            for planned in _proposals(file):
                said = planned.proposal
                if not seen.isdisjoint({("", said.fingerprint), (file.project, said.fingerprint)}):
                    continue
                seen.add((file.project, said.fingerprint))
                if is_injection(f"{said.heading}. {said.statement}"):
                    continue
                if _is_known(planned, memories):
                    known += 1
                    continue
                waiting.append((place, planned))
                place += 1
        waiting.sort(key=lambda pair: (pair[0] // BLOCK, -pair[1].proposal.score))
        ordered = tuple(planned for _, planned in waiting)
        return SeedPlan(tuple(files), tuple(unread), ordered[:most], ordered[most:], known)

    def carry_out(self, plan: SeedPlan) -> list[str]:
        """Add the chosen proposals to the review; return the paths of the new notes.

        Repeated after a crash it proposes nothing twice, because the vault shows what was written.
        """
        run = self._journal.new_run(RUN)
        written = []
        with self._journal.locked():
            memories = VaultMemories(self._store)
            for planned in plan.chosen:
                if _is_known(planned, memories):  # Written meanwhile by another run or a reflection.
                    continue
                path = free_path(f"{DEFAULT_GROUP}/{REVIEW}/{mining_slug(planned.proposal.title)}.md", self._store)
                text = self._compose(path, planned)
                self._journal.commit(
                    [Change(path, None, text)], run=run, actor="seed", what=f"proposed: {planned.proposal.kind}"
                )
                memories.learned(path, text)
                written.append(path)
        return written

    def _files(self, repositories: Iterable[Path], user: bool) -> tuple[list[InstructionFile], list[Unread]]:
        hosts = self._settings.hosts
        found: dict[str, InstructionFile] = {}
        unread = []
        readings = [repository_files(folder) for folder in repositories]
        if user:
            files = {
                "~/.claude/CLAUDE.md": hosts.claude_config_dir / "CLAUDE.md",
                "AGENTS.md": hosts.codex_home / "AGENTS.md",
                "~/.gemini/GEMINI.md": hosts.gemini_home / "GEMINI.md",
                "~/.config/opencode/AGENTS.md": hosts.opencode_home / "AGENTS.md",
            }
            readings.append(user_files(files))
        for reading in readings:
            for one in reading:
                if isinstance(one, Unread):
                    unread.append(one)
                else:
                    found.setdefault(str(one.path), one)
        return list(found.values()), unread

    def _compose(self, path: str, planned: PlannedProposal) -> Scrubbed:
        file, proposal = planned.file, planned.proposal
        reference = scrub(f"{file.name}:{proposal.line}" if file.kind == "instructions" else file.name)
        return self._store.compose(
            path,
            {
                "kind": proposal.kind,
                "status": "pending",
                "group": planned.group,
                "slug": path.rsplit("/", 1)[-1].removesuffix(".md"),
                "always_load": False,
                "project": file.project or None,
                "fingerprint": proposal.fingerprint,
                "confidence": str(Tier.MEDIUM),
                "occurrences": 1,
                # A file for every session may become a habit for every session: the review offers it.
                "channel": "core" if file.kind == "instructions" and proposal.kind in HABITS else None,
                "source": [Source(file.kind, "", (" ".join(reference.split()),))],
            },
            _scrubbed(proposal.title),
            _scrubbed(_body(proposal, reference, file.project)),
        )


def _proposals(file: InstructionFile) -> list[PlannedProposal]:
    """Return the file's proposals, strongest first, scrubbed before they are compared or recorded."""
    if file.kind == "instructions":
        found = rules_in(file.text)
    elif file.kind == "decision":
        found = [one] if (one := decision_in(file.text)) is not None else []
    else:
        why = "it says what the project is and where its decisions stand"
        found = [Proposal(INDEX_KIND, file.text, f"Index of {file.project}", 1, "", INDEX_SCORE, why)]
    planned = []
    for proposal in found:
        kind = "preferences" if proposal.kind == "convention" and not file.project else proposal.kind
        clean = replace(
            proposal,
            kind=kind,
            statement=scrub(proposal.statement),
            title=scrub(proposal.title),
            heading=scrub(proposal.heading),
        )
        if clean.statement.strip():
            planned.append(PlannedProposal(file, clean))
    return planned


def _indexes(files: Sequence[InstructionFile]) -> list[InstructionFile]:
    """Return a proposal per project that sums up its files: what the project is, and where its decisions are."""
    found = []
    for project in sorted({file.project for file in files} - {""}):
        own = [file for file in files if file.project == project]
        own.sort(key=lambda file: (file.name.count("/"), file.name))
        text = index_of(
            project,
            [file.text for file in own if file.kind == "instructions"],
            [(file.name, file.text) for file in own if file.kind == "decision"],
        )
        if text:
            names = ", ".join(file.name for file in own)
            digest = sha256(text.encode()).hexdigest()
            path = Path(os.path.commonpath([file.path.parent for file in own]))
            found.append(InstructionFile(INDEX, path, cut(names, INDEX_NAMES_CHARACTERS), project, text, digest))
    return found


def _is_known(planned: PlannedProposal, memories: VaultMemories) -> bool:
    """Whether the vault has or had it for this project, or the user rejected it for any project."""
    same = memories.saying(planned.proposal.statement, planned.proposal.kind)
    reach = ("", planned.file.project)
    return any(
        entry.effective_status in REJECTED_STATUSES or project_slug(entry.project or "") in reach for entry in same
    )


def _body(proposal: Proposal, reference: str, project: str) -> str:
    where = (
        reference + (f", under “{proposal.heading}”" if proposal.heading else "") + (f", in {project}" * bool(project))
    )
    because = f"Proposed because: {proposal.why}."
    return "\n\n".join([proposal.statement, f"## {EVIDENCE_HEADING}", because, f"From {where}"])


def _scrubbed(text: str) -> Scrubbed:
    return Scrubbed.trusted(text, reason="made of parts that were scrubbed when the file was read")
