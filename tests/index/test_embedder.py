"""The real model, and the models that are refused."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryvault.index import embedder as subject
from memoryvault.index.drain import drain
from memoryvault.index.embedder import (
    DEFAULT_MODEL,
    ModelLocation,
    load_embedder,
    load_reference,
    locate_model,
    model_name,
    verify_model,
)
from memoryvault.runtime.errors import ModelUnavailable
from memoryvault.tests.index.bed import Bed, ServiceProcess

pytestmark = pytest.mark.slow


def packaged() -> ModelLocation:
    return locate_model(DEFAULT_MODEL, Path("/nonexistent"))


def folder_of_model(path: Path, **config: object) -> Path:
    """A folder that looks like a model."""
    path.mkdir()
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (DEFAULT_MODEL, DEFAULT_MODEL),
        (f"sentence-transformers/{DEFAULT_MODEL}", DEFAULT_MODEL),
        ("BAAI/bge-large-en-v1.5", "BAAI/bge-large-en-v1.5"),
        ("/models/mine", "/models/mine"),
    ],
)
def test_a_model_has_one_name_however_it_is_written(setting: str, name: str) -> None:
    assert model_name(setting) == name


def test_a_model_that_is_not_here_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="memory config model use BAAI/bge-large-en"):
        load_embedder("BAAI/bge-large-en-v1.5", models_folder=tmp_path)
    with pytest.raises(ModelUnavailable, match="no folder"):
        load_embedder(str(tmp_path / "missing"), models_folder=tmp_path)


def test_a_downloaded_model_is_found_under_its_name(tmp_path: Path) -> None:
    folder_of_model(tmp_path / "some--model")
    (tmp_path / "some--model" / subject.CHECKSUM_FILE).write_text("abc\n")
    assert locate_model("some/model", tmp_path) == ModelLocation("some/model", tmp_path / "some--model", "abc")


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    folder = folder_of_model(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelUnavailable, match="only safetensors"):
        verify_model(ModelLocation("m", folder, None))


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match=r"with the extra \[light\]"):
        load_embedder(DEFAULT_MODEL, models_folder=Path("/nonexistent"))


@pytest.mark.model
def test_the_packaged_model_is_loaded_without_the_library_and_leaves_nothing_to_be_sent(tmp_path: Path) -> None:
    """Later versions of onnxruntime collect facts about the machine in the user's cache, and send them."""
    code = (
        "import sys; from pathlib import Path; from memoryvault.index.embedder import DEFAULT_MODEL, load_embedder; "
        "load_embedder(DEFAULT_MODEL, models_folder=Path()).encode(['a']); "
        "print([m for m in ('sentence_transformers', 'transformers', 'huggingface_hub') if m in sys.modules])"
    )
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, list(tmp_path.rglob("*"))) == ("[]\n", [])


@pytest.mark.model
def test_a_damaged_copy_of_the_packaged_weights_is_refused(tmp_path: Path) -> None:
    location = packaged()
    shutil.copytree(location.folder, tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    with weights.open("r+b") as stream:
        stream.seek(1_000_000)
        stream.write(b"\0\1\2\3")
    with pytest.raises(ModelUnavailable, match="damaged"):
        verify_model(ModelLocation(location.name, tmp_path / "model", location.sha256))


@pytest.mark.model
def test_the_packaged_model_gives_what_sentence_transformers_gives() -> None:
    """Alone, padded beside longer texts, cut off, empty, and in another script; the vectors of the words too."""
    ours = load_embedder(DEFAULT_MODEL, models_folder=Path("/nonexistent"), threads=1)
    library = load_reference(packaged(), threads=1)
    assert (ours.name, ours.dimension, ours.max_tokens) == (library.name, library.dimension, library.max_tokens)
    assert (ours.query_prefix, ours.passage_prefix) == (library.query_prefix, library.passage_prefix)
    texts = ["Deploy on Fridays is forbidden.", "short", "", "日本語 naïve café", "the `snake_case` word " * 120]
    for batch in (texts, *([text] for text in texts)):
        got, expected = ours.encode(batch), library.encode(batch)
        assert abs(got.vectors - expected.vectors).max() < 1e-6
        for one, other in zip(got.words, expected.words, strict=True):
            assert one.words == other.words
            assert abs(one.vectors - other.vectors).max(initial=0) < 1e-5
        assert got.unknown == expected.unknown
    assert ours.encode([]).vectors.shape == (0, 384)


@pytest.mark.model
def test_how_much_of_a_text_the_model_lacks_is_told_of_its_letters_alone() -> None:
    """However short: to it two such texts are the same."""
    texts = ["密码", "数", "", "Deploy on Fridays", "密码 in the log"]
    for embedder in (load_embedder(DEFAULT_MODEL, models_folder=Path("/nonexistent")), load_reference(packaged())):
        assert embedder.encode(texts, query=True).unknown == (1.0, 1.0, 0.0, 0.0, 0.4)


@pytest.mark.model
def test_the_models_tokenizer_counts_tokens_of_any_text(bed: Bed, listening: Callable[..., ServiceProcess]) -> None:
    """Short words and signs are far more tokens than a quarter of their characters."""
    ours = load_embedder(DEFAULT_MODEL, models_folder=Path("/nonexistent"), threads=1)
    signs = "a = b + c; " * 100
    assert ours.count_tokens(signs) == load_reference(packaged()).count_tokens(signs) == 600
    for number, words in enumerate(("north south", "early late", "left right")):
        bed.write(f"n{number}.md", f"# Sums {number}\n\n{'a = b + c; ' * 40}{words}", status="active")
    bed.index()
    running = listening("--model", DEFAULT_MODEL)
    with running.client() as client:
        drain(bed.store, client.embed, model=DEFAULT_MODEL)
        every = client.recall("sums", render=True, session="s-1", floor=False)
        answer = client.recall("sums", render=True, session="s-1", token_budget=300, floor=False)
    assert (len(every["paths"]), len(answer["paths"])) == (3, 2)
    assert ours.count_tokens(answer["block"]) <= 300
    assert len(every["block"]) / 4 < 300


@pytest.mark.model
def test_through_the_service_the_real_model_finds_a_note_asked_sideways(
    bed: Bed, service: Callable[..., ServiceProcess]
) -> None:
    """Within the memory that is promised."""
    bed.write("pm.md", "# Package manager\n\nIn this repository we always install dependencies with pnpm.")
    for number, text in enumerate(("Deploy on Fridays is forbidden.", "The clock tests need TZ=UTC.")):
        bed.write(f"n{number}.md", text)
    bed.write("long.md", "A long note about the weather on the coast. " * 200)
    bed.index()
    running = service("--model", DEFAULT_MODEL)
    assert running.wait_until_listening()["model"] == DEFAULT_MODEL
    with running.client() as client:
        report = drain(bed.store, client.embed, model=DEFAULT_MODEL)
        assert (report.errors, report.remaining) == (0, 0)
        answer = client.recall("should I use yarn to add a library?", k=1, floor=False)
        embedded = client.embed(["Deploy on Fridays is forbidden.", "short"])
    assert [hit["slug"] for hit in answer["hits"]] == ["pm"]
    assert answer["degraded"] == []
    with open(f"/proc/{running.pid}/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    assert peak < 650 * 1024
    assert [len(vector) for vector in embedded.vectors] == [384 * 4] * 2
    assert all(embedded.words)
