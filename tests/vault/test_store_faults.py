"""Writers that compete, and writers that are killed: real processes, real signals, files afterwards."""

import errno
import fcntl
import multiprocessing
import os
import resource
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memoryvault.runtime import killpoint
from memoryvault.runtime.errors import EditConflict, EntryExists, VaultUnavailable
from memoryvault.runtime.lock import hold_lock
from memoryvault.runtime.paths import resolve_inside
from memoryvault.tests.review.support import RULE, Bed
from memoryvault.vault import store as store_module
from memoryvault.vault.boundary import Approval, Consent
from memoryvault.vault.entry import content_hash
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import VaultStore

pytestmark = pytest.mark.slow

PATH = "personal-private/fix/x.md"
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def root() -> Iterator[Path]:
    """Outside pytest's own folder, which other users may not enter."""
    folder = Path(tempfile.mkdtemp(prefix="memoryvault-test-"))
    folder.chmod(0o755)
    (folder / "MemoryVault").mkdir()
    yield folder
    shutil.rmtree(folder)


def store_in(root: Path) -> VaultStore:
    return VaultStore(root / "MemoryVault", root / "state" / "vault.lock", lambda: date(2026, 7, 1))


def run_all(workers: list[Any]) -> list[int | None]:
    """Run processes or threads at once; the exit statuses of processes."""
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    return [getattr(worker, "exitcode", None) for worker in workers]


def test_a_vault_that_is_moved_away_meanwhile_is_not_made_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault, store = root / "MemoryVault", store_in(root)
    store.create("a/note.md", {"kind": "fix"}, None, Scrubbed("x"))

    def resolve(folder: Path, relative: str) -> Path:
        found = resolve_inside(folder, relative)
        vault.rename(root / "vault2")
        return found

    with monkeypatch.context() as moving:
        moving.setattr(store_module, "resolve_inside", resolve)
        with pytest.raises(VaultUnavailable, match="is not there"):
            store.create("new/folder/note.md", {"kind": "fix"}, None, Scrubbed("x"))
    assert not vault.exists()

    def is_taken(store: VaultStore, relative: str) -> bool:
        vault.rename(root / "vault2")
        return False

    (root / "vault2").rename(vault)
    monkeypatch.setattr(VaultStore, "is_taken", is_taken)
    with pytest.raises(VaultUnavailable, match="is not there"):
        store.move_folder("a", "new/folder/a")
    assert not vault.exists()
    assert (root / "vault2" / "a" / "note.md").is_file()


def _create_the_same(root: Path) -> None:
    try:
        store_in(root).create(PATH, {"kind": "fix"}, None, Scrubbed(str(os.getpid())))
    except EntryExists:
        os._exit(3)


def test_of_many_creators_exactly_one_wins(root: Path) -> None:
    codes = run_all([FORK.Process(target=_create_the_same, args=(root,)) for _ in range(10)])
    assert sorted(map(str, codes)) == ["0"] + ["3"] * 9


def _strengthen(root: Path) -> None:
    store = store_in(root)
    for _ in range(10):
        with store.lock():
            entry = store.read(PATH)
            store.update(PATH, entry.content_hash, fields={"occurrences": entry.occurrences + 1})


@pytest.mark.parametrize("worker", [FORK.Process, threading.Thread], ids=["processes", "threads"])
def test_no_update_is_lost(root: Path, worker: Any) -> None:
    store_in(root).create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    run_all([worker(target=_strengthen, args=(root,)) for _ in range(4)])
    assert store_in(root).read(PATH).occurrences == 41


def kill_before_the_rename(root: Path, write: Callable[[VaultStore], object]) -> None:
    """A process that writes this is killed before its rename."""

    def run() -> None:
        killpoint.arm({"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": "vault-before-rename"})
        write(store_in(root))

    assert run_all([FORK.Process(target=run)]) == [-signal.SIGKILL]


def test_a_writer_killed_before_the_rename_leaves_the_old_file_whole(root: Path) -> None:
    store = store_in(root)
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("old"))
    kill_before_the_rename(root, lambda store: store.update(PATH, entry.content_hash, body=Scrubbed("new")))
    assert store.read(PATH) == entry
    assert list(store.walk()) == [PATH]
    # The lock died with its holder, and what was left behind goes once it is old.
    assert store.update(PATH, entry.content_hash, body=Scrubbed("next")).body == "next"
    assert store.clean_temporaries() == 0
    assert store.clean_temporaries(older_than_seconds=-1) == 1
    assert [p.name for p in (root / "MemoryVault" / "personal-private" / "fix").iterdir()] == ["x.md"]


def test_a_creator_killed_before_the_rename_leaves_no_entry(root: Path) -> None:
    kill_before_the_rename(root, lambda store: store.create(PATH, {"kind": "fix"}, None, Scrubbed("new")))
    store = store_in(root)
    assert list(store.walk()) == []
    assert store.create(PATH, {"kind": "fix"}, None, Scrubbed("again")).body == "again"


