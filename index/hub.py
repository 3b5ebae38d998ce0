"""Downloading an embedding model: the only place in the program that may touch the network.

Whoever calls `download` has asked the user. What is requested is one description of the model and its files,
from `HF_ENDPOINT` (default huggingface.co), with no token and no other call: that is why this is httpx and
not the hub's own library, which looks for updates of itself and begins a file of a gigabyte anew when
it was interrupted (docs/adr/0012-model-downloads.md).

A file goes on where it was interrupted, is compared with the checksum that the hub names, and the model gets
its name only when all of its files are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..vault.errors import ModelUnavailable, UsageError
from .embedder import CHECKSUM_FILE, ModelLocation, verify_model

if TYPE_CHECKING:
    import httpx

DEFAULT_ENDPOINT = "https://huggingface.co"
WEIGHTS = "model.safetensors"
PARTIAL_FOLDER = ".partial"
TIMEOUT_SECONDS = 30.0
ATTEMPTS = 4
PAUSE_SECONDS = 1.0
SPARE_BYTES = 100_000_000
"""Left free on the disk beyond the model."""
MAX_DESCRIPTION_BYTES = 8_000_000
MAX_SMALL_FILE_BYTES = 100_000_000
"""Of a file that is no weights: tokenizers reach 20 MB."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_READ_SUFFIXES = frozenset({".json", ".txt", ".model"})
"""Of the files beside the weights that a tokenizer or a module reads. None of them is code."""
_OTHER_FORMATS = frozenset({"onnx", "openvino", "coreml", "flax", "gguf"})

OnProgress = Callable[[int, int], None]
"""Bytes so far, bytes in all."""


class DownloadFailed(ModelUnavailable):
    """The hub cannot be reached, or what it sent is not what it announced."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of a model. `digest` is of its bytes (sha256) or of git's blob (sha1)."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True)
class RemoteModel:
    """What a hub has under a name: the commit that `main` stands at and the files we would read."""

    name: str
    endpoint: str
    commit: str
    files: tuple[RemoteFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def endpoint_of(env: Mapping[str, str]) -> str:
    """The hub that would be asked. Raises UsageError when the environment forbids it."""
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


def folder_of(name: str, models_folder: Path) -> Path:
    """Where a downloaded model lies."""
    return models_folder / name.replace("/", "--")


def download(name: str, models_folder: Path, endpoint: str, on_progress: OnProgress | None = None) -> Path:
    """Fetch a model into `models_folder`; its folder. Run again after an interruption it goes on.

    Raises UsageError for a name no hub can have, DownloadFailed with what went wrong.
    """
    import httpx

    if not is_hub_name(name):
        raise UsageError(f"{name!r} is neither a model's name (as in BAAI/bge-large-en-v1.5) nor a folder")
    done = folder_of(name, models_folder)
    with httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=True, headers={"User-Agent": "memoryvault"}) as client:
        try:
            model = describe(client, name, endpoint)
            part = _partial(model, models_folder)
            before = sum(min(_size(part / file.path), file.size) for file in model.files)
            free = shutil.disk_usage(models_folder).free
            if model.size - before + SPARE_BYTES > free:
                raise DownloadFailed(
                    f"{name} needs {(model.size - before) // 10**6} MB, {free // 10**6} MB are free: make some room"
                )
            so_far = 0
            # Small ones first: a model that is refused by its configuration is not fetched in vain.
            for file in sorted(model.files, key=lambda each: each.size):
                begun = so_far

                def told(size: int, begun: int = begun) -> None:
                    if on_progress is not None:
                        on_progress(begun + size, model.size)

                _fetch(client, model, file, part, told)
                so_far += file.size
        except httpx.HTTPError as error:
            raise DownloadFailed(
                f"{endpoint} cannot be reached ({error or type(error).__name__}): "
                "try again; what was downloaded is kept"
            ) from error
    weights = next(file for file in model.files if PurePosixPath(file.path).name == WEIGHTS)
    _put(part / CHECKSUM_FILE, f"{_checksum(part / weights.path)}  {weights.path}\n".encode())
    try:
        verify_model(ModelLocation(name, part, None))
    except ModelUnavailable:
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(done, ignore_errors=True)
    part.rename(done)
    return done


def describe(client: httpx.Client, name: str, endpoint: str) -> RemoteModel:
    """What there is to download. Raises DownloadFailed, httpx.HTTPError."""
    answer = client.get(f"{endpoint}/api/models/{name}/revision/main?blobs=true")
    _stay_encrypted(endpoint, str(answer.url))
    if answer.status_code in (401, 403, 404):
        raise DownloadFailed(f"{endpoint} has no model {name} that everybody may read")
    answer.raise_for_status()
    try:
        described = json.loads(answer.content[:MAX_DESCRIPTION_BYTES])
        commit = str(described["sha"])
        listed: Sequence[Mapping[str, Any]] = described["siblings"]
        files = tuple(
            _remote_file(each) or _asked_for(client, f"{endpoint}/{name}/resolve/{commit}", str(each["rfilename"]))
            for each in listed
            if _is_read(str(each["rfilename"]))
        )
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


def _remote_file(described: Mapping[str, Any]) -> RemoteFile | None:
    """None where the description leaves out size or checksum (mirrors do)."""
    large = described.get("lfs") or described
    digest, size = large.get("sha256") or described.get("blobId"), large.get("size")
    return (
        RemoteFile(str(described["rfilename"]), int(size), str(digest).lower()) if digest and size is not None else None
    )


def _asked_for(client: httpx.Client, address: str, path: str) -> RemoteFile:
    """The same from the headers of the file itself."""
    answer = client.head(f"{address}/{path}", headers={"Accept-Encoding": "identity"}, follow_redirects=False)
    if not answer.is_redirect:
        answer.raise_for_status()
    tag = answer.headers.get("X-Linked-Etag") or answer.headers.get("ETag") or ""
    size = answer.headers.get("X-Linked-Size") or answer.headers.get("Content-Length")
    return RemoteFile(path, int(size), tag.removeprefix("W/").strip('"').lower())


def _is_read(path: str) -> bool:
    """Whether the file is one that sentence-transformers reads, at a place inside the model's folder."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or "\\" in path or any(part.startswith(".") for part in parts):
        return False
    if len(parts) > 3 or parts[0].lower() in _OTHER_FORMATS:
        return False
    return parts[-1] == WEIGHTS or PurePosixPath(path).suffix in _READ_SUFFIXES


