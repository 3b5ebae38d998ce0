"""Mine one transcript: read it from where the last reading ended, and scrub what is proposed.

Runs in a child process of the worker, or in the command that asks for it. Writes only a model's answers to disk.
`python -m memoryvault.services.mining` is the child: a `MiningRequest` as JSON on stdin, a scrubbed `Mined` as JSON on
stdout.

The miner and the readers of transcripts are imported when a transcript is mined: their patterns take a while to
compile, and most importers of this module leave the mining to the child.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..pipelines.candidate import Candidate
from ..pipelines.scrub import scrub
from ..runtime.errors import ModelUnavailable, SettingsError
from ..runtime.killpoint import kill_point
from ..runtime.settings import Settings, load_settings
from ..tasks.queue import supervisor
from ..tasks.queue.kinds import Json
from ..vault.project import project_of

if TYPE_CHECKING:
    from ..pipelines.reading.model_windows import WindowPacker
    from .reading import SessionReader

READ_SECONDS = 60.0
"""Time limit of one reading. Its results are committed, so that a long session never starts from the beginning."""
REST = "the rest of a long session is read next"
"""Why a job that has committed a part is postponed."""
CANNOT_READ = 3
"""Exit status for a transcript that cannot be read."""
NO_MODEL = 4
"""Exit status if the request insists on the local model and that does not answer."""


@dataclass(frozen=True)
class MiningRequest:
    """Which part of which transcript to mine. Offsets are bytes from the beginning of the file."""

    transcript: str
    host: str
    mined_until: int = 0
    """Turns before it are context; turns from here on are mined."""
    context_offset: int = 0
    """Where reading has to begin so that the turns after `mined_until` are understood."""
    session: str = ""
    """Session to whose budget a model's tokens are counted; '' for the session that the transcript names."""
    local_only: bool = False
    """Do not ask the user's agent, whatever the settings say."""
    insist: bool = False
    """If the local model is installed, read nothing without it."""


@dataclass(frozen=True)
class Mined:
    """Scrubbed candidates, and where the next reading begins. Offsets are bytes from the beginning of the file."""

    candidates: tuple[Candidate, ...]
    mined_until: int
    context_offset: int
    bad_lines: int
    headless: bool
    """A program ran the session, so none of it is mined."""
    host: str
    model: Mapping[str, Json] = field(default_factory=dict)
    """Counts of a model's calls and errors, for the job's history; empty if no model was asked."""
    unconfirmed: int = 0
    """Number of new user messages that no record attributes to a person."""
    answers: tuple[str, ...] = ()
    """Keys of the model's answers to keep until this is committed."""
    has_more: bool = False
    """Reading stopped at `mined_until` after READ_SECONDS; the rest needs another reading."""


def mine_transcript(request: MiningRequest, settings: Settings | None = None) -> Mined:
    """Read and mine one transcript, also with the user's agent if the settings name one; without settings, neither the
    recall service nor an agent is asked.

    Raises OSError if the transcript cannot be read, ModelUnavailable if the request insists on the local model.
    """
    from .reading import SessionReader

    with SessionReader(settings, insist=request.insist) as messages:
        return _mine(request, settings, messages)


