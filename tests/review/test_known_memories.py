"""What the vault says already is found without comparing each note with each candidate."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from memoryvault.pipelines.likeness import may_be_same, wording_of
from memoryvault.tasks import known_memories
from memoryvault.tasks.known_memories import VaultMemories
from memoryvault.vault.settings import load_settings
from memoryvault.vault.store import VaultStore

EXAMPLES = Path(known_memories.__file__).parents[1] / "training" / "reader" / "examples" / "held_out.jsonl"


def statements() -> list[str]:
    """Some sentences of users, and forms of them that say the same, or nearly."""
    said = [json.loads(line)["text"].split("\n")[0] for line in EXAMPLES.read_text("utf-8").splitlines()[::3]]
    longer = [f"please, {text} everywhere" for text in said[::2]]
    shorter = [" ".join(text.split()[:-1]) for text in said[::3]]
    return list(dict.fromkeys(text for text in [*said, *longer, *shorter] if text.strip()))


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


def test_each_note_that_may_say_the_same_is_compared_and_no_other(vault: Path) -> None:
    texts = statements()
    paths = written(vault, texts)
    index = memories_of(vault)._of_kind("preferences")
    pairs = 0
    for text in texts:
        wording = wording_of(text)
        alike = {path for path, other in paths.items() if may_be_same(wording, wording_of(other))}
        assert {note.path for note in index.near(wording)} == alike, text
        pairs += len(alike)
    assert pairs > 1.5 * len(texts), "the sentences must resemble one another, or this proves nothing"


def test_what_is_written_or_removed_meanwhile_is_known(vault: Path) -> None:
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
