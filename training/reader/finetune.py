"""Fine-tune the packaged MiniLM to judge which sentences of a message are worth remembering, and as what.

`python -m training.reader.finetune DATA OUT` writes `weights.safetensors` into OUT: what the package has as
`index/reading_model.safetensors`. With `--fold`, OUT also gets the logits of the people left out.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from memoryvault.index.embedder import locate_model
from memoryvault.index.message_reader import windows
from memoryvault.index.packaged import PackagedModel, layers_in
from memoryvault.index.reading_model import BEFORE_CHARS, LOWER_LAYERS, MESSAGE_TOKENS, Window, window_of

from .data import (
    CATEGORIES,
    CHANNELS,
    LASTING,
    OWN_MESSAGES,
    TIERS,
    Message,
    for_training,
    ideas_and_fixes,
    messages,
    more_messages,
    parts_of,
)
from .model import ReadingModel, lower_hidden, padded
from .report import report

BATCH_TOKENS = 3200


@dataclass
class Example:
    """A window with its targets."""

    window: Window
    message: int
    first: int
    """Number of its first sentence in the message."""
    targets: list[float]
    """worth, idea, fix of the window."""
    pieces: list[float]
    """For each piece of the message whether it is quoted."""
    rows: list[dict]
    """For each sentence its targets."""
    weight: float
    lower: Tensor | None = None
    """float16[pieces, DIMENSION] of the lower layers, which do not change."""


class HasWindow(Protocol):
    """What `fit` takes."""

    window: Window
    lower: Tensor | None


T = TypeVar("T", bound=HasWindow)
WindowOf = Callable[[Sequence[int], Sequence[int], Sequence[tuple[int, int]]], Window]


def examples(found: Sequence[Message], own: Tokenizer, window_of: WindowOf = window_of) -> list[Example]:
    result = []
    encode = lambda text: own.encode(text, add_special_tokens=False)  # noqa: E731
    for number, m in enumerate(found):
        tail = encode(m.before[-BEFORE_CHARS:]).ids if m.before else []
        parts = m.sentences
        ranges = [(part.start, part.end) for part in parts]
        for first, last in windows(m.text, ranges, lambda text: len(encode(text).ids), MESSAGE_TOKENS) or [(0, 0)]:
            start = parts[first].start if parts else 0
            end = parts[last - 1].end if parts else len(m.text)
            coded = encode(m.text[start:end])
            offsets = coded.offsets[:MESSAGE_TOKENS]
            spans, rows = [], []
            for part in parts[first:last]:
                inside = [
                    k for k, (a, b) in enumerate(coded.offsets) if a + start < part.end and b + start > part.start
                ]
                spans.append((inside[0], inside[-1] + 1) if inside else (0, 0))
                items = [
                    i
                    for i in m.items
                    if min(i.end, part.end) - max(i.start, part.start)
                    > 0.3 * min(i.end - i.start, part.end - part.start)
                ]
                rows.append(_row(m, items))
            here = tuple(i for i in m.items if i.start < end and i.end > start)
            part_of = Message(m.id, m.person, m.text, m.before, here, m.doubtful)
            targets = [
                part_of.worth(LASTING),
                *(float(any(i.category == name for i in here)) for name in ("idea", "fix")),
            ]
            doubt = 0.85 if m.doubtful else 1.0
            quoted = [doubt * any(a + start < i.end and b + start > i.start for i in m.items) for a, b in offsets]
            result.append(Example(window_of(coded.ids, tail, spans), number, first, targets, quoted, rows, m.weight))
    return result


def add_lower(found: Sequence[Example], model: PackagedModel) -> None:
    for batch in batches(found, None):
        at = padded([e.window for e in batch])
        hidden = lower_hidden(model, at).half()
        for row, e in enumerate(batch):
            e.lower = hidden[row, : len(e.window.ids)].clone()


def forward(model: ReadingModel, batch: Sequence[Example]) -> tuple[dict[str, Tensor], Tensor]:
    """Logits, and the mask of the messages' own pieces."""
    at = padded([e.window for e in batch])
    lower = torch.zeros(*at.ids.shape, batch[0].lower.shape[-1])
    for row, e in enumerate(batch):
        lower[row, : len(e.lower)] = e.lower
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(lower, [e.window for e in batch], at)
    return {name: value.float() for name, value in out.items()}, at.own.float()


