"""What a session would be given for a question: the recall of its prompt hook, asked beside that of a command."""

from __future__ import annotations

from collections.abc import Callable

from ..vault.render import estimate_tokens, select_hits
from .engine import RecallEngine, RecallQuery
from .scope import ON_DEMAND


def paths_given(
    engine: RecallEngine, query: RecallQuery, k: int, token_budget: int, count: Callable[[str], int] = estimate_tokens
) -> list[str]:
    """Paths of the entries that a prompt with this text gets in a new session of the query's project, best first.

    `k` and `token_budget` are those of a prompt. What else the query names (filter, group, special folders) no session
    asks for; the always-load entries it has had at its start.
    """
    as_prompt = RecallQuery(
        query.text, k, query.project, exclude_always_load=True, exclude_kinds=ON_DEMAND, is_prompt=True
    )
    return [hit.path for hit in select_hits(engine.recall(as_prompt).hits, token_budget, count)]
