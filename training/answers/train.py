"""Fine-tune the packaged MiniLM to judge whether a note answers a prompt.

`python -m memoryvault.training.answers.train OUT` writes `answer_model.safetensors` into OUT: what the package has in
`index/`. Ten minutes on two cores. `python -m memoryvault.bench recall` judges it.

A large language model wrote the examples by the instructions in `examples/README.md`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from memoryvault.index.answer_model import PASSAGE_TOKENS, PROMPT_TOKENS
from memoryvault.index.embedder import locate_model
from memoryvault.index.packaged import LAYERS, PackagedModel
from memoryvault.index.reading_model import CLS, LOWER_LAYERS, SEP, Window
from memoryvault.index.transformer import DIMENSION

from ..reader.finetune import batches, fit, from_package
from ..reader.model import Layer, lower_hidden, padded

EXAMPLES = Path(__file__).parent / "examples"
EPOCHS, RATE, HEAD_RATE, LEAST_RATE = 3, 1e-4, 5e-4, 0.05
NEAREST = 2
"""Other notes of the vault, the nearest in meaning, that each prompt is paired with."""
TYPING_ERRORS = 0.15
"""Share of the prompts that get a typing error."""
SMOOTHING = 0.03


@dataclass
class Pair:
    """A prompt and a note."""

    window: Window
    """Its `own` are the pieces of the prompt."""
    answers: bool
    lower: Tensor | None = None


class AnswerModel(nn.Module):
    """The layers and the head of index/answer_model.py."""

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(LAYERS - LOWER_LAYERS))
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(4 * DIMENSION, 1)

    def forward(self, lower: Tensor, mask: Tensor, prompt: Tensor, note: Tensor) -> Tensor:
        hidden = lower
        for layer in self.layers:
            hidden = layer(hidden, mask)
        hidden = self.drop(hidden)
        asked, said = ((hidden * own[..., None]).sum(1) / own.sum(1, keepdim=True) for own in (prompt, note))
        return self.head(torch.cat([hidden[:, 0], said, (asked - said).abs(), asked * said], 1))[:, 0]


def pairs_of(vault: dict, model: PackagedModel, draw: random.Random) -> Iterator[tuple[str, str, bool]]:
    """Yield the pairs of a vault: each prompt with its note, and with the nearest other notes, which do not answer."""
    notes = [note["note"] for note in vault["notes"]]
    prompts = [
        (text, number, kind == "asks")
        for kind in ("asks", "not")
        for number, note in enumerate(vault["notes"])
        for text in note[kind]
    ]
    cosines = model.encode([text for text, *_ in prompts])[0] @ model.encode(notes)[0].T
    for (text, number, is_answered), near in zip(prompts, cosines, strict=True):
        typed = with_typing_error(text, draw) if draw.random() < TYPING_ERRORS else text
        yield typed, notes[number], is_answered
        others = [other for other in (-near).argsort() if other != number][:NEAREST]
        yield from ((typed, notes[other], False) for other in others)


def with_typing_error(text: str, draw: random.Random) -> str:
    """Leave out, double or exchange a letter within one of the longer words."""
    words = text.split(" ")
    long = [number for number, word in enumerate(words) if len(word) > 4]
    if not long:
        return text
    number = draw.choice(long)
    word = words[number]
    at = draw.randrange(1, len(word) - 2)
    words[number] = draw.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        )
    )
    return " ".join(words)


def window(tokenizer: Tokenizer, prompt: str, note: str) -> Window:
    asked, said = (tokenizer.encode(text, add_special_tokens=False).ids for text in (prompt, note))
    asked = asked[:PROMPT_TOKENS]
    return Window([CLS, *asked, SEP, *said[:PASSAGE_TOKENS], SEP], len(asked), [])


def loss_of_batch(model: AnswerModel, batch: Sequence[Pair]) -> Tensor:
    at = padded([pair.window for pair in batch])
    lower = torch.zeros(*at.ids.shape, DIMENSION)
    for row, pair in enumerate(batch):
        assert pair.lower is not None
        lower[row, : len(pair.lower)] = pair.lower
    note = at.types.bool()
    for row, pair in enumerate(batch):
        note[row, len(pair.window.ids) - 1] = False
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(lower, at.mask, at.own.float(), note.float()).float()
    targets = torch.tensor([1 - SMOOTHING if pair.answers else SMOOTHING for pair in batch])
    return nn.functional.binary_cross_entropy_with_logits(logits, targets, pos_weight=torch.tensor(2.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--examples", type=Path, nargs="*", default=[EXAMPLES / "short.jsonl", EXAMPLES / "long.jsonl"])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    draw = random.Random(1)
    folder = locate_model("all-MiniLM-L6-v2", Path()).folder
    packaged = PackagedModel(folder)
    vaults = [json.loads(line) for path in options.examples for line in path.read_text("utf-8").splitlines()]
    found = [pair for vault in vaults for pair in pairs_of(vault, packaged, draw)]
    packaged.tokenizer.no_truncation()
    pairs = [Pair(window(packaged.tokenizer, prompt, note), answers) for prompt, note, answers in found]
    for batch in batches(pairs, None):
        hidden = lower_hidden(packaged, padded([pair.window for pair in batch])).half()
        for row, pair in enumerate(batch):
            pair.lower = hidden[row, : len(pair.window.ids)].clone()
    print(f"{len(vaults)} vaults, {len(pairs)} pairs", flush=True)
    model = AnswerModel()
    from_package(model, folder)
    rates = [
        {"params": model.layers.parameters(), "lr": RATE},
        {"params": model.head.parameters(), "lr": HEAD_RATE},
    ]
    fit(model, rates, pairs, draw, EPOCHS, loss_of_batch, LEAST_RATE)
    options.out.mkdir(parents=True, exist_ok=True)
    weights = {name: value.half().contiguous() for name, value in model.state_dict().items()}
    save_file(weights, options.out / "answer_model.safetensors")


if __name__ == "__main__":
    main()