def from_package(model: ReadingModel, folder: Path) -> None:
    """Begin with the weights of the package."""
    weights = layers_in(load_file(folder / "model.safetensors"))
    for number, layer in enumerate(model.layers, LOWER_LAYERS):
        for name, parameter in layer.named_parameters():
            parameter.data.copy_(torch.from_numpy(weights[f"layers.{number}.{name}"]))


def _row(m: Message, items: Sequence) -> dict:
    part = Message(m.id, m.person, m.text, m.before, tuple(items), m.doubtful)
    row: dict = {"worth": part.worth(LASTING) if items else (0.05 if m.doubtful else 0.02)}
    if items:
        item = min(items, key=lambda i: TIERS.index(i.tier))
        row["category"] = CATEGORIES.index(item.category)
        if item.scope:
            row["tier"] = TIERS.index(item.tier)
            row["scope"] = float(item.scope == "project")
        if item.channel:
            row["channel"] = CHANNELS.index(item.channel)
    return row


def loss_of(out: dict[str, Tensor], own: Tensor, batch: Sequence[Example]) -> Tensor:
    bce = nn.functional.binary_cross_entropy_with_logits
    weight = torch.tensor([w.weight for w in batch])
    total = (
        (
            bce(out["window"], torch.tensor([w.targets for w in batch]), reduction="none")
            * torch.tensor([1.0, 0.5, 0.5])
            * weight[:, None]
        )
        .sum(1)
        .mean()
    )
    pieces = torch.zeros_like(out["piece"])
    for k, w in enumerate(batch):
        pieces[k, 1 : w.window.own + 1] = torch.tensor(w.pieces)
    each = bce(out["piece"], pieces, reduction="none") * own
    total = total + 0.5 * (each.sum(1) / own.sum(1).clamp(min=1) * weight).mean()
    rows = [r for w in batch for r in w.rows]
    if not rows:
        return total
    by_row = torch.tensor([w.weight / len(w.rows) ** 0.5 for w in batch for _ in w.rows])
    worth = bce(out["sentence"][:, 0], torch.tensor([r["worth"] for r in rows]), reduction="none")
    total = total + (worth * by_row).sum() / len(batch)
    for name, scale in (("category", 0.3), ("tier", 0.3), ("channel", 0.3)):
        use = [k for k, r in enumerate(rows) if name in r]
        if use:
            ce = nn.functional.cross_entropy(
                out[name][use], torch.tensor([rows[k][name] for k in use]), reduction="none"
            )
            total = total + scale * (ce * by_row[use]).sum() / len(batch) * 3
    use = [k for k, r in enumerate(rows) if "scope" in r]
    if use:
        each = bce(out["scope"][use, 0], torch.tensor([rows[k]["scope"] for k in use]), reduction="none")
        total = total + 0.3 * (each * by_row[use]).sum() / len(batch) * 3
    return total


def batches(all_windows: Sequence[T], draw: random.Random | None) -> list[list[T]]:
    order = list(range(len(all_windows)))
    if draw:
        draw.shuffle(order)
        order = [
            k
            for s in range(0, len(order), 1024)
            for k in sorted(order[s : s + 1024], key=lambda k: len(all_windows[k].window.ids))
        ]
    else:
        order.sort(key=lambda k: len(all_windows[k].window.ids))
    found: list[list[T]] = []
    current: list[T] = []
    longest = 0
    for k in order:
        longest = max(longest, len(all_windows[k].window.ids))
        if current and (longest * (len(current) + 1) > BATCH_TOKENS or len(current) >= 48):
            found.append(current)
            current, longest = [], len(all_windows[k].window.ids)
        current.append(all_windows[k])
    found.append(current)
    if draw:
        draw.shuffle(found)
    return found


def loss_of_batch(model: ReadingModel, batch: Sequence[Example]) -> Tensor:
    return loss_of(*forward(model, batch), batch)


