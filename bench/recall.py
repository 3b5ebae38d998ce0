"""Measure the quality of recall: `python -m memoryvault.bench.recall`.

Compares BM25 alone, dense alone, the sum of both (each scaled to 0..1) and the recall engine over the same index, with
95% confidence intervals (bootstrap over the questions). Then the gate and the model that judges answers: how often a
prompt that the vault does not answer gets an entry, and how much recall they cost.

MEMORYVAULT_DATA names the folder with the data sets; without it only the project's own vaults are measured. LoCoMo,
devbench and the notes with misleading neighbours are development data, so their figures are in-sample. So are those of
the echoing and the mixed notes, except for the questions held out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..index.drain import drain, embed_with
from ..index.embedder import DEFAULT_MODEL, Embedder, EncodedTexts, load_embedder
from ..index.evaluation import (
    Document,
    Evaluation,
    IndexedVault,
    Question,
    Ranking,
    load_documents,
    load_questions,
    open_documents,
)
from ..index.query import analyse
from ..index.ranking import DenseHit, KeywordHit
from ..index.reconcile import reconcile
from ..index.scope import Scope
from ..index.search_reader import SearchReader
from ..index.store import IndexStore
from ..vault.gate import EAGERNESS

REGRESSION = Path(__file__).resolve().parent.parent / "tests" / "recall_regression"
ANSWERS = Path(__file__).resolve().parent.parent / "training" / "answers" / "examples"
CANDIDATES = 200
"""Hits of each retriever alone, for the baselines."""
K = 10
INJECTED = 5
"""Hits that a prompt gets."""
RESAMPLES = 1000
OURS = "recall engine"

Open = Callable[[Path, Embedder], AbstractContextManager[Evaluation]]


@dataclass(frozen=True)
class Task:
    """A data set: how to index it, what to ask, and prompts that it does not answer."""

    name: str
    open: Open
    questions: Sequence[Question]
    unanswerable: Sequence[Question]
    documents: Sequence[Document] = ()
    """Where they are no files."""


def tasks(data: Path | None) -> Iterator[Task]:
    """Yield the available data sets."""
    regression = json.loads((REGRESSION / "queries.json").read_text(encoding="utf-8"))["queries"]
    silent = [row["text"] for row in regression if row.get("nothing")]
    if data is not None:
        folder = data / "recall"
        documents = load_documents(folder / "locomo-dev.docs.jsonl")
        questions = load_questions(folder / "locomo-dev.queries.jsonl")
        groups = sorted({question.group or "" for question in questions})
        foreign = [Question(f"{group}/{text}", text, group) for group in groups for text in silent]
        yield Task("LoCoMo, two conversations, by turn", partial(_open, documents), questions, foreign, documents)
        yield _devbench(folder / "devbench.json", silent)
    yield _misleading()
    yield _of_kinds("notes that echo the question", "echoing.json")
    yield _of_kinds("mixed notes", "mixed.json")
    yield _together()
    yield from map(_own_words, ("judge", "judge_dense", "judge_long", "judge_fresh", "judge_unseen"))
    yield _regression(regression, silent)


def _open(documents: Sequence[Document], folder: Path, embedder: Embedder) -> AbstractContextManager[Evaluation]:
    return open_documents(documents, folder, embedder)


def _devbench(path: Path, silent: Sequence[str]) -> Task:
    bench = json.loads(path.read_text(encoding="utf-8"))
    documents = [
        # Tags that spell out the answer's id are left out.
        Document(row["id"], row["content"], None, tuple(tag for tag in row["tags"] if "bench" not in tag))
        for row in bench["memories"]
    ]
    questions = [
        Question(row["id"], row["question"], None, frozenset(row["expected_tags"]), row["category"])
        for row in bench["queries"]
    ]
    negative = [question for question in questions if not question.gold]
    negative += [Question(text, text) for text in silent]
    return Task("devbench", partial(_open, documents), [q for q in questions if q.gold], negative, documents)


def _misleading() -> Task:
    """Two vaults in which the words of a sideways question also occur in other notes: development data."""
    content = json.loads((REGRESSION / "misleading.json").read_text(encoding="utf-8"))
    notes = content["notes"]
    documents = [
        Document(note["id"], f"# {note['title']}\n\n{note['text']}", note["vault"], tuple(note["tags"]))
        for note in notes
    ]
    questions = [
        Question(f"{note['id']}/{kind}", note[kind], note["vault"], frozenset([note["id"]]), kind)
        for kind in ("exact", "sideways")
        for note in notes
    ]
    vaults = sorted({note["vault"] for note in notes})
    silent = [Question(f"{vault}/{text}", text, vault) for vault in vaults for text in content["unanswerable"]]
    return Task("notes with misleading neighbours", partial(_open, documents), questions, silent, documents)


def _of_kinds(name: str, file: str) -> Task:
    """A vault with questions of several kinds, some of them held out; its `note` describes it."""
    content = json.loads((REGRESSION / file).read_text(encoding="utf-8"))
    documents = [Document(note["id"], f"# {note['title']}\n\n{note['text']}") for note in content["notes"]]
    questions = [
        Question(row["id"], row["text"], None, frozenset([row["expect"]]), row["kind"]) for row in content["questions"]
    ]
    silent = [Question(text, text) for text in content["unanswerable"]]
    return Task(name, partial(_open, documents), questions, silent, documents)


def _together() -> Task:
    """All these notes in one vault, on which nothing was tuned."""
    documents, questions, silent = list[Document](), list[Question](), dict[str, Question]()
    for name, task in (
        ("misleading", _misleading()),
        ("echoing", _of_kinds("", "echoing.json")),
        ("mixed", _of_kinds("", "mixed.json")),
    ):
        documents += [replace(each, id=f"{name}/{each.id}", group=None) for each in task.documents]
        for each in task.questions:
            gold = frozenset(f"{name}/{id_}" for id_ in each.gold)
            kind = each.kind.removesuffix(", held out").replace("paraphrase", "sideways")
            questions.append(replace(each, id=f"{name}/{each.id}", group=None, gold=gold, kind=kind))
        silent |= {each.text: Question(each.text, each.text) for each in task.unanswerable}
    return Task("all these notes in one vault", partial(_open, documents), questions, list(silent.values()), documents)


def _own_words(name: str) -> Task:
    """Vaults with prompts about what they do not hold, in their own words."""
    lines = (ANSWERS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    documents, questions, silent = list[Document](), list[Question](), list[Question]()
    for vault in map(json.loads, lines):
        group = vault["vault"]
        for number, note in enumerate(vault["notes"]):
            id_ = f"{group}/{number}"
            documents.append(Document(id_, note["note"], group))
            questions += [Question(f"{id_}/{text}", text, group, frozenset([id_])) for text in note["asks"]]
            silent += [Question(f"{id_}/{text}", text, group) for text in note["not"]]
    return Task(f"in the vault's own words, {name}", partial(_open, documents), questions, silent, documents)


def _regression(rows: Sequence[dict[str, object]], silent: Sequence[str]) -> Task:
    vault = REGRESSION / "vault"
    by_slug = {file.name.split(".md")[0]: file.relative_to(vault).as_posix() for file in vault.rglob("*.md")}
    questions = [
        Question(str(row["text"]), str(row["text"]), None, frozenset([by_slug[str(row["expect"])]]), str(row["kind"]))
        for row in rows
        if "expect" in row and row["kind"] != "project"
    ]

    def index(folder: Path, embedder: Embedder) -> AbstractContextManager[Evaluation]:
        return open_vault(vault, folder, embedder)

    return Task("regression vault", index, questions, [Question(text, text) for text in silent])


def interval(values: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """Return the 95% interval of the mean, by RESAMPLES samples drawn with replacement."""
    choose = random.Random(seed)
    means = sorted(sum(choose.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def table(task: Task, evaluation: Evaluation) -> Iterator[str]:
    """Yield the lines of the tables: one row for each method, then recall by kind of question."""
    yield f"### {task.name}: {len(task.questions)} questions\n"
    yield f"| | NDCG@{K} | R@{K} | R@5 | first |"
    yield "|---|---|---|---|---|"
    by_kind: dict[str, dict[str, float]] = {}
    for method in (*BASELINES, OURS):
        found = list(
            evaluation.rank(task.questions, K) if method == OURS else rank_by(evaluation, method, task.questions, K)
        )
        columns = [
            [ndcg(one.ids, one.question.gold, K) for one in found],
            [recall_at(one.ids, one.question.gold, K) for one in found],
            [recall_at(one.ids, one.question.gold, 5) for one in found],
            [float(one.ids[:1] != () and one.ids[0] in one.question.gold) for one in found],
        ]
        yield f"| {method} | {' | '.join(_cell(column) for column in columns)} |"
        by_kind[method] = _by_kind(found)
    kinds = list(dict.fromkeys(question.kind for question in task.questions))
    if len(kinds) > 1:
        names = [re.sub(r"^(sideways|paraphrase)\b", "paraphrased", kind) for kind in kinds]
        yield f"\n| R@5 by kind | {' | '.join(names)} |"
        yield "|---|" + "---|" * len(kinds)
        for method, values in by_kind.items():
            yield f"| {method} | {' | '.join(f'{values[kind]:.2f}' for kind in kinds)} |"
    yield ""


def _cell(values: Sequence[float]) -> str:
    low, high = interval(values)
    return f"{sum(values) / len(values):.3f} ({low:.3f}–{high:.3f})"


def _by_kind(found: Sequence[Ranking]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for one in found:
        values.setdefault(one.question.kind, []).append(recall_at(one.ids, one.question.gold, 5))
    return {kind: sum(each) / len(each) for kind, each in values.items()}


def silence(task: Task, evaluation: Evaluation) -> Iterator[str]:
    """Yield the lines of the table of what prompts get: false injections and recall kept, by eagerness, and without the
    model that judges answers."""
    without = _kept(evaluation, task.questions, None)
    prompts = len(task.unanswerable)
    yield f"The gate, {prompts} prompts that nothing here answers; R@{INJECTED} without it {without:.3f}\n"
    yield "| eagerness | false injections | recall kept |"
    yield "|---|---|---|"
    judge = getattr(evaluation.embedder, "judge_answer", None)
    for name, eagerness, judges in [
        *((name, name, judge) for name in EAGERNESS),
        ("balanced, the gate alone", "balanced", None),
    ]:
        if isinstance(evaluation.embedder, Remembering):
            evaluation.embedder.judge_answer = judges
        found = evaluation.rank(task.unanswerable, INJECTED, eagerness=eagerness, apply_threshold=True)
        injected = sum(bool(one.ids) for one in found)
        kept = _kept(evaluation, task.questions, eagerness) / without
        yield f"| {name} | {injected} ({injected / prompts:.0%}) | {kept:.1%} |"
    if isinstance(evaluation.embedder, Remembering):
        evaluation.embedder.judge_answer = judge
    yield ""


def _kept(evaluation: Evaluation, questions: Sequence[Question], eagerness: str | None) -> float:
    asked = {} if eagerness is None else {"eagerness": eagerness}
    found = evaluation.rank(questions, INJECTED, apply_threshold=eagerness is not None, **asked)
    values = [recall_at(one.ids, one.question.gold, INJECTED) for one in found]
    return sum(values) / len(values)


class Remembering:
    """An embedder that encodes each question once for all methods and eagernesses."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, ...], EncodedTexts] = {}
        self.name, self.dimension = embedder.name, embedder.dimension
        self.judge_answer = getattr(embedder, "judge_answer", None)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> EncodedTexts:
        if not query:
            return self._embedder.encode(texts)
        key = tuple(texts)
        if key not in self._known:
            self._known[key] = self._embedder.encode(texts, query=True)
        return self._known[key]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with the data sets (default $MEMORYVAULT_DATA)")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--models", type=Path, default=Path("models"), help="where downloaded models lie")
    parser.add_argument("--no-silence", action="store_true", help="leave out what the gate lets through")
    args = parser.parse_args(argv)
    data = args.data or (Path(os.environ["MEMORYVAULT_DATA"]) if os.environ.get("MEMORYVAULT_DATA") else None)
    embedder = Remembering(load_embedder(args.model, models_folder=args.models))
    for task in tasks(data):
        with (
            tempfile.TemporaryDirectory(prefix="memoryvault-bench-") as folder,
            task.open(Path(folder), embedder) as evaluation,
        ):
            for line in table(task, evaluation):
                print(line, flush=True)
            if not args.no_silence:
                for line in silence(task, evaluation):
                    print(line, flush=True)
    return 0


