"""`memory config model`: show the embedding models, and change to another."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ..index.embedder import DEFAULT_MODEL, load_embedder, model_name
from ..index.model_download import download, endpoint_of, is_hub_name
from ..index.models import SLOW_QUERY_MS, KnownModel, is_installed, list_models, measure_query_ms, why_not_loaded
from ..runtime.errors import UsageError
from ..services.indexing import UPGRADE_KIND
from ..services.stores import open_index
from ..services.upgrading import ask_for, cancel_others, put_in_force
from ..tasks.queue.enqueue import open_ledger, request_indexing
from .arguments import refuse_options_of_others
from .context import Context
from .output import add_json, counted, note, print_json, print_rows
from .path_arguments import named_path
from .progress import draw_share
from .settings_file import write_setting
from .terminal import is_agreed

EPILOG = """example:
  memory config model                                  what is here, and which one answers
  memory config model use BAAI/bge-large-en-v1.5       downloads it after asking, re-embeds, switches
  memory config model use ~/models/bge-large-en-v1.5   the same with a folder that you have
"""

KNOWN_MEGABYTES = {
    DEFAULT_MODEL: 91,
    "BAAI/bge-large-en-v1.5": 1340,
    "BAAI/bge-base-en-v1.5": 440,
    "BAAI/bge-small-en-v1.5": 134,
}
"""Download sizes, shown before the first request to the hub."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory config model`."""
    parser.add_argument("action", nargs="?", default="list", choices=("list", "use"))
    parser.add_argument("model", nargs="?", help="a model's name on the hub, or a folder (use)")
    parser.add_argument("--yes", action="store_true", help="download without asking")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List the models, or change to one."""
    refuse_options_of_others(args, {"--yes": ("use",)})
    if args.action == "list" and args.model is not None:
        raise UsageError(
            f"memory config model list takes no {args.model!r}: it shows all; `memory config model use` changes to one"
        )
    _ = context.state
    if args.action == "list":
        return _list(args, context)
    if args.model is None:
        raise UsageError(
            "which model? memory config model use NAME or FOLDER   (memory config model shows what is here)"
        )
    return _use(args, context)


def _list(args: argparse.Namespace, context: Context) -> int:
    settings = context.settings
    wanted = model_name(settings.embedding.model)
    with open_ledger(settings) as ledger:
        coming = [
            str(job.args.get("model"))
            for job in ledger.list_jobs(["queued", "running"], kind=UPGRADE_KIND)
            if isinstance(job.args, dict)
        ]
    with open_index(settings) as index:
        answering = index.in_force()
        in_force = answering or wanted
        models = list_models(Path(context.state.models), index.vector_models(), answering, [wanted, *coming])
        # A requested model has no vectors while the worker loads it.
        to_do = {
            model.name: index.pending_count(model.name) for model in models if model.embedded or model.name in coming
        }
    told = [{**asdict(model), "to_do": to_do.get(model.name), "coming": model.name in coming} for model in models]
    rows = [
        (
            model.name,
            _state(model, is_coming=model.name in coming, is_first=answering is None and model.name == wanted),
            f"{model.embedded}" + (f" of {model.embedded + to_do[model.name]}" if to_do.get(model.name) else ""),
            model.dimension or "-",
        )
        for model in models
    ]
    value = {"models": told, "setting": settings.embedding.model}
    print_rows(args, value, ("model", "", "vectors", "dimension"), rows)
    if wanted != in_force and not args.json:
        if (missing := why_not_loaded(wanted, Path(context.state.models))) is not None:
            note(f"memory: {in_force} still answers: {missing}")
        elif wanted not in coming:
            note(f"memory: the settings name {wanted}: the worker changes over at its next run")
    return 0


def _state(model: KnownModel, *, is_coming: bool, is_first: bool) -> str:
    if model.in_force:
        return "answers" if model.installed else "answers, but it is not on this machine any more"
    if not model.installed:
        return "not on this machine"
    if is_coming:
        return "is being prepared"
    return "answers once something is embedded" if is_first else "here"


def _use(args: argparse.Namespace, context: Context) -> int:
    settings, state = context.settings, context.state
    models = Path(state.models)
    asked = args.model
    is_path = asked.startswith((".", "/")) or asked.count("/") > 1 or os.path.isfile(f"{asked}/config.json")
    name = model_name(str(named_path(Path(asked))) if is_path else asked)
    variable = settings.origins.get("embedding.model", "")
    if variable.isupper() and model_name(settings.embedding.model) != name:
        raise UsageError(
            f"{variable} is set to {settings.embedding.model} and overrides the settings: unset it, or set it to {name}"
        )
    with open_index(settings) as index:
        if not index.has_vectors:
            # Said before a gigabyte is fetched in vain, and before the settings name what cannot answer.
            raise UsageError("sqlite-vec cannot be loaded here: recall uses keywords only, with any model")
    if not is_installed(name, models):
        if not (is_hub_name(name) or os.path.isabs(name)):
            raise UsageError(f"{name!r} is neither a model's name (as in BAAI/bge-large-en-v1.5) nor a folder")
        if is_hub_name(name) and not _fetched(args, context, name):
            return 1
    note(f"memory: measuring {name} on this machine")
    embedder = load_embedder(name, models_folder=models)
    milliseconds = measure_query_ms(embedder)
    note(f"memory: {embedder.dimension} dimensions, a question takes {milliseconds:.0f} ms")
    if milliseconds > SLOW_QUERY_MS:
        note(
            f"memory: warning: that is more than {SLOW_QUERY_MS:.0f} ms: a prompt does not wait so long, so prompts "
            "will often be answered by keywords alone (`memory recall` and MCP do wait)"
        )
    write_setting(settings.config_file, "embedding", "model", name)
    result: dict[str, Any] = {
        "model": name,
        "dimension": embedder.dimension,
        "query_ms": round(milliseconds, 1),
        "slow": milliseconds > SLOW_QUERY_MS,
    }
    del embedder
    result |= _change(context, name)
    if args.json:
        print_json(result)
    elif result["in_force"]:
        print(
            f"{name} answers now" + (f" (before: {result['before']})" if result["before"] not in (None, name) else "")
        )
    else:
        to_do = counted(result["to_do"], "text")
        print(f"{to_do} to embed; {result['before']} answers until then (`memory config model` shows how far)")
    return 0


def _change(context: Context, name: str) -> dict[str, Any]:
    """Switch now if no vector is missing (an empty vault, an earlier model), else have the worker embed first."""
    settings = context.settings
    with open_index(settings) as index:
        before, to_do = index.in_force(), index.pending_count(name)
    if before is None:
        # No model answers yet, so there is nothing to keep: the next drain embeds with this one.
        put_in_force(settings, name)
        request_indexing(settings)
        return {"in_force": True, "before": None, "to_do": to_do, "job": None}
    with open_ledger(settings) as ledger:
        if to_do:
            job = ask_for(ledger, name)
            return {"in_force": False, "before": before, "to_do": to_do, "job": job}
        cancel_others(ledger, name)
    put_in_force(settings, name)
    return {"in_force": True, "before": before, "to_do": 0, "job": None}


def _fetched(args: argparse.Namespace, context: Context, name: str) -> bool:
    """Ask, then download; False if the answer was no. No request is sent before the answer."""
    endpoint = endpoint_of(context.env)
    size = f", about {KNOWN_MEGABYTES[name]} MB" if name in KNOWN_MEGABYTES else ""
    note(f"memory: {name} is not on this machine; it would be downloaded from {endpoint}{size}")
    note(f"memory: that tells {endpoint} this machine's address and the model's name, nothing else")
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at; add --yes to download it")
    if not args.yes and not is_agreed("Download it? [y/N] "):
        note("memory: nothing was downloaded, nothing was changed")
        return False
    fetch(name, Path(context.state.models), endpoint)
    return True


def fetch(name: str, models_folder: Path, endpoint: str) -> None:
    """Download the model, to which the user agreed, and say where it is. Raises DownloadFailed."""
    progress = partial(draw_share, "downloading, MB", unit=1_000_000) if sys.stderr.isatty() else None
    folder = download(name, models_folder, endpoint, progress)
    note(f"memory: {name} is in {folder}, its checksum is the hub's")
