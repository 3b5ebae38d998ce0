"""What the user's decisions on proposals tell of the next one. No training: counts, and vectors.

Measured on messages of people in the order in which they wrote them, their labels taken for decisions
(docs/benchmarks/learned.md).
"""

from __future__ import annotations

from math import exp, log

NEAR_DISMISSED = 0.8
"""Cosine from which on a statement is what was dismissed, in other words."""
NEAR_APPROVED = 0.6
"""Cosine from which on a statement is of a kind with what was approved."""
APPROVED_SHIFT = 1.0
"""In log-odds."""
LEAST_DECISIONS = 30
"""From so many on the share of approvals counts."""
USUAL_SHARE = 0.5
"""Of proposals that people approve."""
PRIOR_DECISIONS = 5
"""So many decisions at the usual share are counted with the user's own."""


def learned_shift(
    approved: int, dismissed: int, nearest_approved: float | None, usual_share: float = USUAL_SHARE
) -> float:
    """Log-odds by which the probability that the user approves of a candidate changes.

    `nearest_approved`: the highest cosine of the candidate and what was approved, None without a vector; `usual_share`:
    of proposals that people approve, between 0 and 1, both excluded.
    """
    shift = APPROVED_SHIFT if nearest_approved is not None and nearest_approved >= NEAR_APPROVED else 0.0
    decided = approved + dismissed
    if decided >= LEAST_DECISIONS:
        share = (approved + PRIOR_DECISIONS * usual_share) / (decided + PRIOR_DECISIONS)
        shift += log_odds(share) - log_odds(usual_share)
    return shift


def shifted(probability: float, shift: float) -> float:
    """The probability, changed by so many log-odds; 0 and 1 stay what they are."""
    if not 0 < probability < 1:
        return probability
    return 1 / (1 + exp(-log_odds(probability) - shift))


def log_odds(probability: float) -> float:
    """Of a probability between 0 and 1, both excluded."""
    return log(probability / (1 - probability))
