"""Read each part of the people with weights of the other parts, as sessions are read.

`python -m training.reader.held_out DATA CV OUT`, with CV as for calibrate.py.

Writes `labels.jsonl` (with the second reading) and `answers.jsonl` into OUT, for `bench.reflection --labels --answers`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from memoryvault.bench.reflection import MODELS, answers_of, in_process
from memoryvault.index.message_reader import MessageReader
from memoryvault.index.reading_model import ReadingModel
from memoryvault.pipelines.reading.linear import NgramReader
from memoryvault.pipelines.reading.ngrams import Weights

from .data import SECOND_READING, parts_of, read_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "cv", type=Path, help="folder with ngramsN.safetensors and foldN/weights.safetensors of some parts N"
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--mpnet", type=Path, help="changes.safetensors of mpnet.py")
    parser.add_argument("--folds", type=int, default=4)
    options = parser.parse_args()
    second = {row["id"]: row["items"] for row in read_rows(SECOND_READING)}
    rows = {row["id"]: row for name in ("train", "dev") for row in read_rows(options.data / f"{name}.jsonl")}
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "labels.jsonl").open("w") as labels, (options.out / "answers.jsonl").open("w") as answers:
        for fold in range(options.folds):
            weights = options.cv / f"fold{fold}" / "weights.safetensors"
            if not weights.exists():
                continue
            words = NgramReader(Weights(options.cv / f"ngrams{fold}.safetensors"))
            _, held = parts_of(options.data, options.folds, fold)
            here = [{**rows[m.id], "second": second.get(m.id, rows[m.id]["items"])} for m in held]
            labels.writelines(json.dumps(row) + "\n" for row in here)
            reader = MessageReader(MODELS, ReadingModel.load(weights), options.mpnet)
            found = answers_of(here, in_process(reader, words, again=options.mpnet is not None))
            answers.writelines(json.dumps(row) + "\n" for row in found.values())


if __name__ == "__main__":
    main()
