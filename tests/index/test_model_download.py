"""Downloading a model from a hub on loopback: consent is the caller's, everything after it is here."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.index import model_download as subject
from memoryvault.index.embedder import CHECKSUM_FILE, locate_model, verify_model
from memoryvault.index.model_download import DownloadFailed, download, endpoint_of, is_hub_name
from memoryvault.runtime.errors import ModelUnavailable, UsageError
from memoryvault.tests.support.loopback_hub import LoopbackHub

NAME = "acme/tiny-model"
WEIGHTS = bytes(range(256)) * 4000
JUNK = ("README.md", "pytorch_model.bin", "onnx/model.json", "modeling_mine.py", ".gitattributes")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    """Files that look like a model: what matters here is how they travel."""
    folder = tmp_path / "served"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "onnx").mkdir()
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "config.json").write_text("{}")
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (folder / "vocab.txt").write_text("[PAD]\n")
    for name in JUNK:
        (folder / name).write_text("not wanted")
    with LoopbackHub(NAME, folder).serving() as serving:
        yield serving


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "PAUSE_SECONDS", 0.0)


def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir(exist_ok=True)
    return folder


def test_what_is_read_is_fetched_and_nothing_else(hub: LoopbackHub, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    folder = download(NAME, models(tmp_path), hub.endpoint, lambda done, total: told.append((done, total)))
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {"model.safetensors", "config.json", "1_Pooling/config.json", "vocab.txt", CHECKSUM_FILE}
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    made = [path for path in models(tmp_path).rglob("*") if path.stat().st_mode & 0o077]
    assert made == [], "the user's alone"
    assert told[-1][0] == told[-1][1]
    assert told == sorted(told)
    assert all(path.startswith((f"/api/models/{NAME}", f"/{NAME}/resolve/")) for _, path, _ in hub.requests)
    location = locate_model(NAME, models(tmp_path))
    verify_model(location)
    assert location.sha256 is not None


def test_a_broken_connection_goes_on_where_it_was(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cut_after = 300_000
    folder = download(NAME, models(tmp_path), hub.endpoint)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert [asked for _, path, asked in hub.requests if path.endswith(".safetensors")] == ["", "bytes=300000-"]


def test_after_a_kill_only_the_rest_is_fetched(hub: LoopbackHub, tmp_path: Path) -> None:
    code = (
        "import os, sys, signal; from pathlib import Path; from memoryvault.index.model_download import download\n"
        "def told(done, total):\n"
        "    if done > 500_000: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"download({NAME!r}, Path({str(models(tmp_path))!r}), {hub.endpoint!r}, told)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    with pytest.raises(ModelUnavailable):
        locate_model(NAME, models(tmp_path))
    hub.requests.clear()
    folder = download(NAME, models(tmp_path), hub.endpoint)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    (asked,) = [asked for _, path, asked in hub.requests if path.endswith(".safetensors")]
    assert int(asked.removeprefix("bytes=").rstrip("-")) > 0
    assert not any(path.endswith("config.json") for _, path, _ in hub.requests), "what was complete is kept"


def test_a_hub_without_ranges_is_asked_for_the_whole_file_again(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cut_after, hub.ignores_ranges = 300_000, True
    with pytest.raises(DownloadFailed, match="what was downloaded is kept"):
        download(NAME, models(tmp_path), hub.endpoint)
    hub.cut_after = None
    assert (download(NAME, models(tmp_path), hub.endpoint) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_wrong_checksum_is_refused_and_leaves_nothing_to_load(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.wrong_checksum = True
    with pytest.raises(DownloadFailed, match="checksum differs"):
        download(NAME, models(tmp_path), hub.endpoint)
    assert list(models(tmp_path).rglob("*.safetensors")) == []
    hub.wrong_checksum = False
    assert download(NAME, models(tmp_path), hub.endpoint).is_dir()


def test_weights_that_are_not_safetensors_are_not_requested(hub: LoopbackHub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").unlink()
    with pytest.raises(DownloadFailed, match="only safetensors"):
        download(NAME, models(tmp_path), hub.endpoint)
    assert len(hub.requests) == 1


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("config.json", {"auto_map": {"AutoModel": "modeling_mine.Mine"}}, "its own code"),
        ("modules.json", [{"type": "mine.Module"}], "outside sentence-transformers"),
    ],
)
def test_a_model_that_brings_code_is_deleted_again(
    hub: LoopbackHub, tmp_path: Path, file: str, content: object, why: str
) -> None:
    (hub.folder / file).write_text(json.dumps(content))
    with pytest.raises(ModelUnavailable, match=why):
        download(NAME, models(tmp_path), hub.endpoint)
    assert [path for path in models(tmp_path).rglob("*") if path.is_file()] == []


def test_names_and_paths_cannot_lead_out_of_the_folder(hub: LoopbackHub, tmp_path: Path) -> None:
    for name in ("../x", "a/../b", "a/b/c", "/etc", "a b", ""):
        assert not is_hub_name(name)
        with pytest.raises(UsageError):
            download(name, models(tmp_path), hub.endpoint)
    assert hub.requests == []
    for path in ("../config.json", "/etc/config.json", "a/../../config.json", "a\\..\\config.json", ".git/config.json"):
        assert not subject._is_model_file(path)


def test_a_hub_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="cannot be reached"):
        download(NAME, models(tmp_path), "http://127.0.0.1:9")


def test_an_unknown_model_is_one_line(hub: LoopbackHub, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="no model acme/other"):
        download("acme/other", models(tmp_path), hub.endpoint)


def test_the_environment_may_forbid_it_or_name_another_hub() -> None:
    assert endpoint_of({}) == "https://huggingface.co"
    assert endpoint_of({"HF_ENDPOINT": "http://127.0.0.1:1/"}) == "http://127.0.0.1:1"
    with pytest.raises(UsageError, match="HF_HUB_OFFLINE"):
        endpoint_of({"HF_HUB_OFFLINE": "1"})
    with pytest.raises(UsageError, match="http"):
        endpoint_of({"HF_ENDPOINT": "file:///etc"})
