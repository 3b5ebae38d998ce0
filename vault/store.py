"""The only writer of the vault's markdown files.

Every write is a temporary file, fsync, rename, under one lock per vault, after the file on disk was
compared with what the caller had read. Programs that do not take the lock (an editor, a sync client) can
still save between that comparison and the rename: two system calls, some tens of microseconds apart.
For a new file there is no such window: it is linked into place, which fails if the name is taken.
"""

from __future__ import annotations

import errno
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from pathlib import Path

from ..runtime.atomic_file import sync_folder
from ..runtime.errors import (
    EditConflict,
    EntryExists,
    EntryInvalid,
    EntryNotFound,
    MemoryVaultError,
    PathRefused,
    VaultUnavailable,
)
from ..runtime.killpoint import kill_point
from ..runtime.layout import ALWAYS_LOAD, TRASH
from ..runtime.lock import hold_folder_lock, hold_lock
from ..runtime.paths import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    check_inside,
    check_new_name,
    check_note_name,
    is_downloaded,
    is_regular,
    make_folders,
    remove_empty,
    require_folder,
    resolve_inside,
)
from ..runtime.slug import validate_group, validate_name
from .boundary import Approval, require_approval
from .entry import Entry, content_hash, parse_entry
from .fields import StoreValue, require_scrubbed, validate_fields
from .frontmatter import format_header, set_fields
from .header import extent, is_open
from .listing import NotePaths, list_folders, list_notes
from .note_text import decode_note, encodable, encode_note, normalize_note_text, replace_body
from .scrubbed import Scrubbed

MAX_ENTRY_BYTES = 8_000_000
"""A larger file is somebody's export, not a note."""
STALE_TEMPORARY_SECONDS = 3600.0
SAVING_SECONDS = 60.0
"""A note that is still empty or half a header after this time was left so."""
SETTLED_SECONDS = 1.0
"""Seconds after a write in place within which a file may be half of what its editor is saving."""
SETTLING_SECONDS = 5.0
"""Seconds to wait for a file that goes on changing, when all notes are looked through."""
CLOCK_TICK_NS = 20_000_000
"""Coarsest step of a file system's clock, in nanoseconds."""

_TEMPORARY = re.compile(re.escape(TEMPORARY_PREFIX) + r"[0-9]+-[0-9a-f]{12}" + re.escape(TEMPORARY_SUFFIX))
"""Matches the name of a file made by `_write_temporary`."""

# os.link on file systems without hard links: FAT, some network and FUSE mounts.
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV})


