"""Download an embedding model from a hub.

Callers of `download` must have the user's consent. It requests one description of the model and its files from
`HF_ENDPOINT` (default huggingface.co), without a token. It uses httpx and not the hub's own library, which looks for
updates of itself and restarts an interrupted file of a gigabyte (docs/adr/0012-model-downloads.md).

An interrupted download is continued, each file is compared with the checksum that the hub names, and the model gets its
name only when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..runtime.errors import ModelUnavailable, UsageError
from ..runtime.json_text import parse_json
from ..runtime.layout import open_private
from .embedder import CHECKSUM_FILE, DEFAULT_MODEL, ModelLocation, folder_of, verify_model

if TYPE_CHECKING:
    import httpx

DEFAULT_ENDPOINT = "https://huggingface.co"
WEIGHTS = "model.safetensors"
PARTIAL_FOLDER = ".partial"
TIMEOUT_SECONDS = 30.0
ATTEMPTS = 4
PAUSE_SECONDS = 1.0
SPARE_BYTES = 100_000_000
"""Disk space that must be left beyond the model."""
MAX_DESCRIPTION_BYTES = 8_000_000
MAX_SMALL_FILE_BYTES = 100_000_000
"""The limit for files other than weights: tokenizers reach 20 MB."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_READ_SUFFIXES = frozenset({".json", ".txt", ".model"})
"""Files besides the weights that a tokenizer or a module reads. None of them is code."""
_OTHER_FORMATS = frozenset({"onnx", "openvino", "coreml", "flax", "gguf"})

OnProgress = Callable[[int, int], None]
"""Called with the bytes downloaded so far and the bytes in all."""


