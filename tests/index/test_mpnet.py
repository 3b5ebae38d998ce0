"""The second model that reads messages: unpacked, verified, computed with 8 bits."""

import shutil
from pathlib import Path

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from memoryvault.bench.reflection import MODELS
from memoryvault.index import mpnet_files
from memoryvault.index.embedder import CHECKSUM_FILE
from memoryvault.index.message_reader import MessageReader
from memoryvault.index.model_download import WEIGHTS
from memoryvault.index.models import is_installed
from memoryvault.index.mpnet import BUCKETS, FARTHEST, READING, Mpnet, layers_of, load_base, position_bias, window_of
from memoryvault.index.transformer import HEADS
from memoryvault.pipelines.reading.sentences import sentences
from memoryvault.runtime.errors import ModelUnavailable

TEXT = "ok, that works. from now on every pull request needs an entry in the changelog. please fix the typo"
SPANS = [(part.start, part.end) for part in sentences(TEXT)]


def test_a_message_and_the_agents_words_are_joined_as_the_model_was_trained() -> None:
    alone = window_of([11, 12, 13], [], [(0, 2), (2, 3)])
    assert (alone.ids, alone.own, alone.spans) == ([0, 11, 12, 13, 2], 3, [(1, 3), (3, 4)])
    assert window_of([11], [21, 22], [(0, 1)]).ids == [0, 11, 2, 2, 21, 22, 2]


def test_near_pieces_are_told_apart_by_distance_and_side_and_far_ones_are_not() -> None:
    table = numpy.repeat(numpy.arange(BUCKETS, dtype=numpy.float32)[:, None], HEADS, axis=1)
    bias = position_bias(table, FARTHEST + 72)[0]
    assert bias[10, 10] == 0
    assert [bias[10, 10 - back] for back in (1, 7)] == [1, 7]
    assert [bias[10, 10 + ahead] for ahead in (1, 7)] == [BUCKETS / 2 + 1, BUCKETS / 2 + 7]
    assert bias[FARTHEST, 0] == bias[FARTHEST + 71, 0] == BUCKETS / 2 - 1


@pytest.mark.model
def test_the_layers_compute_nearly_what_the_library_computes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = mpnet_files.prepare(MODELS)
    ids = [0, 2023, 2003, 1037, 3231, 1012, 2, 2, 2748, 2]
    with torch.inference_mode():
        library = transformers.MPNetModel.from_pretrained(folder, add_pooling_layer=False)
        expected = library(torch.tensor([ids])).last_hidden_state[0].numpy()
    save_file({}, tmp_path / "none.safetensors")
    found = Mpnet(load_base(folder / WEIGHTS), tmp_path / "none.safetensors").states(ids)[:, :768]
    assert numpy.linalg.norm(found - expected) < 0.1 * numpy.linalg.norm(expected)


@pytest.mark.model
def test_changes_are_added_to_the_weights() -> None:
    base = load_base(mpnet_files.prepare(MODELS) / WEIGHTS).weights
    changes = {name: value.astype(numpy.float32) for name, value in load_file(READING).items()}
    weights = layers_of({**base, **changes}, 9)
    for part, rows in (("q", slice(768)), ("v", slice(1536, 2304))):
        left, right = (changes[f"layers.9.{part}.weight.{side}"] for side in ("left", "right"))
        expected = base[f"layers.9.{part}.weight"] + left @ right
        assert numpy.abs(weights["layers.9.qkv.weight"][rows] - expected).max() < 1e-6
        assert (weights["layers.9.qkv.bias"][rows] == changes[f"layers.9.{part}.bias"]).all()


@pytest.mark.model
def test_it_finds_the_rule_in_its_message_and_is_freed_when_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = MessageReader(MODELS)
    answer = reader.read_again(TEXT, "All tests pass.", SPANS)
    best = max(range(len(SPANS)), key=lambda number: answer["sentences"][number]["sentence"][0])
    assert TEXT[slice(*SPANS[best])].startswith("from now on every pull request")
    order = reader.read_again("please fix the typo in the heading", "", [(0, 34)])
    assert order["window"][0] < 0 < answer["window"][0]
    reader.drop_unused()
    assert reader.holds_second
    monkeypatch.setattr("memoryvault.index.message_reader.UNUSED_SECONDS", -1.0)
    reader.drop_unused()
    assert not reader.holds_second


def test_without_its_packages_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpnet_files, "_PACKAGE", "no-such-package-00")
    assert not mpnet_files.is_here(tmp_path)
    with pytest.raises(ModelUnavailable, match=r"not on this machine \(docs/how-to/install\.md\)"):
        MessageReader(tmp_path).read_again(TEXT, "", SPANS)


@pytest.mark.model
@pytest.mark.slow
def test_it_is_unpacked_for_the_user_alone(tmp_path: Path) -> None:
    mpnet_files.prepare(tmp_path / "models")
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "models").rglob("*")} == {0}
    assert list((tmp_path / "models" / ".partial").iterdir()) == []
    assert is_installed(mpnet_files.NAME, tmp_path / "models")


def test_damaged_packages_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [tmp_path / f"part{number}" for number in range(5)]
    for part in parts:
        part.write_bytes(b"no zip")
    monkeypatch.setattr(mpnet_files, "_packed", lambda: parts)
    models = tmp_path / "models"
    with pytest.raises(ModelUnavailable, match="are damaged: install them again"):
        mpnet_files.prepare(models)
    assert [path.name for path in models.rglob("*") if path.is_file()] == [".unpacking.lock"]


def test_a_disk_that_is_nearly_full_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpnet_files, "_packed", lambda: [tmp_path / "part"] * 5)
    monkeypatch.setattr(mpnet_files, "UNPACKING_BYTES", 10**18)
    with pytest.raises(ModelUnavailable, match="GB of free disk"):
        mpnet_files.prepare(tmp_path / "models")


@pytest.mark.model
def test_other_weights_are_refused_without_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = mpnet_files.prepare(MODELS), mpnet_files.folder_in(tmp_path)
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns(WEIGHTS))
    (other / WEIGHTS).write_bytes(b"other")
    monkeypatch.setattr(mpnet_files, "_packed", list)
    with pytest.raises(ModelUnavailable, match="is damaged or not the expected file"):
        MessageReader(tmp_path).read_again(TEXT, "", SPANS)


@pytest.mark.model
@pytest.mark.slow
def test_a_damaged_copy_is_unpacked_anew(tmp_path: Path) -> None:
    folder = mpnet_files.folder_in(tmp_path)
    folder.mkdir()
    (folder / WEIGHTS).write_bytes(b"other")
    (folder / CHECKSUM_FILE).write_text(mpnet_files.SHA256)
    assert (mpnet_files.prepare(tmp_path) / WEIGHTS).stat().st_size > 400_000_000


def test_another_download_of_the_user_is_left_as_it_is(tmp_path: Path) -> None:
    folder = mpnet_files.folder_in(tmp_path)
    folder.mkdir()
    (folder / WEIGHTS).write_bytes(b"other")
    (folder / CHECKSUM_FILE).write_text("0" * 64)
    with pytest.raises(ModelUnavailable, match="not the expected file"):
        mpnet_files.prepare(tmp_path)
    assert (folder / WEIGHTS).read_bytes() == b"other"
