"""Write the model's weights, the mean of some trainings, and its logits for labelled files.

`python -m training.reader.export OUT.safetensors STATE.pt [STATE.pt …] --read LABELS.jsonl …`: the logits are written
beside the first state, under the name of the labels.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from memoryvault.index.embedder import locate_model
from memoryvault.index.packaged import PackagedModel

from .data import messages
from .finetune import add_lower, examples, predict
from .model import ReadingModel
from .report import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("states", type=Path, nargs="+")
    parser.add_argument("--part", default="mean", choices=("mean", "last"))
    parser.add_argument("--read", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    torch.set_num_threads(1)
    parts = [torch.load(path)[options.part] for path in options.states]
    weights = {name: (sum(part[name] for part in parts) / len(parts)).half() for name in parts[0]}
    save_file(weights, options.out)
    model = ReadingModel.load(options.out)
    packaged = PackagedModel(locate_model("all-MiniLM-L6-v2", Path()).folder)
    packaged.tokenizer.no_truncation()
    for path in options.read:
        found = messages(path)
        rows = examples(found, packaged.tokenizer)
        add_lower(rows, packaged)
        answers = predict(model, found, rows)
        (options.states[0].parent / f"{path.stem}.json").write_text(json.dumps(answers))
        print(path.stem, report(found, answers))


if __name__ == "__main__":
    main()
