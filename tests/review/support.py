"""A vault with its state, candidates, and their results."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.journal import Journal
from memoryvault.services.remembering import MemoryReport, remember
from memoryvault.services.reviewing import Reviewer
from memoryvault.services.stores import vault_store
from memoryvault.services.tombstones import NOTE, Evidence, record_removal
from memoryvault.services.undoing import Undo
from memoryvault.tests.support import forked
from memoryvault.vault.entry import Entry
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import VaultStore

RULE = Candidate(
    category="preference",
    statement="Always use pnpm, not npm.",
    reason="a standing rule",
    role="user",
    records=("r1",),
    excerpt="Always use pnpm, not npm.",
    session="s1",
    standing_rule=True,
    confirmed=True,
)
CHOICE = replace(
    RULE, category="correction", statement="No, use pnpm instead of npm", standing_rule=False, claimed_rule=True
)
LIST = "The release report reads well as a bullet list"
GUESS = replace(RULE, statement=LIST, excerpt=LIST, standing_rule=False)

PRELUDE = """\
import os
from pathlib import Path
from memoryvault.runtime.settings import load_settings
from memoryvault.services.journal import Journal
from memoryvault.services.stores import vault_store
settings = load_settings(os.environ)
store = vault_store(settings)
journal = Journal(settings.state, store)
"""
"""What a program on a vault begins with."""


@dataclass
class Bed:
    """One vault below `root`."""

    root: Path
    env: Mapping[str, str]

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have commands in this process work on the vault."""
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)

    @property
    def settings(self) -> Settings:
        return load_settings(self.env)

    @property
    def store(self) -> VaultStore:
        return vault_store(self.settings)

    @property
    def journal(self) -> Journal:
        return Journal(self.settings.state, self.store)

    @property
    def reviewer(self) -> Reviewer:
        return Reviewer(self.settings)

    @property
    def undo(self) -> Undo:
        return Undo(self.store, self.journal)

    def record_removal(self, *evidence: Evidence) -> None:
        """Record evidence as taken back, as an undo does."""
        if change := record_removal(self.store, evidence):
            self.journal.commit(change, run="undo", actor="undo", what="took back")

    @property
    def vault(self) -> Path:
        return self.root / "MemoryVault"

    def remember(self, *candidates: Candidate) -> MemoryReport:
        """Remember candidates like the reflection of a session."""
        with self.store.lock():
            return remember(candidates, self.store, self.settings, host="claude")

    def files(self) -> dict[str, str]:
        """Texts by path, without the note of removed evidence, which an undo does not restore."""
        found = {str(p.relative_to(self.vault)): p for p in sorted(self.vault.rglob("*.md"))}
        return {path: file.read_text("utf-8") for path, file in found.items() if path != NOTE}

    def entries(self) -> list[Entry]:
        return [self.store.read(path) for path in self.store.walk() if path != NOTE]

    def only(self, status: str) -> Entry:
        (entry,) = [entry for entry in self.entries() if entry.effective_status == status]
        return entry

    def note(self, path: str, body: str, **fields: object) -> str:
        """Write a note like a program; return its path."""
        self.store.create(path, fields, None, Scrubbed(body))  # type: ignore[arg-type]
        return path

    def edit(self, path: str, old: str, new: str) -> None:
        """Edit a note like a person in an editor."""
        file = self.vault / path
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), "utf-8")

    def decide_in_note(self, path: str, decision: str) -> None:
        self.edit(path, "---\n", f"---\ndecision: {decision}\n")

    def run_python(self, code: str, kill_point: str = "") -> int:
        """Run what follows PRELUDE on this vault, in a process that may be killed; return its exit status."""
        armed = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill_point} if kill_point else {}
        done = forked.run(PRELUDE + code, env={**self.env, **armed})
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode


def make_bed(root: Path, **settings: str) -> Bed:
    (root / "MemoryVault").mkdir()
    env = {
        "HOME": str(root / "home"),
        "PATH": "/usr/bin:/bin",
        "MEMORY_CONFIG": str(root / "config.toml"),
        "MEMORY_STATE_DIR": str(root / "state"),
        "MEMORY_VAULT_PATH": str(root / "MemoryVault"),
        "MEMORY_AUTOSTART": "false",
        **settings,
    }
    bed = Bed(root, env)
    bed.settings.state.ensure()
    return bed


def said(candidate: Candidate, session: str, statement: str | None = None, **changes: object) -> Candidate:
    """The same statement in another session."""
    return replace(
        candidate,
        session=session,
        records=(f"{session}-record",),
        statement=statement or candidate.statement,
        excerpt=statement or candidate.excerpt,
        **changes,  # type: ignore[arg-type]
    )


TABS = "personal-private/preferences/tabs.md"


def tabs(bed: Bed, path: str = TABS, **fields: object) -> str:
    """Write a rule by hand; return its path."""
    return bed.note(path, "# Tabs or spaces\n\nIndent with four spaces.", kind="preferences", **fields)
