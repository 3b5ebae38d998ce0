"""The job logs.rotate: rotate logs, delete old files, forget deleted notes, copy databases that cannot be derived."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from ...runtime.days import SECONDS_PER_DAY, local_day
from ...runtime.errors import VaultUnavailable
from ...runtime.json_text import parse_json
from ...runtime.layout import StatePaths
from ...runtime.paths import delete_older
from ...runtime.settings import Settings
from ...services.completion import CALLS_FOLDER
from ...services.cursors import Cursors
from ...services.forgetting import forget_deleted
from ...services.ideas.archive import purge_trash
from ...services.ideas.ledger import clean_beside_list
from ...services.journal import Journal
from ...services.model_mining import ANSWERS_FOLDER
from ...services.stores import vault_store
from ..queue.damage import back_up, set_aside_files
from ..queue.enqueue import open_ledger
from ..queue.job import RunningJob
from ..queue.kinds import Json
from .research_child import PURPOSE as RESEARCH_FOLDER

ROTATE_DAYS = 7
SCAN, LAST_RUN = "upkeep", "logs.rotate"
STRIDE_SECONDS = 2 * SECONDS_PER_DAY
"""A larger step of the clock between two runs is suspected to be wrong, and trusted after this time."""
KEEP_DAYS = 30
ROTATE_BYTES = 50_000_000
"""A log that reaches this size is rotated before its week is over."""
HISTORY_DAYS = 30
"""Finished jobs older than this are deleted; dead ones stay until the user has handled them."""
STALE_TEMPORARY_SECONDS = 3600.0
STDERR_BYTES = 1_000_000
ANSWER_DAYS = 7
FINDINGS_DAYS = 7
"""Research continues from its findings within two days; those of a deleted idea are never used."""


def rotate_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle logs.rotate."""
    job.check_owned()
    state, now = settings.state, time.time()
    steady = steady_time(Cursors(state.state_db, SCAN), now)
    done: dict[str, Json] = {
        "rotated": [*rotate_logs(state, now)],
        "deleted": delete_old(state, steady),
        "temporaries": clean_temporaries(state, steady),
    }
    with contextlib.suppress(VaultUnavailable):
        store = vault_store(settings)
        done["vault_temporaries"] = store.clean_temporaries() + clean_beside_list(settings, store)
        Journal(settings.state, store).recover()
        # What a kill left, or what could not be written, when the index lost a deleted note.
        done["forgotten"] = forget_deleted(settings, store, ())
        done["deleted_ideas"] = purge_trash(store, local_day(steady))
    with open_ledger(settings) as ledger:
        done["pruned"] = ledger.prune(HISTORY_DAYS * SECONDS_PER_DAY + now - steady)
    done["copied"] = sum(back_up(Path(name)) for name in (state.queue_db, state.state_db))
    return {name: value for name, value in done.items() if value}


def steady_time(runs: Cursors, now: float) -> float:
    """Return the time, in Unix seconds, that decides whether files are old enough to be deleted; at most `now`.

    A machine that starts with a date a year ahead would run the missed slots within seconds, and the user would lose
    files that are kept for 30 days. So a leap of the clock is trusted only when two more days have passed; after a long
    absence, files are deleted two days later than usual.
    """
    last = runs.get(LAST_RUN) or {"at": now}
    believed, leapt_at = float(last["at"]), float(last.get("leapt_at", now))
    if now <= believed + STRIDE_SECONDS or now >= leapt_at + STRIDE_SECONDS:
        runs.set(LAST_RUN, {"at": now})
        return now
    # A step back from the future that does not go all the way is another leap.
    runs.set(LAST_RUN, {"at": believed, "leapt_at": min(now, leapt_at)})
    return believed + STRIDE_SECONDS


def rotate_logs(state: StatePaths, now: float) -> list[str]:
    """Rename logs whose first line is a week old to `<name>.<date>`; return their names.

    Writers open the file for each line, so none continues in a renamed file.
    """
    rotated = []
    for path in (Path(state.log_file), Path(state.receipts)):
        with contextlib.suppress(FileNotFoundError):
            begun = _begun_at(path)
            if path.stat().st_size > ROTATE_BYTES or (
                begun is not None and now - begun > ROTATE_DAYS * SECONDS_PER_DAY
            ):
                target = path.with_name(f"{path.name}.{datetime.fromtimestamp(now, UTC):%Y%m%d}")
                if not target.exists():
                    path.rename(target)
                    rotated.append(path.name)
    for path in Path(state.log).glob("*.stderr"):
        # A running program keeps this one open for appending, so it is truncated and not renamed.
        with contextlib.suppress(OSError):
            if path.stat().st_size > STDERR_BYTES:
                os.truncate(path, 0)
                rotated.append(path.name)
    return rotated


def delete_old(state: StatePaths, now: float) -> int:
    """Delete rotated logs, damaged databases and snapshots of settings after 30 days; return how many files."""
    log, root = Path(state.log), Path(state.root)
    # A snapshot of the settings is for one environment, and is compiled again when needed.
    snapshots = (root.parent / "run").glob("hooks-*.snapshot")
    old = (*log.glob("*.jsonl.*"), *log.glob("*.log.*"), *set_aside_files(state), *snapshots)
    return delete_older(old, now - KEEP_DAYS * SECONDS_PER_DAY)


def clean_temporaries(state: StatePaths, now: float) -> int:
    """Delete temporary files of killed writers, and models' answers and research findings that are no longer needed;
    return how many files."""
    cache = Path(state.cache)
    run = Path(state.root).parent / "run"
    # Not the whole tree: a call's folder in the cache may vanish while it is walked.
    places = (state.root, state.spool, state.markers, state.log, state.journal, run, cache / ANSWERS_FOLDER)
    left = [path for place in places for path in Path(place).glob("*.tmp")]
    folders = {CALLS_FOLDER: STALE_TEMPORARY_SECONDS, RESEARCH_FOLDER: FINDINGS_DAYS * SECONDS_PER_DAY}
    for name, seconds in folders.items():
        for folder in (cache / name).glob("*"):
            with contextlib.suppress(OSError):
                newest = max((path.stat().st_mtime for path in folder.iterdir()), default=folder.stat().st_mtime)
                if newest < now - seconds:
                    shutil.rmtree(folder)
    answers = delete_older((cache / ANSWERS_FOLDER).glob("*.json"), now - ANSWER_DAYS * SECONDS_PER_DAY)
    return delete_older(left, now - STALE_TEMPORARY_SECONDS) + answers


def _begun_at(path: Path) -> float | None:
    """Return the Unix time of the first line; else of the file's last change; None if the file is empty."""
    with path.open("rb") as file:
        first = file.readline(65_536)
        changed = os.fstat(file.fileno()).st_mtime
    if not first:
        return None
    try:
        fields = parse_json(first)
        stamp = datetime.fromisoformat(str(fields.get("time") or fields.get("at")))
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    except (ValueError, AttributeError):
        return changed
