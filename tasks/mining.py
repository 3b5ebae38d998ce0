"""Mining one transcript: in a child process of the worker, or in the command that asks for it.

`python -m memoryvault.tasks.mining` is the child: a request as JSON on stdin, candidates as JSON on stdout. It
writes nothing to disk, and what it prints is scrubbed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..pipelines.candidate import Candidate
from ..pipelines.mining import Miner
from ..pipelines.scrub import scrub
from ..sources.transcripts.hosts import open_transcript
from ..vault.killpoint import kill_point
from ..vault.project import project_of
from ..vault.turn import Origin
from . import supervisor

CAN_NOT_READ = 3
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


def mine_transcript(request: MiningRequest) -> Mined:
    """Read and mine one transcript. Raises OSError when it cannot be read."""
    path = Path(request.transcript)
    begin = min(request.resume, request.offset)
    # After a prompt nothing counts that the agent did before its last words, and these are near: most readings
    # begin there. Where something else follows, the turn that goes on is read again from its beginning.
    near = request.said is not None and request.said > begin
    reader = open_transcript(
        path, min(request.said or 0, request.offset) if near else begin, request.host or None, look_back=not near
    )
    miner = Miner(start=request.offset, project_of=project_of)
    candidates: list[Candidate] = []
    anything_new = False
    for turn in reader:
        if turn.offset >= request.offset and not anything_new:
            if near and turn.origin not in OPENING and not reader.report.restarted:
                return mine_transcript(replace(request, said=None))
            anything_new = True
        candidates.extend(map(_scrubbed, miner.feed(turn)))
    report = reader.report
    if report.restarted:
        # The file was replaced by a shorter one: its old offset says nothing about it.
        return mine_transcript(replace(request, offset=0, resume=0, said=None))
    end = max(report.end_offset, request.offset)
    if anything_new:
        resume, said = miner.resume_offset, min(miner.said_offset, reader.needed_from)
    else:
        resume, said = begin, begin if request.said is None else request.said
    return Mined(
        candidates=() if report.headless else tuple(candidates),
        end_offset=end,
        resume_offset=min(resume, end),
        said_offset=min(said, end),
        bad_lines=report.bad_lines,
        headless=report.headless,
        host=reader.host,
    )


def _scrubbed(candidate: Candidate) -> Candidate:
    return replace(
        candidate,
        statement=scrub(candidate.statement) or "[removed]",
        reason=scrub(candidate.reason),
        excerpt=scrub(candidate.excerpt),
        replaces=scrub(candidate.replaces) if candidate.replaces else None,
    )


def mined_to_json(mined: Mined) -> dict[str, Any]:
    """What the child prints."""
    return asdict(mined)


def mined_from_json(value: Mapping[str, Any]) -> Mined:
    """The same back. Raises KeyError, TypeError, ValueError for anything else."""
    candidates = tuple(
        Candidate(**{**candidate, "records": tuple(candidate["records"])}) for candidate in value["candidates"]
    )
    return Mined(**{**value, "candidates": candidates})


def main() -> int:
    """The child."""
    supervisor.watch_parent()
    request = MiningRequest(**json.load(sys.stdin))
    try:
        mined = mine_transcript(request)
    except OSError as error:
        print(f"{request.transcript} cannot be read: {error.strerror}", file=sys.stderr)
        return CAN_NOT_READ
    kill_point("mid-child")
    json.dump(mined_to_json(mined), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