def test_the_lock_is_re_entrant_and_gives_up_in_one_line(root: Path) -> None:
    store = store_in(root)
    held = FORK.Event()

    def hold() -> None:
        with store.lock(), store.lock():
            held.set()
            time.sleep(60)

    holder = FORK.Process(target=hold)
    holder.start()
    try:
        assert held.wait(30)
        message = r"held the vault's lock for 0\.1 s"
        with pytest.raises(VaultUnavailable, match=message), hold_lock(root / "state" / "vault.lock", 0.1):
            pass
        holder.kill()
        with hold_lock(root / "state" / "vault.lock", 10):
            pass
    finally:
        holder.kill()
        holder.join(30)


def test_a_lock_file_deleted_by_somebody_does_not_let_two_in(root: Path) -> None:
    lock = root / "state" / "vault.lock"
    with hold_lock(lock):
        child = FORK.Process(target=_enter, args=(lock,))
        child.start()
        time.sleep(0.1)
        assert child.is_alive()
        lock.unlink()
        lock.touch()
    child.join(30)
    assert child.exitcode == 0


def _enter(lock: Path) -> None:
    with hold_lock(lock, 20):
        assert lock.exists()


def test_installations_that_share_only_the_vault_wait_for_each_other(root: Path) -> None:
    """A container or another account with the same vault has a state folder, and so a lock file, of its own."""
    other = VaultStore(root / "MemoryVault", root / "state of another" / "vault.lock", lambda: date(2026, 7, 1))
    entered = FORK.Event()

    def enter() -> None:
        with other.lock():
            entered.set()

    child = FORK.Process(target=enter)
    with store_in(root).lock():
        child.start()
        assert not entered.wait(0.3)
    assert entered.wait(30)
    child.join(30)
    assert child.exitcode == 0
    assert os.listdir(root / "MemoryVault") == [], "nothing is left in it"