class VaultStore:
    """Reads and writes the entries of one vault. Paths are relative to the vault, with forward slashes."""

    def __init__(self, vault: Path, lock_file: Path | str, today: Callable[[], date], sealed: str = "") -> None:
        """`sealed`: why nothing may be written; '' if writing is allowed."""
        self.vault = Path(vault)
        self._sealed = sealed
        self._lock_file = Path(lock_file)
        self._today = today
        self.passed_over: dict[str, str] = {}
        """Why notes and folders were left out of a reading of many, by path, for the caller to list."""

    def __repr__(self) -> str:
        return f"VaultStore({str(self.vault)!r})"

    def today(self) -> date:
        """Return the day for `created` and `updated`."""
        return self._today()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the vault's lock over read-check-write of several files. Re-entrant; raises VaultUnavailable."""
        with hold_lock(self._lock_file), hold_folder_lock(self.vault):
            yield

    def _require_open(self) -> None:
        if self._sealed:
            raise VaultUnavailable(self._sealed)

    def require_vault(self) -> None:
        """Raise VaultUnavailable when the vault's folder is missing."""
        require_folder(self.vault)

    # Reading

    def read(self, relative: str) -> Entry:
        """Return the entry. Raises EntryNotFound, EntryInvalid, PathRefused, VaultUnavailable."""
        return parse_entry(relative, self.read_bytes(relative))

    def read_settled(self, relative: str) -> Entry:
        """Do as `read` does, but first wait as `settled_contents` does."""
        path = str(resolve_inside(self.vault, relative))
        until = time.monotonic() + SETTLING_SECONDS
        return parse_entry(relative, _when_whole(path, lambda: self.read_bytes(relative), until))

    def read_bytes(self, relative: str) -> bytes:
        """Return the file's bytes. Raises as `read` does."""
        return self._read_file(resolve_inside(self.vault, relative), relative)

    def exists(self, relative: str) -> bool:
        """Whether there is a file. Raises PathRefused."""
        return resolve_inside(self.vault, relative).is_file()

    def walk(self, *, put_away: bool = False) -> Iterator[str]:
        """Yield the paths of all indexable notes, sorted within each folder; with `put_away` also trash and
        sync-conflict copies.

        Left out: dot-folders and dot-files, the trash, symbolic links (what they lead to inside the vault is walked in
        its own place), sync-conflict copies, files that are not downloaded, special files. Folders that vanish or
        cannot be read meanwhile are passed over. Raises VaultUnavailable.
        """
        self.require_vault()
        folders = list_folders(self.vault, trash=put_away, failed=self.passed_over)
        return (path for _, both in folders for path in (sorted(both.notes + both.copies) if put_away else both.notes))

    def walk_special(self, names: Collection[str]) -> Iterator[str]:
        """Yield those of `walk` whose special folder (`special_folder`) is one of `names`; look at no other file."""
        self.require_vault()
        folders = list_folders(self.vault, special=names, failed=self.passed_over)
        return (path for _, (notes, _) in folders for path in notes)

    def list_notes(self) -> NotePaths:
        """Return what `walk` yields, and all conflict copies, from one walk. Raises VaultUnavailable."""
        self.require_vault()
        return list_notes(self.vault)

    def settled_contents(self) -> Iterator[tuple[str, bytes]]:
        """Do as `contents` does, but first wait until a note that an editor may be saving is whole, or has been
        unchanged for a second.

        For a caller that writes a new file if no note has an id: an empty file, read too early, has none.
        """
        root = os.path.realpath(self.vault)
        until = time.monotonic() + SETTLING_SECONDS
        for relative, data in self.contents():
            if _is_half(data):
                path = f"{root}/{relative}"
                with suppress(MemoryVaultError):
                    data = _when_whole(path, partial(self._read_file, path, relative), until)
            yield relative, data

    def _resolver(self) -> Callable[[str], str]:
        """`resolve_inside` for many paths: each folder is resolved once, which takes longer than to read a note."""
        folders: dict[str, str] = {}

        def resolve(relative: str) -> str:
            folder, _, name = check_inside(relative).rpartition("/")
            if os.path.islink(f"{self.vault}/{relative}"):
                return str(resolve_inside(self.vault, relative))
            if folder not in folders:
                folders[folder] = str(resolve_inside(self.vault, relative).parent)
            return f"{folders[folder]}/{name}"

        return resolve

    def contents(self, paths: Iterable[str] | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield (path, bytes) of the notes at these paths, by default of all of `walk`. One that is gone, too large or
        cannot be read is passed over: a single file must not stop a caller that looks at all of them. Raises
        VaultUnavailable."""
        resolve = self._resolver()
        for relative in self.walk() if paths is None else paths:
            try:
                data = self._read_file(resolve(relative), relative)
            except EntryNotFound:
                continue
            except MemoryVaultError as error:
                self.passed_over[relative] = str(error)
                continue
            yield relative, data

    def readable(self, paths: Iterable[str] | None = None) -> Iterator[Entry]:
        """Yield the entries of `contents`."""
        return (parse_entry(relative, data) for relative, data in self.contents(paths))

    def entry_path(self, group: str, kind: str, slug: str, always_load: bool = False) -> str:
        """Return the path of an entry. Raises EntryInvalid."""
        folder = ALWAYS_LOAD if always_load else validate_name("kind", kind)
        return f"{validate_group(group)}/{folder}/{validate_name('slug', slug)}.md"

    # Writing

    def compose(
        self, relative: str, fields: Mapping[str, StoreValue], title: Scrubbed | None, body: Scrubbed
    ) -> Scrubbed:
        """Return the text of the note that `create` would write. Raises as it does."""
        check_new_name(relative)
        text = normalize_note_text(require_scrubbed("body", body))
        heading = " ".join(normalize_note_text(require_scrubbed("title", title)).split()) if title is not None else ""
        if heading:
            text = f"# {heading}\n\n{text}".rstrip() + "\n"
        today = self._today()
        defaults: dict[str, StoreValue] = {
            "status": "active",
            "created": today,
            "updated": today,
            "slug": relative.rsplit("/", 1)[-1].removesuffix(".md"),
            "always_load": f"/{ALWAYS_LOAD}/" in f"/{relative}",
        }
        header = format_header(validate_fields({**defaults, **fields}, new=True))
        document = f"---\n{header}---\n" + (f"\n{text}" if text else "")
        return Scrubbed.trusted(document, reason="made of scrubbed parts")

    def render_edit(self, text: str, fields: Mapping[str, StoreValue], body: Scrubbed | None = None) -> Scrubbed:
        """Return a note's text as `update` would leave it. Raises EntryInvalid; TypeError for unscrubbed text."""
        checked = validate_fields(fields, new=False)
        changed = set_fields(text, checked)
        if body is not None:
            changed = replace_body(changed, require_scrubbed("body", body))
        if changed != text and "updated" not in checked:
            changed = set_fields(changed, {"updated": self._today()})
        return Scrubbed.trusted(encodable(changed), reason="a note, with scrubbed parts put in")

    def create(self, relative: str, fields: Mapping[str, StoreValue], title: Scrubbed | None, body: Scrubbed) -> Entry:
        """Write a new entry.

        `status`, `created`, `updated`, `slug` and `always_load` are filled in when `fields` does not name
        them; name one with None to leave it out. Raises EntryExists, EntryInvalid, PathRefused,
        VaultUnavailable; TypeError for text that was not scrubbed.
        """
        document = self.compose(relative, fields, title, body)
        with self.lock():
            self._write_new(relative, encode_note(document))
            return self.read(relative)

    def update(
        self,
        relative: str,
        expected_hash: str,
        *,
        fields: Mapping[str, StoreValue] | None = None,
        body: Scrubbed | None = None,
    ) -> Entry:
        """Change fields (None removes one) and body of an entry; all other lines stay byte for byte.

        `updated` becomes today unless `fields` names it; a call that changes nothing writes nothing.
        `expected_hash` is the `content_hash` of the entry as it was read. Raises EditConflict,
        EntryNotFound, EntryInvalid, PathRefused, VaultUnavailable; TypeError for unscrubbed text.
        """
        with self.lock():
            path = self._writable(relative)
            data = self._read_expected(path, relative, expected_hash)
            changed = encode_note(self.render_edit(decode_note(data), fields or {}, body))
            if changed != data:
                self._replace(path, relative, changed, expected_hash)
            return parse_entry(relative, changed)

    def remove(self, relative: str, expected_hash: str | None) -> None:
        """Delete an entry, and the folders that become empty (`remove_empty`); also used after a purge.

        Raises EditConflict, EntryNotFound, PathRefused, VaultUnavailable.
        """
        with self.lock():
            path = self._writable(relative)
            self._read_expected(path, relative, expected_hash)
            self._unlink(path, relative, expected_hash)
            remove_empty(path.parent, self.vault)

    def write_text(self, relative: str, text: Scrubbed, expected_hash: str | None) -> None:
        """Write a whole note: one that this program generates, or one of the user's with a change of ours.

        `expected_hash` None: it must not exist yet. The name may be the user's own (`compose` checks new ones). The
        same text again writes nothing. Raises EntryExists, EditConflict, EntryNotFound, PathRefused, VaultUnavailable.
        """
        check_note_name(relative)
        if not isinstance(text, Scrubbed):
            raise TypeError("text: only text of type Scrubbed is written to the vault")
        data = encode_note(text)
        with self.lock():
            if expected_hash is None:
                self._write_new(relative, data)
            else:
                path = self._writable(relative)
                if self._read_expected(path, relative, expected_hash) != data:
                    self._replace(path, relative, data, expected_hash)

    def read_outside(self, path: Path) -> tuple[str, str] | None:
        """Return (text, content hash) of a file beside the vault, such as Ideas.md; None when there is none."""
        try:
            data = self._read_file(path, str(path))
        except EntryNotFound:
            return None
        return decode_note(data), content_hash(data)

    def write_outside(
        self, path: Path, text: Scrubbed | None, expected_hash: str | None, approval: Approval | None
    ) -> None:
        """Write a file beside the vault, such as Ideas.md; None removes it.

        Line ends are left as they are in `text`. Raises BoundaryRefused without the user's approval,
        EntryExists, EntryNotFound, EditConflict, PathRefused, VaultUnavailable.
        """
        require_approval(path, approval)
        if text is not None and not isinstance(text, Scrubbed):
            raise TypeError("text: only text of type Scrubbed is written")
        if not path.is_absolute() or path.suffix != ".md":
            raise PathRefused(f"{path} cannot be written: give an absolute path that ends in .md")
        with self.lock():
            real = Path(os.path.realpath(path))
            if not real.parent.is_dir():
                raise VaultUnavailable(f"the folder {real.parent} does not exist: create it first")
            if text is None:
                self._unlink(real, str(path), expected_hash)
                return
            data = encode_note(text)
            if expected_hash is None:
                self._place(real, str(path), data)
            elif self._read_expected(real, str(path), expected_hash) != data:
                self._replace(real, str(path), data, expected_hash)

    def move_folder(self, relative: str, new_relative: str) -> None:
        """Rename a folder with its content, attachments included; one step, so never half done.

        Raises EntryNotFound, EntryExists, PathRefused, VaultUnavailable.
        """
        with self.lock():
            self._require_open()
            self.require_vault()
            old, new = resolve_inside(self.vault, relative), resolve_inside(self.vault, new_relative)
            check_note_name(f"{new_relative}/x.md")
            if (self.vault / relative).is_symlink():
                raise PathRefused(f"{relative!r} is a symbolic link: move what it leads to")
            if not old.is_dir():
                raise EntryNotFound(f"there is no folder {relative}")
            if self.is_taken(new_relative):
                raise EntryExists(f"there is already a folder {new_relative}")
            try:
                make_folders(new.parent, self.vault)
                kill_point("vault-before-rename")
                os.rename(old, new)
                sync_folder(old.parent)
                sync_folder(new.parent)
                remove_empty(old.parent, self.vault)
            except (FileExistsError, NotADirectoryError) as error:
                raise PathRefused(f"{new_relative!r} cannot be made: part of its path is a file") from error
            except OSError as error:
                raise self._not_writable(new_relative, error) from error

    def is_taken(self, relative: str) -> bool:
        """Whether there is a folder that is not empty, or anything else of that name. Raises PathRefused."""
        path = resolve_inside(self.vault, relative)
        try:
            return next(path.iterdir(), None) is not None
        except OSError:
            return os.path.lexists(path)

    def purge(self, relative: str) -> None:
        """Delete a folder of the trash, for good. Raises PathRefused for any other, VaultUnavailable."""
        with self.lock():
            self._require_open()
            self.require_vault()
            path = resolve_inside(self.vault, relative)
            if TRASH not in relative.split("/")[:-1] or (self.vault / relative).is_symlink():
                raise PathRefused(f"{relative!r} lies in no trash")
            try:
                shutil.rmtree(path)
                remove_empty(path.parent, self.vault)
            except FileNotFoundError:
                return
            except OSError as error:
                raise self._not_writable(relative, error) from error

    def clean_temporaries(self, older_than_seconds: float = STALE_TEMPORARY_SECONDS) -> int:
        """Delete temporary files that killed writers left behind; return their number."""
        self.require_vault()
        removed = 0
        for folder, folders, _ in os.walk(self.vault):
            folders[:] = [name for name in folders if not name.startswith(".")]
            removed += _clean_folder(folder, older_than_seconds)
        return removed

    def clean_temporaries_beside(self, path: Path) -> int:
        """Delete what killed writers of one file outside left in its folder; return the number."""
        return _clean_folder(os.path.dirname(os.path.realpath(path)), STALE_TEMPORARY_SECONDS)

    # Steps

    def _writable(self, relative: str) -> Path:
        """Return the real file that `relative` names. Raises PathRefused, VaultUnavailable."""
        self.require_vault()
        path = resolve_inside(self.vault, relative)
        if path.suffix != ".md":
            raise PathRefused(f"{relative!r} cannot be written: only .md files are")
        return path

    def _read_file(self, path: Path | str, shown: str) -> bytes:
        try:
            # O_NONBLOCK: a named pipe called x.md must not hang the reader.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                if not is_regular(status):
                    raise EntryInvalid(f"{shown} is not a regular file")
                if not is_downloaded(status):
                    raise VaultUnavailable(f"{shown} is not downloaded: fetch it in your cloud client first")
                if status.st_size > MAX_ENTRY_BYTES:
                    raise EntryInvalid(f"{shown} is larger than {MAX_ENTRY_BYTES // 1_000_000} MB")
                with open(descriptor, "rb", closefd=False) as file:
                    return file.read()
            finally:
                os.close(descriptor)
        except (FileNotFoundError, NotADirectoryError) as error:
            self.require_vault()
            raise EntryNotFound(f"there is no entry {shown}") from error
        except IsADirectoryError as error:
            raise EntryInvalid(f"{shown} is a folder, not an entry") from error
        except OSError as error:
            if isinstance(error, PermissionError) and os.path.exists(path):  # It alone: its folder can be read.
                raise EntryInvalid(f"{shown} cannot be read: {error.strerror}") from error
            raise VaultUnavailable(f"{shown} cannot be read: {error.strerror}") from error

    def _read_expected(self, path: Path, shown: str, expected_hash: str | None) -> bytes:
        data = self._read_file(path, shown)
        if expected_hash is not None and content_hash(data) != expected_hash:
            raise EditConflict(f"{shown} was changed since it was read; nothing was written: read it again")
        return data

    def is_being_saved(self, relative: str) -> bool:
        """Whether an editor that saves in place has emptied or begun this note less than SAVING_SECONDS ago."""
        path = self.vault / relative
        with suppress(OSError, MemoryVaultError):
            if _age(path) < SAVING_SECONDS:
                text = self._read_file(path, relative).decode("utf-8", "replace")
                return not text.strip() or is_open(text)
        return False

    def _expect_settled(self, path: Path, shown: str) -> None:
        """Wait a second for an editor that may be saving the file, since it would write the rest into a deleted file.
        Raises EditConflict if that changed it."""
        before, until = _stamp(path), time.monotonic() + SETTLED_SECONDS
        while (left := _unsettled_seconds(path)) > 0 and (more := until - time.monotonic()) > 0:
            time.sleep(min(left, more))
        if before is not None and _stamp(path) != before:
            raise EditConflict(f"{shown} is being changed by another program; nothing was written: read it again")

    def _write_new(self, relative: str, data: bytes) -> None:
        self._require_open()
        self.require_vault()
        path = resolve_inside(self.vault, relative)
        if os.path.lexists(self.vault / relative):
            raise EntryExists(f"there is already an entry {relative}")
        try:
            make_folders(path.parent, self.vault)
        except (FileExistsError, NotADirectoryError) as error:
            raise PathRefused(f"{relative!r} cannot be written: part of its path is a file") from error
        except OSError as error:
            raise self._not_writable(relative, error) from error
        self._place(path, relative, data)

    def _place(self, path: Path, shown: str, data: bytes) -> None:
        """Make a new file appear, whole, or raise EntryExists."""
        self._require_open()
        try:
            temporary = self._write_temporary(path.parent, data, mode=None)
            try:
                kill_point("vault-before-rename")
                self._link(temporary, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            sync_folder(path.parent)
        except FileExistsError as error:
            raise EntryExists(f"there is already an entry {shown}") from error
        except OSError as error:
            raise self._not_writable(shown, error) from error

    @staticmethod
    def _link(temporary: Path, path: Path) -> None:
        try:
            os.link(temporary, path, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "exists", str(path)) from error
            os.rename(temporary, path)

    def _replace(self, path: Path, shown: str, data: bytes, expected_hash: str) -> None:
        self._require_open()
        self._expect_settled(path, shown)
        try:
            temporary = self._write_temporary(path.parent, data, mode=path.stat().st_mode & 0o7777)
            try:
                kill_point("vault-before-rename")
                self._read_expected(path, shown, expected_hash)  # once more, as late as possible
                os.replace(temporary, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            sync_folder(path.parent)
        except OSError as error:
            raise self._not_writable(shown, error) from error

    def _unlink(self, path: Path, shown: str, expected_hash: str | None) -> None:
        self._require_open()
        self._expect_settled(path, shown)
        self._read_expected(path, shown, expected_hash)
        try:
            os.unlink(path)
            sync_folder(path.parent)
        except FileNotFoundError as error:  # Another machine with the same vault was faster.
            raise EntryNotFound(f"there is no entry {shown}") from error
        except OSError as error:
            raise self._not_writable(shown, error) from error

    def _write_temporary(self, folder: Path, data: bytes, mode: int | None) -> Path:
        name = f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(6)}{TEMPORARY_SUFFIX}"
        temporary = folder / name
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.fchmod(descriptor, mode)
                os.fsync(descriptor)
                # Renamed within one tick of the clock, it would look as if it had been written in place.
                written = os.fstat(descriptor)
                os.utime(descriptor, ns=(written.st_atime_ns, written.st_mtime_ns - CLOCK_TICK_NS))
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary

    def _not_writable(self, shown: str, error: OSError) -> VaultUnavailable:
        self.require_vault()
        return VaultUnavailable(f"{shown} cannot be written: {error.strerror}; nothing was changed")


def _stamp(path: Path | str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _is_half(data: bytes) -> bool:
    """Whether a note has no header, or one without its end."""
    text = data.decode("utf-8", "replace")
    return not extent(text) or is_open(text)


def _when_whole(path: str, read: Callable[[], bytes], until: float) -> bytes:
    """Read a note until it is no half, or has not been written in place for SETTLED_SECONDS; or until a time."""
    while _is_half(data := read()) and _unsettled_seconds(path) > 0 and time.monotonic() < until:
        time.sleep(0.05)
    return data


def _unsettled_seconds(path: Path | str) -> float:
    try:
        return max(0.0, SETTLED_SECONDS - _age(path))
    except OSError:
        return 0.0


def _age(path: Path | str) -> float:
    """Return the seconds since the file was written in place; infinity if it was not, or if its time is in the future.
    Raises OSError."""
    status = os.stat(path)
    age = time.time() - status.st_mtime
    # Renamed or linked after it was written: it appeared whole, as what we write does. Of a file that was just emptied,
    # Linux can tell the finer of its two clocks in `st_ctime`, the coarser one in `st_mtime`.
    was_renamed = status.st_ctime_ns > status.st_mtime_ns and status.st_size > 0
    return math.inf if was_renamed or age < 0 else age


def _clean_folder(folder: str, older_than_seconds: float) -> int:
    """Delete old files with the whole name that `_write_temporary` gives, and nothing else; return their number."""
    limit, removed = time.time() - older_than_seconds, 0
    with suppress(OSError), os.scandir(folder) as children:
        for child in children:
            if _TEMPORARY.fullmatch(child.name) and child.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if child.stat(follow_symlinks=False).st_mtime < limit:
                        os.unlink(child.path)
                        removed += 1
    return removed
