"""Fine-tune all-mpnet-base-v2 to compare two statements: the same, a contradiction, or neither.

`python -m memoryvault.training.statements.train MODEL OUT` writes `changes.safetensors` into OUT: what the package has
as `index/mpnet_comparing.safetensors`. MODEL: folder with sentence-transformers/all-mpnet-base-v2. 40 minutes on two
cores. `--start WEIGHTS` goes on from such a file instead, for one epoch over the changes of mind and a part of the
pairs, in 10 minutes: so 741 of the changes were learned. Then `fit.py` fits the weights of `pipelines/likeness.json`
and judges them.

A large language model wrote the pairs by the instructions in `examples/README.md`.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from memoryvault.index.mpnet import BEGIN, END, STATEMENT_TOKENS
from memoryvault.index.reading_model import Window

from ..reader.finetune import fit
from ..reader.mpnet import (
    DIMENSION,
    LEAST_RATE,
    PAD,
    Encoder,
    add_lower,
    apply_changes,
    changes,
    lower_of,
    padded,
    rates,
    tokenizer_of,
)
from .data import LABELS, labelled, read_examples

RANK = 48
EPOCHS, RATE, HEAD_RATE = 3, 3e-5, 5e-4
FURTHER_RATE, FURTHER_SHARE = 1.5e-5, 0.35
"""With `--start`: the rate, and the share of the pairs that keeps it from forgetting."""
SMOOTHING = 0.05
MOST_PAIRS = 3
"""Most pairs of two wordings that are drawn per statement."""
CHANGES_COUNT = 2
"""How often a pair of `changes.jsonl` counts: there are few of them."""
NEIGHBOURS, NEAREST = 3, 5
"""Pairs that are drawn per line with statements of other lines, and among how many of the nearest."""


@dataclass
class Pair:
    """Two statements."""

    window: Window
    """Its `own` are the pieces of the first one."""
    label: int
    lower: Tensor | None = None


class Comparer(Encoder):
    """The model with the head of index/mpnet.py."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.compare = nn.Linear(3 * DIMENSION, 3)

    def forward(self, lower: Tensor, mask: Tensor, first: Tensor, second: Tensor) -> Tensor:
        hidden = self.upper(lower, mask)
        left, right = ((hidden * own[..., None]).sum(1) / own.sum(1, keepdim=True) for own in (first, second))
        return self.compare(torch.cat([hidden[:, 0], (left - right).abs(), left * right], 1))


def further(lines: Sequence[dict], draw: random.Random) -> list[tuple[str, str, str]]:
    """Return pairs of statements that stand beside each other in a line."""
    found = []
    for line in lines:
        same = line["near"] + line["same"]
        both = [("same", one, other) for k, one in enumerate(same) for other in same[:k]]
        found += draw.sample(both, min(MOST_PAIRS, len(both)))
        if same:
            found += [(name, draw.choice(same), other) for name in ("contradicts", "other") for other in line[name]]
    return found


@torch.inference_mode()
def neighbours(
    lines: Sequence[dict], tokenizer: Tokenizer, model: Encoder, draw: random.Random
) -> list[tuple[str, str, str]]:
    """Return pairs of statements of two lines that are near in meaning."""
    texts = [
        (k, text)
        for k, line in enumerate(lines)
        for text in (line["statement"], *line["same"], *line["contradicts"], *line["other"])
    ]
    items = [Pair(window(tokenizer, text, None), 0) for _, text in texts]
    add_lower(items, model)
    vectors = torch.zeros(len(items), DIMENSION)
    for start in range(0, len(items), 64):
        batch = items[start : start + 64]
        _, mask, own = padded([item.window for item in batch])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = model.upper(lower_of(batch, mask), mask)
        vectors[start : start + 64] = nn.functional.normalize((hidden * own[..., None]).sum(1), dim=1)
    line_of = torch.tensor([k for k, _ in texts])
    found = []
    for place in draw.sample(range(len(texts)), NEIGHBOURS * len(lines)):
        cosines = vectors @ vectors[place]
        cosines[line_of == line_of[place]] = -1
        nearest = draw.choice(cosines.topk(NEAREST).indices.tolist())
        found.append(("other", texts[place][1], texts[nearest][1]))
    return found


def window(tokenizer: Tokenizer, one: str, other: str | None) -> Window:
    first, second = (
        tokenizer.encode(text, add_special_tokens=False).ids[:STATEMENT_TOKENS] if text else [] for text in (one, other)
    )
    return Window([BEGIN, *first, END, *([END, *second, END] if second else [])], len(first), [])


def logits(model: Comparer, batch: Sequence[Pair]) -> Tensor:
    ids, mask, first = padded([item.window for item in batch])
    second = torch.zeros_like(mask)
    for row, item in enumerate(batch):
        second[row, item.window.own + 3 : len(item.window.ids) - 1] = True
    assert ids[mask].ne(PAD).all()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(lower_of(batch, mask), mask, first.float(), second.float()).float()


def loss_of_batch(model: Comparer, batch: Sequence[Pair]) -> Tensor:
    labels = torch.tensor([item.label for item in batch])
    return nn.functional.cross_entropy(logits(model, batch), labels, label_smoothing=SMOOTHING)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = tokenizer_of(options.model)
    torch.manual_seed(1)
    draw = random.Random(1)
    model = Comparer(options.model).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    lines, changed = read_examples("pairs"), read_examples("changes")
    if options.start:
        apply_changes(model, options.start)
        old = labelled(lines)
        found = labelled(changed) + further(changed, draw) + draw.sample(old, int(FURTHER_SHARE * len(old)))
    else:
        lines += CHANGES_COUNT * changed
        found = labelled(lines) + further(lines, draw) + neighbours(lines, tokenizer, model, draw)
    # Each pair in one order, so that an epoch is short.
    drawn = [(name, *draw.sample(both, 2)) for name, *both in found]
    pairs = [Pair(window(tokenizer, one, other), LABELS[name]) for name, one, other in drawn]
    add_lower(pairs, model)
    print(f"{len(pairs)} pairs", flush=True)
    rate, head_rate, epochs = (FURTHER_RATE, 10 * FURTHER_RATE, 1) if options.start else (RATE, HEAD_RATE, EPOCHS)
    fit(model, rates(model, rate, head_rate), pairs, draw, epochs, loss_of_batch, LEAST_RATE)
    options.out.mkdir(parents=True, exist_ok=True)
    save_file(changes(model, before, RANK), options.out / "changes.safetensors")


if __name__ == "__main__":
    main()
