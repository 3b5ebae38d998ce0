"""Decide which figures of `memory health` need the user's attention, one line each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..runtime.days import SECONDS_PER_DAY
from ..vault.wording import counted
from .pending_counts import PendingCounts

INBOX_LIMIT = 50
INCUBATOR_LIMIT = 20
SILENT_DAYS = 7
NAMED = 5


def warnings_of(pending: PendingCounts | None, last: float | None, waiting: float | None, now: float) -> list[str]:
    """Return one line for each problem that needs the user."""
    found = why_full(pending) if pending is not None else []
    # Without any reflection, count from the session that has waited longest, if any.
    since = last if last is not None else waiting
    if since is not None and now - since > SILENT_DAYS * SECONDS_PER_DAY:
        days = int((now - since) // SECONDS_PER_DAY)
        found.append(f"nothing was reflected for {counted(days, 'day')}: `memory doctor`")
    return found


def why_full(pending: PendingCounts) -> list[str]:
    """Return the warnings that inbox and incubator hold more than anybody reads."""
    found = []
    if pending.inbox > INBOX_LIMIT:
        found.append(f"the inbox holds {pending.inbox} entries, more than {INBOX_LIMIT}: `memory vault inbox`")
    if pending.ideas > INCUBATOR_LIMIT:
        found.append(f"the incubator holds {pending.ideas} ideas, more than {INCUBATOR_LIMIT}: `memory idea list`")
    return found


def why_unheard(history: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the warning that the model took no part in a reflection; None if it did, or none is set."""
    result = history[-1].get("result") if history else None
    model = result.get("model") if isinstance(result, Mapping) else None
    if not isinstance(model, Mapping):
        return None
    why = model.get("failed") or model.get("refused")
    return f"the last session was mined without {model.get('miner')} or not all by it: {why}" if why else None


def why_no_room(names: Sequence[str], words: int) -> str | None:
    """Return the warning about always-load entries beyond the budget of `words`; None if there are none."""
    if not names:
        return None
    named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return (
        f"no room at a session's start for {named} (`recall.core_words` is {words}): shorten, merge, or "
        f"`memory always --off {names[0]}`"
    )
