"""Scrub existing data again with the current rules.

All text is scrubbed before it is written. This module covers text that was written before a rule existed, and text
that people put into notes. Findings report places and kinds, never the text itself.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..pipelines.scrub import Finding, Policy, count_findings, findings, issued, scrub, scrub_issued, scrub_json
from ..runtime.atomic_file import replace_file
from ..runtime.errors import (
    EditConflict,
    EntryInvalid,
    EntryNotFound,
    MemoryVaultError,
    OutsideUnavailable,
    PathRefused,
    QueueUnavailable,
    VaultUnavailable,
)
from ..runtime.json_text import parse_json
from ..runtime.layout import FILE_MODE
from ..runtime.settings import Settings
from ..tasks.queue import queries
from ..tasks.queue.damage import back_up, backup_of
from ..tasks.queue.enqueue import open_ledger
from ..vault.entry import AGENT_SOURCE, INCIDENT, SKILL_KIND, Entry, hash_of, parse_text
from ..vault.fields import MACHINE_KEYS
from ..vault.frontmatter import load_fields, split_fields
from ..vault.header import split_header
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .boundary import is_outside
from .forgetting import forget_deleted
from .ideas.ledger import BY_COMMAND
from .ideas.scrubbing import scrub_ideas_list
from .indexing import reconcile_now
from .journal import Journal, text_of
from .state_db import checkpoint, replace_texts
from .stores import open_index, vault_store


@dataclass(frozen=True)
class Found:
    """Secrets or personal data found in one place."""

    where: str
    """One of vault, index, log, journal, spool, queue, state."""
    name: str
    kinds: Mapping[str, int]
    problem: str | None = None
    """Why it could not be removed; None if it was removed or only looked for."""


def scrub_everything(settings: Settings, store: VaultStore, *, apply: bool) -> list[Found]:
    """Find secrets and personal data; with `apply`, replace them.

    What cannot be read or written is reported in `problem`; the rest is still processed. Raises VaultUnavailable if the
    vault itself is absent or locked for too long.
    """
    journal = Journal(settings.state, store)
    found = _interrupted(journal, store)
    # Before the notes: otherwise an undo after a killed run would bring back what was removed from them.
    found += _journal(journal, apply)
    found += _vault(journal, apply)
    found += _ideas_list(settings, store, apply)
    if apply:
        found += _index(settings)
    for file in _files(settings.state.log):
        found += _lines(file, "log", _everything, apply)
    for file in _files(settings.state.spool):
        found += _lines(file, "spool", _secrets_only, apply)
    found += _queue(settings, apply)
    found += _state(settings, apply)
    if apply:
        found += _copies(settings)
    return found


def _interrupted(journal: Journal, store: VaultStore) -> list[Found]:
    """Recover an interrupted act. Its texts lie beside the journal, so it is reported if it cannot be recovered."""
    try:
        journal.recover()
    except VaultUnavailable as error:
        store.require_vault()
        return [Found("journal", "a change that was interrupted", {}, str(error))]
    return []


def _journal(journal: Journal, apply: bool) -> list[Found]:
    """Scrub the journal's files."""
    found: list[Found] = []
    with journal.store.lock():
        for file in journal.leftovers:
            found += _lines(file, "journal", _everything, apply=False)
            if apply:
                file.unlink(missing_ok=True)
        for file in journal.files:
            found += _lines(file, "journal", _journal_line, apply)
    return found


# ---- the vault


def note_policy(entry: Entry) -> Policy:
    """Return FULL for mined notes and incidents, SECRETS for what the user wrote.

    The user's own notes may have a property `source` too, such as a page or a book. Ours names a session or records.
    """
    if entry.kind == INCIDENT:
        return Policy.FULL
    if entry.sources and entry.sources[0].host == BY_COMMAND:  # An idea in the user's own words.
        return Policy.SECRETS
    ours = any(one.session or one.records or one.host in (AGENT_SOURCE, SKILL_KIND) for one in entry.sources)
    return Policy.FULL if ours else Policy.SECRETS


def scrub_note(text: str, policy: Policy) -> tuple[str, Counter[str]]:
    """Return the note's text without secrets, and the number of findings by kind. Names, dates and ids are kept."""
    parts = split_header(text)
    if parts is None:
        return str(scrub(text, policy)), count_findings(text, policy)
    before, header, after = parts
    closing, newline, body = after.partition("\n")
    kinds = count_findings(body, policy)
    fields = []
    for key, field in split_fields(header):
        # One field at a time, without its line end: a replacement must not swallow the next field.
        lines = field.rstrip("\r\n")
        clean, found = _scrub_field(key, lines, policy)
        kinds += found
        fields.append(clean + field[len(lines) :])
    return before + "".join(fields) + closing + newline + str(scrub(body, policy)), kinds


