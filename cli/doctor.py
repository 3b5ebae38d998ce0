"""`memory doctor`: test every assumption live, and save and recall a note."""

from __future__ import annotations

import argparse
import errno
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ..hooks.extension import why_no_hook_runs
from ..hooks.wiring import CLAUDE, WIRINGS, is_wired, needs_renewal, trusted_by_codex, wired_events
from ..index.client import RecallClient, ServiceUnavailable, ensure_service
from ..index.database import load_vectors, open_writer
from ..index.drain import BATCH_TEXTS
from ..index.embedder import extra_of, locate_model, missing_library, model_name, verify_model
from ..index.models import model_in_force, wanted_model, why_not_loaded
from ..index.receipts import TRIAL_CALLER
from ..runtime.background import what_starts_a_worker
from ..runtime.errors import MemoryVaultError, ModelUnavailable, SettingsError
from ..runtime.layout import DEFAULT_GROUP
from ..runtime.process_lock import lock_holder
from ..runtime.settings import snapshot_from_before
from ..services.active_counts import describe_notes, read_notes
from ..services.completion import completer_of
from ..services.indexing import drain_now, reconcile_now
from ..services.pausing import how_to_go_on, why_nothing_starts
from ..services.stores import open_index
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.records import LEASE_SECONDS
from ..vault.automemory import PROBE_KIND
from ..vault.listing import list_left_out
from ..vault.scrubbed import Scrubbed
from .context import Context
from .doctor_checks import (
    Finding,
    Grade,
    ending_transcripts,
    headers,
    hooks_start_worker,
    hooks_wired,
    last_hook,
    login_service,
    other_devices,
    permissions,
    sync_clients,
    vault_and_disk,
)
from .output import counted, how_to, in_line, print_json, with_home
from .processes import stop_background
from .progress import StatusLine

EPILOG = """example:
  memory doctor          exit code 0 when nothing is broken
"""

SERVICE_PATIENCE_SECONDS = 60.0
PROBE_LEFT_SECONDS = 600.0
"""A probe older than this was left by a killed `memory doctor`."""
# The question shares no content word with the note, so that only the model can find it.
PROBE_NOTE = "Ship new versions on Tuesday mornings only."
PROBE_WORDS = "ship new versions on Tuesday"
PROBE_QUESTION = "Which day may we deploy a release to production?"

