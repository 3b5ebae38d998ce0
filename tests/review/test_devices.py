"""Two devices share a vault: only the one named in the settings note carries out decisions in notes."""

import multiprocessing
import socket
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest

from memoryvault.runtime.errors import EditConflict, EntryExists
from memoryvault.runtime.layout import StatePaths
from memoryvault.services.device import SETTINGS_NOTE, acts_here
from memoryvault.services.journal import Act, Change, Journal
from memoryvault.tests.support.files import put
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import VaultStore

pytestmark = pytest.mark.slow

FORK = multiprocessing.get_context("fork")
TEXT = Scrubbed("---\nkind: preferences\n---\n\n# Use pnpm\n")


def name(vault: Path, text: str) -> None:
    put(vault / SETTINGS_NOTE, text)


def test_every_device_acts_if_none_is_named(tmp_path: Path) -> None:
    assert acts_here(tmp_path)
    name(tmp_path, "---\ntags: [x]\n---\n\ndevice: not a setting\n")
    assert acts_here(tmp_path)


@pytest.mark.parametrize(
    ("named", "hostname", "acts"),
    [
        ("desk", "desk", True),
        ("Desk", "desk.local", True),
        ("desk.home.arpa", "DESK", True),
        ("desk", "laptop", False),
        ("desk", "desk2", False),
    ],
)
def test_the_named_one_acts(tmp_path: Path, named: str, hostname: str, acts: bool) -> None:
    name(tmp_path, f"---\ndevice: {named}\n---\n\n# Settings\n")
    assert acts_here(tmp_path, hostname) is acts


def test_a_decision_in_a_note_waits_for_the_named_device(sandbox: ForkedSandbox) -> None:
    note = sandbox.vault / "personal-private" / "_review" / "use-pnpm.md"
    note.parent.mkdir(parents=True)
    head = "---\ndecision: approve\nkind: preferences\nstatus: pending\n---\n\n"
    note.write_text(f"{head}# Use pnpm\n\nAlways use pnpm.\n", "utf-8")
    name(sandbox.vault, "---\ndevice: another-device\n---\n")
    sandbox.memory("service", "worker", "--until-idle")
    assert note.exists()
    name(sandbox.vault, f"---\ndevice: {socket.gethostname()}\n---\n")
    sandbox.memory("service", "worker", "--until-idle")
    assert not note.exists()
    assert (sandbox.vault / "personal-private" / "preferences" / "use-pnpm.md").exists()


def installation(root: Path, name: str) -> Journal:
    """One of several installations that share only the vault."""
    state = StatePaths(root / name)
    state.ensure()
    return Journal(state, VaultStore(root / "MemoryVault", state.vault_lock, lambda: date(2026, 7, 1)))


def move(journal: Journal, waiting: str, kept: str) -> Act:
    changes = [Change(kept, None, TEXT), Change(waiting, TEXT, None)]
    return journal.commit(changes, run="r", actor="review", what="approved")


@pytest.fixture
def waiting(tmp_path: Path) -> list[str]:
    folder = tmp_path / "MemoryVault" / "_review"
    folder.mkdir(parents=True)
    for number in range(200):
        (folder / f"{number}.md").write_text(TEXT)
    return sorted(path.name for path in folder.iterdir())


def test_two_installations_that_decide_at_once_lose_no_note(tmp_path: Path, waiting: list[str]) -> None:
    """As with a container beside the desktop: both see the decision at the same moment."""
    begin = FORK.Barrier(2)

    def approve(name: str) -> None:
        journal = installation(tmp_path, name)
        begin.wait(30)
        for note in waiting:
            with suppress(EditConflict, EntryExists):
                move(journal, f"_review/{note}", f"preferences/{note}")

    processes = [FORK.Process(target=approve, args=(name,)) for name in ("desktop", "container")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(path.name for path in (tmp_path / "MemoryVault" / "preferences").iterdir()) == waiting
    assert list((tmp_path / "MemoryVault" / "_review").iterdir()) == []


@pytest.mark.parametrize("step", ["write_text", "remove"])
def test_change_made_by_another_device_counts_as_done(
    tmp_path: Path, waiting: list[str], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks are not shared over the network. A rollback would undo the change of the other device, and of the user."""
    other = installation(tmp_path, "other").store
    own = getattr(VaultStore, step)

    def as_second(store: VaultStore, path: str, *args: object, **options: object) -> object:
        if store is not other:
            getattr(other, step)(path, *args, **options)
        return own(store, path, *args, **options)

    monkeypatch.setattr(VaultStore, step, as_second)
    note = waiting[0]
    move(installation(tmp_path, "own"), f"_review/{note}", f"preferences/{note}")
    assert (tmp_path / "MemoryVault" / "preferences" / note).read_text() == TEXT
    assert not (tmp_path / "MemoryVault" / "_review" / note).exists()