def _mine(request: MiningRequest, settings: Settings | None, messages: SessionReader) -> Mined:
    """Read the transcript, from its beginning if it was rewritten. Raises OSError, ModelUnavailable."""
    from ..pipelines.reading.calibration import eagerness_of
    from ..pipelines.reading.miner import Miner
    from ..sources.transcripts.hosts import open_transcript

    begun_at = request.mined_until
    packer = _window_packer(settings, begun_at)
    reader = open_transcript(
        Path(request.transcript),
        min(request.context_offset, begun_at),
        request.host or None,
        read_until=begun_at,
    )
    eagerness = eagerness_of(settings.reflection.eagerness if settings is not None else "")
    miner = Miner(start=begun_at, project_of=project_of, reader=messages, eagerness=eagerness)
    candidates: list[Candidate] = []
    has_new_turns = False
    stopped_at: int | None = None
    unconfirmed = 0
    enough_at = time.monotonic() + READ_SECONDS
    for turn in reader:
        if reader.restarted:
            break
        if turn.offset > begun_at and turn.is_users_words and time.monotonic() > enough_at:
            stopped_at = turn.offset
            break
        if turn.offset >= begun_at:
            has_new_turns = True
            unconfirmed += turn.is_users_words and not turn.confirmed
        candidates.extend(map(_scrub_candidate, miner.feed(turn)))
        if packer is not None:
            packer.feed(turn)
    if reader.restarted:  # The offsets are of the earlier file.
        return _mine(replace(request, mined_until=0, context_offset=0), settings, messages)
    candidates = [each for each in candidates if each.records not in miner.refuted]
    mined_until = max(reader.end_offset, begun_at) if stopped_at is None else stopped_at
    context = miner.context_offset if has_new_turns else request.context_offset
    mined = Mined(
        candidates=() if reader.headless else tuple(candidates),
        mined_until=mined_until,
        context_offset=min(context, mined_until),
        bad_lines=reader.bad_lines,
        headless=reader.headless,
        host=reader.host,
        unconfirmed=unconfirmed,
        has_more=stopped_at is not None,
    )
    messages.close()
    if settings is not None and packer is not None and not mined.headless:
        mined = _add_model_candidates(mined, packer, settings, request.session or reader.session)
    if reader.forked_from:
        candidates = [replace(each, forked_from=reader.forked_from) for each in mined.candidates]
        mined = replace(mined, candidates=tuple(candidates))
    return mined


def _window_packer(settings: Settings | None, mined_until: int) -> WindowPacker | None:
    """Return the packer of windows for a model; None if no model is asked."""
    if settings is None or settings.reflection.miner == "local":
        return None
    from ..pipelines.reading.model_windows import WINDOW_TOKENS, WindowPacker

    return WindowPacker(WINDOW_TOKENS, mined_until)


def _add_model_candidates(mined: Mined, packer: WindowPacker, settings: Settings, session: str) -> Mined:
    from ..pipelines.reading.model_answers import merge_candidates
    from .model_mining import mine_windows

    modelled = mine_windows(packer.windows(), settings, session, project_of)
    found = [_scrub_candidate(each) for each in modelled.candidates]
    candidates = merge_candidates(mined.candidates, found, modelled.read)
    report = {**modelled.report, **({"turns_not_sent": packer.unsent} if packer.unsent else {})}
    return replace(mined, candidates=candidates, model=report, answers=modelled.answers)


def _scrub_candidate(candidate: Candidate) -> Candidate:
    return replace(
        candidate,
        statement=scrub(candidate.statement) or "[removed]",
        headline=scrub(candidate.headline) if candidate.headline else "",
        reason=scrub(candidate.reason),
        excerpt=scrub(candidate.excerpt),
        said=scrub(candidate.said) if candidate.said else None,
        occasion=scrub(candidate.occasion) if candidate.occasion else "",
    )


def mined_from_json(value: Mapping[str, Any]) -> Mined:
    """Restore what the child has printed. Raises KeyError, TypeError, ValueError for anything else."""
    candidates = tuple(
        Candidate(**{**each, "records": tuple(each["records"]), "forked_from": tuple(each.get("forked_from", ()))})
        for each in value["candidates"]
    )
    return Mined(**{**value, "candidates": candidates, "answers": tuple(value["answers"])})


def child_settings(local_only: bool) -> Settings | None:
    """Return the user's settings, with `local_only` without the user's agent; None while config.toml is invalid."""
    try:
        settings = load_settings(os.environ)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return None
    return replace(settings, reflection=replace(settings.reflection, miner="local")) if local_only else settings


def main() -> int:
    """Run the child process."""
    supervisor.watch_parent()
    request = MiningRequest(**json.load(sys.stdin))
    try:
        mined = mine_transcript(request, child_settings(request.local_only))
    except OSError as error:
        print(f"{request.transcript} cannot be read: {error.strerror}", file=sys.stderr)
        return CANNOT_READ
    except ModelUnavailable as error:
        print(f"the model does not answer: {error}", file=sys.stderr)
        return NO_MODEL
    kill_point("mid-child")
    json.dump(asdict(mined), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