TODO_OF_LEFT_OUT = "move into the vault what is meant to be found: links out of it are not followed"
_TAKE = "give your account the right to read and write it (`ls -ld` shows whose it is)"
_MOVE = "move away what is there: a file is in the place of a folder, or a folder in the place of a file"
TODO_OF_ERRNO = {
    errno.EACCES: _TAKE,
    errno.EPERM: _TAKE,
    errno.EROFS: "its disk is mounted read-only: mount it for writing",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.ENOTDIR: _MOVE,
    errno.EISDIR: _MOVE,
    errno.EEXIST: _MOVE,
}


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the findings; exit code 1 when one of them is a fault."""
    findings = []
    with StatusLine(quiet=args.json) as line:
        if not args.json:
            _print_row("", "what", "found")
        for finding in examine(context, lambda what: line.show(f"testing: {what}")):
            findings.append(finding)
            line.clear()
            if not args.json:
                _print_row(finding.grade, finding.what, finding.detail + (f" — {finding.todo}" if finding.todo else ""))
    if args.json:
        print_json([finding.__dict__ for finding in findings])
    return 1 if any(finding.grade == "fault" for finding in findings) else 0


def _print_row(grade: str, what: str, found: str) -> None:
    """Print one row at once, since the next check may take seconds; hence the fixed widths."""
    print(f"{grade:<{WIDEST_GRADE}} {what:<{WIDEST_CHECK}}  {in_line(with_home(found))}", flush=True)


def examine(context: Context, on_check: Callable[[str], None] = lambda what: None) -> Iterator[Finding]:
    """Run all checks and yield a finding for each; a failed check does not stop the others.

    `on_check(what)` is called before each check.
    """
    context, readable = context.despite_faults()
    if readable.faults:
        hooks_go_on = snapshot_from_before(context.env) is not None
        meanwhile = "hooks go by the settings from before" if hooks_go_on else "nothing is recorded"
        todo = f"mend it: until then {meanwhile}, and no worker starts"
        yield Finding("settings", "fault", "; ".join(readable.faults), todo)
    told = ""
    skipped: set[str] = set()
    try:
        if "vault.path" in readable.unread:
            raise SettingsError("which folder it is could not be read")
        _ = context.state
    except (MemoryVaultError, OSError) as error:
        yield _fault("vault", error) if isinstance(error, OSError) else Finding("vault", "fault", str(error))
        told = str(error)
        skipped = {what for what, _ in CHECKS} - WITHOUT_STATE
        settings = context.settings
        is_chosen = "vault.path" not in readable.unread and settings.vault_path is not None
        if is_chosen and os.path.isdir(settings.state.root):  # Although the vault may be away.
            skipped -= WITHOUT_VAULT
    for what, check in CHECKS:
        if what in skipped:
            continue
        if readable.faults and what == ROUND_TRIP:
            yield Finding(what, "note", "not tested: what it starts reads the same settings")
            continue
        on_check(what)
        try:
            yield check(context)
        except (MemoryVaultError, OSError) as error:
            if what == "vault":
                skipped.add(ROUND_TRIP)
            if str(error) != told:
                yield _fault(what, error)


def _fault(what: str, error: MemoryVaultError | OSError) -> Finding:
    """The finding for an error that a check raised."""
    if not isinstance(error, OSError) or not error.strerror:
        return Finding(what, "fault", str(error), f"see {how_to('troubleshooting')}")
    place = f"{error.filename}: " if error.filename else ""
    todo = TODO_OF_ERRNO.get(error.errno or 0, f"see {how_to('troubleshooting')}")
    return Finding(what, "fault", f"{place}{error.strerror}", todo)


def _other_agents(context: Context) -> Finding:
    """Which other hosts are wired, and what stops their hooks."""
    told: list[str] = []
    todo: list[str] = []
    for host, wiring in WIRINGS.items():
        if host == CLAUDE:
            continue
        events = wired_events(host, context.settings)
        if needs_renewal(host, context.settings):
            told.append(f"{wiring.title}: by an older version or incomplete")
            todo.append(f"`memory init --host {host}` renews it")
            continue
        if not events:
            continue
        experimental = " (experimental: never run against the program itself)" if wiring.experimental else ""
        told.append(f"{wiring.title}: {', '.join(events)}{experimental}")
        if len(events) < len(wiring.events):
            todo.append(f"`memory init --host {host}` puts back what is missing")
        if host == "gemini" and (why := why_no_hook_runs(context.settings)):
            todo.append(why)
        if host == "codex" and not trusted_by_codex(context.settings):
            todo.append("Codex runs hooks once you trust them: type /hooks in it")
    if not told:
        return Finding("other agents", "ok", "none is wired (`memory init --host` wires others, too)")
    grade: Grade = "note" if todo or "(experimental" in "".join(told) else "ok"
    return Finding("other agents", grade, "; ".join(told), "; ".join(todo))


def _worker(context: Context) -> Finding:
    if why := why_nothing_starts(context.settings):
        told = f"{why}: nothing is recorded or said to sessions, and every job waits"
        return Finding("worker", "note", told, how_to_go_on(context.settings))
    process = lock_holder(context.kept_state.worker_lock)
    if process is not None:
        return _running_worker(context, process)
    return Finding("worker", "note", "does not run", what_starts_a_worker(context.settings, is_wired))


def _running_worker(context: Context, process: int) -> Finding:
    """A worker that was stopped by Ctrl-Z, or hangs, keeps its lock, so no hook starts another."""
    with open_ledger(context.settings) as ledger:
        beat = ledger.worker()
        if beat is None or beat.pid != process or not ledger.is_worker_silent(LEASE_SECONDS):
            return Finding("worker", "ok", f"runs as process {process}")
        silent = counted(round(ledger.now() - beat.beat_at), "second")
    another = "the next session" if hooks_start_worker(context.settings) else "`memory service up`"
    todo = f"`kill -CONT {process}` if it was stopped (Ctrl-Z), else `kill -9 {process}`: {another} starts another"
    return Finding("worker", "fault", f"process {process} has not responded for {silent}", todo)


def _queue(context: Context) -> Finding:
    with open_ledger(context.settings) as ledger:
        backlog = ledger.backlog()
        held = ledger.paused()
    detail = f"{backlog.running} running, {backlog.due} due, {backlog.delayed} waiting"
    if backlog.dead:
        return Finding("queue", "note", f"{detail}, {backlog.dead} dead", "`memory jobs list --state dead` says why")
    if held:
        return Finding("queue", "note", f"{detail}; paused: {', '.join(held)}", f"`memory jobs resume {held[0]}`")
    return Finding("queue", "ok", detail)


def _index(context: Context) -> Finding:
    report = reconcile_now(context.settings)
    with open_index(context.settings) as index:
        problems = index.integrity_problems()
        stats, notes = index.stats(), describe_notes(*read_notes(context.store))
    if problems:
        return Finding("index", "fault", problems[0], "`memory vault reindex --rebuild`")
    detail = f"{notes}, {counted(stats.chunks, 'passage')}"
    if stats.pending:
        detail += f", {stats.pending} without a vector"
    if report.failed:
        named = ", ".join(report.failed)
        return Finding("index", "note", f"{detail}; not readable: {named}", "mend those files, or their permissions")
    if not_searched := [*_not_searched(context.vault)]:
        return Finding("index", "note", f"{detail}; not searched: {'; '.join(not_searched)}", TODO_OF_LEFT_OUT)
    behind = counted(report.touched, "file was", "files were")
    step = f"{behind} behind, now in step" if report.touched else "in step with the files"
    return Finding("index", "ok", f"{detail}, {step}")


def _not_searched(vault: Path) -> Iterator[str]:
    links, in_the_cloud, unreadable = list_left_out(vault)
    yield from unreadable
    if links:
        yield ", ".join(f"{path} (a link to {os.path.realpath(vault / path)})" for path in links)
    if in_the_cloud:
        yield f"{counted(len(in_the_cloud), 'note')} that the cloud client has not downloaded"


def _extension(context: Context) -> Finding:
    with closing(open_writer(Path(context.state.index_db))) as connection:
        loaded = load_vectors(connection)
    if not loaded:
        return Finding("sqlite-vec", "note", "cannot be loaded: recall works on keywords only")
    return Finding("sqlite-vec", "ok", "loads")


def _model(context: Context) -> Finding:
    name = model_in_force(Path(context.state.index_db), context.settings.embedding.model)
    try:
        place = locate_model(name, Path(context.state.models))
    except ModelUnavailable as error:
        # Keywords alone are a way to use it; a model that was asked for and is gone is not.
        chosen = "embedding.model" in context.settings.origins
        return Finding("model", "fault" if chosen else "note", str(error), f"see {how_to('models')}")
    verify_model(place)
    if (library := missing_library(place)) is not None:
        lacks = f"{name} is here, but not {library}: recall works on keywords only"
        return Finding(
            "model", "note", lacks, f"install the wheel again with [{extra_of(library)}]: see {how_to('install')}"
        )
    wanted = model_name(context.settings.embedding.model)
    if name != wanted:
        if (missing := why_not_loaded(wanted, Path(context.state.models))) is not None:
            return Finding("model", "note", f"{name} still answers: {missing}")
        return Finding(
            "model", "note", f"{name} answers, the settings name {wanted}", "`memory config model` shows how far"
        )
    from ..services.reading import who_reads  # imported here: it loads the reader of words

    return Finding("model", "ok", f"{name}; sessions are read by {who_reads(context.settings)}")


def _round_trip(context: Context) -> Finding:
    """Save a note, recall it in other words, delete it.

    If more than one batch of passages has no vector yet, the note is recalled by its own words, since embedding them
    all could take an hour.
    """
    store = context.store
    _remove_left_probes(context)
    path = store.entry_path(DEFAULT_GROUP, PROBE_KIND, f"probe-{secrets.token_hex(4)}")
    entry = store.create(
        path,
        {
            "kind": PROBE_KIND,
            "status": "active",
            "group": DEFAULT_GROUP,
            "slug": path.rsplit("/", 1)[-1][:-3],
        },
        title=None,
        body=Scrubbed.trusted(PROBE_NOTE, reason="our own sentence"),
    )
    try:
        with _service(context):
            reconcile_now(context.settings)
            with open_index(context.settings) as index:
                model = index.in_force() or wanted_model(context.settings)
                before_it = (index.pending_count(model) if index.has_vectors else 0) - 1
            with RecallClient(context.state.recall_socket) as client:
                waits = before_it >= BATCH_TEXTS and client.ping()["failure"] is None
            semantic = not waits and drain_now(context.settings).reason is None
            question = PROBE_QUESTION if semantic else PROBE_WORDS
            with RecallClient(context.state.recall_socket) as client:
                answer = client.recall(
                    question, k=3, filter=f"kind={PROBE_KIND}", all_projects=True, caller=TRIAL_CALLER
                )
        found = any(hit["path"] == path for hit in answer["hits"])
    finally:
        with suppress(MemoryVaultError):
            store.remove(path, entry.content_hash)
        folder = context.vault / DEFAULT_GROUP / PROBE_KIND
        with suppress(OSError):
            folder.rmdir()
        reconcile_now(context.settings)
    if not found:
        return Finding(ROUND_TRIP, "fault", "a note that was saved did not come back", "see `memory service logs`")
    if waits:
        detail = f"saved, asked in its own words, came back, deleted; {before_it:,} passages have no vector yet"
        return Finding(ROUND_TRIP, "ok", detail, "`memory health` shows how far that is")
    how = "asked in other words" if semantic else "asked in its own words: there is no model"
    return Finding(ROUND_TRIP, "ok" if semantic else "note", f"saved, {how}, came back, deleted")


def _remove_left_probes(context: Context) -> None:
    for file in (context.vault / DEFAULT_GROUP / PROBE_KIND).glob("probe-*.md"):
        with suppress(MemoryVaultError, OSError):
            entry = context.store.read(file.relative_to(context.vault).as_posix())
            if entry.body.strip() == PROBE_NOTE and time.time() - file.stat().st_mtime > PROBE_LEFT_SECONDS:
                context.store.remove(entry.path, entry.content_hash)


@contextmanager
def _service(context: Context) -> Iterator[None]:
    """Run the block with a recall service whose model is loaded: the running one, else a new one.

    A new one is stopped afterwards unless hooks will use it. Raises ServiceUnavailable if there is none.
    """
    is_ours = lock_holder(context.state.recall_lock) is None
    try:
        if not ensure_service(context.settings, SERVICE_PATIENCE_SECONDS, wait_for_model=True):
            with RecallClient(context.state.recall_socket) as client:
                try:
                    client.ping()  # It may only load its model for long.
                except ServiceUnavailable as error:
                    if (process := lock_holder(context.state.recall_lock)) is None:
                        raise
                    told = f"the recall service (process {process}) does not answer: `kill -9 {process}` ends it"
                    raise ServiceUnavailable(told) from error
        yield
    finally:
        # Without hooks nothing would use it or stop it.
        if is_ours and not hooks_start_worker(context.settings):
            stop_background(context.state, "recall")


def _miner(context: Context) -> Finding:
    """Who reads sessions. No model is called: that would cost."""
    chosen = context.settings.reflection
    if completer_of(context.settings) is None:
        return Finding("miner", "ok", "local: sessions stay on this machine")
    where = chosen.endpoint if chosen.miner == "openai" else f"the {chosen.miner} command"
    return Finding("miner", "ok", f"scrubbed text of sessions goes to {where}")


WITHOUT_VAULT = {"permissions", "worker", "queue"}
"""Checks of the state folder, made without the vault too."""
WITHOUT_STATE = {"hooks", "other agents", "service", "miner"}
"""Checks that need neither vault nor state folder."""
ROUND_TRIP = "round trip"
"""It writes to the vault, and starts processes."""
CHECKS: tuple[tuple[str, Callable[[Context], Finding]], ...] = (
    ("vault", vault_and_disk),
    ("permissions", permissions),
    ("sync conflicts", sync_clients),
    ("headers", headers),
    ("devices", other_devices),
    ("hooks", hooks_wired),
    ("other agents", _other_agents),
    ("last hook", last_hook),
    ("old sessions", ending_transcripts),
    ("service", login_service),
    ("worker", _worker),
    ("queue", _queue),
    ("index", _index),
    ("sqlite-vec", _extension),
    ("model", _model),
    ("miner", _miner),
    (ROUND_TRIP, _round_trip),
)
WIDEST_GRADE = len("fault")
WIDEST_CHECK = max(len(what) for what, _ in CHECKS)
