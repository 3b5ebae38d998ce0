"""Rebuild index/languages.json, the directions of the languages: `python -m memoryvault.bench.train_languages`.

Uses language_samples.json: the same twelve sentences in each language, about everyday things and programs. No notes or
questions of the benchmarks are used. Deterministic up to the rounding of the processor. Needs the extra `semantic`.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy

from ..index.embedder import DEFAULT_MODEL, Embedder, load_embedder
from ..index.languages import FILE

if TYPE_CHECKING:
    from ..index.languages import Floats

SAMPLES = Path(__file__).with_name("language_samples.json")


def measure(embedder: Embedder, texts: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the mean vectors of the texts and of their words: float32[dimension] each."""
    encoded = embedder.encode(texts)
    words = numpy.concatenate([words.vectors for words in encoded.words])
    return encoded.vectors.mean(axis=0), words.mean(axis=0)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("models"), help="where downloaded models lie")
    args = parser.parse_args(argv)
    embedder = load_embedder(DEFAULT_MODEL, models_folder=args.models)
    languages = {}
    for language, texts in json.loads(SAMPLES.read_text(encoding="utf-8")).items():
        text_mean, word_mean = measure(embedder, texts)
        languages[language] = {"text_mean": _pack(text_mean), "word_mean": _pack(word_mean)}
    FILE.write_text(json.dumps({"model": embedder.name, "languages": languages}, indent=1) + "\n", encoding="utf-8")
    print(f"{len(languages)} languages in {FILE}")
    return 0


def _pack(vector: Floats) -> str:
    return base64.b64encode(vector.astype("<f2").tobytes()).decode()


if __name__ == "__main__":
    sys.exit(main())
