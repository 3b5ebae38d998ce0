"""Thirty rules and facts that their owner replaced, asked for in the words of the old one."""

from __future__ import annotations

import json
import time
from datetime import date
from pathlib import Path

import pytest

from memoryvault.hooks.search import FallbackQuery, search
from memoryvault.index.drain import drain, embed_with
from memoryvault.index.embedder import DEFAULT_MODEL, load_embedder
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.reconcile import reconcile
from memoryvault.index.store import IndexStore
from memoryvault.runtime.layout import StatePaths
from memoryvault.services.evolving import evolve
from memoryvault.services.journal import Journal
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import VaultStore

REPLACED: list[tuple[str, str, str]] = json.loads(Path(__file__).with_name("replaced.json").read_text("utf-8"))


@pytest.mark.model
def test_a_replaced_rule_never_comes_instead_of_or_beside_the_one_in_force(tmp_path: Path) -> None:
    vault, state = tmp_path / "vault", StatePaths(str(tmp_path / "state"))
    state.ensure()
    store = VaultStore(vault, Path(state.vault_lock), date.today)
    journal = Journal(state, store)
    for number, (old, new, _) in enumerate(REPLACED):
        path = f"personal-private/convention/rule-{number}.md"
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(f"---\nkind: convention\nstatus: active\n---\n\n{old}\n")
        evolve(store, journal, path, Scrubbed(new), Scrubbed("changed"))
    embedder = load_embedder(DEFAULT_MODEL, models_folder=tmp_path)
    with IndexStore(Path(state.index_db)) as index:
        reconcile(index, vault, store.walk)
        drain(index, embed_with(embedder), model=embedder.name)
    engine = RecallEngine(Path(state.index_db), vault, embedder)
    by_meaning = by_words = 0
    for old, new, prompt in REPLACED:
        given = [hit.excerpt.strip() for hit in engine.recall(RecallQuery(prompt, is_prompt=True)).hits]
        asked = FallbackQuery(prompt, str(vault), "", 5, set(), time.monotonic() + 10)
        found = [hit.excerpt.strip() for hit in search(asked, str(state.index_db)).hits]
        assert old not in (*given, *found)
        by_meaning += new in given
        by_words += new in found
    engine.close()
    assert by_meaning >= 28
    assert by_words >= 25
