"""Collect the gate's features: `python training/gate/collect.py OUT [people|notes|small…]`, with MEMORYVAULT_DATA set.

A row is a pair of a prompt and one of the first entries that the real recall engine ranks for it, in vaults of several
sizes (filled with other people's memories), and in the project's own vaults of notes. OUT is a folder with a pickled
file for each source of rows.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoryvault.bench.recall import Remembering, tasks
from memoryvault.index.drain import drain, embed_with
from memoryvault.index.embedder import DEFAULT_MODEL, EncodedTexts, load_embedder
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.evaluation import Document, Evaluation, open_documents
from memoryvault.index.store import IndexStore
from memoryvault.vault.entry import parse_entry

SIZES = (0, 20, 60, 200, 2000)
"""Entries of a vault; 0: each person's alone."""
SMALL = 6
"""Notes of a small vault."""
PROJECT = "here"
SEED = 7


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

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        return self.encode_words(texts, query=query).vectors

    def encode_words(self, texts: Sequence[str], *, query: bool = False) -> EncodedTexts:
        import numpy

        name = "q" if query else "d"
        missing = [text for text in dict.fromkeys(texts) if (name, text) not in self._texts]
        for start in range(0, len(missing), 64):
            part = missing[start : start + 64]
            encoded = self._embedder.encode_words(part, query=query)
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

    def _pairs(self, reader: Any, state: Any, ranked: Any, retrieved: Any, facts: Any, evidence: Any) -> Any:
        found = super()._pairs(reader, state, ranked, retrieved, facts, evidence)
        self.pairs = [(facts[row.entry_rowid].path, pair) for row, pair in zip(ranked, found, strict=True)]
        return found


def load_lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def people_rows(data: Path, embedder: Cached, folder: Path) -> Iterator[Row]:
    """Rows of needs.jsonl, over all sizes of vault."""
    memories = load_lines(data / "prompts" / "memories.jsonl")
    said = {row["id"]: row for name in ("train", "dev") for row in load_lines(data / "prompts" / f"{name}.jsonl")}
    needs = load_lines(data / "prompts" / "needs.jsonl")
    filling = [{**item, "statement": item["quote"]} for row in said.values() for item in row["items"]]
    by_person: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for memory in memories:
        by_person[memory["person"]].append(memory)
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for need in needs:
        asked[need["person"]].append(need)
    for size in SIZES:
        for number, group in enumerate(_groups(sorted(by_person), by_person, size)):
            root = folder / f"{size}-{number}"
            held = [memory for person in group for memory in by_person[person]]
            texts = {f"{memory['key'].replace(':', '-')}.md": _note(memory) for memory in held}
            for filler, item in enumerate(random.Random(SEED).sample(filling, max(0, size - len(held)))):
                texts[f"filler-{filler}.md"] = _note(item)
            engine = _index(texts, root, embedder)
            keys = {f"{memory['key'].replace(':', '-')}.md": memory for memory in held}
            core = {path for path, memory in keys.items() if memory["channel"] == "core"}
            for person in group:
                for need in asked[person]:
                    own = {path for path in texts if path.startswith(f"{need['id']}-")}
                    engine.pairs = []
                    engine.recall(_prompt(said[need["id"]]["text"], frozenset(core | own)))
                    for path, pair in engine.pairs:
                        key = keys[path]["key"] if path in keys else path
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
            for vault, questions in evaluation._by_vault([*task.questions, *task.unanswerable]):
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


def _groups(people: list[str], by_person: Mapping[str, list[Any]], size: int) -> Iterator[list[str]]:
    group: list[str] = []
    count = 0
    random.Random(SEED).shuffle(people)
    for person in people:
        if group and count + len(by_person[person]) > size * 1.1:
            yield group
            group, count = [], 0
        group.append(person)
        count += len(by_person[person])
    yield group


def _note(memory: Mapping[str, Any]) -> str:
    project = f"project: {PROJECT}\n" if memory["scope"] == "project" else ""
    head = f"kind: {memory['category']}\nconfidence: {memory['tier'].upper()}\n{project}"
    return f"---\n{head}---\n\n{memory['statement']}\n"


def _prompt(text: str, exclude: frozenset[str]) -> RecallQuery:
    return RecallQuery(text, k=1, project=PROJECT, exclude_paths=exclude, is_prompt=True, apply_threshold=False)


def _index(texts: Mapping[str, str], root: Path, embedder: Cached) -> Collecting:
    vault = root / "vault"
    vault.mkdir(parents=True)
    with IndexStore(root / "index.db") as store:
        with store.transaction():
            for path, text in texts.items():
                (vault / path).write_text(text, encoding="utf-8", errors="replace")
                state = os.stat(vault / path)
                # The file's name is ours, so it must not add words to what was said.
                entry = replace(parse_entry(path, text.encode("utf-8", "replace")), title="", name="")
                store.upsert_entry(entry, mtime_ns=state.st_mtime_ns, size=state.st_size)
        drain(store, embed_with(embedder), model=embedder.name)
    return Collecting(root / "index.db", vault, embedder)


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