@contextmanager
def open_vault(vault: Path, folder: Path, embedder: Embedder | None) -> Iterator[Evaluation]:
    """Index a vault's notes in `folder`; the ids are the notes' paths, and no question has a group."""
    paths = sorted(file.relative_to(vault).as_posix() for file in vault.rglob("*.md"))
    with IndexStore(folder / "index.db") as store:
        reconcile(store, vault, lambda: iter(paths))
        if embedder is not None:
            drain(store, embed_with(embedder), model=embedder.name)
    yield Evaluation({None: IndexedVault(folder / "index.db", vault, {path: path for path in paths})}, embedder)


def rank_by(evaluation: Evaluation, method: str, questions: Iterable[Question], k: int) -> Iterator[Ranking]:
    """Rank by one retriever alone (`bm25`, `dense`) or the sum of both, each scaled to 0..1 (`sum`)."""
    for vault, members in evaluation.by_vault(questions):
        if vault is None:
            yield from (Ranking(question, (), ()) for question in members)
            continue
        reader = SearchReader(vault.index_db)
        try:
            for question in members:
                keyword, dense = _retrieve(reader, question, evaluation.embedder)
                scores = BASELINES[method](keyword, dense)
                paths = {rowid: row.path for rowid, row in reader.entries_by_rowid(scores).items()}
                ranked = sorted(scores, key=lambda rowid: (-scores[rowid], paths[rowid]))[:k]
                yield Ranking(
                    question,
                    tuple(vault.ids[paths[rowid]] for rowid in ranked),
                    tuple(round(scores[rowid], 6) for rowid in ranked),
                )
        finally:
            reader.close()