@pytest.mark.parametrize("fault", [errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_that_locks_no_folders_can_be_written(root: Path, fault: int, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock

    def refuse(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(fault, os.strerror(fault))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert store_in(root).create(PATH, {"kind": "fix"}, None, Scrubbed("text")).path == PATH


def test_who_is_interrupted_while_locking_leaves_nothing_locked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock

    def interrupted(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        raise KeyboardInterrupt

    lock = root / "locks" / "one.lock"
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _enter(lock)
    with hold_lock(lock, 0.2):
        pass


def _expect_read_only(root: Path) -> None:
    if os.geteuid() == 0:  # Whom no mode stops: as nobody.
        os.setgid(65534)
        os.setuid(65534)
    store = VaultStore(root / "MemoryVault", root / "locks" / "l", lambda: date(2026, 7, 1))
    entry = store.read(PATH)
    for attempt in (
        lambda: store.create("personal-private/fix/y.md", {"kind": "fix"}, None, Scrubbed("x")),
        lambda: store.create("new/y.md", {"kind": "fix"}, None, Scrubbed("x")),
        lambda: store.update(PATH, entry.content_hash, fields={"status": "resolved"}),
        lambda: store.remove(PATH, entry.content_hash),
    ):
        with pytest.raises(VaultUnavailable, match="cannot be written: Permission denied"):
            attempt()


def test_a_read_only_vault_is_said_in_one_line_and_stays_as_it_was(root: Path) -> None:
    store = store_in(root)
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    (root / "locks").mkdir()
    if os.geteuid() == 0:
        os.chown(root / "locks", 65534, 65534)
    folders = [root / "MemoryVault", *(p for p in (root / "MemoryVault").rglob("*") if p.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert run_all([FORK.Process(target=_expect_read_only, args=(root,))]) == [0]
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert store.read(PATH) == entry
    assert list(store.walk()) == [PATH]


def test_one_protected_file_is_named_and_the_vault_is_not_blamed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_in(root)
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    beside = root / "Ideas.md"
    beside.write_text("mine\n")

    def refused(*_: object) -> None:  # As for a file with the flag `immutable`, which stops root too.
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(VaultUnavailable) as in_vault:
        store.update(PATH, entry.content_hash, fields={"status": "resolved"})
    assert str(in_vault.value) == f"{PATH} cannot be written: Operation not permitted; nothing was changed"
    with pytest.raises(VaultUnavailable) as outside:
        store.write_outside(beside, Scrubbed("x\n"), content_hash(b"mine\n"), Approval(beside, Consent.REQUESTED))
    assert str(outside.value) == f"{beside} cannot be written: Operation not permitted; nothing was changed"
    assert not list(root.rglob("*.tmp"))


def _write_too_much(root: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = store_in(root)
    entry = store.read(PATH)
    too_much = Scrubbed("z" * 50_000)
    with pytest.raises(VaultUnavailable, match="nothing was changed"):
        store.update(PATH, entry.content_hash, body=too_much)
    with pytest.raises(VaultUnavailable, match="nothing was changed"):
        store.create("personal-private/fix/y.md", {"kind": "fix"}, None, too_much)


def test_a_write_that_the_disk_refuses_leaves_everything_as_it_was(root: Path) -> None:
    store = store_in(root)
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    assert run_all([FORK.Process(target=_write_too_much, args=(root,))]) == [0]
    assert store.read(PATH) == entry
    assert [p.name for p in (root / "MemoryVault" / "personal-private" / "fix").iterdir()] == ["x.md"]


def test_a_disk_without_hard_links_works_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = store_in(root)
    entry = store.create(PATH, {"kind": "fix"}, None, Scrubbed("x"))
    with pytest.raises(EntryExists):
        store.create(PATH, {"kind": "fix"}, None, Scrubbed("y"))
    assert store.read(PATH) == entry
    assert [p.name for p in (root / "MemoryVault" / "personal-private" / "fix").iterdir()] == ["x.md"]


def test_an_editor_that_saves_all_the_time_never_loses_a_save(root: Path) -> None:
    """A human's saves (rename over the file, as many editors do) against our updates; ours may be refused."""
    store = store_in(root)
    store.create(PATH, {"kind": "fix"}, None, Scrubbed("start"))
    path = root / "MemoryVault" / PATH
    refused = 0
    for number in range(30):
        entry = store.read(PATH)
        if number % 3 == 0:
            saved = path.with_name(".editor")
            saved.write_text(f"human {number}\n")
            saved.rename(path)
        try:
            store.update(PATH, entry.content_hash, body=Scrubbed(f"machine {number}"))
        except EditConflict:
            refused += 1
            assert path.read_text() == f"human {number}\n"
    assert refused == 10


# An editor that saves in place: it empties the file and writes it anew, and who looks meanwhile sees half of it


PAUSE_SECONDS = 0.4


@contextmanager
def saving(path: Path, before: str, after: str, pause: float = PAUSE_SECONDS) -> Iterator[None]:
    """The editor has written `before` in place, and writes `after` a little later."""
    path.write_text(before)

    def rest() -> None:
        time.sleep(pause)
        path.write_text(after)

    editor = threading.Thread(target=rest)
    editor.start()
    try:
        yield
    finally:
        editor.join()


@pytest.mark.parametrize("half", ["", "---\nkind: preferences\nfinger"])
def test_a_rule_that_is_read_half_way_through_a_save_is_not_mined_into_a_second_file(bed: Bed, half: str) -> None:
    (path,) = bed.remember(RULE).written
    whole = (bed.vault / path).read_text()
    with saving(bed.vault / path, half, whole):
        bed.remember(RULE)
    with saving(bed.vault / path, half, whole, pause=3.0), pytest.raises(VaultUnavailable, match="being saved"):
        bed.remember(RULE)
    bed.remember(RULE)
    assert bed.files() == {path: whole}


def test_of_a_note_that_is_saved_over_and_over_the_id_is_read(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    whole = (bed.vault / path).read_text()
    ends = time.monotonic() + 4.0

    def save_all_the_time() -> None:
        while time.monotonic() < ends:
            with saving(bed.vault / path, "", whole, pause=0.2):
                pass
            time.sleep(0.1)

    editor = threading.Thread(target=save_all_the_time)
    editor.start()
    contents, entries = [], []
    while editor.is_alive():
        contents.append(dict(bed.store.settled_contents())[path])
        entries.append(bed.store.read_settled(path))
    assert all(b"fingerprint" in data for data in contents)
    assert all(entry.fingerprint for entry in entries)


def test_a_file_that_stays_empty_postpones_nothing_after_a_minute(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    (bed.vault / path).write_text("")
    long_ago = time.time() - 61
    os.utime(bed.vault / path, (long_ago, long_ago))
    (second,) = bed.remember(RULE).written
    assert second != path


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_a_person_types_while_we_change_or_delete_the_note_is_kept(bed: Bed, is_deleted: bool) -> None:
    (path,) = bed.remember(RULE).written
    file = bed.vault / path
    typed = file.read_text() + "\nA line.\n" * 14
    with saving(file, typed[: len(typed) // 2], typed):
        seen = bed.store.read(path).content_hash
        with pytest.raises(EditConflict):
            bed.store.remove(path, seen) if is_deleted else bed.store.update(path, seen, body=Scrubbed("Ours."))
    assert file.read_text() == typed


def test_a_note_that_was_saved_whole_is_not_waited_for(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    began = time.monotonic()
    for number in range(5):
        bed.store.update(path, bed.store.read(path).content_hash, body=Scrubbed(f"Ours {number}."))
    assert time.monotonic() - began < 5
