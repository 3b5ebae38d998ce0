"""`memory config eval`: rank your own documents for your own questions with the recall engine."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from ..index.embedder import Embedder, load_embedder, model_name
from ..index.evaluation import load_documents, load_questions, open_documents
from ..runtime.errors import ModelUnavailable
from .arguments import at_least_one
from .context import Context
from .output import add_json, note, print_result
from .progress import draw_share

EPILOG = """example:
  memory config eval rank --docs notes.jsonl --queries questions.jsonl -k 10 --json

A question sees the documents of its group, with the model and eagerness of your settings.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory config eval`."""
    parser.add_argument("action", choices=("rank",))
    parser.add_argument("--docs", type=Path, required=True, help="JSON lines: id, text, group?")
    parser.add_argument("--queries", type=Path, required=True, help="JSON lines: id, text, group?")
    parser.add_argument("-k", type=at_least_one, default=10, help="how many ids for each question (default 10)")
    parser.add_argument("--floor", action="store_true", help="leave out what a prompt hook would not print")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Rank with an index in a temporary folder; the vault is not touched."""
    documents, questions = load_documents(args.docs), load_questions(args.queries)
    with tempfile.TemporaryDirectory(prefix="memoryvault-eval-") as folder:
        progress = partial(draw_share, "indexing") if sys.stderr.isatty() else None
        with open_documents(documents, Path(folder), _embedder(context), on_progress=progress) as evaluation:
            order = {(question.group, question.id): place for place, question in enumerate(questions)}
            ranked = evaluation.rank(
                questions, args.k, eagerness=context.settings.recall.eagerness, apply_threshold=args.floor
            )
            rankings = sorted(ranked, key=lambda one: order[one.question.group, one.question.id])
    value = [
        {"id": one.question.id, "ranked": one.ids, "scores": one.scores, "degraded": one.degraded} for one in rankings
    ]
    return print_result(args, value, *(f"{one.question.id}\t{' '.join(one.ids)}" for one in rankings))


def _embedder(context: Context) -> Embedder | None:
    """The model of the settings; None, with a line on stderr, if there is none."""
    settings = context.settings
    models = Path(settings.state.models) if settings.vault_path else settings.state_root / "models"
    try:
        return load_embedder(model_name(settings.embedding.model), models_folder=models)
    except ModelUnavailable as error:
        note(f"memory: by keywords only: {error}")
        return None
