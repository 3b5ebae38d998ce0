"""Estimate from a sample what reading old sessions with a model would cost. Asks no model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from ...runtime.settings import Settings
from ..completion import tokens_to_reserve
from ..model_mining import MAX_OUTPUT_TOKENS
from .backfill import Plan

SAMPLES = 3
SAMPLE_BYTES = 8 << 20
"""A larger transcript is not sampled, so that the dry run ends soon."""


@dataclass
class _Sample:
    bytes: int = 0
    windows: int = 0
    tokens: int = 0


def model_cost(plan: Plan, settings: Settings) -> tuple[int, int]:
    """Return the requests and tokens for all sessions of the plan, scaled by their size.

    The tokens are an upper bound: answers count at full length, as a budget reserves them, and no session exceeds its
    cap.
    """
    chosen, sample = settings.reflection, _take_sample(plan)
    tokens = requests = 0.0
    for each in plan.to_mine:
        share = (each.size - plan.offsets.get(each.identity, 0)) / sample.bytes if sample.bytes else 0.0
        wanted = sample.tokens * share
        granted = min(wanted, chosen.session_token_cap) if chosen.session_token_cap else wanted
        tokens += granted
        requests += sample.windows * share * (granted / wanted) if wanted else 0.0
    return round(requests), round(tokens)


def _take_sample(plan: Plan) -> _Sample:
    """Split the sessions of medium size into windows: neither the many tiny ones nor a huge one is typical."""
    from ...pipelines.reading.model_answers import system_prompt
    from ...pipelines.reading.model_windows import WINDOW_TOKENS, WindowPacker
    from ...sources.transcripts.hosts import open_transcript

    by_size = sorted((each for each in plan.to_mine if each.size <= SAMPLE_BYTES), key=lambda each: each.size)
    sample = _Sample()
    for each in by_size[len(by_size) // 2 :][:SAMPLES]:
        packer = WindowPacker(WINDOW_TOKENS)
        with suppress(OSError):
            for turn in open_transcript(each.path, 0, each.host):
                packer.feed(turn)
            texts = [window.text for window in packer.windows()]
            sample.bytes += each.size
            sample.windows += len(texts)
            sample.tokens += sum(tokens_to_reserve(text, system_prompt(), MAX_OUTPUT_TOKENS) for text in texts)
    return sample