def _scrub_field(key: str | None, field: str, policy: Policy) -> tuple[str, Counter[str]]:
    if key in MACHINE_KEYS:
        # A program's id may look like a secret, so only issued tokens count here; the user may have added some.
        return str(scrub_issued(field)), _counted(issued(field))
    found = count_findings(field, policy)
    if found and key is not None and _is_clean_list(key, field, policy):
        return field, Counter()
    return str(scrub(field, policy)), found


def _is_clean_list(key: str, field: str, policy: Policy) -> bool:
    """Whether the value is a list without a secret in any single item. `[Password, "Team wiki"]` are two names; read as
    the arguments of a call, the second would be the value of the first."""
    items = load_fields(field).get(key)
    if not isinstance(items, list) or "#" in field:  # A comment belongs to no item.
        return False
    texts = [str(item) for item in items]
    is_command = any(text.startswith("-") for text in texts)
    return not is_command and not any(findings(f"{key}: {text}", policy) for text in texts)


_ITS_NAME = "its name contains it: rename the note and the links to it by hand"


def _vault(journal: Journal, apply: bool) -> Iterator[Found]:
    store = journal.store
    for path in store.walk(put_away=True):
        shown = str(scrub_issued(path))
        if in_name := issued(path):
            yield Found("vault", shown, _counted(in_name), _ITS_NAME)
        try:
            entry, text = store.read(path), text_of(store, path)
        except EntryNotFound:
            continue
        except EntryInvalid as error:
            yield Found("vault", shown, {}, f"{error}: check it by hand")
            continue
        except VaultUnavailable as error:
            store.require_vault()
            yield Found("vault", shown, {}, str(error))
            continue
        if text is None:
            continue
        clean, kinds = scrub_note(text, note_policy(entry))
        if clean != text:
            yield Found("vault", shown, kinds, _rewrite(journal, path, text, clean) if apply else None)


def _ideas_list(settings: Settings, store: VaultStore, apply: bool) -> list[Found]:
    kinds: Counter[str] = Counter()
    try:
        kinds = scrub_ideas_list(settings, store, apply=False)
        if apply and kinds:
            scrub_ideas_list(settings, store, apply=True)
    except (EditConflict, OutsideUnavailable) as error:
        return [Found("vault", "Ideas.md", kinds, str(error))]
    return [Found("vault", "Ideas.md", kinds)] if kinds else []


def _rewrite(journal: Journal, path: str, text: str, clean: str) -> str | None:
    store = journal.store
    before, after = split_header(text), split_header(clean)
    if before is not None and (after is None or load_fields(before[1]).keys() != load_fields(after[1]).keys()):
        return "its frontmatter can't be changed safely: edit it by hand"
    with store.lock():  # A lock that cannot be had is not this note's problem: the error passes on.
        try:
            # Not an act: the journal would keep the text. For `memory undo` the note counts as edited.
            store.write_text(path, Scrubbed(clean), hash_of(text))
        except (EditConflict, PathRefused, VaultUnavailable) as error:
            store.require_vault()
            return str(error)
    return None


# ---- the index


def _index(settings: Settings) -> list[Found]:
    """Bring the index up to date, which is derived from the notes, and overwrite what it no longer holds."""
    index_db = Path(settings.state.index_db)
    if not index_db.exists():
        return []
    try:
        reconcile_now(settings)
        with open_index(settings) as index:
            overwritten = index.overwrite_removed()
        forget_deleted(settings, vault_store(settings), ())
    except (MemoryVaultError, OSError) as error:
        return [Found("index", index_db.name, {}, str(error))]
    return [] if overwritten else [Found("index", index_db.name, {}, _IN_USE)]


# ---- files of JSON lines


def _journal_line(value: Any) -> tuple[Any, Counter[str]]:
    """Scrub a line of the journal, whose texts are notes."""
    kinds: Counter[str] = Counter()
    for change in value.get("changes", []) if isinstance(value, dict) else []:
        if isinstance(change.get("before"), str):
            text = change["before"]
            change["before"], found = scrub_note(text, _policy_of(str(change.get("path", "")), text))
            kinds += found
        elif isinstance(splice := change.get("before"), dict):
            splice["text"], found = _secrets_only(splice["text"])
            kinds += found
    return value, kinds


def _policy_of(path: str, text: str) -> Policy:
    """Return the policy of the journalled file, because an undo restores its text. Unreadable notes are the user's
    own."""
    if is_outside(path):
        return Policy.SECRETS
    try:
        return note_policy(parse_text(path, text))
    except EntryInvalid:
        return Policy.SECRETS


_everything, _secrets_only = partial(scrub_json, policy=Policy.FULL), partial(scrub_json, policy=Policy.SECRETS)


def _files(folder: str) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(path for path in Path(folder).iterdir() if path.is_file() and not path.is_symlink())
    return []