class DownloadFailed(ModelUnavailable):
    """The hub cannot be reached, or what it sent is not what it announced."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of a model. `digest` is the sha256 of its bytes or the sha1 of its git blob."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True)
class RemoteModel:
    """A model on a hub: the commit of its branch `main`, and the files that we read."""

    name: str
    endpoint: str
    commit: str
    files: tuple[RemoteFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def endpoint_of(env: Mapping[str, str]) -> str:
    """Return the address of the hub. Raises UsageError when the environment forbids downloads."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if env.get(name, "").strip().lower() in ("1", "true", "yes", "on"):
            raise UsageError(f"{name} is set: nothing is downloaded; unset it, or name a folder that holds the model")
    endpoint = (env.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
    if not endpoint.startswith(("https://", "http://")):
        raise UsageError(f"HF_ENDPOINT is {endpoint!r}, but must be an http or https address")
    return endpoint


def is_hub_name(name: str) -> bool:
    """Whether `name` can be a model's name on a hub, as in BAAI/bge-large-en-v1.5."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def download(name: str, models_folder: Path, endpoint: str, on_progress: OnProgress | None = None) -> Path:
    """Download a model into `models_folder` and return its folder. Continues an interrupted download.

    Raises UsageError for a name no hub can have, DownloadFailed with what went wrong.
    """
    import httpx

    if not is_hub_name(name):
        raise UsageError(f"{name!r} is neither a model's name (as in BAAI/bge-large-en-v1.5) nor a folder")
    done = folder_of(name, models_folder)
    on_hub = f"sentence-transformers/{name}" if name == DEFAULT_MODEL else name
    with httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=True, headers={"User-Agent": "memoryvault"}) as client:
        try:
            model = describe(client, on_hub, endpoint)
            part = _prepare_partial_folder(model, models_folder)
            before = sum(min(_size(part / file.path), file.size) for file in model.files)
            free = shutil.disk_usage(models_folder).free
            if model.size - before + SPARE_BYTES > free:
                raise DownloadFailed(
                    f"{name} needs {(model.size - before) // 10**6} MB, {free // 10**6} MB are free: make some room"
                )
            so_far = 0
            # Small ones first, so that weights are not downloaded in vain.
            for file in sorted(model.files, key=lambda file: file.size):
                offset = so_far

                def report(size: int, offset: int = offset) -> None:
                    if on_progress is not None:
                        on_progress(offset + size, model.size)

                _fetch(client, model, file, part, report)
                so_far += file.size
        except httpx.HTTPError as error:
            raise DownloadFailed(
                f"{endpoint} cannot be reached ({error or type(error).__name__}): "
                "try again; what was downloaded is kept"
            ) from error
    weights = next(file for file in model.files if PurePosixPath(file.path).name == WEIGHTS)
    _write_synced(part / CHECKSUM_FILE, f"{_checksum(part / weights.path)}  {weights.path}\n".encode())
    try:
        verify_model(ModelLocation(name, part, None))
    except ModelUnavailable:
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(done, ignore_errors=True)
    part.rename(done)
    return done


def describe(client: httpx.Client, name: str, endpoint: str) -> RemoteModel:
    """Ask the hub which files there are to download. Raises DownloadFailed, httpx.HTTPError."""
    answer = client.get(f"{endpoint}/api/models/{name}/revision/main?blobs=true")
    _require_encryption(endpoint, str(answer.url))
    if answer.status_code in (401, 403, 404):
        raise DownloadFailed(f"{endpoint} has no model {name} that everybody may read")
    answer.raise_for_status()
    try:
        description = parse_json(answer.content[:MAX_DESCRIPTION_BYTES])
        commit = str(description["sha"])
        siblings: Sequence[Mapping[str, Any]] = description["siblings"]
        files = tuple(_remote_file(file) for file in siblings if _is_model_file(str(file["rfilename"])))
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadFailed(f"{endpoint} describes {name} in a way that is not understood") from error
    if _SHA1.fullmatch(commit) is None:
        raise DownloadFailed(f"{endpoint} names no commit of {name}")
    if not any(file.path == WEIGHTS for file in files):
        raise DownloadFailed(f"{name} has no {WEIGHTS}: only safetensors weights in one file are downloaded")
    for file in files:
        if PurePosixPath(file.path).name == WEIGHTS:
            if _SHA256.fullmatch(file.digest) is None:
                raise DownloadFailed(f"{endpoint} names no checksum of {name}/{file.path}: it is not downloaded")
        elif file.size > MAX_SMALL_FILE_BYTES:
            raise DownloadFailed(f"{name}/{file.path} has {file.size // 10**6} MB: that is no configuration")
    return RemoteModel(name, endpoint, commit, files)


def _remote_file(sibling: Mapping[str, Any]) -> RemoteFile:
    large = sibling.get("lfs") or sibling
    digest = large.get("sha256") or sibling["blobId"]
    return RemoteFile(str(sibling["rfilename"]), int(large["size"]), str(digest).lower())


def _is_model_file(path: str) -> bool:
    """Whether sentence-transformers reads the file and its path is inside the model's folder."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or "\\" in path or any(part.startswith(".") for part in parts):
        return False
    if len(parts) > 3 or parts[0].lower() in _OTHER_FORMATS:
        return False
    return parts[-1] == WEIGHTS or PurePosixPath(path).suffix in _READ_SUFFIXES


def _fetch(
    client: httpx.Client, model: RemoteModel, file: RemoteFile, part: Path, report: Callable[[int], None]
) -> None:
    """Download one file, or the rest of it, and verify its checksum. A damaged file is deleted."""
    import httpx

    path = part / file.path
    for folder in reversed(PurePosixPath(file.path).parents):
        (part / folder).mkdir(mode=0o700, exist_ok=True)
    url = f"{model.endpoint}/{model.name}/resolve/{model.commit}/{file.path}"
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _append(client, url, file, path, model.endpoint, report)
            break
        except httpx.TransportError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(PAUSE_SECONDS * attempt)
    if _size(path) != file.size or not _is_intact(path, file.digest):
        path.unlink(missing_ok=True)
        raise DownloadFailed(
            f"{model.name}/{file.path} came damaged or is not what the hub announced (its checksum differs): "
            "it was deleted; try again"
        )


def _append(
    client: httpx.Client, url: str, file: RemoteFile, path: Path, endpoint: str, report: Callable[[int], None]
) -> None:
    """Append what is missing of a file. `report` is called with its bytes so far."""
    have = _size(path)
    if have >= file.size:
        report(file.size)
        return
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    with client.stream("GET", url, headers=headers) as answer:
        _require_encryption(endpoint, str(answer.url))
        answer.raise_for_status()
        if have and answer.status_code != 206:
            have = 0  # It sends the whole file.
        with open(path, "ab" if have else "wb", opener=open_private) as out:
            for piece in answer.iter_bytes():
                have += len(piece)
                if have > file.size:
                    break  # More than was announced: the checksum will differ.
                out.write(piece)
                report(have)
            out.flush()
            os.fsync(out.fileno())


def _require_encryption(endpoint: str, url: str) -> None:
    if endpoint.startswith("https://") and not url.startswith("https://"):
        raise DownloadFailed(f"{endpoint} sent us on to {url.split('?')[0]}, which is not encrypted: refused")


def _prepare_partial_folder(model: RemoteModel, models_folder: Path) -> Path:
    """Make the folder for the files of this commit; those of other commits are deleted."""
    root = models_folder / PARTIAL_FOLDER
    part = root / f"{model.name.replace('/', '--')}@{model.commit}"
    for folder in (models_folder, root, part):
        folder.mkdir(mode=0o700, exist_ok=True)
    for other in root.glob(f"{model.name.replace('/', '--')}@*"):
        if other != part:
            shutil.rmtree(other, ignore_errors=True)
    return part


def _is_intact(path: Path, digest: str) -> bool:
    if _SHA256.fullmatch(digest):
        return _checksum(path) == digest
    data = path.read_bytes()
    # git's name of a file: its own checksum over the length and the bytes.
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == digest


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _write_synced(path: Path, data: bytes) -> None:
    with open(path, "wb", opener=open_private) as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
