"""Collect the gate's features: `python training/gate/collect.py OUT [people|notes|small…]`, with MEMORYVAULT_DATA set.

A row is a pair of a prompt and one of the first entries that the real recall engine ranks for it, in vaults of several
sizes (filled with other people's memories), and in the project's own vaults of notes. OUT is a folder with a pickled
file for each source of rows.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoryvault.bench.needs import PROJECT, SIZES, index_notes, load_people, vaults
from memoryvault.bench.recall import Remembering, tasks
from memoryvault.index.embedder import DEFAULT_MODEL, EncodedTexts, load_embedder
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.evaluation import Document, Evaluation, open_documents

SMALL = 6
"""Notes of a small vault."""


@dataclass(frozen=True)
class Row:
    """A prompt and an entry. `label`: 2 needed, 1 fine, 0 wrong."""

    source: str
    """`own`, the size of the vault, or the name of a vault of notes."""
    person: str
    prompt: str
    entry: str
    label: int
    by_meaning: Mapping[str, float]


class Cached(Remembering):
    """An embedder that keeps what it has encoded in a file."""

    def __init__(self, embedder: Any, path: Path) -> None:
        super().__init__(embedder)
        self._path, self._texts = path, {}
        if path.exists():
            with path.open("rb") as file:
                self._texts = pickle.load(file)  # noqa: S301 - our own file

    def encode(self, texts: Sequence[str], *, query: bool = False) -> EncodedTexts:
        import numpy

        name = "q" if query else "d"
        missing = [text for text in dict.fromkeys(texts) if (name, text) not in self._texts]
        for start in range(0, len(missing), 64):
            part = missing[start : start + 64]
            encoded = self._embedder.encode(part, query=query)
            for text, vector, words in zip(part, encoded.vectors, encoded.words, strict=True):
                self._texts[name, text] = (vector, words)
        found = [self._texts[name, text] for text in texts]
        return EncodedTexts(numpy.array([vector for vector, _ in found]), tuple(words for _, words in found))

    def save(self) -> None:
        with self._path.open("wb") as file:
            pickle.dump(self._texts, file, protocol=4)


class Collecting(RecallEngine):
    """An engine that keeps the features of the last recall."""

    pairs: list[tuple[str, dict[str, float]]]

    def _pairs(self, reader: Any, state: Any, ranked: Any) -> Any:
        found = super()._pairs(reader, state, ranked)
        self.pairs = [(state.facts[row.entry_rowid].path, pair) for row, pair in zip(ranked, found, strict=True)]
        return found


def people_rows(data: Path, embedder: Cached, folder: Path) -> Iterator[Row]:
    """Rows of needs.jsonl, over all sizes of vault."""
    people = load_people(data)
    for size in SIZES:
        for number, vault in enumerate(vaults(people, size, marked=False)):
            engine = Collecting(*index_notes(vault.texts, folder / f"{size}-{number}", embedder), embedder)
            for person in vault.people:
                for need in people.needs.get(person, ()):
                    own = {path for path in vault.texts if path.startswith(f"{need['id']}-")}
                    engine.pairs = []
                    engine.recall(_prompt(people.prompts[need["id"]], vault.habits | own))
                    for path, pair in engine.pairs:
                        key = vault.memories[path]["key"] if path in vault.memories else path
                        label = 2 if key in need["need"] else int(key in need["fine"])
                        yield Row(str(size or "own"), person, need["id"], key, label, pair)
            engine.close()
        print(f"vaults of {size or 'their own size'}", file=sys.stderr, flush=True)


def note_rows(data: Path, embedder: Cached, folder: Path) -> Iterator[Row]:
    """Rows of the project's own vaults of notes: the note that answers is needed, the others are wrong."""
    for number, task in enumerate(tasks(data)):
        if task.name.startswith(("LoCoMo", "all these")):
            continue
        root = folder / f"notes-{number}"
        root.mkdir()
        with task.open(root, embedder) as evaluation:
            for vault, questions in evaluation.by_vault([*task.questions, *task.unanswerable]):
                if vault is None:
                    continue
                engine = Collecting(vault.index_db, vault.vault, embedder)
                for question in questions:
                    engine.pairs = []
                    engine.recall(
                        RecallQuery(question.text, k=1, all_projects=True, is_prompt=True, apply_threshold=False)
                    )
                    for path, pair in engine.pairs:
                        id_ = vault.ids[path]
                        yield Row(
                            task.name, f"{task.name}/{question.id}", question.id, id_, 2 * (id_ in question.gold), pair
                        )
                engine.close()


def small_rows(data: Path, embedder: Cached, folder: Path) -> Iterator[Row]:
    """Rows of vaults of a few notes each: every question is asked in the vault of its note and in another one."""
    for task in tasks(None):
        if not task.documents or task.name.startswith("all these"):
            continue
        documents = [replace(document, group=str(number // SMALL)) for number, document in enumerate(task.documents)]
        group_of = {document.id: document.group for document in documents}
        groups = sorted({str(group) for group in group_of.values()})
        with task_vaults(documents, folder / task.name, embedder) as evaluation:
            for group, vault in evaluation._vaults.items():
                engine = Collecting(vault.index_db, vault.vault, embedder)
                other = groups[(groups.index(str(group)) + 1) % len(groups)]
                for question in task.questions:
                    at = {group_of[gold] for gold in question.gold}
                    if not at & {group, other}:
                        continue
                    engine.pairs = []
                    engine.recall(
                        RecallQuery(question.text, k=1, all_projects=True, is_prompt=True, apply_threshold=False)
                    )
                    for path, pair in engine.pairs:
                        gold = vault.ids[path] in question.gold
                        person = f"{task.name}/{question.id}"
                        yield Row("small vaults", person, f"{person}/{group}", vault.ids[path], 2 * gold, pair)
                engine.close()


def task_vaults(documents: Sequence[Document], folder: Path, embedder: Cached) -> AbstractContextManager[Evaluation]:
    folder.mkdir()
    return open_documents(documents, folder, embedder)


def _prompt(text: str, exclude: frozenset[str]) -> RecallQuery:
    return RecallQuery(text, k=1, project=PROJECT, exclude_paths=exclude, is_prompt=True, apply_threshold=False)


def main() -> None:
    data = Path(os.environ["MEMORYVAULT_DATA"])
    out = Path(sys.argv[1])
    out.mkdir(exist_ok=True)
    embedder = Cached(load_embedder(DEFAULT_MODEL, models_folder=out), out / "vectors")
    for name in sys.argv[2:] or SOURCES:
        with tempfile.TemporaryDirectory(prefix="memoryvault-gate-") as folder:
            rows = [vars(row) for row in SOURCES[name](data, embedder, Path(folder))]
        embedder.save()
        with (out / f"{name}.rows").open("wb") as file:
            pickle.dump(rows, file, protocol=4)
        print(f"{name}: {len(rows)} pairs", file=sys.stderr, flush=True)


SOURCES = {"people": people_rows, "notes": note_rows, "small": small_rows}


if __name__ == "__main__":
    main()