def _retrieve(
    reader: SearchReader, question: Question, embedder: Embedder | None
) -> tuple[list[KeywordHit], list[DenseHit]]:
    scope = Scope(all_projects=True)
    query = analyse(question.text)
    keyword = reader.search_keywords(query.fts_match, scope, CANDIDATES) if query.fts_match else []
    dense: list[DenseHit] = []
    model = reader.find_model(embedder.name) if embedder else None
    if embedder is not None and model is not None:
        vector = embedder.encode([query.dense_text], query=True).vectors[0].astype("<f4").tobytes()
        dense = reader.search_vectors(model.model_id, vector, scope, CANDIDATES)
    return keyword, dense


def ndcg(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Normalised discounted cumulative gain at k, binary relevance."""
    gain = sum(1 / math.log2(place + 2) for place, id_ in enumerate(ranked[:k]) if id_ in gold)
    best = sum(1 / math.log2(place + 2) for place in range(min(k, len(gold))))
    return gain / best if best else 0.0


def recall_at(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Share of the gold ids among the first k."""
    return len(gold.intersection(ranked[:k])) / len(gold) if gold else 0.0


def _bm25(keyword: Sequence[KeywordHit], dense: Sequence[DenseHit]) -> dict[int, float]:
    return _best((hit.entry_rowid, hit.bm25) for hit in keyword)


def _dense(keyword: Sequence[KeywordHit], dense: Sequence[DenseHit]) -> dict[int, float]:
    return _best((hit.entry_rowid, hit.similarity) for hit in dense)


def _sum(keyword: Sequence[KeywordHit], dense: Sequence[DenseHit]) -> dict[int, float]:
    left, right = _scale(_bm25(keyword, dense)), _scale(_dense(keyword, dense))
    return {rowid: left.get(rowid, 0.0) + right.get(rowid, 0.0) for rowid in left.keys() | right.keys()}


BASELINES: Mapping[str, Callable[[Sequence[KeywordHit], Sequence[DenseHit]], dict[int, float]]] = {
    "bm25": _bm25,
    "dense": _dense,
    "sum": _sum,
}


def _best(scores: Iterable[tuple[int, float]]) -> dict[int, float]:
    best: dict[int, float] = {}
    for rowid, score in scores:
        best[rowid] = max(score, best.get(rowid, score))
    return best


def _scale(scores: Mapping[int, float]) -> dict[int, float]:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {rowid: (score - low) / (high - low) if high > low else 1.0 for rowid, score in scores.items()}


if __name__ == "__main__":
    sys.exit(main())
