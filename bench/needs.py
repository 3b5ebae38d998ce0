"""Measure what real people's prompts needed and got: `python -m memoryvault.bench needs`, with MEMORYVAULT_DATA set.

Each person's memories are notes of one vault, beside other people's up to a size. The start of a session is built as
its hook does, and each prompt asks the recall engine for what the start did not give. `prompts/score_needs.py` among
the data counts in the same way.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..hooks.session_start import build_opening
from ..index.drain import drain, embed_with
from ..index.embedder import DEFAULT_MODEL, Embedder, load_embedder
from ..index.engine import RecallEngine, RecallQuery
from ..index.store import IndexStore
from ..index.unreviewed import recall_unreviewed
from ..runtime.settings_table import RecallSection
from ..vault.entry import parse_entry
from .recall import INJECTED, Remembering

SIZES = (0, 20, 60, 200, 2000)
"""Entries of a vault; 0: each person's alone."""
EAGERNESS = ("cautious", "balanced", "eager")
PROJECT = "here"
SEED = 7
WAITING = "---\nstatus: pending\nsource: {host: claude, session: s}"


@dataclass
class People:
    """What people said, and what their later prompts needed."""

    memories: Mapping[str, list[dict[str, Any]]]
    """Of each person."""
    needs: Mapping[str, list[dict[str, Any]]]
    """Of each person: prompts with the keys of the memories they need, and of those that would do no harm."""
    prompts: Mapping[str, str]
    """Texts by id."""
    fillers: list[dict[str, Any]]
    """Memories for larger vaults, which no prompt needs."""


@dataclass
class PeoplesVault:
    """A vault with the memories of some people."""

    people: Sequence[str]
    texts: Mapping[str, str]
    """Notes by path."""
    memories: Mapping[str, dict[str, Any]]
    """Those of these people, by path."""

    @property
    def habits(self) -> frozenset[str]:
        return frozenset(path for path, memory in self.memories.items() if memory["channel"] == "core")


@dataclass
class Tally:
    """Counts over prompts."""

    needed: int = 0
    met: int = 0
    needed_others: int = 0
    """Needs that are no habit."""
    met_others: int = 0
    met_by_prompt: int = 0
    """Needs met with the prompt, not at the start."""
    wrong: int = 0
    prompts: int = 0
    quiet: int = 0
    noisy: int = 0
    words: list[int] = field(default_factory=list)
    """Of each session's start."""


def load_people(data: Path) -> People:
    """Read the labelled prompts among the data sets."""

    def rows(name: str) -> list[dict[str, Any]]:
        return load_lines(data / "prompts" / f"{name}.jsonl")

    said = {row["id"]: row for name in ("train", "dev") for row in rows(name)}
    memories: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for memory in rows("memories"):
        memories[memory["person"]].append(memory)
    needs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for need in rows("needs"):
        needs[need["person"]].append(need)
    fillers = [{**item, "statement": item["quote"]} for row in said.values() for item in row["items"]]
    return People(memories, needs, {id_: row["text"] for id_, row in said.items()}, fillers)


def load_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file with a JSON object a line."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def vaults(people: People, size: int, *, marked: bool) -> Iterator[PeoplesVault]:
    """Yield vaults of about `size` entries that hold all people's memories together.

    `marked`: habits have `always_load`.
    """
    for group in _groups(sorted(people.memories), people.memories, size):
        held = [memory for person in group for memory in people.memories[person]]
        memories = {f"{memory['key'].replace(':', '-')}.md": memory for memory in held}
        texts = {path: _note(memory, marked=marked) for path, memory in memories.items()}
        for number, item in enumerate(random.Random(SEED).sample(people.fillers, max(0, size - len(held)))):
            texts[f"filler-{number}.md"] = _note(item, marked=False)
        yield PeoplesVault(group, texts, memories)


def _groups(people: list[str], memories: Mapping[str, list[Any]], size: int) -> Iterator[list[str]]:
    group: list[str] = []
    count = 0
    random.Random(SEED).shuffle(people)
    for person in people:
        if group and count + len(memories[person]) > size * 1.1:
            yield group
            group, count = [], 0
        group.append(person)
        count += len(memories[person])
    yield group


def _note(memory: Mapping[str, Any], *, marked: bool) -> str:
    lines = [f"kind: {memory['category']}", f"confidence: {memory['tier'].upper()}"]
    lines += [f"project: {PROJECT}"] if memory["scope"] == "project" else []
    lines += ["always_load: true"] if marked and memory["channel"] == "core" else []
    return "\n".join(["---", *lines, "---", "", memory["statement"], ""])


def index_notes(texts: Mapping[str, str], root: Path, embedder: Embedder) -> tuple[Path, Path]:
    """Write the notes and index them; return (index, vault)."""
    vault, index_db = root / "vault", root / "index.db"
    vault.mkdir(parents=True)
    with IndexStore(index_db) as store:
        with store.transaction():
            for path, text in texts.items():
                (vault / path).write_text(text, encoding="utf-8", errors="replace")
                state = os.stat(vault / path)
                # The file's name is ours, so it must not add words to what was said.
                entry = replace(parse_entry(path, text.encode("utf-8", "replace")), title="", name="")
                store.upsert_entry(entry, mtime_ns=state.st_mtime_ns, size=state.st_size)
        drain(store, embed_with(embedder), model=embedder.name)
    return index_db, vault