def _fetch(client: httpx.Client, model: RemoteModel, file: RemoteFile, part: Path, told: Callable[[int], None]) -> None:
    """One file, from where it was left, with its checksum compared. What is damaged is deleted."""
    import httpx

    path = part / file.path
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = f"{model.endpoint}/{model.name}/resolve/{model.commit}/{file.path}"
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _append(client, url, file, path, model.endpoint, told)
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
    client: httpx.Client, url: str, file: RemoteFile, path: Path, endpoint: str, told: Callable[[int], None]
) -> None:
    have = _size(path)
    if have >= file.size:
        told(file.size)
        return
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    with client.stream("GET", url, headers=headers) as answer:
        _stay_encrypted(endpoint, str(answer.url))
        answer.raise_for_status()
        if have and answer.status_code != 206:
            have = 0  # It sends the whole file.
        with path.open("ab" if have else "wb") as out:
            for piece in answer.iter_bytes():
                have += len(piece)
                if have > file.size:
                    break  # More than was announced: the checksum will say so.
                out.write(piece)
                told(have)
            out.flush()
            os.fsync(out.fileno())


def _stay_encrypted(endpoint: str, url: str) -> None:
    if endpoint.startswith("https://") and not url.startswith("https://"):
        raise DownloadFailed(f"{endpoint} sent us on to {url.split('?')[0]}, which is not encrypted: refused")


def _partial(model: RemoteModel, models_folder: Path) -> Path:
    """The folder in which this commit is put together; what is there of other commits is deleted."""
    root = models_folder / PARTIAL_FOLDER
    part = root / f"{model.name.replace('/', '--')}@{model.commit}"
    part.mkdir(mode=0o700, parents=True, exist_ok=True)
    for other in root.glob(f"{model.name.replace('/', '--')}@*"):
        if other != part:
            shutil.rmtree(other, ignore_errors=True)
    return part


def _is_intact(path: Path, digest: str) -> bool:
    if _SHA256.fullmatch(digest):
        return _checksum(path) == digest
    if _SHA1.fullmatch(digest) is None:
        return True  # A mirror that names none for a configuration file; its size was compared.
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


def _put(path: Path, data: bytes) -> None:
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