def _lines(file: Path, where: str, clean: Any, apply: bool) -> list[Found]:
    try:
        inode = os.stat(file).st_ino
        data = file.read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        return []
    except OSError as error:
        return [Found(where, file.name, {}, f"it can't be read: {error.strerror}")]
    kinds: Counter[str] = Counter()
    lines = []
    for line in data.splitlines(keepends=True):
        try:
            value, found = clean(parse_json(line))
            new = json.dumps(value) + "\n" if found or value != parse_json(line) else line
        except (ValueError, AttributeError):
            found = count_findings(line, Policy.FULL)
            new = str(scrub(line, Policy.FULL)) if found else line
        kinds += found
        lines.append(new)
    text = "".join(lines)
    if apply and text != data:
        try:
            if os.stat(file).st_ino != inode:  # The log was rotated meanwhile.
                return _lines(file, where, clean, apply)
            _write(file, text.encode("utf-8", "surrogateescape"))
        except FileNotFoundError:  # The worker has taken this job meanwhile; writing it back would run it twice.
            return []
        except OSError as error:
            return [Found(where, file.name, kinds, f"it can't be written: {error.strerror}")]
    return [Found(where, file.name, kinds)] if kinds else []


def _write(file: Path, data: bytes) -> None:
    """Replace the file atomically; rewrite stderr logs in place, because programs keep those open."""
    if file.suffix != ".stderr":
        replace_file(file, data)
        return
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    with open(descriptor, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(descriptor)


# ---- the databases

_IN_USE = "old pages are being read: stop the worker and the recall service and do it again"
_ENDED = frozenset({"done", "dead", "cancelled"})


def _queue(settings: Settings, apply: bool) -> list[Found]:
    """Scrub the errors, histories and arguments of jobs. Arguments hold ids and paths; a waiting job keeps its own."""
    if not Path(settings.state.queue_db).exists():
        return []
    found = []
    try:
        with open_ledger(settings) as ledger:
            with ledger.transaction() as conn:
                conn.execute("PRAGMA secure_delete = ON")
                for job_id, state, args, error, history in conn.execute(queries.TEXTS_OF_JOBS).fetchall():
                    new_args, kinds = scrub_json(_json_or_text(args), Policy.SECRETS)
                    problem = None
                    if kinds and state not in _ENDED:
                        new_args, problem = _json_or_text(args), f"it is {state}: cancel it first (`memory jobs list`)"
                    new_error, more = scrub_json(error, Policy.FULL)
                    new_history, still_more = scrub_json(parse_json(history), Policy.FULL)
                    kinds += more + still_more
                    if not kinds:
                        continue
                    found.append(Found("queue", f"job {job_id}", kinds, problem if apply else None))
                    if apply:
                        parameters = {"id": job_id, "error": new_error, "history": json.dumps(new_history)}
                        conn.execute(queries.REPLACE_TEXTS_OF_JOB, {**parameters, "args": json.dumps(new_args)})
            if apply:
                # Pages freed earlier may hold deleted text.
                ledger.read("VACUUM")
        if apply and not checkpoint(settings.state.queue_db):
            found.append(Found("queue", "queue.db", {}, _IN_USE))
    except QueueUnavailable as error:
        found.append(Found("queue", "queue.db", {}, str(error)))
    return found


def _json_or_text(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is none."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _state(settings: Settings, apply: bool) -> list[Found]:
    """Scrub the cursors of scans and the subjects of spending: addresses of sources, which may hold credentials."""
    state_db = Path(settings.state.state_db)
    if not state_db.exists():
        return []
    kinds: Counter[str] = Counter()

    def clean(text: str) -> str:
        value = _json_or_text(text)
        new, found = scrub_json(value, Policy.SECRETS)
        kinds.update(found)
        if not found or value is text:
            return str(new) if found else text
        return json.dumps(new, ensure_ascii=False)

    try:
        rows = replace_texts(state_db, clean, apply=apply)
        found = [Found("state", state_db.name, kinds)] if rows else []
        if apply and not checkpoint(state_db):  # Also completes an earlier run that was killed before this.
            found.append(Found("state", state_db.name, {}, _IN_USE))
    except QueueUnavailable as error:
        return [Found("state", state_db.name, {}, str(error))]
    return found


def _copies(settings: Settings) -> list[Found]:
    """Make the daily copies of the databases anew, because they hold what the databases held."""
    found = []
    for path in (Path(settings.state.queue_db), Path(settings.state.state_db)):
        copy = backup_of(path)
        if not copy.exists():
            continue
        try:
            if not back_up(path):
                problem = (
                    f"{path.name} is gone or damaged, so its copy stays as it was: `memory doctor`, then do it again"
                )
                found.append(Found("queue", copy.name, {}, problem))
        except (QueueUnavailable, OSError) as error:
            found.append(Found("queue", copy.name, {}, str(error)))
    return found


def _counted(found: Sequence[Finding]) -> Counter[str]:
    return Counter(finding.kind for finding in found)