def measure(people: People, size: int, folder: Path, embedder: Embedder) -> dict[str, Tally]:
    """Return the counts for each eagerness."""
    tallies = {eagerness: Tally() for eagerness in EAGERNESS}
    for number, vault in enumerate(vaults(people, size, marked=True)):
        asked = [(need, people.prompts[need["id"]]) for person in vault.people for need in people.needs.get(person, ())]
        if not asked:
            continue
        index_db, notes = index_notes(vault.texts, folder / f"{size}-{number}", embedder)
        for eagerness, tally in tallies.items():
            engine = RecallEngine(index_db, notes, embedder, eagerness=eagerness)
            at_start = _start(index_db, notes, eagerness, tally)
            for need, text in asked:
                own = frozenset(path for path in vault.texts if path.startswith(f"{need['id']}-"))
                query = RecallQuery(
                    text,
                    k=INJECTED,
                    project=PROJECT,
                    exclude_paths=at_start | own,
                    is_prompt=True,
                )
                with_prompt = {hit.path for hit in engine.recall(query).hits}
                _count(tally, vault, need, at_start - own, with_prompt)
            engine.close()
    return tallies


def measure_unreviewed(people: People, folder: Path, embedder: Embedder) -> Tally:
    """Return the counts where the user has reviewed nothing: each person's memories wait, and none is in use."""
    tally = Tally()
    for number, vault in enumerate(vaults(people, 0, marked=False)):
        waiting = {path: text.replace("---", WAITING, 1) for path, text in vault.texts.items()}
        index_db, notes = index_notes(waiting, folder / f"unreviewed-{number}", embedder)
        engine = RecallEngine(index_db, notes, embedder)
        for need in (need for person in vault.people for need in people.needs.get(person, ())):
            own = frozenset(path for path in waiting if path.startswith(f"{need['id']}-"))
            query = RecallQuery(people.prompts[need["id"]], project=PROJECT, exclude_paths=own, is_prompt=True)
            given = {hit.path for hit in recall_unreviewed(engine, notes, query, None)}
            _count(tally, vault, need, frozenset(), given)
        engine.close()
    return tally


def _start(index_db: Path, vault: Path, eagerness: str, tally: Tally) -> frozenset[str]:
    settings = {
        "vault": str(vault),
        "markers": str(vault.parent),
        "index_db": str(index_db),
        "auto_memory": "0",
        "eagerness": eagerness,
        "log_file": "",
    }
    opening = build_opening(
        settings,
        "",
        PROJECT,
        RecallSection().core_words,
        float("inf"),
        publish=lambda _text, _paths: None,
        host_loads_notes=lambda _folder: False,
    )
    tally.words.append(len(opening.text.split()))
    return frozenset(opening.paths)


def _count(tally: Tally, vault: PeoplesVault, need: Mapping[str, Any], start: frozenset[str], given: set[str]) -> None:
    def key(path: str) -> str:
        return str(vault.memories[path]["key"]) if path in vault.memories else path

    habits = {key(path) for path in vault.habits}
    needed, known, prompted = set(need["need"]), set(map(key, start)), set(map(key, given))
    wrong = prompted - needed - set(need["fine"])
    tally.prompts += 1
    tally.needed += len(needed)
    tally.met += len(needed & (known | prompted))
    tally.needed_others += len(needed - habits)
    tally.met_others += len((needed - habits) & (known | prompted))
    tally.met_by_prompt += len(needed & prompted)
    tally.wrong += len(wrong)
    tally.quiet += not needed
    tally.noisy += not needed and bool(wrong)


def main() -> int:
    people = load_people(Path(os.environ["MEMORYVAULT_DATA"]))
    with tempfile.TemporaryDirectory(prefix="memoryvault-needs-") as folder:
        embedder = Remembering(load_embedder(DEFAULT_MODEL, models_folder=Path(folder)))
        print("| vault | eagerness | needs met | of no habit | by the prompt | wrong a prompt | noise | words |")
        print("|---|---|---|---|---|---|---|---|")
        for size in SIZES:
            for eagerness, each in measure(people, size, Path(folder), embedder).items():
                print(
                    f"| {size or 'own'} | {eagerness} | {each.met / each.needed:.2f}"
                    f" | {each.met_others / each.needed_others:.2f} | {each.met_by_prompt / each.needed:.2f}"
                    f" | {each.wrong / each.prompts:.2f} | {each.noisy / each.quiet:.2f}"
                    f" | {sum(each.words) / len(each.words):.0f} |",
                    flush=True,
                )
        print("\nNothing reviewed, own vault:")
        each = measure_unreviewed(people, Path(folder), embedder)
        print(
            f"{each.met_others / each.needed_others:.2f} of the needs that are no habit met,"
            f" {each.wrong / each.prompts:.2f} wrong a prompt, noise {each.noisy / each.quiet:.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
