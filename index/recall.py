"""Recalls for commands, MCP and the console: by the recall service, started if needed, else in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..runtime.background import is_uninstalled, may_start
from ..runtime.days import local_today
from ..runtime.errors import UsageError
from ..runtime.layout import StatePaths
from ..runtime.settings import Settings
from ..vault.render import estimate_tokens, select_hits
from ..vault.store import VaultStore
from .client import RECALL_SECONDS, RecallClient, ServiceRefused, ServiceUnavailable, ensure_service
from .engine import RecallEngine, RecallQuery
from .filters import named_values, parse_filter, require_known
from .receipts import append_receipt, receipt
from .scope import ON_DEMAND

DEGRADED_MESSAGES: Mapping[str, str] = {
    "no-model": "by keywords only: no embedding model",
    "model-loading": "by keywords only: the model is still loading",
    "no-vectors": "by keywords only: nothing is embedded yet",
    "no-extension": "by keywords only: sqlite-vec cannot be loaded",
    "vectors-damaged": "by keywords only: the vectors are damaged (`memory vault reindex` makes them anew)",
    "no-index": "by reading the files: there is no index yet, or it cannot be used",
    "dense-late": "by keywords only: the model was late",
    "model-unread": "by keywords only: the model does not know these letters (docs/how-to/models.md)",
    "keyword-late": "by meaning only: the keyword search was late",
    "files-late": "from the index only: the vault's disk did not answer in time",
    "vault-missing": "from the index only: the vault is not there",
}
"""How a recall was answered without some part ("answered ..."), by the code in `degraded`."""

_OF_THE_SERVICE = frozenset({"include", "floor", "prompt_k", "token_budget"})
"""Fields of a request that a RecallQuery does not have, or has with another type."""

UNINSTALLED = "no recall service is started since `memory uninstall`; `memory init` sets all up again"


@dataclass(frozen=True)
class RecallAnswer:
    """Hits as mappings (path, slug, title, kind, score, excerpt, …), best first.

    Where the request has `prompt_k`, each has `given`: whether a prompt with these words would get it.
    """

    hits: tuple[Mapping[str, Any], ...]
    degraded: tuple[str, ...] = ()
    """Codes of what was missing or late, the keys of DEGRADED_MESSAGES."""
    without_service: str = ""
    """Why the service did not answer; empty when it did."""


def recall_entries(
    settings: Settings,
    state: StatePaths,
    query: str,
    request: Mapping[str, Any],
    *,
    caller: str,
    patience_seconds: float,
) -> RecallAnswer:
    """Recall within `state`'s index and write a receipt of `caller`.

    `request` has the fields of the protocol's recall (protocol.py) except the text. A service that is started now gets
    `patience_seconds` to load its model. Raises UsageError for a bad filter.
    """
    tree = parse_filter(request.get("filter"), local_today())
    if statuses := named_values(tree, "status"):
        require_known(statuses, VaultStore(settings.required_vault_path, state.vault_lock, local_today))
    try:
        if may_start(settings):
            ensure_service(settings, patience_seconds, wait_for_model=True)
        with RecallClient(state.recall_socket) as client:
            answer = client.recall(query, caller=caller, **request)
        return RecallAnswer(_mark_given(answer["hits"], answer.get("given")), tuple(answer["degraded"]))
    except ServiceRefused as error:
        raise UsageError(str(error)) from error
    except ServiceUnavailable as error:
        without = UNINSTALLED if is_uninstalled(state) else str(error)
    engine = RecallEngine(Path(state.index_db), settings.required_vault_path, None, settings.recall.eagerness)
    try:
        options = {name: value for name, value in request.items() if name not in _OF_THE_SERVICE}
        include, apply_threshold = frozenset(request["include"]), request.get("floor", True)
        asked = RecallQuery(query, include=include, apply_threshold=apply_threshold, **options)
        result = engine.recall(asked)
        prompt_k = request.get("prompt_k")
        given = None if prompt_k is None else paths_given(engine, asked, prompt_k, request["token_budget"])
    finally:
        engine.close()
    append_receipt(Path(state.receipts), receipt(query, result, caller=caller, project=request["project"]))
    return RecallAnswer(_mark_given([hit.__dict__ for hit in result.hits], given), result.degraded, without)


def recall_as_it_is(
    state: StatePaths, vault: Path, text: str, *, caller: str, timeout_seconds: float = RECALL_SECONDS, **options: Any
) -> RecallAnswer:
    """Recall by the service if one runs, else in this process. Starts no service, and in this process writes no
    receipt.

    `options` are fields of the protocol's recall that a RecallQuery has too.
    """
    try:
        with RecallClient(state.recall_socket) as client:
            answer = client.recall(text, caller=caller, timeout_seconds=timeout_seconds, **options)
        return RecallAnswer(tuple(answer["hits"]), tuple(answer["degraded"]))
    except (ServiceUnavailable, ServiceRefused) as error:
        without = str(error)
    engine = RecallEngine(Path(state.index_db), vault, None)
    try:
        sets = {name: frozenset(value) for name, value in options.items() if isinstance(value, list)}
        result = engine.recall(RecallQuery(text, **{**options, **sets}))
    finally:
        engine.close()
    return RecallAnswer(tuple(hit.__dict__ for hit in result.hits), result.degraded, without)


def _mark_given(hits: Sequence[Mapping[str, Any]], given: Sequence[str] | None) -> tuple[Mapping[str, Any], ...]:
    return tuple(hits if given is None else ({**hit, "given": hit["path"] in given} for hit in hits))


def paths_given(
    engine: RecallEngine, query: RecallQuery, k: int, token_budget: int, count: Callable[[str], int] = estimate_tokens
) -> list[str]:
    """Return paths of the entries that a prompt with this text gets in a new session of the query's project, best
    first.

    `k` and `token_budget` are those of a prompt. The query's filter, group and special folders are ignored, since no
    session asks for them. So are always-load entries, which the session gets at its start.
    """
    as_prompt = RecallQuery(
        query.text, k, query.project, exclude_always_load=True, exclude_kinds=ON_DEMAND, is_prompt=True
    )
    return [hit.path for hit in select_hits(engine.recall(as_prompt).hits, token_budget, count)]
