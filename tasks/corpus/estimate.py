"""What a backfill would cost, told from a sample: time, and where a model is the miner its tokens. Asks no model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...pipelines.corpus import most_ideas
from ...sources.transcripts.corpus import Transcript
from ...vault.settings import Settings
from ..completion import BudgetedCompleter
from ..mining import MiningRequest, mine_transcript
from ..model_mining import MAX_OUTPUT_TOKENS
from .backfill import AHEAD_BYTES, AHEAD_TRANSCRIPTS, Plan

SAMPLE_SECONDS = 1.0
SAMPLE_BYTES = 8 << 20
"""A larger transcript is no sample: the dry run is to end soon."""
LEAST_SAMPLE_SECONDS = 0.05
SECONDS_A_JOB = 0.03
"""What a job costs on top: claim, cursor, files. Measured, as are the next two."""
SECONDS_A_CHILD = 0.3
SECONDS_A_MEMORY = 0.006
"""To write one: note and journal are synced to disk."""


@dataclass(frozen=True)
class ModelCost:
    """What a model would be asked."""

    miner: str
    requests: int
    tokens: int
    """At most, answers at their full length included, as a budget reserves them; no session above its cap."""
    session_token_cap: int
    daily_token_cap: int
    """0: none."""


@dataclass(frozen=True)
class Estimate:
    """Of mining by rules and of writing; what a model takes to answer comes on top."""

    seconds: float
    bytes_per_second: float | None
    """Measured here and now; None where there was too little to measure."""
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
    """Mines a part of the transcripts here and now, without keeping anything."""
    if not plan.to_mine:
        return Estimate(0.0, None, None)
    sample = _sampled(plan, settings, clock)
    spent = max(sample.seconds, LEAST_SAMPLE_SECONDS)
    speed = sample.bytes / spent if sample.bytes else float(SAMPLE_BYTES)
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


def _sampled(plan: Plan, settings: Settings, clock: Callable[[], float]) -> _Sample:
    # Loaded before the clock starts: a child does it once, and SECONDS_A_CHILD has it.
    from ...pipelines import mining  # noqa: F401

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
    """Count what a model would be shown of it."""
    from ...pipelines.mining.answers import system_prompt
    from ...pipelines.mining.windows import WindowPacker
    from ...sources.transcripts.hosts import open_transcript

    packer = WindowPacker(settings.reflection.window_tokens)
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
