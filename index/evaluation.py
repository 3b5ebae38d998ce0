"""Ranks documents by questions through the real index and recall engine (`memory config eval rank`).

It measures what users get: the same chunks, the same database, the same fusion. A question sees only the documents of
its group: each group is a vault of its own, so that the rarity of a word depends on no other group.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..runtime.errors import UsageError
from ..vault.entry import Entry, parse_entry
from .drain import drain, embed_with
from .embedder import Embedder
from .engine import DEFAULT_EAGERNESS, RecallEngine, RecallQuery
from .query import analyse
from .ranking import DenseHit, KeywordHit
from .reconcile import reconcile
from .scope import Scope
from .search_reader import SearchReader
from .store import IndexStore

CANDIDATES = 200
"""Hits of each retriever alone, for the baselines."""


@dataclass(frozen=True)
class Document:
    """A text to find. A first line `# …` is its title."""

    id: str
    text: str
    group: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A text to find by; `gold` holds the ids of the documents that answer it, if known."""

    id: str
    text: str
    group: str | None = None
    gold: frozenset[str] = frozenset()
    kind: str = ""


@dataclass(frozen=True)
class Ranking:
    """Ids best first, with their scores."""

    question: Question
    ids: tuple[str, ...]
    scores: tuple[float, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Vault:
    """An indexed vault; `ids` by path."""

    index_db: Path
    vault: Path
    ids: Mapping[str, str]


class Evaluation:
    """Ranks indexed documents by questions. Made by `open_documents` and `open_vault`."""

    def __init__(self, vaults: Mapping[str | None, _Vault], embedder: Embedder | None) -> None:
        self._vaults = vaults
        self._embedder = embedder

    def rank(
        self,
        questions: Iterable[Question],
        k: int,
        *,
        eagerness: str = DEFAULT_EAGERNESS,
        apply_threshold: bool = False,
    ) -> Iterator[Ranking]:
        """Rank by the recall engine: with `apply_threshold` as for a prompt, else all hits of a question."""
        for vault, members in self._by_vault(questions):
            if vault is None:
                yield from (Ranking(question, (), ()) for question in members)
                continue
            engine = RecallEngine(vault.index_db, vault.vault, self._embedder, eagerness)
            try:
                for question in members:
                    query = RecallQuery(
                        question.text,
                        k=k,
                        all_projects=True,
                        apply_threshold=apply_threshold,
                        is_prompt=apply_threshold,
                    )
                    result = engine.recall(query)
                    yield Ranking(
                        question,
                        tuple(vault.ids[hit.path] for hit in result.hits),
                        tuple(hit.score for hit in result.hits),
                        result.degraded,
                    )
            finally:
                engine.close()

    def rank_by(self, method: str, questions: Iterable[Question], k: int) -> Iterator[Ranking]:
        """Rank by one retriever alone (`bm25`, `dense`) or the sum of both, each scaled to 0..1 (`sum`)."""
        for vault, members in self._by_vault(questions):
            if vault is None:
                yield from (Ranking(question, (), ()) for question in members)
                continue
            reader = SearchReader(vault.index_db)
            try:
                for question in members:
                    keyword, dense = self._retrieve(reader, question)
                    scores = _BASELINES[method](keyword, dense)
                    paths = {rowid: row.path for rowid, row in reader.entries_by_rowid(scores).items()}
                    ranked = sorted(scores, key=lambda rowid: (-scores[rowid], paths[rowid]))[:k]
                    yield Ranking(
                        question,
                        tuple(vault.ids[paths[rowid]] for rowid in ranked),
                        tuple(round(scores[rowid], 6) for rowid in ranked),
                    )
            finally:
                reader.close()

    def _by_vault(self, questions: Iterable[Question]) -> Iterator[tuple[_Vault | None, list[Question]]]:
        """Each group's vault (None: it has no documents) and questions, in the order of the groups' first questions."""
        groups: dict[str | None, list[Question]] = {}
        for question in questions:
            groups.setdefault(question.group, []).append(question)
        for group, members in groups.items():
            yield self._vaults.get(group), members

    def _retrieve(self, reader: SearchReader, question: Question) -> tuple[list[KeywordHit], list[DenseHit]]:
        scope = Scope(all_projects=True)
        query = analyse(question.text)
        keyword = reader.search_keywords(query.fts_match, scope, CANDIDATES) if query.fts_match else []
        dense: list[DenseHit] = []
        model = reader.find_model(self._embedder.name) if self._embedder else None
        if self._embedder is not None and model is not None:
            vector = self._embedder.encode([query.dense_text], query=True)[0].astype("<f4").tobytes()
            dense = reader.search_vectors(model.model_id, vector, scope, CANDIDATES)
        return keyword, dense


@contextmanager
def open_documents(
    documents: Sequence[Document],
    folder: Path,
    embedder: Embedder | None,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[Evaluation]:
    """Index `documents` in `folder` (empty; deleted by the caller) and yield them. `embedder` None: keywords only.

    `on_progress(done, total)` counts documents.
    """
    groups: dict[str | None, list[Document]] = {}
    for document in documents:
        groups.setdefault(document.group, []).append(document)
    vaults: dict[str | None, _Vault] = {}
    done = 0
    for number, (group, members) in enumerate(groups.items()):
        group_folder = folder / f"{number:05d}"
        group_folder.mkdir(parents=True)
        # In one order, whatever order they came in: ties are broken by path, which is made of its number.
        vaults[group] = _index_group(sorted(members, key=lambda document: document.id), group_folder, embedder)
        done += len(members)
        if on_progress is not None:
            on_progress(done, len(documents))
    yield Evaluation(vaults, embedder)


@contextmanager
def open_vault(vault: Path, folder: Path, embedder: Embedder | None) -> Iterator[Evaluation]:
    """Index a vault's notes in `folder`; the ids are the notes' paths, and no question has a group."""
    paths = sorted(file.relative_to(vault).as_posix() for file in vault.rglob("*.md"))
    with IndexStore(folder / "index.db") as store:
        reconcile(store, vault, lambda: iter(paths))
        if embedder is not None:
            drain(store, embed_with(embedder), model=embedder.name)
    yield Evaluation({None: _Vault(folder / "index.db", vault, {path: path for path in paths})}, embedder)


def _index_group(documents: Sequence[Document], folder: Path, embedder: Embedder | None) -> _Vault:
    index_db, vault = folder / "index.db", folder / "MemoryVault"
    ids: dict[str, str] = {}
    with IndexStore(index_db) as store:
        with store.transaction():
            for number, document in enumerate(documents):
                path = f"documents/{number // 1000:04d}/{number:07d}.md"
                ids[path] = document.id
                file = vault / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(document.text, encoding="utf-8", errors="replace")
                state = os.stat(file)
                entry = _entry(path, document)
                store.upsert_entry(entry, mtime_ns=state.st_mtime_ns, size=state.st_size)
        if embedder is not None:
            drain(store, embed_with(embedder), model=embedder.name)
    return _Vault(index_db, vault, ids)


def _entry(path: str, document: Document) -> Entry:
    data = document.text.encode("utf-8", "replace")
    entry = parse_entry(path, data)
    # The file's name is ours, so it must not add words to the document; and nothing in the document may hide it.
    has_title = any(line.startswith("# ") for line in entry.body.splitlines()[:3])
    return replace(
        entry,
        status="active",
        kind="",
        title=entry.name if has_title else "",
        name=entry.name if has_title else "",
        always_load=False,
        tags=document.tags or entry.tags,
    )


def load_documents(path: Path) -> list[Document]:
    """Lines of JSON: id, text, group?, tags?. Raises UsageError naming the line, also for an id that its group has."""
    return [
        Document(id_, _text(row, "text", where), group, _tags(row)) for where, id_, group, row in _rows_with_id(path)
    ]


def load_questions(path: Path) -> list[Question]:
    """Lines of JSON: id, text, group?, gold? (ids), kind?. Raises UsageError as `load_documents` does."""
    return [
        Question(
            id_,
            _text(row, "text", where),
            group,
            frozenset(str(id_) for id_ in row.get("gold") or ()),
            str(row.get("kind") or ""),
        )
        for where, id_, group, row in _rows_with_id(path)
    ]


def ranking_json(ranking: Ranking) -> dict[str, Any]:
    """One line of `memory config eval rank --json`."""
    return {
        "id": ranking.question.id,
        "ranked": list(ranking.ids),
        "scores": list(ranking.scores),
        "degraded": list(ranking.degraded),
    }


def ndcg(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Normalised discounted cumulative gain at k, binary relevance."""
    gain = sum(1 / math.log2(place + 2) for place, id_ in enumerate(ranked[:k]) if id_ in gold)
    best = sum(1 / math.log2(place + 2) for place in range(min(k, len(gold))))
    return gain / best if best else 0.0


def recall_at(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Share of the gold ids among the first k."""
    return len(gold.intersection(ranked[:k])) / len(gold) if gold else 0.0


def _rows_with_id(path: Path) -> Iterator[tuple[str, str, str | None, dict[str, Any]]]:
    """(line, id, group, row) of every line. Raises UsageError for an id that a group has twice."""
    first: dict[tuple[str | None, str], str] = {}
    for where, row in _rows(path):
        id_, group = _text(row, "id", where), _optional(row, "group", where)
        if (before := first.setdefault((group, id_), where)) is not where:
            raise UsageError(f"{where}: the id {id_!r} is there already ({before})")
        yield where, id_, group, row


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        # Not `splitlines`: a JSON string may hold U+2028 and its like, which end no line of JSON.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{where} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise UsageError(f"{where} is not a JSON object")
        yield where, row


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise UsageError(f"{where}: {name} must be a string")
    return value


def _optional(row: Mapping[str, Any], name: str, where: str) -> str | None:
    return None if row.get(name) is None else _text(row, name, where)


def _tags(row: Mapping[str, Any]) -> tuple[str, ...]:
    tags = row.get("tags")
    return tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()


def _bm25(keyword: Sequence[KeywordHit], dense: Sequence[DenseHit]) -> dict[int, float]:
    return _best((hit.entry_rowid, hit.bm25) for hit in keyword)


def _dense(keyword: Sequence[KeywordHit], dense: Sequence[DenseHit]) -> dict[int, float]:
    return _best((hit.entry_rowid, hit.similarity) for hit in dense)


def _sum(keyword: Sequence[KeywordHit], dense: Sequence[DenseHit]) -> dict[int, float]:
    left, right = _scale(_bm25(keyword, dense)), _scale(_dense(keyword, dense))
    return {rowid: left.get(rowid, 0.0) + right.get(rowid, 0.0) for rowid in left.keys() | right.keys()}


_BASELINES: Mapping[str, Callable[[Sequence[KeywordHit], Sequence[DenseHit]], dict[int, float]]] = {
    "bm25": _bm25,
    "dense": _dense,
    "sum": _sum,
}
BASELINES = tuple(_BASELINES)


def _best(scores: Iterable[tuple[int, float]]) -> dict[int, float]:
    best: dict[int, float] = {}
    for rowid, score in scores:
        best[rowid] = max(score, best.get(rowid, score))
    return best


def _scale(scores: Mapping[int, float]) -> dict[int, float]:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {rowid: (score - low) / (high - low) if high > low else 1.0 for rowid, score in scores.items()}
