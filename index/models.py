"""The embedding models on this machine: which there are, which one answers, and how fast one is."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ..runtime.errors import IndexUnavailable, ModelUnavailable, SettingsError
from ..runtime.settings import Settings, load_settings
from . import database
from .embedder import (
    DEFAULT_MODEL,
    PACKAGED_SHA256,
    Embedder,
    ModelLocation,
    locate_model,
    missing_library,
    model_name,
)
from .model_download import PARTIAL_FOLDER
from .store import VectorModel

log = logging.getLogger(__name__)

SLOW_QUERY_MS = 150.0
"""The prompt hook waits 245 ms for the recall service in all; a slower model is late for most prompts."""
MEASURED_QUERIES = 9
_QUERY = "which day of the week may we release service number {} to production?"


@dataclass(frozen=True)
class KnownModel:
    """A model that is on this machine, or has vectors in the index."""

    name: str
    installed: bool
    in_force: bool
    dimension: int | None
    """None while it has no vectors."""
    embedded: int


def model_in_force(index_db: Path, setting: str) -> str:
    """Return the name of the model that answers: the one whose vectors are complete, else that of the settings."""
    row = None
    with (
        suppress(IndexUnavailable),
        database.translate_errors(index_db),
        closing(database.open_reader(index_db, vectors=False)) as connection,
    ):
        row = connection.execute("SELECT name FROM model_in_force").fetchone()
    return str(row[0]) if row else model_name(setting)


def wanted_model(settings: Settings) -> str:
    """Return the name of the model that the settings on disk name now, which a long-lived process may not have read
    yet."""
    try:
        settings = load_settings(settings.environment, settings.config_file)
    except SettingsError as error:
        log.warning("the settings as they were at the start stay in force: %s", error)
    return model_name(settings.embedding.model)


def list_models(
    models_folder: Path, vectors: Iterable[VectorModel], in_force: str | None, wanted: Iterable[str]
) -> list[KnownModel]:
    """Return the packaged model, the downloaded and `wanted` models, and those with vectors; the one in force first."""
    first = () if in_force is None else (in_force,)
    embedded = {model.name: model for model in vectors}
    names = dict.fromkeys((*first, *wanted, DEFAULT_MODEL, *_downloaded_names(models_folder), *embedded))
    models = []
    for name in names:
        vector_model = embedded.get(name)
        models.append(
            KnownModel(
                name=name,
                installed=is_installed(name, models_folder),
                in_force=name == in_force,
                dimension=vector_model.dimension if vector_model else None,
                embedded=vector_model.embedded if vector_model else 0,
            )
        )
    return models


def is_installed(name: str, models_folder: Path) -> bool:
    """Whether the model of this name, which may be a path, is on this machine."""
    try:
        return locate_model(name, models_folder).folder.is_dir()
    except ModelUnavailable:
        return False


def lacks_only_weights(models_folder: Path) -> bool:
    """Whether the default model could be loaded if it were downloaded."""
    location = ModelLocation(DEFAULT_MODEL, models_folder, PACKAGED_SHA256)
    return not is_installed(DEFAULT_MODEL, models_folder) and missing_library(location) is None


def why_not_loaded(name: str, models_folder: Path) -> str | None:
    """Return why the model cannot be loaded here, for the user; None when it can. Does not read its files."""
    try:
        library = missing_library(locate_model(name, models_folder))
    except ModelUnavailable as error:
        return str(error)
    return None if library is None else f"{name} is here, but not {library}: recall works on keywords only"


def _downloaded_names(models_folder: Path) -> list[str]:
    # A hub's name has at most one slash, so the first `--` stands for it.
    try:
        folders = sorted(path.name for path in models_folder.iterdir() if path.is_dir())
    except OSError:
        return []
    return [name.replace("--", "/", 1) for name in folders if name != PARTIAL_FOLDER]


def measure_query_ms(embedder: Embedder) -> float:
    """Measure the median time of embedding one question, in milliseconds, after a warm-up."""
    embedder.encode([_QUERY.format(0)], query=True)
    durations = []
    for number in range(1, MEASURED_QUERIES + 1):
        start = time.perf_counter()
        embedder.encode([_QUERY.format(number)], query=True)
        durations.append((time.perf_counter() - start) * 1000)
    return statistics.median(durations)
