"""Recalls for commands, MCP and the console: by the recall service, started if needed, else in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..runtime.background import is_uninstalled, may_start
from ..runtime.days import local_today
from ..runtime.layout import StatePaths
from ..runtime.settings import Settings
from ..vault.store import VaultStore
from .client import RECALL_SECONDS, RecallClient, ServiceRefused, ServiceUnavailable, ensure_service
from .engine import DEFAULT_EAGERNESS, RecallEngine, RecallQuery
from .filters import named_values, parse_filter, require_known
from .receipts import append_receipt, receipt
from .unreviewed import line_of, said_since

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
FOR_NOW = frozenset({"model-loading", "no-vectors", "dense-late", "keyword-late", "files-late", "vault-missing"})
"""Codes of parts that a later recall may have."""

UNINSTALLED = "no recall service is started since `memory uninstall`; `memory init` sets all up again"


@dataclass(frozen=True)
class RecallAnswer:
    """Hits as mappings (path, slug, title, kind, score, excerpt, …), best first."""

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
    """Recall by the service, which is started if it may be and gets `patience_seconds` to load its model; without it in
    this process.

    `request` has the fields of the protocol's recall (protocol.py) except the text. A hit has `said_since` if the user
    said something later that would replace it and waits for a decision. Raises UsageError for a bad filter.
    """
    tree = parse_filter(request.get("filter"), local_today())
    if statuses := named_values(tree, "status"):
        require_known(statuses, VaultStore(settings.required_vault_path, state.vault_lock, local_today))
    cannot_start = ""
    if may_start(settings):
        try:
            ensure_service(settings, patience_seconds, wait_for_model=True)
        except ServiceUnavailable as error:
            cannot_start = str(error)
    eagerness = settings.recall.eagerness
    answer = recall_as_it_is(state, settings.required_vault_path, query, caller=caller, eagerness=eagerness, **request)
    given = [hit["path"] for hit in answer.hits] if settings.recall.unreviewed else []
    since = said_since(settings.required_vault_path, given)
    marked = (
        {**hit, "said_since": line_of(since[hit["path"]])} if hit["path"] in since else hit for hit in answer.hits
    )
    answer = replace(answer, hits=tuple(marked))
    why = UNINSTALLED if is_uninstalled(state) else cannot_start
    return replace(answer, without_service=why) if answer.without_service and why else answer


def recall_as_it_is(
    state: StatePaths,
    vault: Path,
    text: str,
    *,
    caller: str,
    eagerness: str = DEFAULT_EAGERNESS,
    timeout_seconds: float = RECALL_SECONDS,
    **options: Any,
) -> RecallAnswer:
    """Recall within `state`'s index and write a receipt of `caller`: by the service if one runs, else in this process.

    `options` are fields of the protocol's recall that a RecallQuery has too, and `floor`. Raises UsageError for a bad
    filter.
    """
    try:
        with RecallClient(state.recall_socket) as client:
            answer = client.recall(text, caller=caller, timeout_seconds=timeout_seconds, **options)
        return RecallAnswer(tuple(answer["hits"]), tuple(answer["degraded"]))
    except (ServiceUnavailable, ServiceRefused) as error:
        without = str(error)
    tree = parse_filter(options.pop("filter", None), local_today())
    asked: dict[str, Any] = {"apply_threshold": options.pop("floor", True), "filter": tree}
    asked |= {name: frozenset(value) if isinstance(value, list) else value for name, value in options.items()}
    query = RecallQuery(text, **asked)
    engine = RecallEngine(Path(state.index_db), vault, None, eagerness)
    try:
        result = engine.recall(query)
    finally:
        engine.close()
    append_receipt(Path(state.receipts), receipt(text, result, caller=caller, project=query.project))
    return RecallAnswer(tuple(hit.__dict__ for hit in result.hits), result.degraded, without)
