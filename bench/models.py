"""Compare number formats of the embedding model on the CPU: `python -m memoryvault.bench.models [FOLDER]`.

The packaged MiniLM, or the model in FOLDER, runs as fp32, bf16 and int8 (dynamic, linear layers only), each in its own
process, in turns; the best round counts. Likeness is the cosine of a text's vector with its fp32 vector; `same first`
is the share of questions whose nearest passage stays the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..index.embedder import DEFAULT_MODEL, SentenceTransformerEmbedder, load_reference, locate_model, micro_batches
from .index import memory_mb

FORMATS = ("fp32", "bf16", "int8")
TEXTS = 160
QUESTIONS = 60
_SUBJECTS = [
    "the worker",
    "the recall service",
    "our release script",
    "the login page",
    "the nightly backup",
    "the search index",
]
_VERBS = [
    "fails when",
    "is restarted before",
    "waits for",
    "must not run while",
    "reads its settings from",
    "is slower than",
]
_OBJECTS = [
    "the database is locked",
    "a migration runs",
    "the certificate expires",
    "two sessions write at once",
    "the disk is full",
    "the token was revoked",
    "tests run in parallel",
    "the cache is cold",
    "the clock changes in autumn",
    "a branch is rebased",
]


def texts_and_questions(seed: int = 7) -> tuple[list[str], list[str]]:
    """Return notes of one to eight sentences, and questions about them."""
    choose = random.Random(seed)

    def sentence() -> str:
        return f"{choose.choice(_SUBJECTS)} {choose.choice(_VERBS)} {choose.choice(_OBJECTS)}"

    texts = [". ".join(sentence() for _ in range(choose.randint(1, 8))) + "." for _ in range(TEXTS)]
    return texts, [f"what happens to {sentence()}?" for _ in range(QUESTIONS)]


def measure(form: str, folder: str) -> dict[str, Any]:
    """Measure one format in this process: milliseconds, texts a second, memory, and the vectors."""
    before = memory_mb(os.getpid())
    embedder = load_reference(locate_model(folder, Path("/nonexistent")), threads=1)
    _convert(embedder, form)
    texts, questions = texts_and_questions()
    embedder.encode(["warm up"], query=True)
    taken, asked = [], []
    for question in questions:
        start = time.perf_counter()
        asked.append(embedder.encode([question], query=True).vectors[0].tolist())
        taken.append((time.perf_counter() - start) * 1000)
    rows: list[list[float]] = [[] for _ in texts]
    start = time.perf_counter()
    for group in micro_batches(texts):
        vectors = embedder.encode([texts[i] for i in group]).vectors
        for place, i in enumerate(group):
            rows[i] = vectors[place].tolist()
    seconds = time.perf_counter() - start
    after = memory_mb(os.getpid())
    return {
        "query_ms": statistics.median(taken),
        "texts_per_s": len(texts) / seconds,
        "mb": after["now"] if after else None,
        "base_mb": before["now"] if before else None,
        "texts": rows,
        "questions": asked,
    }


def _convert(embedder: SentenceTransformerEmbedder, form: str) -> None:
    import torch

    model = embedder._model
    if form == "bf16":
        model.bfloat16()
    elif form == "int8":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantize: Any = torch.ao.quantization.quantize_dynamic
            name = "model" if "model" in model[0]._modules else "auto_model"
            setattr(model[0], name, quantize(getattr(model[0], name), {torch.nn.Linear}, dtype=torch.qint8))


def compare(runs: dict[str, list[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """Return the rows of the table: the best round of each format, and the likeness to fp32."""
    import numpy

    reference = runs["fp32"][0]
    passages = numpy.array(reference["texts"])
    nearest = (numpy.array(reference["questions"]) @ passages.T).argmax(axis=1)
    table: list[tuple[str, ...]] = []
    for form in FORMATS:
        first = runs[form][0]
        likeness = (numpy.array(first["texts"]) * passages).sum(axis=1)
        found = (numpy.array(first["questions"]) @ numpy.array(first["texts"]).T).argmax(axis=1)
        table.append(
            (
                form,
                f"{min(run['query_ms'] for run in runs[form]):.1f}",
                f"{max(run['texts_per_s'] for run in runs[form]):.0f}",
                f"{likeness.mean():.4f}",
                f"{likeness.min():.4f}",
                f"{(found == nearest).mean():.2f}",
                f"{statistics.median(run['mb'] or 0 for run in runs[form]):.0f}",
            )
        )
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table as markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=str(locate_model(DEFAULT_MODEL, Path("/nonexistent")).folder))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=FORMATS, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        json.dump(measure(options.one, options.folder), sys.stdout)
        return 0
    runs: dict[str, list[dict[str, Any]]] = {form: [] for form in FORMATS}
    for _ in range(options.rounds):
        for form in FORMATS:
            command = [sys.executable, "-m", "memoryvault.bench.models", options.folder, "--one", form]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs[form].append(json.loads(done.stdout))
    print("| format | one question, ms | passages a second | mean cosine to fp32 | least | same first | memory, MB |")
    print("|---|---|---|---|---|---|---|")
    for row in compare(runs):
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
