"""Align the shipped model's probabilities with those of the models that the limits were fitted to.

`python -m memoryvault.training.reader.align PROMPTS CV`, after calibrate.py and held_out.py. Those limits belong to
models of a part of the people; the shipped one learned from all, and is surer of what holds nothing. PROMPTS are
prompts that no model learned from (JSON lines of id and text); no labels are used. On them the shipped model's logits
get the distribution that the others' have, by a factor and an offset in `calibration.json`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

from memoryvault.bench.reflection import InProcess, answers_of
from memoryvault.index.reading_model import ReadingModel
from memoryvault.pipelines.reading import calibration
from memoryvault.pipelines.reading.linear import NgramReader
from memoryvault.pipelines.reading.ngrams import Weights

from .data import read_rows

SHARES = numpy.arange(0.5, 0.99, 0.01)
"""Quantiles that are aligned: the upper half, in which the limits lie."""


def quantiles(rows: Sequence[Any], reader: InProcess) -> numpy.ndarray:
    """Return the logits of the messages at SHARES."""
    answers = answers_of(rows, reader)
    p = numpy.clip([answers[row["id"]]["p"] for row in rows], 1e-4, 1 - 1e-4)
    return numpy.quantile(numpy.log(p / (1 - p)), SHARES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("cv", type=Path, help="folder with ngramsN.safetensors and foldN/weights.safetensors")
    options = parser.parse_args()
    rows = list(read_rows(options.prompts))
    parts = []
    for weights in sorted(options.cv.glob("fold*/weights.safetensors")):
        words = NgramReader(Weights(options.cv / f"ngrams{weights.parent.name[4:]}.safetensors"))
        parts.append(quantiles(rows, InProcess(ReadingModel.load(weights), words)))
    factor, offset = numpy.polyfit(quantiles(rows, InProcess()), numpy.mean(parts, axis=0), 1)
    print(f"factor {factor:.3f}, offset {offset:.3f}")
    path = Path(calibration.__file__).with_name("calibration.json")
    known = json.loads(path.read_text())
    message = {name: value * factor for name, value in known["model"]["message"].items()}
    message["bias"] += offset
    known["model"]["message"] = {name: round(float(value), 4) for name, value in message.items()}
    path.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