def fit(
    model: nn.Module,
    rates: list[dict[str, Any]],
    all_windows: Sequence[T],
    draw: random.Random,
    epochs: int,
    loss_of_batch: Callable[[Any, Sequence[T]], Tensor],
    least: float,
    after_epoch: Callable[[int], None] = lambda epoch: None,
) -> None:
    """Train the model for so many epochs, at rates that rise for a tenth of the steps and then fall to a `least` share.

    `rates`: the groups of parameters that AdamW takes.
    """
    steps = len(batches(all_windows, random.Random(0))) * epochs
    optimizer = torch.optim.AdamW(rates, weight_decay=0.01)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, s / warm) * max(least, 1 - max(0, s - warm) / (steps - warm + 1))
    )
    began, step = time.time(), 0
    for epoch in range(1, epochs + 1):
        model.train()
        for batch in batches(all_windows, draw):
            loss = loss_of_batch(model, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step}/{steps} loss {loss.item():.3f} {time.time() - began:.0f}s", flush=True)
        after_epoch(epoch)


@torch.inference_mode()
def predict(model: ReadingModel, found: Sequence[Message], all_windows: Sequence[Example]) -> dict:
    """For each message: logits of its best window, and of its sentences."""
    model.eval()
    result: dict[int, dict] = {}
    for batch in batches(all_windows, None):
        out, _ = forward(model, batch)
        position = 0
        for k, w in enumerate(batch):
            row = result.setdefault(w.message, {"id": found[w.message].id, "windows": [], "sentences": []})
            row["windows"].append([round(v, 3) for v in out["window"][k].tolist()])
            for n, (a, b) in enumerate(w.window.spans):
                row["sentences"].append(
                    {
                        "n": w.first + n,
                        "worth": round(float(out["sentence"][position, 0]), 3),
                        "piece": round(float(out["piece"][k, a:b].mean()), 3),
                        "piece_top": round(float(out["piece"][k, a:b].max()), 3),
                        **{
                            name: [round(v, 2) for v in out[name][position].tolist()]
                            for name in ("category", "tier", "scope", "channel")
                        },
                    }
                )
                position += 1
    return {row["id"]: row for row in result.values()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--head-seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--fold", type=int, help="leave this part of the people out and read it; without it, all train")
    parser.add_argument("--extra", type=Path, nargs="*", default=OWN_MESSAGES)
    parser.add_argument("--extra-weight", type=float, default=0.2)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--judge", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    train, held = parts_of(options.data, options.folds, options.fold)
    if options.share < 1:
        people = sorted({m.person for m in train})
        random.Random(7).shuffle(people)
        kept = set(people[: int(len(people) * options.share)])
        train = [m for m in train if m.person in kept]
    # The n-grams do not learn from these: they gain nothing by it (docs/benchmarks/reflection.md).
    train = for_training(train + more_messages(options.data / "more.jsonl"))
    for path in options.extra:
        train += messages(path, {}, options.extra_weight)
    train += ideas_and_fixes(weight=options.extra_weight)
    folder = locate_model("all-MiniLM-L6-v2", Path()).folder
    packaged = PackagedModel(folder)
    own = packaged.tokenizer
    own.no_truncation()
    train_windows = examples(train, own)
    sets = {"held": held, **{p.stem: messages(p) for p in options.judge}}
    sets = {name: found for name, found in sets.items() if found}
    judged = {name: (found, examples(found, own)) for name, found in sets.items()}
    torch.manual_seed(options.head_seed)
    model = ReadingModel(0.1)
    from_package(model, folder)
    for some in (train_windows, *(its for _, its in judged.values())):
        add_lower(some, packaged)
    torch.manual_seed(options.seed)
    print(f"{len(train)} messages, {len(train_windows)} windows", flush=True)

    def after_epoch(epoch: int) -> None:
        if held:
            print(f"epoch {epoch}: {report(held, predict(model, held, judged['held'][1]))}", flush=True)

    body = [p for n, p in model.named_parameters() if n.startswith("layers.")]
    heads = [p for n, p in model.named_parameters() if not n.startswith("layers.")]
    rates = [{"params": body, "lr": options.rate}, {"params": heads, "lr": 1e-3}]
    draw = random.Random(options.seed)
    fit(model, rates, train_windows, draw, options.epochs, loss_of_batch, 0.08, after_epoch)
    options.out.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: value.detach().half() for name, value in model.named_parameters()}, options.out / "weights.safetensors"
    )
    for name, (found, its_windows) in judged.items():
        answers = predict(model, found, its_windows)
        (options.out / f"{name}.json").write_text(json.dumps(answers))
        print(f"{name}: {report(found, answers)}", flush=True)


if __name__ == "__main__":
    main()
