"""Estimating what a backfill would cost, from a sample: its time, and the tokens if a model mines. Asks no model."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ...pipelines.corpus import most_ideas
from ...runtime.settings import Settings
from ...sources.transcripts.corpus import Transcript
from ..completion import BudgetedCompleter
from ..mining import MiningRequest, mine_transcript
from ..model_mining import MAX_OUTPUT_TOKENS
from .backfill import AHEAD_BYTES, AHEAD_TRANSCRIPTS, Plan

SAMPLE_SECONDS = 1.0
TOKEN_SAMPLES = 3
SAMPLE_BYTES = 8 << 20
"""A larger transcript is not sampled unless it is the first: the dry run has to end soon."""
LEAST_SAMPLE_SECONDS = 0.05
SECONDS_A_JOB = 0.03
"""Overhead of a job: claim, cursor, files. Measured, as are the next two."""
SECONDS_A_CHILD = 0.3
SECONDS_A_MEMORY = 0.006
"""Time to write one: note and journal are synced to disk."""


@dataclass(frozen=True)
class ModelCost:
    """Requests to a model, and their tokens."""

    miner: str
    requests: int
    tokens: int
    """Upper bound: answers count at their full length, as a budget reserves them, and no session exceeds its cap."""
    session_token_cap: int
    daily_token_cap: int
    """Caps in tokens; 0: no cap."""


@dataclass(frozen=True)
class Estimate:
    """Time of mining by rules and of writing; the time of a model's answers is not in it."""

    seconds: float
    bytes_per_second: float | None
    """Speed on this machine now; None if there was too little to measure."""
    model: ModelCost | None


@dataclass
class _Sample:
    bytes: int = 0
    seconds: float = 0.0
    rules: int = 0
    other: int = 0
    windows: int = 0
    tokens: int = 0


def estimate(plan: Plan, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> Estimate:
    """Mine some of the transcripts in this process, without storing anything, and extrapolate."""
    if not plan.to_mine:
        return Estimate(0.0, None, None)
    sample = _take_sample(plan, settings, clock)
    speed = sample.bytes / max(sample.seconds, LEAST_SAMPLE_SECONDS) if sample.bytes else float(SAMPLE_BYTES)
    share = plan.bytes / sample.bytes if sample.bytes else 0.0
    with_model = settings.reflection.miner != "local"
    jobs = len(plan.to_mine)
    children = jobs if with_model else max(-(-jobs // AHEAD_TRANSCRIPTS), -(-plan.bytes // AHEAD_BYTES))
    most = settings.reflection.corpus_review_entries
    # Rules are saved, of the rest only the strongest memories and ideas are written.
    written = sample.rules * share + min(sample.other * share, most + most_ideas(most))
    seconds = plan.bytes / speed + SECONDS_A_JOB * jobs + SECONDS_A_CHILD * children + SECONDS_A_MEMORY * written
    measured = speed if sample.seconds >= LEAST_SAMPLE_SECONDS else None
    return Estimate(seconds, measured, _model_cost(plan, settings, sample) if with_model else None)


def tokens_a_session(plan: Plan, settings: Settings) -> int:
    """Tokens that a model would be sent of a usual session of the plan, answers included; 0 where it has none."""
    by_size = sorted((each for each in plan.to_mine if each.size <= SAMPLE_BYTES), key=lambda each: each.size)
    middle = by_size[len(by_size) // 2 :][:TOKEN_SAMPLES]
    sample = _Sample()
    for each in middle:
        with suppress(OSError):
            _pack(each, settings, sample)
    tokens = sample.tokens // max(len(middle), 1)
    cap = settings.reflection.session_token_cap
    return min(tokens, cap) if cap else tokens


def _take_sample(plan: Plan, settings: Settings, clock: Callable[[], float]) -> _Sample:
    # Loaded before the clock starts: a child does it once, and SECONDS_A_CHILD has it.
    from ...pipelines.reading import miner  # noqa: F401

    sample = _Sample()
    packing = settings.reflection.miner != "local"
    # The middle of the sizes first: neither the many tiny ones nor a giant says much.
    by_size = sorted(plan.to_mine, key=lambda each: each.size)
    middle = len(by_size) // 2
    for each in by_size[middle:] + by_size[:middle]:
        if each.size > SAMPLE_BYTES and sample.bytes:
            continue
        started = clock()
        try:
            mined = mine_transcript(MiningRequest(str(each.path), each.host))
            sample.seconds += clock() - started
            if packing:
                _pack(each, settings, sample)
        except OSError:
            continue
        rules = sum(candidate.standing_rule for candidate in mined.candidates)
        sample.rules += rules
        sample.other += len(mined.candidates) - rules
        sample.bytes += each.size
        if sample.seconds > SAMPLE_SECONDS or sample.bytes > SAMPLE_BYTES:
            break
    return sample


def _pack(transcript: Transcript, settings: Settings, sample: _Sample) -> None:
    """Count the windows and tokens that a model would be sent of it."""
    from ...pipelines.reading.model_answers import system_prompt
    from ...pipelines.reading.model_windows import WINDOW_TOKENS, WindowPacker
    from ...sources.transcripts.hosts import open_transcript

    packer = WindowPacker(WINDOW_TOKENS)
    for turn in open_transcript(transcript.path, 0, transcript.host):
        packer.feed(turn)
    windows = packer.windows()
    sample.windows += len(windows)
    sample.tokens += sum(BudgetedCompleter.estimate(each.text, system_prompt(), MAX_OUTPUT_TOKENS) for each in windows)


def _model_cost(plan: Plan, settings: Settings, sample: _Sample) -> ModelCost:
    chosen = settings.reflection
    tokens = requests = 0.0
    for each in plan.to_mine:
        share = (each.size - plan.offsets.get(each.identity, 0)) / sample.bytes if sample.bytes else 0.0
        wanted = sample.tokens * share
        granted = min(wanted, chosen.session_token_cap) if chosen.session_token_cap else wanted
        tokens += granted
        requests += sample.windows * share * (granted / wanted) if wanted else 0.0
    return ModelCost(chosen.miner, round(requests), round(tokens), chosen.session_token_cap, chosen.daily_token_cap)
