"""Find known statements without comparing each note with each candidate."""

from datetime import date
from pathlib import Path

import pytest

from memoryvault.runtime.settings import load_settings
from memoryvault.services.known_memories import VaultMemories
from memoryvault.vault.store import VaultStore


def written(vault: Path, texts: list[str]) -> dict[str, str]:
    """Notes with these statements; path -> statement."""
    paths = {f"personal-private/preferences/note-{number}.md": text for number, text in enumerate(texts)}
    for path, text in paths.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(f"---\nkind: preferences\nstatus: active\n---\n\n# A note\n\n{text}\n", "utf-8")
    return paths


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return tmp_path / "MemoryVault"


def memories_of(vault: Path) -> VaultMemories:
    settings = load_settings({"HOME": str(vault.parent), "MEMORY_VAULT_PATH": str(vault)})
    return VaultMemories(VaultStore(vault, vault.parent / "lock", lambda: date(2026, 7, 1)), settings)


def test_written_and_removed_notes_are_known(vault: Path) -> None:
    paths = written(vault, ["Always run the linter before a commit", "Name branches after the ticket"])
    first, second = paths
    memories = memories_of(vault)

    def saying(statement: str) -> list[str]:
        return [entry.path for entry in memories.saying(statement, "preferences")]

    assert saying("run the linter before a commit, always!") == [first]
    text = (
        (vault / second)
        .read_text("utf-8")
        .replace("Name branches after the ticket", "Do run the linter before a commit")
    )
    (vault / second).write_text(text, "utf-8")
    memories.learned(second, text)
    assert sorted(saying("run the linter before a commit, always!")) == [first, second]
    assert saying("name branches after the ticket") == []
    (vault / first).unlink()
    memories.learned(first, None)
    assert saying("run the linter before a commit, always!") == [second]
