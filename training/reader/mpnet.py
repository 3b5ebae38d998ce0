"""Fine-tune all-mpnet-base-v2 to judge messages, as finetune.py does for MiniLM.

`python -m memoryvault.training.reader.mpnet DATA MODEL OUT` writes `changes.safetensors` into OUT: what the package has
as `index/mpnet_changes.safetensors`. MODEL: folder with sentence-transformers/all-mpnet-base-v2. `--without 0 1` leaves
these quarters of the people out, so that calibrate.py and held_out.py can judge by them. 40 minutes on two cores.

The upper layers are trained, at last on our examples of another's words. What changes in a matrix is then replaced by
the product of two narrow ones, the nearest of their rank: 8 MB instead of 85.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import MPNetModel

from memoryvault.index.mpnet import MATRICES, window_of
from memoryvault.index.reading_model import SENTENCE_HEADS, WINDOW_HEADS, Window
from memoryvault.pipelines.reading.sentences import sentences
from memoryvault.sources.transcripts.whose_words import own_text, pasted_ranges
from memoryvault.vault.turn import blanked

from .data import (
    OWN_MESSAGES,
    Item,
    Message,
    ideas_and_fixes,
    messages,
    more_messages,
    parts_of,
    read_again,
    read_rows,
)
from .finetune import Example, T, batches, examples, fit, loss_of
from .model import judged

DIMENSION, FROZEN_LAYERS = 768, 6
PAD = 1
RANK = 48
"""Average precision of a quarter of the people, left out: .637 with it, .642 with all ranks, .627 with 16. (Before the
last training.)"""
EPOCHS, RATE, HEAD_RATE, LEAST_RATE = 3, 3e-5, 5e-4, 0.05
"""LEAST_RATE: share of the rates at the end."""
LAST_RATE, LAST_HEAD_RATE = 1e-5, 1e-4
WHOSE_WORDS = Path(__file__).parent / "examples" / "apart.jsonl"


class Encoder(nn.Module):
    """The layers of the model, of which the lower ones stay as they are."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        packaged = MPNetModel.from_pretrained(folder, add_pooling_layer=False)
        self.embeddings, self.encoder = packaged.embeddings, packaged.encoder
        self.drop = nn.Dropout(0.1)
        for part in (self.embeddings, self.encoder.relative_attention_bias, self.encoder.layer[:FROZEN_LAYERS]):
            part.requires_grad_(False)

    def run(self, x: Tensor, mask: Tensor, layers: nn.ModuleList) -> Tensor:
        bias = self.encoder.compute_position_bias(x)
        hidden = torch.zeros(mask.shape).masked_fill(~mask, -1e4)[:, None, None, :]
        for layer in layers:
            x = layer(x, hidden, bias)[0]
        return x

    def lower(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the output of the frozen layers."""
        return self.run(self.embeddings(ids), mask, self.encoder.layer[:FROZEN_LAYERS])

    def upper(self, lower: Tensor, mask: Tensor) -> Tensor:
        """Return the output of the last layer, of that of the frozen ones."""
        return self.drop(self.run(lower, mask, self.encoder.layer[FROZEN_LAYERS:])).float()


class Mpnet(Encoder):
    """The model with heads as those of model.ReadingModel."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.window = nn.Linear(2 * DIMENSION, len(WINDOW_HEADS))
        self.piece = nn.Linear(DIMENSION, 1)
        self.heads = nn.ModuleDict({name: nn.Linear(3 * DIMENSION, size) for name, size in SENTENCE_HEADS.items()})

    def forward(self, lower: Tensor, batch: Sequence[Window], mask: Tensor, own: Tensor) -> dict[str, Tensor]:
        return judged(self, self.upper(lower, mask), batch, own)


def tokenizer_of(folder: Path) -> Tokenizer:
    """Return the model's tokenizer, which neither cuts nor pads."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def padded(batch: Sequence[Window]) -> tuple[Tensor, Tensor, Tensor]:
    """Return pieces, and masks of all and of the message's own."""
    longest = max(len(window.ids) for window in batch)
    ids = torch.full((len(batch), longest), PAD)
    mask, own = torch.zeros_like(ids).bool(), torch.zeros_like(ids).bool()
    for row, window in enumerate(batch):
        ids[row, : len(window.ids)] = torch.tensor(window.ids)
        mask[row, : len(window.ids)] = True
        own[row, 1 : window.own + 1] = True
    return ids, mask, own


def lower_of(batch: Sequence[T], mask: Tensor) -> Tensor:
    """Return float32[batch, longest, DIMENSION], what add_lower kept."""
    lower = torch.zeros(*mask.shape, DIMENSION)
    for row, e in enumerate(batch):
        assert e.lower is not None
        lower[row, : len(e.lower)] = e.lower.float()
    return lower


def forward(model: Mpnet, batch: Sequence[Example]) -> tuple[dict[str, Tensor], Tensor]:
    """Logits, and the mask of the messages' own pieces."""
    _, mask, own = padded([e.window for e in batch])
    lower = lower_of(batch, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(lower, [e.window for e in batch], mask, own)
    return {name: value.float() for name, value in out.items()}, own.float()


def loss_of_batch(model: Mpnet, batch: Sequence[Example]) -> Tensor:
    return loss_of(*forward(model, batch), batch)


@torch.inference_mode()
def add_lower(found: Sequence[T], model: Encoder) -> None:
    """Keep for each window what the frozen layers make of it."""
    for batch in batches(found, None):
        ids, mask, _ = padded([e.window for e in batch])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = model.lower(ids, mask).half()
        for row, e in enumerate(batch):
            e.lower = hidden[row, : len(e.window.ids)].clone()


def averaged(first: Sequence[Example], second: Sequence[Example], names: Sequence[Sequence[str]]) -> list[Example]:
    """Give each window the mean of what two people say of it. `names`: ids of the messages of either."""
    again: dict[tuple[str, int], Example] = {}
    for e in second:
        again.setdefault((names[1][e.message], e.first), e)
    mean = lambda a, b: [(x + y) / 2 for x, y in zip(a, b, strict=True)]  # noqa: E731
    for e in first:
        other = again.get((names[0][e.message], e.first))
        if other is None:
            continue
        e.targets, e.pieces = mean(e.targets, other.targets), mean(e.pieces, other.pieces)
        worth = mean([row["worth"] for row in e.rows], [row["worth"] for row in other.rows])
        e.rows = [{**b, **a, "worth": value} for a, b, value in zip(e.rows, other.rows, worth, strict=True)]
    return list(first)


def rates(model: Encoder, body: float, heads: float) -> list[dict[str, Any]]:
    """Return the parameters that are trained, with their rates."""
    trained = [(name.startswith("encoder."), p) for name, p in model.named_parameters() if p.requires_grad]
    return [
        {"params": [p for is_body, p in trained if is_body], "lr": body},
        {"params": [p for is_body, p in trained if not is_body], "lr": heads},
    ]


def last_windows(
    all_windows: Sequence[Example], tokenizer: Tokenizer, model: Mpnet, draw: random.Random
) -> list[Example]:
    """Return our examples of another's rules in a message, which are nothing to remember, and of typed ones; with twice
    as many other windows."""
    found = []
    for number, row in enumerate(read_rows(WHOSE_WORDS)):
        text = own_text(row["text"])
        text = blanked(text, pasted_ranges(text))
        start = text.find(row["rule"])
        if start < 0:
            continue
        rule = Item("preference", "high", None, None, start, start + len(row["rule"]))
        items = (rule,) if row["label"] == "typed" else ()
        found.append(Message(f"whose{number}", "", text, "", items, False, sentences=tuple(sentences(text))))
    mine = examples(found, tokenizer, window_of)
    for row in (row for e in mine for row in e.rows):
        row.pop("category", None)  # They do not say of which kind a rule is.
    model.eval()
    add_lower(mine, model)
    return mine + draw.sample(list(all_windows), 2 * len(mine))


def changes(model: Encoder, before: Mapping[str, Tensor], rank: int = RANK) -> dict[str, Tensor]:
    """Return what index/mpnet.py takes."""
    found: dict[str, Tensor] = {}
    for number in range(FROZEN_LAYERS, len(model.encoder.layer)):
        for there, here in MATRICES.items():
            name, own = f"encoder.layer.{number}.{there}", f"layers.{number}.{here}"
            weight, bias = (model.state_dict()[f"{name}.{kind}"] for kind in ("weight", "bias"))
            found[f"{own}.bias"] = bias
            if weight.ndim == 1:
                found[f"{own}.weight"] = weight
                continue
            u, s, v = torch.linalg.svd(weight - before[f"{name}.weight"], full_matrices=False)
            found[f"{own}.weight.left"] = u[:, :rank] * s[:rank]
            found[f"{own}.weight.right"] = v[:rank]
    for name, value in model.state_dict().items():
        if name.startswith(("window.", "heads.", "compare.")):
            found[name] = value
    return {name: value.detach().half().contiguous() for name, value in found.items()}


def apply_changes(model: Encoder, path: Path) -> None:
    """Change a model that is as published by a file that `changes` wrote."""
    found = {name: value.float() for name, value in load_file(path).items()}
    state = model.state_dict()
    for number in range(FROZEN_LAYERS, len(model.encoder.layer)):
        for there, here in MATRICES.items():
            name, own = f"encoder.layer.{number}.{there}", f"layers.{number}.{here}"
            state[f"{name}.bias"].copy_(found[f"{own}.bias"])
            if f"{own}.weight" in found:
                state[f"{name}.weight"].copy_(found[f"{own}.weight"])
            else:
                state[f"{name}.weight"] += found[f"{own}.weight.left"] @ found[f"{own}.weight.right"]
    for name, value in found.items():
        if name in state:
            state[name].copy_(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--without", type=int, nargs="*", default=[])
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--extra-weight", type=float, default=0.2)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = tokenizer_of(options.model)
    everybody, _ = parts_of(options.data, options.folds, None)
    left_out = {m.person for k in options.without for m in parts_of(options.data, options.folds, k)[1]}
    train = [m for m in everybody if m.person not in left_out] + more_messages(options.data / "more.jsonl")
    second = read_again(train)
    extra = [m for path in OWN_MESSAGES for m in messages(path, {}, options.extra_weight)]
    extra += ideas_and_fixes(weight=options.extra_weight)
    all_windows = averaged(
        examples(train, tokenizer, window_of),
        examples(second, tokenizer, window_of),
        [[m.id for m in found] for found in (train, second)],
    ) + examples(extra, tokenizer, window_of)
    torch.manual_seed(1)
    model = Mpnet(options.model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    add_lower(all_windows, model)
    print(f"{len(train)} messages, {len(all_windows)} windows", flush=True)
    draw = random.Random(1)
    fit(model, rates(model, RATE, HEAD_RATE), all_windows, draw, EPOCHS, loss_of_batch, LEAST_RATE)
    last = last_windows(all_windows, tokenizer, model, draw)
    fit(model, rates(model, LAST_RATE, LAST_HEAD_RATE), last, draw, 1, loss_of_batch, LEAST_RATE)
    options.out.mkdir(parents=True, exist_ok=True)
    save_file(changes(model, before), options.out / "changes.safetensors")


if __name__ == "__main__":
    main()
