"""What waits for the user, with the command for each kind."""

from __future__ import annotations

from dataclasses import asdict

from ..services.pending_counts import PendingCounts
from ..vault.pending import describe_other_places, describe_review

COMMANDS = {"inbox": "memory vault inbox", "ideas": "memory idea list", "patterns": "memory skills watchlist"}
"""Place outside of `memory review` -> command that shows what waits there."""


def list_with_commands(counts: PendingCounts) -> list[str]:
    """Every place: `["8 proposals and 1 idea (memory review)", "3 in the inbox (memory vault inbox)"]`."""
    review = " and ".join(describe_review(asdict(counts)))
    return [*([f"{review} (memory review)"] if review else []), *list_other_places(counts)]


def list_other_places(counts: PendingCounts) -> list[str]:
    """Every place except `memory review`."""
    return [f"{phrase} ({COMMANDS[place]})" for place, phrase in describe_other_places(asdict(counts)).items()]
