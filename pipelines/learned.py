"""Shift the probability of a candidate by the user's decisions on earlier proposals, using counts and vectors.

Measured on people's messages in their order, with the labels as decisions (docs/benchmarks/learned.md).
"""

from __future__ import annotations

from math import exp, log

NEAR_DISMISSED = 0.8
"""Least cosine of a statement that was dismissed in other words."""
NEAR_APPROVED = 0.6
"""Least cosine of a statement that is similar to an approved one."""
APPROVED_SHIFT = 1.0
"""In log-odds."""
LEAST_DECISIONS = 30
"""Fewest decisions for which the share of approvals counts."""
USUAL_SHARE = 0.5
"""Share of proposals that people approve."""
PRIOR_DECISIONS = 5
"""Decisions at the usual share that are added to the user's own."""


def learned_shift(
    approved: int, dismissed: int, nearest_approved: float | None, usual_share: float = USUAL_SHARE
) -> float:
    """Return the change, in log-odds, of the probability that the user approves of a candidate.

    `nearest_approved`: highest cosine of the candidate with approved ones, None without a vector; `usual_share`: share
    of proposals that people approve, in (0, 1).
    """
    shift = APPROVED_SHIFT if nearest_approved is not None and nearest_approved >= NEAR_APPROVED else 0.0
    decided = approved + dismissed
    if decided >= LEAST_DECISIONS:
        share = (approved + PRIOR_DECISIONS * usual_share) / (decided + PRIOR_DECISIONS)
        shift += log_odds(share) - log_odds(usual_share)
    return shift


def shifted(probability: float, shift: float) -> float:
    """Return the probability, changed by `shift` log-odds; 0 and 1 stay."""
    if not 0 < probability < 1:
        return probability
    return 1 / (1 + exp(-log_odds(probability) - shift))


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability in (0, 1)."""
    return log(probability / (1 - probability))
