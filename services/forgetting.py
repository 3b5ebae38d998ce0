"""Remove the words of notes that the user has deleted from every file of the state folder.

The index forgets a note with its file. This module covers everything else that names or quotes it: the journal,
receipts, logs, texts given to sessions, answers of models, and arguments of jobs. A note that the program itself
removed or moved stays in the journal, which `memory undo` needs.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ..runtime.atomic_file import replace_file
from ..runtime.errors import MemoryVaultError, SchemaTooNew
from ..runtime.killpoint import kill_point
from ..runtime.settings import Settings
from ..tasks.queue.damage import back_up, backup_of, set_aside_files
from ..tasks.queue.enqueue import open_ledger
from ..vault.store import VaultStore
from .journal import Journal
from .model_mining import ANSWERS_FOLDER
from .state_db import checkpoint
from .tombstones import NOTE

log = logging.getLogger(__name__)

FORGOTTEN = "forgotten"
"""Replaces the name of a note in receipts and logs."""


def deleted_by_user(journal: Journal, paths: Iterable[str]) -> frozenset[str]:
    """Return the notes that are missing from the vault although the program's last act, if any, left a file there. The
    note of what was taken back does not count: it holds ids."""
    left: dict[str, bool] = {}
    for act in journal.acts():
        for change in act.changes:
            left[change.path] = change.after_hash is not None
    wanted = {*paths, *(path for path, is_left in left.items() if is_left and not os.path.isabs(path))}
    return frozenset(path for path in wanted - {NOTE} if left.get(path, True) and not journal.store.is_taken(path))


def forget_deleted(settings: Settings, store: VaultStore, removed: Iterable[str]) -> int:
    """Forget the notes that the user has deleted, of `removed` and of the journal; return how many.

    The journal is written last: it names what the next call has to forget after a kill, or after what could not be
    written, which is logged. The job logs.rotate makes one a day. Raises VaultUnavailable.
    """
    journal = Journal(settings.state, store)
    with store.lock():
        store.require_vault()
        gone = deleted_by_user(journal, removed)
        if not gone:
            return 0
        names = gone | journal.traced(gone)[0]
    try:
        pattern = _pattern(names)
        kill_point("forget")
        _forget_in_files(settings, pattern)
        for file in set_aside_files(settings.state):  # They hold the words of notes, and nobody needs them.
            file.unlink(missing_ok=True)
        shutil.rmtree(Path(settings.state.cache) / ANSWERS_FOLDER, ignore_errors=True)
        _forget_in_queue(settings, pattern)
    except (MemoryVaultError, OSError) as error:
        log.warning("%d deleted notes are not forgotten everywhere yet: %s", len(gone), error)
        return 0
    with store.lock():
        journal.forget(gone & deleted_by_user(journal, gone))
    return len(gone)


def _pattern(paths: Collection[str]) -> re.Pattern[bytes]:
    """Match the paths, and names of several words, as they may be written: as they are, or as a JSON string, in a log's
    message with single blanks."""
    files = map(PurePosixPath, paths)
    names = {file.parent.name if file.name == "_index.md" else file.stem for file in files}
    found = {*paths, *(name for name in names if "-" in name)}
    found |= {" ".join(mark.split()) for mark in found}
    marks = found | {json.dumps(mark, ensure_ascii=is_ascii)[1:-1] for mark in found for is_ascii in (True, False)}
    return re.compile(
        rb"(?<![\w-])(?:" + b"|".join(re.escape(mark.encode()) for mark in sorted(marks, key=len, reverse=True))
        + rb")(?:\.md)?(?![\w-])"
    )  # fmt: skip


def _forget_in_files(settings: Settings, pattern: re.Pattern[bytes]) -> None:
    """Replace the names in logs, receipts and texts given to sessions."""
    for folder in (settings.state.log, settings.state.markers):
        for file in sorted(Path(folder).glob("*")):
            with suppress(FileNotFoundError, IsADirectoryError):
                if file.suffix == ".stderr" or file.is_symlink() or not file.is_file():
                    continue
                data = file.read_bytes()
                if (clean := pattern.sub(FORGOTTEN.encode(), data)) != data:
                    replace_file(file, clean)


def _forget_in_queue(settings: Settings, pattern: re.Pattern[bytes]) -> None:
    """Empty the ended jobs with a name. A newer version's queue is left to that version."""
    queue_db = Path(settings.state.queue_db)
    if queue_db.exists():
        with suppress(SchemaTooNew), open_ledger(settings) as ledger:
            ledger.forget(lambda texts: pattern.search(texts.encode()) is not None)
        checkpoint(queue_db)
    if backup_of(queue_db).exists():
        back_up(queue_db)
