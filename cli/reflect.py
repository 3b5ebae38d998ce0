"""`memory reflect`: mine one transcript now; `memory reflect corpus`: queue all old ones."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..pipelines.routing import RoutedCandidate
from ..runtime.errors import UsageError
from ..runtime.layout import StatePaths
from ..runtime.settings_table import BY_NAME
from ..services.corpus.backfill import newest_session
from ..services.ideas.research import request_research_if_possible
from ..services.mining import Mined, MiningRequest, mine_transcript
from ..services.model_mining import AnswerCache
from ..services.pausing import why_nothing_starts
from ..services.pending_counts import count_pending_notes, why_full
from ..services.remembering import ideas_to_research, preview, remember
from ..sources.transcripts.compressed import IN_DATABASE, is_there, transcript_status
from ..sources.transcripts.hosts import HOSTS, holds_records, host_of
from ..tasks.queue.enqueue import request_indexing
from . import corpus
from .arguments import is_given
from .context import Context, current_folder
from .output import add_json, counted, note, print_json
from .path_arguments import named_file

PAUSE_POLL_SECONDS = 1.0
EPILOG = """example:
  memory reflect
  memory reflect --session ~/.claude/projects/-home-me-shop/3f0c6a52.jsonl --dry-run
  memory reflect corpus                       what mining all old sessions would take; changes nothing
  memory reflect corpus --execute             have the worker mine them
  memory reflect corpus --root ~/backup/sessions --since 2026-01-31 --project shop --execute
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory reflect`."""
    parser.add_argument(
        "what", nargs="?", type=_no_path, choices=("corpus",), help="corpus: all old sessions on this machine"
    )
    parser.add_argument(
        "--session",
        type=Path,
        metavar="PATH",
        help="one transcript, mined now (default: the newest of the current folder)",
    )
    parser.add_argument("--host", choices=sorted(HOSTS), help="which agent wrote it (default: recognised)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be kept; write nothing")
    parser.add_argument(
        "--miner",
        choices=BY_NAME["reflection.miner"].choices,
        help="what finds memories, this once (docs/how-to/miners.md)",
    )
    corpus.configure(parser.add_argument_group("memory reflect corpus"))
    add_json(parser)


def _no_path(word: str) -> str:
    if word.endswith(".jsonl") or os.path.isfile(word):
        raise argparse.ArgumentTypeError(f"name one transcript with --session: --session {shlex.quote(word)}")
    if word != "corpus":
        raise argparse.ArgumentTypeError(
            f"{word!r} is neither corpus nor a transcript: leave it out for this folder's newest session, or name one "
            "with --session"
        )
    return word


def run(args: argparse.Namespace, context: Context) -> int:
    """Mine the whole file. Known entries are recognised, so a second run changes nothing."""
    _check_options(args)
    if args.what == "corpus":
        return corpus.run(args, context)
    if not args.dry_run and (why := why_nothing_starts(context.settings)):
        raise UsageError(f"{why}: nothing is mined; --dry-run shows what would be")
    mined = _mine(args, context)
    _note_what_was_left_out(mined)
    routed = preview(mined.candidates, context.store, context.settings) if args.dry_run else _keep(mined, context)
    for warning in why_full(count_pending_notes(context.store)):
        note(f"memory: {warning}")
    if args.json:
        print_json([as_json(one) for one in routed])
        return 0
    if not routed:
        print("nothing in it was worth keeping")
    for one in routed:
        print(f"{one.tier:6} {one.candidate.category:10} {one.candidate.statement}")
        place = f": {one.destination}" if one.destination else ""
        print(f"       {one.action}{place} ({one.why})")
    if args.dry_run:
        note("memory: a dry run: nothing was written")
    return 0


def _check_options(args: argparse.Namespace) -> None:
    """Raise UsageError for options that do not belong together."""
    if args.what != "corpus":
        for option in corpus.OPTIONS:
            if is_given(args, option):
                raise UsageError(f"{option} belongs to `memory reflect corpus`")
        return
    if args.session is not None:
        raise UsageError("--session names one transcript, `corpus` means all of them: give one of the two")
    if args.dry_run and args.execute:
        raise UsageError("--dry-run changes nothing and --execute does: give one of the two")
    for option in ("--host", "--miner"):
        if is_given(args, option):
            raise UsageError(f"{option} belongs to `memory reflect --session PATH`")


def _mine(args: argparse.Namespace, context: Context) -> Mined:
    settings = context.settings
    if args.miner:
        settings = replace(settings, reflection=replace(settings.reflection, miner=args.miner))
    path = args.session or _newest_here(context)
    path = path.absolute() if IN_DATABASE in path.name and is_there(path) else named_file(path, "transcript")
    try:
        _require_session(path, args.host)
        with nullcontext() if args.dry_run else ended_by_pause(settings.state):
            return mine_transcript(MiningRequest(str(path), args.host or ""), settings)
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from error


def _note_what_was_left_out(mined: Mined) -> None:
    if mined.bad_lines:
        note(f"memory: {counted(mined.bad_lines, 'line is', 'lines are')} no JSON and passed over")
    if mined.headless:
        note("memory: a program ran this session, not a person: nothing is mined")
    for name in ("failed", "refused"):
        if name in mined.model:
            note(f"memory: the model was not asked about everything: {mined.model[name]}")


def _keep(mined: Mined, context: Context) -> tuple[RoutedCandidate, ...]:
    """Write what was found and ask the worker to index and research it."""
    settings, store = context.settings, context.store
    with ended_by_pause(settings.state), store.lock():
        remembered = remember(mined.candidates, store, settings, host=mined.host)
    AnswerCache(settings.state).forget(mined.answers)
    if remembered.written:
        request_indexing(settings)
    for slug in ideas_to_research(store, remembered):
        request_research_if_possible(settings, slug)
    return remembered.routed


def _newest_here(context: Context) -> Path:
    """The newest session of the current folder's project. Raises UsageError if there is none."""
    folder = current_folder()
    found = newest_session(context.settings, folder)
    if found is None:
        raise UsageError(
            f"no session was found that ran in {folder or 'this folder'}: "
            "memory reflect --session PATH takes any   (all old ones: memory reflect corpus)"
        )
    note(f"memory: the newest session here: {found.path}")
    return found.path


class _Paused(KeyboardInterrupt):
    """The pause that `ended_by_pause` waits for. No handler of errors may take it for one."""


@contextmanager
def ended_by_pause(state: StatePaths) -> Iterator[None]:
    """Interrupt the block within a second or two of a pause. Raises UsageError then. For the main thread only."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(PAUSE_POLL_SECONDS):
            if os.path.exists(state.stop_file):
                # A signal, and no flag: the main thread may be waiting for a lock or for a model's answer. Not SIGINT,
                # which a shell has its background jobs ignore.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
                return

    def end(*_: object) -> None:
        raise _Paused

    before = signal.signal(signal.SIGUSR1, end)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        try:
            yield
        finally:
            is_over.set()
            watcher.join()
    except _Paused:
        raise UsageError("MemoryVault is paused: this ended, and what it had written by then stays") from None
    finally:
        signal.signal(signal.SIGUSR1, before)


def _require_session(path: Path, host: str | None) -> None:
    """Raise UsageError unless the file is empty or has a session's records. Raises OSError."""
    if transcript_status(path).size == 0 or (holds_records(path) if host else host_of(path, lines=None)):
        return
    whose = host or f"an agent ({', '.join(sorted(HOSTS))})"
    raise UsageError(f"{path} is not a session of {whose}: there is no record of one in it")


def as_json(routed: RoutedCandidate) -> dict[str, Any]:
    """One candidate as `memory reflect --json` prints it."""
    plain = ("category", "statement", "reason", "role", "records", "excerpt")
    said = {name: getattr(routed.candidate, name) for name in plain}
    return {**said, "tier": str(routed.tier), "destination": routed.destination}
