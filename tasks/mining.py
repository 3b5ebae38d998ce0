"""Mining one transcript: in a child process of the worker, or in the command that asks for it.

`python -m memoryvault.tasks.mining` is the child: a request as JSON on stdin, candidates as JSON on stdout. It
writes nothing to disk, and what it prints is scrubbed.

The miner and the readers of transcripts are imported where a transcript is mined: their patterns take a while to
compile, and most of those who know of this module have the child do it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..pipelines.candidate import Candidate
from ..pipelines.scrub import scrub
from ..vault.errors import SettingsError
from ..vault.killpoint import kill_point
from ..vault.project import project_of
from ..vault.settings import Settings, load_settings
from ..vault.turn import Origin, Role, Turn
from .queue import supervisor
from .queue.kinds import Json

CAN_NOT_READ = 3
FIRST_BATCH_TURNS = 64
BATCH_TURNS = 1000
BATCH_CHARS = 1 << 20
OPENING = frozenset({Origin.PROMPT, Origin.QUEUED, Origin.COMMAND_ARGS})
"""With these a turn of the user begins. (A refusal answers a call, which may lie far back.)"""


@dataclass(frozen=True)
class MiningRequest:
    """Which bytes of which transcript; `resume` is where reading begins, `offset` where mining does.

    `said`: where reading may begin instead if what is to be mined begins with a prompt.
    """

    transcript: str
    host: str
    offset: int = 0
    resume: int = 0
    said: int | None = None
    session: str = ""
    """Whose budget a model's tokens are counted to; the transcript's own name when it is not given."""
    local_only: bool = False
    """For the child: ask no model, whatever the settings say."""
    picked: Sequence[int] | None = None
    """Of the messages before `picked_until` only those at these offsets propose anything, as far as is known; None:
    nothing is known. What tools show is mined in any case."""
    picked_until: int = 0

    def to_json(self) -> bytes:
        """For the child's stdin."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True)
class Mined:
    """Scrubbed candidates, and how far the transcript is mined."""

    candidates: tuple[Candidate, ...]
    end_offset: int
    resume_offset: int
    said_offset: int
    bad_lines: int
    headless: bool
    host: str
    model: Mapping[str, Json] = field(default_factory=dict)
    """What a model was asked and what came of it, for the job's history; empty when none was asked."""
    answers: tuple[str, ...] = ()
    """Keys of the model's answers that are kept until this is committed."""


def mine_transcript(request: MiningRequest, settings: Settings | None = None) -> Mined:
    """Read and mine one transcript, with the user's model if the settings name one; without settings none is asked.

    Raises OSError when the transcript cannot be read.
    """
    from ..pipelines.mining import Miner
    from ..sources.transcripts.hosts import open_transcript

    path = Path(request.transcript)
    begin = min(request.resume, request.offset)
    # After a prompt nothing counts that the agent did before its last words, and these are near: most readings
    # begin there. Where something else follows, the turn that goes on is read again from its beginning.
    near = request.said is not None and request.said > begin
    asks_a_model = settings is not None and settings.reflection.miner != "local"
    reader = open_transcript(
        path,
        min(request.said or 0, request.offset) if near else begin,
        request.host or None,
        look_back=not near,
        all_steps=asks_a_model,
    )
    miner = Miner(start=request.offset, project_of=project_of)
    may_propose = _picked(request)
    packer = None
    if settings is not None and asks_a_model:
        from ..pipelines.mining.windows import WindowPacker

        packer = WindowPacker(settings.reflection.window_tokens, request.offset)
    found: list[Candidate] = []
    anything_new = False
    for turn in _in_batches(reader):
        if turn.offset >= request.offset and not anything_new:
            if near and turn.origin not in OPENING and not reader.report.restarted:
                return mine_transcript(replace(request, said=None), settings)
            anything_new = True
        if may_propose is None or may_propose(turn):
            for candidate in miner.feed(turn):
                found.append(_scrubbed(candidate))
        else:
            miner.follow(turn)
        if packer is not None:
            packer.feed(turn)
    report = reader.report
    if report.restarted:
        # The file was replaced by a shorter one: its old offset says nothing about it.
        return mine_transcript(replace(request, offset=0, resume=0, said=None, picked=None), settings)
    end = max(report.end_offset, request.offset)
    if anything_new:
        resume, said = miner.resume_offset, min(miner.said_offset, reader.needed_from)
    else:
        resume, said = begin, begin if request.said is None else request.said
    mined = Mined(
        candidates=() if report.headless else tuple(found),
        end_offset=end,
        resume_offset=min(resume, end),
        said_offset=min(said, end),
        bad_lines=report.bad_lines,
        headless=report.headless,
        host=reader.host,
    )
    if packer is None or settings is None or report.headless:
        return mined
    from ..pipelines.mining.answers import merged
    from .model_mining import mine_windows

    modelled = mine_windows(packer.windows(), settings, request.session or reader.session, project_of)
    candidates = merged(mined.candidates, [_scrubbed(candidate) for candidate in modelled.candidates])
    told = {**modelled.told, **({"turns_not_sent": packer.unsent} if packer.unsent else {})}
    return replace(mined, candidates=candidates, model=told, answers=modelled.answers)


def _in_batches(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The same turns, read some time before they are asked for: reading and mining each leave little of what the other
    has in the processor's caches, and by turns take some 3 % longer. The first is small: often it is all there is.
    """
    held: list[Turn] = []
    most, chars = FIRST_BATCH_TURNS, 0
    for turn in turns:
        held.append(turn)
        chars += len(turn.text)
        if len(held) >= most or chars >= BATCH_CHARS:
            yield from held
            held.clear()
            most, chars = min(2 * most, BATCH_TURNS), 0
    yield from held


def _picked(request: MiningRequest) -> Callable[[Turn], bool] | None:
    """Which turns may propose something; None: all."""
    if request.picked is None:
        return None
    picked, until = frozenset(request.picked), request.picked_until
    return lambda turn: turn.role is Role.TOOL or turn.offset in picked or turn.offset >= until


_scrub = lru_cache(maxsize=64)(scrub)
"""Reasons come again and again, and a short message is both statement and excerpt."""


def _scrubbed(candidate: Candidate) -> Candidate:
    return replace(
        candidate,
        statement=_scrub(candidate.statement) or "[removed]",
        reason=_scrub(candidate.reason),
        excerpt=_scrub(candidate.excerpt),
        replaces=_scrub(candidate.replaces) if candidate.replaces else None,
        said=_scrub(candidate.said) if candidate.said else None,
    )


def mined_to_json(mined: Mined) -> dict[str, Any]:
    """What the child prints."""
    return asdict(mined)


def mined_from_json(value: Mapping[str, Any]) -> Mined:
    """The same back. Raises KeyError, TypeError, ValueError for anything else."""
    candidates = tuple(
        Candidate(**{**candidate, "records": tuple(candidate["records"])}) for candidate in value["candidates"]
    )
    return Mined(**{**value, "candidates": candidates, "answers": tuple(value["answers"])})


def settings_of_child() -> Settings | None:
    """None while config.toml holds a mistake: nobody is asked then."""
    try:
        return load_settings(os.environ)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return None


def main() -> int:
    """The child."""
    supervisor.watch_parent()
    request = MiningRequest(**json.load(sys.stdin))
    try:
        mined = mine_transcript(request, None if request.local_only else settings_of_child())
    except OSError as error:
        print(f"{request.transcript} cannot be read: {error.strerror}", file=sys.stderr)
        return CAN_NOT_READ
    kill_point("mid-child")
    json.dump(mined_to_json(mined), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
