"""Measure recall in languages other than English: `python -m memoryvault.bench languages`.

For each language, prompts are asked in a vault of twelve notes, through the recall engine as hooks do. No data set is
needed; `note` in tests/recall_regression/languages.json describes the vaults.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..index.embedder import DEFAULT_MODEL, Embedder, load_embedder
from .recall import REGRESSION, Remembering
from .small import Prompt, Tally, given

FILE = REGRESSION / "languages.json"
IN_VIEW, HELD_OUT = "in view", "held out"


def vaults() -> list[dict[str, Any]]:
    """Return the languages of languages.json, those in view first."""
    found: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["languages"]
    return found


def measure(vault: Mapping[str, Any], embedder: Embedder | None) -> dict[str, Tally]:
    """Return the results of a language by kind of prompt. `embedder`: None for words alone."""
    prompts = [
        Prompt(row["kind"], row["text"], frozenset(row.get("expect", ())), frozenset(row.get("fine", ())))
        for row in vault["prompts"]
    ]
    return given(vault["notes"], (), prompts, embedder)


def together(measured: Sequence[Mapping[str, Tally]]) -> dict[str, Tally]:
    """Return the sums by kind of prompt."""
    return {
        kind: Tally(
            *(sum(getattr(tallies[kind], field) for tallies in measured) for field in Tally.__dataclass_fields__)
        )
        for kind in ("note", "nothing")
    }


def table(rows: Mapping[str, tuple[Mapping[str, Tally], Mapping[str, Tally]]]) -> Iterator[str]:
    """Yield the lines of a markdown table, with the model and by words alone."""
    yield "| | right | beside | nothing: noisy | by words alone: right | beside | nothing: noisy |"
    yield "|---|---|---|---|---|---|---|"
    for name, both in rows.items():
        cells = [
            f"{tallies['note'].right} of {tallies['note'].prompts} | {tallies['note'].wrong_notes} "
            f"| {tallies['nothing'].noisy} of {tallies['nothing'].prompts}"
            for tallies in both
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("models"), help="where downloaded models lie")
    args = parser.parse_args(argv)
    embedder = Remembering(load_embedder(DEFAULT_MODEL, models_folder=args.models))
    rows: dict[str, tuple[Mapping[str, Tally], Mapping[str, Tally]]] = {}
    for held_out, name in ((False, IN_VIEW), (True, HELD_OUT)):
        own = {
            f"{vault['code']}, {name}": (measure(vault, embedder), measure(vault, None))
            for vault in vaults()
            if vault["held_out"] is held_out
        }
        with_model, by_words = zip(*own.values(), strict=True)
        rows |= {**own, f"**all, {name}**": (together(with_model), together(by_words))}
    for line in table(rows):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
