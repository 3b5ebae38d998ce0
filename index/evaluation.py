"""Rank documents by questions through the real index and recall engine (`memory config eval rank`).

It measures what users get: the same chunks, the same database, the same fusion. A question sees only the documents of
its group. Each group is a separate vault, so that the rarity of a word depends on no other group.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..runtime.errors import UsageError
from ..runtime.json_text import parse_json
from ..vault.entry import Entry, parse_entry
from .drain import drain, embed_with
from .embedder import Embedder
from .engine import DEFAULT_EAGERNESS, RecallEngine, RecallQuery
from .store import IndexStore


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
class IndexedVault:
    """An indexed vault; `ids` by path."""

    index_db: Path
    vault: Path
    ids: Mapping[str, str]


class Evaluation:
    """Ranks indexed documents by questions. Made by `open_documents`."""

    def __init__(self, vaults: Mapping[str | None, IndexedVault], embedder: Embedder | None) -> None:
        self._vaults = vaults
        self.embedder = embedder

    def rank(
        self,
        questions: Iterable[Question],
        k: int,
        *,
        eagerness: str = DEFAULT_EAGERNESS,
        apply_threshold: bool = False,
    ) -> Iterator[Ranking]:
        """Rank by the recall engine: with `apply_threshold` as for a prompt, else all hits of a question."""
        for vault, members in self.by_vault(questions):
            if vault is None:
                yield from (Ranking(question, (), ()) for question in members)
                continue
            engine = RecallEngine(vault.index_db, vault.vault, self.embedder, eagerness)
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

    def by_vault(self, questions: Iterable[Question]) -> Iterator[tuple[IndexedVault | None, list[Question]]]:
        """Each group's vault (None: it has no documents) and questions, in the order of the groups' first questions."""
        groups: dict[str | None, list[Question]] = {}
        for question in questions:
            groups.setdefault(question.group, []).append(question)
        for group, members in groups.items():
            yield self._vaults.get(group), members


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
    vaults: dict[str | None, IndexedVault] = {}
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


def _index_group(documents: Sequence[Document], folder: Path, embedder: Embedder | None) -> IndexedVault:
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
    return IndexedVault(index_db, vault, ids)


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
    """Read lines of JSON: id, text, group?, tags?. Raises UsageError as `_rows` does."""
    return [
        Document(row["id"], row["text"], row.get("group"), tuple(map(str, row.get("tags") or ())))
        for row in _rows(path)
    ]


def load_questions(path: Path) -> list[Question]:
    """Read lines of JSON: id, text, group?, gold? (ids), kind?. Raises UsageError as `_rows` does."""
    return [
        Question(
            row["id"],
            row["text"],
            row.get("group"),
            frozenset(map(str, row.get("gold") or ())),
            str(row.get("kind") or ""),
        )
        for row in _rows(path)
    ]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the object of every line. Raises UsageError naming the line where id, text or a group is no string, or its
    group has the id twice."""
    try:
        # Not `splitlines`: a JSON string may hold U+2028 and its like, which end no line of JSON.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    first: dict[tuple[str | None, str], str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = parse_json(line)
        except ValueError as error:
            raise UsageError(f"{where} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise UsageError(f"{where} is not a JSON object")
        for name in ("id", "text", "group"):
            if not (isinstance(row.get(name), str) or (name == "group" and row.get(name) is None)):
                raise UsageError(f"{where}: {name} must be a string")
        if (before := first.setdefault((row.get("group"), row["id"]), where)) is not where:
            raise UsageError(f"{where}: the id {row['id']!r} is there already ({before})")
        yield row
